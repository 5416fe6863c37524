"""The value of an expression over constants, by the laws of docs/semantics.md: nulls, overflow, division, rounding."""

from __future__ import annotations

import math
import operator
from typing import Any, cast

from quercus.ir import expr as x

_COMPARE = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LEAST, _MOST = -(2**63), 2**63 - 1


def constant(e: x.Expr) -> x.Const | None:
    """The constant an expression is equal to, or None when it reads an event (or its value has no literal)."""
    if isinstance(e, x.Const):
        return e
    items = [constant(c) for c in x.children(e)]
    if any(i is None for i in items) or isinstance(e, x.Column | x.GroupCall | x.Same):
        return None
    value = _apply(e, [cast("x.Const", i).value for i in items])
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if type(value) is int and not _LEAST <= value <= _MOST:
        value = None
    return x.Const(value, e.type, span=e.span)


def _apply(e: x.Expr, values: list[Any]) -> Any:
    match e:
        case x.IsNull():
            return (values[0] is None) != e.negated
        case x.Logic():
            return _logic(e.op, values)
        case x.InSet():
            found = _logic(
                "or", [None if values[0] is None or i.value is None else values[0] == i.value for i in e.items]
            )
            return found if found is None else found != e.negated
    if any(v is None for v in values):
        return None
    match e:
        case x.Negative():
            return -values[0]
        case x.NotTrue():
            return not values[0]
        case x.Compare():
            wide = "float64" in (e.left.type, e.right.type)
            return _COMPARE[e.op](*(map(float, values) if wide else values))
        case x.Arithmetic():
            return _arithmetic(e, *values)
        case x.Call():
            return _call(e.name, values[0])
    raise AssertionError(e)


def _logic(op: str, values: list[bool | None]) -> bool | None:
    decisive = op == "or"
    if decisive in values:
        return decisive
    return None if None in values else not decisive


def _arithmetic(e: x.Arithmetic, a: Any, b: Any) -> Any:
    match e.op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return None if b == 0 else a / b
        case "%":
            if b == 0:
                return None
            if e.type == "float64":
                return math.fmod(a, b)
            return -(-a % abs(b)) if a < 0 else a % abs(b)


def _round(v: float) -> float:
    """Half away from zero."""
    whole = math.floor(abs(v))
    return math.copysign(float(whole + (abs(v) - whole >= 0.5)), v)


def _call(name: str, v: Any) -> Any:
    match name:
        case "abs":
            return abs(v)
        case "round":
            return v if isinstance(v, int) else _round(v)
        case "floor":
            return v if isinstance(v, int) else float(math.floor(v))
        case "ceil":
            return v if isinstance(v, int) else float(math.ceil(v))
        case "lower":
            return v.lower()
        case "upper":
            return v.upper()
        case "length":
            return len(v)
    raise AssertionError(name)
