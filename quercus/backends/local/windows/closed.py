"""Closed windows: when each was closed, and the tuples in it, counted and listed when that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import pyarrow as pa
from attrs import define, field

from quercus.backends.local.events import Events
from quercus.backends.local.specs import Index
from quercus.kernels import ranges

Found = tuple[Index, Index, Index, Index, Index]  # close, first, iter, num, tuples
Counts = tuple[Callable[[], Index], Callable[[], Index], Callable[[], Index]]  # iter, num, tuples


@define(eq=False, slots=False)
class Closed:
    """The windows that a stream closed, in the order of closing; those that one tuple closed, in the order of opening.

    `close` and `first` are the positions of each window's last and first tuple; `iter` and `num` what ITER() and NUM()
    are in a SELECT: the last tuple counts in NUM(). `tuples[offsets[i]:offsets[i + 1]]` are the positions of window i's
    tuples. Their rows are in `table`: of the tuples at some positions, at `rows_at(positions)`.
    """

    close: Index
    first: Index
    table: pa.Table  # has the tuples, at `rows_at(positions)`
    rows_at: Callable[[Index], Index] = field(repr=False)
    _iter: Callable[[], Index] = field(repr=False)
    _num: Callable[[], Index] = field(repr=False)
    _tuples: Callable[[], Index] = field(repr=False)

    def __len__(self) -> int:
        return len(self.close)

    @cached_property
    def iter(self) -> Index:
        return self._iter()

    @cached_property
    def num(self) -> Index:
        return self._num()

    @cached_property
    def offsets(self) -> Index:
        return offsets_of(self.num)

    @cached_property
    def tuples(self) -> Index:
        return self._tuples()


def offsets_of(sizes: Index) -> Index:
    """Where each part begins, and where the last one ends."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def of_events(close: Index, first: Index, events: Events, counts: Counts) -> Closed:
    """Windows over a stream that is at hand as a whole."""
    return Closed(close, first, events.table, events.input_rows, *counts)


def of_rows(places: Found, positions: Index, needed: Index, table: pa.Table) -> Closed:
    """Windows of which places of tuples are given: `needed` are those of the table's rows, ascending."""
    close, first, tuples = (positions[p] for p in (places[0], places[1], places[4]))
    there = positions[needed]

    def rows_at(at: Index) -> Index:
        return np.searchsorted(there, at)

    return Closed(close, first, table, rows_at, lambda: places[2], lambda: places[3], lambda: tuples)


def spliced(first: Index, middle: Index, starts: Index, ends: Index, close: Index) -> Index:
    """Of each window its first tuple, `middle[starts:ends]`, and its last one, end to end."""
    offsets = offsets_of(ends - starts + 2)
    tuples = np.empty(int(offsets[-1]), np.int64)
    between = np.ones(len(tuples), np.bool_)
    for at, what in ((offsets[:-1], first), (offsets[1:] - 1, close)):
        tuples[at] = what
        between[at] = False
    tuples[between] = ranges.elements(middle, starts, ends)
    return tuples
