"""What `plan.why` tells of small streams, one obstacle at a time."""

from __future__ import annotations

import json
from datetime import datetime

import pyarrow as pa
import pytest

import quercus as qc
from quercus.why.data import Failure, Miss, Why

SCHEMA = qc.Schema({"id": "int64", "price": "float64", "n": "int64", "s": "string"}, time_unit="s")
Event = dict[str, object]


def events(text: str) -> list[Event]:
    """`A 3 id=1, B 5`: type, time, attributes."""
    found = []
    for one in text.split(","):
        kind, ts, *rest = one.split()
        values = {k: None if v == "null" else float(v) if k == "price" else v if k == "s" else int(v) for k, v in
                  (item.split("=") for item in rest)}  # fmt: skip
        found.append({"type": kind, "ts": int(ts), **values})
    return found


def why(pattern: str, stream: str, schema: qc.Schema = SCHEMA, **asked: object) -> Why:
    return qc.compile(f"PATTERN {pattern}", schema).why(events(stream), **asked)  # type: ignore[arg-type]


def only(found: Why) -> tuple[Miss, Failure]:
    """The nearest miss and the one requirement that it fails."""
    (failure,) = found.misses[0].failures
    return found.misses[0], failure


CHANGES = [
    # pattern, stream, the miss, what is found, the smallest change
    ("SEQ(A a, B b) WITHIN 10 min", "A 0, B 604, B 700", {"a": 0, "b": 1}, "takes 10 min 4 s",
     "WITHIN 604 s (10 min 4 s)"),
    ("SEQ(A a, B b) WITHIN 2 EVENTS", "A 0, C 1, B 2", {"a": 0, "b": 2}, "takes 3 events", "WITHIN 3 EVENTS"),
    ("SEQ(A a, SEQ(B b, C c) WITHIN 2, D d) WITHIN 30", "A 3, B 4, C 8, D 9", None, "takes 4 s", "WITHIN 4 s"),
    ("SEQ(A a, B b, b.n > 5) WITHIN 9", "A 0, B 1 n=4, B 2 n=1", {"a": 0, "b": 1}, "4 > 5, off by 1", "b.n > 3"),
    ("SEQ(A a, B b, b.n >= 5) WITHIN 9", "A 0, B 1 n=4", None, "4 >= 5, off by 1", "b.n >= 4"),
    ("SEQ(A a, B b, b.price < 5.0) WITHIN 9", "A 0, B 1 price=5.5", None, "5.5 < 5.0, off by 0.5", "b.price <= 5.5"),
    (
        "SEQ(A a, B b, b.price > a.price * 1.1) WITHIN 9",
        "A 0 price=10, B 1 price=10.5",
        None,
        "10.5 > 10.0 * 1.1, off by 0.5",
        "b.price >= a.price * 1.05",
    ),
    ("SEQ(A a, B b, b.n > a.n) WITHIN 9", "A 0 n=7, B 1 n=4", None, "4 > 7, off by 3", "b.n > a.n - 4"),
    ("SEQ(A a, B b, b.n > a.n + 1) WITHIN 9", "A 0 n=7, B 1 n=4", None, "4 > 7 + 1, off by 4", "b.n > a.n - 4"),
    ("SEQ(A a, B b, a.id = b.id) WITHIN 9", "A 0 id=7, B 1 id=9", None, "7 = 9", "without it"),
    ("SEQ(A a, B b, a.s = 'x') WITHIN 9", "A 0 s=y, B 1", None, "'y' = 'x'", "a.s = 'y'"),
    ("SEQ(A a, B b, a.n in (1, 2)) WITHIN 9", "A 0 n=3, B 1", None, "3 in (1, 2)", "a.n in (1, 2, 3)"),
    ("SEQ(A a, B b, b.n > 5) WITHIN 9", "A 0, B 1 n=null", None, "null > 5 is unknown", "((b.n > 5) or (b.n is null))"),
    ("SEQ(A a, B b) WITHIN 9", "B 0, A 3", None, "b (row 0) came 3 s before a (row 1)",
     "AND instead of SEQ: any order"),
    (
        "SEQ(A a, B b) WITHIN 9",
        "A 3, B 3",
        None,
        "a (row 0) and b (row 1) have the same time",
        'Schema(ties="arrival")',
    ),
    ("SEQ(A a, B b) PARTITION BY id WITHIN 9", "A 3 id=1, B 4 id=2", None, "id is 1 of a (row 0) and 2 of b (row 1)",
     "without it"),
    ("SEQ(A a, !B b, C c) WITHIN 9", "A 1, B 2, C 3", {"a": 0, "c": 2}, "violated by b row 1 at 2", "without it"),
    ("AND(A a, C c, !B b) WITHIN 9", "A 1, B 2, C 3", None, "violated by b row 1 at 2", "without it"),
    ("SEQ(!B b, A a) WITHIN 9", "B 1, A 3", {"a": 1}, "violated by b row 0 at 1", "without it"),
    ("SEQ(A a, !B b) WITHIN 9", "A 1, B 3", {"a": 0}, "violated by b row 1 at 3", "without it"),
    (
        "SEQ(A a, !SEQ(B b, C c, b.id = c.id), D d) WITHIN 9",
        "A 1, B 2 id=1, B 3 id=2, C 4 id=2, D 5",
        {"a": 0, "d": 4},
        "violated by b row 2 at 3; c row 3 at 4",
        "without it",
    ),
    ("SEQ(A a, B[3] b, C c) WITHIN 9", "A 1, B 2, B 3, C 4", {"a": 0, "b": [1, 2], "c": 3}, "2 of 3", "[2] instead"),
    (
        "SEQ(A a, B+ b, b.n > 3) WITHIN 9",
        "A 1, B 2 n=1, B 3 n=2",
        {"a": 0, "b": [2]},
        "2 > 3, off by 1 at b (row 2); 2 of 2 elements fail",
        "b.n > 1",
    ),
    ("SEQ(A a, B+ b, sum(b.n) > 3) WITHIN 9", "A 1, B 2 n=1, B 3 n=2", None, "3 > 3", "sum(b.n) > 2"),
    ("SEQ(A a, Bar b) WITHIN 9", "A 1, bar 2", None, "no event has this type, but there is bar", "bar instead of it"),
    ("SEQ(A a, OR(B b, SEQ(C c, D d))) WITHIN 9", "A 1, C 2, D 40", {"a": 0, "c": 1, "d": 2}, "takes 39 s",
     "WITHIN 39 s"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "stream", "rows", "found", "change"), CHANGES)
