"""How events come into a stream: as the schema has them, in the order of time, held back where they may come late."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import RecordBatch, Table

from quercus.backends.base import Limits
from quercus.backends.local.conform import conforms
from quercus.backends.local.delay import Waiting, duration, gathered
from quercus.backends.local.incremental import BEGIN, END
from quercus.backends.local.inputs import as_table
from quercus.backends.local.specs import Index
from quercus.backends.local.values import combined, raw
from quercus.errors import DataError, OutOfOrder
from quercus.kernels import group
from quercus.schema import Schema

R = TypeVar("R")  # what a push gives


class Intake(ABC, Generic[R]):
    """Takes in events for what stands behind it: `_step` gets them in the order of time, each once."""

    schema: Schema

    def __init__(
        self,
        schema: Schema,
        names: list[str],
        *,
        max_delay: str | int | None,
        late: Literal["error", "drop"],
        limits: Limits | None,
        columns: frozenset[str] | None,
    ) -> None:
        """`names`: the columns of events that are held; `columns`: the attributes that events have; None: all."""
        if late not in ("error", "drop"):
            raise DataError(f"late={late!r}: choose 'error' or 'drop'")
        self.schema, self.limits, self.late = schema, Limits.of(limits), late
        self.dropped = 0  # events that came too late
        self._delay = duration(max_delay, schema)
        self._columns, self._names = columns, names
        self._waiting = Waiting(names)
        self._conforming: pa.Schema | None = None  # the last schema of a table that needs no conversion
        self._final: R | None = None
        self._closed = False

    # ---- what stands behind

    @abstractmethod
    def _step(self, table: pa.Table | None, ts: Index, rows: Index | int, clock: int) -> R:
        """Events in order, if any, with their rows, and the clock after them. An error changes nothing."""

    @property
    @abstractmethod
    def _clock(self) -> int:
        """The time up to which everything has been looked at."""

    @property
    @abstractmethod
    def _rows(self) -> int:
        """Events pushed."""

    @property
    @abstractmethod
    def _seen(self) -> int:
        """The greatest time pushed."""

    @abstractmethod
    def _went(self, seen: int, rows: int) -> None:
        """A push was taken in: the greatest time, and all events, pushed by now."""

    def _waits(self, size: int) -> None:
        """So many bytes of events wait for their turn."""

    def _ended(self) -> None:
        """There is nothing more to come."""

    # ---- events

    @property
    def clock(self) -> int | None:
        """The time up to which everything has been looked at, in the unit of the time column; None at the start."""
        return None if self._clock == BEGIN else self._clock

    def _push(self, events: Any) -> R:
        table = self._table(events)
        ts = self._times(table)
        if not self._delay and group.is_sorted(ts) and (not len(ts) or ts[0] >= self._seen):
            seen = int(ts[-1]) if len(ts) else self._seen
            found = self._step(table, ts, self._rows, seen)
            self._went(seen, self._rows + len(ts))
            return found
        return self._reordered(table, ts)

    def _push_until(self, events: Any, until: int) -> R:
        self._check_clock(until)
        table = self._table(events)
        ts = self._times(table)
        if self._delay or not group.is_sorted(ts) or (len(ts) and ts[0] < self._seen):
            return self._reordered(table, ts, until)
        clock = max(self._seen, until, int(ts[-1]) if len(ts) else BEGIN)
        found = self._step(table, ts, self._rows, clock)
        self._went(clock, self._rows + len(ts))
        return found

    def _table(self, events: Any) -> pa.Table:
        """The events as the schema has them; columns that are so already are taken as they come."""
        if isinstance(events, RecordBatch):
            events = Table.from_batches([events])
        if isinstance(events, Table) and events.num_rows:
            if self._conforming is None or not events.schema.equals(self._conforming):
                self._conforming = events.schema if conforms(events.schema, self.schema, self._columns) else None
            if self._conforming is not None and not events.column(self.schema.time).null_count:
                return events
        table = as_table(events, self.schema, self._columns)
        if isinstance(events, Mapping):  # arrays that are not ours, and may change
            table = table.take(pa.array(np.arange(len(table))))
        return table

    def advance(self, ts: int) -> R:
        """No event before this time will come: gives what that decides. Time is in the unit of the time column."""
        self._check_open()
        self._check_clock(ts)
        return self._released(max(self._seen, ts + self._delay), self._rows, None)

    def close(self) -> R:
        """No more events: gives what was held back, as leaving the `with` block does. `final` has it afterwards."""
        if not self._closed:
            kept, self._waiting = self._waiting, self._waiting.copy()
            try:
                pieces, ts, rows = self._waiting.release(END)
                table = gathered(pieces, rows, self._names) if len(ts) else None
                self._final = self._step(table, ts, rows, END)
            except BaseException:
                self._waiting = kept
                raise
            self._end()
        return self.final

    @property
    def final(self) -> R:
        """What was held back until the stream was closed."""
        if self._final is None:
            raise DataError("the stream was left on an error" if self._closed else "the stream is open: close it first")
        return self._final

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        self._end()

    def _end(self) -> None:
        self._closed = True
        self._ended()

    # ---- checks

    def _check_open(self) -> None:
        if self._closed:
            raise DataError("the stream is closed: open another one, or restore a snapshot")

    def _check_clock(self, ts: object) -> None:
        if type(ts) is not int or not BEGIN < ts < END - self._delay:
            raise DataError(f"the clock cannot be {ts!r}: give an integer, a time in the unit of the time column")

    def _times(self, table: pa.Table) -> Index:
        ts = raw(combined(table.column(self.schema.time)).view(pa.int64()), np.int64)
        for end in (BEGIN, END):
            if len(ts) and (ts == end).any():
                row = self._rows + int(np.argmax(ts == end))
                time = self.schema.time
                raise DataError(f"column '{time}', row {row}: {end} is no time", column=time, row=row)
        return ts

    # ---- order

    def _reordered(self, table: pa.Table, ts: Index, until: int = BEGIN) -> R:
        rows = np.arange(self._rows, self._rows + len(ts))
        seen = np.maximum.accumulate(np.r_[self._seen, ts])
        limit = np.where(seen > BEGIN + self._delay, seen - self._delay, BEGIN)
        late = ts < np.maximum(limit[:-1], self._clock)
        dropped = int(late.sum())
        if dropped and self.late == "error":
            row = int(np.argmax(late))
            raise OutOfOrder(
                f"column '{self.schema.time}', row {self._rows + row}: {ts[row]} comes after {limit[row]}"
                + (f" with max_delay {self._delay}" if self._delay else "")
                + ": sort the events, allow a longer max_delay, or drop late ones with late='drop'",
                column=self.schema.time,
                row=self._rows + row,
            )
        if dropped:
            table, ts, rows = table.filter(pa.array(~late)), ts[~late], rows[~late]
        last = int(seen[-1]) if until == BEGIN else max(int(seen[-1]), until + self._delay)
        found = self._released(last, self._rows + len(late), (table, ts, rows))
        self.dropped += dropped
        return found

    def _released(self, seen: int, pushed: int, new: tuple[pa.Table, Index, Index] | None) -> R:
        """Let the events whose turn has come go through."""
        kept = self._waiting
        if new is not None or kept:
            self._waiting = kept.copy()
            if new is not None:
                self._waiting.add(*new)
        clock = max(self._clock, seen - self._delay) if seen > BEGIN + self._delay else self._clock
        try:
            pieces, ts, rows = self._waiting.release(clock)
            if self.limits.max_state_bytes is not None:
                self._waits(sum(p.events.nbytes for p in self._waiting.events.pieces))
            found = self._step(gathered(pieces, rows, self._names) if len(ts) else None, ts, rows, clock)
        except BaseException:
            self._waiting = kept
            raise
        self._went(seen, pushed)
        return found
