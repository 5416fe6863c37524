"""What `explain` shows: Quercus's tree and Spark's plan side by side, the same text each time."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import quercus as qc
from quercus.backends.spark import explain, metrics
from quercus.backends.spark.beside import BETWEEN, beside, folded
from quercus.errors import DataError

SCHEMA = qc.Schema({"id": "int64", "x": "float64"})
PLAN = qc.compile("PATTERN SEQ(A a, !C c, B b, [id], a.x > 0.5) WITHIN 20 ms RETURN b.id AS id", SCHEMA)


@pytest.fixture(scope="module")
def df(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = str(tmp_path_factory.mktemp("explain") / "events")
    rows = [(i, "ABC"[i % 3], i % 2, i / 10) for i in range(12)]
    spark.createDataFrame(rows, "ts long, type string, id long, x double").coalesce(1).write.parquet(place)
    return spark.read.parquet(place)


def columns(text: str) -> tuple[list[str], list[str]]:
    """The two sides of the bar, which stands in the same place in each line."""
    lines = text.splitlines()
    at = lines[0].index(BETWEEN.strip())
    assert {line[at] for line in lines} == {BETWEEN.strip()}
    return [line[:at].rstrip() for line in lines], [line[at + 2 :] for line in lines]


def test_two_columns(df: Any) -> None:
    text = explain(PLAN, df)
    left, right = columns(text)
    assert left[0] == "logical"
    assert right[0] == "spark"
    assert {"logical", "plan", "tree", "shared out"} <= set(left)
    assert any(line.strip() == "by key: id (found), 2 partitions" for line in left)
    assert "  AdaptiveSparkPlan (7)" in right
    assert any("MapInArrow" in line for line in right)
    assert not any("MapInArrow" in line for line in left)
    assert max(map(len, text.splitlines())) <= 160


@pytest.mark.parametrize("width", [100, 120, 200])
def test_it_is_as_wide_as_asked_for(df: Any, width: int) -> None:
    text = explain(PLAN, df, width=width)
    assert max(map(len, text.splitlines())) <= width
    left, right = columns(text)
    whole = " ".join(explain(PLAN, df, width=0).split())
    for side in (left, right):  # nothing is cut off, but for where a word is wider than its column
        for word in {w for line in side for w in line.split() if len(w) < 20}:
            assert word in whole


def test_narrow_texts_are_below_each_other(df: Any) -> None:
    text = explain(PLAN, df, width=99)
    tree, _, physical = text.partition("\n\nspark\n")
    assert tree.startswith("logical\n")
    assert "\n\nshared out\n  by key: id (found), 2 partitions\n" in tree
    assert physical.startswith("  AdaptiveSparkPlan")


def test_the_text_is_the_same_each_time(df: Any) -> None:
    text = explain(PLAN, df, width=0)
    assert explain(PLAN, df, width=0) == text
    assert "#" not in text
    assert "plan_id" not in text
    local = df.sparkSession.createDataFrame(df.collect(), df.schema)
    assert "MapPartitionsRDD, ExistingRDD" in explain(PLAN, local, width=0)  # its number and place are gone, too
    named = df.where(f.col("type") != f.lit("Z#999999"))
    assert "Z#999999" in explain(PLAN, named, width=0)  # no number of a column


def test_what_a_run_did_is_there_too(df: Any) -> None:
    left, right = columns(PLAN.explain(analyze=df))
    assert "run" in left
    assert f"  rows of the answer    {PLAN.run(df).count()}" in left
    assert "  rows                  12" in left
    assert any(line.startswith("  seconds in the engine") for line in left)
    assert "  AdaptiveSparkPlan (7)" in right


def test_streams_too(spark: SparkSession, df: Any) -> None:
    live = spark.readStream.schema(df.schema).parquet(df.inputFiles()[0].rpartition("/")[0])
    live = live.withColumn("ts", f.timestamp_millis("ts")).withWatermark("ts", "1 second")
    text = explain(PLAN, live, groups=4)
    assert explain(PLAN, live, groups=4) == text
    left, right = columns(text)
    assert left[left.index("shared out") + 1 :][:3] == [
        "  by key: id, 4 groups with a state each",
        "  output mode append",
        "  late events are dropped and counted by Spark",
    ]
    assert any("TransformWithState" in line for line in right)
    with pytest.warns(UserWarning, match="one group"):
        text = explain(qc.compile("PATTERN SEQ(A a, B b) WITHIN 5 ms", SCHEMA), live, width=0)
    assert "ONE GROUP, ON ONE CORE: nothing says that all events of a match agree" in text
    counted = explain(qc.compile(f"{PLAN.text.partition(' RETURN')[0]} AGG COUNT(*) AS n GROUPBY a.id", SCHEMA), live)
    assert "output mode update" in counted
    with pytest.raises(DataError, match=r"query\.lastProgress"):
        PLAN.explain(analyze=live)
    with pytest.raises(DataError, match=r"query\.lastProgress"):
        metrics(PLAN.run(live))
    with pytest.raises(DataError, match=r"give the DataFrame that plan\.run\(df\) returned"):
        metrics(df)


def test_lines_are_folded() -> None:
    assert list(folded("  +- Project [aaa, bbb, ccc]", 18)) == ["  +- Project [aaa,", "       bbb, ccc]"]
    assert list(folded("x" * 25, 10)) == ["x" * 10, "  " + "x" * 8, "  " + "x" * 7]
    assert list(folded("", 10)) == [""]
    assert beside([], ["only"], 100) == f"{BETWEEN}only"
