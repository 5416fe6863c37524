"""Whether given events violate a negation, and which events of the stream do it."""

from __future__ import annotations

from attrs import evolve

from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.why.engine import Engine
from quercus.why.places import Binding, Places, binding_of
from quercus.why.readings import part_at, positive, replaced
from quercus.why.requirements import LONGEST, Requirement
from quercus.why.words import listed

SHOWN = 3


def verdict(engine: Engine, places: Places, q: p.Query, r: Requirement, bound: Binding) -> bool | None:
    """Whether the bound events keep to a negation; None, where its scope cannot be told."""
    fitted = _fitted(places, q, bound)
    bare = evolve(fitted, pattern=_only(fitted.pattern, None), where=())
    if not _has(engine, bare, bound):
        return None
    return _has(engine, evolve(fitted, pattern=_only(fitted.pattern, r.path), where=()), bound)


def violators(engine: Engine, places: Places, q: p.Query, r: Requirement, bound: Binding) -> list[Binding]:
    """A few matches of what is negated that stand in its scope: the negation as a positive part of the pattern."""
    fitted = _fitted(places, q, bound)
    negation = part_at(fitted.pattern, r.path)
    assert isinstance(negation, p.Not)
    body = p.Seq((_single(negation.body),), evolve(q.window, size=LONGEST))
    pattern = replaced(_only(fitted.pattern, r.path), r.path, body)
    own = tuple(dict.fromkeys(p.leaves(body)))
    variant = evolve(fitted, pattern=pattern, where=negation.where, variables=(*fitted.variables, *own))
    if isinstance(p.unwrapped(q.pattern), p.And):  # its scope is all of the window that ends with the match
        variant = evolve(variant, window=evolve(q.window, size=LONGEST))
    names = {leaf.var for leaf in own}
    found: list[Binding] = []
    for match in engine.some(engine.pinned(variant, bound), 100).rows:
        rows = binding_of(match)
        if all(set(rows.get(v, ())) == set(at) for v, at in bound.items()):
            inner = {v: at for v, at in rows.items() if v in names}
            if not isinstance(p.unwrapped(q.pattern), p.And) or _reaches(places, q, bound, inner):
                found.append(inner)
    return found[:SHOWN]


def violated(engine: Engine, places: Places, q: p.Query, r: Requirement, bound: Binding) -> str:
    """That a negation is violated, and by which events."""
    by = [listed(places.events(b)) for b in violators(engine, places, q, r, bound)]
    return "violated by " + ", or by ".join(by) if by else "violated"


def _reaches(places: Places, q: p.Query, bound: Binding, inner: Binding) -> bool:
    rows = [r for at in bound.values() for r in at]
    _, end = places.ends(rows)
    mine = [r for at in inner.values() for r in at]
    return max(map(places.ts, mine)) <= places.ts(end) and places.size([*mine, end], q.window) <= q.window.size


def _has(engine: Engine, q: p.Query, bound: Binding) -> bool:
    wanted = {v: set(at) for v, at in bound.items() if at}
    return any(
        {v: set(at) for v, at in binding_of(m).items() if at} == wanted
        for m in engine.some(engine.pinned(q, bound), 1000).rows
    )


def _fitted(places: Places, q: p.Query, bound: Binding) -> p.Query:
    """The query as it must be for the bound events to be placed at all, in windows and sets as large as theirs."""
    rows = [r for at in bound.values() for r in at]
    size = max(places.size(rows, q.window), q.window.size)

    def fit(e: p.Pattern) -> p.Pattern:
        if isinstance(e, p.Kleene):
            count = len(bound.get(e.var, ()))
            return e if e.most is None or not count else evolve(e, least=count, most=count)
        if isinstance(e, p.Not):
            return e
        e = p.with_parts(e, tuple(fit(c) for c in p.parts(e)))
        if isinstance(e, p.Seq | p.And | p.Or) and e.window is not None:
            e = evolve(e, window=evolve(e.window, size=LONGEST))
        return e

    pattern = fit(q.pattern)
    leaves = {leaf.var: leaf for leaf in p.leaves(pattern)}
    return evolve(
        q,
        pattern=pattern,
        window=evolve(q.window, size=size),
        variables=tuple(leaves[v.var] for v in q.variables),
    )


def _only(e: p.Pattern, path: tuple[int, ...] | None) -> p.Pattern:
    """The pattern with one of its negations, or with none: the others are never violated, and stay where they are.

    Without them an operator might have one component left, and be as if it were not there: then scopes would change.
    """
    for at, c in list(positive(e)):
        if isinstance(c, p.Not) and at != path:
            e = replaced(e, at, evolve(c, where=(x.FALSE,)))
    return e


def _single(e: p.Pattern) -> p.Pattern:
    """In what is negated, one element is enough for a `+`."""
    if isinstance(e, p.Kleene):
        return e.leaf if e.most is None else e
    return e if isinstance(e, p.Not) else p.with_parts(e, tuple(_single(c) for c in p.parts(e)))
