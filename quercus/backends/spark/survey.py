"""What is known of the events before they are shared out: one cheap pass over the rows and columns that matter."""

from __future__ import annotations

from typing import Any

from attrs import frozen
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from quercus.errors import DataError
from quercus.result import counted

POINTS = 256  # quantiles of time
SAMPLED = 0.1  # of the events, for quantiles and keys
HOT_KEYS = 32  # keys that are looked at


@frozen
class Times:
    """How many events there are, of which types, and quantiles of their times from the first to the last."""

    events: int
    quantiles: tuple[int, ...]
    untimed: int = 0  # events without a time
    by_type: tuple[int, ...] = ()  # how many have each number in the column of types

    def require_times(self, column: str) -> None:
        """Every event must have one."""
        if self.untimed:
            raise DataError(
                f"column '{column}': {counted(self.untimed, 'event', 'events')} without a time", column=column
            )

    @property
    def span(self) -> int:
        return self.quantiles[-1] - self.quantiles[0] if self.quantiles else 0


def times(df: DataFrame, at: str, types: tuple[Column, ...] = ()) -> Times:
    """Counts all events, and those for which each of `types` is true; their first and last time is exact, the quantiles
    are those of a sample."""
    sampled = f.expr(f"CASE WHEN rand(7) < {SAMPLED} THEN {at} END")
    some = df.select(f.expr(at).alias("at"), sampled.alias("some"), *_named(types))
    parts = [i / POINTS for i in range(1, POINTS)]
    quantiles = f.percentile_approx("some", parts, f.lit(10 * POINTS))
    row = some.agg(*_counted("at"), quantiles, *(f.count_if(f"t{i}") for i in range(len(types)))).head()
    assert row is not None
    count, untimed, low, high, middle, *by_type = row
    if low is None:
        return Times(count, (), untimed, tuple(by_type))
    inner = sorted(v for v in (middle or []) if low <= v <= high)
    return Times(count, (low, *inner, high), untimed, tuple(by_type))


def _named(types: tuple[Column, ...]) -> list[Column]:
    return [t.alias(f"t{i}") for i, t in enumerate(types)]


def _counted(at: str) -> list[Column]:
    return [f.count(f.lit(1)), f.count_if(f.col(at).isNull()), f.min(at), f.max(at)]


def sizes(df: DataFrame, cell: Column, count: int) -> tuple[int, ...]:
    """How many events each cell has."""
    found = {row[0]: row[1] for row in df.groupBy(cell.alias("cell")).count().collect()}
    return tuple(found.get(i, 0) for i in range(count))


@frozen
class Keys:
    """The events of all keys together, how many keys there are, about, and those with very many events."""

    times: Times
    count: int
    most: tuple[tuple[tuple[Any, ...], int], ...]


def keys(df: DataFrame, key: tuple[Column, ...], at: str, types: tuple[Column, ...], much: float) -> Keys:
    """Keys, from a sample of the events, with more than this part of them; all events are counted."""
    some = (f.rand(7) < f.lit(SAMPLED)).alias("some")
    marked = df.select(some, f.expr(at).alias("at"), *_named(types), *(k.alias(f"all{i}") for i, k in enumerate(key)))
    own = [f.when(f.col("some"), f.col(f"all{i}")).alias(f"k{i}") for i in range(len(key))]
    names = ["n", "untimed", "low", "high", *(f"t{i}" for i in range(len(types)))]
    made = [*_counted("at"), *(f.count_if(f"t{i}") for i in range(len(types)))]
    counted = marked.groupBy("some", *own).agg(*(c.alias(n) for c, n in zip(made, names, strict=True)))
    most = f.max(f.when(f.col("some"), f.col("n")))
    whole = [f.sum("n"), f.sum("untimed"), f.min("low"), f.max("high"), f.count_if("some"), most]
    row = counted.agg(*whole, *(f.sum(n) for n in names[4:])).head()
    assert row is not None
    events, untimed, low, high, count, greatest, *by_type = row
    span = () if low is None else (low, high)
    found = Times(events or 0, span, untimed or 0, tuple(n or 0 for n in by_type))
    if (greatest or 0) / SAMPLED <= much * found.events:
        return Keys(found, count, ())
    listed = counted.where("some").orderBy(f.desc("n")).limit(HOT_KEYS)
    rows = listed.select(*(f"k{i}" for i in range(len(key))), "n").collect()
    return Keys(found, count, tuple((tuple(row[:-1]), int(row["n"] / SAMPLED)) for row in rows))
