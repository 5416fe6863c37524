"""Scalar syntax -> typed expressions. Every operand is looked up, every operator's types are checked at its place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NoReturn, cast

from quercus.compiler import syntax as s
from quercus.errors import QueryError, nearest
from quercus.ir import expr as x
from quercus.ir.span import Span

NUMBERS = {"int64", "float64"}
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_STRING = {"string"}
FUNCTIONS = {
    "abs": NUMBERS,
    "round": NUMBERS,
    "floor": NUMBERS,
    "ceil": NUMBERS,
    "lower": _STRING,
    "upper": _STRING,
    "length": _STRING,
}
GROUP_FUNCTIONS = ("count", "first", "last", "sum", "avg", "min", "max")
KIND_NAMES = {
    "bool": "a boolean",
    "string": "a string",
    "int64": "a whole number",
    "float64": "a number",
    "timestamp": "a timestamp",
    "null": "null",
}


class Typer:
    """Types the scalars of one query.

    `column(attr)` and `kleene(name, span)` come from the binder: they look a name up where the expression stands, and
    raise where it cannot be seen.
    """

    def __init__(
        self,
        text: str,
        time_unit: str,
        column: Callable[[str, str, Span | None], x.Column],
        kleene: Callable[[str, str, Span | None], None],
    ) -> None:
        self.text, self.unit, self.column, self.kleene = text, time_unit, column, kleene

    def fail(self, code: str, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        raise QueryError(code, message, text=self.text, span=span, hint=hint)

    def condition(self, e: s.Scalar) -> x.Expr:
        """An expression that must be true or false."""
        typed = self.scalar(e)
        if typed.type not in {"bool", "null"}:
            self.fail("E202", f"{KIND_NAMES[typed.type]} is no condition", e.span, "compare it with something")
        return typed

    def scalar(self, e: s.Scalar) -> x.Expr:
        match e:
            case s.Constant():
                return self.constant(e)
            case s.Attr():
                return self.column(e.var, e.name, e.span)
            case s.Var():
                return self.word(e)
            case s.Unary(op="not"):
                return x.NotTrue(self.condition(e.value), span=e.span)
            case s.Unary():
                return self.negative(e)
            case s.Binary(op="and" | "or"):
                return x.Logic(cast("Any", e.op), tuple(self.condition(i) for i in _flat(e)), span=e.span)
            case s.Binary():
                return self.arithmetic(e)
            case s.Chain():
                links = self.chain(e)
                return links[0] if len(links) == 1 else x.Logic("and", tuple(links), span=e.span)
            case s.InList():
                return self.in_list(e)
            case s.Between():
                low = self.compare(">=", e.value, e.low, e.span)
                both = x.Logic("and", (low, self.compare("<=", e.value, e.high, e.span)), span=e.span)
                return x.NotTrue(both, span=e.span) if e.negated else both
            case s.IsNull():
                return x.IsNull(self.scalar(e.value), e.negated, span=e.span)
            case s.Call():
                return self.call(e)
            case s.SameAttr():
                self.fail("E504", "[attr] stands alone", e.span, "write SEQ(A a, B b, [id])")

    def word(self, e: s.Var) -> x.Expr:
        self.fail("E307", f"'{e.name}' alone is no value", e.span, f"write {e.name}.attribute")

    def constant(self, e: s.Constant) -> x.Const:
        kinds: dict[type, x.Type] = {bool: "bool", int: "int64", float: "float64", str: "string", type(None): "null"}
        return x.Const(e.value, kinds[type(e.value)], span=e.span)

    def negative(self, e: s.Unary) -> x.Expr:
        value = self.scalar(e.value)
        if isinstance(value, x.Const) and value.value == -(2**63) and value.type == "int64":
            return x.Const(None, "null", span=e.span)  # beyond int64
        if isinstance(value, x.Const) and type(value.value) in (int, float):
            return x.Const(-cast("float", value.value), value.type, span=e.span)
        self.number(value, e.value.span)
        return x.Negative(value, value.type, span=e.span)

    def number(self, e: x.Expr, span: Span | None) -> None:
        if e.type not in NUMBERS | {"null"}:
            self.fail("E201", f"{KIND_NAMES[e.type]} in arithmetic", span, "arithmetic takes numbers")

    def arithmetic(self, e: s.Binary) -> x.Expr:
        left, right = self.scalar(e.left), self.scalar(e.right)
        kinds = (left.type, right.type)
        if kinds == ("timestamp", "timestamp") and e.op == "-":
            result: x.Type = "int64"  # a count of the time column's unit
        elif kinds == ("timestamp", "int64") and e.op in "+-":
            result = "timestamp"
        else:
            self.number(left, e.left.span)
            self.number(right, e.right.span)
            result = "float64" if e.op == "/" or "float64" in kinds else "int64"
        return x.Arithmetic(cast("Any", e.op), left, right, result, span=e.span)

    def chain(self, e: s.Chain) -> list[x.Expr]:
        """Each link of a chain is a comparison of its own."""
        pairs = zip(e.operands, e.operands[1:], e.ops, strict=False)
        return [self.compare(op, a, b, e.span if len(e.ops) == 1 else _join(a, b)) for a, b, op in pairs]

    def compare(self, op: str, a: s.Scalar, b: s.Scalar, span: Span | None) -> x.Compare:
        left, right = self.scalar(a), self.scalar(b)
        left, right = self.as_timestamp(left, right), self.as_timestamp(right, left)
        kinds = {left.type, right.type} - {"null"}
        if len(kinds) > 1 and not kinds <= NUMBERS:
            self.fail(
                "E201",
                f"{KIND_NAMES[left.type]} is compared with {KIND_NAMES[right.type]}",
                span,
                "both sides need one type",
            )
        if kinds == {"bool"} and op not in ("=", "<>"):
            self.fail("E201", f"booleans have no order for '{op}'", span, "use = or <>")
        return x.Compare(cast("Any", op), left, right, span=span)

    def as_timestamp(self, e: x.Expr, other: x.Expr) -> x.Expr:
        """A string constant beside a timestamp is read as ISO 8601, UTC where no zone is given."""
        if not (isinstance(e, x.Const) and isinstance(e.value, str) and other.type == "timestamp"):
            return e
        try:
            moment = datetime.fromisoformat(e.value)
        except ValueError:
            self.fail("E201", f"'{e.value}' is no time", e.span, "write it as '2026-11-16T09:30:00'")
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
        micros = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        return x.Const(micros * PER_SECOND[self.unit] // 10**6, "timestamp", span=e.span)

    def in_list(self, e: s.InList) -> x.Expr:
        links = [self.compare("=", e.value, item, item.span) for item in e.items]
        if all(isinstance(c.right, x.Const) for c in links):
            return x.InSet(links[0].left, tuple(cast("x.Const", c.right) for c in links), e.negated, span=e.span)
        some: x.Expr = x.Logic("or", tuple(links), span=e.span) if len(links) > 1 else links[0]
        return x.NotTrue(some, span=e.span) if e.negated else some

    def call(self, e: s.Call) -> x.Expr:
        if e.name in GROUP_FUNCTIONS:
            return self.group_call(e)
        if e.name == "same":
            return self.same(e)
        wants = FUNCTIONS.get(e.name)
        if wants is None:
            hint = nearest(e.name, [*FUNCTIONS, *GROUP_FUNCTIONS]) or "functions: " + " ".join(FUNCTIONS)
            self.fail("E106", f"no function '{e.name}'", e.span, hint)
        if len(e.args) != 1 or e.attr or e.star:
            self.fail("E203", f"{e.name} takes one argument", e.span)
        value = self.scalar(e.args[0])
        if value.type not in wants | {"null"}:
            self.fail("E203", f"{e.name} of {KIND_NAMES[value.type]}", e.span, f"it takes {' or '.join(sorted(wants))}")
        result: x.Type = "int64" if e.name == "length" else value.type
        return x.Call(cast("Any", e.name), (value,), result, span=e.span)

    def group_call(self, e: s.Call) -> x.GroupCall:
        if len(e.args) != 1:
            self.fail("E203", f"{e.name} takes one argument", e.span, f"for example {_EXAMPLE[e.name]}")
        arg = e.args[0]
        if e.name in ("count", "first", "last"):
            arg = s.as_variable(arg)
            if not isinstance(arg, s.Var) or (e.attr is None) != (e.name == "count"):
                self.fail("E203", f"{e.name} is written {_EXAMPLE[e.name]}", e.span)
            self.kleene(arg.name, e.name, arg.span)
            if e.attr is None:
                return x.GroupCall("count", arg.name, None, "int64", span=e.span)
            column = self.column(arg.name, e.attr, e.span)
        else:
            if not isinstance(arg, s.Attr) or e.attr is not None:
                self.fail("E203", f"{e.name} is written {_EXAMPLE[e.name]}", e.span)
            self.kleene(arg.var, e.name, arg.span)
            column = self.column(arg.var, arg.name, arg.span)
            if e.name in ("sum", "avg"):
                self.number(column, arg.span)
        result: x.Type = "float64" if e.name == "avg" else column.type
        return x.GroupCall(cast("Any", e.name), column.var, column.attr, result, span=e.span)

    def same(self, e: s.Call) -> x.Same:
        if not e.args or not all(isinstance(a, s.Attr) for a in e.args) or e.attr:
            self.fail("E203", "same is written same(a.id, b.id)", e.span)
        found = tuple(self.column(a.var, a.name, a.span) for a in e.args if isinstance(a, s.Attr))
        return self.agreeing(found, e.span)

    def agreeing(self, found: tuple[x.Column, ...], span: Span | None) -> x.Same:
        kinds = {c.type for c in found}
        if len(kinds) > 1 and not kinds <= NUMBERS:
            self.fail("E201", "the attributes have different types", span, "they can never agree")
        return x.Same(found, span=span)


_EXAMPLE = {"count": "count(b)", "first": "first(b).x", "last": "last(b).x"} | {
    name: f"{name}(b.x)" for name in ("sum", "avg", "min", "max")
}


def _flat(e: s.Binary) -> list[s.Scalar]:
    """a and b and c as one list, as the grammar read it: its parts have the span of the whole."""
    parts: list[s.Scalar] = []
    for side in (e.left, e.right):
        listed = isinstance(side, s.Binary) and side.op == e.op and side.span == e.span
        parts.extend(_flat(side) if isinstance(side, s.Binary) and listed else [side])
    return parts


def _join(a: s.Scalar, b: s.Scalar) -> Span | None:
    return Span(a.span.start, b.span.end) if a.span and b.span else None
