"""Several threads: the same answer in the same order, the same limits, and threads that stay."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local import buffers, events, fill, pool, run, threads
from quercus.backends.local.slices import cut, merged
from tests import generate
from tests.test_engine import table

COUNTS = (2, 3, 7)
SCHEMA = qc.Schema({"id": "int64", "v": "float64", "s": "string"})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is shared out, however little it is."""
    for where, name in ((threads, "LEAST"), (events, "SHARE"), (threads, "PIECE")):
        monkeypatch.setattr(where, name, 1)
    for module in (events, buffers, fill, run):
        monkeypatch.setattr(module, "TAKEN", 1)
    monkeypatch.setattr(threads, "WORTH", 0)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("first", range(160_000, 160_300, 50))
def test_random_queries_find_the_same_in_the_same_order(first: int) -> None:
    for number, (sample, _) in enumerate(generate.valid(range(first, first + 50))):
        plan, rows = qc.compile(sample.query, sample.schema()), table(sample.events)
        want = plan.run(rows).rows()
        assert plan.run(rows, threads=COUNTS[number % 3]).rows() == want, f"{sample}"


QUERIES = [
    "PATTERN SEQ(A a, B b, C c) WITHIN 20",
    "PATTERN SEQ(A a, B b, C c, a.id = b.id = c.id) WITHIN 90",
    "PATTERN SEQ(A a, B b, C c, [id], a.v < b.v) WITHIN 90",
    "PATTERN SEQ(A a, !D x, B b) WITHIN 30",
    "PATTERN SEQ(A a, !SEQ(C x, D y), B b, [id]) WITHIN 90",
    "PATTERN SEQ(A a, B+ b) WITHIN 12 EVENTS",
    "PATTERN SEQ(A a, B+ b, C c, [id]) WITHIN 70 EVENTS",
    "PATTERN SEQ(A a, OR(B b, SEQ(C c, D d))) WITHIN 12",
    "PATTERN AND(A a, B b, a.s = b.s) WITHIN 9",
    "PATTERN SEQ(A a, B b, a.v > 0.3, b.s != 'x') WITHIN 15 EVENTS",
    "PATTERN SEQ(A a, B b) PARTITION BY id WITHIN 9 EVENTS",
    "PATTERN A+ a PARTITION BY id WITHIN 9",
    "PATTERN SEQ(A a, B b, a.s = b.s) WITHIN 40",
]


