"""Pattern windows over whole streams beside Algorithm 1, line by line."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import quercus as qc
from quercus.backends.local.events import Events, load
from quercus.backends.local.windows import Closed, closed_windows, run
from quercus.backends.local.windows.plan import plan_of
from quercus.ir import expr as x
from quercus.ir.window import PatternWindow
from tests import windows_cases as cases
from tests import windows_oracle as oracle

CHUNK = 100


def events_of(rows: list[dict[str, Any]]) -> Events:
    names = ("ts", "type", *cases.KINDS)
    return load({n: [r[n] for r in rows] for n in names}, cases.SCHEMA)


def listed(found: Closed) -> list[oracle.Found]:
    assert found.offsets.tolist() == [0, *found.num.cumsum().tolist()]
    assert len(found.tuples) == found.offsets[-1]
    parts = zip(found.offsets.tolist(), found.offsets[1:].tolist(), strict=False)
    tuples = [tuple(found.tuples[a:b].tolist()) for a, b in parts]
    assert [t[0] for t in tuples] == found.first.tolist()
    return [oracle.Found(*f) for f in zip(found.close.tolist(), found.iter.tolist(), tuples, strict=True)]


def check(w: PatternWindow, rows: list[dict[str, Any]], **options: Any) -> list[oracle.Found]:
    expected = oracle.closed(w, rows)
    found = listed(closed_windows(w, events_of(rows), qc.Limits(), **options))
    assert found == expected, (w, rows)
    return expected


def case(random: Random) -> tuple[PatternWindow, list[dict[str, Any]]]:
    """A window and a stream; most of those of which nothing comes are thrown away."""
    while True:
        w, rows = cases.pattern_window(random), cases.stream(random)
        found = oracle.closed(w, rows)
        if random.random() < (0.1 if not found else 0.5 if all(len(f.tuples) < 3 for f in found) else 1.0):
            return w, rows


def compare(first: int, count: int, **options: Any) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        random = Random(seed)
        w, rows = case(random)
        found = check(w, rows, **options)
        p = plan_of(w)
        seen.update(
            {"keyed": bool(p.keys), "alike": p.alike, "ranged": p.ranged, "closed": bool(found), "all": True}
            | {"bound": p.bound != x.TRUE, "longer": any(len(f.tuples) > 3 for f in found)}
        )
    return seen


@pytest.mark.parametrize("chunk", range(8))
def test_windows_are_those_of_algorithm_1(chunk: int) -> None:
    seen = compare(chunk * CHUNK, CHUNK)
    assert min(seen[n] for n in ("keyed", "alike", "ranged", "closed", "bound", "longer")) >= CHUNK // 10, seen


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(8, 120))
def test_many_windows_are_those_of_algorithm_1(chunk: int) -> None:
    compare(chunk * CHUNK, CHUNK)


@pytest.mark.parametrize("chunk", range(2))
def test_threads_share_the_keys(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "WORTH", 0)
    compare(10**6 + chunk * CHUNK, CHUNK, threads=3)
