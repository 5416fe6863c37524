"""What a stream may use: limits that stop it, and memory that stays as it is, however long the stream."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local import incremental
from quercus.backends.local.delay import duration

SCHEMA = qc.Schema({"id": "int64"})


def many(types: str, count: int, first: int = 0) -> pa.Table:
    names = np.array(list(types))[np.arange(count) % len(types)]
    return pa.table({"ts": np.arange(first, first + count), "type": names, "id": np.arange(count) % 7})


@pytest.mark.parametrize(
    ("query", "types", "name"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 1000000000", "A", "a"),
        ("PATTERN SEQ(A a, !B b) WITHIN 1000000000", "AC", "a"),
        ("PATTERN SEQ(C c, A a, B b) WITHIN 1000000000", "CAAAA", "a"),
        ("PATTERN SEQ(C c, A+ a, !B b) WITHIN 1000000000", "CCCCCCCA", "c"),
    ],
)
def test_too_much_state_stops_and_says_what_it_is(query: str, types: str, name: str) -> None:
    stream = qc.compile(query, SCHEMA).stream(limits=qc.Limits(max_state_bytes=1_000_000, max_matches=10**9))
    source = (many(types, 1_000, 1_000 * number) for number in range(1_000))
    with pytest.raises(qc.LimitExceeded) as e:
        list(map(stream.push, source))
    assert e.value.limit == "max_state_bytes"
    assert f"the buffer of ({name}) holds most" in str(e.value)
    assert "max_state_bytes=" in str(e.value)


def test_state_within_the_limit_is_no_problem() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 3", SCHEMA)
    with plan.stream(limits=qc.Limits(max_state_bytes=1_000_000)) as s:
        found = sum(len(s.push(many("AB", 10_000, 10_000 * number))) for number in range(20))
    assert found + len(s.final) == len(plan.run(many("AB", 200_000)))


def test_too_many_matches_stop() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 1000", SCHEMA)
    with pytest.raises(qc.LimitExceeded) as e, plan.stream(limits=qc.Limits(max_matches=99)) as s:
        s.push(many("AB", 1_000))
    assert e.value.limit == "max_matches"


def test_too_long_a_push_stops() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, A c, B d, a.id + b.id = c.id + d.id + 100) WITHIN 100000", SCHEMA)
    with pytest.raises(qc.LimitExceeded) as e, plan.stream(limits=qc.Limits(max_seconds=0.5)) as s:
        s.push(many("AB", 4_000))
    assert e.value.limit == "max_seconds"


@pytest.mark.parametrize(
    ("query", "limits", "types"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 1000", qc.Limits(max_matches=500), "AB"),
        ("PATTERN SEQ(A a, B b) WITHIN 1000 AGG MIN(a.type) AS n GROUPBY a.id", qc.Limits(max_matches=500), "AB"),
        ("PATTERN SEQ(A a, !B b) WITHIN 10000", qc.Limits(max_state_bytes=50_000), "AC"),
        ("PATTERN AND(A* a, B b) WITHIN 1000", qc.Limits(max_matches=50), "AB"),
        ("PATTERN SEQ(A a, B b) PARTITION BY id WITHIN 99 EVENTS", qc.Limits(max_matches=500), "AB"),
    ],
)
@pytest.mark.parametrize("delay", [0, 3])
def test_a_limit_leaves_the_stream_as_it_was(query: str, limits: qc.Limits, types: str, delay: int) -> None:
    plan = qc.compile(query, SCHEMA)
    stream, free = plan.stream(limits=limits, max_delay=delay), plan.stream(max_delay=delay)
    stream.push(many(types, 20))
    free.push(many(types, 20))
    before = stream.snapshot()
    with pytest.raises(qc.LimitExceeded):
        stream.push(many(types, 5_000, 20))
    assert stream.snapshot() == before == free.snapshot()
    rest = many(types, 20, 20)
    assert stream.push(rest).to_arrow() == free.push(rest).to_arrow()
    assert stream.close().to_arrow() == free.close().to_arrow()


# Memory ---------------------------------------------------------------------------------------------------------------

LONG_RUNS = [
    "PATTERN SEQ(A a, B b, [id]) WITHIN 2000",
    "PATTERN SEQ(A a, !B b, C c, [id]) WITHIN 3000",
    "PATTERN SEQ(A a, !D d, [id]) WITHIN 1000",
    "PATTERN SEQ(A a, B+ b, [id]) WITHIN 2000",
    "PATTERN SEQ(A a, B b, [id]) PARTITION BY id WITHIN 3 EVENTS",
    "PATTERN SEQ(A a, B b, [id]) WITHIN 2000 AGG COUNT(*) AS n, SUM(b.id) AS total GROUPBY a.id",
]


class Source:
    """Batches without end: a few drawn once, with new times each time."""

    def __init__(self, size: int) -> None:
        r = np.random.default_rng(7)
        self.size, self.next = size, 0
        names = np.array(["A", "B", "C", "D", "E", "F", "G", "H"])
        self.drawn = [
            {"type": pa.array(names[r.integers(0, 8, size)]), "id": pa.array(r.integers(0, 1_000, size))}
            for _ in range(4)
        ]

    def batch(self) -> pa.Table:
        ts = np.arange(self.next, self.next + self.size)
        found = pa.table({"ts": ts, **self.drawn[self.next // self.size % 4]})
        self.next += self.size
        return found


@pytest.mark.parametrize("query", LONG_RUNS)
def test_state_does_not_grow(query: str) -> None:
    source = Source(5_000)
    with qc.compile(query, SCHEMA).stream() as s:
        sizes = []
        for _ in range(40):
            s.push(source.batch())
            sizes.append(len(s.snapshot()))
    assert max(sizes[20:]) < 1.5 * max(sizes[4:12]), sizes


def resident() -> int:
    """Bytes of memory that the process has now."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("no /proc to read the memory in use from")
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


