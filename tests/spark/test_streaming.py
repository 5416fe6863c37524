"""Plans over streaming DataFrames: what comes out is what the local engine finds in the same events."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import quercus as qc
from quercus.backends.spark.streaming import PROVIDER, ROCKSDB, run_stream
from tests.spark.stream_files import COLUMNS, END, SCHEMA, SECOND, Files, bag, disordered, drawn, local, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    return Files(spark, tmp_path)


def compared(files: Files, query: str, rows: list[dict[str, Any]], cuts: int, **options: Any) -> None:
    """A query over some files out of order, and a last one that only moves the watermark."""
    plan = qc.compile(query, SCHEMA)
    expected = local(plan, rows)
    assert expected
    given = disordered(rows, 1, 9 * SECOND)
    size = -(-len(given) // cuts)
    for i in range(0, len(given), size):
        files.add(given[i : i + size])
    files.add([END])
    files.run(run_stream(plan, files.read(), **options))
    assert files.found() == expected


def test_keys_out_of_order_and_restarts_one_in_another_shape(files: Files) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, C c, [id]) WITHIN 20 s", SCHEMA)
    rows = drawn(1, 240)
    given = disordered(rows, 2, 9 * SECOND)
    files.add(given[:100])
    files.run(run_stream(plan, files.read(), groups=4))
    before = sum(files.found().values())
    files.add(given[100:170])
    progress = files.run(run_stream(plan, files.read(), groups=4))
    files.add([*given[170:], END])
    other_shape = qc.compile(plan.text, SCHEMA, shape="right")
    progress += files.run(run_stream(other_shape, files.read(), groups=4))
    expected = local(plan, rows)
    assert 0 < before < sum(expected.values())
    assert files.found() == expected
    assert sum(p["stateOperators"][0]["numRowsDroppedByWatermark"] for p in progress) == 0
    assert progress[-1]["stateOperators"][0]["numRowsTotal"] == 4


def test_what_is_held_back_comes_with_the_watermark_alone(files: Files) -> None:
    """After the last event of the pattern's types there is only one of another type, which belongs to no group."""
    query = "PATTERN SEQ(A a, B+ b, !C c, [id]) WITHIN 20 s RETURN a.id, count(b) AS n, last(b).ts AS till"
    compared(files, query, drawn(3, 120), 1, groups=4)


def test_totals_in_update_mode(files: Files) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 20 s AGG COUNT(*) AS n, SUM(b.x) AS x GROUPBY a.id", SCHEMA)
    rows = drawn(4, 150)
    given = disordered(rows, 5, 9 * SECOND)
    files.add(given[:70])
    files.add([*given[70:], END])
    files.run(run_stream(plan, files.read(), groups=4), "update")
    last: dict[Any, Any] = {}
    for batch in files.batches():
        assert len({row["a.id"] for row in batch}) == len(batch)
        last |= {row["a.id"]: row for row in batch}
    expected = plan.run(table(rows).drop_columns(["n"])).to_arrow().to_pylist()
    assert sorted(map(repr, last.values())) == sorted(map(repr, expected))


def test_windows_of_events_in_one_group(files: Files) -> None:
    with pytest.warns(UserWarning, match="runs as one group"):
        compared(files, "PATTERN SEQ(A a, B b, C c) WITHIN 5 EVENTS", drawn(6, 120), 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, !B b, C c) WITHIN 3 EVENTS PARTITION BY id",
        "PATTERN SEQ(A a, B+ b, C c) WITHIN 9 s PARTITION BY s, id",
        "PATTERN OR(SEQ(A a, B b), SEQ(A a, !C c)) WITHIN 5 s PARTITION BY id",
        "PATTERN AND(A a, B b, !C c, [id]) WITHIN 8 s",
        "PATTERN SEQ(A a, B[2] b, !SEQ(C c, D d), [s]) WITHIN 6 s RETURN a, count(b) AS n, a.x + 1 AS y",
        "PATTERN SEQ(!A a, B b) WITHIN 4 s PARTITION BY id",
    ],
)
def test_more_queries(files: Files, query: str) -> None:
    compared(files, query, drawn(len(query), 300), 4, groups=3)


@pytest.mark.slow
def test_late_events_are_dropped_and_counted(files: Files) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 20 s", SCHEMA)
    rows, late = drawn(8, 60), {"ts": 5 * SECOND, "type": "A", "id": 1, "x": 1.0, "s": None, "n": 999}
    for some in (rows[:30], rows[30:], [late, END]):  # late is what lies before the watermark of the batch before
        files.add(some)
    progress = files.run(run_stream(plan, files.read(), groups=2))
    assert sum(p["stateOperators"][0]["numRowsDroppedByWatermark"] for p in progress) == 1
    assert files.found() == local(plan, rows)


