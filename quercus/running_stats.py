"""Statistics of a stream that goes on: rates of which the older past counts less and less."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, expm1, log

from quercus.errors import DataError
from quercus.stats import Stats

FEW = 10.0  # events that may come or not without telling anything


class Running:
    """Running estimates: what lies `half_life` back, in units of the time column, counts half.

    >>> seen = Running(half_life=100)
    >>> for _ in range(50):
    ...     seen.observe({"A": 5, "B": 1}, ts_span=10, events=8)
    >>> {name: round(rate, 2) for name, rate in seen.stats().rates.items()}
    {'A': 0.5, 'B': 0.1}
    """

    def __init__(self, half_life: float) -> None:
        if not half_life > 0:
            raise DataError(f"a half-life of {half_life}")
        self._half_life = half_life
        self._time = 0.0  # how much time counts
        self._counts: dict[str, float] = {}
        self._events = 0.0
        self._tested: dict[str, float] = {}
        self._passed: dict[str, float] = {}

    def observe(
        self,
        batch_counts: Mapping[str, int],
        ts_span: float,
        events: int,
        passed: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        """Take in a batch: events of each type, how much time has gone by since the last, events of all types.

        `passed` has the text of conjuncts, with how many candidates were tested and how many of them passed.
        """
        span = max(float(ts_span), 0.0)
        back = log(2) * span / self._half_life
        kept = 1.0 + expm1(-back)
        new = -expm1(-back) / back if back > 1e-12 else 1.0  # a batch's own older events count less as well
        self._time = self._time * kept + span * new
        self._events = self._events * kept + events * new
        for name in self._counts:
            self._counts[name] *= kept
        for name, n in batch_counts.items():
            self._counts[name] = self._counts.get(name, 0.0) + n * new
        for text, (tested, good) in (passed or {}).items():
            self._tested[text] = self._tested.get(text, 0.0) * kept + tested
            self._passed[text] = self._passed.get(text, 0.0) * kept + good

    def forget(self, ts_span: float) -> None:
        """Let time go by of which nothing is known: what was seen counts less, and says the same."""
        kept = exp(-log(2) * max(float(ts_span), 0.0) / self._half_life)
        self._time *= kept
        self._events *= kept
        for known in (self._counts, self._tested, self._passed):
            for name in known:
                known[name] *= kept

    def stats(self) -> Stats:
        """What is known by now; nothing, as long as no time has gone by."""
        if self._time <= 0:
            return Stats()
        rates = {name: n / self._time for name, n in self._counts.items()}
        kept = {text: self._passed[text] / n for text, n in self._tested.items() if n > 0}
        return Stats(rates, {}, kept, max(self._events, sum(self._counts.values())) / self._time)

    @property
    def span(self) -> float:
        """How much time counts."""
        return self._time

    def tested(self, text: str) -> float:
        """The candidates that a conjunct was tested on."""
        return self._tested.get(text, 0.0)

    def drift(self, other: Stats) -> float:
        """How many times as frequent, or rare, as in other statistics a type is by now: the most of all types.

        1.0 is no difference. Types that `other` does not know were rare then; a few events more or less say nothing.
        """
        if self._time <= 0:
            return 1.0
        found = 1.0
        for name, n in self._counts.items():
            then = other.rates.get(name, 0.0) * self._time
            ratio = (n + FEW) / (then + FEW)
            found = max(found, ratio, 1 / ratio)
        return found
