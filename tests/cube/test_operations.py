"""Drill-down and roll-up: the paper's Example 2 with its slips put right, what stays of a query, what is refused."""

from __future__ import annotations

import pytest

import quercus as qc
from quercus.compiler.cube.operations import Operation, operated
from tests.cube.test_refine import FIGURE_1, SCHEMA


def made(query: str, operation: Operation, changes: object) -> str:
    plan = qc.compile(f"PATTERN {query}" if "WITHIN" in query else f"PATTERN {query} WITHIN 48 h", SCHEMA)
    text = operated(plan, operation, changes)  # type: ignore[arg-type]
    qc.compile(text, SCHEMA)
    return " ".join(text.removeprefix("PATTERN ").replace(" WITHIN 2 d", "").replace("\nWITHIN 2 d", "").split("\n"))


@pytest.mark.parametrize(
    ("query", "operation", "changes", "expected"),
    [
        (FIGURE_1["q3"], "pattern_drill_down", [("!D", 2)], "SEQ(G, !D, A, T)"),
        (FIGURE_1["q1"], "concept_drill_down", [("TX", "D", 1)], "SEQ(D, OK)"),  # not q2: OK stays
        (FIGURE_1["q6"], "pattern_roll_up", [("G", 1), ("A", 2)], "SEQ(D, T)"),
        (FIGURE_1["q2"], "concept_roll_up", [("D", "TX", 1)], "SEQ(TX, T)"),  # not q1: T stays
        (FIGURE_1["q1"], "concept_drill_down", [("TX", "D", 1), ("OK", "T", 2)], "SEQ(D, T)"),
        ("SEQ(G, A)", "pattern_drill_down", [("T", 3), ("!D", 1)], "SEQ(!D, G, T, A)"),
        ("SEQ(G, A)", "pattern_drill_down", [("G", 3)], "SEQ(G, A, G G_1)"),
        ("SEQ(G, !D, A)", "pattern_roll_up", [("!D", 2)], "SEQ(G, A)"),
        ("SEQ(G, !D, A)", "pattern_roll_up", [("D", 2)], "SEQ(G, A)"),
        ("SEQ(G, !D, A)", "concept_drill_down", [("!D", "!DHospital", 2)], "SEQ(G, !DHospital, A)"),
        ("SEQ(G, SEQ(!D, A))", "pattern_roll_up", [("!D", 2)], "SEQ(G, A)"),
        ("D", "concept_roll_up", [("D", "TX", 1)], "TX"),
        ("D", "pattern_drill_down", [("T", 2)], "SEQ(D, T)"),
        ("SEQ(D+ d, T)", "concept_roll_up", [("D", "TX", 1)], "SEQ(TX+ d, T)"),
        # two levels at once
        ("SEQ(DHospital d, T)", "concept_roll_up", [("DHospital", "TX", 1)], "SEQ(TX d, T)"),
        ("SEQ(TX d, T)", "concept_drill_down", [("TX", "DHospital", 1)], "SEQ(DHospital d, T)"),
    ],
)
def test_operations(query: str, operation: Operation, changes: object, expected: str) -> None:
    assert made(query, operation, changes) == expected


@pytest.mark.parametrize(
    ("query", "operation", "changes", "expected"),
    [
        (
            "SEQ(D d, G g, T t) WHERE d.v > 3 and g.v = 1 and d.v < t.v WITHIN 5 RETURN d.v, g.id AS who, t",
            "pattern_roll_up",
            [("G", 2)],
            "SEQ(D d, T t) WHERE d.v > 3 and d.v < t.v WITHIN 5 ms RETURN d.v AS d_v, t AS t",
        ),
        (
            "SEQ(D d, !(G g, g.v > d.v), T t) WHERE d.v > 3 WITHIN 5",
            "pattern_roll_up",
            [("D", 1)],
            "SEQ(!G g, T t) WITHIN 5 ms",
        ),
        # `[id]` keeps its meaning without the component that all were compared with, and holds for a new one
        (
            "SEQ(D d, !G g, A a, T t, [id]) WITHIN 5",
            "pattern_roll_up",
            [("D", 1)],
            "SEQ(!(G g, g.id = a.id, g.id = t.id), A a, T t) WHERE a.id = t.id WITHIN 5 ms",
        ),
        (
            "SEQ(D d, T t, [id]) WITHIN 5",
            "pattern_drill_down",
            [("G", 1), ("!A", 3)],
            "SEQ(G, D d, !(A, d.id = A.id), T t) WHERE d.id = t.id and d.id = G.id WITHIN 5 ms",
        ),
        (
            "SEQ(D d, T t) WHERE d.v = t.id WITHIN 5",
            "pattern_drill_down",
            [("G", 1)],
            "SEQ(G, D d, T t) WHERE d.v = t.id WITHIN 5 ms",
        ),
        (
            "SEQ(D, !G, T) WHERE D.v > 3 PARTITION BY id WITHIN 5 AGG COUNT(*) AS n, SUM(D.v) AS s GROUPBY D, T.id",
            "concept_roll_up",
            [("D", "TX", 1), ("G", "TX", 2)],
            "SEQ(TX, !TX G, T) WHERE TX.v > 3 PARTITION BY id WITHIN 5 ms AGG COUNT(*) AS n, SUM(TX.v) AS s "
            "GROUPBY TX.type, T.id",
        ),
        (
            "SEQ(D d, T t) WITHIN 5 AGG COUNT(*) AS n, SUM(t.v) AS s GROUPBY t.id, d.id",
            "pattern_roll_up",
            [("T", 2)],
            "SEQ(D d) WITHIN 5 ms AGG COUNT(*) AS n GROUPBY d.id",
        ),
    ],
)
def test_what_stays(query: str, operation: Operation, changes: object, expected: str) -> None:
    assert made(query, operation, changes) == expected


