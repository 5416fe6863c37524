"""Slices of time: where one ends and the next begins, and which of them need an event.

Slice i has the times from border i - 1 up to, and not including, border i. An event is needed by its own slice and by
those that lie within the halo: a window's length before it and after it. Where windows are of events, time is cut into
many cells whose events were counted; a slice is made of cells, and its halo of as many more as it takes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from attrs import frozen
from pyspark.sql import Column
from pyspark.sql import functions as f

UNEVEN = 1.5  # times as many events as on average, from which slices of equal length are too uneven
FAR = 2**61  # times and windows beyond are not cut


@frozen
class Slices:
    """`borders` between slices, ascending. The halo: `back` before and `ahead` after, of time; or `cells`."""

    borders: tuple[int, ...]
    back: int = 0
    ahead: int = 0
    cells: Cells | None = None

    @property
    def count(self) -> int:
        return len(self.borders) + 1

    def range_of(self, i: int) -> tuple[int | None, int | None]:
        """The times of a slice: from, and up to."""
        return (self.borders[i - 1] if i else None, self.borders[i] if i < len(self.borders) else None)

    def needing(self, at: str, base: int = 0) -> Column:
        """The slices that need an event, as an array; they are numbered from `base`. Without a time: the first.

        `at` is its time in the words of Spark SQL.
        """
        if self.cells is not None:
            cell = slice_of(at, self.cells.borders)
            low, high = (
                f"element_at(array({', '.join(map(str, k))}), {cell} + 1)" for k in (self.cells.lows, self.cells.highs)
            )
        else:
            low = slice_of(f"({at}) - {self.ahead}" if self.ahead else at, self.borders)
            high = slice_of(f"({at}) + {self.back}" if self.back else at, self.borders)
        return f.expr(f"CASE WHEN ({at}) IS NULL THEN array({base}) ELSE sequence({low} + {base}, {high} + {base}) END")


@frozen
class Cells:
    """Where cells begin and end, and the first and the last slice that needs each."""

    borders: tuple[int, ...]
    sizes: tuple[int, ...]
    lows: tuple[int, ...]
    highs: tuple[int, ...]

    def events_of(self, i: int) -> int:
        """How many events a slice needs."""
        return sum(n for n, low, high in zip(self.sizes, self.lows, self.highs, strict=True) if low <= i <= high)


def equal(low: int, high: int, count: int) -> tuple[int, ...]:
    """Borders of slices of equal length.

    >>> equal(0, 100, 4)
    (25, 50, 75)
    """
    return tuple(b for b in dict.fromkeys(low + (high - low) * i // count for i in range(1, count)) if b > low)


def by_quantiles(values: Sequence[int], count: int) -> tuple[int, ...]:
    """Borders of slices that have about as many events each; `values` are quantiles, ascending."""
    chosen = [values[len(values) * i // count] for i in range(1, count)]
    return tuple(b for b in dict.fromkeys(chosen) if b > values[0])


def borders_for(values: Sequence[int], count: int) -> tuple[int, ...]:
    """Slices of equal length, or by quantiles where those would be too uneven.

    >>> borders_for(range(100), 4), borders_for([i**3 for i in range(100)], 4)
    ((24, 49, 74), (15625, 125000, 421875))
    """
    if not values or count < 2:
        return ()
    even = equal(values[0], values[-1], count)
    ends = [0, *(_below(values, b) for b in even), len(values)]
    most = max(b - a for a, b in pairwise(ends))
    return even if most * count <= UNEVEN * len(values) else by_quantiles(values, count)


def _below(values: Sequence[int], border: int) -> int:
    return bisect_right(values, border - 1)


def of_cells(borders: Sequence[int], sizes: Sequence[int], count: int, events: int) -> Slices:
    """Slices made of cells with so many events each; before and after each slice, cells with `events` or more.

    >>> made = of_cells((10, 20, 30), (5, 5, 5, 5), 2, 4)
    >>> made.borders, made.cells.lows, made.cells.highs, made.cells.events_of(0)
    ((20,), (0, 0, 0, 1), (0, 1, 1, 1), 15)
    """
    n, total = len(sizes), sum(sizes)
    begins, seen = [0], 0
    for i in range(n - 1):
        seen += sizes[i]
        if len(begins) < count and seen * count >= len(begins) * total:
            begins.append(i + 1)
    ends = [*begins[1:], n]
    lows, highs = [len(begins)] * n, [-1] * n
    for s, (first, last) in enumerate(zip(begins, ends, strict=True)):
        low, before = first, 0
        while low > 0 and before < events:
            low -= 1
            before += sizes[low]
        high, after = last - 1, 0
        while high < n - 1 and after < events:
            high += 1
            after += sizes[high]
        for cell in range(low, high + 1):
            lows[cell], highs[cell] = min(lows[cell], s), max(highs[cell], s)
    cells = Cells(tuple(borders), tuple(sizes), tuple(lows), tuple(highs))
    return Slices(tuple(borders[b - 1] for b in begins[1:]), cells=cells)


def slice_of(at: str, borders: Sequence[int]) -> str:
    """The number of the slice that a time lies in: a search by halves, as one expression of Spark SQL.

    >>> slice_of("ts", (10, 20))
    'CASE WHEN ts < 20 THEN CASE WHEN ts < 10 THEN 0 ELSE 1 END ELSE 2 END'
    """

    def between(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        first, second = between(low, middle), between(middle + 1, high)
        return f"CASE WHEN {at} < {borders[middle]} THEN {first} ELSE {second} END"

    return between(0, len(borders))
