"""Expressions over columns: the laws one by one, and random expressions against tests/reference_scalar.py."""

from __future__ import annotations

import doctest
import math
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quercus.backends.local import expressions
from quercus.backends.local.expressions import evaluate, true_mask
from quercus.backends.local.values import Values, from_arrow
from quercus.compiler import syntax as s
from quercus.compiler.typing import Typer
from quercus.ir import expr as x
from tests import reference_scalar

LEAST, MOST = -(2**63), 2**63 - 1
ARROW = {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_(), "string": pa.string()}
KIND_OF = {"i": "int64", "j": "int64", "f": "float64", "g": "float64", "b": "bool", "c": "bool", "s": "string"} | {
    "t": "string"
}
SAMPLES: dict[str, list[object]] = {
    "int64": [0, 1, -1, 2, -2, 3, 7, -7, 2**31, 2**32 + 1, 3037000500, 2**53 + 1, MOST, MOST - 1, LEAST, LEAST + 1],
    "float64": [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.49999999999999994,
        3.0,
        1e308,
        -1e308,
        5e-324,
        2.0**53,
        math.inf,
        -math.inf,
        math.nan,
        4503599627370495.5,
        9.223372036854776e18,
    ],
    "bool": [True, False],
    "string": ["", "a", "A", "ab", "b", "é", "É", "ß", "\U0001f600", "\uffff", "zz", "Ä\0"],
}


# Random expressions ---------------------------------------------------------------------------------------------------


