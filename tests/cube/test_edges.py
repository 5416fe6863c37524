"""Cubes at the edges: dead branches, NaN, limits, conditions with OR, totals of many digits, names that meet."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

import quercus as qc
from quercus.compiler.cube.order import STRATEGIES

NAN = float("nan")
DEAD = "SEQ(A a, B b, a.v > 1, a.v < 1)"


def same_as_alone(queries: dict[str, str], schema: qc.Schema, events: Any, share: Any) -> dict[str, int]:
    """The number of matches of each query, which are those that it has alone."""
    cube = qc.cube(queries, schema, share=share)
    found = cube.run(events)
    for name, plan in cube.plans.items():
        assert found[name].rows() == plan.run(events).rows(), (share, name)
    return {name: len(found[name]) for name in queries}


@pytest.mark.parametrize("share", STRATEGIES)
@pytest.mark.parametrize("live", ["C c", "SEQ(C c, D d)", "AND(C c, D d)"])
def test_a_branch_that_never_matches(share: Any, live: str) -> None:
    schema, events = qc.Schema({"v": "int64"}), {"ts": [1, 2], "type": ["C", "D"], "v": [1, 1]}
    pattern = f"PATTERN OR({DEAD}, {live}) WITHIN 5"
    queries = {"p": pattern, "q": pattern, "r": "PATTERN C c WITHIN 5", "s": f"PATTERN {live} WITHIN 5"}
    assert same_as_alone(queries, schema, events, share) == {"p": 1, "q": 1, "r": 1, "s": 1}
    with qc.cube(queries, schema, share=share).stream() as stream:
        pushed = stream.push(events)
    assert {n: len(pushed[n]) + len(stream.final[n]) for n in queries} == {"p": 1, "q": 1, "r": 1, "s": 1}


@pytest.mark.parametrize("share", STRATEGIES)
def test_unequal_does_not_say_that_there_is_a_number(share: Any) -> None:
    queries = {
        "src": "PATTERN SEQ(A a, C c) WHERE a.f = a.f WITHIN 5",
        "q": "PATTERN SEQ(A a, C c) WHERE a.f <> 3.0 WITHIN 5",
    }
    events = {"ts": [1, 2], "type": ["A", "C"], "f": [NAN, 0.0]}
    assert same_as_alone(queries, qc.Schema({"f": "float64"}), events, share) == {"src": 0, "q": 1}


# Limits ---------------------------------------------------------------------------------------------------------------

GROWING = {"ab": "PATTERN SEQ(A a, B b) WITHIN 100", "abc": "PATTERN SEQ(A a, B b, C c) WITHIN 100"}


@pytest.mark.parametrize("threads", [0, -1, "2", 1.5, True])
def test_threads_are_a_whole_number(threads: Any) -> None:
    with pytest.raises(qc.DataError, match="whole number from 1 up"):
        qc.cube(GROWING, qc.Schema({})).run({"ts": [1], "type": ["A"]}, threads=threads)


@pytest.mark.parametrize("share", STRATEGIES)
def test_a_limit_is_about_the_matches_of_a_push(share: Any) -> None:
    stream = qc.cube(GROWING, qc.Schema({}), share=share).stream(limits=qc.Limits(max_matches=3))
    for t, kind in enumerate("ABCCCCC"):
        found = stream.push({"ts": [t], "type": [kind]})
        assert len(found["abc"]) == (kind == "C")
    with pytest.raises(qc.LimitExceeded):
        stream.push({"ts": [7] * 4, "type": ["C"] * 4})
    assert len(stream.push({"ts": [7], "type": ["C"]})["abc"]) == 1


@pytest.mark.parametrize("share", STRATEGIES)
def test_what_lies_between_is_no_match(share: Any) -> None:
    limits = qc.Limits(max_matches=5)
    events = {"ts": list(range(13)), "type": ["A", *["C"] * 10, "D", "B"]}
    queries = {
        "ab": "PATTERN SEQ(A a, B b) WITHIN 100",
        "acdb": "PATTERN SEQ(A a, C c, !D d, B b) WITHIN 100",
        "neg": "PATTERN SEQ(A a, !C c, B b) WITHIN 100",
    }
    found = qc.cube(queries, qc.Schema({}), share=share).run(events, limits=limits)
    assert {n: len(found[n]) for n in queries} == {"ab": 1, "acdb": 0, "neg": 0}
    with pytest.raises(qc.LimitExceeded):
        qc.cube({**queries, "acb": "PATTERN SEQ(A a, C c, B b) WITHIN 100"}, qc.Schema({}), share=share).run(
            events, limits=limits
        )


@pytest.mark.parametrize("change", ["add", "remove", "replace"])
def test_a_change_of_queries_is_whole_or_none(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cube = qc.cube({**GROWING, "z": "PATTERN SEQ(Y y, Z z) WITHIN 100"}, qc.Schema({}), share="top_down")
    stream = cube.stream(limits=qc.Limits(max_matches=3))
    for t in range(3):  # six matches in the window, at most three of a push
        stream.push({"ts": [2 * t, 2 * t + 1], "type": ["A", "B"]})
    stream = cube.restore(stream.snapshot(), limits=qc.Limits(max_matches=3))
    arguments = {
        "add": ("new", "PATTERN SEQ(X x, Z z) WITHIN 5"),
        "remove": ("z",),
        "replace": ("z", "PATTERN Z z WITHIN 5"),
    }

    def fails(plan: object) -> None:
        raise qc.LimitExceeded("on purpose", limit="max_matches", value=3)

    with monkeypatch.context() as patch:
        patch.setattr(stream, "_again", fails)
        with pytest.raises(qc.LimitExceeded, match="on purpose"):
            getattr(stream, change)(*arguments[change])
    assert stream.names == ("ab", "abc", "z")
    assert {n: len(m) for n, m in stream.push({"ts": [10], "type": ["A"]}).items()} == {"ab": 0, "abc": 0, "z": 0}
    getattr(stream, change)(*arguments[change])
    assert ("new" in stream.names, "z" in stream.names) == (change == "add", change != "remove")


# Operations -----------------------------------------------------------------------------------------------------------


def test_a_slice_takes_nothing_away() -> None:
    cube = qc.cube({"p": "PATTERN SEQ(A a, C c) WHERE a.v > 1 WITHIN 5"}, qc.Schema({"v": "int64", "e3": "int64"}))
    events = {"ts": [1, 2], "type": ["A", "C"], "v": [0, 9], "e3": [0, 0]}
    assert len(cube.slice({"p": "a.v > 5 or c.v > 5"}).run(events)["p"]) == 0
    assert len(cube.slice({"p": "a.v > -5, c.v > 5"}).run(events)["p"]) == 0
    assert len(cube.slice("v > -1e3").run({**events, "v": [2, 9]})["p"]) == 1


def test_what_all_agree_on_inside_negations_too() -> None:
    cube = qc.cube({"q": "PATTERN SEQ(A a, !SEQ(B b, !D d, C c), E e, [id]) WITHIN 10"}, qc.Schema({"id": "int64"}))
    new = cube.pattern_drill_down("q", [("F", 2)])
    events = {"ts": [1, 2, 3], "type": ["A", "F", "E"], "id": [1, 2, 1]}
    assert len(cube.run(events)[new.name]) == 0
    assert len(cube.run({**events, "id": [1, 1, 1]})[new.name]) == 1


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("b", "a")])
def test_ties_through_components_that_go(one: str, other: str) -> None:
    """Whatever these are called."""
    text = (
        f"PATTERN SEQ(A {one}, B {other}, !(D d, d.id = {one}.id), C c) "
        f"WHERE {one}.id = {other}.id and {other}.id = c.id WITHIN 10"
    )
    cube = qc.cube({"q": text}, qc.Schema({"id": "int64"}))
    new = cube.pattern_roll_up("q", [("A", 1), ("B", 2)])
    events = {"ts": [1, 2], "type": ["D", "C"], "id": [1, 2]}
    assert len(cube.run(events)[new.name]) == 1
    assert len(cube.run({**events, "id": [2, 2]})[new.name]) == 0


# Totals ---------------------------------------------------------------------------------------------------------------

TREE = {"X": ["A", "B"]}


def top(query: str, schema: qc.Schema, events: Any, at: Any = 1) -> tuple[pa.Table, pa.Table]:
    """The rows of the table for the query's own concept, and what the query itself gives."""
    cube = qc.cube({"q": query}, schema)
    table = cube.table("q", events, at)
    return table.filter(pa.compute.equal(table.column("level"), 0)), cube.plans["q"].run(events).to_arrow()


