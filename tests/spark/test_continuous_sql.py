"""Expressions in Spark SQL against the engine's own evaluator: the same values, to the last bit."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from quercus.backends.local.continuous.sql import LOWER, UPPER, Expressions
from quercus.backends.spark.continuous.dialect import SPARK, add_functions
from quercus.ir import expr as x
from tests.continuous.test_sql import check, listed


def in_sql(spark: SparkSession, expressions: list[x.Expr], table: pa.Table) -> list[list[object]]:
    written = Expressions(SPARK)
    values, given = listed(written, expressions, table)
    add_functions(spark, frozenset(written.functions))
    df = spark.createDataFrame(given)
    parameters = {f"p{i}": value for i, value in enumerate(written.parameters, 1)}
    found = spark.sql(f"SELECT n, {values} FROM {{t}}", args=parameters, t=df).toArrow().sort_by("n")
    return [column.to_pylist() for column in found.columns[1:]]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_random_expressions(spark: SparkSession, ansi: str) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for seed in range(8):
            check(seed, partial(in_sql, spark))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))


@pytest.mark.slow
def test_many_random_expressions(spark: SparkSession) -> None:
    for seed in range(1_000, 1_100):
        check(seed, partial(in_sql, spark))


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
