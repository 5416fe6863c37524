"""The matcher's stack code in plain Python: values are ints, floats, or None for null; only true passes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from quercus.kernels.match import GROUP_FUNCTIONS, OPS

Value = int | float | None


class Event(NamedTuple):
    """An event of a buffer: its place there, and the values of the buffer's columns by number."""

    place: int
    ts: int
    pos: int
    row: int
    values: Mapping[int, Value]


Slots = Mapping[int, Event]
Sets = Mapping[int, Sequence[Event]]


def value_of(code: Sequence[int], slots: Slots, sets: Sets, constants: Any) -> Value:
    """What a program leaves on its stack. `constants` has const_i, const_f and maps."""
    stack: list[Value] = []
    for i in range(0, len(code), 3):
        op, a, b = OPS[code[i]], code[i + 1], code[i + 2]
        if op == "null":
            stack.append(None)
        elif op == "const_i":
            stack.append(int(constants.const_i[a]))
        elif op == "const_f":
            stack.append(float(constants.const_f[a]))
        elif op in ("load_i", "load_f"):
            stack.append(slots[a].values[b])
        elif op == "count":
            stack.append(len(sets[a]))
        elif op in ("group_i", "group_f"):
            stack.append(grouped(GROUP_FUNCTIONS[b % 8], [e.values[b // 8] for e in sets[a]]))
        elif op == "map_i":
            stack.append(mapped(constants.maps[a], stack.pop()))
        elif op == "is_null":
            stack.append(int(stack.pop() is None))
        elif op == "is_not_null":
            stack.append(int(stack.pop() is not None))
        elif op in ("and", "or"):
            right, left = stack.pop(), stack.pop()
            stack.append(logic(op, left, right))
        elif op in UNARY:
            x = stack.pop()
            stack.append(None if x is None else UNARY[op](x))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(None if left is None or right is None else BINARY[op](left, right))
    (left_over,) = stack
    return left_over


def grouped(function: str, values: list[Value]) -> Value:
    """A group function over a set, nulls aside: first and last are those of the set, null or not."""
    if function in ("first", "last"):
        return (values[0] if function == "first" else values[-1]) if values else None
    known = [v for v in values if v is not None]
    if not known:
        return None
    if function == "avg":
        return float(sum(known)) / len(known)
    if function == "sum":
        return fitting(sum(known[1:], start=known[0]))  # only the total must fit, not the way there
    if any(v != v for v in known):
        return math.nan
    return min(known) if function == "min" else max(known)


def mapped(table: Sequence[int], label: Value) -> Value:
    return int(table[int(label)]) if label is not None and 0 <= label < len(table) else None


def logic(op: str, left: Value, right: Value) -> Value:
    """One side alone may decide; else null where either is null."""
    decisive = op == "or"
    if any(v is not None and bool(v) == decisive for v in (left, right)):
        return int(decisive)
    return None if left is None or right is None else int(not decisive)


def fitting(x: int | float) -> Value:
    """Null where an integer does not fit into 64 bits."""
    return x if isinstance(x, float) or -(2**63) <= x < 2**63 else None


def remainder(x: int, y: int) -> Value:
    """With the sign of the dividend."""
    return None if y == 0 else abs(x) % abs(y) * (-1 if x < 0 else 1)


def float_remainder(x: float, y: float) -> Value:
    with np.errstate(invalid="ignore"):
        return None if y == 0 else float(np.fmod(x, y))


def rounded(x: float) -> float:
    """Half away from zero."""
    if not math.isfinite(x):
        return x
    whole = math.trunc(x)
    return float(whole if abs(x - whole) < 0.5 else whole + (1 if x > 0 else -1))


UNARY: dict[str, Callable[[Any], Value]] = {
    "to_f": float,
    "neg_i": lambda x: fitting(-x),
    "neg_f": operator.neg,
    "abs_i": lambda x: fitting(abs(x)),
    "abs_f": abs,
    "round_f": rounded,
    "floor_f": lambda x: float(np.floor(x)),
    "ceil_f": lambda x: float(np.ceil(x)),
    "not": lambda x: int(not x),
}
BINARY: dict[str, Callable[[Any, Any], Value]] = {
    "add_i": lambda x, y: fitting(x + y),
    "sub_i": lambda x, y: fitting(x - y),
    "mul_i": lambda x, y: fitting(x * y),
    "mod_i": remainder,
    "add_f": operator.add,
    "sub_f": operator.sub,
    "mul_f": operator.mul,
    "div_f": lambda x, y: None if y == 0 else x / y,
    "mod_f": float_remainder,
}
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    BINARY[f"{_name}_i"] = BINARY[f"{_name}_f"] = getattr(operator, _name)