@pytest.mark.slow
def test_late_events_are_kept_if_asked_for(files: Files) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 20 s RETURN a.id, b.x", SCHEMA)
    rows, late = drawn(8, 60), {"ts": 5 * SECOND, "type": "A", "id": 1, "x": 1.0, "s": None, "n": 999}
    for some in (rows[:30], rows[30:], [late, END]):  # late is what lies before the watermark of the batch before
        files.add(some)
    files.run(run_stream(plan, files.read(), groups=2, late="keep"))
    answer = files.spark.read.parquet(str(files.folder / "out"))
    [kept] = answer.where("late is not null").select("late.*").toArrow().to_pylist()
    assert {k: v for k, v in kept.items() if k != "ts"} == {"type": "A", "id": 1, "x": 1.0}  # what the plan reads
    assert kept["ts"].timestamp() == 5
    assert bag(answer.where("late is null").drop("late").toArrow()) == local(plan, rows)


# what is refused ------------------------------------------------------------------------------------------------------


def test_another_plan_or_number_of_groups_at_a_restart(files: Files) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 20 s RETURN a.id", SCHEMA)
    files.add([{"ts": SECOND, "type": "A", "id": 1, "x": None, "s": None, "n": 0}])
    files.run(run_stream(plan, files.read(), groups=2))
    files.add([{"ts": SECOND, "type": "A", "id": i, "x": None, "s": None, "n": i} for i in range(20)])
    other = qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 21 s RETURN a.id", SCHEMA)
    for wrong, groups, why in (
        (other, 2, "belongs to another query or schema"),
        (plan, 1, "made with groups=2, not 1"),
        (plan, 4, "groups="),
    ):
        with pytest.raises(Exception, match=why):
            files.run(run_stream(wrong, files.read(), groups=groups))
    files.run(run_stream(plan, files.read(), groups=2))


def test_an_event_without_a_time_stops_the_stream(files: Files) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 20 s", SCHEMA)
    files.add([{"ts": None, "type": "A", "id": 1, "x": None, "s": None, "n": 0}])
    with pytest.raises(Exception, match="column 'ts': an event without a time"):
        files.run(run_stream(plan, files.read(), groups=2))


def test_what_is_seen_before_the_start(files: Files) -> None:
    keyed = "PATTERN SEQ(A a, B b, [id]) WITHIN 20 s"
    plan, df = qc.compile(keyed, SCHEMA), files.read()
    raw = files.spark.readStream.schema(COLUMNS).parquet(str(files.folder / "in"))
    with pytest.raises(qc.DataError, match=r"no watermark on 'ts'.*withWatermark"):
        run_stream(plan, raw)
    with pytest.raises(qc.DataError, match=r"no watermark on 'ts' .the watermark is on 'u'"):
        run_stream(plan, raw.withColumn("u", raw.ts).withWatermark("u", "1 second"))
    with pytest.raises(qc.DataError, match="no column 'x'"):
        run_stream(plan, df.drop("x"))
    with pytest.raises(qc.DataError, match="only a timestamp can have a watermark"):
        run_stream(qc.compile(keyed, qc.Schema({"id": "int64"})), raw.withColumn("ts", raw.n))
    with pytest.raises(qc.DataError, match="'id'"):
        run_stream(plan, df.withColumn("id", df.s))
    with pytest.raises(qc.DataError, match="late='later'"):
        run_stream(plan, df, late="later")  # type: ignore[arg-type]
    arrival = qc.compile(keyed, qc.Schema({"ts": "timestamp[us]", "id": "int64"}, ties="arrival"))
    with pytest.raises(qc.QueryError, match=r"(?s)come in no order.*Schema\(order=\)"):
        run_stream(arrival, df)
    with pytest.raises(qc.DataError, match="groups=0"):
        run_stream(plan, df, groups=0)
    files.spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(qc.DataError, match="RocksDB"):
            run_stream(plan, df)
    finally:
        files.spark.conf.set(PROVIDER, ROCKSDB)


def test_a_group_has_the_hash_that_spark_gives_it(spark: SparkSession) -> None:
    import numpy as np

    from quercus.backends.spark.stream_groups import spark_hash

    numbers = [0, 1, -1, 7, 12345, 2**31 - 1, -(2**31)]
    rows = spark.createDataFrame([(n,) for n in numbers], "n int").selectExpr("hash(n) AS h").collect()
    assert [row.h for row in rows] == spark_hash(np.array(numbers, np.int32)).tolist()


@pytest.mark.slow
def test_the_example_runs() -> None:
    """In a process of its own, since it stops its session."""
    root = Path(__file__).parent.parent.parent
    told = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, root / "examples" / "spark_stream.py"]
    for _ in range(5):
        done = subprocess.run(command, env=told, capture_output=True, check=False, text=True)
        if "Python worker failed to connect back" not in done.stderr:  # Spark gave up on a busy machine: start it again
            break
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        "after file 0: 0 tools unused",
        "after file 1: 0 tools unused",
        "after file 2: 1 tools unused",
        "tool 9, washed at 08:05",
        "pairs were found, 0 of them in the wrong order",
    ]
