"""Comparisons that go round in a circle: x < y, y <= z, z < x. No values pass them all.

A comparison with null or NaN is never true, so that wherever all of them are true the values are in order. Both sides
of each comparison are of one type: an integer that meets a float is rounded, and may stand on both sides of another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quercus.ir import expr as x

Value = tuple[str, str] | x.Expr  # an attribute of a variable, by their names, or anything else
Above = dict[Value, list[tuple[Value, x.Expr]]]  # what is as great or greater, and the condition that says so


def circle(conditions: Sequence[x.Expr], holds: Callable[[x.Expr], bool]) -> list[x.Expr] | None:
    """Conditions that hold, and cannot all be true of values that are there; None: there are none such."""
    compared = [c for c in conditions if type(c) is x.Compare and c.left.type == c.right.type]
    if not [c for c in compared if c.op in ("<", ">", "<>")]:
        return None
    above: Above = {}
    strict: list[tuple[Value, Value, x.Expr]] = []
    for c in _near(compared):
        low, high = _value(c.left), _value(c.right)
        if c.op == "<>" or type(low) is x.Const or type(high) is x.Const or not holds(c):
            continue
        if c.op in (">", ">="):
            low, high = high, low
        above.setdefault(low, []).append((high, c))
        if c.op == "=":
            above.setdefault(high, []).append((low, c))
        elif c.op in ("<", ">"):
            strict.append((low, high, c))
    for low, high, said in strict:
        if (back := _path(above, high, low)) is not None:
            return list(dict.fromkeys([said, *back]))
    for c in compared:
        if c.op == "<>" and holds(c):
            left, right = _value(c.left), _value(c.right)
            there, back = _path(above, left, right), _path(above, right, left)
            if there and back:  # NaN is not equal to itself, but passes no other comparison
                return list(dict.fromkeys([*there, *back, c]))
    return None


def _near(compared: list[x.Compare]) -> list[x.Compare]:
    """Without equalities that have nothing to do with any other comparison: most have not."""
    found = [c for c in compared if c.op != "="]
    seen = {_value(side) for c in found for side in (c.left, c.right)}
    rest, size = [c for c in compared if c.op == "="], -1
    while size != len(rest):
        size, apart = len(rest), []
        for c in rest:
            left: Value = (c.left.var, c.left.attr) if type(c.left) is x.Column else c.left
            right: Value = (c.right.var, c.right.attr) if type(c.right) is x.Column else c.right
            if left in seen or right in seen:
                seen |= {left, right}
                found.append(c)
            else:
                apart.append(c)
        rest = apart
    return found


def _value(e: x.Expr) -> Value:
    """The same value in its shortest form: v * 1.0 is v."""
    while isinstance(e, x.Arithmetic) and e.op in ("*", "/") and e.left.type == "float64" and _is_one(e.right):
        e = e.left
    return (e.var, e.attr) if isinstance(e, x.Column) else e


def _is_one(e: x.Expr) -> bool:
    return isinstance(e, x.Const) and not isinstance(e.value, bool) and e.value == 1


def _path(above: Above, start: Value, end: Value) -> list[x.Expr] | None:
    """What leads from one value up to another; nothing, where they are the same."""
    if start == end:
        return []
    way: dict[Value, list[x.Expr]] = {start: []}
    todo = [start]
    for at in todo:
        for high, c in above.get(at, ()):
            if high not in way:
                way[high] = [*way[at], c]
                todo.append(high)
                if high == end:
                    return way[high]
    return None
