"""Keys in columns of another type than the schema gives them: Spark must hash them as the engine compares them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import quercus as qc
from quercus.backends.spark import explain, run
from quercus.backends.spark.key_values import key_value
from quercus.backends.spark.streaming import run_stream
from tests.spark.bags import ORDER, frame, same
from tests.spark.stream_files import END, Files, drawn, local

PAIRS, DECLARED = "PATTERN SEQ(A a, B b, [k]) WITHIN 100 s", "PATTERN SEQ(A a, B b) WITHIN 100 s PARTITION BY k"
KEYS = 12


def pairs(first: list[Any], second: list[Any], kind: pa.DataType) -> pa.Table:
    """An A of each key and then a B of each, written in another way."""
    return pa.table(
        {"ts": list(range(2 * KEYS)), "type": ["A"] * KEYS + ["B"] * KEYS, "k": pa.array([*first, *second], kind)}
    )


def schema_of(kind: Any) -> qc.Schema:
    return qc.Schema({"k": kind}, order=ORDER, time_unit="s")


INTEGERS = pairs([2**60 + 2**10 * i for i in range(KEYS)], [2**60 + 2**10 * i + 1 for i in range(KEYS)], pa.int64())
MOMENTS = pairs(
    [10**6 * i + 1 for i in range(KEYS)], [10**6 * i + 700_000 for i in range(KEYS)], pa.timestamp("us", "UTC")
)
FAR = pairs(
    [10**16 + 10**6 * i for i in range(KEYS)], [10**16 + 10**6 * i + 999_999 for i in range(KEYS)], pa.timestamp("us")
)
TENTHS = [Decimal(i) / 10 for i in range(1, KEYS + 1)]
DECIMALS = pairs(TENTHS, [v + Decimal("1e-20") for v in TENTHS], pa.decimal128(30, 20))
TEXTS = pairs(
    [f"2026-01-{i:02}" for i in range(1, KEYS + 1)], [f"2026-01-{i:02}T00Z" for i in range(1, KEYS + 1)], pa.string()
)
FEW_DIGITS = pairs(TENTHS, TENTHS, pa.decimal128(10, 2))
ZEROS = pairs([0.0] * KEYS, [-0.0] * KEYS, pa.float32())


@pytest.mark.parametrize("query", [PAIRS, DECLARED], ids=["found", "declared"])
@pytest.mark.parametrize("table", [INTEGERS, FEW_DIGITS, ZEROS], ids=["integers", "decimals", "zeros"])
def test_numbers_that_become_one_are_one_key(spark: SparkSession, table: pa.Table, query: str) -> None:
    plan, made = qc.compile(query, schema_of("float64")), frame(spark, table, schema_of("float64"))
    assert same(plan, made, table, partitions=5) >= KEYS
    assert "by key: k" in explain(plan, made, partitions=5)


@pytest.mark.parametrize("query", [PAIRS, DECLARED], ids=["found", "declared"])
@pytest.mark.parametrize("table", [MOMENTS, FAR], ids=["near", "far"])
def test_moments_of_one_second_are_one_key(spark: SparkSession, table: pa.Table, query: str) -> None:
    schema = qc.Schema({"ts": "timestamp[s]", "k": "timestamp[s]"}, order=ORDER)
    table = table.set_column(0, "ts", table.column("ts").cast(pa.timestamp("s", "UTC")))
    plan, made = qc.compile(query, schema), frame(spark, table, schema)
    assert same(plan, made, table, partitions=5) == KEYS
    assert "by key: k" in explain(plan, made, partitions=5)


@pytest.mark.parametrize(
    ("kind", "table", "why"),
    [
        ("float64", DECIMALS, r"'k' is decimal\(30,20\), and a float64 has fewer digits: cast it to a double first"),
        ("timestamp", TEXTS, r"'k' is text that stands for moments: cast it to a timestamp first"),
    ],
    ids=["decimals", "texts"],
)
def test_values_that_spark_cannot_compare(spark: SparkSession, kind: Any, table: pa.Table, why: str) -> None:
    made = frame(spark, table, schema_of(kind))
    plan = qc.compile(PAIRS, schema_of(kind))
    assert same(plan, made, table, slices=3) == KEYS
    with pytest.raises(qc.DataError, match=why):
        run(qc.compile(DECLARED, schema_of(kind)), made)


def test_an_integer_has_one_hash_whatever_its_width(spark: SparkSession) -> None:
    """A stream that is started again may have a wider column."""
    plan = qc.compile(PAIRS, schema_of("int64"))
    found = set()
    for kind in ("tinyint", "smallint", "int", "bigint"):
        df = spark.range(KEYS).select(f.col("id").cast(kind).alias("k"))
        value = key_value("k", plan, df.schema["k"].dataType)
        assert not isinstance(value, str)
        found.add(tuple(row[0] for row in df.orderBy("k").select(f.hash(value)).collect()))
    assert len(found) == 1


def test_a_stream_goes_on_with_a_column_of_another_type(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path)
    columns = {"ts": "timestamp[us]", "id": "float64", "x": "float64", "s": "string"}
    plan = qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 6 s RETURN a.id, b.x", qc.Schema(columns, order="n"))
    rows = drawn(7, 60)  # their ids are different integers, and one float
    for kind, some in (("long", rows[:30]), ("decimal(38,0)", [*rows[30:], END])):
        files.add(some)
        df = files.read()
        files.run(run_stream(plan, df.withColumn("id", df.id.cast(kind)), groups=5))
    expected = local(plan, rows)
    assert sum(expected.values()) > 10
    assert files.found() == expected


def test_a_stream_has_no_number_that_went_round(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path)
    plan = qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 6 s", qc.Schema({"ts": "timestamp[us]", "id": "int64"}))
    files.add(drawn(7, 10))
    df = files.read()
    ansi = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(Exception, match=r"column 'id': .* does not fit int64"):
            files.run(run_stream(plan, df.withColumn("id", df.id.cast("decimal(38,0)") * 16), groups=2))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
