"""The readings of a pattern, one for each choice among the branches of its ORs, and their beginnings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import assert_never

from attrs import evolve, frozen

from quercus.ir import expr as x
from quercus.ir import pattern as p

MOST = 12  # readings that are looked at


@frozen
class Reading:
    """A query without choices: each OR has one branch left. `taken` names the branches."""

    query: p.Query
    taken: str | None


def readings(q: p.Query) -> tuple[list[Reading], bool]:
    """The readings in the order of the text, up to a limit; and whether these are all."""
    found = list(islice(_chosen(q.pattern, q.window), MOST + 1))
    if len(found) == 1:
        return [Reading(_hoisted(q), None)], True
    return [Reading(_hoisted(restricted(q, e)), _named(e)) for e in found[:MOST]], len(found) <= MOST


def _hoisted(q: p.Query) -> p.Query:
    """The conditions of branches as conditions of the match: there is no other branch to take."""
    inside = [c for _, e in positive(q.pattern) if isinstance(e, p.Or) for b in e.branches for c in b.where]

    def bare(e: p.Pattern) -> p.Pattern:
        if isinstance(e, p.Not):
            return e
        e = p.with_parts(e, tuple(bare(c) for c in p.parts(e)))
        return evolve(e, branches=tuple(evolve(b, where=()) for b in e.branches)) if isinstance(e, p.Or) else e

    return evolve(q, where=(*q.where, *inside), pattern=bare(q.pattern)) if inside else q


def _named(e: p.Pattern) -> str:
    return ", ".join(leaf.var for leaf in p.leaves(e))


def _chosen(e: p.Pattern, window: p.Window) -> Iterator[p.Pattern]:
    match e:
        case p.Leaf() | p.Kleene() | p.Not():
            yield e
        case p.Seq() | p.And():
            for parts in product(*(list(islice(_chosen(c, window), MOST + 1)) for c in e.parts)):
                yield p.with_parts(e, tuple(parts))
        case p.Or():
            for b in e.branches:
                for body in _chosen(b.body, window):
                    # Alone, a set would be a direct component of what is around; with a window it is not.
                    alone = isinstance(p.unwrapped(body), p.Kleene) and len(e.branches) > 1
                    own = e.window or (window if alone else None)
                    yield evolve(e, branches=(evolve(b, body=body),), window=own)
        case _:
            assert_never(e)


def restricted(q: p.Query, pattern: p.Pattern) -> p.Query:
    """The query over a pattern with fewer leaves: what names others is no longer asked for."""
    gone = p.all_variables(q.pattern) - p.all_variables(pattern)
    kept = tuple(dict.fromkeys(leaf.var for leaf in p.leaves(pattern)))
    variables = tuple(next(v for v in q.variables if v.var == var) for var in kept)
    leaves = {leaf.var: leaf for leaf in p.leaves(pattern)}
    return evolve(
        q,
        pattern=_clean(pattern, gone),
        where=_without(q.where, gone),
        variables=tuple(leaves.get(v.var, v) for v in variables),
        returns=(),
        aggregates=(),
        group_by=(),
    )


def _without(where: tuple[x.Expr, ...], gone: frozenset[str]) -> tuple[x.Expr, ...]:
    left = (x.without_variables(c, gone) for c in where)
    return tuple(c for c in left if c is not None)


def _clean(e: p.Pattern, gone: frozenset[str]) -> p.Pattern:
    e = p.with_parts(e, tuple(_clean(c, gone) for c in p.parts(e)))
    match e:
        case p.Or():
            return evolve(e, branches=tuple(evolve(b, where=_without(b.where, gone)) for b in e.branches))
        case p.Not():
            return evolve(e, where=_without(e.where, gone))
        case _:
            return e


def apart(e: p.Pattern, window: p.Window) -> p.Pattern:
    """A part of a pattern that may have one component left: a set, which would count as one of what is around it."""
    if isinstance(e, p.Seq | p.And) and e.window is None and len(e.parts) == 1:
        return evolve(e, window=window) if isinstance(p.unwrapped(e.parts[0]), p.Kleene) else e
    return e


def beginning(q: p.Query, count: int) -> p.Pattern | None:
    """The pattern of the first `count` positive leaves, without negations; None: of nothing."""
    found, _ = _first(q.pattern, count, q.window)
    return found


def _first(e: p.Pattern, left: int, window: p.Window) -> tuple[p.Pattern | None, int]:
    match e:
        case p.Leaf() | p.Kleene():
            return (e, left - 1) if left else (None, 0)
        case p.Not():
            return None, left
        case p.Seq() | p.And():
            parts: list[p.Pattern] = []
            for c in e.parts:
                part, left = _first(c, left, window)
                if part is not None:
                    parts.append(part if part == c else apart(part, window))
            return (evolve(e, parts=tuple(parts)) if parts else None), left
        case p.Or():
            (b,) = e.branches
            part, left = _first(b.body, left, window)
            return (None if part is None else evolve(e, branches=(evolve(b, body=part),))), left
        case _:
            assert_never(e)


def replaced(e: p.Pattern, path: tuple[int, ...], new: p.Pattern | None) -> p.Pattern:
    """The pattern with another part at a path from the root; None: without it."""
    if not path:
        assert new is not None
        return new
    parts = p.parts(e)
    if len(path) == 1 and new is None:
        assert isinstance(e, p.Seq | p.And)
        return evolve(e, parts=parts[: path[0]] + parts[path[0] + 1 :])
    inner = replaced(parts[path[0]], path[1:], new)
    return p.with_parts(e, (*parts[: path[0]], inner, *parts[path[0] + 1 :]))


def part_at(e: p.Pattern, path: tuple[int, ...]) -> p.Pattern:
    for i in path:
        e = p.parts(e)[i]
    return e


def positive(e: p.Pattern, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], p.Pattern]]:
    """Every part with its path, negations as they stand, not what is in them."""
    yield path, e
    if not isinstance(e, p.Not):
        for i, c in enumerate(p.parts(e)):
            yield from positive(c, (*path, i))
