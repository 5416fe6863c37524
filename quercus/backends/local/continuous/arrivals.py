"""How the tuples of one stream come into a continuous query: in order of time, held back where they may come late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from quercus.backends.local.continuous.relations import Times
from quercus.backends.local.delay import Waiting, duration, gathered
from quercus.backends.local.events import Events, load
from quercus.errors import DataError, OutOfOrder, nearest
from quercus.schema import Schema

Delay = str | int | None
Delays = Delay | Mapping[str, Delay]
Mode = Literal["error", "drop"]
Late = Mode | Mapping[str, Mode]
BEGIN = -(2**63)


@frozen(eq=False)
class Arrived:
    """How far a stream is. Nothing in it changes: a step makes another one."""

    clock: int = BEGIN  # no tuple before this time is to come
    pushed: int = 0  # tuples so far
    dropped: int = 0  # those that came too late
    waiting: Waiting | None = None  # None: nothing waits


class Arrivals:
    """A stream by its name. A tuple before the clock is late when it is pushed; those of one push come together."""

    def __init__(self, name: str, schema: Schema, max_delay: Delay, late: Mode) -> None:
        if late not in ("error", "drop"):
            raise DataError(f"late={late!r}: choose 'error' or 'drop'")
        self.name, self.schema, self.late = name, schema, late
        self.delay = duration(max_delay, schema)
        self.now = Arrived()

    @property
    def clock(self) -> int:
        return self.now.clock

    @property
    def bytes(self) -> int:
        """What waits."""
        waiting = self.now.waiting
        return 0 if waiting is None else sum(int(p.events.nbytes) for p in waiting.events.pieces)

    def push(self, given: Any) -> tuple[Events, Arrived]:
        """The tuples whose turn has come, in order, and how far the stream then is."""
        now, events = self.now, load(given, self.schema)
        late = int(np.searchsorted(events.ts, now.clock))
        if late and self.late == "error":
            row = 0 if events.rows is None else int(events.rows[0])
            allowed = f" with max_delay {self.delay}" if self.delay else ""
            raise OutOfOrder(
                f"stream '{self.name}', row {row}: a tuple of time {events.ts[0]} comes after {now.clock}{allowed}: "
                "sort the tuples, allow a longer max_delay, or drop late ones with late='drop'",
                column=self.schema.time,
                row=row,
            )
        table, ts = in_order(events).slice(late), events.ts[late:]
        if isinstance(given, Mapping):  # arrays that are not ours, and may change
            table, ts = table.take(pa.array(np.arange(len(table)))), ts.copy()
        seen = int(ts[-1]) - self.delay if len(ts) and int(ts[-1]) > BEGIN + self.delay else BEGIN
        after = evolve(now, clock=max(now.clock, seen), pushed=now.pushed + len(events), dropped=now.dropped + late)
        if not self.delay:
            return Events(table, self.schema, ts, None), after
        waiting = Waiting(table.column_names) if now.waiting is None else now.waiting.copy()
        waiting.add(table, ts, now.pushed + late + np.arange(len(ts)))
        return self._released(after, waiting)

    def advance(self, time: int) -> tuple[Events, Arrived]:
        """No tuple before this time is to come."""
        after = evolve(self.now, clock=max(self.now.clock, time))
        if self.now.waiting is None:
            return load(empty(self.schema), self.schema), after
        return self._released(after, self.now.waiting.copy())

    def _released(self, after: Arrived, waiting: Waiting) -> tuple[Events, Arrived]:
        pieces, ts, rows = waiting.release(after.clock)
        table = gathered(pieces, rows, waiting.events.names) if len(ts) else empty(self.schema)
        return Events(table, self.schema, ts, None), evolve(after, waiting=waiting if len(waiting) else None)

    # snapshots

    def facts(self) -> dict[str, Any]:
        now = self.now
        return {
            "clock": now.clock, "pushed": now.pushed, "dropped": now.dropped, "delay": self.delay, "late": self.late
        }  # fmt: skip

    def state(self) -> pa.Table:
        """What waits, in the order of its turn, with its rows."""
        waiting = self.now.waiting
        if waiting is None:
            return empty(self.schema).append_column(_ROW, pa.array([], pa.int64()))
        table = gathered(waiting.events.pieces, waiting.rows, waiting.events.names)
        return table.append_column(_ROW, pa.array(waiting.rows, pa.int64()))

    def restore(self, facts: Mapping[str, Any], state: pa.Table) -> None:
        rows: Times = state.column(_ROW).to_numpy().astype(np.int64)
        events = load(state.drop_columns([_ROW]), self.schema)
        if events.rows is not None or len(np.unique(rows)) < len(rows):
            raise ValueError("tuples that wait, out of order")
        waiting = None
        if len(rows):
            waiting = Waiting(events.table.column_names)
            waiting.restore(events.table, events.ts, rows)
        self.now = Arrived(int(facts["clock"]), int(facts["pushed"]), int(facts["dropped"]), waiting)


_ROW = "__row"


def arrivals_of(
    schemas: Mapping[str, Schema], known: Sequence[str], max_delay: Delays, late: Late
) -> dict[str, Arrivals]:
    """Those of the streams that a query reads; settings may be of all streams that it knows."""
    for given in (max_delay, late):
        for name in given if isinstance(given, Mapping) else ():
            if name not in known:
                raise DataError(f"no stream '{name}': {nearest(name, known) or ', '.join(known)}")
    return {
        name: Arrivals(
            name,
            schema,
            max_delay.get(name) if isinstance(max_delay, Mapping) else max_delay,
            late.get(name, "error") if isinstance(late, Mapping) else late,
        )
        for name, schema in schemas.items()
    }


def in_order(events: Events) -> pa.Table:
    return events.table if events.rows is None else events.table.take(pa.array(events.rows))


def empty(schema: Schema) -> pa.Table:
    """A table without tuples, as loading leaves one."""
    columns: dict[str, list[object]] = {name: [] for name in (*schema.special, *schema.columns())}
    return load(columns, schema).table
