"""Results that are held: columns of stream positions, one a component, made when they are first looked at.

Matches of a SEQ stand in the order of the answer, by the last event, then by the others from the first on; or, as one
more event at the end is easily joined to them, in *lexical* order, from the first on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quercus.kernels import group, memory, reuse

Index = NDArray[np.int64]
Small = NDArray[np.int32]
Test = Callable[[list[Index]], Small]  # columns -> the rows that stay


def small(n: int) -> Small:
    """Room for so many small numbers."""
    return memory.empty((n + 1) // 2).view(np.int32)[:n]


class Held(ABC):
    """Matches of so many components (`width`)."""

    width: int
    lexical: bool = False

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _column(self, place: int) -> Index: ...

    def __init__(self) -> None:
        self._columns: dict[int, Index] = {}

    def column(self, place: int) -> Index:
        """The positions of one component's events."""
        if place not in self._columns:
            self._columns[place] = self._column(place)
        return self._columns[place]

    @property
    def columns(self) -> list[Index]:
        return [self.column(i) for i in range(self.width)]

    @cached_property
    def in_lexical_order(self) -> Held:
        """The same matches by their first event, then the second, and so on: sorted once for all who ask."""
        return self if self.lexical or self.width == 1 else self._in_lexical_order()

    def _in_lexical_order(self) -> Held:
        order = np.arange(len(self), dtype=np.int32)
        for place in range(self.width - 2, -1, -1):
            order = _ordered(self.column(place), order)
        return Kept(self, order, lexical=True)

    def keep(self, places: Sequence[int], test: Test) -> Held:
        """The matches that pass a test of some components."""
        return Kept(self, test([self.column(p) for p in places]), lexical=self.lexical)


def _ordered(column: Index, order: Small) -> Small:
    """A stable order by a column of rows that are in some order already."""
    if not len(column):
        return order
    least = int(column.min())
    out = small(len(order))
    reuse.ordered(column, least, small(int(column.max()) - least + 2), order, out)
    return out


def taken(column: Index, rows: Small) -> Index:
    out = memory.empty(len(rows))
    reuse.take(column, rows, out)
    return out


class Listed(Held):
    """Columns as they are."""

    def __init__(self, columns: Sequence[Index], *, lexical: bool = False) -> None:
        super().__init__()
        self._columns = dict(enumerate(columns))
        self.width, self.lexical = len(columns), lexical

    def __len__(self) -> int:
        return len(self._columns[0])

    def _column(self, place: int) -> Index:
        raise AssertionError(place)


def nothing(width: int) -> Held:
    return Listed([np.empty(0, np.int64)] * width)


class Kept(Held):
    """Some rows of other matches."""

    def __init__(self, source: Held, rows: Small, *, lexical: bool = False) -> None:
        super().__init__()
        self.source, self.rows, self.width, self.lexical = source, rows, source.width, lexical

    def __len__(self) -> int:
        return len(self.rows)

    def _column(self, place: int) -> Index:
        return taken(self.source.column(place), self.rows)


class Expanded(Held):
    """Matches with one more component at `place`: rows of the others, and places among the events of the new one."""

    def __init__(self, source: Held, place: int, rows: Small, events: Index, *, lexical: bool = False) -> None:
        super().__init__()
        self.source, self.rows, self.width, self.lexical = source, rows, source.width + 1, lexical
        self.place = place
        self._columns[place] = events

    def __len__(self) -> int:
        return len(self.rows)

    def _column(self, place: int) -> Index:
        return taken(self.source.column(place - (place > self.place)), self.rows)


