"""Values of conditions on given events."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from quercus.backends.local.events import Events
from quercus.backends.local.expressions import evaluate
from quercus.backends.local.segments import fold
from quercus.backends.local.values import Mask, Values
from quercus.ir import expr as x

Index = NDArray[np.int64]


def truth(e: x.Expr, stream: Events, rows: dict[str, Index], n: int, sets: dict[str, Index] | None = None) -> Values:
    """Where a condition is true, false or unknown, on `n` choices of rows of the input for its variables.

    `sets` are the sets that group functions are of, the same in every choice.
    """

    def column(c: x.Column) -> Values:
        return stream.column(c.attr).take(rows[c.var])

    def group(g: x.GroupCall) -> Values:
        return _group(g, stream, (sets or {})[g.var], n)

    return evaluate(e, column, n, group)


@frozen(eq=False)
class Choice:
    """Rows for the variables of conditions: one each, or `n` of one of them, element by element; and whole sets."""

    stream: Events
    rows: dict[str, Index]
    sets: dict[str, Index]
    n: int

    def values(self, e: x.Expr) -> Values:
        return truth(e, self.stream, self.rows, self.n, self.sets)

    def value(self, e: x.Expr, i: int = 0) -> Any:
        return value(self.values(e), i)

    def substituted(self, e: x.Expr, i: int = 0) -> x.Expr:
        """An expression with the values of its columns in their places."""
        if isinstance(e, x.Column | x.GroupCall):
            return x.Const(self.value(e, i), e.type)
        return x.with_children(e, tuple(self.substituted(c, i) for c in x.children(e)))

    def off(self, e: x.Expr, i: int = 0) -> int | float | None:
        """By how much a comparison of numbers misses equality: left less right; None, where that means nothing."""
        if not isinstance(e, x.Compare) or {e.left.type, e.right.type} - {"int64", "float64", "timestamp"}:
            return None
        left, right = self.value(e.left, i), self.value(e.right, i)
        if left is None or right is None or not math.isfinite(gap := left - right):
            return None
        return gap  # type: ignore[no-any-return]


def masks(v: Values) -> tuple[Mask, Mask]:
    """Where a condition is true, and where it is unknown."""
    is_true = np.asarray(v.data).astype(bool)
    if v.valid is None:
        return is_true, np.zeros(len(is_true), bool)
    return is_true & v.valid, ~v.valid


def value(v: Values, i: int = 0) -> Any:
    """One value, or None."""
    if v.valid is not None and not v.valid[i]:
        return None
    found = v.data[i]
    if v.kind == "string":
        return found.as_py()
    return bool(found) if v.kind == "bool" else found.item()


def _group(g: x.GroupCall, stream: Events, members: Index, n: int) -> Values:
    """A function of one set, as often as it is asked for."""
    if g.attr is None:
        return Values("int64", np.full(n, len(members), np.int64))
    values = stream.column(g.attr).take(members)
    values = values.as_float() if g.type == "float64" and g.name != "avg" else values
    found = fold(g.name, values, np.zeros(1, np.int64), np.array([len(members)]))
    return found.take(np.zeros(n, np.int64))
