"""What a stream may use: limits that stop it, and memory that stays as it is, however long the stream."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc

SCHEMA = qc.Schema({"id": "int64"})


def many(types: str, count: int, first: int = 0) -> pa.Table:
    names = np.array(list(types))[np.arange(count) % len(types)]
    return pa.table({"ts": np.arange(first, first + count), "type": names, "id": np.arange(count) % 7})


@pytest.mark.parametrize(
    ("query", "types", "name"),
    [
        ("PATTERN SEQ(A alpha, B beta) WITHIN 1000000000", "A", "alpha"),
        ("PATTERN SEQ(A alpha, !B beta) WITHIN 1000000000", "AC", "alpha"),
        ("PATTERN SEQ(C gamma, A alpha, B beta) WITHIN 1000000000", "CAAAA", "alpha"),
    ],
)
def test_too_much_state_stops_and_says_what_it_is(query: str, types: str, name: str) -> None:
    stream = qc.compile(query, SCHEMA).stream(limits=qc.Limits(max_state_bytes=1_000_000, max_matches=10**9))
    source = (many(types, 1_000, 1_000 * number) for number in range(1_000))
    with pytest.raises(qc.LimitExceeded) as e:
        list(map(stream.push, source))
    assert e.value.limit == "max_state_bytes"
    assert name in str(e.value)
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
