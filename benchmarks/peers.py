"""The same workloads on DuckDB and Polars, in the fastest forms known, with one thread.

Both hold the streams in their own format beforehand: what converting from Arrow costs them is not counted. A function
gives the rows of all matches, a column per variable (ts is the row), as a temporary table or a frame; `summary` looks
into that afterwards. Events of a count window of 5000 are fewer than 5000 apart.

What is fast is not obvious: plain SQL of W3 takes a thousand times as long as DuckDB's form here, and joins on equal
ids are only fast once time is cut into slices of a window, each event in all slices that a match could reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

SLICE = 2000  # W2 and W7: as long as their window
Frames = dict[str, pl.DataFrame]


# DuckDB ---------------------------------------------------------------------------------------------------------------


def duckdb_with(streams: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("SET threads = 1")
    for name, table in streams.items():
        con.register("given", table)
        con.execute(f"CREATE TABLE {name} AS FROM given")
        con.unregister("given")
    return con


def _listed(con: duckdb.DuckDBPyConnection, sql: str, *, written_order: bool = False) -> str:
    """Run a query into the temporary table `found`; written_order keeps the planner from reordering the joins."""
    con.execute(f"SET disabled_optimizers = '{'join_order' if written_order else ''}'")
    con.execute("CREATE OR REPLACE TEMP TABLE found AS " + sql)
    return "found"


def duckdb_w1(con: duckdb.DuckDBPyConnection) -> str:
    return _listed(
        con,
        """
        SELECT a.ts a, b.ts b, c.ts c FROM u1m a, u1m b, u1m c
        WHERE a.type = 'T0' AND b.type = 'T1' AND c.type = 'T2'
          AND b.ts > a.ts AND c.ts > b.ts AND b.ts <= a.ts + 100 AND c.ts <= a.ts + 100""",
    )


_SLICED = f"""
    SELECT a.ts a, b.ts b, c.ts c
    FROM (SELECT x.*, unnest([ts // {SLICE}, ts // {SLICE} + 1]) k FROM u1m x WHERE type = 'T0') a,
         (SELECT *, ts // {SLICE} k FROM u1m WHERE type = 'T1') b,
         (SELECT x.*, unnest([ts // {SLICE}, ts // {SLICE} - 1]) k FROM u1m x WHERE type = 'T2') c
    WHERE a.id = b.id AND a.k = b.k AND b.ts > a.ts AND b.ts <= a.ts + {SLICE}
      AND c.id = b.id AND c.k = b.k AND c.ts > b.ts AND c.ts <= a.ts + {SLICE}"""


def duckdb_w2(con: duckdb.DuckDBPyConnection) -> str:
    return _listed(con, _SLICED)


def duckdb_w3(con: duckdb.DuckDBPyConnection) -> str:
    return _listed(
        con,
        """
        SELECT a.ts a, b.ts b, c.ts c
        FROM (SELECT a.ts, x.ts stop FROM (FROM u1m WHERE type = 'T0') a
              ASOF LEFT JOIN (FROM u1m WHERE type = 'T3') x ON a.ts < x.ts) a, u1m b, u1m c
        WHERE b.type = 'T1' AND c.type = 'T2' AND b.ts > a.ts AND c.ts > b.ts
          AND b.ts <= a.ts + 100 AND c.ts <= a.ts + 100 AND (a.stop IS NULL OR b.ts < a.stop)""",
    )


_TRACKS = """
    FROM music1m a, music1m b, music1m c, music1m d
    WHERE a.type = 't147073' AND b.type = 't56437' AND c.type = 't189820' AND d.type = 't531386'
      AND b.ts > a.ts AND c.ts > b.ts AND d.ts > c.ts
      AND b.ts < a.ts + 5000 AND c.ts < a.ts + 5000 AND d.ts < a.ts + 5000"""


def duckdb_w4(con: duckdb.DuckDBPyConnection) -> str:
    return _listed(con, "SELECT a.ts a, b.ts b, c.ts c, d.ts d" + _TRACKS, written_order=True)


def duckdb_w5(con: duckdb.DuckDBPyConnection) -> str:
    sql = "SELECT a.ts a, b.ts b, c.ts c, list(d.ts ORDER BY d.ts) d" + _TRACKS + " GROUP BY ALL"
    return _listed(con, sql, written_order=True)


def duckdb_w6(con: duckdb.DuckDBPyConnection) -> str:
    """The number alone: for each pair of a and b, how many c come after b within the window of a, from ranks."""
    return _listed(
        con,
        """
        WITH b AS (SELECT ts FROM u1m WHERE type = 'T1'),
             c AS (SELECT ts, row_number() OVER (ORDER BY ts) r FROM u1m WHERE type = 'T2'),
             ax AS (SELECT a.ts, coalesce(c.r, 0) r
                    FROM (FROM u1m WHERE type = 'T0') a ASOF LEFT JOIN c ON a.ts + 2000 >= c.ts),
             bx AS (SELECT b.ts, coalesce(c.r, 0) r FROM b ASOF LEFT JOIN c ON b.ts >= c.ts)
        SELECT sum(ax.r - bx.r) n FROM ax, bx WHERE bx.ts > ax.ts AND bx.ts <= ax.ts + 2000""",
    )


def duckdb_w7(con: duckdb.DuckDBPyConnection) -> str:
    return _listed(con, _SLICED + " AND a.value < b.value AND b.value < c.value")


# Polars ---------------------------------------------------------------------------------------------------------------


def polars_with(streams: dict[str, pa.Table]) -> Frames:
    if pl.thread_pool_size() != 1:
        raise RuntimeError("Polars was imported before benchmarks, and has more than one thread")
    return {name: pl.DataFrame(table) for name, table in streams.items()}


def _events(frame: pl.DataFrame, type_: str, var: str) -> pl.LazyFrame:
    return frame.lazy().filter(pl.col("type") == type_).select(pl.col("ts").alias(var))


def _then(x: pl.LazyFrame, y: pl.LazyFrame, pair: str, last: pl.Expr) -> pl.LazyFrame:
    """Each row of x with the events of y after its last one, up to and with `last`."""
    return x.join_where(y, pl.col(pair[1]) > pl.col(pair[0]), pl.col(pair[1]) <= last)


def polars_w1(frames: Frames) -> pl.DataFrame:
    u, last = frames["u1m"], pl.col("a") + 100
    ab = _then(_events(u, "T0", "a"), _events(u, "T1", "b"), "ab", last)
    return _then(ab, _events(u, "T2", "c"), "bc", last).collect()


def _sliced(frame: pl.DataFrame, *, rising: bool) -> pl.DataFrame:
    def events(type_: str, var: str) -> pl.LazyFrame:
        ts, value = pl.col("ts").alias(var), pl.col("value").alias(f"value_{var}")
        return frame.lazy().filter(pl.col("type") == type_).select(ts, "id", value, k=pl.col("ts") // SLICE)

    def in_two(x: pl.LazyFrame, other: int) -> pl.LazyFrame:
        return x.with_columns(k=pl.concat_list("k", pl.col("k") + other)).explode("k")

    def after(x: pl.LazyFrame, y: pl.LazyFrame, before: str, var: str) -> pl.LazyFrame:
        good = (pl.col(var) > pl.col(before)) & (pl.col(var) <= pl.col("a") + SLICE)
        if rising:
            good &= pl.col(f"value_{before}") < pl.col(f"value_{var}")
        return x.join(y, on=["id", "k"]).filter(good)

    ab = after(in_two(events("T0", "a"), 1), events("T1", "b"), "a", "b")
    return after(ab, in_two(events("T2", "c"), -1), "b", "c").select("a", "b", "c").collect()


def polars_w2(frames: Frames) -> pl.DataFrame:
    return _sliced(frames["u1m"], rising=False)


def polars_w3(frames: Frames) -> pl.DataFrame:
    u = frames["u1m"]
    stops = _events(u, "T3", "stop").sort("stop")
    a = _events(u, "T0", "a").sort("a").join_asof(stops, left_on="a", right_on="stop", strategy="forward")
    a = a.with_columns(last=pl.min_horizontal(pl.col("a") + 100, pl.col("stop")))  # ignores null: no stop
    ab = _then(a, _events(u, "T1", "b"), "ab", pl.col("last"))
    return _then(ab, _events(u, "T2", "c"), "bc", pl.col("a") + 100).select("a", "b", "c").collect()


def _tracks(m: pl.DataFrame) -> pl.LazyFrame:
    last = pl.col("a") + 4999
    ab = _then(_events(m, "t147073", "a"), _events(m, "t56437", "b"), "ab", last)
    abc = _then(ab, _events(m, "t189820", "c"), "bc", last)
    return _then(abc, _events(m, "t531386", "d"), "cd", last)


def polars_w4(frames: Frames) -> pl.DataFrame:
    return _tracks(frames["music1m"]).collect()


def polars_w5(frames: Frames) -> pl.DataFrame:
    return _tracks(frames["music1m"]).group_by("a", "b", "c").agg(pl.col("d").sort()).collect()


def polars_w5_unsorted(frames: Frames) -> pl.DataFrame:
    """W5 where the elements of a set may come in any order, which the engine's never do: a measure for them alone."""
    return _tracks(frames["music1m"]).group_by("a", "b", "c").agg("d").collect()


def polars_w7(frames: Frames) -> pl.DataFrame:
    return _sliced(frames["u1m"], rising=True)


# What they found ------------------------------------------------------------------------------------------------------

DUCKDB: dict[str, Callable[[duckdb.DuckDBPyConnection], str]] = {
    "W1": duckdb_w1,
    "W2": duckdb_w2,
    "W3": duckdb_w3,
    "W4": duckdb_w4,
    "W5": duckdb_w5,
    "W7": duckdb_w7,
}
POLARS: dict[str, Callable[[Frames], pl.DataFrame]] = {
    "W1": polars_w1,
    "W2": polars_w2,
    "W3": polars_w3,
    "W4": polars_w4,
    "W5": polars_w5,
    "W7": polars_w7,
}


def summary(found: Any, con: duckdb.DuckDBPyConnection) -> tuple[int, list[int]]:
    """The number of matches and the sum of the rows of each variable, the elements of sets included."""
    frame = found if isinstance(found, pl.DataFrame) else pl.DataFrame(con.table(found))
    columns = (frame[c].explode() if frame[c].dtype == pl.List else frame[c] for c in frame.columns)
    return frame.height, [int(c.sum()) for c in columns]
