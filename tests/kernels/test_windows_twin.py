"""The windows kernel beside its twin: the same programs over the same tuples, push by push for streams."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

import quercus as qc
from quercus.backends.local.windows import WindowStream, closed_windows, live, run
from quercus.kernels import reference_windows_kernel as reference
from quercus.kernels import windows
from tests import windows_cases as cases
from tests.windows.test_window_streams import splits
from tests.windows.test_windows import case, events_of


def listed(found: Any, *, ordered: bool) -> tuple[int, list[tuple[Any, ...]]]:
    status, close, first, iter_, num, tuples = found
    ends = np.cumsum(num) if len(tuples) else np.zeros(len(num), np.int64)
    parts = [tuple(tuples[b - n : b].tolist()) if len(tuples) else () for n, b in zip(num, ends, strict=True)]
    rows = list(zip(close.tolist(), first.tolist(), iter_.tolist(), num.tolist(), parts, strict=True))
    return status, rows if ordered else sorted(rows)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Every kernel that is made runs beside its twin; counts what they did."""
    counted: Counter[str] = Counter()

    class Both(windows.Windows):
        def __init__(self, *given: Any) -> None:
            self.twin, self.alike = reference.Windows(*given), given[4]
            counted["alike"] += self.alike
            counted[("nowhere", "by group", "by window")[given[5]]] += 1

        def load(self, *given: Any) -> None:
            super().load(*given)
            self.twin.load(*given)

        def begin(self, *given: Any) -> None:
            self.given = given
            super().begin(*given)

        def finish(self) -> Any:
            found = super().finish()
            twin = self.twin.run(*self.given)
            assert listed(found, ordered=not self.mixed) == listed(twin, ordered=not self.mixed)
            counted["closed"] += len(found[1])
            counted["mixed"] += self.mixed
            return found

        def delay(self, position: int, lead: int) -> None:
            counted["delayed"] += 1
            super().delay(position, lead)
            self.twin.delay(position, lead)

        def mark(self, used: Any) -> None:
            own = used.copy()
            super().mark(used)
            self.twin.mark(own)
            if self.twin.programs[reference.BOUND] is None:  # else the kernel may have let windows go before
                assert (used == own).all()

        def move(self, places: Any) -> None:
            super().move(places)
            self.twin.move(places)

        def restore(self, *given: Any) -> None:
            counted["restored"] += 1
            super().restore(*given)
            self.twin.restore(*given)

        def state(self) -> Any:
            found = super().state()
            if self.twin.programs[reference.BOUND] is None:
                assert found[0][:, [0, 1, 3, 4, 5]].tolist() == self.twin.state().tolist()
                counted["states"] += 1
            return found

    class BothPairs(windows.Pairs):
        def __init__(self, *given: Any) -> None:
            self.given = given

        def finish(self) -> Any:
            found, twin = super().finish(), reference.pairs(*self.given)
            assert [a.tolist() for a in found[1:]] == [a.tolist() for a in twin[1:]]
            counted["pairs"] += len(found[1])
            return found

    monkeypatch.setattr(windows, "Pairs", BothPairs)
    for module in (run, live):
        monkeypatch.setattr(module.windows, "Windows", Both)
    return counted


def test_runs_agree(seen: Counter[str]) -> None:
    for seed in range(3 * 10**6, 3 * 10**6 + 500):
        w, rows = case(Random(seed))
        closed_windows(w, events_of(rows), qc.Limits())
    assert min(seen[n] for n in ("alike", "closed", "pairs", "nowhere", "by group", "by window", "mixed")) > 20, seen


def test_streams_agree(seen: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LEAST", 3)
    for seed in range(4 * 10**6, 4 * 10**6 + 60):
        random = Random(seed)
        w, rows = case(random)
        stream = WindowStream(w, cases.SCHEMA)
        for part in splits(random, rows):
            stream.push(events_of(part))
        stream.snapshot()
    assert min(seen[n] for n in ("alike", "closed", "by group", "by window", "delayed", "states", "restored")) > 4, seen