@pytest.mark.slow
@pytest.mark.parametrize("query", LONG_RUNS)
def test_memory_does_not_grow(query: str) -> None:
    """QUERCUS_SOAK_MILLIONS events in all, 50 unless told."""
    batches = int(float(os.environ.get("QUERCUS_SOAK_MILLIONS", "50")) * 10 / len(LONG_RUNS))
    source = Source(100_000)
    found = 0
    with qc.compile(query, SCHEMA).stream() as s:
        for number in range(batches):
            found += len(s.push(source.batch()))
            if number == batches // 10:
                early = resident()
        late = resident()
    assert found > batches
    assert abs(late - early) < 20_000_000, f"{early:,} bytes after a tenth, {late:,} at the end"


@pytest.mark.parametrize("condition", ["a.s = b.s", "a.s < b.s", "lower(max(a.s)) = lower(b.s)"])
def test_strings_are_forgotten_with_their_events(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental, "_STRINGS", 50)
    monkeypatch.setattr(incremental, "_SLACK", 50)
    kleene = "A+" if "max" in condition else "A"
    plan = qc.compile(f"PATTERN SEQ({kleene} a, B b) WHERE {condition} WITHIN 10", qc.Schema({"s": "string"}))
    n = 4_000
    texts = [f"{'xX'[i % 2]}{i // 10 * 7919 % 4001}{'pq'[i % 3 % 2]}" for i in range(n)]
    events = pa.table({"ts": range(n), "type": ["AB"[i % 5 == 0] for i in range(n)], "s": texts})
    found = []
    with plan.stream() as s:
        for i in range(0, n, 7):
            found += s.push(events.slice(i, 7)).rows()
        known = len(s._engine.labels)
    assert found + s.final.rows() == plan.run(events).rows()
    assert len(found) > 10
    assert known < 1_000


def test_events_that_wait_count_as_state() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 10", qc.Schema({"id": "int64"}))
    with plan.stream(max_delay=10**6, limits=qc.Limits(max_state_bytes=100_000)) as s:
        s.push({"ts": range(1_000), "type": ["A"] * 1_000, "id": range(1_000)})
        with pytest.raises(qc.LimitExceeded, match="max_state_bytes"):
            s.push({"ts": range(9_000), "type": ["A"] * 9_000, "id": range(9_000)})
        s.push({"ts": [2_000], "type": ["B"], "id": [1]})


def test_a_refused_push_leaves_no_key() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) PARTITION BY id WITHIN 3 EVENTS", qc.Schema({"id": "int64"}))
    with plan.stream(limits=qc.Limits(max_matches=1)) as s:
        s.push({"ts": [1], "type": ["A"], "id": [1]})
        before = s.snapshot()
        with pytest.raises(qc.LimitExceeded):
            s.push({"ts": [2, 2, 3, 3], "type": ["A", "A", "B", "B"], "id": [7, 8, 7, 8]})
        assert s.snapshot() == before
        assert s.push({"ts": [2, 3], "type": ["A", "B"], "id": [7, 7]}).rows() == [{"a": 1, "b": 2}]


def test_a_limit_in_close_loses_nothing_that_waits() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 9", qc.Schema({}))
    stream = plan.stream(max_delay=10)
    stream.push([{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}])
    stream.limits = qc.Limits(max_matches=0)
    with pytest.raises(qc.LimitExceeded):
        stream.close()
    assert plan.restore(stream.snapshot()).close().rows() == [{"a": 0, "b": 1}]
    stream.limits = qc.Limits()
    assert stream.close().rows() == [{"a": 0, "b": 1}]


def test_a_query_that_cannot_match_has_limits_too() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, a.id = 1, a.id = 2) WITHIN 9", SCHEMA)
    with pytest.raises(qc.LimitExceeded, match="would keep"):
        plan.stream(limits=qc.Limits(max_state_bytes=0)).push([{"ts": 1, "type": "A", "id": 1}])
    totals = qc.compile(f"{plan.text} AGG COUNT(*) AS n", SCHEMA).stream()
    assert list(totals.push(pa.RecordBatch.from_pylist([{"ts": 1, "type": "A", "id": 1}]))) == []
    assert totals.close().to_arrow().to_pylist() == [{"n": 0}]


def test_columns_that_are_not_ours_may_change() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 9", SCHEMA)
    for more in ({}, {"until": 5}):
        stream, ids = plan.stream(), np.array([1])
        stream.push({"ts": [1], "type": ["A"], "id": ids}, **more)
        ids[:] = 99
        found = stream.push([{"ts": 6, "type": "B", "id": 2}])
        assert found.to_arrow().column("a").to_pylist() == [{"ts": 1, "type": "A", "id": 1}]


@pytest.mark.parametrize(
    ("given", "unit", "expected"), [("8.2 s", "ms", 8200), ("0.55 min", "s", 33), ("1.1 d", "us", 95040000000)]
)
def test_delays_are_exact(given: str, unit: str, expected: int) -> None:
    assert duration(given, qc.Schema({}, time_unit=unit)) == expected