def test_the_smallest_change(pattern: str, stream: str, rows: object, found: str, change: str) -> None:
    told = why(pattern, stream)
    miss, failure = only(told)
    assert (failure.found, failure.change) == (found, change)
    assert rows is None or miss.rows == rows
    schema = qc.Schema.from_dict({**SCHEMA.to_dict(), **miss.schema})
    assert miss.rows in qc.compile(miss.query, schema).run(events(stream)).rows()
    assert told.matches.n == 0
    assert found in str(told)


def test_several_requirements_at_once() -> None:
    found = why("SEQ(A a, B b, a.id = b.id, b.n > 4) WITHIN 3", "A 3 id=1, B 8 id=2 n=3")
    assert found.obstacles == ()
    (miss,) = found.misses
    assert [f.change for f in miss.failures] == ["WITHIN 5 s", "without it", "b.n > 2"]


def test_the_funnel() -> None:
    found = why(
        "SEQ(A a, !X x, B b, C c, a.id = b.id, b.n > 1, c.n > 5) WITHIN 10",
        "A 0 id=1, A 1 id=2, B 2 id=1 n=1, B 3 id=1 n=2, B 4 id=2 n=null, C 5 n=9, C 90 n=9",
    )
    (funnel,) = found.funnels
    assert [(c.var, c.negated, c.events, c.left) for c in funnel.components] == [
        ("a", False, 2, 2), ("x", True, 0, 0), ("b", False, 3, 1), ("c", False, 2, 2)
    ]  # fmt: skip
    (own,) = funnel.components[2].conditions
    assert (own.condition, own.passed, own.unknown) == ("b.n > 1", 1, 1)
    assert [(s.variables, s.what, s.count.n) for s in funnel.stages] == [
        (("a", "b"), "in order, within 10 s", 2),
        (("a", "b"), "a.id = b.id", 1),
        (("a", "b", "c"), "in order, within 10 s", 1),
        (("a", "b", "c"), "!X x", 1),
    ]
    assert funnel.stopped is None
    assert found.matches.n == 1


def test_what_stopped_them_is_the_first_stage_of_nothing() -> None:
    (funnel,) = why("SEQ(A a, B b, C c) WITHIN 3", "A 0, B 1, C 9").funnels
    assert [(s.what, s.count.n) for s in funnel.stages][-2:] == [("in order", 1), ("within 3 s", 0)]
    assert funnel.stopped == "a, b, c: within 3 s"


def test_each_way_to_take_a_branch_has_its_funnel() -> None:
    found = why("SEQ(A a, OR(B b, SEQ(C c, D d))) WITHIN 9", "A 1, C 2, D 40")
    assert [f.reading for f in found.funnels] == ["a, b", "a, c, d"]
    assert [o.what for o in found.obstacles] == ["WITHIN 9 s (of a, c, d)"]


