"""Expressions in Spark SQL against the engine's own evaluator: the same values, to the last bit."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from quercus.backends.local.continuous.sql import LOWER, UPPER, Expressions
from quercus.backends.local.expressions import evaluate
from quercus.backends.local.values import from_arrow
from quercus.backends.spark.continuous.dialect import SPARK, add_functions
from quercus.ir import expr as x
from tests.continuous.test_sql import EACH, exact
from tests.test_expressions import ARROW, KIND_OF, Draw, columns, typed


def in_sql(spark: SparkSession, expressions: list[x.Expr], table: pa.Table) -> list[list[object]]:
    written = Expressions(SPARK)
    names = {name: f"c{i}" for i, name in enumerate(table.column_names)}
    listed = [f"{written.value(e, lambda c: names[c.attr])} AS x{i}" for i, e in enumerate(expressions)]
    add_functions(spark, frozenset(written.functions))
    given = table.rename_columns(list(names.values())).append_column("n", pa.array(range(len(table))))
    df = spark.createDataFrame(given)
    parameters = {f"p{i}": value for i, value in enumerate(written.parameters, 1)}
    found = spark.sql(f"SELECT n, {', '.join(listed)} FROM {{t}}", args=parameters, t=df).toArrow().sort_by("n")
    return [column.to_pylist() for column in found.columns[1:]]


def check(spark: SparkSession, seed: int) -> None:
    random = Random(seed)
    draw = Draw(random)
    data = columns(random, 40)
    table = pa.table({name: pa.array(values, ARROW[KIND_OF[name]]) for name, values in data.items()})
    kinds = ["bool", "int64", "float64", "string"]
    expressions = [typed(draw.of(random.choice(kinds), random.randrange(1, 5))) for _ in range(EACH)]
    expressions = [e for e in expressions if e.type != "null"]
    values = {name: from_arrow(table.column(name)) for name in table.column_names}
    for e, found in zip(expressions, in_sql(spark, expressions, table), strict=True):
        own = evaluate(e, lambda c: values[c.attr], len(table)).to_arrow().to_pylist()
        assert list(map(exact, found)) == list(map(exact, own)), (seed, e)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_random_expressions(spark: SparkSession, ansi: str) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for seed in range(8):
            check(spark, seed)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))


@pytest.mark.slow
def test_many_random_expressions(spark: SparkSession) -> None:
    for seed in range(1_000, 1_100):
        check(spark, seed)


def test_a_text_stays_short() -> None:
    """A lambda has its operand once: else a hundred roundings would be 3**100 long."""
    e: x.Expr = x.Column("a", "f", "float64")
    for _ in range(100):
        e = x.Call("round", (e,), "float64")
    assert len(Expressions(SPARK).value(e, lambda c: "c0")) < 60_000


def test_functions_of_our_own(spark: SparkSession) -> None:
    add_functions(spark, frozenset({LOWER, UPPER}))
    found = spark.sql(f"SELECT {UPPER}('straße') AS u, {LOWER}('ΑΣ') AS l").head()
    assert found is not None
    assert tuple(found) == ("STRASSE", "ας")
