"""plan.check: each finding where it should be, none where it should not, and no error about a query that matches."""

from __future__ import annotations

import pytest

import quercus as qc
from quercus.lint import CODES
from tests import generate
from tests.stream_checks import schema_of
from tests.test_engine import table

SCHEMA = qc.Schema({"id": "int64", "x": "float64", "room": "string"}, time_unit="s")
EVENTS = [
    {"ts": 10, "type": "A", "id": 1, "x": 1.0, "room": "lab"},
    {"ts": 20, "type": "B", "id": 1, "x": 2.0, "room": "lab"},
    {"ts": 30, "type": "C", "id": 2, "x": None, "room": "hall"},
    {"ts": 900, "type": "D", "id": 1, "x": 5.0, "room": "lab"},
]


def found(query: str, events: object = EVENTS, schema: qc.Schema = SCHEMA) -> list[tuple[str, str]]:
    return [(f.code, f.severity) for f in qc.compile(f"PATTERN {query}", schema).check(events)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SEQ(A a, B b) WITHIN 1 min", []),
        ("SEQ(A a, !D d, B b) WITHIN 1 min", [("L501", "note")]),
        ("SEQ(A a, !C c, B b, [id]) WITHIN 1 min", [("L501", "warning"), ("L501", "note")]),
        # types
        ("SEQ(A a, Bee b) WITHIN 1 min", [("L101", "error")]),
        ("OR(A a, Bee b) WITHIN 1 min", [("L101", "warning")]),
        ("SEQ(A a, Bee* b, B c) WITHIN 1 min", [("L101", "warning")]),
        ("SEQ(A a, !Bee b, B c) WITHIN 1 min", [("L501", "warning")]),
        # attributes
        ("SEQ(A a, C c, c.x is null) WITHIN 1 min", [("L201", "warning"), ("L302", "note")]),
        ("SEQ(A a, C c, c.x > 1) WITHIN 1 min", [("L301", "error"), ("L201", "warning")]),
        # conditions on one event
        ("SEQ(A a, B b, b.x > 7) WITHIN 1 min", [("L301", "error")]),
        ("SEQ(A a, B b, b.x > 1) WITHIN 1 min", [("L302", "note")]),
        ("SEQ(A a, B b, b.room = 'Lab') WITHIN 1 min", [("L301", "error")]),
        ("SEQ(A a, !(B b, b.x > 7), C c) WITHIN 1 min", [("L501", "warning"), ("L501", "note")]),
        ("OR(A a, SEQ(B b, b.x > 7)) WITHIN 1 min", [("L301", "warning")]),
        # between two
        ("SEQ(A a, B b, a.x > b.x) WITHIN 1 min", [("L301", "error")]),
        ("SEQ(A a, C c, [id]) WITHIN 1 min", [("L301", "error")]),
        ("SEQ(B b, A a) WITHIN 1 min", [("L402", "error")]),
        ("SEQ(A a, D d) WITHIN 1 min", [("L402", "error")]),
        ("SEQ(A a, !(B b, b.x < a.x), C c) WITHIN 1 min", [("L501", "warning"), ("L501", "note")]),
        # windows
        ("SEQ(A a, B b) WITHIN 1 h", [("L401", "note")]),
        ("SEQ(A a, B b) WITHIN 10 EVENTS", [("L401", "note")]),
        ("SEQ(A a, SEQ(B b, C c) WITHIN 2 min) WITHIN 1 min", [("L401", "warning")]),
        # what the compiler says
        (
            "SEQ(A a, B b, a.x > 5, a.x < 3) WITHIN 1 min",
            [("L001", "error"), ("L301", "error"), ("L302", "note")],
        ),
        # each part is there, but never together
        ("SEQ(A a, B b, C c, a.x + b.x > c.id + 3) WITHIN 1 min", [("L701", "warning")]),
    ],
)
def test_findings(query: str, expected: list[tuple[str, str]]) -> None:
    got = found(query)
    assert got == expected
    assert {code for code, _ in got} <= set(CODES)


def test_a_finding_shows_its_place() -> None:
    first = qc.compile("PATTERN SEQ(A a,\n Bee b) WITHIN 5", SCHEMA).check(EVENTS)[0]
    assert str(first).splitlines()[1:] == ["  2 |  Bee b) WITHIN 5", "       ^^^^^  types: A, B, C, D"]
    assert first.to_dict() == {
        "code": "L101",
        "severity": "error",
        "message": "no event is a 'Bee'",
        "hint": "types: A, B, C, D",
        "line": 2,
        "column": 2,
    }


