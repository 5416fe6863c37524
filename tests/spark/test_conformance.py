"""The conformance suite of the local engine on Spark: every `tests/cases/*.case`, random queries over random streams.

Each is cut at odd places: partitions of keys from one to seven, slices of time with borders anywhere. Jobs are small,
and so several run at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import quercus as qc
from quercus.backends.spark import run
from quercus.testing import Case, compare, compare_rows, read
from quercus.testing.casefile import Match, Row
from tests import aggregate_cases
from tests.generate import ATTRIBUTES, HIERARCHY, Sample, valid
from tests.spark.bags import ORDER, bag, frame, same
from tests.test_cases import CASES, FOLDER, title

AT_ONCE = 4  # jobs, on two cores: most of their time is Spark's own
PARTS = (0, 0, 0, 1, 4)  # of events before they are shared out: to make some takes Spark as long as all the rest
T = TypeVar("T")
R = TypeVar("R")


def each(found: Callable[[T], R], of: Iterable[T]) -> list[R]:
    """Several at once; the first error is raised."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(found, of))


def cut(times: Iterable[int], r: Random) -> dict[str, Any]:
    """How events are shared out: for plans with a key and for those without."""
    known = sorted({*times, *(t + 1 for t in times)})
    borders = tuple(r.sample(known, min(len(known), r.randint(0, 5))))
    return {"partitions": r.randint(1, 7), "borders": borders, "split_keys": False}


# Cases ----------------------------------------------------------------------------------------------------------------


def schema_of(case: Case) -> qc.Schema:
    """That of the case, and the rows' numbers: an attribute that breaks ties."""
    o = case.options
    attributes = {**case.attributes, ORDER: "int64"}
    return qc.Schema(
        attributes, time_unit=o.time_unit, ties=o.ties, key=o.key, hierarchy=dict(o.hierarchy), order=ORDER
    )


def answer(spark: SparkSession, case: Case) -> pa.Table:
    schema, r = schema_of(case), Random(title(case))
    kinds = {"ts": "int64", "type": "string"} | {n: k for n, k in case.attributes.items() if n not in ("ts", "type")}
    columns = {
        n: pa.array([e.get(n) for e in case.events], pa.timestamp("us") if k == "timestamp" else pa.type_for_alias(k))
        for n, k in kinds.items()
    }
    df = frame(spark, pa.table(columns), schema, r.choice(PARTS))
    return run(qc.compile(case.query, schema), df, **cut([e["ts"] for e in case.events], r)).toArrow()


def matches_of(found: pa.Table) -> list[Match]:
    """Rows of bound events as numbers of rows."""

    def number(bound: Any) -> Any:
        return [b[ORDER] for b in bound] if isinstance(bound, list) else bound[ORDER]

    return [{v: number(b) for v, b in row.items() if b is not None} for row in found.to_pylist()]


def difference(spark: SparkSession, case: Case) -> str | None:
    found = answer(spark, case)
    if case.rows is not None:
        rows: list[Row] = found.to_pylist()
        return compare_rows(case, rows)
    return compare(case, matches_of(found))


ANSWERED = [c for c in CASES if c.error is None]


@pytest.mark.parametrize("name", sorted({c.path.stem for c in ANSWERED}))
def test_cases(spark: SparkSession, name: str) -> None:
    """Row by row for RETURN and AGG; otherwise event by event."""
    found = each(lambda case: difference(spark, case), [c for c in ANSWERED if c.path.stem == name])
    wrong = [d for d in found if d is not None]
    assert not wrong, "\n".join(wrong)


def test_all_cases_are_there() -> None:
    assert {c.path for c in CASES} == set(FOLDER.glob("*.case"))
    assert len(ANSWERED) > 200


@pytest.mark.parametrize("broken", ["matches: none", "match: A=a1 B=b3", "match: A=a1 B=b2\nmatch: A=a1 B=b3"])
def test_a_broken_expectation_fails(spark: SparkSession, tmp_path: Path, broken: str) -> None:
    path = tmp_path / "broken.case"
    path.write_text(f"case: broken\nquery: PATTERN SEQ(A, B) WITHIN 1\nevents: a1 b2 b3\n{broken}\n")
    [case] = read(path)
    assert difference(spark, case) is not None


# Random queries -------------------------------------------------------------------------------------------------------


def check(spark: SparkSession, sample: Sample) -> int:
    """A random query over a random stream; how many matches there are."""
    o, r = sample.options, Random(sample.seed)
    key = r.choice([None, None, "id"])
    schema = qc.Schema(ATTRIBUTES, ties=o.ties, time_unit=o.time_unit, hierarchy=HIERARCHY, order=ORDER, key=key)
    made = frame(spark, sample.events, schema, r.choice(PARTS))
    cuts = cut([int(str(e["ts"])) for e in sample.events], r)
    if r.random() < 0.1:
        cuts = {"slices": 3, "split_keys": True}
    return same(qc.compile(sample.query, schema), made, sample.events, **cuts)


def check_totals(spark: SparkSession, seed: int) -> int:
    """A random AGG query over a random stream; how many groups there are."""
    case, r = aggregate_cases.case(seed), Random(seed)
    schema = qc.Schema(aggregate_cases.KINDS, ties=case.ties, order=ORDER)  # type: ignore[arg-type]
    try:
        plan = qc.compile(case.query, schema)
    except qc.QueryError:
        return 0
    made = frame(spark, case.table(), schema, r.choice(PARTS))
    return same(plan, made, case.table(), **cut([int(str(e["ts"])) for e in case.events], r))


@pytest.mark.parametrize("first", range(880_000, 880_300, 50))
def test_random_queries(spark: SparkSession, first: int) -> None:
    found = each(lambda drawn: check(spark, drawn[0]), valid(range(first, first + 50)))
    assert len(found) > 40
    assert sum(n > 0 for n in found) > 15


@pytest.mark.parametrize("first", range(881_000, 881_100, 50))
def test_random_totals(spark: SparkSession, first: int) -> None:
    found = each(lambda seed: check_totals(spark, seed), range(first, first + 50))
    assert sum(n > 0 for n in found) > 30


@pytest.mark.slow
@pytest.mark.parametrize("first", range(890_000, 892_000, 100))
def test_many_random_queries(spark: SparkSession, first: int) -> None:
    each(lambda drawn: check(spark, drawn[0]), valid(range(first, first + 100)))
    each(lambda seed: check_totals(spark, seed), range(first, first + 30))


def test_one_row_less_or_more_is_another_answer(spark: SparkSession) -> None:
    """The comparison fails where it must: events are lost, doubled, or changed on the way."""
    schema = qc.Schema({"id": "int64"}, order=ORDER)
    events = pa.table({"ts": [1, 2, 3, 4], "type": list("ABAB"), "id": [0, 0, 1, 1]})
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 5 ms", schema)
    df = frame(spark, events, schema)
    assert same(plan, df, events, borders=(3,)) == 3
    for wrong in (df.where("ts < 4"), df.union(df.where("ts = 4")), df.withColumn("id", df.id + 1)):
        with pytest.raises(AssertionError, match="missing"):
            same(plan, wrong, events, borders=(3,))
    assert bag(pa.table({"a": [1, 1]})) != bag(pa.table({"a": [1]})) == Counter({(("a", 1),): 1})
