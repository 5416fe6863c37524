"""What plans and streams took is given back: memory stays as it is, however many of them there were."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local.windows import WindowStream, closed_windows
from quercus.ir.window import PatternWindow
from tests.windows.test_windows import case, events_of

STATUS = Path("/proc/self/statm")
TIMES = 2_000
ROOM = 2 << 20  # less than 1.1 KB for each time

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="needs /proc")
SCHEMA = qc.Schema({"id": "int64", "s": "string"})
QUERIES = [
    "SEQ(A a, B b, C c) WITHIN 9",
    "SEQ(A a, B b, [id]) WITHIN 9",
    "SEQ(A a, !B b, C c, !A d) WHERE b.id = a.id WITHIN 9",
    "SEQ(A a, SEQ(B b, C+ c) WITHIN 4) WITHIN 9",
    "SEQ(A a, B+ b, C+ c) WHERE [id] WITHIN 9",
    "SEQ(A a, B+ b, !C c) WHERE count(b) > 1, a.s < 'q' WITHIN 5 EVENTS PARTITION BY id",
    "AND(A a, B b, !SEQ(C c, A d) WITHIN 3) WITHIN 9",
]


def resident() -> int:
    gc.collect()
    return int(STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def events() -> pa.RecordBatch:
    n = 40
    place = np.arange(n)
    columns = {"ts": place, "type": np.array(list("ABC"))[place * 7 % 3], "id": place % 5}
    return pa.record_batch({**columns, "s": [f"{'pqr'[i % 3]}{i}" for i in range(n)]})


def plans(shape: str = "auto") -> Iterator[qc.Plan]:
    return cycle([qc.compile(f"PATTERN {q}", SCHEMA, shape=shape) for q in QUERIES])


def grown(todo: Iterator[Callable[[], object]]) -> int:
    """How much more memory is in use after all the times than after a quarter of them."""
    for act in islice(todo, TIMES // 4):
        act()
    before = resident()
    for act in islice(todo, TIMES):
        act()
    return resident() - before


def streams() -> Iterator[Callable[[], object]]:
    batch = events()

    def act(plan: qc.Plan) -> None:
        with plan.stream() as stream:
            stream.push(batch.slice(0, 20))
            stream.push(batch.slice(20)).rows()
        with suppress(qc.LimitExceeded), plan.stream(limits=qc.Limits(max_matches=1)) as stopped:
            stopped.push(batch)

    return ((lambda p=p: act(p)) for p in plans())


def runs(shape: str) -> Iterator[Callable[[], object]]:
    table = pa.Table.from_batches([events()])

    def act(plan: qc.Plan) -> None:
        plan.run(table).rows()
        with suppress(qc.LimitExceeded):
            plan.run(table, limits=qc.Limits(max_matches=1))

    return ((lambda p=p: act(p)) for p in plans(shape))


def windows() -> Iterator[Callable[[], object]]:
    """Pattern windows of all kinds, as runs and as streams, some stopped by a limit."""
    made = [case(Random(seed)) for seed in range(40)]

    def act(w: PatternWindow, rows: list[dict[str, Any]]) -> None:
        given = events_of(rows)
        for limits in (qc.Limits(), qc.Limits(max_matches=1)):
            with suppress(qc.LimitExceeded):
                len(closed_windows(w, given, limits).tuples)
            with suppress(qc.LimitExceeded):
                stream = WindowStream(w, given.schema, limits)
                stream.push(given)
                WindowStream.restore(stream.snapshot(), w, given.schema)

    return ((lambda w=w, rows=rows: act(w, rows)) for w, rows in cycle(made))


def test_windows_give_back_what_they_took() -> None:
    assert grown(windows()) < ROOM


def test_streams_give_back_what_they_took() -> None:
    assert grown(streams()) < ROOM


@pytest.mark.parametrize("shape", ["auto", "bushy"])
def test_runs_give_back_what_they_took(shape: str) -> None:
    assert grown(runs(shape)) < ROOM


def test_a_leak_is_noticed() -> None:
    kept: list[bytearray] = []  # far more than what earlier tests may have left free
    assert grown(cycle([lambda: kept.append(bytearray(32_768))])) > ROOM
