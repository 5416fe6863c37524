"""The jobs that benchmarks/spark.py compares, and their clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from attrs import define, field

import quercus as qc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = qc.Schema({"id": "int64"}, time_unit="ms")
_OUT = "RETURN a.ts AS first, b.ts AS middle, c.ts AS last"
W1 = f"PATTERN SEQ(T0 a, T1 b, T2 c) WITHIN 100 ms {_OUT}"
W2 = f"PATTERN SEQ(T0 a, T1 b, T2 c, a.id = b.id = c.id) WITHIN {{window}} ms {_OUT}"
TICKS = os.sysconf("SC_CLK_TCK")


class Answer(NamedTuple):
    """How many matches there are, and the sum of all their times."""

    count: int
    total: int


def summed(df: DataFrame) -> Answer:
    """Run a job to its end. Adding up costs Spark next to nothing, and shows whether two jobs found the same."""
    from pyspark.sql import functions as f

    row = df.agg(f.count("*"), f.sum(f.col("first") + f.col("middle") + f.col("last"))).head()
    assert row is not None
    return Answer(row[0], row[1] or 0)


def emptied(plan: qc.Plan, df: DataFrame) -> DataFrame:
    """The job of `plan.run(df)` up to the workers, which take their events and find nothing."""
    from quercus.backends.spark.batch import plainly_named
    from quercus.backends.spark.sharing import Options, share_out

    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield from ()

    shared = share_out(plan, df, Options())
    return plainly_named(shared.events).mapInArrow(nothing, "first long, middle long, last long")


def applied(plan: qc.Plan, df: DataFrame) -> DataFrame:
    """What one would write without a backend: the local engine on the frame of each key."""
    text = plan.to_json()

    def found(frame: Any) -> Any:
        return _plan(text).run(frame).to_pandas()

    needed = df.where("type in ('T0', 'T1', 'T2')").select("ts", "type", "id")
    return needed.groupBy("id").applyInPandas(found, "first long, middle long, last long")


_plans: dict[str, qc.Plan] = {}


def _plan(text: str) -> qc.Plan:
    """Read once in each process."""
    if text not in _plans:
        _plans[text] = qc.Plan.from_json(text)
    return _plans[text]


def joined(df: DataFrame, window: int) -> DataFrame:
    """W2 as joins of the table with itself."""
    df.createOrReplaceTempView("events")
    return df.sparkSession.sql(f"""
        SELECT a.ts AS first, b.ts AS middle, c.ts AS last
        FROM events a
        JOIN events b ON b.id = a.id AND b.type = 'T1' AND b.ts > a.ts AND b.ts <= a.ts + {window}
        JOIN events c ON c.id = b.id AND c.type = 'T2' AND c.ts > b.ts AND c.ts <= a.ts + {window}
        WHERE a.type = 'T0'
    """)


def joined_plainly(df: DataFrame, window: int) -> DataFrame:
    """W1 as one writes it first: joins on times alone, which Spark runs as nested loops."""
    df.createOrReplaceTempView("events")
    return df.sparkSession.sql(f"""
        WITH a AS (SELECT ts FROM events WHERE type = 'T0'),
             b AS (SELECT ts FROM events WHERE type = 'T1'),
             c AS (SELECT ts FROM events WHERE type = 'T2')
        SELECT a.ts AS first, b.ts AS middle, c.ts AS last
        FROM a JOIN b ON b.ts > a.ts AND b.ts <= a.ts + {window}
               JOIN c ON c.ts > b.ts AND c.ts <= a.ts + {window}
    """)


def joined_by_time(df: DataFrame, window: int) -> DataFrame:
    """W1 the same way. Conditions on time alone would compare all pairs; so time is cut into buckets of a window's
    length, and each event is joined with those of its own bucket and of the next."""
    df.createOrReplaceTempView("events")
    return df.sparkSession.sql(f"""
        WITH a AS (SELECT ts, explode(array(ts div {window}, ts div {window} + 1)) AS near
                   FROM events WHERE type = 'T0'),
             b AS (SELECT ts, ts div {window} AS near FROM events WHERE type = 'T1'),
             c AS (SELECT ts, ts div {window} AS near FROM events WHERE type = 'T2'),
             ab AS (SELECT a.ts AS first, b.ts AS middle,
                           explode(array(a.ts div {window}, a.ts div {window} + 1)) AS near
                    FROM a JOIN b ON a.near = b.near AND b.ts > a.ts AND b.ts <= a.ts + {window})
        SELECT ab.first, ab.middle, c.ts AS last
        FROM ab JOIN c ON ab.near = c.near AND c.ts > ab.middle AND c.ts <= ab.first + {window}
    """)


@define
class Clock:
    """Wall and CPU seconds by name, the least of all turns."""

    walls: dict[str, float] = field(factory=dict)
    cpus: dict[str, float] = field(factory=dict)

    def time(self, name: str, action: Callable[[], Any]) -> None:
        cpu, wall = children_seconds(), time.perf_counter()
        action()
        wall, cpu = time.perf_counter() - wall, children_seconds() - cpu
        self.walls[name] = min(wall, self.walls.get(name, wall))
        self.cpus[name] = min(cpu, self.cpus.get(name, cpu))

    def told(self) -> dict[str, dict[str, float]]:
        return {name: {"wall": self.walls[name], "cpu": self.cpus[name]} for name in self.walls}


def children_seconds() -> float:
    """CPU seconds of all processes below this one, those that have ended included; 0 where there is no /proc."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended just now
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        spent[pid] = sum(map(int, fields[11:15])) / TICKS  # user and system, its own and of its ended children
    me, total = os.getpid(), 0.0
    for pid in parents:
        above = parents[pid]
        while above not in (0, me):
            above = parents.get(above, 0)
        if above == me:
            total += spent[pid]
    return total