def stream(n: int, *, hot: bool = False, chunks: int = 1, encoded: bool = False, shuffled: bool = False) -> pa.Table:
    r = np.random.default_rng(n + hot)
    ids = np.where(r.random(n) < 0.8, 3, r.integers(0, 9, n)) if hot else r.integers(0, 40, n)
    types = pa.array(np.array(list("ABCDE"))[r.integers(0, 5, n)])
    ts = np.sort(r.integers(0, 2 * n, n))
    whole = pa.table(
        {
            "ts": r.permutation(ts) if shuffled else ts,
            "type": types.dictionary_encode() if encoded else types,
            "id": ids,
            "v": r.random(n),
            "s": np.array(["x", "y", "z"])[r.integers(0, 3, n)],
        }
    )
    size = -(-n // chunks)
    return pa.concat_tables([whole.slice(i, size) for i in range(0, n, size)])


SHAPES = {
    "plain": stream(1_500),
    "one key holds most": stream(1_500, hot=True),
    "in chunks": stream(1_501, chunks=4),
    "dictionary": stream(1_502, encoded=True, chunks=2),
    "shuffled": stream(1_503, shuffled=True),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("query", QUERIES)
def test_longer_streams_find_the_same_in_the_same_order(query: str, shape: str) -> None:
    plan, rows = qc.compile(query, SCHEMA), SHAPES[shape]
    want = plan.run(rows)
    assert len(want) > 0
    for count in COUNTS:
        found = plan.run(rows, threads=count)
        assert found.rows() == want.rows()
        assert found.to_arrow().equals(want.to_arrow())


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("query", QUERIES)
def test_small_slices_are_shared_out(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0

    def count(tasks: list[Callable[[], object]], workers: int, stop: object = None) -> list[object]:
        nonlocal most
        most = max(most, min(len(tasks), workers))
        return [task() for task in tasks]

    monkeypatch.setattr(threads, "shared", count)
    plan = qc.compile(query, SCHEMA)
    assert plan.run(SHAPES["plain"], threads=3).rows() == plan.run(SHAPES["plain"]).rows()
    assert most == 3


@pytest.mark.usefixtures("small")
def test_the_matches_of_all_threads_count() -> None:
    for query in QUERIES[:3]:
        plan, rows = qc.compile(query, SCHEMA), SHAPES["plain"]
        n = len(plan.run(rows))
        assert len(plan.run(rows, threads=3, limits=qc.Limits(max_matches=n))) == n
        for most in (n - 1, n // 2, 0):
            with pytest.raises(qc.LimitExceeded) as e:
                plan.run(rows, threads=3, limits=qc.Limits(max_matches=most))
            assert e.value.limit == "max_matches"


@pytest.mark.parametrize("worth", [0, threads.WORTH])
def test_time_is_up_for_all_threads(worth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WORTH", worth)
    plan = qc.compile("PATTERN SEQ(A a, B b, A c, B d, a.id + b.id = c.id + d.id + 1000) WITHIN 100000", SCHEMA)
    with pytest.raises(qc.LimitExceeded, match="max_seconds"):
        plan.run(stream(6_000), threads=2, limits=qc.Limits(max_seconds=0.5))


# Slices ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("owner", [-1, 0, 1])
@pytest.mark.parametrize("keys", [1, 2, 50])
def test_slices_hold_every_event_of_the_owner_once(owner: int, keys: int) -> None:
    r = np.random.default_rng(keys)
    for _ in range(50):
        sizes = r.integers(0, 9, (2, keys)) * np.where(r.random(keys) < 0.1, 40, 1)
        sizes[:, 0] += 1
        segments = np.concatenate([np.zeros((2, 1), np.int64), np.cumsum(sizes, axis=1)], axis=1)
        slices = cut(segments, owner, r.random(int(r.integers(1, 9))).tolist())
        seen: list[tuple[int, ...]] = []
        for s in [*slices]:
            assert np.array_equal(s.segments, segments[:, s.keys[0] : s.keys[1] + 1])
            if owner < 0:
                seen += [(k,) for k in range(*s.keys)]
                continue
            inside = range(int(s.segments[owner, 0]), int(s.segments[owner, -1]))
            assert all(e in inside for e in range(s.first, s.last))
            seen += [(e,) for e in range(s.first, s.last)]
        assert seen == [(e,) for e in range(keys if owner < 0 else int(segments[owner, -1]))]
        one = merged(segments, slices)
        assert np.array_equal(one.segments, segments)
        assert (one.first, one.last) == (0, -1 if owner < 0 else int(segments[owner, -1]))


# The pool -------------------------------------------------------------------------------------------------------------


def test_threads_stay_and_tasks_come_back_in_order() -> None:
    seen: set[int] = set()
    both = threading.Barrier(2)

    def task(i: int) -> int:
        seen.add(threading.get_ident())
        if i < 2:
            both.wait(20)
        return i

    for _ in range(5):
        assert pool.shared([partial(task, i) for i in range(20)], 2) == list(range(20))
    assert len(seen) <= 1 + len(pool._threads.threads)


def test_an_error_stops_the_rest_and_is_raised() -> None:
    stopped = threading.Event()

    def wait() -> None:
        assert stopped.wait(20)

    def fail() -> None:
        raise ValueError("this one")

    tasks: list[Callable[[], None]] = [wait, fail, *[fail] * 5]
    with pytest.raises(ValueError, match="this one"):
        pool.shared(tasks, 2, stopped.set)
    assert pool.shared([int, int], 2) == [0, 0]


CODE = """
import os, sys
from quercus.backends.local.pool import shared
assert shared([int] * 9, 3) == [0] * 9
child = os.fork() if "fork" in sys.argv else 0
assert shared([int] * 9, 3) == [0] * 9
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize(
    "how", ["plain", pytest.param("fork", marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"))]
)
def test_processes_fork_and_end(how: str) -> None:
    done = subprocess.run([sys.executable, "-c", CODE, how], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
