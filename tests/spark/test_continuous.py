"""Continuous queries on Spark: the rows that the local engine gives, as a bag."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import quercus as qc
from quercus.backends.spark import explain
from quercus.backends.spark.continuous import run
from quercus.backends.spark.continuous.positions import with_positions
from quercus.backends.spark.continuous.streams import given as as_stream
from quercus.errors import DataError, QueryError
from tests.continuous import test_examples as examples
from tests.continuous.generate import COLUMNS, Draw, streams
from tests.spark.bags import ORDER, bag, frame
from tests.spark.test_conformance import each

LOCAL = {n: qc.Schema(c, type=None) for n, c in COLUMNS.items()}
SCHEMAS = {n: qc.Schema(c, type=None, order=ORDER) for n, c in COLUMNS.items()}
# What Spark spends on compiling Java for each of many small queries is most of their time.
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture
def quick(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name, None) for name in QUICK}
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def same(query: qc.Continuous | str, found: DataFrame, given: Any, schemas: Any = LOCAL) -> int:
    """Assert that Spark gives the rows that the local engine gives; how many there are."""
    text = query if isinstance(query, str) else query.text
    got, expected = found.toArrow(), qc.continuous(text, schemas).run(given).to_arrow()
    assert got.column_names == expected.column_names
    mine, right = bag(got), bag(expected)
    assert mine == right, f"{text}\n{given}\nmissing: {right - mine}\ntoo many: {mine - right}"
    return len(expected)


def plain(spark: SparkSession, rows: list[dict[str, Any]], parts: int = 3) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows)).repartition(parts)


AT = [{"ts": t, "Person": p, "Location": place} for t, p, place in examples.WALKS]
STATES = [{"ts": t, "Room": r, "State": s} for t, r, s in examples.STATES]


def test_the_examples_of_the_paper(spark: SparkSession) -> None:
    given = {"At": AT, "RoomState": STATES}
    frames = {n: plain(spark, rows).cache() for n, rows in given.items()}

    def one(number: int) -> int:
        text = getattr(examples, f"EXAMPLE_{number}")
        found = qc.continuous(text, examples.STREAMS).run(frames)
        return same(text, found, given, examples.STREAMS)

    assert each(one, range(1, 7)) == [2, 3, 2, 5, 2, 3]


def check(spark: SparkSession, seed: int) -> int:
    random = Random(seed)
    text, given = Draw(random, 0.4).query(), streams(random)
    for rows in given.values():
        for row in rows:
            for name in row:
                if isinstance(row[name], float) and random.random() < 0.1:
                    row[name] = random.choice([math.nan, -0.0, math.inf])
    frames = {n: frame(spark, rows, SCHEMAS[n], random.choice((0, 0, 0, 0, 1, 4))) for n, rows in given.items()}
    found = run(qc.continuous(text, SCHEMAS), frames, partitions=random.randint(1, 7))
    return same(text, found, given)


def test_random_queries(quick: SparkSession) -> None:
    assert sum(each(lambda seed: check(quick, seed), range(120))) > 300


@pytest.mark.slow
def test_many_random_queries(quick: SparkSession) -> None:
    assert sum(each(lambda seed: check(quick, seed), range(1_000, 1_500))) > 1_000


def test_a_difference_would_be_seen(quick: SparkSession) -> None:
    rows: list[dict[str, Any]] = [{"ts": t, "a": t, "b": "u", "x": 0.5} for t in (1, 3)]
    found = run(qc.continuous("ISTREAM(SELECT a FROM S[Rows 2])", SCHEMAS), {"S": frame(quick, rows, SCHEMAS["S"])})
    with pytest.raises(AssertionError, match="missing"):
        same("RSTREAM(SELECT a FROM S[Rows 2])", found, {"S": rows})


def test_rows_of_one_time_come_window_by_window(quick: SparkSession) -> None:
    """Both windows close at 9, and the first one to open has the later tuple too: it is not among the last two rows."""
    rows: list[dict[str, Any]] = [
        {"ts": ts, "a": a, "b": "u", "x": x} for ts, a, x in ((5, 1, None), (5, 0, 0.0), (9, 2, 0.0))
    ]
    window = "Pattern By (b = 'u'; TRUE; x IS NOT NULL; Timestamp - FIRST(Timestamp) < 5)"
    text = f"WITH Q AS (ISTREAM(SELECT s0.a AS p FROM S[{window}] AS s0)) RSTREAM(SELECT * FROM Q[Rows 2])"
    found = run(qc.continuous(text, SCHEMAS), {"S": frame(quick, rows, SCHEMAS["S"])}, partitions=2)
    assert same(text, found, {"S": rows}) == 2


# Sharing out ----------------------------------------------------------------------------------------------------------

KEYED = "S[Pattern By (a > 0; b = FIRST(b) AND a = 0; TRUE; b = FIRST(b))]"
WALKERS = "Person = FIRST(Person) AND Location = 'Home'"


def many(n: int, seed: int) -> list[dict[str, Any]]:
    """Tuples of several keys, with ties of time among them."""
    r = Random(seed)
    return [
        {"ts": r.randrange(n), "a": r.choice([0, 1, 2, None]), "b": r.choice("uvwxyz"), "x": r.choice([0.5, 1.0])}
        for _ in range(n)
    ]


@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_keys_are_shared_out(quick: SparkSession, partitions: int) -> None:
    rows = many(200, partitions)
    df = frame(quick, rows, SCHEMAS["S"]).cache()
    for select in ("FIRST(b), LAST(Timestamp) - FIRST(Timestamp)", "COUNT(*), SUM(a)", "ITER(), NUM()", "a, b, NUM()"):
        text = f"ISTREAM(SELECT {select} FROM {KEYED})"
        q = qc.continuous(text, SCHEMAS)
        assert same(text, run(q, {"S": df}, partitions=partitions), {"S": rows}) > 20


def test_what_explain_says(quick: SparkSession) -> None:
    df = frame(quick, many(20, 1), SCHEMAS["S"])

    def said(source: str, select: str = "COUNT(*)") -> str:
        text = explain(
            qc.continuous(f"ISTREAM(SELECT {select} FROM {source})", SCHEMAS), {"S": df}, partitions=5, width=0
        )
        return text[text.index("shared out\n") + 11 : text.index("\n\nspark")].strip()

    assert said(KEYED) == "S[Pattern By]: by key: b, 5 partitions"
    assert said(KEYED, "ITER()").endswith("positions for ITER() are counted before")
    alone = "S[Pattern By]: ALL TUPLES GO TO ONE WORKER: "
    assert said("S[Pattern By (TRUE; a = 1; TRUE; FALSE)]") == (
        f"{alone}no condition says K = FIRST(K) such that tuples of other keys leave a window alone"
    )
    assert said("S[Pattern By (TRUE; b = FIRST(b) AND ITER() > 2; TRUE; FALSE)]").startswith(f"{alone}a condition asks")
    assert said("S[Range 5]") == "S[Range]: tuples stay where they are: a tuple's own time decides"
    assert "slices of time" in said("S[Rows 2]")
    assert "by these attributes" in said("S[Partition By b Rows 2]")


def test_matches_that_never_come_are_at_no_time(quick: SparkSession) -> None:
    """Spark looks at rows before it leaves them out: one tick after the last moment is none."""
    text = (
        "WITH Z AS (ISTREAM(SELECT p FROM (PATTERN SEQ(S a, S b) WITHIN 6 RETURN a.a AS p)[Unbounded])) "
        "ISTREAM(SELECT p FROM Z[Range 2] UNION ALL SELECT p FROM Z[Now])"
    )
    rows: list[dict[str, Any]] = [{"ts": t, "a": a, "b": "u", "x": 0.5} for t, a in ((1, 2), (1, 1), (5, 3))]
    assert same(text, run(qc.continuous(text, SCHEMAS), {"S": frame(quick, rows, SCHEMAS["S"])}), {"S": rows}) == 4


def test_the_order_of_arrival_is_kept(quick: SparkSession) -> None:
    text = "ISTREAM(SELECT * FROM (PATTERN SEQ(S c, S d) WITHIN 6 RETURN c.a AS p, d.a AS q)[Now])"
    rows: list[dict[str, Any]] = [{"ts": t, "a": a, "b": "u", "x": 0.5} for t, a in ((1, 2), (1, 1), (1, 0), (5, 3))]
    schema = {n: qc.Schema(COLUMNS["S"], type=None, order=n, ties="arrival") for n in (ORDER, None)}
    found = run(qc.continuous(text, {"S": schema[ORDER]}), {"S": frame(quick, rows, schema[ORDER])})
    assert same(text, found, {"S": rows}, {"S": schema[None]}) == 6
    with pytest.raises(QueryError, match="has no order for ties"):
        qc.continuous(text, {"S": schema[None]}).run({"S": plain(quick, rows)})


def test_keys_that_are_null_where_that_matters(quick: SparkSession) -> None:
    """A tuple without a key drops all windows, where unknown lets none go on."""
    window = f"At[Pattern By (Location = 'Lab'; {WALKERS}; Person <> FIRST(Person) OR Location <> 'Lab'; FALSE)]"
    text = f"ISTREAM(SELECT FIRST(Person) AS p FROM {window})"
    q = qc.continuous(text, examples.STREAMS)
    lost = [{"ts": 41, "Person": None, "Location": "Lab"}, *AT]
    for rows, word, n in ((AT, "by key: Person", 2), (lost, "is null in some tuples", 1)):
        df = plain(quick, rows)
        assert word in explain(q, {"At": df})
        assert same(text, q.run({"At": df}), {"At": rows}, examples.STREAMS) == n


@pytest.mark.parametrize("cells", [1, 2, 7, 40])
def test_positions(quick: SparkSession, cells: int) -> None:
    rows = many(60, cells)
    stream = as_stream("S", frame(quick, rows, SCHEMAS["S"]), SCHEMAS["S"], frozenset({"a"}))
    found = with_positions(stream, cells=cells).orderBy("pos").toArrow().to_pylist()
    assert [row["pos"] for row in found] == list(range(60))
    assert [row["t"] for row in found] == sorted(row["ts"] for row in rows)
    assert [row["end"] for row in found] == [sum(o["t"] <= row["t"] for o in found) for row in found]


# Times, patterns, WITH ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date"])
def test_moments(quick: SparkSession, kind: str) -> None:
    begin, step = datetime(2024, 2, 28), timedelta(days=1) if kind == "date" else timedelta(seconds=90)
    rows = [{"ts": begin + i * step, "k": i % 2, "seen": begin + i * i * step} for i in range(8)]
    unit = "s" if kind != "timestamp" else "us"
    columns = {"ts": f"timestamp[{unit}]", "k": "int64", "seen": "timestamp"}
    schemas = {"S": qc.Schema(columns, type=None)}
    raw = plain(quick, [{**row, "ts": str(row["ts"]), "seen": str(row["seen"])} for row in rows])
    df = raw.withColumn("ts", f.col("ts").cast(kind)).withColumn("seen", f.col("seen").cast(kind))
    for text in (
        "DSTREAM(SELECT seen, k FROM S[Range 4 min])",
        "ISTREAM(SELECT FIRST(seen) AS a, LAST(Timestamp) AS b FROM S[Pattern By (k = 0; k = FIRST(k); TRUE; FALSE)])",
        "ISTREAM(SELECT MAX(seen) AS s FROM S[Rows 2] WHERE Timestamp > '2024-02-28T00:01:00')",
    ):
        found = qc.continuous(text, schemas).run({"S": df})
        assert same(text, found, {"S": pa.Table.from_pylist(rows)}, schemas) > 2
        assert found.schema["ts"].dataType.simpleString() == (
            "timestamp_ntz" if kind == "timestamp_ntz" else "timestamp"
        )


TRIP = """WITH Trip AS (ISTREAM(
  SELECT FIRST(Person) AS Person, LAST(Timestamp) - FIRST(Timestamp) AS took
  FROM At[Pattern By (Location = 'Lab'; Person = FIRST(Person) AND Location = 'Home'; TRUE; FALSE)]))
