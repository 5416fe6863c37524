"""Typed scalar expressions: what a predicate or an output computes.

Every node knows its type. Types are int64, float64, bool, string, timestamp, and null for a bare NULL. Values follow
SQL's three-valued logic; the arithmetic is defined in docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from operator import is_
from typing import Literal, assert_never

from attrs import evolve, frozen

from quercus.ir.span import Span, span_field

Type = Literal["int64", "float64", "bool", "string", "timestamp", "null"]
CompareOp = Literal["=", "<>", "<", "<=", ">", ">="]
ArithmeticOp = Literal["+", "-", "*", "/", "%"]
GroupName = Literal["count", "first", "last", "sum", "avg", "min", "max"]


@frozen(cache_hash=True)
class Const:
    """A literal. A timestamp's value is a count of the time column's unit since 1970."""

    value: bool | int | float | str | None
    type: Type
    span: Span | None = span_field()


@frozen(cache_hash=True)
class Column:
    """An attribute of the event bound to a variable; of each element, when the variable is Kleene."""

    var: str
    attr: str
    type: Type
    span: Span | None = span_field()


@frozen(cache_hash=True)
class Negative:
    value: Expr
    type: Type
    span: Span | None = span_field()


@frozen(cache_hash=True)
class Arithmetic:
    op: ArithmeticOp
    left: Expr
    right: Expr
    type: Type
    span: Span | None = span_field()


@frozen(cache_hash=True)
class Compare:
    op: CompareOp
    left: Expr
    right: Expr
    span: Span | None = span_field()

    @property
    def type(self) -> Type:
        return "bool"


@frozen(cache_hash=True)
class Logic:
    """`and` / `or` of two or more."""

    op: Literal["and", "or"]
    items: tuple[Expr, ...]
    span: Span | None = span_field()

    @property
    def type(self) -> Type:
        return "bool"


@frozen(cache_hash=True)
class NotTrue:
    """SQL's `not`: unknown stays unknown."""

    value: Expr
    span: Span | None = span_field()

    @property
    def type(self) -> Type:
        return "bool"


@frozen(cache_hash=True)
class InSet:
    """`value [not] in (constants)`."""

    value: Expr
    items: tuple[Const, ...]
    negated: bool
    span: Span | None = span_field()

    @property
    def type(self) -> Type:
        return "bool"


@frozen(cache_hash=True)
class IsNull:
    value: Expr
    negated: bool
    span: Span | None = span_field()

    @property
    def type(self) -> Type:
        return "bool"


@frozen(cache_hash=True)
class Call:
    """A scalar function of its arguments: abs round floor ceil lower upper length."""

    name: Literal["abs", "round", "floor", "ceil", "lower", "upper", "length"]
    args: tuple[Expr, ...]
    type: Type
    span: Span | None = span_field()


@frozen(cache_hash=True)
class GroupCall:
    """A function of a whole Kleene set: `count(b)`, `sum(b.x)`, `first(b).x`."""

    name: GroupName
    var: str
    attr: str | None
    type: Type
    span: Span | None = span_field()


@frozen(cache_hash=True)
class Same:
    """All events and elements bound to these columns' variables agree, pair by pair; absent and empty ones aside.

    What `[attr]` means where no variable is there to compare every other with. Written `same(b.id, c.id)`.
    """

    columns: tuple[Column, ...]
    span: Span | None = span_field()

    @property
    def type(self) -> Type:
        return "bool"


Expr = Const | Column | Negative | Arithmetic | Compare | Logic | NotTrue | InSet | IsNull | Call | GroupCall | Same

TRUE = Const(True, "bool")
FALSE = Const(False, "bool")


def children(e: Expr) -> tuple[Expr, ...]:
    match e:
        case Const() | Column() | GroupCall():
            return ()
        case Negative() | NotTrue() | InSet() | IsNull():
            return (e.value,)
        case Arithmetic() | Compare():
            return (e.left, e.right)
        case Logic():
            return e.items
        case Call():
            return e.args
        case Same():
            return e.columns
        case _:
            assert_never(e)


def with_children(e: Expr, new: tuple[Expr, ...]) -> Expr:
    """The same node over other children; the very same where these are its own, so that comparing is quick."""
    old = children(e)
    if len(old) == len(new) and all(map(is_, old, new)):
        return e
    match e:
        case Const() | Column() | GroupCall():
            return e
        case Negative() | NotTrue() | InSet() | IsNull():
            return evolve(e, value=new[0])
        case Arithmetic() | Compare():
            return evolve(e, left=new[0], right=new[1])
        case Logic():
            return evolve(e, items=new)
        case Call():
            return evolve(e, args=new)
        case Same():
            return evolve(e, columns=new)  # type: ignore[arg-type]
        case _:
            assert_never(e)


def walk(e: Expr) -> Iterator[Expr]:
    """The node and everything under it, top first."""
    yield e
    for c in children(e):
        yield from walk(c)


@lru_cache(maxsize=8192)
def variables(e: Expr) -> frozenset[str]:
    """The variables an expression names, in group functions too."""
    return frozenset(n.var for n in walk(e) if isinstance(n, Column | GroupCall))


def columns(e: Expr) -> frozenset[tuple[str, str]]:
    """The (variable, attribute) pairs an expression reads."""
    return frozenset((n.var, n.attr) for n in walk(e) if isinstance(n, Column | GroupCall) and n.attr is not None)


def without_variables(e: Expr, gone: frozenset[str]) -> Expr | None:
    """What is left of a conjunct where these variables never are: `Same` loses columns, others are not tested."""
    if not variables(e) & gone:
        return e
    if not isinstance(e, Same):
        return None
    left = tuple(c for c in e.columns if c.var not in gone)
    return Same(left, span=e.span) if left else None


def has_group_call(e: Expr) -> bool:
    return any(isinstance(n, GroupCall) for n in walk(e))


def is_equality(e: Expr) -> bool:
    """`x.a = y.b` between two different variables: what a hash join or a partition key can use."""
    return (
        isinstance(e, Compare)
        and e.op == "="
        and isinstance(e.left, Column)
        and isinstance(e.right, Column)
        and e.left.var != e.right.var
    )
