"""Pattern windows over a live stream: `WindowStream`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self

import numpy as np
import pyarrow as pa

from quercus.backends.base import Limits
from quercus.backends.local.events import Events, load
from quercus.backends.local.fill import numbers, valid
from quercus.backends.local.joins import STATE_BYTES
from quercus.backends.local.labels import Keys, Labels
from quercus.backends.local.specs import ColumnData, Index
from quercus.backends.local.values import Mask
from quercus.backends.local.windows import saved
from quercus.backends.local.windows.closed import Closed, Found, of_rows
from quercus.backends.local.windows.columns import Columns
from quercus.backends.local.windows.conditions import Key
from quercus.backends.local.windows.plan import WindowPlan, plan_of
from quercus.backends.local.windows.program import programs_of
from quercus.backends.local.windows.run import check, ordered
from quercus.backends.local.windows.steps import steps_of
from quercus.backends.local.windows.store import Store
from quercus.errors import DataError, OutOfOrder
from quercus.ir import expr as x
from quercus.ir.window import PatternWindow
from quercus.kernels import windows
from quercus.schema import Schema

LEAST = 4096  # tuples that are kept before it is asked which are needed
SINCE = 65_536  # tuples after which the state is written down, at least
_ENDLESS = Limits(max_matches=2**62, max_state_bytes=2**62)


class WindowStream:
    """A pattern window over a stream that goes on. Each push gives the windows that it closes.

    Positions count from the first tuple of the stream. A push that fails leaves the stream as it was before.
    """

    def __init__(self, w: PatternWindow, schema: Schema, limits: Limits | None = None) -> None:
        self.window, self.schema, self.limits = w, schema, limits or Limits()
        self._live = _Live(plan_of(w), schema)
        self._before: bytes | None = None  # the state at some time, None: at the beginning; and what was pushed since
        self._since: list[Events] = []
        self._count = 0

    @property
    def open(self) -> int:
        """How many windows are open. One that a bound on time has ended counts until a tuple of its key comes."""
        return self._live.kernel.open

    @property
    def kept(self) -> int:
        """How many tuples are kept, those that are soon let go included."""
        return len(self._live.store)

    @property
    def touched(self) -> int:
        """How many windows tuples were shown to so far, groups of windows that are alike counted once."""
        return self._live.kernel.touched

    def push(self, events: Any) -> Closed:
        """Take in some tuples: `Events` of this schema, or anything that a run takes."""
        given = events if isinstance(events, Events) else load(events, self.schema)
        if len(given) and given.ts[0] < self._live.clock:
            late = int(given.ts[0])
            raise OutOfOrder(
                f"a tuple of time {late} comes after one of time {self._live.clock}", column=self.schema.time
            )
        try:
            found = self._live.push(given, self.limits)
        except BaseException:
            self._live = self._recovered()
            raise
        self._since.append(given)
        self._count += len(given)
        if self._count > max(SINCE, 8 * (len(self._live.store) + self.open)):
            self._before, self._since, self._count = self.snapshot(), [], 0
        return found

    def _recovered(self) -> _Live:
        """As it was before the last push: from what was written down, and the pushes since."""
        live = _Live(plan_of(self.window), self.schema)
        if self._before is not None:
            live.restore(saved.read(self._before, self.window, self.schema))
        for events in self._since:
            live.push(events, _ENDLESS)
        return live

    def snapshot(self) -> bytes:
        """The state: open windows and the tuples that they still need."""
        return saved.write(self._live.state(), self.window, self.schema)

    @classmethod
    def restore(cls, data: bytes, w: PatternWindow, schema: Schema, limits: Limits | None = None) -> Self:
        """A stream that goes on where the other stood; a `DataError` for what is no snapshot of this window."""
        made = cls(w, schema, limits)
        made._live.restore(saved.read(data, w, schema))
        made._before = bytes(data)
        return made


class _Live:
    """What is open, and the tuples that it needs."""

    def __init__(self, plan: WindowPlan, schema: Schema) -> None:
        self.plan, self.schema = plan, schema
        self.programs = programs_of(plan, schema)
        self.keeping = windows.BY_GROUP if plan.ranged or plan.alike else windows.BY_WINDOW
        program = self.programs.program
        self.kernel = windows.Windows(
            *(program.code, self.programs.preds, program.const_f, len(self.programs.columns), plan.alike, self.keeping)
        )
        self.store: Store = Store([c.expr.type for c in self.programs.columns], [])
        self.labels, self.keys = Labels(program), Keys()
        self.store.set_constants(np.array(program.const_i, np.int64), [])
        self.labels.begin(self.store)
        self.position, self.clock = 0, -(2**63)
        self.settled = 0  # tuples that were needed when that was last asked

    def push(self, events: Events, limits: Limits) -> Closed:
        size, place = len(events), len(self.store)
        table = events.table if events.rows is None else events.table.take(pa.array(events.rows))
        if not self.store.names:
            self.store.names = table.column_names
        columns = _Tuples(events, self)
        steps = steps_of(self.plan, columns, lean=False, live=True)
        self.store.add(table, self.position, self._read(columns))
        self.keys.keep()
        self.kernel.load(len(self.store), self.store.loaded(), self.store.constants)
        lead = int(np.searchsorted(events.ts, self.clock, side="right"))
        if lead:
            self.kernel.delay(self.position, lead)
        nanoseconds = -1 if limits.max_seconds is None else int(limits.max_seconds * 1e9)
        state = STATE_BYTES if limits.max_state_bytes is None else limits.max_state_bytes
        status, *found = self.kernel.run(
            *(steps.at, steps.codes, steps.homes, steps.flags, columns.ends(), self.position, place),
            *(len(self.keys.values) + 1, limits.max_matches, nanoseconds, state, 0, 1, size),
        )
        check(status, limits)
        places: Found = ordered(tuple(found)) if self.kernel.mixed else tuple(found)  # type: ignore[arg-type, assignment]
        needed = np.unique(places[4])
        rows = self.store.rows(needed) if len(needed) else table.slice(0, 0)
        closed = of_rows(places, self.store.positions.values, needed, rows)
        self.position += size
        self.clock = int(events.ts[-1]) if size else self.clock
        full = limits.max_state_bytes is not None and self.bytes > state
        if full or len(self.store) > 2 * self.settled + LEAST:
            self.settle()
        if full and self.bytes > state:
            check(windows.TOO_MUCH_STATE, limits)
        return closed

    @property
    def bytes(self) -> int:
        return self.store.bytes + self.kernel.state_bytes

    def _read(self, columns: Columns) -> list[ColumnData]:
        """What conditions read of some tuples."""
        values = [columns.values(c.expr) for c in self.programs.columns]
        texts = [v.data for c, v in zip(self.programs.columns, values, strict=True) if c.text]
        labels = iter(self.labels.of(texts, self.store))
        return [
            (next(labels), valid(v)) if c.text else numbers(c, v)
            for c, v in zip(self.programs.columns, values, strict=True)
        ]

    def settle(self) -> None:
        """Let go of what no open window needs: tuples, keys, strings. The last tuple stays: bounds look back at it."""
        self.kernel.trim()
        used = np.zeros(len(self.store), np.uint8)
        self.kernel.mark(used)
        used[-1:] = 1
        places = np.flatnonzero(used)
        moved = np.full(len(used), -1, np.int64)
        moved[places] = np.arange(len(places))
        self.kernel.move(moved)
        self.store.keep(places)
        busy = set(self.kernel.groups().tolist())
        self.keys.let_go([s for s in range(len(self.keys.values)) if s not in busy])
        if len(self.labels) > 2 * len(places) + LEAST:
            self.labels.forget(self.store)
        self.settled = len(places)

    def state(self) -> saved.State:
        self.settle()
        open_, tuples = self.kernel.state()
        table = self.store.rows(np.arange(len(self.store))) if self.store.pieces else None
        return saved.State(table, self.store.positions.values.copy(), open_, tuples, self.position, self.clock)

    def restore(self, s: saved.State) -> None:
        self.position, self.clock = s.position, s.clock
        if s.tuples is None:
            return
        events = load(s.tuples, self.schema)
        columns = _Tuples(events, self)
        self.store.names = events.table.column_names
        self.store.add(events.table, 0, self._read(columns))
        self.store.positions.values[:] = s.positions
        first = np.ascontiguousarray(s.windows[:, 1])
        groups = columns.codes(tuple(k.first for k in self.plan.keys), None, first)
        self.keys.keep()
        now = dict(zip(s.windows[:, 0].tolist(), groups.tolist(), strict=True))
        owners = [now[o] if o >= 0 else o for o in s.taken[:, 0].tolist()]
        try:
            self.kernel.restore(
                np.ascontiguousarray(np.column_stack([groups, s.windows[:, 1:]])),
                np.ascontiguousarray(np.column_stack([np.array(owners, np.int64), s.taken[:, 1]])),
                len(self.keys.values) + 1,
                s.position,
            )
        except ValueError as e:
            raise DataError(f"not a snapshot of pattern windows: {e}") from e
        self.settled = len(self.store)


class _Tuples(Columns):
    """Tuples whose keys have the numbers that they had in the pushes before."""

    def __init__(self, events: Events, live: _Live) -> None:
        w = live.plan.window
        super().__init__(events, (w.start, w.termination, w.iteration, w.filter))
        self.live = live

    def codes(self, parts: tuple[x.Expr, ...], space: Hashable, at: Index) -> Index:
        if not parts:
            return np.zeros(len(at), np.int64)
        return self.live.keys.of([self.values(part).take(at) for part in parts], alone=False)

    def groups(self, keys: tuple[Key, ...], at: Index, starts: Mask) -> tuple[Index, Index]:
        """Only windows make keys known: a tuple whose key is not known touches none."""
        homes = np.full(len(at), -1, np.int64)
        homes[starts] = self.codes(tuple(k.first for k in keys), None, at[starts])
        if not keys:
            return np.zeros(len(at), np.int64), homes
        return self.live.keys.find([self.values(k.here).take(at) for k in keys]), homes
