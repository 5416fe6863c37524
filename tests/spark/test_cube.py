"""Cubes on Spark: one pass over the events, and every query gives what the local engine gives."""

from __future__ import annotations

from random import Random

import pytest
from pyspark.sql import SparkSession

import quercus as qc
from quercus.backends.base import Limits
from quercus.backends.spark.cube import run_cube
from quercus.backends.spark.sharing import Options
from quercus.errors import DataError, QueryError
from tests.cube.workloads import ATTRIBUTES, workload
from tests.spark.bags import ORDER, bag, frame
from tests.spark.test_conformance import each

SCHEMA = qc.Schema({"id": "int64", "v": "int64"}, hierarchy={"X": ["A", "B"]}, order=ORDER)
QUERIES = {
    "ab": "PATTERN SEQ(A a, B b) WITHIN 20",
    "abc": "PATTERN SEQ(A a, B b, C c) WITHIN 20",
    "xc": "PATTERN SEQ(X x, C c) WITHIN 10",
    "late": "PATTERN SEQ(A a, !B b) WITHIN 5",
    "sets": "PATTERN SEQ(A a, B+ b, C c) WITHIN 12",
    "count": "PATTERN SEQ(A a, B b) WITHIN 20 AGG COUNT(*) AS n, AVG(b.v) AS mean",
    "groups": "PATTERN SEQ(X a, C b) WITHIN 9 AGG COUNT(*) AS n, MAX(b.v) AS most GROUPBY a.id",
}


def events_of(n: int, seed: int) -> list[dict[str, object]]:
    r, ts, found = Random(seed), 0, []
    for _ in range(n):
        ts += r.choice([0, 1, 1, 2])
        found.append({"ts": ts, "type": r.choice("ABCD"), "id": r.choice([1, 2, 3, None]), "v": r.randint(0, 9)})
    return found


def compared(cube: qc.Cube, found: object, events: object) -> int:
    assert list(found) == list(cube.names)  # type: ignore[call-overload]
    some = 0
    for name, plan in cube.plans.items():
        mine, own = found[name].toArrow(), plan.run(events).to_arrow()  # type: ignore[index]
        assert mine.column_names == own.column_names
        assert bag(mine) == bag(own), (name, plan.text)
        some += len(own)
    return some


@pytest.mark.parametrize("borders", [(), (40,), (13, 14, 60, 200)])
def test_slices_of_time_for_all_queries(spark: SparkSession, borders: tuple[int, ...]) -> None:
    events = events_of(200, 1)
    cube = qc.cube(QUERIES, SCHEMA)
    found = cube._run_on_spark(frame(spark, events, SCHEMA), None, Limits(), borders=borders)
    assert compared(cube, found, events) > 500
    assert found.said[0].startswith("by time: ab has no key")
    found.unpersist()


def test_a_key_that_all_queries_have(spark: SparkSession) -> None:
    events = events_of(200, 2)
    queries = {n: q.replace(" WITHIN", " PARTITION BY id WITHIN") for n, q in QUERIES.items()}
    cube = qc.cube(queries, SCHEMA)
    found = cube.run(frame(spark, events, SCHEMA))
    assert compared(cube, found, events) > 100
    assert found.said == ("by key: id (declared), 8 partitions, for 7 queries",)
    found.unpersist()


def test_the_events_are_read_once(spark: SparkSession) -> None:
    events = events_of(300, 3)
    found = qc.cube(QUERIES, SCHEMA).run(frame(spark, events, SCHEMA))
    for df in found.values():
        df.count()
    told = found.metrics()
    assert told["events"] - told["halo"] == sum(e["type"] in "ABC" for e in events)
    found.unpersist()


def test_windows_of_events_run_by_themselves(spark: SparkSession) -> None:
    schema = qc.Schema({"id": "int64", "v": "int64"}, order=ORDER)
    events = events_of(120, 4)
    cube = qc.cube({"ab": "PATTERN SEQ(A a, B b) WITHIN 5", "five": "PATTERN SEQ(A a, B b) WITHIN 5 EVENTS"}, schema)
    found = cube.run(frame(spark, events, schema))
    numbered = [{**e, ORDER: i} for i, e in enumerate(events)]
    assert compared(cube, found, numbered) > 20
    assert found.said[-1] == "five by itself: its window counts events of all types"
    found.unpersist()


def test_random_cubes(spark: SparkSession) -> None:
    def one(seed: int) -> int:
        r = Random(seed)
        given = workload(seed, size=r.choice([2, 4, 6]), length=40)
        o = given.options
        schema = qc.Schema(ATTRIBUTES, ties=o.ties, hierarchy=dict(o.hierarchy), order=ORDER)
        share = r.choice(["chase", "top_down", "bottom_up"])
        cube = qc.cube(given.queries, schema, share=share)
        events = [{**e, ORDER: i} for i, e in enumerate(given.events)]
        times = sorted({int(str(e["ts"])) for e in given.events})
        borders = tuple(r.sample(times, min(len(times), r.randint(0, 3))))
        df = frame(spark, given.events, given.schema(), 0)
        options = Options(partitions=r.randint(1, 7), borders=borders, split_keys=False)
        found = run_cube(cube.plans, share, None, df, Limits(), options, qc.cube)
        some = compared(cube, found, events)
        found.unpersist()
        return some

    assert sum(each(one, range(30))) > 100


def test_what_is_refused(spark: SparkSession) -> None:
    cube = qc.cube({"ab": "PATTERN SEQ(A a, B b) WITHIN 5"}, SCHEMA)
    df = frame(spark, events_of(5, 1), SCHEMA)
    with pytest.raises(DataError, match="no column 'type'"):
        cube.run(df.drop("type"))
    with pytest.raises(DataError, match="threads="):
        cube.run(df, threads=2)
    with pytest.raises(DataError, match="takes a Spark DataFrame"):
        cube.run({"ts": [1], "type": ["A"]}, backend="spark")
    stream = spark.readStream.format("rate").load()
    with pytest.raises(QueryError, match="streaming DataFrame"):
        cube.run(stream)
    with pytest.raises(QueryError, match="no order"):
        qc.cube({"q": "PATTERN SEQ(A a, B b) WITHIN 5"}, qc.Schema({}, ties="arrival")).run(df)


def test_events_that_are_no_data_frame_are_refused() -> None:
    with pytest.raises(DataError, match="takes a Spark DataFrame"):
        qc.cube(QUERIES, SCHEMA).run(events_of(10, 1), backend="spark")
