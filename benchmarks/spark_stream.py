"""Rows a second and bytes of state of a Spark stream, for several numbers of groups.

A SEQ of 3 of 20 types with equal ids, 10,000 keys, events up to five seconds out of order. One file is one batch; the
first two batches, in which workers start, are left out of the rate.

    python benchmarks/spark_stream.py [rows of a batch] [batches] [groups ...]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import SparkSession

import quercus as qc
from quercus.backends import spark

KEYS, TYPES, RATE = 10_000, 20, 50_000  # events a second of event time
SCHEMA = qc.Schema({"ts": "timestamp", "id": "int64"}, time="ts", type="type")
QUERY = "PATTERN SEQ(T0 a, T1 b, T2 c, [id]) WITHIN 30 s RETURN a.id AS id, a.ts AS first, c.ts AS last"


def write(folder: Path, rows: int, batches: int) -> None:
    random = np.random.default_rng(1)
    names = pa.array([f"T{i}" for i in range(TYPES)])
    for number in range(batches):
        at = (np.arange(number * rows, (number + 1) * rows) * 10**6) // RATE + 10**9
        late = at - random.integers(0, 5 * 10**6, rows)
        table = pa.table(
            {
                "ts": pa.array(late, pa.timestamp("us", tz="UTC")),
                "type": names.take(pa.array(random.integers(0, TYPES, rows))),
                "id": random.integers(0, KEYS, rows),
                "payload": pa.array(random.random(rows)),
            }
        )
        pa.parquet.write_table(table, folder / f"{number:04d}.parquet")


def measured(session: SparkSession, folder: Path, groups: int) -> str:
    events = session.readStream.schema("ts timestamp, type string, id long, payload double")
    events = events.option("maxFilesPerTrigger", 1).parquet(str(folder / "in")).withWatermark("ts", "10 seconds")
    found = spark.run(qc.compile(QUERY, SCHEMA), events, groups=groups)
    out = found.writeStream.format("parquet").option("path", str(folder / f"out{groups}"))
    query = out.option("checkpointLocation", str(folder / f"checkpoint{groups}")).trigger(availableNow=True).start()
    query.awaitTermination()
    done = [p for p in query.recentProgress if p["numInputRows"]][2:]
    took = [p["durationMs"]["triggerExecution"] / 1000 for p in done]
    rows = sum(p["numInputRows"] for p in done)
    state = done[-1]["stateOperators"][0]
    size = state["customMetrics"].get("rocksdbTotalBytesWritten", 0)
    matches = session.read.parquet(str(folder / f"out{groups}")).count()
    return (
        f"{groups:>6} {rows / sum(took):>12,.0f} {statistics.median(took):>10.2f} {state['memoryUsedBytes']:>14,} "
        f"{size:>14,} {matches:>10,}"
    )


def main(rows: int, batches: int, groups: list[int]) -> None:
    config = {"spark.sql.shuffle.partitions": 2, "spark.driver.memory": "3g"}
    session = spark.session("local[2]", config=config)
    print(f"{rows:,} rows a batch, {batches} batches")
    print("groups       rows/s  s a batch  bytes in memory  bytes written    matches")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "in").mkdir()
        write(folder / "in", rows, batches)
        for count in groups:
            print(measured(session, folder, count), flush=True)
    session.stop()


if __name__ == "__main__":
    given = [int(a) for a in sys.argv[1:]]
    main(given[0] if given else 500_000, given[1] if len(given) > 1 else 8, given[2:] or [2, 8, 32])
