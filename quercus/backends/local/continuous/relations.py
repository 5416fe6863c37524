"""Windows as relations over time: each tuple with the times from which and until which it is there.

A tuple of a source has `f`, the time from which it is in the relation, and `u`, the first time at which it no longer
is; `n` is its place in the order of the source. Of a pattern window, each closed window `w` is a relation of its own,
at the time at which it closes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, assert_never

import numpy as np
import pyarrow as pa
from attrs import frozen
from numpy.typing import NDArray

from quercus.backends.base import Limits
from quercus.backends.local.aggregate import group_codes
from quercus.backends.local.events import Events
from quercus.ir import window as w
from quercus.ir.expr import Column

Times = NDArray[np.int64]
NEVER = 2**63 - 1


class Closed(Protocol):
    """The windows that closed, in the order of closing: `first` and `close` are the positions of the first and the last
    tuple of each, `tuples[offsets[i]:offsets[i + 1]]` those of all. What is not asked for need not be made.
    """

    @property
    def close(self) -> Times: ...
    @property
    def first(self) -> Times: ...
    @property
    def offsets(self) -> Times: ...
    @property
    def tuples(self) -> Times: ...
    @property
    def iter(self) -> Times: ...
    @property
    def num(self) -> Times: ...


ClosedWindows = Callable[[w.PatternWindow, Events, Limits, int], Closed]
SeveralWindows = Callable[[Sequence[w.PatternWindow], Events, Limits, int], Sequence[Closed]]


@frozen(eq=False)
class Relation:
    """The tuples of a source over time; of a pattern window also its closed windows, with their counts."""

    tuples: pa.Table  # n f u, w of a pattern window, and c0 c1 ... as the source reads them
    windows: pa.Table | None = None  # w f, iter and num where they are read

    def instants(self) -> Times:
        """The times at which it gains or loses a tuple."""
        if self.windows is not None:
            closing = _array(self.windows, "f")
            return np.unique(np.concatenate([closing, closing + 1]))
        until = _array(self.tuples, "u")
        return np.unique(np.concatenate([_array(self.tuples, "f"), until[until < NEVER]]))


def relation(source: w.Source, events: Events) -> Relation:
    """A source whose window slides, as a relation."""
    gone = until(source.window, events)
    kept = np.flatnonzero(events.ts < gone)
    return Relation(_table(source.reads, events, kept, {"f": events.ts[kept], "u": gone[kept]}))


def of_windows(source: w.Source, events: Events, closed: Closed, counted: frozenset[str], number: int = 0) -> Relation:
    """The closed windows of a pattern window, as a relation; `counted` are those of `iter` and `num` that are read.

    Windows are numbered from `number` on.
    """
    sizes = np.diff(closed.offsets)
    at = events.ts[closed.close]
    from_ = np.repeat(at, sizes)
    keys = {"f": from_, "u": from_ + 1, "w": np.repeat(number + np.arange(len(sizes), dtype=np.int64), sizes)}
    return Relation(_table(source.reads, events, closed.tuples, keys), _windows(events, closed, counted, number))


def of_ends(select: w.Select, events: Events, closed: Closed, counted: frozenset[str], number: int = 0) -> Relation:
    """The same where nothing is asked of a window but its first and its last tuple: a row each, with the aggregates."""
    at = events.ts[closed.close]
    numbers = number + np.arange(len(at), dtype=np.int64)
    columns: dict[str, Any] = {"o": numbers, "f": at, "u": at + 1, "w0": numbers}
    for i, a in enumerate(select.aggregates):
        assert isinstance(a.value, Column)
        columns[f"a{i}"] = _values(a.value, events, closed.first if a.function == "first" else closed.close)
    return Relation(pa.table(columns), _windows(events, closed, counted, number))


def _windows(events: Events, closed: Closed, counted: frozenset[str], number: int) -> pa.Table:
    at = events.ts[closed.close]
    counts = {name: getattr(closed, name) for name in sorted(counted)}
    return pa.table({"w": number + np.arange(len(at), dtype=np.int64), "f": at, **counts})


def _table(reads: Sequence[Column], events: Events, positions: Times, keys: Mapping[str, Times]) -> pa.Table:
    columns: dict[str, Any] = {"n": np.arange(len(positions), dtype=np.int64), **keys}
    return pa.table(columns | {f"c{i}": _values(column, events, positions) for i, column in enumerate(reads)})


def _values(column: Column, events: Events, positions: Times) -> pa.Array:
    """An attribute as SQL sees it: timestamps are counts."""
    values = events.values(column.attr, positions)
    found = (values.as_float() if column.type == "float64" else values).to_arrow()
    return found.view(pa.int64()) if column.type == "timestamp" else found


def until(window: w.Window, events: Events) -> Times:
    """The first time at which each tuple is gone."""
    ts = events.ts
    match window:
        case w.Range():
            return np.where(ts < NEVER - window.size - 1, ts + np.int64(window.size + 1), NEVER)
        case w.Now():
            return ts + 1
        case w.Unbounded():
            return np.full(len(ts), NEVER)
        case w.Rows():
            gone = np.full(len(ts), NEVER)
            if window.count < len(ts):
                parts = _parts(window.by, events)
                order = np.argsort(parts, kind="stable")
                late, early = order[window.count :], order[: -window.count]
                same = parts[late] == parts[early]
                gone[early[same]] = ts[late[same]]
            return gone
        case w.PatternWindow():
            raise AssertionError("a pattern window has no such time")
        case _:
            assert_never(window)


def _parts(by: tuple[str, ...], events: Events) -> Times:
    """Numbers that are equal where all values are, as GROUP BY has it: nulls equal each other, and so do NaNs."""
    everything = np.arange(len(events))
    return group_codes([events.values(attr, everything) for attr in by], len(events))


def _array(table: pa.Table, name: str) -> Times:
    return np.asarray(table.column(name).to_numpy())
