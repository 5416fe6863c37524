"""A driver program for the tests of a cluster: python -m tests.spark.cluster_job TASK MASTER FOLDER

It writes what it found to FOLDER/answer.json. The events are made on the executors, slowly if asked, and each task
leaves a file in FOLDER/marks when it starts, so that a test knows when the job is in the middle.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import quercus as qc
from quercus.backends.spark import run, session, ship
from quercus.backends.spark.ship import check, settings, workers
from quercus.errors import NotInstalled
from tests.spark.stream_files import Files
from tests.spark.stream_job import plan as stream_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS, PARTS = 2_400, 8
SCHEMA = qc.Schema({"id": "int64"}, time="ts", type="type", time_unit="s")
KEYED = "PATTERN SEQ(A a, !C c, B b, [id]) WITHIN 120 s RETURN a.ts AS first, b.ts AS last, a.id AS id"
UNKEYED = "PATTERN SEQ(A a, !C c, B b) WITHIN 5 s RETURN a.ts AS first, b.ts AS last, b.id AS id"
SMALL = {"spark.executor.memory": "512m", "spark.driver.memory": "512m", "spark.ui.enabled": False}


def event(i: int) -> dict[str, Any]:
    """The i-th event of the stream; nothing but arithmetic, so that every try of a task makes the same."""
    mixed = i * 0x9E3779B97F4A7C15 % 2**64
    mixed = (mixed ^ mixed >> 31) * 0xBF58476D1CE4E5B9 % 2**64
    mixed ^= mixed >> 29
    return {"ts": i, "type": "ABCD"[mixed & 3], "id": (mixed >> 2) % 7}


def made_there(spark: SparkSession, folder: Path, seconds: float = 0.0) -> DataFrame:
    """The events as a DataFrame of `PARTS` partitions, each of which takes so many seconds to make."""
    marks = str(folder / "marks")
    Path(marks).mkdir(exist_ok=True)

    # Sent by value, like all functions of a program's main module: the executors see no tests.
    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time
        from pathlib import Path

        import pyarrow as pa
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        Path(marks, f"{task.stageId()}-{task.partitionId()}-{task.taskAttemptId()}").touch()
        time.sleep(seconds)
        for batch in batches:
            yield pa.RecordBatch.from_pylist([event(i) for i in batch.column(0).to_pylist()])

    return spark.range(0, EVENTS, 1, PARTS).mapInArrow(make, "ts long, type string, id long")


def by_hand(plan: qc.Plan, df: DataFrame) -> DataFrame:
    """The plan over each partition's keys, as one would write it with `mapInArrow`; Quercus is imported over there."""
    text = plan.to_json()

    def matched(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        import quercus as qc

        found = list(batches)
        if found:
            yield from qc.Plan.from_json(text).run(pa.Table.from_batches(found)).to_arrow().to_batches()

    return df.repartition(PARTS, "id").mapInArrow(matched, "first long, last long, id long")


def rows(df: DataFrame) -> list[list[int]]:
    return sorted([r["first"], r["last"], r["id"]] for r in df.collect())


def streamed(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """A stream over the files that are in FOLDER, one batch each, to its end; its answer as Spark reads it."""
    files = Files(spark, folder)
    progress = files.run(run(stream_plan(), files.read(), groups=4))
    return {"batches": len(progress), "found": files.found()}


def main(task: str, master: str, folder: Path) -> None:
    config = SMALL | ({"spark.sql.shuffle.partitions": 2} if task == "stream" else {})
    config |= settings(folder / "packed", dependencies=True) if task == "from the start" else {}
    spark = session(master, app=task, config=config)
    try:
        answer: dict[str, Any] = {"missing before": sorted({name for w in workers(spark) for name in w.missing})}
        if task != "from the start":
            try:
                check(spark)
            except NotInstalled as e:
                answer["said"] = str(e)
            ship(spark)
            ship(spark)
        answer["missing after"] = sorted({name for w in workers(spark) for name in w.missing})
        if task == "stream":
            answer |= streamed(spark, folder)
            (folder / "answer.json").write_text(json.dumps(answer))
            return
        df = made_there(spark, folder, seconds=1.5 if task == "slow" else 0.0)
        if task == "slow":
            answer["keyed"] = rows(qc.compile(KEYED, SCHEMA).run(df))
        else:
            answer["by hand"] = rows(by_hand(qc.compile(KEYED, SCHEMA), df))
            answer["keyed"] = rows(qc.compile(KEYED, SCHEMA).run(df))
            answer["unkeyed"] = rows(qc.compile(UNKEYED, SCHEMA).run(df))
        (folder / "answer.json").write_text(json.dumps(answer))
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
