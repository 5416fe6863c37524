"""Where a negation looks: the open interval between its neighbours, found from the pattern alone.

A neighbour that can be empty is only a neighbour when it is not; then the next one out counts. So each side is a list
of groups of variables, nearest first: the first group that has bound anything bounds the scope. Where all may be
empty, or there are none, the query's window bounds it.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from quercus.ir import pattern as p
from quercus.ir.tree import Scope


@frozen
class Placed:
    """A negation with its place: the path from the root, the scope, and the operator part beside it, if composite."""

    path: tuple[int, ...]
    negation: p.Not
    scope: Scope
    siblings: tuple[str, ...]
    in_and: bool
    beside_composite: bool


ROOT = Scope(after=(), before=(), left="window", right="window")


def negations(e: p.Pattern) -> Iterator[Placed]:
    """The negations of the match itself, in the order of the text; what is inside them is theirs to place."""
    root = p.unwrapped(e)
    scope = Scope((), (), "window", "end") if isinstance(root, p.And) else ROOT
    yield from _place(e, scope, (), beside_composite=False)


def inner_negations(placed: Placed) -> Iterator[Placed]:
    """The negations directly inside a negated sub-pattern, whose own scope is the negation's."""
    yield from _place(placed.negation.body, placed.scope, (*placed.path, 0), beside_composite=placed.beside_composite)


def _place(e: p.Pattern, scope: Scope, path: tuple[int, ...], *, beside_composite: bool) -> Iterator[Placed]:
    match e:
        case p.Seq():
            for i, c in enumerate(e.parts):
                own = _between(e.parts[:i][::-1], e.parts[i + 1 :], scope)
                neighbours = [_nearest(e.parts[:i][::-1]), _nearest(e.parts[i + 1 :])]
                composite = any(isinstance(n, p.Seq | p.And | p.Or) for n in neighbours) or (
                    None in neighbours and beside_composite
                )
                yield from _part(c, own, (*path, i), e, composite, in_and=False)
        case p.And():
            for i, c in enumerate(e.parts):
                yield from _part(c, scope, (*path, i), e, beside_composite, in_and=True)
        case p.Or():
            for i, b in enumerate(e.branches):
                alone = scope
                if scope == Scope((), (), "window", "window") and isinstance(p.unwrapped(b.body), p.And):
                    alone = Scope((), (), "window", "end")
                yield from _place(b.body, alone, (*path, i), beside_composite=beside_composite)
        case _:
            return


def _part(
    c: p.Pattern, scope: Scope, path: tuple[int, ...], operator: p.Seq | p.And, composite: bool, *, in_and: bool
) -> Iterator[Placed]:
    if isinstance(c, p.Not):
        siblings = tuple(dict.fromkeys(x.var for s in operator.parts for x in p.leaves(s)))
        yield Placed(path, c, scope, siblings, in_and, composite)
    else:
        yield from _place(c, scope, path, beside_composite=composite)


def _nearest(parts: tuple[p.Pattern, ...]) -> p.Pattern | None:
    return next((c for c in parts if not isinstance(c, p.Not)), None)


def _between(left: tuple[p.Pattern, ...], right: tuple[p.Pattern, ...], outer: Scope) -> Scope:
    after, left_open = _groups(left)
    before, right_open = _groups(right)
    return Scope(
        after + (outer.after if left_open else ()),
        before + (outer.before if right_open else ()),
        outer.left if left_open else None,
        outer.right if right_open else None,
    )


def _groups(parts: tuple[p.Pattern, ...]) -> tuple[tuple[tuple[str, ...], ...], bool]:
    """The positive neighbours on one side, nearest first, up to one that is always there; and whether none was."""
    found: list[tuple[str, ...]] = []
    for c in parts:
        if isinstance(c, p.Not):
            continue
        found.append(tuple(dict.fromkeys(x.var for x in p.leaves(c))))
        if not p.can_be_empty(c):
            return tuple(found), False
    return tuple(found), True