@pytest.mark.parametrize(
    ("query", "operation", "changes", "code", "said"),
    [
        ("SEQ(D, T)", "concept_roll_up", [("D", "OK", 1)], "E803", "OK is no concept above D"),
        ("SEQ(D, T)", "concept_roll_up", [("D", "D", 1)], "E803", "D is no concept above D"),
        ("SEQ(D, T)", "concept_drill_down", [("D", "TX", 1)], "E803", "TX is no concept below D"),
        ("SEQ(D, T)", "concept_roll_up", [("D", "TX", 2)], "E802", "at position 2 stands T, not D"),
        ("SEQ(D, !T, A)", "pattern_roll_up", [("!D", 1)], "E802", "at position 1 stands D, not !D"),
        ("SEQ(D, T)", "pattern_roll_up", [("D", 0)], "E802", "no position 0: there are 2, from 1 on"),
        ("SEQ(D, T)", "pattern_drill_down", [("A", 4)], "E802", "no position 4 for A"),
        ("SEQ(D, T)", "pattern_roll_up", [("D", 1), ("D", 1)], "E802", "a position stands twice"),
        ("SEQ(D, !T)", "pattern_roll_up", [("D", 1)], "E801", "no positive component is left"),
        ("SEQ(D, T)", "pattern_roll_up", [], "E801", "takes a list of (type, position)"),
        ("SEQ(D, T)", "pattern_roll_up", "D", "E801", "takes a list of (type, position)"),
        ("SEQ(D, T)", "concept_roll_up", [("D", 1)], "E801", "takes a list of (from, to, position)"),
        ("SEQ(D, T)", "concept_roll_up", [("D", "TX", "1")], "E801", "takes a list of (from, to, position)"),
        ("SEQ(D, T)", "concept_roll_up", [("D", "TX", True)], "E801", "takes a list of (from, to, position)"),
        ("AND(D, T)", "pattern_roll_up", [("D", 1)], "E801", "no SEQ of events"),
        ("SEQ(D, OR(A, T))", "pattern_roll_up", [("A", 2)], "E801", "stands no single event"),
        ("SEQ(D, T)", "concept_roll_up", [("D", "TX", 1), ("D", "TX", 1)], "E802", "a position stands twice"),
        ("SEQ(TX, T)", "concept_drill_down", [("TX", "D", 1), ("TX", "G", 1)], "E802", "a position stands twice"),
        ("SEQ(D, T)", "concept_roll_up", [("D", "!TX", 1)], "E803", "D at position 1 is not negated"),
        ("SEQ(D, T)", "pattern_drill_down", [("!", 2)], "E801", "'' is no event type"),
        ("SEQ(D, T)", "pattern_drill_down", [("!!A", 2)], "E801", "'!A' is no event type"),
        ("SEQ(D, T) WITHIN 5 AGG SUM(D.v)", "pattern_roll_up", [("D", 1)], "E801", "nothing is left to aggregate"),
    ],
)
def test_what_is_refused(query: str, operation: Operation, changes: object, code: str, said: str) -> None:
    with pytest.raises(qc.QueryError) as caught:
        made(query, operation, changes)
    assert (caught.value.code, said in str(caught.value)) == (code, True), str(caught.value)


def test_an_unknown_type_is_refused() -> None:
    schema = qc.Schema({}, types=["Wash", "Check"])
    with pytest.raises(qc.QueryError) as caught:
        operated(qc.compile("PATTERN Wash WITHIN 5", schema), "pattern_drill_down", [("Chek", 2)])
    assert (caught.value.code, caught.value.hint) == ("E101", "did you mean 'Check'?")
