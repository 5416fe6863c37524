"""What is known of the events before they are shared out: one cheap pass over the rows and columns that matter."""

from __future__ import annotations

from typing import Any

from attrs import frozen
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

POINTS = 256  # quantiles of time
SAMPLED = 0.1  # of the events, for quantiles and keys
HOT_KEYS = 32  # keys that are looked at


@frozen
class Times:
    """How many events there are, and quantiles of their times from the first to the last."""

    events: int
    quantiles: tuple[int, ...]

    @property
    def span(self) -> int:
        return self.quantiles[-1] - self.quantiles[0] if self.quantiles else 0


def times(df: DataFrame, at: Column) -> Times:
    """Counts all events; their first and last time is exact, the quantiles are those of a sample."""
    some = df.select(at.alias("at"), f.when(f.rand(7) < f.lit(SAMPLED), at).alias("some"))
    parts = [i / POINTS for i in range(1, POINTS)]
    row = some.agg(
        f.count(f.lit(1)), f.min("at"), f.max("at"), f.percentile_approx("some", parts, f.lit(10 * POINTS))
    ).head()
    assert row is not None
    count, low, high, middle = row
    if low is None:
        return Times(count, ())
    inner = sorted(v for v in (middle or []) if low <= v <= high)
    return Times(count, (low, *inner, high))


def sizes(df: DataFrame, cell: Column, count: int) -> tuple[int, ...]:
    """How many events each cell has."""
    found = {row[0]: row[1] for row in df.groupBy(cell.alias("cell")).count().collect()}
    return tuple(found.get(i, 0) for i in range(count))


@frozen
class Keys:
    """How many events there are, about, and the most frequent keys with their numbers."""

    events: int
    most: tuple[tuple[tuple[Any, ...], int], ...]


def keys(df: DataFrame, key: tuple[Column, ...]) -> Keys:
    """From a sample of the events."""
    named = [k.alias(f"k{i}") for i, k in enumerate(key)]
    counted = df.where(f.rand(7) < f.lit(SAMPLED)).groupBy(*named).count()
    listed = counted.agg(f.sum("count"), f.max_by(f.struct(*(f"k{i}" for i in range(len(key)))), "count")).head()
    assert listed is not None
    if listed[0] is None:
        return Keys(0, ())
    found = counted.orderBy(f.desc("count")).limit(HOT_KEYS).collect()
    return Keys(int(listed[0] / SAMPLED), tuple((tuple(row[: len(key)]), int(row["count"] / SAMPLED)) for row in found))
