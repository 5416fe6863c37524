"""Matches with one more component, as ranges of its events that nobody has listed yet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from attrs import frozen

from quercus.backends.local.cube.held import Column, Expanded, Held, Kept, Listed, Small, Test, rooms, small, taken
from quercus.backends.local.cube.lanes import Bound, Lane
from quercus.kernels import group, listing, memory, reuse

Side = Literal["low", "high"]
_AT_ONCE = 4  # columns that are written together
_DENSE = 8  # matches that are looked at for each result: beyond, each result is put in its place
_NO_END = 2**31 - 1
Ranges = tuple[Small, Small, int]  # where each begins and ends, and how long all are together


@frozen(eq=False)
class Edge:
    """One end of all ranges: not before, or before, a bound of one component's event.

    With `first` or `last`, the bound is that of another event: of a forbidden component's first event that does not lie
    before the bound `of` the component's event, or of its last that does. Where there is none, there is no such end.
    """

    side: Side
    place: int
    bound: Bound
    near: Literal["first", "last"] | None = None
    of: Bound | None = None
    forbidden: Lane | None = None

    def values(self, lane: Lane, source: Held) -> tuple[Small, Column]:
        """A table of places in a lane, and where in it each match has its own."""
        column = source.column(self.place)
        if self.near is None:
            if lane.starts is not None or not lane.is_few(column):
                return lane.before(self.bound), column
            bounds = source.once((self.bound, self.place), lambda: lane.lanes.bound_at(self.bound, column))
            return lane.before_bounds(bounds), np.arange(len(column))
        if lane.is_few(column):
            return self._near(lane, column), np.arange(len(column))
        everything = np.arange(len(lane.lanes.stream))
        key: Hashable = (self.side, self.bound, self.near, self.of, self.forbidden)
        return lane.table(key, lambda: self._near(lane, everything)), column

    def _near(self, lane: Lane, positions: Column) -> Small:
        assert self.forbidden is not None
        assert self.of is not None
        events, there = self.forbidden.nearest(self.of, positions, before=self.near == "last")
        found = lane.before_at(self.bound, events)
        return np.where(there, found, 0 if self.side == "low" else _NO_END).astype(np.int32)


class Inserted(Held):
    """Each row of `source` with the events of its range in a lane. The first two edges are a low and a high one.

    Where matches in the order of the answer share the last event and those before `place`, no end of a range descends.
    """

    def __init__(
        self,
        source: Held,
        place: int,
        lane: Lane,
        edges: Sequence[Edge],
        ranges: Ranges | None = None,
        lexical: Callable[[], Inserted] | None = None,
    ) -> None:
        """`ranges` and how to get the same from a source in `lexical` order, where others have found them already."""
        super().__init__()
        self.source, self.place, self.lane, self.edges = source, place, lane, tuple(edges)
        self.width = source.width + 1
        self.lo, self.hi, self.total = ranges or self._ranges(source)
        self._lexical = lexical

    def __len__(self) -> int:
        return self.total

    @property
    def bytes(self) -> int:
        return self.lo.nbytes + self.hi.nbytes + self.source.bytes

    @property
    def is_last(self) -> bool:
        return self.place == self.source.width

    def clipped(self, make: Callable[[int], Edge], place: int) -> Inserted:
        """Only results inside one more edge, at the event of another component."""
        return Inserted(self.source, self.place, self.lane, (*self.edges, make(place - (place > self.place))))

    def _ranges(self, source: Held) -> Ranges:
        low, high, *others = self.edges
        lo, hi = small(len(source)), small(len(source))
        low_table, low_at = low.values(self.lane, source)
        high_table, high_at = high.values(self.lane, source)
        if low_at.dtype != high_at.dtype:
            low_at, high_at = low_at.astype(np.int64), high_at.astype(np.int64)
        total = reuse.spans(low_table, low_at, high_table, high_at, lo, hi)
        for e in others:
            clip = reuse.clip_low if e.side == "low" else reuse.clip_high
            total = clip(*e.values(self.lane, source), lo, hi)
        return lo, hi, total

    # listing

    def _column(self, place: int) -> Column:
        return self._listed.column(place)

    @cached_property
    def _listed(self) -> Held:
        if self.is_last:
            return self._listed_by_event()
        source = self.source
        rows, places, begins = small(self.total), small(self.total), np.zeros(len(source), np.uint8)
        for p in (source.width - 1, *range(self.place)):
            reuse.mark_changes(source.column(p), begins)
        reuse.by_group(begins, self.lo, self.hi, rows, places)
        return Expanded(source, self.place, rows, taken(self.lane.at, places))

    def _listed_by_event(self) -> Held:
        """Event by event, and for each in lexical order: the order of the answer."""
        tables = self._plainly()
        if tables is not None:
            source, at, out = self.by_lexical_source.source, self.lane.at, rooms(self.total, self.width)
            if listing.candidates(*tables, source.column(0), len(at)) <= _DENSE * self.total:
                listing.by_event(*tables, at, source.columns, out)
                return Listed(out)
        same = self.by_lexical_source
        source, lo, hi = same.source, same.lo, same.hi
        at, out = self.lane.at, rooms(self.total, self.width)
        begin = memory.empty(len(at) + 1)
        reuse.offsets(lo, hi, begin)
        ends = begin[1:].copy()
        if not group.is_sorted(at):  # key by key
            order = np.argsort(at)
            counts = np.diff(begin)[order]
            begin[order] = np.cumsum(counts) - counts
            ends, at = np.cumsum(counts), at[order]
        columns = source.columns
        for c in range(0, source.width, _AT_ONCE):
            reuse.columns_by_event(lo, hi, begin.copy(), columns[c : c + _AT_ONCE], out[:-1][c : c + _AT_ONCE])
        reuse.repeated(at, ends, out[-1])
        return Listed(out)

    def _plainly(self) -> tuple[Small, Small] | None:
        """Tables of where ranges begin by the last event, and where they end by the first, if that is all to know."""
        low, high, *others = self.edges
        if others or low.near or high.near or (low.place, high.place) != (self.source.width - 1, 0):
            return None
        if self.lane.starts is not None or self.total < len(self.lane.lanes.stream):  # tables are read through
            return None
        return self.lane.before(low.bound), self.lane.before(high.bound)

    @cached_property
    def by_lexical_source(self) -> Inserted:
        """The same, made from the source in lexical order: sorted once for all that are some of these matches."""
        if self.source.lexical:
            return self
        if self._lexical is not None:
            return self._lexical()
        return Inserted(self.source.in_lexical_order, self.place, self.lane, self.edges)

    def _in_lexical_order(self) -> Held:
        if not self.is_last:
            return super()._in_lexical_order()
        same = self.by_lexical_source
        rows, places = small(self.total), small(self.total)
        reuse.by_match(same.lo, same.hi, rows, places)
        return Expanded(same.source, self.place, rows, taken(self.lane.at, places, lexical=True), lexical=True)

    def in_any_order(self) -> Held:
        return self.in_lexical_order if self.is_last else self

    # filters

    def keep(self, places: Sequence[int], test: Test) -> Held:
        """Without the new component: rows of the source go. Of it alone: events go. Nothing is listed for either."""
        if self.place not in places:
            return self._of_rows([p - (p > self.place) for p in places], test)
        if list(places) == [self.place]:
            kept = test([self.lane.at])
            before = np.zeros(len(self.lane.at) + 1, np.int32)  # events that stay before each
            before[kept + 1] = 1
            return self._of_events(self.lane.some(kept), np.cumsum(before, dtype=np.int32))
        return super().keep(places, test)

    def _of_rows(self, places: Sequence[int], test: Test) -> Inserted:
        """Of some matches of the source: each has the range that it had."""
        rows = test([self.source.column(p) for p in places])
        ranges = _looked_up(self.lo, rows, self.hi, rows)
        return Inserted(
            Kept(self.source, rows),
            self.place,
            self.lane,
            self.edges,
            ranges,
            lambda: self.by_lexical_source._of_rows(places, test),
        )

    def _of_events(self, lane: Lane, before: Small) -> Inserted:
        """Of some events of the lane: ranges are what is left of them."""
        ranges = _looked_up(before, self.lo, before, self.hi)
        return Inserted(
            self.source,
            self.place,
            lane,
            self.edges,
            ranges,
            lambda: self.by_lexical_source._of_events(lane, before),
        )


def _looked_up(low: Small, low_at: Small, high: Small, high_at: Small) -> Ranges:
    lo, hi = small(len(low_at)), small(len(low_at))
    return lo, hi, reuse.spans(low, low_at, high, high_at, lo, hi)
