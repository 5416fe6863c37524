"""Expressions over whole columns, with SQL's three values: the arithmetic of docs/semantics.md on numpy and Arrow.

Inside, a constant is a column of one row that numpy spreads over the others; `evaluate` hands out full columns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import combinations
from typing import Any, assert_never, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quercus.backends.local.values import Kind, Mask, Values
from quercus.ir import expr as x

Columns = Callable[[x.Column], Values]
Groups = Callable[[x.GroupCall], Values]

_INT_MIN = np.int64(-(2**63))
_DTYPES: dict[str, Any] = {"int64": np.int64, "timestamp": np.int64, "float64": np.float64, "bool": np.uint8}
_NUMPY_COMPARE: dict[str, Any] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_ARROW_COMPARE: dict[str, Any] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def evaluate(e: x.Expr, column: Columns, n: int, group: Groups | None = None) -> Values:
    """The values of an expression on `n` rows. `column` and `group` give the values of what it names.

    A bare null has no type: its values are int64 nulls.

    >>> from quercus.ir.expr import Arithmetic, Column, Const
    >>> half = Arithmetic("/", Column("a", "x", "int64"), Const(2, "int64"), "float64")
    >>> evaluate(half, lambda c: Values("int64", np.array([3, 4])), 2).data.tolist()
    [1.5, 2.0]
    """
    with np.errstate(all="ignore"):
        return _spread(_Evaluation(column, group).value(e), n)


def true_mask(e: x.Expr, column: Columns, n: int, group: Groups | None = None) -> Mask:
    """Where a condition is true: neither false nor unknown.

    >>> from quercus.ir.expr import Column, Compare, Const
    >>> values = Values("int64", np.array([3, 4, 9]), np.array([True, True, False]))
    >>> true_mask(Compare(">", Column("a", "x", "int64"), Const(3, "int64")), lambda c: values, 3).tolist()
    [False, True, False]
    """
    with np.errstate(all="ignore"):
        found = _Evaluation(column, group).true(e)
    return found if len(found) == n else np.full(n, found[0])


class _Evaluation:
    """One walk over an expression."""

    def __init__(self, column: Columns, group: Groups | None) -> None:
        self.column, self.group = column, group

    def value(self, e: x.Expr) -> Values:
        match e:
            case x.Const():
                return _constant(e)
            case x.Column():
                return _as(self.column(e), e.type)
            case x.GroupCall():
                assert self.group is not None, e
                return _as(self.group(e), e.type)
            case x.Negative() | x.Arithmetic() | x.Call() if _has_null(e):
                return _null(e.type)
            case x.Negative():
                zero = Values("int64", np.zeros(1, np.int64))
                value = self.value(e.value)
                return _negative(value) if value.kind == "float64" else _integer("-", zero, value, value.kind)
            case x.Arithmetic():
                return _arithmetic(e, self.value(e.left), self.value(e.right))
            case x.Call():
                return _call(e.name, self.value(e.args[0]))
            case x.Compare():
                return _null("bool") if _has_null(e) else _compare(e.op, self.value(e.left), self.value(e.right))
            case x.Logic():
                return self.logic(e)
            case x.NotTrue():
                if e.value.type == "null":
                    return _null("bool")
                value = self.value(e.value)
                return Values("bool", 1 - value.data, value.valid)
            case x.InSet():
                return self.in_set(e)
            case x.IsNull():
                valid = self.value(e.value).valid
                known = np.ones(1, np.bool_) if valid is None else valid
                return _bools(known if e.negated else ~known)
            case x.Same():
                links = tuple(x.Compare("=", a, b) for a, b in combinations(e.columns, 2))
                return self.logic(x.Logic("and", links)) if links else _bools(np.ones(1, np.bool_))
            case _:
                assert_never(e)

    def true(self, e: x.Expr) -> Mask:
        """Where `e` is true, which for `and` and `or` needs no third value."""
        if isinstance(e, x.Logic):
            both = np.logical_and if e.op == "and" else np.logical_or
            return reduce(both, (self.true(i) for i in e.items))
        return _true(self.value(e))

    def logic(self, e: x.Logic) -> Values:
        items = [self.value(i) for i in e.items]
        true, false = [_true(v) for v in items], [_false(v) for v in items]
        if e.op == "and":
            is_true, is_false = reduce(np.logical_and, true), reduce(np.logical_or, false)
        else:
            is_true, is_false = reduce(np.logical_or, true), reduce(np.logical_and, false)
        return _bools(is_true, None if all(v.valid is None for v in items) else is_true | is_false)

    def in_set(self, e: x.InSet) -> Values:
        """True where one item is equal; else unknown where the value or an item is null."""
        items = [i for i in e.items if i.value is not None]
        if e.value.type == "null" or not items:
            return _null("bool")
        value = self.value(e.value)
        if value.kind == "string":
            found = pc.is_in(value.data, pa.array([i.value for i in items], value.data.type))
            inside: Any = found.to_numpy(zero_copy_only=False)
        else:  # an integer is compared with integers exactly, and with floats as a float
            kinds = [[i.value for i in items if i.type == k] for k in dict.fromkeys(i.type for i in items)]
            inside = reduce(np.logical_or, (_is_in(value.data, np.array(same)) for same in kinds))
        valid = value.valid
        if len(items) < len(e.items):
            valid = inside if valid is None else inside & valid
        return _bools(~inside if e.negated else inside, valid)


# Parts ----------------------------------------------------------------------------------------------------------------


def _has_null(e: x.Negative | x.Arithmetic | x.Call | x.Compare) -> bool:
    return any(c.type == "null" for c in x.children(e))


def _constant(e: x.Const) -> Values:
    if e.value is None or (type(e.value) is int and not -(2**63) <= e.value < 2**63):
        return _null(e.type)
    if e.type == "string":
        return Values("string", pa.array([e.value], pa.string()))
    return Values(cast("Kind", e.type), np.array([e.value], _DTYPES[e.type]))


def _null(kind: x.Type) -> Values:
    if kind == "null":
        kind = "int64"
    data: Any = pa.nulls(1, pa.string()) if kind == "string" else np.zeros(1, _DTYPES[kind])
    return Values(kind, data, np.zeros(1, np.bool_))


def _spread(v: Values, n: int) -> Values:
    if len(v.data) == n and (v.valid is None or len(v.valid) == n):
        return v
    at = np.zeros(n, np.int64)
    data = v.data if len(v.data) == n else v.data.take(pa.array(at)) if v.kind == "string" else v.data[at]
    return Values(v.kind, data, v.valid if v.valid is None or len(v.valid) == n else v.valid[at])


def _as(v: Values, kind: x.Type) -> Values:
    """Integers where a float64 is declared."""
    return v.as_float() if kind == "float64" else v


def _bools(data: Any, valid: Mask | None = None) -> Values:
    return Values("bool", np.asarray(data).view(np.uint8), valid)


def _true(v: Values) -> Mask:
    is_true: Mask = v.data.view(np.bool_) if v.kind == "bool" else v.data != 0  # a bare null is no bool
    return is_true if v.valid is None else is_true & v.valid


def _false(v: Values) -> Mask:
    is_false: Mask = v.data == 0
    return is_false if v.valid is None else is_false & v.valid


def _both(a: Mask | None, b: Mask | None) -> Mask | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _compare(op: x.CompareOp, a: Values, b: Values) -> Values:
    valid = _both(a.valid, b.valid)
    if a.kind != "string":  # an int64 beside a float64 becomes one, as numpy does it
        return _bools(_NUMPY_COMPARE[op](a.data, b.data), valid)
    left, right = a.data, b.data
    if left.type != right.type:
        left, right = left.cast(pa.large_string()), right.cast(pa.large_string())
    if len(left) != len(right):
        left, right = (left[0], right) if len(left) == 1 else (left, right[0])
    # Arrow compares the bytes of UTF-8, whose order is that of the code points.
    return _bools(_ARROW_COMPARE[op](left, right).fill_null(False).to_numpy(zero_copy_only=False), valid)


def _is_in(data: NDArray[Any], items: NDArray[Any]) -> Mask:
    if len(items) > 8:
        wide = np.result_type(data, items)
        return np.isin(data.astype(wide), items.astype(wide))
    return cast("Mask", reduce(np.logical_or, (data == i for i in items)))


# Arithmetic -----------------------------------------------------------------------------------------------------------


def _negative(v: Values) -> Values:
    return Values("float64", -v.data, v.valid)


def _arithmetic(e: x.Arithmetic, a: Values, b: Values) -> Values:
    if e.type != "float64":
        return _integer(e.op, a, b, cast("Kind", e.type))
    left, right = a.data.astype(np.float64, copy=False), b.data.astype(np.float64, copy=False)
    valid = _both(a.valid, b.valid)
    match e.op:
        case "+":
            return Values("float64", left + right, valid)
        case "-":
            return Values("float64", left - right, valid)
        case "*":
            return Values("float64", left * right, valid)
        case "/":
            return Values("float64", left / right, _unless(right == 0, valid))
        case "%":
            return Values("float64", np.fmod(left, right), _unless(right == 0, valid))
        case _:
            assert_never(e.op)


def _unless(bad: Mask, valid: Mask | None) -> Mask | None:
    """Valid where it was and nothing bad happened."""
    return _both(valid, ~bad) if bad.any() else valid


def _integer(op: x.ArithmeticOp, a: Values, b: Values, kind: Kind) -> Values:
    """int64 arithmetic; what overflows is null."""
    left, right, valid = a.data, b.data, _both(a.valid, b.valid)
    match op:
        case "+":
            out = left + right
            bad = ((left ^ out) & (right ^ out)) < 0
        case "-":
            out = left - right
            bad = ((left ^ right) & (left ^ out)) < 0
        case "*":
            out = left * right
            bad = _product_overflows(left, right, out)
        case "%":
            bad = right == 0
            out = np.fmod(left, np.where(bad | (right == -1), 1, right))  # % -1 is 0 and traps on the least int64
        case "/":
            raise AssertionError("/ gives float64")
        case _:
            assert_never(op)
    return Values(kind, out, _unless(bad, valid))


def _product_overflows(a: Any, b: Any, wrapped: Any) -> Mask:
    if all((v > -(2**31)).all() and (v < 2**31).all() for v in (a, b)):
        return np.zeros(1, np.bool_)
    # Were the wrapped product wrong, it would be so by a multiple of 2**64, and no division hides that.
    wrong = np.floor_divide(wrapped, np.where(a == 0, 1, a)) != b
    return cast("Mask", np.where(a == 0, False, np.where(a == -1, b == _INT_MIN, wrong)))


def _call(name: str, v: Values) -> Values:
    match name:
        case "lower" | "upper":
            return Values("string", cased(v.data, name), v.valid)
        case "length":
            return Values("int64", pc.utf8_length(v.data).fill_null(0).to_numpy().astype(np.int64), v.valid)
        case "abs" if v.kind == "int64":
            return Values("int64", np.abs(v.data), _unless(v.data == _INT_MIN, v.valid))
        case "abs":
            return Values("float64", np.abs(v.data), v.valid)
        case _ if v.kind == "int64":
            return v
        case "floor":
            return Values("float64", np.floor(v.data), v.valid)
        case "ceil":
            return Values("float64", np.ceil(v.data), v.valid)
        case "round":
            size = np.abs(v.data)
            whole = np.floor(size)
            return Values("float64", np.copysign(whole + (size - whole >= 0.5), v.data), v.valid)
    raise AssertionError(name)


def cased(strings: pa.Array, name: str) -> pa.Array:
    """Unicode's full mapping (ß becomes SS), which Arrow does not have; each distinct string once."""
    if pc.all(pc.string_is_ascii(strings)).as_py() is not False:
        return pc.ascii_lower(strings) if name == "lower" else pc.ascii_upper(strings)
    encoded = strings.dictionary_encode()
    change = str.lower if name == "lower" else str.upper
    changed = pa.array([change(s) for s in encoded.dictionary.to_pylist()], strings.type)
    return changed.take(encoded.indices)
