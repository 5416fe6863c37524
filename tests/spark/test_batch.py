"""Plans over whole DataFrames, held to the local engine."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import quercus as qc
from quercus.backends.spark import explain, metrics, run
from quercus.backends.spark.sharing import Options, share_out
from quercus.backends.spark.task import PLACE
from quercus.errors import DataError, QueryError
from tests.spark.bags import ORDER, frame, same

SCHEMA = qc.Schema({"id": "int64", "x": "float64"}, order=ORDER)


def trades(n: int = 400, seed: int = 1, types: str = "ABCD", keys: int = 4, span: int = 900) -> pa.Table:
    r = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.sort(r.integers(0, span, n)),
            "type": r.choice(list(types), n),
            "id": r.integers(0, keys, n),
            "x": r.random(n),
        }
    )


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return trades()


@pytest.fixture(scope="module")
def df(spark: SparkSession, events: pa.Table) -> Any:
    return frame(spark, events, SCHEMA).cache()


CUTS: tuple[dict[str, Any], ...] = ({"slices": 1}, {"slices": 4}, {"borders": (0, 17, 18, 450, 899, 5000)})


@pytest.mark.parametrize("cut", CUTS, ids=["one", "four", "odd"])
@pytest.mark.parametrize(
    "pattern",
    [
        "SEQ(A a, B b) WITHIN 20 ms",
        "SEQ(A a, !C c, B b, D d) WITHIN 40 ms",
        "SEQ(!A a, B b) WITHIN 9 ms",
        "SEQ(A a, !B b) WITHIN 9 ms",
        "SEQ(A a, B+ b) WITHIN 15 ms",
        "SEQ(A+ a, B b, !C c) WITHIN 15 ms",
        "AND(A a, B b, !C c) WITHIN 6 ms",
        "OR(SEQ(A a, B b), SEQ(C c, D d, !A e)) WITHIN 7 ms",
        "B+ b WITHIN 5 ms",
        "SEQ(A a, B b, C c) WITHIN 12 EVENTS",
        "SEQ(A a, B+ b, !C c) WITHIN 7 EVENTS",
        "SEQ(A a, SEQ(B b, C c) WITHIN 3 EVENTS, D d) WITHIN 60 ms",
        "OR(AND(A a, B[1] b), SEQ(C c, B d)) WITHIN 3 EVENTS WITHIN 60 ms",
    ],
)
def test_slices_of_time(df: Any, events: pa.Table, pattern: str, cut: dict[str, Any]) -> None:
    assert same(qc.compile(f"PATTERN {pattern}", SCHEMA), df, events, **cut) > 10


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        ("SEQ(A a, B b, !C c, D d, [id]) WITHIN 90 ms", None),
        ("SEQ(A a, B+ b, a.id = b.id) WITHIN 90 ms", None),
        ("SEQ(A a, A b, a.type = b.type) WITHIN 20 ms", None),
        ("AND(OR((A[1] a & B b, a.id = b.id)) WITHIN 4 EVENTS) WITHIN 90 ms", None),
        ("SEQ(A a, B b, !C c) WITHIN 90 ms", "id"),
        ("SEQ(A a, B b) WITHIN 4 EVENTS", "id"),
        ("AND(A a, B b) WITHIN 30 ms PARTITION BY id", None),
        ("SEQ(A a, A b) WITHIN 3 EVENTS PARTITION BY type, id", None),
    ],
)
@pytest.mark.parametrize("options", [{}, {"partitions": 1}, {"partitions": 7}, {"partitions": 2, "split_keys": True}])
def test_keys(df: Any, events: pa.Table, pattern: str, key: str | None, options: dict[str, Any]) -> None:
    schema = qc.Schema({"id": "int64", "x": "float64"}, order=ORDER, key=key)
    assert same(qc.compile(f"PATTERN {pattern}", schema), df, events, **options) > 10


@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, !B b, [id]) AGG COUNT(*) AS n WITHIN 9 ms",
        "SEQ(!B b, A a, [id]) AGG COUNT(*) AS n GROUPBY a.id WITHIN 9 ms",
        "AND(A a, !B b, [id]) AGG COUNT(*) AS n WITHIN 9 ms",
        "SEQ(A+ a, !B b, [id]) WITHIN 9 ms",
        "SEQ(A a, !SEQ(B b, A c), [id]) AGG COUNT(*) AS n WITHIN 9 ms",
        "SEQ(A a, B b, !C c, [id]) WITHIN 90 ms",
    ],
)
def test_events_without_a_key(spark: SparkSession, query: str) -> None:
    """An event alone agrees with nobody on a key, so that it may have none, and nothing that has one violates it."""
    r = Random(9)
    table = trades(150, span=200)
    table = table.set_column(2, "id", pa.array([r.choice((None, 0, 1, 2)) for _ in range(150)], pa.int64()))
    plan = qc.compile(f"PATTERN {query}", SCHEMA)
    assert plan.tree.key is not None
    for options in ({"partitions": 3}, {"partitions": 4, "split_keys": True}):
        assert same(plan, frame(spark, table, SCHEMA, 0), table, **options)


def test_keys_of_several_names(spark: SparkSession) -> None:
    r = np.random.default_rng(2)
    n = 300
    table = trades(n).append_column("ref", pa.array(r.integers(0, 4, n)))
    schema = qc.Schema({"id": "int64", "x": "float64", "ref": "int64"}, order=ORDER)
    made = frame(spark, table, schema)
    plan = qc.compile("PATTERN SEQ(A a, B b, C c, a.id = b.ref, b.ref = c.id) WITHIN 90 ms", schema)
    assert same(plan, made, table) > 10
    assert "id or ref, by type (found)" in explain(plan, made)
    itself = qc.compile("PATTERN SEQ(A a, A b, a.id = b.ref) WITHIN 90 ms", schema)
    assert same(itself, made, table, slices=3) > 10
    assert "by time: events of one type have their key in several attributes" in explain(itself, made)


def test_columns_may_have_any_name(spark: SparkSession) -> None:
    """Also those that the look at the events uses."""
    table = trades().rename_columns(["at", "n", "some", "k0"])
    schema = qc.Schema({"some": "int64", "k0": "float64"}, time="at", type="n", order=ORDER)
    made = frame(spark, table, schema, 0)
    for pattern in ("SEQ(A a, B b, [some]) WITHIN 20 ms", "SEQ(A a, B b) WITHIN 20 ms"):
        assert same(qc.compile(f"PATTERN {pattern}", schema), made, table, slices=3, split_keys=True) > 10


def test_a_hot_key_is_cut_into_slices(spark: SparkSession) -> None:
    r = np.random.default_rng(3)
    table = trades(3000, span=20_000)
    ids = np.where(r.random(3000) < 0.7, 7, r.integers(0, 200, 3000))
    table = table.set_column(2, "id", pa.array(ids))
    made = frame(spark, table, SCHEMA)
    plan = qc.compile("PATTERN SEQ(A a, B b, !C c, [id]) WITHIN 60 ms", SCHEMA)
    assert same(plan, made, table, partitions=6, split_keys=True) > 100
    text = explain(plan, made, partitions=6, split_keys=True)
    assert "key 7 has very many events" in text
    assert "very many" not in explain(plan, made, partitions=6, split_keys=False)
    assert "key 7 has very many events" in explain(plan, made, split_keys=True)
    assert "id (found), 2 partitions" in explain(plan, made)  # one for each core: there are few events


@pytest.mark.parametrize("cut", CUTS, ids=["one", "four", "odd"])
@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, B b, C c) AGG COUNT(*) AS n, SUM(a.id) AS s, MIN(b.x) AS low, MAX(c.x) AS high WITHIN 30 ms",
        "SEQ(A a, B b) AGG AVG(a.x) AS m, COUNT(b) AS n GROUPBY a.id WITHIN 30 ms",
        "SEQ(A a, !C c, B b) AGG COUNT(*) AS n GROUPBY a.id, b.id WITHIN 30 ms",
        "SEQ(A a, B b, a.x < b.x) AGG COUNT(*) AS n, MAX(a.ts) AS t WITHIN 30 ms",
        "B+ b AGG COUNT(*) AS n, SUM(b.id) AS s WITHIN 5 ms",
        "SEQ(A a, Never b) AGG COUNT(*) AS n, SUM(a.x) AS s WITHIN 30 ms",
        "SEQ(A a, B b) AGG COUNT(*) AS n WITHIN 9 EVENTS",
    ],
)
def test_totals(df: Any, events: pa.Table, query: str, cut: dict[str, Any]) -> None:
    assert same(qc.compile(f"PATTERN {query}", SCHEMA), df, events, **cut)


def test_totals_by_key(df: Any, events: pa.Table) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, [id]) AGG COUNT(*) AS n GROUPBY a.id WITHIN 50 ms", SCHEMA)
    assert same(plan, df, events, partitions=3) == 4


def test_totals_are_not_listed(df: Any) -> None:
    """Matches are as many as a square of the events, and rows of parts one a slice."""
    plan = qc.compile("PATTERN SEQ(A a, B b) AGG COUNT(*) AS n WITHIN 900 ms", SCHEMA)
    found = run(plan, df, borders=(300, 600))
    total = int(found.head()[0])
    assert metrics(found)["matches"] == 3
    assert total > 1000


def test_no_events_at_all(spark: SparkSession) -> None:
    none = trades(0)
    made = frame(spark, none, SCHEMA)
    assert same(qc.compile("PATTERN SEQ(A a, B b) WITHIN 5 ms", SCHEMA), made, none) == 0
    assert same(qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 5 ms", SCHEMA), made, none) == 0
    assert same(qc.compile("PATTERN SEQ(A a, B b) WITHIN 5 EVENTS", SCHEMA), made, none) == 0
    assert same(qc.compile("PATTERN SEQ(A a, B b) AGG COUNT(*) AS n WITHIN 5 ms", SCHEMA), made, none) == 1
    assert same(qc.compile("PATTERN SEQ(A a, B b) AGG COUNT(*) AS n GROUPBY a.id WITHIN 5 ms", SCHEMA), made, none) == 0


# Columns --------------------------------------------------------------------------------------------------------------


def test_moments_names_and_types(spark: SparkSession) -> None:
    """Times with a zone and without, names with dots and spaces, integers as types."""
    table = trades(200, types="123")
    moments = pa.array(np.asarray(table["ts"]) * 1_000_000, pa.timestamp("us"))
    table = table.set_column(0, "when", moments).rename_columns(["when", "the type", "the.id", "x y"])
    schema = qc.Schema(
        {"the.id": "int64", "x y": "float64", "when": "timestamp[us]"}, time="when", type="the type", order=ORDER
    )
    plan = qc.compile('PATTERN SEQ("1" a, "2" b, "3" c) WITHIN 20 s RETURN a, b.ts AS t, c AS c', schema)
    made = frame(spark, table, schema).withColumn("when", f.col("when").cast("timestamp_ntz"))
    assert same(plan, made, table, slices=3) > 10
    zoned = made.withColumn("when", f.col("when").cast("timestamp")).withColumn(
        "the type", f.col("`the type`").cast("int")
    )
    assert same(plan, zoned, table, slices=3) > 10
    assert run(plan, zoned).schema["t"].dataType.typeName() == "timestamp"
    assert run(plan, made).schema["t"].dataType.typeName() == "timestamp_ntz"


def test_only_what_is_needed_leaves_the_files(spark: SparkSession, tmp_path: Any) -> None:
    spark.createDataFrame(trades()).withColumn("payload", f.lit("long")).write.parquet(str(tmp_path / "events"))
    made = spark.read.parquet(str(tmp_path / "events"))
    schema = qc.Schema({"id": "int64", "x": "float64"})
    plan = qc.compile("PATTERN SEQ(A a, B b, a.x > 0.5, b.id in (1, 2)) WITHIN 9 ms RETURN b.id AS i", schema)
    text = explain(plan, made, slices=2, width=400)
    read = next(line for line in text.splitlines() if "ReadSchema" in line)
    assert "payload" not in read
    pushed = next(line for line in text.splitlines() if "PushedFilters" in line)
    assert all(word in pushed for word in ("In(type", "GreaterThan(x,0.5)", "EqualTo(id,1)"))
    assert "shared out" in text
    assert "by time" in text
    ran = plan.explain(analyze=made)
    assert f"rows of the answer    {plan.run(made).count()}" in ran
    assert "rows                  400" in ran
    assert "seconds in the engine" in ran


def test_a_range_of_time_stays_in_the_files(spark: SparkSession, tmp_path: Any) -> None:
    table = trades()
    table = table.set_column(0, "ts", pa.array(np.asarray(table["ts"]) * 1_000_000 + 7, pa.timestamp("us", "UTC")))
    spark.createDataFrame(table).write.parquet(str(tmp_path / "events"))
    made = spark.read.parquet(str(tmp_path / "events"))
    asked = "a.ts > '1970-01-01T00:03:00', b.ts > '1970-01-01T00:03:00', b.ts <= '1970-01-01T00:09:00'"
    for unit in ("us", "ms"):
        schema = qc.Schema({"ts": f"timestamp[{unit}]", "id": "int64", "x": "float64"})
        plan = qc.compile(f"PATTERN SEQ(A a, B b, {asked}) WITHIN 20 s", schema)
        kept = table.set_column(0, "ts", table["ts"].cast(pa.timestamp(unit, "UTC"), safe=False))
        if unit == "us":
            assert same(plan, made, kept, slices=3) > 10
        text = explain(plan, made)
        assert "GreaterThanOrEqual(ts,1970-01-01 00:03:00.0)" in text


def test_the_planner_knows_what_was_counted(df: Any, events: pa.Table) -> None:
    """Statistics come with the look at the events; it is made once, and a plan with its own keeps them."""
    plan = qc.compile("PATTERN SEQ(A a, B b, C c, a.x > 0.9) WITHIN 20 ms", SCHEMA)
    counted = Counter(
        t for t, x in zip(*(events[n].to_pylist() for n in ("type", "x")), strict=True) if t != "A" or x > 0.9
    )
    text = explain(plan, df)
    told = ", ".join(f"{counted[t]} {t}" for t in sorted("ABC", key=lambda t: -counted[t]))
    assert f"planned for {counted['A'] + counted['B'] + counted['C']} events: {told}" in text
    assert plan.tree.cost != plan.made["spark"][next(k for k in plan.made["spark"] if "plan" in k)].tree.cost
    assert same(plan, df, events) > 10
    keyed = qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 20 ms", SCHEMA)
    assert "planned for" in explain(keyed, df)
    given = qc.compile(keyed.text, SCHEMA, stats=qc.Stats(rates={"A": 0.1, "B": 0.1}))
    assert "planned for" not in explain(given, df)
    assert "planned for" not in explain(qc.compile(keyed.text, SCHEMA, shape="left"), df)
    looks = len(plan.made["spark"])
    explain(plan, df)
    assert len(plan.made["spark"]) == looks


def test_what_is_counted(df: Any, events: pa.Table) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 20 ms", SCHEMA)
    found = run(plan, df, borders=(300, 600))
    n = len(found.collect())
    told = metrics(found, rows=True)
    useful = sum(t in "AB" for t in events["type"].to_pylist())
    at = zip(events["ts"].to_pylist(), events["type"].to_pylist(), strict=True)
    halo = sum(280 <= ts < 300 or 580 <= ts < 600 for ts, t in at if t in "AB")
    assert told["seconds"] > 0
    del told["seconds"]
    wanted = {"events": useful + halo, "halo": halo, "matches": n, "tasks": 3}
    assert told == {"rows": len(events), "pruned": len(events) - useful, **wanted}


def test_what_is_pushed_down_lets_nothing_go(spark: SparkSession) -> None:
    """NaN, nulls, infinity and -0.0, in all kinds of conditions."""
    values = [float("nan"), None, float("inf"), -0.0, 0.0, 1.5, -1.5]
    n = 80
    r = Random(5)
    rows = [{"ts": i, "type": r.choice("AB"), "id": r.choice([None, 0, 1]), "x": r.choice(values)} for i in range(n)]
    table = pa.Table.from_pylist(rows, pa.schema({"ts": "int64", "type": "string", "id": "int64", "x": "float64"}))
    made = frame(spark, table, SCHEMA).cache()
    for where in (
        "a.x > 0", "a.x >= 0", "a.x < 0", "a.x <= 0", "a.x = 0", "a.x <> 0", "not (a.x > 1)", "a.x is null",
        "a.id is not null", "a.x in (0, 1.5)", "a.x > 1 or a.id = 1", "a.id = 0 and b.x > 1", "0 < a.x", "a.id < 0.5",
        "a.type = 'A'", "a.ts > 20 and b.ts < 60",
    ):  # fmt: skip
        same(qc.compile(f"PATTERN SEQ(A a, B b, {where}) WITHIN 5 ms", SCHEMA), made, table, slices=2)


# Errors ---------------------------------------------------------------------------------------------------------------


def test_bad_input_is_refused_before_anything_runs(df: Any) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 5 ms", SCHEMA)
    with pytest.raises(DataError, match="no column 'x': did you mean 'xx'"):
        plan.run(df.withColumnRenamed("x", "xx"))
    with pytest.raises(DataError, match="column 'id'"):
        plan.run(df.withColumn("id", f.lit("text")))
    with pytest.raises(DataError, match="is text: cast it to a timestamp"):
        plan.run(df.withColumn("ts", f.lit("2026-01-01")))
    with pytest.raises(DataError, match="no column 'nth'"):
        plan.run(df.drop(ORDER))
    with pytest.raises(DataError, match="2 columns 'x'"):
        plan.run(df.select("*", f.lit(1.0).alias("x")))
    with pytest.raises(DataError, match="threads="):
        plan.run(df, threads=2)
    with pytest.raises(DataError, match="takes a Spark DataFrame"):
        plan.run({"ts": []}, backend="spark")
    arrival = qc.compile("PATTERN SEQ(A a, B b) WITHIN 5 ms", qc.Schema({"id": "int64"}, ties="arrival"))
    with pytest.raises(QueryError, match=r"Schema\(order=\)"):
        arrival.run(df)


def test_null_times_are_an_error(df: Any) -> None:
    holes = df.withColumn("ts", f.when(f.col("id") != 1, f.col("ts")))
    for pattern in ("SEQ(A a, B b) WITHIN 5 ms", "SEQ(A a, B b, [id]) WITHIN 5 ms", "SEQ(A a, B b) WITHIN 5 EVENTS"):
        plan = qc.compile(f"PATTERN {pattern}", SCHEMA)
        with pytest.raises(DataError, match=r"column 'ts': (1 event|\d+ events) without a time"):
            run(plan, holes)  # before the job starts
    with pytest.raises(Exception, match="without a time"):
        run(plan, holes, borders=(100,)).collect()  # nothing was looked at before


def test_rows_of_any_order_and_number(spark: SparkSession, tmp_path: Any) -> None:
    """Unsorted rows, equal rows, partitions without any."""
    twice = pa.concat_tables([trades(60, span=90).slice(0, 40), trades(60, span=90).slice(20)])
    twice = twice.take(pa.array(np.random.default_rng(8).permutation(len(twice))))
    schema = qc.Schema({"id": "int64", "x": "float64"})
    made = spark.createDataFrame(twice).repartition(7, "id")
    assert 0 in [len(part) for part in made.rdd.glom().collect()]
    for pattern in ("SEQ(A a, B b) WITHIN 9 ms", "SEQ(A a, B b, [id]) WITHIN 30 ms", "AND(A a, B+ b) WITHIN 9 ms"):
        plan = qc.compile(f"PATTERN {pattern}", schema)
        assert same(plan, made, twice, partitions=7, slices=5) > 10


def test_what_breaks_ties_must_break_them(spark: SparkSession) -> None:
    columns = {"ts": [1, 2, 2, 3], "type": list("AABB"), "id": [1, 1, 2, 2], "x": [0.0] * 4}
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", SCHEMA)
    keyed = qc.compile("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS PARTITION BY id", SCHEMA)

    def given(nth: list[int | None]) -> Any:
        return spark.createDataFrame(pa.table({**columns, ORDER: pa.array(nth, pa.int64())}))

    assert len(plan.run(given([0, 1, 2, 3])).collect()) == 4 - 2
    with pytest.raises(Exception, match="the time 2, and the same 'nth', which is to break ties"):
        plan.run(given([0, 1, 1, 2])).collect()
    assert keyed.run(given([0, 1, 1, 2])).collect() == []  # of different keys
    with pytest.raises(Exception, match="'nth': an event without a value to break ties by"):
        plan.run(given([0, 1, None, 2])).collect()
    unordered = qc.compile(keyed.text, qc.Schema({"id": "int64", "x": "float64"}))
    assert unordered.run(given([0, 1, 2, 3])).collect() == []


def test_events_of_one_time_need_an_order_where_they_are_counted(df: Any, events: pa.Table) -> None:
    unordered = qc.Schema({"id": "int64", "x": "float64"})
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 5 EVENTS", unordered)
    with pytest.raises(Exception, match=r"needs them in an order: give Schema\(order=\)"):
        plan.run(df).collect()
    once = df.dropDuplicates(["ts"])
    kept = pa.Table.from_pylist(sorted((row.asDict() for row in once.collect()), key=lambda e: e["ts"]))
    assert same(plan, frame(df.sparkSession, kept.drop_columns([ORDER]), unordered), kept, slices=3) > 5


def test_limits_hold_for_each_task(df: Any) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 500 ms", SCHEMA)
    with pytest.raises(Exception, match="more matches of"):
        plan.run(df, limits=qc.Limits(max_matches=10)).collect()


def test_slices_of_skewed_time_follow_its_quantiles(spark: SparkSession) -> None:
    """Most events come at the end: slices of equal length would leave nearly all of them to one worker."""
    events = pa.table({"ts": [round(10_000 * (i / 600) ** 0.2) for i in range(600)], "type": list("ABC") * 200})
    schema = qc.Schema({})
    plan = qc.compile("PATTERN SEQ(A a, B b, !C c) WITHIN 20", schema)
    df = spark.createDataFrame(events).repartition(3)
    assert same(plan, df, events, slices=4) > 50
    shared = share_out(plan, df, Options(slices=4))
    sizes = [r["count"] for r in shared.events.groupBy(PLACE).count().collect()]
    assert len(sizes) == 4
    assert max(sizes) < 300
