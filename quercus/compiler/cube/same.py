"""Queries with one and the same pattern, which need be no sequences: conditions, windows and outputs may differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from quercus.compiler.cube.conditions import Known, normal, renamed
from quercus.compiler.cube.reuse import Way
from quercus.compiler.cube.sequences import has_dead_branch
from quercus.compiler.cube.steps import Step
from quercus.compiler.scope import negations
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.ir.workload import Action, Keep, Narrow, Rename

OTHER = "its pattern is another one"
HELD = "its matches have sets: results that are held for others are of single events"


def same_way(source: p.Query, query: p.Query) -> Way | str:
    """From the results of a query to those of one with the same pattern, or why there is no way.

    Sets are not held for others. An OR may leave variables unbound, so that nothing but the outputs may differ. Where a
    window bounds the scope of a negation, or where any event may be the first, the windows must be the same.
    """
    if source.empty is not None or query.empty is not None:
        return "it can never match"
    if has_dead_branch(source) or has_dead_branch(query):
        return "a branch of it can never match"
    names = _names(source.pattern, query.pattern)
    if names is None:
        return OTHER
    asked = tuple(renamed(c, names) for c in source.where)
    bare = not any(isinstance(e, p.Kleene | p.Or) for e in p.walk(query.pattern))
    known = query.where if bare else ()
    if not _is_same(source.pattern, query.pattern, names, known, bare=bare):
        return OTHER
    if source.partition_by != query.partition_by:
        return "its keys are others"
    if p.kleene_variables(source.pattern, negated=False):
        return HELD
    if not bare:
        if _normal(asked) != _normal(query.where) or source.window != query.window:
            return "it binds one of several branches: windows and conditions must be the same"
        return Way("same", _steps(names, query, ()))
    said = Known(query.where)
    more = next((c for c in asked if not said.entails(c)), None)
    if more is not None:
        return f"it asks {text.scalar(more)}, which the query does not"
    if source.window.kind != query.window.kind or source.window.size < query.window.size:
        return "its window is shorter, or of another kind"
    actions: list[Action] = []
    if source.window.size != query.window.size:
        if any(n.scope.left is not None or n.scope.right is not None for n in negations(query.pattern)):
            return "a negation looks as far as its window reaches, and the windows differ"
        if not _is_first(query.pattern, 0) or not _is_first(query.pattern, -1):
            return "no variable of it is always the first, or the last: the windows must be the same"
        actions.append(Narrow(query.window))
    rest = Known(asked).rest(query.where)
    if rest:
        actions.append(Keep(rest))
    return Way("same", _steps(names, query, tuple(actions)))


def _is_first(e: p.Pattern, end: int) -> bool:
    """Whether the first variable (with -1, the last) is always bound to the first event of a match: by order alone."""
    if not isinstance(e, p.Seq):
        return isinstance(e, p.Leaf)
    positive = [c for c in e.parts if not isinstance(c, p.Not)]
    return _is_first(positive[end], end)


def _steps(names: Mapping[str, str], query: p.Query, actions: tuple[Action, ...]) -> tuple[Step, ...]:
    own = {leaf.var for leaf in query.variables}
    changed = tuple((a, b) for a, b in names.items() if a != b and b in own)
    first: tuple[Action, ...] = (Rename(changed),) if changed else ()
    return tuple(Step(a, None) for a in (*first, *actions))


def _names(source: p.Pattern, query: p.Pattern) -> dict[str, str] | None:
    """What the query calls the variables of the source; None: they do not correspond."""
    one, other = (list(p.leaves(e, negated=True)) for e in (source, query))
    names: dict[str, str] = {}
    if len(one) != len(other) or any(names.setdefault(a.var, b.var) != b.var for a, b in zip(one, other, strict=True)):
        return None
    return names if len(set(names.values())) == len(names) else None


def _is_same(a: p.Pattern, b: p.Pattern, names: Mapping[str, str], known: tuple[x.Expr, ...], *, bare: bool) -> bool:
    """Whether two patterns are the same but for names, on matches of which `known` is true."""
    match b:
        case p.Leaf():
            return isinstance(a, p.Leaf) and a.type == b.type and names[a.var] == b.var
        case p.Kleene():
            return (
                isinstance(a, p.Kleene)
                and (a.least, a.most) == (b.least, b.most)
                and _is_same(a.leaf, b.leaf, names, known, bare=bare)
            )
        case p.Seq() | p.And():
            return (
                isinstance(a, p.Seq | p.And)
                and type(a) is type(b)
                and a.window == b.window
                and len(a.parts) == len(b.parts)
                and all(_is_same(c, d, names, known, bare=bare) for c, d in zip(a.parts, b.parts, strict=True))
            )
        case p.Or():
            return (
                isinstance(a, p.Or)
                and a.window == b.window
                and len(a.branches) == len(b.branches)
                and all(
                    _normal(renamed(e, names) for e in c.where) == _normal(d.where)
                    and _is_same(c.body, d.body, names, known, bare=bare)
                    for c, d in zip(a.branches, b.branches, strict=True)
                )
            )
        case p.Not():
            return isinstance(a, p.Not) and _is_same_negated(a, b, names, known, bare=bare)
        case _:
            assert_never(b)


def _is_same_negated(a: p.Not, b: p.Not, names: Mapping[str, str], known: tuple[x.Expr, ...], *, bare: bool) -> bool:
    asked = tuple(renamed(e, names) for e in a.where)
    if not bare:
        return _normal(asked) == _normal(b.where) and _is_same(a.body, b.body, names, (), bare=bare)
    one, other = Known((*known, *asked)), Known((*known, *b.where))
    if not all(other.entails(e) for e in asked) or not all(one.entails(e) for e in b.where):
        return False
    return _is_same(a.body, b.body, names, (*known, *b.where), bare=bare)


def _normal(where: Iterable[x.Expr]) -> frozenset[x.Expr]:
    return frozenset(normal(e) for e in where)
