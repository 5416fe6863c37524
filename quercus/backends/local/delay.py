"""Events that come out of order: held until none can come before them, then given in the order of time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa

from quercus.backends.local.history import History, Piece, taken
from quercus.backends.local.specs import Index
from quercus.errors import DataError
from quercus.schema import Schema

_NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_NONE = np.empty(0, np.int64)


def duration(given: str | int | None, schema: Schema) -> int:
    """A delay in the unit of the time column.

    >>> duration("5 s", Schema({}, time_unit="ms")), duration(7, Schema({}))
    (5000, 7)
    """
    if given is None:
        return 0
    if type(given) is int and 0 <= given < 2**62:
        return given
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", given) if isinstance(given, str) else None
    unit = _NANOSECONDS.get(found[2]) if found is not None else None
    if found is None or unit is None:
        units = " ".join(_NANOSECONDS)
        raise DataError(f"max_delay={given!r}: give a number and a unit, as in '5 s' (units: {units}), or an integer")
    length = Fraction(found[1]) * unit / _NANOSECONDS[schema.time_unit]
    if length >= 2**62:
        raise DataError(f"max_delay={given!r} is longer than a time column can tell")
    if length != int(length):
        raise DataError(f"max_delay={given!r} is no whole number of {schema.time_unit}, the unit of the time column")
    return int(length)


class Waiting:
    """Events that wait for their turn, by time and then by row."""

    def __init__(self, names: list[str]) -> None:
        self.events = History(names)  # by row
        self.ts, self.rows = _NONE, _NONE

    def __len__(self) -> int:
        return len(self.ts)

    def copy(self) -> Waiting:
        """The same, to be changed."""
        made = Waiting(self.events.names)
        made.events.pieces[:] = self.events.pieces
        made.ts, made.rows = self.ts, self.rows
        return made

    def restore(self, events: pa.Table, ts: Index, rows: Index) -> None:
        """Events in the order of their turn."""
        order = np.argsort(rows)
        if len(ts):
            self.events.add(Piece(events.take(pa.array(order)), int(rows[order][0]), rows[order], rows[order], 0))
        self.ts, self.rows = ts.copy(), rows.copy()

    def add(self, events: pa.Table, ts: Index, rows: Index) -> None:
        """Events in any order, later rows than all before."""
        if not len(ts):
            return
        self.events.add(Piece(events, int(rows[0]), rows, rows, 0))
        order = np.argsort(ts, kind="stable")
        at = np.searchsorted(self.ts, ts[order], side="right")
        self.ts, self.rows = np.insert(self.ts, at, ts[order]), np.insert(self.rows, at, rows[order])

    def release(self, clock: int) -> tuple[Sequence[Piece], Index, Index]:
        """The events up to a time, in order: pieces that hold them, times and rows."""
        n = int(np.searchsorted(self.ts, clock, side="right"))
        pieces = tuple(self.events.pieces)
        ts, rows = self.ts[:n], self.rows[:n]
        self.ts, self.rows = self.ts[n:], self.rows[n:]
        self.events.purge(place=int(self.rows.min()) if len(self.rows) else 2**63 - 1)
        return pieces, ts, rows


def gathered(pieces: Sequence[Piece], rows: Index, names: list[str]) -> pa.Table:
    """The events of some rows, in that order."""
    order = np.argsort(rows, kind="stable")
    found, _ = taken(pieces, rows[order], names)
    back = np.empty(len(rows), np.int64)
    back[order] = np.arange(len(rows))
    return found.take(pa.array(back)).combine_chunks()