class Draw:
    """Expressions of a wanted type, from a seed."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def of(self, kind: str, depth: int) -> s.Scalar:
        if depth == 0 or self.chance(0.15):
            return self.leaf(kind)
        match kind:
            case "bool":
                return self.condition(depth - 1)
            case "string":
                return s.Call(self.random.choice(["lower", "upper"]), (self.of("string", depth - 1),))
            case "int64" if self.chance(0.1):
                return s.Call("length", (self.of("string", depth - 1),))
        return self.number(kind, depth - 1)

    def leaf(self, kind: str) -> s.Scalar:
        if self.chance(0.06):
            return s.Constant(None)
        if self.chance(0.35):
            finite = [v for v in SAMPLES[kind] if not isinstance(v, float) or math.isfinite(v)]
            return s.Constant(self.random.choice(finite))  # type: ignore[arg-type]
        return s.Attr("a", self.random.choice([n for n, k in KIND_OF.items() if k == kind]))

    def number(self, kind: str, depth: int) -> s.Scalar:
        if self.chance(0.3):
            return s.Call(self.random.choice(["abs", "round", "floor", "ceil"]), (self.of(kind, depth),))
        if self.chance(0.15):
            return s.Unary("-", self.of(kind, depth))
        if kind == "int64":
            return s.Binary(self.random.choice("+-*%"), self.of(kind, depth), self.of(kind, depth))  # type: ignore[arg-type]
        kinds = self.random.choice([("float64", "float64"), ("int64", "float64"), ("float64", "int64")])
        op = self.random.choice("+-*/%")
        if op == "/" and self.chance(0.3):
            kinds = ("int64", "int64")
        return s.Binary(op, self.of(kinds[0], depth), self.of(kinds[1], depth))  # type: ignore[arg-type]

    def comparable(self) -> tuple[str, str]:
        kind = self.random.choice(["int64", "float64", "string", "bool"])
        if kind in ("int64", "float64"):
            return kind, self.random.choice(["int64", "float64"])
        return kind, kind

    def condition(self, depth: int) -> s.Scalar:
        first, second = self.comparable()
        negated = self.chance(0.5)
        match self.random.randrange(7):
            case 0:
                return s.Unary("not", self.of("bool", depth))
            case 1 | 2:
                return s.Binary(self.random.choice(["and", "or"]), self.of("bool", depth), self.of("bool", depth))  # type: ignore[arg-type]
            case 3:
                items = tuple(self.leaf(second) for _ in range(self.random.choice([1, 2, 3, 12])))
                if self.chance(0.8):
                    items = tuple(i for i in items if isinstance(i, s.Constant)) or (s.Constant(None),)
                return s.InList(self.of(first, depth), items, negated)
            case 4 if first != "bool":
                return s.Between(self.of(first, depth), self.of(second, depth), self.of(second, depth), negated)
            case 5:
                return s.IsNull(self.of(first, depth), negated)
        ops = ["=", "<>"] if first == "bool" else ["=", "<>", "<", "<=", ">", ">="]
        count = self.random.choice([2, 2, 2, 3])
        operands = tuple(self.of(self.random.choice([first, second]), depth) for _ in range(count))
        return s.Chain(operands, tuple(self.random.choice(ops) for _ in operands[1:]))  # type: ignore[arg-type]


def typed(e: s.Scalar) -> x.Expr:
    typer = Typer("", "ms", lambda var, name, span: x.Column(var, name, KIND_OF[name]), lambda *_: None)  # type: ignore[arg-type,return-value]
    return typer.scalar(e)


def columns(random: Random, n: int) -> dict[str, list[object]]:
    return {
        name: [None if random.random() < 0.15 else random.choice(SAMPLES[kind]) for _ in range(n)]
        for name, kind in KIND_OF.items()
    }


def as_values(data: dict[str, list[object]], large: bool) -> dict[str, Values]:
    """Nulls hide garbage, which no result may depend on."""
    found = {}
    for name, values in data.items():
        kind = KIND_OF[name]
        array = pa.array(values, pa.large_string() if large and name == "t" else ARROW[kind])
        v = from_arrow(array)
        if v.valid is not None and kind in ("int64", "float64"):
            junk = v.data.copy()
            junk[~v.valid] = LEAST if kind == "int64" else math.nan
            v = Values(v.kind, junk, v.valid)
        found[name] = v
    return found


def expected(e: s.Scalar, data: dict[str, list[object]], n: int) -> list[object]:
    out = []
    for row in range(n):
        event = reference_scalar.Event(row, row, row, "A", {name: values[row] for name, values in data.items()})
        out.append(reference_scalar.evaluate(e, {"a": event}, {}))
    return out


def alike(a: object, b: object) -> bool:
    if a is None or b is None:
        return a is b
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return type(a) is type(b) and a == b


@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 2**40), st.sampled_from(["bool", "bool", "int64", "float64", "string"]), st.integers(0, 12))
def test_agrees_with_the_reference(seed: int, kind: str, n: int) -> None:
    random = Random(seed)
    syntax = Draw(random).of(kind, random.randrange(1, 5))
    data = columns(random, n)
    want = expected(syntax, data, n)
    e = typed(syntax)
    values = as_values(data, large=random.random() < 0.3)
    got = evaluate(e, lambda c: values[c.attr], n)
    assert len(got) == n
    assert got.valid is None or len(got.valid) == n
    assert e.type == "null" or got.kind == e.type
    found = got.to_arrow().to_pylist()
    assert all(alike(a, b) for a, b in zip(found, want, strict=True)), f"{syntax}\n{data}\n{found}\n{want}"
    if e.type in ("bool", "null"):
        mask = true_mask(e, lambda c: values[c.attr], n)
        assert mask.dtype == np.bool_
        assert mask.tolist() == [v is True for v in want]


def test_the_comparison_can_fail() -> None:
    assert not alike(1, 1.0)
    assert not alike(None, False)
    assert not alike(math.nan, 1.0)
    assert alike(math.nan, math.nan)


# The laws, one by one -------------------------------------------------------------------------------------------------


def run(e: x.Expr, **given_columns: list[object]) -> list[object]:
    values = {
        name: from_arrow(pa.array(v, ARROW.get(KIND_OF.get(name, ""), pa.timestamp("us"))))
        for name, v in given_columns.items()
    }
    n = len(next(iter(given_columns.values())))
    return evaluate(e, lambda c: values[c.attr], n).to_arrow().to_pylist()  # type: ignore[no-any-return]


N, F, S = x.Column("a", "i", "int64"), x.Column("a", "f", "float64"), x.Column("a", "s", "string")
T, U = x.Column("a", "x", "timestamp"), x.Column("a", "y", "timestamp")


def number(value: float) -> x.Const:
    return x.Const(value, "int64" if isinstance(value, int) else "float64")


@pytest.mark.parametrize(
    ("op", "right", "values", "want"),
    [
        ("+", 1, [MOST, MOST - 1, None], [None, MOST, None]),
        ("-", 1, [LEAST, LEAST + 1], [None, LEAST]),
        ("*", -1, [LEAST, MOST], [None, -MOST]),
        ("*", LEAST, [-1, 1, 0], [None, LEAST, 0]),
        ("*", 3037000500, [3037000500, 3037000499, -3037000500], [None, 9223372033963249500, None]),
        ("*", 2**32, [2**31, -(2**31), 2**32], [None, LEAST, None]),
        ("%", -1, [LEAST, 7], [0, 0]),
        ("%", 3, [7, -7, LEAST], [1, -1, -2]),
        ("%", 0, [7, 0], [None, None]),
    ],
)
def test_integer_arithmetic(op: str, right: int, values: list[object], want: list[object]) -> None:
    assert run(x.Arithmetic(op, N, number(right), "int64"), i=values) == want  # type: ignore[arg-type]


def test_division_gives_floats_and_by_zero_null() -> None:
    assert run(x.Arithmetic("/", N, number(2), "float64"), i=[3, None]) == [1.5, None]
    assert run(x.Arithmetic("/", N, number(0), "float64"), i=[3, 0]) == [None, None]
    assert run(x.Arithmetic("/", number(1.0), F, "float64"), f=[-0.0, 4.0]) == [None, 0.25]


@pytest.mark.parametrize(("value", "want"), [(0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (0.49999999999999994, 0.0)])
def test_round_goes_half_away_from_zero(value: float, want: float) -> None:
    assert run(x.Call("round", (F,), "float64"), f=[value]) == [want]


def test_absolute_value_of_the_least_integer_is_null() -> None:
    assert run(x.Call("abs", (N,), "int64"), i=[LEAST, -5]) == [None, 5]
    assert run(x.Negative(N, "int64"), i=[LEAST, -5]) == [None, 5]


def test_strings_compare_by_code_point() -> None:
    # In UTF-16 the order would be the other way round.
    assert run(x.Compare("<", x.Const("\uffff", "string"), S), s=["\U0001f600", "a", None]) == [True, False, None]
    assert run(x.Call("upper", (S,), "string"), s=["straße", "ab", None]) == ["STRASSE", "AB", None]


def test_an_integer_beside_a_float_is_compared_as_a_float() -> None:
    assert run(x.Compare("=", N, number(2.0**53)), i=[2**53 + 1]) == [True]
    assert run(x.InSet(N, (number(2.0**53),), False), i=[2**53 + 1]) == [True]
    assert run(x.InSet(N, (number(2**53), number(0.5)), False), i=[2**53 + 1]) == [False]


def test_timestamps() -> None:
    moments = [0, 5, None]
    assert run(x.Arithmetic("-", U, T, "int64"), x=moments, y=[7, 7, 7]) == [7, 2, None]
    later = run(x.Arithmetic("+", T, number(2), "timestamp"), x=moments)
    assert later == pa.array([2, 7, None], pa.timestamp("us")).to_pylist()
    assert run(x.Compare(">=", T, x.Const(5, "timestamp")), x=moments) == [False, True, None]


def test_same_compares_every_pair() -> None:
    e = x.Same((N, x.Column("b", "j", "int64"), x.Column("c", "f", "float64")))
    assert run(e, i=[1, 1, 1, None], j=[1, 2, 1, 2], f=[1.0, 1.0, None, 3.0]) == [True, False, None, False]
    assert run(x.Same((N,)), i=[1, None]) == [True, True]


def test_group_functions_are_asked_for() -> None:
    e = x.Compare(">", x.GroupCall("count", "b", None, "int64"), number(1))
    counts = Values("int64", np.array([0, 1, 2]))
    assert true_mask(e, lambda c: counts, 3, lambda g: counts).tolist() == [False, False, True]


def test_an_integer_column_serves_as_float64_where_that_is_declared() -> None:
    assert evaluate(F, lambda c: Values("int64", np.array([1])), 1).data.dtype == np.float64


def test_constants_are_spread() -> None:
    got = evaluate(x.Const("x", "string"), lambda c: Values("int64", np.empty(0)), 3)
    assert got.data.to_pylist() == ["x"] * 3
    assert true_mask(x.TRUE, lambda c: got, 0).tolist() == []
    assert evaluate(x.Const(None, "null"), lambda c: got, 2).to_arrow().to_pylist() == [None, None]


def test_examples_in_the_docstrings_run() -> None:
    failed, attempted = doctest.testmod(expressions)
    assert failed == 0
    assert attempted > 0
