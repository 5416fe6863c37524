"""A plan over Spark's Structured Streaming: first over files that come one by one, then over the rate source.

A tool that was washed must be used within the hour. The match is held back until the hour is over, and comes when the
watermark says so, even if nothing more is heard of that tool.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import quercus as qc
from quercus.backends import spark

SCHEMA = qc.Schema({"ts": "timestamp", "id": "int64"}, time="ts", type="type")
UNUSED = "PATTERN SEQ(Wash w, !Operate o) WITHIN 1 hour PARTITION BY id RETURN w.id AS tool, w.ts AS washed"
PAIRS = "PATTERN SEQ(Wash w, Operate o, [id]) WITHIN 5 s RETURN w.id AS tool, w.ts AS washed, o.ts AS used"
FILES = (
    "08:00 Wash 7, 08:05 Wash 9, 08:20 Operate 7",
    "08:30 Recycle 4, 08:25 Wash 4, 08:40 Operate 4",  # out of order, within the ten minutes of the watermark
    "09:30 Recycle 4",  # nothing about tool 9: the watermark alone decides
)


def over_files(session: SparkSession, folder: Path) -> None:
    """Each file is a batch. The second start goes on from the checkpoint of the first."""
    plan = qc.compile(UNUSED, SCHEMA)
    (folder / "in").mkdir()
    for number, text in enumerate(FILES):
        words = (item.split() for item in text.split(", "))
        rows = [{"ts": f"2026-01-05T{clock}:00Z", "type": kind, "id": int(tool)} for clock, kind, tool in words]
        (folder / "in" / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))
        events = session.readStream.schema("ts timestamp, type string, id long").json(str(folder / "in"))
        found = spark.run(plan, events.withWatermark("ts", "10 minutes"), groups=2)
        out = found.writeStream.format("parquet").option("path", str(folder / "out"))
        query = out.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
        print(f"after file {number}: {session.read.parquet(str(folder / 'out')).count()} tools unused")
    for row in session.read.parquet(str(folder / "out")).collect():
        print(f"tool {row.tool}, washed at {row.washed:%H:%M}")


def rated(session: SparkSession) -> DataFrame:
    """A thousand events a second: 50 tools, washed and used in turns."""
    rate = session.readStream.format("rate").option("rowsPerSecond", 1000).load()
    kind = f.when((f.col("value") / 50).cast("long") % 2 == 0, "Wash").otherwise("Operate")
    return rate.select(f.col("timestamp").alias("ts"), kind.alias("type"), (f.col("value") % 50).alias("id"))


def over_rate(session: SparkSession, folder: Path) -> None:
    plan = qc.compile(PAIRS, SCHEMA)
    found = plan.run(rated(session).withWatermark("ts", "1 second"))
    counted = found.writeStream.format("memory").queryName("pairs")
    query = counted.option("checkpointLocation", str(folder / "rate")).start()
    try:
        while not session.table("pairs").count():
            if query.awaitTermination(1):
                raise RuntimeError("the stream has ended")
    finally:
        query.stop()
    late = session.table("pairs").where("used <= washed").count()
    print(f"pairs were found, {late} of them in the wrong order")


def main() -> None:
    session = spark.session("local[2]")
    with tempfile.TemporaryDirectory() as folder:
        over_files(session, Path(folder))
        over_rate(session, Path(folder))
    session.stop()


if __name__ == "__main__":
    main()
