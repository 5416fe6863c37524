"""When a stream gives a match: never before it is decided, which tests/test_stream.py checks, and never after.

A line of the table is a stream of one push per event: `c7:a1+b2` says that the push of a C at 7 gives the match of a1
and b2, and several matches stand in order between slashes. `@7` tells the stream that the clock is at 7, and `end`
closes it. Where nothing is said, nothing may come; so each match comes when it is said and never again. `a1.2` has 2 as
its id.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import quercus as qc
from quercus.backends.local.incremental import Engine
from quercus.kernels import match
from tests.generate import ATTRIBUTES, valid
from tests.stream_checks import events_of, plain_samples, punctuality, schema_of
from tests.test_engine import table

TABLE = [
    # positive patterns: with the last event
    ("SEQ(A a, B b) WITHIN 9", "a1 b2:a1+b2 c3 b4:a1+b4 c99"),
    ("SEQ(A a, B b, C c) WITHIN 9", "a1 b2 c3:a1+b2+c3 b4 c5:a1+b2+c5/a1+b4+c5"),
    ("SEQ(A a, B b) WITHIN 3 UNIT", "a1 c2 b3:a1+b3 b4"),
    ("AND(A a, B b) WITHIN 9", "b1 a2:b1+a2 b3:a2+b3"),
    ("A a WITHIN 9", "a1:a1 a1:a1 b2"),
    # between, before, inside: what is negated lies in the past
    ("SEQ(A a, !B b, C c) WITHIN 9", "a1 c3:a1+c3 b4 c5"),
    ("SEQ(A a, !B b, C c) WITHIN 9", "a1 c3:a1+c3 b3 c99"),
    ("SEQ(!A a, B b) WITHIN 5", "a1 b6 b7:b7 c99"),
    ("SEQ(!A a, B b) WITHIN 2 UNIT", "a1 b2 b3:b3"),
    ("SEQ(A a, SEQ(B b, !C c), D d) WITHIN 9", "a1 b2 d3:a1+b2+d3 c4 d5"),
    ("SEQ(A a, !SEQ(B b, C c), D d) WITHIN 9", "a1 b2 d3:a1+d3 c4 d5"),
    ("SEQ(A a, AND(B b, !C c), D d) WITHIN 9", "a1 b2 d3:a1+b2+d3 c4 d5"),
    # at the end: an event at start.ts + w can still violate it
    ("SEQ(A a, !B b) WITHIN 5", "a1 c6 c7:a1 c8"),
    ("SEQ(A a, !B b) WITHIN 5", "a1 c6 b6 c7"),
    ("SEQ(A a, !B b) WITHIN 5", "a1 b7:a1 b8"),
    ("SEQ(A a, !B b) WITHIN 5", "a1 a3 c7:a1 c9:a3"),
    ("SEQ(A a, !B b) WITHIN 5", "a1 a2 c99:a1/a2"),
    ("SEQ(A a, C c, !B b) WITHIN 5", "a1 c3 c5 d6 c7:a1+c3/a1+c5"),
    ("SEQ(A a, !SEQ(B b, C c)) WITHIN 5", "a1 b2 d6 d7:a1"),
    ("SEQ(A a, !SEQ(B b, C c)) WITHIN 5", "a1 b2 c6 d7"),
    ("SEQ(A a, AND(B b, !C c)) WITHIN 5", "a1 b2 d6 d7:a1+b2"),
    ("SEQ(A a, SEQ(B b, !C c) WITHIN 1) WITHIN 5", "a1 b2 d6 d7:a1+b2"),
    # with windows of events: once as many as that have been seen from the start
    ("SEQ(A a, !B b) WITHIN 3 UNIT", "a1 c2 c3:a1 b4"),
    ("SEQ(A a, !B b) WITHIN 3 UNIT", "a1 c1 b1:a1 c99"),
    ("SEQ(A a, !B b) WITHIN 3 UNIT", "a1 c1 b2 c99"),
    ("SEQ(A a, !B b) WITHIN 3 UNIT", "a1 c98 c99:a1"),
    ("SEQ(A a, !B b) WITHIN 1 UNIT", "a1:a1 b2"),
    ("SEQ(A a, C c, !B b) WITHIN 3 UNIT", "a1 c2 d3:a1+c2"),
    ("SEQ(A a, C c, !B b) WITHIN 3 UNIT", "a1 d2 c3:a1+c3 b4"),
    # in a root AND: once the clock is past its end
    ("AND(A a, !B b) WITHIN 5", "a3 c3 c4:a3 b5"),
    ("AND(A a, !B b) WITHIN 5", "a3 b3 c4"),
    ("AND(A a, !B b) WITHIN 5", "a3 b4:a3"),
    ("AND(A a, !B b) WITHIN 5", "b1 a3 c4 a7 c8:a7"),
    ("AND(A a, C c, !B b) WITHIN 5", "a1 c3 d3 d4:a1+c3"),
    ("AND(A a, C c, !B b) WITHIN 5", "c1 a3 b3 d4"),
    ("AND(A a, !B b) WITHIN 5 UNIT", "a3:a3 b3"),
    ("AND(SEQ(A a, !B b), C c) WITHIN 5", "a1 c3 d3 d4:a1+c3"),
    ("AND(SEQ(A a, !B b), C c) WITHIN 5", "c1 a2:a2+c1 d3"),
    # sets that can grow no more
    ("SEQ(A a, B+ b, C c) WITHIN 9", "a1 b2 b3 c4:a1+b2+b3+c4 b5 c6:a1+b2+b3+b5+c6"),
    ("SEQ(B+ b, C c) WITHIN 9", "b1 b2 c3:b1+b2+c3"),
    ("SEQ(B* b, C c) WITHIN 9", "c1:c1 b2 c3:b2+c3"),
    ("SEQ(A a, B* b, C c) WITHIN 9", "a1 c2:a1+c2 b3 c4:a1+b3+c4"),
    ("SEQ(A a, B[2] b) WITHIN 9", "a1 b2 b3:a1+b2+b3 b4:a1+b2+b4/a1+b3+b4"),
    ("SEQ(B[2] b, !C c) WITHIN 5", "b1 b3 c4 b6:b1+b6 d7 d8 d9:b3+b6"),
    ("SEQ(A a, B[1] b) WITHIN 9", "a1 b2:a1+b2"),
    # sets that can grow until the window is over
    ("SEQ(A a, B+ b) WITHIN 5", "a1 b2 b6 c6 c7:a1+b2+b6"),
    ("SEQ(A a, B+ b) WITHIN 5", "a1 b2 b6 b6 c7:a1+b2+b6+b6"),
    ("SEQ(A a, B+ b) WITHIN 5", "a1 b2 b7:a1+b2"),
    ("SEQ(A a, B* b) WITHIN 5", "a1 c6 c7:a1"),
    ("SEQ(A a, B* b) WITHIN 5", "a1 b3 c7:a1+b3"),
    ("SEQ(A a, B+ b) WITHIN 3 UNIT", "a1 b2 c3:a1+b2 b4"),
    ("SEQ(A a, B+ b) WITHIN 3 UNIT", "a1 b2 b3:a1+b2+b3 b4"),
    ("B+ b WITHIN 3", "b1 b3 b5:b1+b3 c6 c7:b3+b5"),
    ("SEQ(A a, !C c, B* b) WITHIN 5", "a1 d6 d7:a1"),
    ("SEQ(A a, !C c, B* b) WITHIN 5", "a1 c2 b3 d7"),
    ("SEQ(A a, !C c, B* b) WITHIN 5", "a1 b2 c3 d7:a1+b2"),
    # a window of its own ends a set's growth before the query's does, never after
    ("SEQ(A a, SEQ(B b, C+ c) WITHIN 2) WITHIN 100", "a1 b2 c3 d4 d5:a1+b2+c3"),
    ("SEQ(A a, SEQ(B b, C+ c) WITHIN 2) WITHIN 100", "a1 b2 c3 c4 c5:a1+b2+c3+c4"),
    ("SEQ(A a, SEQ(B b, C+ c) WITHIN 3 UNIT) WITHIN 100", "a1 b2 c3 d4:a1+b2+c3 c5"),
    ("SEQ(A a, SEQ(B b, C+ c) WITHIN 50) WITHIN 5", "a1 b2 c3 d6 d7:a1+b2+c3"),
    ("SEQ(A a, SEQ(B b, !D d, C* c) WITHIN 2) WITHIN 9", "a1 b2 c3 b5:a1+b2+c3"),
    # each order of an AND for itself
    ("AND(A* a, B b) WITHIN 5", "b1:b1 c6 c7 c8"),
    ("AND(A* a, B b) WITHIN 5", "b1:b1 a2 c6 c7:b1+a2"),
    ("AND(A* a, B b) WITHIN 5", "a1 b2:a1+b2 c7 c8:b2"),
    ("AND(A+ a, B b) WITHIN 5", "a1 b2:a1+b2 a3 c7 c8:b2+a3"),
    ("AND(A[2] a, B b) WITHIN 9", "a1 b2 a3 a4:b2+a3+a4 b5:a1+a3+b5/a1+a4+b5/a3+a4+b5"),
    # each branch of an OR for itself
    ("OR(A a, SEQ(B b, !C c)) WITHIN 5", "a1:a1 b2 a3:a3 d7 d8:b2"),
    ("OR(SEQ(A a, !C c), SEQ(B b, D d)) WITHIN 5", "a1 b2 d3:b2+d3 d7:a1/b2+d7"),
    ("OR(SEQ(A a, B+ b), SEQ(A a, C c)) WITHIN 5", "a1 b2 c3:a1+c3 d7:a1+b2"),
    # keys: positions are each key's own, the clock is everyone's
    ("SEQ(A a, !B b) PARTITION BY id WITHIN 5", "a1.1 c6.2 c7.2:a1.1"),
    ("SEQ(A a, !B b) PARTITION BY id WITHIN 5", "a1.1 b2.2 c7:a1.1"),
    ("SEQ(A a, !B b, [id]) WITHIN 5", "a1.1 b2.2 c7.3:a1.1"),
    ("SEQ(A a, !B b) PARTITION BY id WITHIN 2 UNIT", "a1.1 c2.2 c3.2 b4.2 c5.1:a1.1"),
    ("SEQ(A a, !B b, [id]) WITHIN 2 UNIT", "a1.1 c2.2:a1.1"),
    ("SEQ(A a, B+ b) PARTITION BY id WITHIN 5", "a1.1 a2.2 b3.1 b4.2 c7.3:a1.1+b3.1 c8:a2.2+b4.2"),
    # a clock that moves without an event
    ("SEQ(A a, !B b) WITHIN 5", "a1 @6 @7:a1 @99"),
    ("AND(A a, !B b) WITHIN 5", "a3 @3 @4:a3"),
    ("SEQ(A a, B+ b) WITHIN 5", "a1 b2 @7:a1+b2 b7"),
    ("SEQ(A a, !B b) WITHIN 5", "a1 c3 @2 c6 c7:a1"),
    ("SEQ(A a, !B b) WITHIN 3 UNIT", "a1 @99 c99 c99:a1"),
    # the end closes everything
    ("SEQ(A a, B b) WITHIN 5", "a1 b2:a1+b2 end"),
    ("SEQ(A a, !B b) WITHIN 5", "a1 end:a1"),
    ("SEQ(A a, !B b) WITHIN 5 UNIT", "a1 c2 end:a1"),
    ("AND(A a, !B b) WITHIN 5", "a3 end:a3"),
    ("SEQ(A a, B* b) WITHIN 5", "a1 a2 b3 end:a1+b3/a2+b3"),
    ("AND(A* a, B b) WITHIN 5", "b1:b1 end"),
    ("AND(A* a, B b) WITHIN 5", "a1 b2:a1+b2 end:b2"),
    ("SEQ(A a, SEQ(B b, C+ c) WITHIN 2) WITHIN 100", "a1 b2 c3 end:a1+b2+c3"),
]
ARRIVAL = [  # ties="arrival": events at the clock's own time still come after
    ("SEQ(A a, B b) WITHIN 9", "a1 b1:a1+b1"),
    ("SEQ(A a, !B b, C c) WITHIN 9", "a1 c1:a1+c1 b1 c1"),
    ("SEQ(A a, !B b) WITHIN 5", "a1 c6 b6 c7"),
    ("SEQ(A a, !B b) WITHIN 5", "a1 c6 c7:a1"),
    ("AND(A a, !B b) WITHIN 5", "a3 b3 c4"),
    ("SEQ(A a, B+ b) WITHIN 5", "a1 b1 b6 b6 c7:a1+b1+b6+b6"),
]
DELAYED = [  # max_delay=2: the clock is two behind the greatest time seen
    ("SEQ(A a, B b) WITHIN 9", "a1 b2 c3 c4:a1+b2"),
    ("SEQ(A a, B b) WITHIN 9", "b2 a1 c4:a1+b2"),
    ("SEQ(A a, B b) WITHIN 9", "b2 a1 @1 @2:a1+b2"),
    ("SEQ(A a, B b) WITHIN 9", "a1 b2 end:a1+b2"),
    ("SEQ(A a, !B b) WITHIN 5", "a1 c8 c9:a1"),
    ("SEQ(A a, !B b) WITHIN 5", "a1 c8 b6 c9"),
    ("SEQ(A a, !B b) WITHIN 5", "a1 c8 @6 @7:a1"),
    ("AND(A a, !B b) WITHIN 5", "a3 c5 c6:a3"),
    ("SEQ(A a, !B b) WITHIN 3 UNIT", "a1 c2 c3 c4 c5:a1"),
    ("SEQ(A a, B+ b) WITHIN 5", "a1 b7 b6 b5 c9:a1+b5+b6"),
]

LAST_MOMENT = [  # strict order leaves no time after an event at the end of the window
    ("SEQ(A a, C c, !B b) WITHIN 5", "a1 c6:a1+c6 d7"),
    ("SEQ(A a, AND(B* b, C c)) WITHIN 5", "a1 b2 c6:a1+c6/a1+b2+c6 d7"),
    ("SEQ(A a, C c, !B b) WITHIN 5", "a1 c3 c6:a1+c6 c6:a1+c6 d7:a1+c3"),
    ("SEQ(A+ a, C c, !B b) WITHIN 5", "a1 a2 c6:a1+a2+c6 d7 c7:a2+c7 c8"),
    ("SEQ(A a, C c, B* b) WITHIN 5", "a1 c6:a1+c6 d7"),
    ("SEQ(A a, B+ b, (C+ c) WITHIN 2) WITHIN 99", "a1 b2 c3 d5 d6:a1+b2+c3"),
    ("AND(!D d, SEQ(A a, B+ b) WITHIN 3 EVENTS) WITHIN 9", "a1 b2 b3 c3 c4:a1+b2+b3"),
]


def released(stream: Any, text: str) -> None:
    """Push what the line says, and compare what comes with what the line says."""
    names: list[str] = []
    closed = False
    for word in text.split():
        step, _, expected = word.partition(":")
        if step == "end":
            stream.close()
            closed, given = True, stream.final
        elif step.startswith("@"):
            given = stream.advance(int(step[1:]))
        else:
            names.append(step)
            given = stream.push(table_of(step))
        wanted = [sorted(match.split("+")) for match in expected.split("/")] if expected else []
        assert [events_in(row, names) for row in given.rows()] == wanted, f"{text}\nat {word}"
    if not closed:
        stream.close()


def table_of(step: str) -> Any:
    return table(events_of(step)).select(["ts", "type", "id"])


def events_in(row: dict[str, int | list[int]], names: list[str]) -> list[str]:
    return sorted(names[at] for bound in row.values() for at in ([bound] if isinstance(bound, int) else bound))


def ids(case: tuple[str, str]) -> str:
    return f"{case[0]}: {case[1]}"


@pytest.mark.parametrize("case", TABLE, ids=ids)
def test_a_match_comes_as_soon_as_it_is_decided(case: tuple[str, str]) -> None:
    released(qc.compile(f"PATTERN {case[0]}", qc.Schema({"id": "int64"})).stream(), case[1])


@pytest.mark.parametrize("case", LAST_MOMENT, ids=ids)
def test_strict_order_leaves_no_time_at_the_end_of_a_window(case: tuple[str, str]) -> None:
    released(qc.compile(f"PATTERN {case[0]}", qc.Schema({"id": "int64"})).stream(), case[1])


@pytest.mark.parametrize("case", ARRIVAL, ids=ids)
def test_ties_by_arrival(case: tuple[str, str]) -> None:
    released(qc.compile(f"PATTERN {case[0]}", qc.Schema({"id": "int64"}, ties="arrival")).stream(), case[1])


@pytest.mark.parametrize("case", DELAYED, ids=ids)
def test_a_delay_moves_the_clock(case: tuple[str, str]) -> None:
    released(qc.compile(f"PATTERN {case[0]}", qc.Schema({"id": "int64"})).stream(max_delay=2), case[1])


@pytest.mark.parametrize("case", [c for c in TABLE if "PARTITION BY id" in c[0]], ids=ids)
def test_a_declared_key(case: tuple[str, str]) -> None:
    query = case[0].replace("PARTITION BY id ", "")
    released(qc.compile(f"PATTERN {query}", qc.Schema({"id": "int64"}, key="id")).stream(), case[1])


@pytest.mark.parametrize("case", TABLE, ids=ids)
def test_snapshots_between_all_pushes_change_no_moment(case: tuple[str, str]) -> None:
    plan = qc.compile(f"PATTERN {case[0]}", qc.Schema({"id": "int64"}))
    released(Restored(plan), case[1])


class Restored:
    """A stream that goes on from a snapshot at every step."""

    def __init__(self, plan: qc.Plan) -> None:
        self.plan, self.stream = plan, plan.stream()

    def step(self) -> Any:
        self.stream = self.plan.restore(self.stream.snapshot())
        return self.stream

    def push(self, events: Any) -> Any:
        return self.step().push(events)

    def advance(self, ts: int) -> Any:
        return self.step().advance(ts)

    def close(self) -> None:
        self.step().close()

    @property
    def final(self) -> Any:
        return self.stream.final


@pytest.mark.parametrize(
    "line",
    [
        "a1 c6:a1 c7",  # early
        "a1 c6 c7 c8:a1",  # late
        "a1 c6 c7:a1 c8:a1",  # twice
        "a1 c6 c7",  # not at all
        "a1 c6 c7:c6",  # another
    ],
)
def test_a_wrong_moment_is_noticed(line: str) -> None:
    plan = qc.compile("PATTERN SEQ(A a, !B b) WITHIN 5", qc.Schema({"id": "int64"}))
    with pytest.raises(AssertionError, match="at c"):
        released(plan.stream(), line)


def test_one_push_gives_all_that_it_decides() -> None:
    plan = qc.compile("PATTERN OR(SEQ(A a, !B b), C c) WITHIN 5", qc.Schema({"id": "int64"}))
    with plan.stream() as s:
        assert s.push(events_of("a1 a2 c3 a4 c8")).rows() == [{"a": 0}, {"a": 1}, {"c": 2}, {"c": 4}]
    assert s.final.rows() == [{"a": 3}]


def test_nothing_before_the_clock_may_come_after_it_is_told() -> None:
    with qc.compile("PATTERN SEQ(A a, B b) WITHIN 9", qc.Schema({"id": "int64"})).stream(max_delay=5) as s:
        assert s.push(events_of("a1")).rows() == []
        assert s.advance(4).rows() == []
        with pytest.raises(qc.DataError):
            s.push(events_of("b3"))
        assert s.push(events_of("b4")).rows() == [{"a": 0, "b": 1}]
        assert s.advance(3).rows() == []  # the clock never goes back
        with pytest.raises(qc.DataError):
            s.push(events_of("b3"))


@pytest.mark.parametrize("ts", [None, "7", 10**30, object()])
def test_a_clock_is_a_time(ts: Any) -> None:
    with qc.compile("PATTERN SEQ(A a, !B b) WITHIN 5", qc.Schema({"id": "int64"})).stream() as s:
        s.push(events_of("a1"))
        with pytest.raises(qc.DataError):
            s.advance(ts)
        assert s.push(events_of("c7")).rows() == [{"a": 0}]


# An adversary: what is held back, one or two more events could undo ---------------------------------------------------


def judged(
    seeds: range,
    pushes: Callable[[qc.Plan, Any], list[Any]],
    ties: str | None = None,
    key: tuple[str, ...] = (),
) -> tuple[int, int, list[str]]:
    held, early, late = 0, 0, []
    for sample, query in plain_samples(seeds, ties, key):
        plan = qc.compile(sample.query, schema_of(sample))
        found = punctuality(sample, query, pushes(plan, sample))
        held, early = held + found.held, early + found.early
        late += [f"{sample}\nafter {count} events {set(match)} was decided" for count, match in found.late]
    return held, early, late


def one_by_one(plan: qc.Plan, sample: Any) -> list[Any]:
    with plan.stream() as s:
        return [s.push(table([e])).rows() for e in sample.events]


def all_at_the_end(plan: qc.Plan, sample: Any) -> list[Any]:
    return [[] for _ in sample.events]


@pytest.mark.parametrize("first", range(800_000, 800_300, 60))
def test_nothing_is_held_back_that_no_event_can_undo(first: int) -> None:
    held, early, late = judged(range(first, first + 60), one_by_one)
    assert not late, late[0]
    assert held > 10
    assert early > 10


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2_200_000, 2_206_000, 500))
def test_nothing_is_held_back_that_no_event_can_undo_at_length(first: int) -> None:
    _, _, late = judged(range(first, first + 500), one_by_one)
    assert not late, late[0]


def test_what_is_held_back_for_nothing_is_noticed() -> None:
    _, early, late = judged(range(800_000, 800_012), all_at_the_end)
    assert late
    assert early == 0


# Nothing is joined twice ----------------------------------------------------------------------------------------------


class Counted(match.StreamMatcher):
    """Counts the candidates that all searches together look at."""

    compared = 0

    def run(self, *moments: Any) -> Any:
        found = super().run(*moments)
        self.compared += self.counters["compared"]
        return found


def work(plan: qc.Plan, events: list[Any], size: int) -> tuple[int, int]:
    """The candidates that a stream compares when it is pushed in pieces of this size, and how many matches it gives."""
    with plan.stream() as s:
        given = sum(len(s.push(table(events[i : i + size]))) for i in range(0, len(events), size))
        s.close()
        return s._engine.matcher.compared, given + len(s.final)


def tied_events(seed: int, count: int) -> list[Any]:
    r = Random(seed)
    return [
        {
            "type": r.choice("AABBCD"),
            "ts": i * 2 // 3,
            "id": r.randint(0, 1),
            "v": r.randint(0, 4),
            "f": 0.5,
            "s": "p",
            "b": True,
        }
        for i in range(count)
    ]


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "StreamMatcher", Counted)
    monkeypatch.setattr(Engine, "_feed_of", lambda self, schema: None)


WAITING = [
    "SEQ(A a, B b) WITHIN 9",
    "AND(A a, B b, !D d) WITHIN 3",
    "SEQ(A a, B b, !C c) WITHIN 9",
    "SEQ(A+ a, B b, !C c) WITHIN 9",
    "SEQ(A+ a, B b, D d, !C c) WITHIN 12 EVENTS",
    "SEQ(A* a, B b, !(C c, c.id = b.id)) WITHIN 9",
    "SEQ(A+ a, B b, !C c) WHERE a.v < b.v WITHIN 9",
    "SEQ(A a, SEQ(B b, C+ c) WITHIN 2) WITHIN 9",
    "SEQ(A a, SEQ(B b, C+ c) WITHIN 4 EVENTS) WITHIN 9",
    "AND(SEQ(B b, C+ c) WITHIN 2, A a) WITHIN 9",
    "B+ b WITHIN 5",
]


@pytest.mark.parametrize("ties", ["strict", "arrival"])
@pytest.mark.parametrize("query", WAITING)
def test_work_does_not_grow_with_the_number_of_pushes(query: str, ties: str, counting: None) -> None:
    plan = qc.compile(f"PATTERN {query}", qc.Schema(ATTRIBUTES, ties=ties))
    events = tied_events(7, 120)
    (whole, found), (single, given) = work(plan, events, 120), work(plan, events, 1)
    assert given == found > 0
    assert single <= 2 * whole


@pytest.mark.parametrize("first", range(810_000, 810_160, 40))
def test_random_queries_join_nothing_again(first: int, counting: None) -> None:
    for sample, _ in valid(range(first, first + 40)):
        plan = qc.compile(sample.query, sample.schema())
        events = tied_events(sample.seed, 40)
        (whole, found), (single, given) = work(plan, events, 40), work(plan, events, 1)
        assert given == found, sample
        assert single <= 2 * whole + 40, sample
