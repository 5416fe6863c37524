"""What DataFrames can be that tables cannot: zones of the session, names without case, columns of no order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import quercus as qc
from quercus.backends.spark import run

SCHEMA = qc.Schema({"id": "int64"}, time_unit="s")
PAIR = "PATTERN SEQ(A a, B b) WITHIN 5 s"
EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"], "id": [1, 1]})


@pytest.fixture
def berlin(spark: SparkSession) -> Iterator[SparkSession]:
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def test_moments_without_a_zone_know_no_summer_time(berlin: SparkSession) -> None:
    """Between 02:00 and 03:00 of that night, clocks there show nothing."""
    times = ["01:50", "02:10", "02:20", "02:40", "03:10", "03:20"]
    rows = ", ".join(f"(TIMESTAMP_NTZ'2024-03-31 {t}:00', '{k}')" for t, k in zip(times, "ABABAB", strict=True))
    df = berlin.sql(f"SELECT * FROM VALUES {rows} AS e(ts, type)")
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 30 min", qc.Schema({"ts": "timestamp[us]"}))
    expected = plan.run(df.toArrow()).to_arrow().to_pylist()
    assert len(expected) == 3
    for border in (1_711_850_400_000_000, 1_711_852_200_000_000, 1_711_854_000_000_000):
        found = run(plan, df, borders=(border,)).toArrow().to_pylist()
        assert sorted(map(str, found)) == sorted(map(str, expected))


def test_tuples_of_such_a_night(berlin: SparkSession) -> None:
    df = berlin.sql("SELECT TIMESTAMP_NTZ'2024-03-31 02:30:00.123456' AS ts, TIMESTAMP_NTZ'1893-04-01 00:03:00' AS w")
    schema = qc.Schema({"ts": "timestamp[us]", "w": "timestamp[us]"}, type=None)
    query = qc.continuous("ISTREAM(SELECT w FROM S[Now])", {"S": schema})
    assert query.run({"S": df}).toArrow().to_pylist() == query.run({"S": df.toArrow()}).to_arrow().to_pylist()


def named(spark: SparkSession, **more: Any) -> DataFrame:
    table = EVENTS
    for name, values in more.items():
        table = table.append_column(name, pa.array(values))
    return spark.createDataFrame(table)


@pytest.mark.parametrize(
    ("schema", "more", "said"),
    [
        (SCHEMA, {"ID": [5, 6]}, "'id' and 'ID', which Spark takes for one"),
        (qc.Schema({}, time_unit="s", order="o"), {"o": [{"x": 1}, {"x": 2}]}, "has no order"),
        (qc.Schema({}, time_unit="s", order="o"), {"o": [[1], [2]]}, "has no order"),
        (qc.Schema({}, time_unit="s", order="type"), {}, "breaks no ties"),
        (qc.Schema({"quercus_type": "int64"}, time_unit="s"), {"quercus_type": [1, 2]}, "rename the column"),
    ],
)
def test_columns_that_cannot_be(spark: SparkSession, schema: qc.Schema, more: dict[str, Any], said: str) -> None:
    with pytest.raises(qc.DataError, match=said):
        qc.compile(PAIR, schema).run(named(spark, **more))


def test_names_with_case_where_spark_has_them(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert qc.compile(PAIR, SCHEMA).run(named(spark, ID=[5, 6])).count() == 1
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")


def test_time_breaks_ties_of_its_own(spark: SparkSession) -> None:
    plan = qc.compile(PAIR, qc.Schema({"id": "int64"}, time_unit="s", order="ts"))
    assert plan.run(named(spark)).count() == 1


def test_nanoseconds_that_are_made(spark: SparkSession) -> None:
    table = EVENTS.set_column(0, "ts", pa.array([1, 2], pa.timestamp("us", "UTC")))
    plan = qc.compile(f"{PAIR} RETURN a.ts + 1 AS t", qc.Schema({"ts": "timestamp[ns]"}))
    with pytest.raises(qc.DataError, match="'t' is in nanoseconds"):
        plan.run(spark.createDataFrame(table))