def test_counts_of_many_digits_are_exact() -> None:
    query = f"PATTERN SEQ(X a, {', '.join(f'E e{i}' for i in range(20))}) WITHIN 100000 AGG COUNT(*)"
    events = {"ts": list(range(800)), "type": [("A", "B", "E", "E", "E")[i % 5] for i in range(800)]}
    table, alone = top(query, qc.Schema({}, hierarchy=TREE), events)
    assert table["count"].to_pylist() == alone["count"].to_pylist()


def test_nan_in_groups_and_extremes() -> None:
    schema = qc.Schema({"f": "float64"}, hierarchy=TREE)
    for kinds in (["A", "B", "C"], ["B", "A", "C"]):
        events = {"ts": [1, 2, 3], "type": kinds, "f": [1.0, NAN, 0.0]}
        for function in ("MIN", "MAX"):
            table, alone = top(f"PATTERN SEQ(X a, C c) WITHIN 9 AGG {function}(a.f) AS m", schema, events)
            assert math.isnan(table["m"][0].as_py())
            assert math.isnan(alone["m"][0].as_py())
    events = {"ts": [1, 2, 3], "type": ["A", "B", "C"], "f": [NAN, NAN, 0.0]}
    table, alone = top("PATTERN SEQ(X a, C c) WITHIN 9 AGG COUNT(*) AS n GROUPBY a.f", schema, events)
    assert table["n"].to_pylist() == alone["n"].to_pylist() == [2]


def test_moments_beyond_the_calendar() -> None:
    schema = qc.Schema({"ts": "timestamp[s]"}, hierarchy=TREE)
    far = pa.array([253402300800, 253402300801], pa.timestamp("s"))
    events = pa.table({"ts": far, "type": ["A", "C"]})
    table, alone = top("PATTERN SEQ(X a, C c) WITHIN 9 s AGG MIN(a.ts) AS m", schema, events)
    assert table["m"].cast(pa.int64()).to_pylist() == alone["m"].cast(pa.int64()).to_pylist() == [253402300800]


@pytest.mark.parametrize(
    ("query", "at", "code"),
    [
        ("PATTERN SEQ(X level, C c) WITHIN 9", 1, "E107"),
        ("PATTERN SEQ(X n, C c) WITHIN 9 AGG COUNT(*) AS n", 1, "E107"),
        ("PATTERN SEQ(X a, C c) WITHIN 9", [1, 1], "E802"),
        ("PATTERN SEQ(X a, C c) WITHIN 9", 1.0, "E802"),
    ],
)
def test_what_no_table_can_have(query: str, at: Any, code: str) -> None:
    cube = qc.cube({"q": query}, qc.Schema({}, hierarchy=TREE))
    with pytest.raises(qc.QueryError) as error:
        cube.table("q", {"ts": [1, 2], "type": ["A", "C"]}, at)
    assert error.value.code == code
