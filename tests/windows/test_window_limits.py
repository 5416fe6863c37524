"""Limits of pattern windows, in runs and in streams, which go on as if a push that failed had not been."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import quercus as qc
from quercus.backends.local.windows import WindowStream, WindowStreams, closed_windows, live, run
from quercus.errors import OutOfOrder
from quercus.ir import expr as x
from quercus.ir.window import PREV, PatternWindow
from tests.interrupts import interrupted
from tests.windows.test_window_plans import EXAMPLES, SAME, SCHEMA, events, stream
from tests.windows.test_windows import listed

ALWAYS_OPEN = PatternWindow(x.TRUE, x.FALSE, x.TRUE, x.TRUE)
NEVER_HOT = x.Compare("<", x.Column(PREV, "heat", "float64"), x.Const(-1.0, "float64"))
ONE_BY_ONE = PatternWindow(x.TRUE, x.Logic("and", (SAME, NEVER_HOT)), x.TRUE, x.Logic("and", (SAME, NEVER_HOT)))


@pytest.mark.parametrize("threads", [1, 2])
def test_too_many_closed_windows(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "WORTH", 0)
    count = len(closed_windows(EXAMPLES[2], events(1000, 10), qc.Limits()))
    assert len(closed_windows(EXAMPLES[2], events(1000, 10), qc.Limits(max_matches=count), threads)) == count
    with pytest.raises(qc.LimitExceeded, match="more closed windows than the limit") as e:
        closed_windows(EXAMPLES[2], events(1000, 10), qc.Limits(max_matches=count - 1), threads)
    assert (e.value.limit, e.value.value) == ("max_matches", count - 1)


@pytest.mark.parametrize("w", [ALWAYS_OPEN, ONE_BY_ONE])
def test_open_windows_hold_too_much(w: PatternWindow) -> None:
    with pytest.raises(qc.LimitExceeded, match="open windows and their tuples hold more than 10,000 bytes") as e:
        closed_windows(w, events(1000, 10), qc.Limits(max_state_bytes=10_000))
    assert e.value.limit == "max_state_bytes"


@pytest.mark.parametrize("threads", [1, 2])
def test_too_long(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "WORTH", 0)
    with pytest.raises(qc.LimitExceeded, match=r"not done after 0.02 s") as e:
        closed_windows(ONE_BY_ONE, events(100_000, 2), qc.Limits(max_seconds=0.02), threads)
    assert e.value.limit == "max_seconds"


def part(of: dict[str, Any], a: int, b: int) -> dict[str, Any]:
    return {n: v[a:b] for n, v in of.items()}


@pytest.mark.parametrize("since", [0, 150, 10**6])
def test_a_push_that_fails_leaves_the_stream_as_it_was(since: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SINCE", since)
    monkeypatch.setattr(live, "LEAST", 50)
    whole = stream(1000, 10)
    s = WindowStream(EXAMPLES[5], SCHEMA, qc.Limits(max_matches=20))
    found = []
    for begin in range(0, 1000, 50):
        with pytest.raises(qc.LimitExceeded):
            s.push(part(whole, begin, 1000) if begin < 700 else bad())
        found += listed(s.push(part(whole, begin, begin + 50)))
    assert found == listed(closed_windows(EXAMPLES[5], events(1000, 10), qc.Limits()))


def bad() -> dict[str, Any]:
    """More closed windows than may be."""
    n = 60
    return {
        "ts": 10**6 + np.arange(n),
        "type": ["At"] * n,
        "person": ["new"] * n,
        "location": ["Lab", "Home"] * (n // 2),
        "heat": [0.0] * n,
    }


def test_tuples_come_in_order() -> None:
    s = WindowStream(EXAMPLES[5], SCHEMA)
    s.push(part(stream(10, 2), 5, 10))
    with pytest.raises(OutOfOrder, match="a tuple of time 0 comes after one of time 9"):
        s.push(part(stream(10, 2), 0, 5))
    assert len(s.push(part(stream(10, 2), 9, 10))) >= 0


def test_a_stream_keeps_only_what_open_windows_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LEAST", 100)
    s = WindowStream(EXAMPLES[5], SCHEMA)
    whole = stream(20_000, 10)
    most = 0
    for begin in range(0, 20_000, 100):
        s.push(part(whole, begin, begin + 100))
        most = max(most, s.kept)
    assert s.open <= 10
    assert most < 1_000


def test_a_stream_whose_state_is_too_large() -> None:
    s = WindowStream(ALWAYS_OPEN, SCHEMA, qc.Limits(max_state_bytes=100_000))
    whole = stream(10_000, 10)
    s.push(part(whole, 0, 500))
    with pytest.raises(qc.LimitExceeded, match="open windows and their tuples"):
        s.push(part(whole, 500, 10_000))
    assert s.open == 500


@pytest.mark.parametrize("w", [ONE_BY_ONE, ALWAYS_OPEN], ids=["one by one", "pairs"])
def test_a_run_stops_on_a_signal(w: PatternWindow) -> None:
    """The handler is due while the kernel runs, and is let in now and then."""
    given = events(100_000, 2)
    with interrupted(0.05):
        while True:
            closed_windows(w, given, qc.Limits())


@pytest.mark.parametrize("threads", [1, 2])
def test_limits_hold_for_windows_together(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What several windows hold counts in sum; each may close as many as the limit says."""
    monkeypatch.setattr(run, "WORTH", 0)
    with pytest.raises(qc.LimitExceeded, match="open windows and their tuples hold more than 400,000 bytes"):
        run.several([ALWAYS_OPEN, ONE_BY_ONE], events(5000, 10), qc.Limits(max_state_bytes=400_000), threads)
    count = len(closed_windows(EXAMPLES[2], events(1000, 10), qc.Limits()))
    both = run.several([EXAMPLES[2], EXAMPLES[3]], events(1000, 10), qc.Limits(max_matches=count), threads)
    assert len(both[0]) == count
    with pytest.raises(qc.LimitExceeded, match="more closed windows than the limit"):
        run.several([EXAMPLES[3], EXAMPLES[2]], events(1000, 10), qc.Limits(max_matches=count - 1), threads)


def test_a_stream_of_several_windows_is_left_as_it_was() -> None:
    ws = [EXAMPLES[5], EXAMPLES[2]]
    whole = stream(1000, 10)
    s, alone = WindowStreams(ws, SCHEMA, qc.Limits(max_matches=40)), [WindowStream(w, SCHEMA) for w in ws]
    for begin in range(0, 1000, 50):
        if begin < 700:
            with pytest.raises(qc.LimitExceeded):
                s.push_all(part(whole, begin, 1000))
        given = part(whole, begin, begin + 50)
        assert [listed(c) for c in s.push_all(given)] == [listed(one.push(given)) for one in alone]
