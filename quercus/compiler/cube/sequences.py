"""Queries taken apart: the form in which E-Cube compares them, or why one has no such form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from quercus.compiler.cube.conditions import renamed
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.ir.workload import Part, Sequence
from quercus.plan import Plan
from quercus.schema import Schema

Conditions = tuple[x.Expr, ...]


def sequence_of(plan: Plan) -> Sequence | str:
    """The query of a plan as a sequence of parts, after rewriting; or why it is none.

    >>> import quercus as qc
    >>> plan = qc.compile("PATTERN SEQ(A a, SEQ(!B b, C c)) WHERE a.x > 3 WITHIN 5", qc.Schema({"x": "int64"}))
    >>> [(part.type, part.negated) for part in sequence_of(plan).parts]
    [('A', False), ('B', True), ('C', False)]
    >>> sequence_of(qc.compile("PATTERN SEQ(A, B+) WITHIN 5", plan.schema))
    'it binds sets of events (B+)'
    """
    q = plan.query
    if q.empty is not None:
        return "it can never match"
    if has_dead_branch(q):
        return "a branch of it can never match"
    sets = [leaf for leaf in p.leaves(q.pattern, negated=True) if isinstance(leaf, p.Kleene)]
    if sets:
        return f"it binds sets of events ({sets[0].leaf.type}{sets[0].sign})"
    if isinstance(q.pattern, p.Leaf):
        found: tuple[p.Pattern, ...] = (q.pattern,)
    elif isinstance(q.pattern, p.Seq):
        found = q.pattern.parts
        if q.pattern.window is not None:
            return f"a window stands inside its pattern ({text.window(q.pattern.window)})"
    else:
        return f"it is {_named(q.pattern)}, no SEQ"
    parts = []
    for c in found:
        body = c.body if isinstance(c, p.Not) else c
        if not isinstance(body, p.Leaf):
            verb = "it negates" if isinstance(c, p.Not) else "it has a sub-query,"
            return f"{verb} {_named(body)}"
        where = c.where if isinstance(c, p.Not) else q.where
        parts.append(_part(body, where, plan.schema, negated=isinstance(c, p.Not)))
    between = tuple(c for c in q.where if len(x.variables(c)) != 1)
    return Sequence(tuple(parts), between, q.window, q.partition_by)


def has_dead_branch(q: p.Query) -> bool:
    """Whether rewriting has left out a branch of an OR, whose variables matches still have, unbound."""
    return {leaf.var for leaf in p.leaves(q.pattern)} != {leaf.var for leaf in q.variables}


def _named(e: p.Pattern) -> str:
    kind = {p.Seq: "a SEQ", p.And: "an AND", p.Or: "an OR"}.get(type(e), "a set")
    return f"{kind} of its own" if isinstance(e, p.Seq) else kind


def _part(leaf: p.Leaf, where: Conditions, schema: Schema, *, negated: bool) -> Part:
    own = tuple(c for c in where if x.variables(c) == {leaf.var})
    ties = tuple(c for c in where if c not in own) if negated else ()
    return Part(leaf.var, leaf.type, accepted(leaf.type, schema), negated, own, ties)


def accepted(type_name: str, schema: Schema) -> tuple[str, ...]:
    """The names that an event's type may have, sorted."""
    return tuple(sorted(schema.accepts(type_name)))


# Sequences as data ----------------------------------------------------------------------------------------------------


def conditions(s: Sequence) -> Conditions:
    """Everything that is asked of the events of a match."""
    return (*(c for part in s.positive for c in part.where), *s.where)


def asked_of(part: Part) -> Conditions:
    """Everything that is asked of a negated event."""
    return (*part.where, *part.ties)


def with_conditions(s: Sequence, asked: Iterable[x.Expr]) -> Sequence:
    """The same sequence that asks these conditions of its match, each where it belongs."""
    every = tuple(dict.fromkeys(asked))
    parts = tuple(
        part if part.negated else evolve(part, where=tuple(c for c in every if x.variables(c) == {part.var}))
        for part in s.parts
    )
    return evolve(s, parts=parts, where=tuple(c for c in every if len(x.variables(c)) != 1))


def with_names(s: Sequence, names: Mapping[str, str]) -> Sequence:
    """The same sequence over variables of other names."""

    def all_of(where: Conditions) -> Conditions:
        return tuple(renamed(c, names) for c in where)

    parts = tuple(evolve(c, var=names.get(c.var, c.var), where=all_of(c.where), ties=all_of(c.ties)) for c in s.parts)
    return evolve(s, parts=parts, where=all_of(s.where))


def gaps(s: Sequence) -> tuple[tuple[Part, ...], ...]:
    """The negated parts before the first positive one, between each two, and after the last."""
    found: list[list[Part]] = [[]]
    for c in s.parts:
        if c.negated:
            found[-1].append(c)
        else:
            found.append([])
    return tuple(tuple(g) for g in found)


def joined(positive: tuple[Part, ...], between: tuple[tuple[Part, ...], ...]) -> tuple[Part, ...]:
    """Positive parts with what stands in the gaps around them: the inverse of `gaps`."""
    out = [*between[0]]
    for c, after in zip(positive, between[1:], strict=True):
        out += [c, *after]
    return tuple(out)


def windowed(s: Sequence) -> tuple[Part, ...]:
    """The negated parts whose scope ends at the window: those at the ends."""
    between = gaps(s)
    return (*between[0], *between[-1])


def pattern_text(s: Sequence) -> str:
    """`SEQ(G, !D, A)`: types alone, as the paper writes them."""
    return "SEQ(" + ", ".join(("!" if c.negated else "") + text.type_name(c.type) for c in s.parts) + ")"


def names_in(s: Sequence) -> Iterator[str]:
    yield from (c.var for c in s.parts)
