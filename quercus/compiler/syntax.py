"""The surface syntax of a query: what the text says, before names and types are looked up.

`parse` makes it, `bind` reads it. Nothing here knows a schema. `tests/reference.py` evaluates it directly, so that the
binder and every rule after it are held to an independent reading of the same text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal as OneOf

from attrs import field, frozen

from quercus.ir.span import Span
from quercus.ir.span import span_field as _span

# Scalar expressions ---------------------------------------------------------------------------------------------------


@frozen
class Constant:
    """A number, string, boolean or null (None) as written."""

    value: int | float | str | bool | None
    span: Span | None = _span()


@frozen
class Attr:
    """`var.name`."""

    var: str
    name: str
    span: Span | None = _span()


@frozen
class Var:
    """A variable alone: only in count(v), GROUPBY v and RETURN v."""

    name: str
    span: Span | None = _span()


@frozen
class Unary:
    op: OneOf["not", "-"]
    value: Scalar
    span: Span | None = _span()


@frozen
class Binary:
    op: OneOf["and", "or", "+", "-", "*", "/", "%"]
    left: Scalar
    right: Scalar
    span: Span | None = _span()


@frozen
class Chain:
    """`a < b <= c`:

    operands one more than operators; a plain comparison has one operator. `==` is `=`, `!=` is `<>`.
    """

    operands: tuple[Scalar, ...]
    ops: tuple[OneOf["=", "<>", "<", "<=", ">", ">="], ...]
    span: Span | None = _span()


@frozen
class InList:
    value: Scalar
    items: tuple[Scalar, ...]
    negated: bool
    span: Span | None = _span()


@frozen
class Between:
    value: Scalar
    low: Scalar
    high: Scalar
    negated: bool
    span: Span | None = _span()


@frozen
class IsNull:
    value: Scalar
    negated: bool
    span: Span | None = _span()


@frozen
class Call:
    """`abs(x)`, `count(b)`, `sum(b.x)`;

    `first(b).x` is Call("first", (Var b,), attr="x"); `COUNT(*)` has no arguments and star=True. `COUNT(DISTINCT x)` is
    for continuous queries.
    """

    name: str
    args: tuple[Scalar, ...]
    attr: str | None = None
    star: bool = False
    distinct: bool = False
    span: Span | None = _span()


@frozen
class SameAttr:
    """`[attr]` inside an operator: every event under the operator agrees on it. Never a part of a larger expression."""

    attr: str
    span: Span | None = _span()


Scalar = Constant | Attr | Var | Unary | Binary | Chain | InList | Between | IsNull | Call | SameAttr

# Patterns -------------------------------------------------------------------------------------------------------------


@frozen
class WindowText:
    """`WITHIN 10 min` is WindowText(10, "min"); unit None: the time column's own; unit "events" for UNIT and EVENTS."""

    size: int | float
    unit: OneOf["ns", "us", "ms", "s", "min", "h", "d", "week", "events"] | None
    span: Span | None = _span()


@frozen
class Event:
    """`Type var`, `Type+ var`, `Type* var`, `Type[n] var`.

    A plain leaf has least == most == 1 and kleene False; `+` is (1, None), `*` is (0, None), `[n]` is (n, n), each with
    kleene True.
    """

    type: str
    var: str | None = None
    least: int = 1
    most: int | None = 1
    kleene: bool = False
    span: Span | None = _span()


@frozen
class Operator:
    """SEQ, AND or OR, from the functional or the infix form, with the predicates inside its parentheses.

    The parts between top-level commas and `and`s are separate conjuncts already. `!(T x, preds)` and `(T x, preds)` are
    a SEQ of one part. Plain parentheses leave no trace, except that a window on them keeps a SEQ of one part.
    """

    kind: OneOf["SEQ", "AND", "OR"]
    parts: tuple[Pattern, ...]
    where: tuple[Scalar, ...] = ()
    window: WindowText | None = None
    span: Span | None = _span()


@frozen
class Negation:
    body: Pattern
    span: Span | None = _span()


Pattern = Event | Operator | Negation


@frozen
class Output:
    """One item of RETURN or AGG: an expression and the name after AS."""

    value: Scalar
    name: str | None
    span: Span | None = _span()


@frozen
class QueryText:
    """A whole query. `where` is split into conjuncts at top-level commas and `and`s; chains are still whole."""

    pattern: Pattern
    where: tuple[Scalar, ...] = ()
    window: WindowText | None = None
    partition_by: tuple[str, ...] = ()
    group_by: tuple[Attr | Var, ...] = ()
    aggregates: tuple[Output, ...] = ()
    returns: tuple[Output, ...] = ()
    text: str = field(default="", eq=False, repr=False, kw_only=True)


def as_variable(e: Scalar) -> Scalar:
    """A string or a whole number where a variable must stand is a variable's name: `count("in")`, `count(147073)`."""
    if isinstance(e, Constant) and type(e.value) in (str, int):
        return Var(str(e.value), span=e.span)
    return e


def links(e: Scalar) -> Iterator[Scalar]:
    """The conjuncts of a condition: each link of a chain is one."""
    if not isinstance(e, Chain) or len(e.ops) == 1:
        yield e
        return
    for a, b, op in zip(e.operands, e.operands[1:], e.ops, strict=False):
        yield Chain((a, b), (op,), span=Span(a.span.start, b.span.end) if a.span and b.span else e.span)


def names(e: Scalar) -> Iterator[str]:
    """The variables an expression names, as often as it names them."""
    match e:
        case Constant() | SameAttr():
            return
        case Attr():
            yield e.var
        case Var():
            yield e.name
        case Unary() | IsNull():
            yield from names(e.value)
        case Binary():
            yield from names(e.left)
            yield from names(e.right)
        case Chain():
            for c in e.operands:
                yield from names(c)
        case InList():
            for c in (e.value, *e.items):
                yield from names(c)
        case Between():
            for c in (e.value, e.low, e.high):
                yield from names(c)
        case Call():
            for c in e.args:
                yield from names(c)
