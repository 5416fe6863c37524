"""The logical algebra: what a query asks for, bound to names and types, before any decision how to run it.

Conjuncts stand where they act and nowhere else: in `Query.where` (tested on the whole match), in a `Branch` of an OR
(tested when that branch is taken) or in a `Not` (tested on the negated sub-pattern's match). A conjunct that names a
variable which is absent or empty in a match is not tested on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import is_
from typing import Literal, assert_never

from attrs import evolve, frozen

from quercus.ir.expr import Column, Expr, GroupName, Type
from quercus.ir.span import Span, span_field

TimeUnit = Literal["s", "ms", "us", "ns"]


@frozen
class Window:
    """`time`: end.ts - start.ts <= size, in the time column's unit. `count`: end.pos - start.pos < size."""

    kind: Literal["time", "count"]
    size: int
    unit: TimeUnit | None = None
    span: Span | None = span_field()


@frozen
class Leaf:
    """One event of a type, bound to a variable."""

    var: str
    type: str
    span: Span | None = span_field()


@frozen
class Kleene:
    """A set of events of a type. most None: maximal sets (`+`, `*`); least == most: every combination (`[n]`)."""

    leaf: Leaf
    least: int
    most: int | None
    span: Span | None = span_field()

    @property
    def var(self) -> str:
        return self.leaf.var

    @property
    def sign(self) -> str:
        return f"[{self.most}]" if self.most is not None else "+" if self.least else "*"


@frozen
class Seq:
    parts: tuple[Pattern, ...]
    window: Window | None = None
    span: Span | None = span_field()


@frozen
class And:
    parts: tuple[Pattern, ...]
    window: Window | None = None
    span: Span | None = span_field()


@frozen
class Branch:
    """One branch of an OR with the conjuncts that stand in it."""

    body: Pattern
    where: tuple[Expr, ...] = ()
    span: Span | None = span_field()


@frozen
class Or:
    branches: tuple[Branch, ...]
    window: Window | None = None
    span: Span | None = span_field()


NotMark = Literal["delayed", "postponed", "exists"]


@frozen
class Not:
    """`!body`, violated by a match of `body` in its scope that makes every conjunct of `where` true.

    Marks come from rules: `delayed`, the scope ends at an adjacent sub-query (NEEL, 3.5); `postponed`, the scope
    reaches past the match's last event, so that results wait; `exists`, one inner match decides and none need be
    listed.
    """

    body: Pattern
    where: tuple[Expr, ...] = ()
    marks: tuple[NotMark, ...] = ()
    span: Span | None = span_field()


Pattern = Leaf | Kleene | Seq | And | Or | Not


@frozen
class Output:
    """A column of RETURN: an expression, or a whole variable when value is a str."""

    name: str
    value: Expr | str
    each: bool = False  # names a Kleene variable element by element: a list column
    span: Span | None = span_field()


@frozen
class Aggregate:
    """One item of AGG. COUNT(*) has neither var nor attr, COUNT(v) has var."""

    name: str
    function: GroupName
    var: str | None
    attr: str | None
    type: Type
    span: Span | None = span_field()


@frozen
class KeyClass:
    """One column per variable, equal in every match: events with different values never meet."""

    columns: tuple[Column, ...]


@frozen
class Query:
    """A bound query. `key`, `reads` and `empty` are filled in by rules."""

    pattern: Pattern
    where: tuple[Expr, ...]
    window: Window
    partition_by: tuple[str, ...] = ()
    group_by: tuple[Column, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    returns: tuple[Output, ...] = ()
    variables: tuple[
        Leaf | Kleene, ...
    ] = ()  # the positive variables in the order of the text: the columns of the answer
    key: KeyClass | None = None
    reads: tuple[Column, ...] | None = None
    empty: str | None = None


def same_objects(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def parts(p: Pattern) -> tuple[Pattern, ...]:
    """The sub-patterns directly under a node."""
    match p:
        case Leaf() | Kleene():
            return ()
        case Seq() | And():
            return p.parts
        case Or():
            return tuple(b.body for b in p.branches)
        case Not():
            return (p.body,)
        case _:
            assert_never(p)


def with_parts(p: Pattern, new: tuple[Pattern, ...]) -> Pattern:
    """The same node over other sub-patterns; the very same where these are its own, so that comparing is quick."""
    if same_objects(parts(p), new):
        return p
    match p:
        case Leaf() | Kleene():
            return p
        case Seq() | And():
            return evolve(p, parts=new)
        case Or():
            return evolve(p, branches=tuple(evolve(b, body=n) for b, n in zip(p.branches, new, strict=True)))
        case Not():
            return evolve(p, body=new[0])
        case _:
            assert_never(p)


def walk(p: Pattern) -> Iterator[Pattern]:
    """The node and everything under it, top first, negations included."""
    yield p
    for c in parts(p):
        yield from walk(c)


def leaves(p: Pattern, *, negated: bool = False) -> Iterator[Leaf | Kleene]:
    """The leaves of a pattern in the order of the text; those under a negation only when asked for."""
    match p:
        case Leaf() | Kleene():
            yield p
        case Not() if not negated:
            return
        case _:
            for c in parts(p):
                yield from leaves(c, negated=negated)


def has_sub_query(p: Pattern) -> bool:
    """Whether an operator stands directly in another one, and is not negated."""
    if isinstance(p, Seq | And) and any(isinstance(c, Seq | And) for c in p.parts):
        return True
    return not isinstance(p, Not) and any(has_sub_query(c) for c in parts(p))


def positive_variables(p: Pattern) -> frozenset[str]:
    return frozenset(x.var for x in leaves(p))


def all_variables(p: Pattern) -> frozenset[str]:
    return frozenset(x.var for x in leaves(p, negated=True))


def can_be_absent(p: Pattern) -> frozenset[str]:
    """Positive variables that some match leaves unbound (a branch not taken) or empty (`*`)."""
    match p:
        case Leaf() | Not():
            return frozenset()
        case Kleene():
            return frozenset() if p.least else frozenset({p.var})
        case Seq() | And():
            return frozenset().union(*(can_be_absent(c) for c in p.parts))
        case Or():
            everywhere = frozenset.intersection(*(positive_variables(b.body) for b in p.branches))
            return frozenset().union(
                *(can_be_absent(b.body) | (positive_variables(b.body) - everywhere) for b in p.branches)
            )
        case _:
            assert_never(p)


def kleene_variables(p: Pattern, *, negated: bool = True) -> frozenset[str]:
    return frozenset(x.var for x in leaves(p, negated=negated) if isinstance(x, Kleene))


def can_be_empty(p: Pattern) -> bool:
    """Whether a match of the pattern may bind no event at all."""
    match p:
        case Leaf():
            return False
        case Kleene():
            return p.least == 0
        case Seq() | And():
            return all(can_be_empty(c) for c in p.parts if not isinstance(c, Not))
        case Or():
            return any(can_be_empty(b.body) for b in p.branches)
        case Not():
            return True
        case _:
            assert_never(p)


def is_transparent(p: Pattern) -> bool:
    """An operator of one positive component without a window says nothing (parentheses)."""
    return (
        isinstance(p, Seq | And | Or) and p.window is None and len(parts(p)) == 1 and not isinstance(parts(p)[0], Not)
    )


def unwrapped(p: Pattern) -> Pattern:
    """The pattern without transparent operators around it."""
    while is_transparent(p):
        p = parts(p)[0]
    return p


def has_direct_kleene(p: And) -> bool:
    return any(isinstance(unwrapped(c), Kleene) for c in p.parts)
