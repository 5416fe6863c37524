"""Answers compared as bags: what Spark gives against what the local engine gives."""

from __future__ import annotations

import math
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import quercus as qc
from quercus.backends.local.inputs import as_table
from quercus.backends.spark import run

ORDER = "nth"  # the column that breaks ties


def frame(spark: SparkSession, events: list[dict[str, Any]] | pa.Table, schema: qc.Schema, parts: int = 3) -> DataFrame:
    """The events as a DataFrame that remembers their order, out of order and in some partitions; 0: as Spark likes."""
    table = events if isinstance(events, pa.Table) else as_table(events, schema)
    table = table.append_column(ORDER, pa.array(range(len(table)), pa.int64()))
    table = table.take(pa.array(Random(len(table)).sample(range(len(table)), len(table)), pa.int64()))
    made = spark.createDataFrame(table)
    return made.repartition(parts) if parts and len(table) else made


def same(plan: qc.Plan, df: DataFrame, events: Any, **options: Any) -> int:
    """Assert that Spark gives the rows that the local engine gives; how many there are."""
    found = run(plan, df, **options).toArrow()
    expected = plan.run(events).to_arrow()
    assert found.column_names == expected.column_names
    got, wanted = bag(found), bag(expected)
    assert got == wanted, f"{plan.text}\n{options}\nmissing: {wanted - got}\ntoo many: {got - wanted}"
    return len(expected)


def bag(table: pa.Table) -> Counter[Any]:
    return Counter(_plain(row) for row in table.to_pylist())


def _plain(value: Any) -> Any:
    """A value that can be counted: floats to nine digits, moments without their zone."""
    if isinstance(value, dict):
        return tuple((k, _plain(v)) for k, v in value.items())
    if isinstance(value, list):
        return tuple(_plain(v) for v in value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}") + 0.0
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value