def test_hints_say_what_there_is() -> None:
    checked = qc.compile("PATTERN SEQ(A a, B b, b.x > 7, b.room = 'Lab') WITHIN 60", SCHEMA).check(EVENTS)
    assert {f.hint for f in checked if f.code == "L301"} == {"'x' is 2.0 to 2.0 there", "'room' is 'lab' there"}


def test_concepts_are_their_types() -> None:
    schema = qc.Schema({"id": "int64"}, time_unit="s", hierarchy={"Any": ["A", "B"], "None": ["X"]})
    events = [{k: e[k] for k in ("ts", "type", "id")} for e in EVENTS]
    assert found("SEQ(Any a, C c) WITHIN 1 min", events, schema) == []
    assert found("SEQ(None a, C c) WITHIN 1 min", events, schema) == [("L101", "error")]


def test_what_grows() -> None:
    n = 3_000
    events = {"ts": list(range(n)), "type": ["A", "B", "C"] * (n // 3), "id": [1] * n, "x": [1.0] * n, "room": [""] * n}
    wide = ("SEQ(A a, B b, C c) WITHIN 1 h", "SEQ(A a, B[3] b, C c) WITHIN 1 h")
    assert ("L601", "warning") in found(wide[0], events)
    assert ("L602", "warning") in found(wide[1], events)
    assert "L601" not in dict(found("SEQ(A a, B b) WITHIN 10 s", events))


def test_no_events() -> None:
    assert ("L101", "error") in found("SEQ(A a, B b) WITHIN 1 min", [])


def test_events_out_of_order_are_sorted() -> None:
    assert found("SEQ(A a, B b) WITHIN 1 min", EVENTS[::-1]) == []


@pytest.mark.parametrize("first", range(910_000, 910_300, 60))
def test_a_query_that_matches_has_no_error(first: int) -> None:
    """Errors say that nothing can match: then nothing does."""
    errors = matched = 0
    for seed in range(first, first + 60):
        sample = generate.sample(seed)
        events = table(sample.events)
        try:
            plan = qc.compile(sample.query, schema_of(sample))
            matches = len(plan.run(events).rows())
        except qc.QuercusError:
            continue
        bad = [f for f in plan.check(events) if f.severity == "error" or f.code == "L701"]
        assert not (bad and matches), f"{sample}\n{bad[0]}"
        errors, matched = errors + bool(bad), matched + bool(matches)
    assert errors > 5
    assert matched > 5


@pytest.mark.parametrize("body", ["OR(SEQ(B b, b.x > 7), C c)", "OR(Bee b, C c)"])
def test_a_branch_of_a_negation_is_not_all_of_it(body: str) -> None:
    plan = qc.compile(f"PATTERN SEQ(A a, !{body}, D d) WITHIN 1 h", SCHEMA)
    assert len(plan.run(EVENTS)) == 0
    (said,) = (f.message for f in plan.check(EVENTS) if f.code == "L501")
    assert said.endswith("this branch of the negation never happens")


def test_keys_that_keep_events_apart() -> None:
    given = [{"ts": 0, "type": "A", "id": 1}, {"ts": 1, "type": "B", "id": 2}]
    (said,) = (
        f
        for f in qc.compile("PATTERN SEQ(A a, B b) PARTITION BY id WITHIN 9 s", SCHEMA).check(given)
        if f.code == "L402"
    )
    assert said.message.endswith("WITHIN 9 s with one id")
    assert said.hint is not None
    assert "different ones" in said.hint


def test_totals_of_what_is_always_null() -> None:
    assert ("L201", "warning") in found("SEQ(A a, C c) WITHIN 1 min AGG SUM(c.x) AS s")
    assert ("L201", "warning") in found("SEQ(A a, C c) WITHIN 1 min AGG COUNT(*) AS n GROUPBY c.x")


def test_inner_windows_beside_inner_ones() -> None:
    assert ("L401", "warning") in found("SEQ(A a, SEQ(B b, SEQ(C c, D d) WITHIN 30 s) WITHIN 20 s) WITHIN 1 h")
    assert ("L401", "note") in found("SEQ(A a, SEQ(B b, C c) WITHIN 100 EVENTS) WITHIN 1 min")