"""


@pytest.mark.parametrize(
    "text",
    [
        "ISTREAM(SELECT COUNT(*) AS n FROM (PATTERN SEQ(At w, RoomState r, w.Location = r.Room) WITHIN 1 min"
        " RETURN r.State AS s) [Range 5 min])",
        TRIP
        + "ISTREAM(SELECT * FROM (PATTERN SEQ(Trip t, At+ w) WITHIN 1 min RETURN t.took AS n, count(w) AS c) [Now])",
        TRIP + "RSTREAM(SELECT LAST(Person) AS p, SUM(took) AS n FROM Trip[Rows 2])",
        "ISTREAM(SELECT a_Person FROM (PATTERN OR(SEQ(At a, RoomState r), SEQ(At b, At c)) WITHIN 10 RETURN"
        " a.Person AS a_Person) [Now])",
    ],
)
def test_patterns_and_with(quick: SparkSession, text: str) -> None:
    given = {"At": AT, "RoomState": STATES}
    frames = {n: plain(quick, rows) for n, rows in given.items()}
    schemas = examples.STREAMS
    used = {n: frames[n] for n in given if n in text}
    found = qc.continuous(text, schemas).run(used)
    assert same(text, found, {n: given[n] for n in used}, schemas) > 0


def test_a_pattern_over_types(quick: SparkSession) -> None:
    rows = [{"ts": i, "type": "AB"[i % 3 // 2], "v": i} for i in range(12)]
    schemas = {"S": qc.Schema({"v": "int64"}, time_unit="s")}
    matches = "(PATTERN SEQ(A a, B b) WITHIN 2 s RETURN b.v AS n) OVER S [Now]"
    text = f"ISTREAM(SELECT SUM(n) AS s, MAX(type) AS k FROM {matches}, S[Now])"
    q = qc.continuous(text, schemas)
    assert same(text, q.run({"S": plain(quick, rows)}), {"S": rows}, schemas) > 2


# Errors ---------------------------------------------------------------------------------------------------------------


def test_what_is_refused(quick: SparkSession) -> None:
    q = qc.continuous(examples.EXAMPLE_4, examples.STREAMS)
    at, states = plain(quick, AT), plain(quick, STATES)
    for given, error, word in (
        ({"At": at}, DataError, "the stream 'RoomState' is missing"),
        ({"At": at, "RoomState": STATES}, DataError, "'RoomState' is a list, and the backend 'spark' takes DataFrames"),
        ({"At": at.drop("Person"), "RoomState": states}, DataError, "of 'At' has no column 'Person'"),
        (
            {"At": at.withColumn("Person", f.lit(1)), "RoomState": states},
            DataError,
            "int32 where the schema has string",
        ),
        ({"At": at.withColumn("ts", f.lit("now")), "RoomState": states}, DataError, "'ts' of 'At' is text"),
        ({"At": at, "RoomState": states, "X": at}, DataError, "no stream 'X'"),
        ({"At": quick.readStream.format("rate").load(), "RoomState": states}, QueryError, "a streaming DataFrame"),
    ):
        with pytest.raises(error, match=word):
            q.run(given)
    with pytest.raises(DataError, match="different Spark sessions"):
        q.run({"At": at, "RoomState": quick.newSession().createDataFrame(pa.Table.from_pylist(STATES))})
    with pytest.raises(DataError, match="threads="):
        q.run({"At": at, "RoomState": states}, threads=2)
    with pytest.raises(DataError, match="partitions=0"):
        run(q, {"At": at, "RoomState": states}, partitions=0)


@pytest.mark.parametrize(
    ("text", "rows", "word"),
    [
        ("ISTREAM(SELECT x FROM S[Rows 1])", [(1, 0.5), (1, 1.0)], "give Schema.order="),
        ("ISTREAM(SELECT FIRST(x) AS y FROM S[Now])", [(1, 0.5), (1, 1.0)], "give Schema.order="),
        ("ISTREAM(SELECT x FROM S[Pattern By (TRUE; TRUE; TRUE; TRUE)])", [(1, 0.5), (1, 1.0)], "give Schema.order="),
        ("ISTREAM(SELECT x FROM S[Now])", [(1, 0.5), (None, 1.0)], "a tuple without a time"),
    ],
)
def test_errors_of_the_job(quick: SparkSession, text: str, rows: list[tuple[Any, float]], word: str) -> None:
    df = plain(quick, [{"ts": t, "a": 1, "b": "u", "x": v} for t, v in rows])
    with pytest.raises(Exception, match=word):
        qc.continuous(text, LOCAL).run({"S": df}).toArrow()


def test_ties_do_not_matter_everywhere(quick: SparkSession) -> None:
    rows = [{"ts": 1, "a": 1, "b": b, "x": 0.5} for b in "uvw"]
    text = "ISTREAM(SELECT b, COUNT(*) AS n FROM S[Range 5] GROUP BY b)"
    assert same(text, qc.continuous(text, LOCAL).run({"S": plain(quick, rows)}), {"S": rows}) == 3
