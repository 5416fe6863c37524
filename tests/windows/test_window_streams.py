"""Pattern windows over live streams: any split gives what a run gives; snapshots, limits, what is kept."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from quercus.backends.local.windows import Closed, WindowStream, WindowStreams, live
from tests import windows_cases as cases
from tests import windows_oracle as oracle
from tests.windows.test_windows import case, events_of, listed

CHUNK = 25


def splits(random: Random, rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    how = random.randrange(3)
    if how == 0:
        return [[r] for r in rows]
    cuts = sorted(random.randint(0, len(rows)) for _ in range(random.randint(0, 4)))
    return [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def rows_of(found: Closed) -> list[dict[str, Any]]:
    """The rows of all tuples, end to end."""
    rows: list[dict[str, Any]] = found.table.take(pa.array(found.rows_at(found.tuples))).to_pylist()
    return rows


def compare(first: int, count: int) -> int:
    restored = 0
    for seed in range(first, first + count):
        random = Random(seed)
        w, rows = case(random)
        stream = WindowStream(w, cases.SCHEMA)
        got: list[oracle.Found] = []
        for part in splits(random, rows):
            found = stream.push(events_of(part))
            got += listed(found)
            wanted = [rows[t] for t in found.tuples.tolist()]
            assert repr(rows_of(found)) == repr([{n: r[n] for n in found.table.column_names} for r in wanted])
            if random.random() < 0.2:
                stream = WindowStream.restore(stream.snapshot(), w, cases.SCHEMA)
                restored += 1
        assert got == oracle.closed(w, rows), (seed, w, rows)
    return restored


@pytest.mark.parametrize("chunk", range(3))
def test_several_windows_over_one_stream(chunk: int) -> None:
    """In one pass, over tuples that are kept once; also where nothing is asked but the ends of some of them."""
    undone = 0
    for seed in range(9 * 10**6 + chunk * CHUNK, 9 * 10**6 + (chunk + 1) * CHUNK):
        random = Random(seed)
        made = [case(random) for _ in range(random.randint(2, 4))]
        ws, rows = [w for w, _ in made], made[0][1]
        bare = [random.random() < 0.4 for _ in ws]
        stream = WindowStreams(ws, cases.SCHEMA, None, bare)
        got: list[list[Any]] = [[] for _ in ws]
        for part in splits(random, rows):
            if random.random() < 0.2 and part:
                stream.push_all(events_of(part))
                stream.undo()
                undone += 1
            for own, closed, b in zip(got, stream.push_all(events_of(part)), bare, strict=True):
                ends = list(zip(closed.close.tolist(), closed.first.tolist(), strict=True))
                for at in (closed.close, closed.first):
                    taken = closed.table.take(pa.array(closed.rows_at(at)))
                    assert taken["ts"].to_pylist() == [rows[p]["ts"] for p in at.tolist()]
                own += ends if b else listed(closed)
            if random.random() < 0.2:
                data, stream = stream.snapshot(), WindowStreams(ws, cases.SCHEMA, None, bare)
                stream.resume(data)
        for w, own, b in zip(ws, got, bare, strict=True):
            want = oracle.closed(w, rows)
            assert own == ([(f.close, f.tuples[0]) for f in want] if b else want), (seed, w, rows)
    assert undone > 5


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuples are let go, and the state is written down, after a few."""
    monkeypatch.setattr(live, "LEAST", 3)
    monkeypatch.setattr(live, "SINCE", 5)


@pytest.mark.parametrize("chunk", range(4))
def test_any_split_gives_what_a_run_gives(chunk: int) -> None:
    assert compare(2 * 10**6 + chunk * CHUNK, CHUNK) > CHUNK // 4


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4, 100))
def test_many_splits_give_what_a_run_gives(chunk: int) -> None:
    compare(2 * 10**6 + chunk * CHUNK, CHUNK)
