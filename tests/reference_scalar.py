"""Predicates as tests/reference.py reads them: section 4's scalars, with SQL's three values (None is unknown)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from quercus.compiler.syntax import (
    Attr,
    Between,
    Binary,
    Call,
    Chain,
    Constant,
    InList,
    IsNull,
    SameAttr,
    Scalar,
    Unary,
    Var,
)

Value = int | float | str | bool | None
GROUP_FUNCTIONS = frozenset({"count", "first", "last", "sum", "avg", "min", "max"})


@dataclass(frozen=True, eq=False)
class Event:
    """One row of the input, with its place in its stream. Two events are equal only when they are the same event."""

    row: int
    pos: int
    ts: int
    type: str
    attributes: Mapping[str, object]

    def value(self, name: str) -> Value:
        if name == "ts":
            return self.ts
        if name == "type":
            return self.type
        found = self.attributes.get(name)
        assert found is None or isinstance(found, int | float | str)
        return found


def parts(expr: Scalar) -> Iterator[Scalar]:
    """The expressions directly inside `expr`."""
    match expr:
        case Unary(value=value):
            yield value
        case Binary(left=left, right=right):
            yield from (left, right)
        case Chain(operands=operands):
            yield from operands
        case InList(value=value, items=items):
            yield from (value, *items)
        case Between(value=value, low=low, high=high):
            yield from (value, low, high)
        case IsNull(value=value):
            yield value
        case Call(args=args):
            yield from args


def is_group_function(expr: Scalar) -> bool:
    return isinstance(expr, Call) and expr.name.lower() in GROUP_FUNCTIONS


def names(expr: Scalar) -> frozenset[str]:
    """Every variable that `expr` names."""
    own = {expr.var} if isinstance(expr, Attr) else {expr.name} if isinstance(expr, Var) else set()
    return frozenset(own).union(*map(names, parts(expr)))


def names_of_elements(expr: Scalar) -> frozenset[str]:
    """The variables that `expr` names outside group functions: for a Kleene variable, each element is meant."""
    if is_group_function(expr):
        return frozenset()
    if isinstance(expr, Attr | Var):
        return names(expr)
    return frozenset[str]().union(*map(names_of_elements, parts(expr)))


def has_group_function(expr: Scalar) -> bool:
    return is_group_function(expr) or any(map(has_group_function, parts(expr)))


def evaluate(expr: Scalar, one: Mapping[str, Event], sets: Mapping[str, Sequence[Event]]) -> Value:
    """`one` has the event that each name stands for, `sets` the sets for group functions. A missing name is null."""
    match expr:
        case Constant(value=value):
            return value
        case Attr(var=var, name=name):
            return one[var].value(name) if var in one else None
        case Unary(op="not", value=value):
            return negate(truth(evaluate(value, one, sets)))
        case Unary(op="-", value=value):
            return arithmetic("-", 0, evaluate(value, one, sets))
        case Binary(op="and", left=left, right=right):
            return both(truth(evaluate(left, one, sets)), truth(evaluate(right, one, sets)))
        case Binary(op="or", left=left, right=right):
            return either(truth(evaluate(left, one, sets)), truth(evaluate(right, one, sets)))
        case Binary(op=op, left=left, right=right):
            return arithmetic(op, evaluate(left, one, sets), evaluate(right, one, sets))
        case Chain(operands=operands, ops=ops):
            values = [evaluate(operand, one, sets) for operand in operands]
            result: bool | None = True
            for left_value, op_text, right_value in zip(values, ops, values[1:], strict=False):
                result = both(result, compare(op_text, left_value, right_value))
            return result
        case InList(value=value, items=items, negated=negated):
            found: bool | None = False
            for item in items:
                found = either(found, compare("=", evaluate(value, one, sets), evaluate(item, one, sets)))
            return negate(found) if negated else found
        case Between(value=value, low=low, high=high, negated=negated):
            middle = evaluate(value, one, sets)
            inside = both(
                compare(">=", middle, evaluate(low, one, sets)), compare("<=", middle, evaluate(high, one, sets))
            )
            return negate(inside) if negated else inside
        case IsNull(value=value, negated=negated):
            return (evaluate(value, one, sets) is None) != negated
        case Call() if is_group_function(expr):
            return group_function(expr, one, sets)
        case Call(name=name, args=(argument,)):
            return function(name.lower(), evaluate(argument, one, sets))
        case Var() | SameAttr() | Call():
            raise TypeError(f"not a scalar: {expr}")
    raise TypeError(f"not a scalar: {expr}")


# Three values ---------------------------------------------------------------------------------------------------------


def truth(value: Value) -> bool | None:
    assert value is None or isinstance(value, bool)
    return value


def negate(x: bool | None) -> bool | None:
    return None if x is None else not x


def both(x: bool | None, y: bool | None) -> bool | None:
    if x is False or y is False:
        return False
    return None if x is None or y is None else True


def either(x: bool | None, y: bool | None) -> bool | None:
    return negate(both(negate(x), negate(y)))


def compare(op: str, x: Value, y: Value) -> bool | None:
    """HOLE: an int64 beside a float64 becomes float64 first, as in arithmetic, rather than being compared exactly."""
    if x is None or y is None:
        return None
    if isinstance(x, str) and isinstance(y, str):
        equal, less = x == y, x < y  # Python's str order is by code point
    else:
        assert not isinstance(x, str)
        assert not isinstance(y, str)
        if isinstance(x, float) or isinstance(y, float):
            x, y = float(x), float(y)
        if math.isnan(x) or math.isnan(y):
            return op == "<>"  # NaN, IEEE 754
        equal, less = x == y, x < y
    outcome = {
        "=": equal,
        "<>": not equal,
        "<": less,
        "<=": less or equal,
        ">": not less and not equal,
        ">=": not less,
    }
    return outcome[op]


# Arithmetic -----------------------------------------------------------------------------------------------------------


def int64(value: int) -> int | None:
    return value if -(2**63) <= value < 2**63 else None


def arithmetic(op: str, x: Value, y: Value) -> Value:
    if x is None or y is None:
        return None
    assert not isinstance(x, str)
    assert not isinstance(y, str)
    if op in ("/", "%") and y == 0:
        return None
    if op == "/":
        return float(x) / float(y)
    if isinstance(x, int) and isinstance(y, int):
        if op == "%":
            return int64(abs(x) % abs(y) * (1 if x >= 0 else -1))
        return int64({"+": x + y, "-": x - y, "*": x * y}[op])
    x, y = float(x), float(y)
    if op == "%":
        return math.nan if math.isinf(x) else math.fmod(x, y)
    return {"+": x + y, "-": x - y, "*": x * y}[op]


def function(name: str, x: Value) -> Value:
    """HOLE: floor, ceil and round keep the type of their argument (int64 stays int64, float64 stays float64)."""
    if x is None:
        return None
    if isinstance(x, str):
        return len(x) if name == "length" else {"lower": x.lower(), "upper": x.upper()}[name]
    if isinstance(x, int):
        return int64(abs(x)) if name == "abs" else {"round": x, "floor": x, "ceil": x}[name]
    if name == "abs" or not math.isfinite(x):
        return abs(x) if name == "abs" else x
    if name == "round":
        whole = math.floor(abs(x))
        return math.copysign(whole + (1 if abs(x) - whole >= 0.5 else 0), x)
    return float({"floor": math.floor, "ceil": math.ceil}[name](x))


# Group functions ------------------------------------------------------------------------------------------------------


def group_function(call: Call, one: Mapping[str, Event], sets: Mapping[str, Sequence[Event]]) -> Value:
    """HOLE: an integer sum beyond int64 is null, as any int64 overflow; only the total counts, not the way there.

    HOLE: among equal times, first and last go by position, also under ties="strict".
    """
    (argument,) = call.args
    (name,) = names(argument)
    elements = sorted(sets.get(name, ()), key=lambda event: event.pos)
    if call.name.lower() in ("first", "last"):
        assert call.attr is not None
        return elements[0 if call.name.lower() == "first" else -1].value(call.attr) if elements else None
    if isinstance(argument, Var):
        return len(elements)
    result = fold(call.name.lower(), [evaluate(argument, {name: element}, sets) for element in elements])
    return int64(result) if isinstance(result, int) and not isinstance(result, bool) else result


def fold(name: str, values: Sequence[Value]) -> Value:
    """count, sum, avg, min and max as in SQL: nulls are ignored, and over no value all but count are null.

    Integers are exact.
    HOLE: min and max over a NaN are NaN, as sum and avg are; floats are added in order of position.
    """
    present = [value for value in values if value is not None]
    if name == "count":
        return len(present)
    if not present:
        return None
    if name in ("min", "max"):
        if any(isinstance(value, float) and math.isnan(value) for value in present):
            return math.nan
        return min(present) if name == "min" else max(present)
    numbers = [value for value in present if not isinstance(value, str)]
    return sum(numbers) if name == "sum" else float(sum(numbers) / len(numbers))
