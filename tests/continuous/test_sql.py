"""Expressions in DuckDB against the engine's own evaluator: the same values, to the last bit."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from random import Random

import pyarrow as pa
import pytest

from quercus.backends.base import Limits
from quercus.backends.local.continuous.duck import query
from quercus.backends.local.continuous.sql import Expressions
from quercus.backends.local.expressions import evaluate
from quercus.backends.local.values import from_arrow
from quercus.ir import expr as x
from tests.test_expressions import ARROW, KIND_OF, Draw, columns, typed

EACH = 25  # expressions in one statement


def exact(value: object) -> object:
    """Floats by their bits: 0.0 is not -0.0 here, and NaN is NaN."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("d", value)
    return value


def listed(written: Expressions, expressions: list[x.Expr], table: pa.Table) -> tuple[str, pa.Table]:
    """Expressions as a SELECT list, and what it is over: columns of other names, with the rows numbered as n."""
    names = {name: f"c{i}" for i, name in enumerate(table.column_names)}
    values = [f"{written.value(e, lambda c: names[c.attr])} AS x{i}" for i, e in enumerate(expressions)]
    given = table.rename_columns(list(names.values())).append_column("n", pa.array(range(len(table))))
    return ", ".join(values), given


def in_sql(expressions: list[x.Expr], table: pa.Table) -> list[list[object]]:
    written = Expressions()
    values, given = listed(written, expressions, table)
    sql = f"SELECT {values} FROM t ORDER BY n"
    found = query(sql, written.parameters, {"t": given}, limits=Limits(), threads=1)
    return [column.to_pylist() for column in found.columns]


def check(seed: int, run: Callable[[list[x.Expr], pa.Table], list[list[object]]] = in_sql) -> None:
    """Random expressions over random columns, as `run` and as the engine evaluates them."""
    random = Random(seed)
    draw = Draw(random)
    data = columns(random, 40)
    table = pa.table({name: pa.array(values, ARROW[KIND_OF[name]]) for name, values in data.items()})
    kinds = ["bool", "int64", "float64", "string"]
    expressions = [typed(draw.of(random.choice(kinds), random.randrange(1, 5))) for _ in range(EACH)]
    expressions = [e for e in expressions if e.type != "null"]
    values = {name: from_arrow(table.column(name)) for name in table.column_names}
    for e, found in zip(expressions, run(expressions, table), strict=True):
        own = evaluate(e, lambda c: values[c.attr], len(table)).to_arrow().to_pylist()
        assert list(map(exact, found)) == list(map(exact, own)), (seed, e)


@pytest.mark.parametrize("seed", range(30))
def test_random_expressions(seed: int) -> None:
    check(seed)


@pytest.mark.slow
def test_many_random_expressions() -> None:
    for seed in range(1_000, 2_000):
        check(seed)


def test_a_difference_would_be_seen() -> None:
    assert exact(0.0) != exact(-0.0)
    assert exact(math.nan) == exact(-math.nan)
    table = pa.table({"f": [math.nan, 1.0], "i": [1, 2]})
    greater = x.Compare(">", x.Column("a", "f", "float64"), x.Column("a", "i", "int64"))
    assert in_sql([greater], table) == [[False, False]]  # DuckDB's own NaN is greater than all


def test_text_stays_as_long_as_the_expression() -> None:
    """No operand of arithmetic is written twice: else a hundred divisions would be 2**100 long."""
    e: x.Expr = x.Column("a", "f", "float64")
    for _ in range(100):
        e = x.Arithmetic(
            "%", x.Column("a", "f", "float64"), x.Arithmetic("/", x.Const(1.0, "float64"), e, "float64"), "float64"
        )
    assert len(Expressions().value(e, lambda c: "c0")) < 20_000


def test_values_are_no_text() -> None:
    odd = "'; DROP TABLE t; --"
    written = Expressions()
    text = written.value(x.Compare("=", x.Column("a", odd, "string"), x.Const(odd, "string")), lambda c: "c0")
    assert "DROP" not in text
    assert written.parameters == [odd]