def test_too_few() -> None:
    found = why("SEQ(A a, B b, a.id = b.id) WITHIN 9", "A 1 id=1, B 2 id=1, B 3 id=2, A 20 id=1, B 30 id=1")
    assert found.matches.n == 1
    assert [(o.what, o.stopped.n) for o in found.obstacles] == [("WITHIN 9 s", 3 - 1), ("a.id = b.id", 1)]
    assert {f.change for m in found.misses for f in m.failures} == {"WITHIN 10 s", "WITHIN 29 s", "without it"}


def test_aggregates_are_asked_about_as_their_matches() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 3 AGG COUNT(*) GROUPBY a.id", SCHEMA)
    assert plan.why(events("A 1, B 9")).misses[0].rows == {"a": 0, "b": 1}


def test_a_contradiction_names_its_conditions() -> None:
    found = why("SEQ(A a, B b, a.n > 5, a.n < 3) WITHIN 3", "A 3 n=1, B 5")
    assert found.impossible == "a.n > 5 and a.n < 3 is never true"
    assert "no event can ever match: a.n > 5 and a.n < 3 is never true" in str(found)


def test_a_type_that_never_occurs() -> None:
    (funnel,) = why("SEQ(A a, Wash w) WITHIN 3", "A 1, wash 2").funnels
    assert (funnel.components[1].hint, funnel.stopped) == ("did you mean 'wash'?", "w: no event")
    (funnel,) = why("SEQ(A a, Zebra z) WITHIN 3", "A 1, wash 2").funnels
    assert funnel.components[1].hint == "types there are: A, wash"


def test_no_events_at_all() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 3", SCHEMA)
    found = plan.why({"ts": [], "type": [], "id": [], "price": [], "n": [], "s": []})
    assert (found.events, found.misses, found.funnels[0].stopped) == (0, (), "a: no event")


def test_concepts_of_a_hierarchy() -> None:
    schema = qc.Schema({"n": "int64"}, time_unit="s", hierarchy={"X": ["A", "B"]})
    found = why("SEQ(X x, C c, x.n > 3) WITHIN 9", "A 1 n=2, B 2 n=1, C 3 n=0", schema)
    assert found.funnels[0].components[0].events == 2
    assert only(found)[1].change == "x.n > 1"


def test_a_key_of_the_schema() -> None:
    schema = qc.Schema({"A": {"id": "int64"}, "B": {"id": "int64", "x": "float64"}}, time_unit="s", key="id")
    stream = {"A": {"ts": [1, 2], "id": [1, None]}, "B": {"ts": [3], "id": [2], "x": [1.5]}}
    found = qc.compile("PATTERN SEQ(A a, B b) WITHIN 5", schema).why(stream)
    assert found.funnels[0].components[0].conditions[0].condition == "a.id is not null"
    miss, failure = only(found)
    assert (failure.change, miss.schema) == ("Schema(key=None)", {"key": []})
    changed = qc.Schema.from_dict({**schema.to_dict(), **miss.schema})
    assert miss.rows in qc.compile(miss.query, changed).run(stream).rows()


def test_times_that_are_timestamps() -> None:
    schema = qc.Schema({"ts": "timestamp[ms]"})
    times = [datetime(2024, 1, 1, 8, 31), datetime(2024, 1, 1, 8, 45, 0, 500_000)]
    stream = pa.table({"ts": pa.array(times, pa.timestamp("ms")), "type": ["A", "B"]})
    miss, failure = only(qc.compile("PATTERN SEQ(A a, B b) WITHIN 10 min", schema).why(stream))
    assert failure.change == "WITHIN 840500 ms (14 min 500 ms)"
    assert [str(e) for e in miss.events] == ["a row 0 at 2024-01-01 08:31:00", "b row 1 at 2024-01-01 08:45:00.5"]
    late = qc.compile("PATTERN SEQ(A a, B b, b.ts > '2024-01-01T09:00:00') WITHIN 1 h", schema)
    miss, failure = only(late.why(stream))
    assert failure.found.endswith(", off by 14 min 59 s 500 ms")
    assert failure.change == "b.ts >= '2024-01-01T08:45:00.500000'"
    assert miss.rows in qc.compile(miss.query, schema).run(stream).rows()


def test_too_few_events_for_any_miss() -> None:
    found = why("SEQ(A a, A b, A c) WITHIN 9", "A 1, A 2")
    assert (found.misses, found.notes) == (
        (),
        ("no miss was found: there are too few events, or too many requirements are not met",),
    )


def test_it_is_data() -> None:
    found = why("SEQ(A a, B b, a.s = '<i>') WITHIN 9", "A 1 s=y, B 20")
    assert json.loads(json.dumps(found.to_dict()))["matches"] == {"n": 0, "exact": True}
    assert "&lt;i&gt;" in found._repr_html_()
    assert "<i>" not in found._repr_html_()


