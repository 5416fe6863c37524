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
    yield from _place(e, _root_scope(e), (), beside_composite=False, at_root=True)


def _root_scope(e: p.Pattern) -> Scope:
    """A root AND's negations look back from its end. A window on a single component narrows matches, not scopes."""
    while not isinstance(e, p.Leaf | p.Kleene) and len(p.parts(e)) == 1:
        e = p.parts(e)[0]
    return Scope((), (), "window", "end") if isinstance(e, p.And) else ROOT


def inner_negations(placed: Placed) -> Iterator[Placed]:
    """The negations directly inside a negated sub-pattern, whose own scope is the negation's."""
    yield from _place(placed.negation.body, placed.scope, (*placed.path, 0), beside_composite=placed.beside_composite)


def _place(
    e: p.Pattern, scope: Scope, path: tuple[int, ...], *, beside_composite: bool, at_root: bool = False
) -> Iterator[Placed]:
    at_root = at_root and (isinstance(e, p.Or) or len(p.parts(e)) == 1)
    match e:
        case p.Seq():
            for i, c in enumerate(e.parts):
                own = scope if at_root else _between(e.parts[:i][::-1], e.parts[i + 1 :], scope)
                neighbours = [_nearest(e.parts[:i][::-1]), _nearest(e.parts[i + 1 :])]
                composite = any(isinstance(n, p.Seq | p.And | p.Or) for n in neighbours) or (
                    None in neighbours and beside_composite
                )
                yield from _part(c, own, (*path, i), e, composite, in_and=False, at_root=at_root)
        case p.And():
            for i, c in enumerate(e.parts):
                yield from _part(c, scope, (*path, i), e, beside_composite, in_and=True, at_root=at_root)
        case p.Or():
            for i, b in enumerate(e.branches):
                alone = _root_scope(b.body) if at_root else scope
                yield from _place(b.body, alone, (*path, i), beside_composite=beside_composite, at_root=at_root)
        case _:
            return


def _part(
    c: p.Pattern,
    scope: Scope,
    path: tuple[int, ...],
    operator: p.Seq | p.And,
    composite: bool,
    *,
    in_and: bool,
    at_root: bool,
) -> Iterator[Placed]:
    if isinstance(c, p.Not):
        siblings = tuple(dict.fromkeys(x.var for s in operator.parts for x in p.leaves(s)))
        yield Placed(path, c, scope, siblings, in_and, composite)
    else:
        yield from _place(c, scope, path, beside_composite=composite, at_root=at_root)


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