class Inserted(Held):
    """Matches with one more component, as ranges of its events: row i of `source` with each of at[lo[i]:hi[i]].

    The source is in lexical order where the new component is the last.
    """

    def __init__(self, source: Held, place: int, at: Index, lo: Small, hi: Small, total: int) -> None:
        super().__init__()
        assert place < source.width or source.lexical or source.width == 1
        self.source, self.place, self.at, self.lo, self.hi, self.total = source, place, at, lo, hi, total
        self.width = source.width + 1

    def __len__(self) -> int:
        return self.total

    @property
    def is_last(self) -> bool:
        return self.place == self.source.width

    def _column(self, place: int) -> Index:
        return self._listed.column(place)

    @cached_property
    def _listed(self) -> Expanded:
        rows = small(self.total)
        if self.is_last:
            cursors, at = memory.empty(len(self.at) + 1), self.at
            reuse.offsets(self.lo, self.hi, cursors)
            order = None if group.is_sorted(at) else np.argsort(at)  # key by key
            if order is not None:
                counts = np.diff(cursors)[order]
                cursors[order] = np.cumsum(counts) - counts
                at = at[order]
            reuse.by_event(self.lo, self.hi, cursors, rows)
            events, ends = memory.empty(self.total), cursors[:-1] if order is None else cursors[order]
            reuse.repeated(at, ends, events)
            return Expanded(self.source, self.place, rows, events)
        begins = np.zeros(len(self.source), np.uint8)
        for p in (self.source.width - 1, *range(self.place)):
            reuse.mark_changes(self.source.column(p), begins)
        places = small(self.total)
        reuse.by_group(begins, self.lo, self.hi, rows, places)
        return Expanded(self.source, self.place, rows, taken(self.at, places))

    def _in_lexical_order(self) -> Held:
        if not self.is_last:
            return super()._in_lexical_order()
        rows, places = small(self.total), small(self.total)
        reuse.by_match(self.lo, self.hi, rows, places)
        return Expanded(self.source, self.place, rows, taken(self.at, places), lexical=True)

    def keep(self, places: Sequence[int], test: Test) -> Held:
        """Without the new component: rows of the source go. Of it alone: events go. Nothing is listed for either."""
        if self.place not in places:
            rows = test([self.source.column(p - (p > self.place)) for p in places])
            lo, hi = small(len(rows)), small(len(rows))
            reuse.take_small(self.lo, rows, lo)
            reuse.take_small(self.hi, rows, hi)
            kept = Kept(self.source, rows, lexical=self.source.lexical)
            return Inserted(kept, self.place, self.at, lo, hi, _total(lo, hi))
        if list(places) == [self.place]:
            kept_events = test([self.at])
            before = np.zeros(len(self.at) + 1, np.int32)
            before[1:][kept_events] = 1
            np.cumsum(before, out=before)
            lo, hi = small(len(self.lo)), small(len(self.lo))
            reuse.take_small(before, self.lo, lo)
            reuse.take_small(before, self.hi, hi)
            return Inserted(self.source, self.place, taken(self.at, kept_events), lo, hi, _total(lo, hi))
        return super().keep(places, test)


def _total(lo: Small, hi: Small) -> int:
    return int(hi.sum(dtype=np.int64) - lo.sum(dtype=np.int64))


class Merged(Held):
    """Lots of matches that share none, in one order."""

    def __init__(self, parts: Sequence[Held]) -> None:
        super().__init__()
        self.parts, self.width = parts, parts[0].width

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @cached_property
    def _order(self) -> Index | None:
        self._joined = [np.concatenate([part.column(p) for part in self.parts]) for p in range(self.width)]
        return group.order_of(self._joined, self._joined)

    def _column(self, place: int) -> Index:
        order = self._order
        joined = self._joined[place]
        return joined if order is None else joined[order]


def projected(source: Held, places: Sequence[int]) -> Held:
    """Some components only; equal matches are one."""
    columns = [source.column(p) for p in places]
    order = group.order_of(columns, columns)
    if order is not None:
        columns = [c[order] for c in columns]
    begins = np.zeros(len(source), np.uint8)
    for c in columns:
        reuse.mark_changes(c, begins)
    rows = np.flatnonzero(begins)
    return Listed(columns if len(rows) == len(begins) else [c[rows] for c in columns])