def test_as_many_misses_as_are_asked_for() -> None:
    stream = "A 0, B 10, B 11, B 12, B 13, B 14"
    assert [len(why("SEQ(A a, B b) WITHIN 3", stream, limit=n).misses) for n in (0, 1, 4)] == [0, 1, 4]


def test_a_limit_that_is_none() -> None:
    with pytest.raises(qc.DataError, match="limit=-1"):
        why("SEQ(A a, B b) WITHIN 3", "A 0", limit=-1)


def test_more_than_are_listed() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, a.n < b.n) WITHIN 1000", SCHEMA)
    stream = {"ts": range(1000), "type": ["A", "B"] * 500, "id": [1] * 1000, "price": [1.0] * 1000, "s": ["x"] * 1000}
    found = plan.why({**stream, "n": range(1000)})
    assert (str(found.matches), found.matches.exact) == ("at least 100,000", False)


def test_a_limit_of_time_is_told() -> None:
    found = why("SEQ(A a, B b) WITHIN 3", "A 0, B 10", limits=qc.Limits(max_seconds=1e-9))
    assert str(found.matches) == "not counted"
    assert found.notes == ("stopped after 1e-09 s: what is missing was not counted",)


def test_more_than_are_listed_are_narrowed_down() -> None:
    given = [{"ts": 60 * (i // 3) + i % 3, "type": "ABC"[i % 3]} for i in range(6000)]
    found = qc.compile("PATTERN SEQ(A a, B b, C c) WITHIN 1 s", SCHEMA).why(given)
    assert [m.failures[0].change for m in found.misses] == ["WITHIN 2 s"] * 3
    counted = [{"ts": i, "type": "A", "n": i} for i in range(501)]
    nearest = qc.compile("PATTERN A a WHERE a.n > 5000 WITHIN 1", SCHEMA).why(counted).misses[0]
    assert (nearest.rows, nearest.failures[0].change) == ({"a": 500}, "a.n > 499")
    several = [{"ts": i, "type": "ABC"[i % 3], "n": i} for i in range(1500)]
    found = qc.compile("PATTERN SEQ(A a, B b, C c) WHERE a.n > 5000 WITHIN 20", SCHEMA).why(several)
    assert found.misses[0].failures[0].change == "a.n > 1496"


def test_keys_of_an_empty_set() -> None:
    found = why("SEQ(A+ a, C* c, B+ b, [id]) WITHIN 9", "A 1 id=1, B 2 id=2")
    assert found.misses[0].failures[0].kind == "condition"


def test_a_negation_beside_a_set_of_its_own_part() -> None:
    found = why("AND(SEQ(B+ a, !A c), D d) WHERE count(a) = 1 WITHIN 8", "B 2, D 3, B 6")
    assert [o.what for o in found.obstacles] == ["count(a) = 1"]
    asked = why("AND(SEQ(B+ a, !A c), D d) WITHIN 8", "B 2, D 3, B 6", rows={"a": [2], "d": 1}).asked
    assert asked is not None
    assert [f.kind for f in asked.failures] == ["larger set"]


def test_a_window_beside_what_is_negated_after_it() -> None:
    found = why("SEQ(A a, B b, !C c) WITHIN 5 s", "A 10, B 16, C 30")
    assert [(o.kind, o.stopped.n) for o in found.obstacles] == [("window", 1)]
    assert [[f.change for f in m.failures] for m in found.misses] == [["WITHIN 6 s"]]
    found = why("SEQ(A a, B b, !C c, [id]) WITHIN 5 s", "A 1 id=1, B 2 id=1, C 8 id=1, A 10 id=2, B 16 id=2")
    assert len({str(m.rows) for m in found.misses}) == len(found.misses)


@pytest.mark.parametrize(
    ("condition", "change"),
    [
        ("a.n BETWEEN 10 AND 20", "((a.n >= 7) and (a.n <= 20))"),
        ("a.n >= 1700000000000001001", None),
        ("a.s = 'q'", None),
        ("a.s in ('q', 'r')", None),
        ("a.price in (1, 2)", None),
    ],
)
def test_changes_can_be_written_down(condition: str, change: str | None) -> None:
    given = [{"ts": 1, "type": "A", "n": 7, "s": "x\ny", "price": float("inf")}]
    miss = qc.compile(f"PATTERN A a WHERE {condition} WITHIN 9", SCHEMA).why(given).misses[0]
    assert len(qc.compile(miss.query, SCHEMA).run(given)) == 1
    if change is not None:
        assert miss.failures[0].change == change


def test_whole_numbers_are_changed_exactly() -> None:
    given = [{"ts": 1, "type": "A", "n": 1700000000000000001}]
    found = qc.compile("PATTERN A a WHERE a.n >= 1700000000000001001 WITHIN 1", SCHEMA).why(given)
    assert found.misses[0].failures[0].change == "a.n >= 1700000000000000001"
