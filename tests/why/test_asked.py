"""Why are these events no match? Every requirement that they fail."""

from __future__ import annotations

import pytest

import quercus as qc
from quercus.why.data import Asked
from tests.why.test_examples import SCHEMA, events, why

PATTERN = "SEQ(A a, B b, !D d, C c, a.id = b.id, b.id = c.id, c.n > 4) WITHIN 3"
STREAM = "A 3 id=1, B 8 id=2, D 9, C 9 id=2 n=3, C 10 id=1 n=7, A 7 id=2"


def asked(pattern: str, stream: str, rows: object) -> Asked:
    found = why(pattern, stream, rows=rows).asked
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("rows", "failures"),
    [
        ({"a": 0, "b": 1, "c": 3}, ["WITHIN 3 s: takes 6 s", "a.id = b.id: 1 = 2", "c.n > 4: 3 > 4, off by 1"]),
        ({"a": 5, "b": 1, "c": 4}, ["b.id = c.id: 2 = 1", "!D d: violated by d row 2 at 9"]),
        ({"a": 5, "b": 1, "c": 3}, ["c.n > 4: 3 > 4, off by 1"]),
        (
            {"a": 1, "b": 5, "c": 3},
            [
                "type A of a: a (row 1) has type B",
                "type B of b: b (row 5) has type A",
                "order of a, b, c: b (row 5) came 1 s before a (row 1)",
                "c.n > 4: 3 > 4, off by 1",
            ],
        ),
        ({"a": 0, "b": 1, "c": 1}, None),
    ],
)
def test_all_that_fails(rows: dict[str, int], failures: list[str] | None) -> None:
    found = asked(PATTERN, STREAM, rows)
    assert not found.is_match
    if found.query is not None:
        assert rows in qc.compile(found.query, SCHEMA).run(events(STREAM)).rows()
    if failures is None:
        assert "bound twice" in {f.kind for f in found.failures}
    else:
        assert [f"{f.what}: {f.found}" for f in found.failures] == failures


def test_all_changes_together_let_them_through() -> None:
    found = asked(PATTERN, STREAM, {"a": 0, "b": 1, "c": 3})
    assert [f.change for f in found.failures] == ["WITHIN 6 s", "without it", "c.n > 2"]
    assert found.query == "PATTERN SEQ(A a, B b, !D d, C c) WHERE b.id = c.id and c.n > 2 WITHIN 6 s"


def test_a_match_is_one() -> None:
    found = why("SEQ(A a, B+ b) WITHIN 9", "A 1, B 2, B 3", rows={"a": 0, "b": [1, 2]})
    assert found.asked is not None
    assert found.asked.is_match
    assert "this is a match" in str(found)


def test_a_set_that_could_be_larger() -> None:
    (failure,) = asked("SEQ(A a, B+ b) WITHIN 9", "A 1, B 2, B 3", {"a": 0, "b": [1]}).failures
    assert (failure.kind, failure.found) == ("larger set", "there is also b row 2 at 3")


def test_what_is_left_out_is_looked_for() -> None:
    found = why(PATTERN, STREAM, rows={"a": 5})
    assert found.asked is not None
    assert found.asked.missing == ("b", "c")
    assert [m.rows for m in found.misses] == [{"a": 5, "b": 1, "c": 3}]
    assert found.funnels[0].components[0].conditions[0].condition == "a as given"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"x": 1}, "rows: no variable 'x' in the match; variables: a, b, c"),
        ({"a": 99}, "rows: 99 of 'a' is no row of the 6 events"),
        ({"a": -1}, "rows: -1 of 'a' is no row of the 6 events"),
        ({"a": "0"}, "rows: '0' of 'a' is no row of the 6 events"),
        ({"a": [0]}, "rows: 'a' takes one row"),
        ([1], "rows is a list: give {variable: row}, as rows() of a result has it"),
    ],
)
def test_rows_that_are_none(rows: object, message: str) -> None:
    with pytest.raises(qc.DataError) as caught:
        why(PATTERN, STREAM, rows=rows)
    assert str(caught.value) == message


def test_a_set_takes_a_list() -> None:
    with pytest.raises(qc.DataError, match="'b' takes a list of rows"):
        why("SEQ(A a, B+ b) WITHIN 9", "A 1, B 2", rows={"b": 1})


def test_variables_of_two_branches() -> None:
    plan = qc.compile("PATTERN OR(A a, B b) WITHIN 9", SCHEMA)
    with pytest.raises(qc.DataError, match="no match binds a, b at once"):
        plan.why(events("A 1, B 2"), rows={"a": 0, "b": 1})
