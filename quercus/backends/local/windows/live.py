"""Pattern windows over a live stream: `WindowStreams`, and `WindowStream` for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quercus.backends.base import Limits
from quercus.backends.local.events import Events, load
from quercus.backends.local.fill import numbers, valid
from quercus.backends.local.labels import Labels
from quercus.backends.local.specs import ColumnData, Index
from quercus.backends.local.values import Mask
from quercus.backends.local.windows import saved
from quercus.backends.local.windows.closed import Closed, Found, of_rows
from quercus.backends.local.windows.columns import Columns
from quercus.backends.local.windows.conditions import Key
from quercus.backends.local.windows.keyed import Keys
from quercus.backends.local.windows.plan import WindowPlan, plan_of
from quercus.backends.local.windows.program import programs_of
from quercus.backends.local.windows.run import check, ordered, state_bytes
from quercus.backends.local.windows.steps import Steps, groups_of, steps_of
from quercus.backends.local.windows.store import Store
from quercus.errors import DataError, OutOfOrder
from quercus.ir.window import PatternWindow, conditions
from quercus.kernels import memory, windows
from quercus.schema import Schema

LEAST = 4096  # tuples that are kept before it is asked which are needed
SINCE = 65_536  # tuples after which the state is written down, at least
_ENDLESS = Limits(max_matches=2**62, max_state_bytes=2**62)


class WindowStreams:
    """Several pattern windows over a stream that goes on, in one pass over its tuples, which are kept once for all.
    Each push gives, for each of them, the windows that it closes.

    Positions count from the first tuple of the stream. A push that fails leaves the stream as it was before. `bare`: of
    which windows nothing will be asked but their first tuples and their last ones.
    """

    def __init__(
        self,
        ws: Sequence[PatternWindow],
        schema: Schema,
        limits: Limits | None = None,
        bare: Sequence[bool] | None = None,
    ) -> None:
        self.windows, self.schema, self.limits = tuple(ws), schema, limits or Limits()
        self.bare = [False] * len(self.windows) if bare is None else list(bare)
        self._live = self._new()
        self._before: saved.State | None = None  # at some time, None: at the beginning; and what was pushed since
        self._since: list[Events] = []
        self._count = 0

    def _new(self) -> _Live:
        return _Live([plan_of(w) for w in self.windows], self.schema, self.bare)

    @property
    def open(self) -> int:
        """How many windows are open. One that a bound on time has ended counts until a tuple of its key comes."""
        return sum(k.open for k in self._live.kernels)

    @property
    def kept(self) -> int:
        """How many tuples are kept, those that are soon let go included."""
        return len(self._live.store)

    @property
    def touched(self) -> int:
        """How many windows tuples were shown to so far, groups of windows that are alike counted once."""
        return sum(k.touched for k in self._live.kernels)

    def push_all(self, events: Any) -> list[Closed]:
        """Take in some tuples: `Events` of this schema, or anything that a run takes."""
        given = events if isinstance(events, Events) else load(events, self.schema)
        if len(given) and given.ts[0] < self._live.clock:
            late = int(given.ts[0])
            raise OutOfOrder(
                f"a tuple of time {late} comes after one of time {self._live.clock}", column=self.schema.time
            )
        if self._count > max(SINCE, 8 * (len(self._live.store) + self.open)):
            self._before, self._since, self._count = self._live.state(), [], 0
        try:
            found = self._live.push(given, self.limits)
        except BaseException:
            self._live = self._recovered()
            raise
        self._since.append(given)
        self._count += len(given)
        return found

    def undo(self) -> None:
        """Take the last push back, which no snapshot has seen."""
        self._count -= len(self._since.pop())
        self._live = self._recovered()

    def _recovered(self) -> _Live:
        """As it was before the last push: from what was written down, and the pushes since."""
        live = self._new()
        if self._before is not None:
            live.restore(self._before)
        for events in self._since:
            live.push(events, _ENDLESS)
        return live

    def snapshot(self) -> bytes:
        """The state: open windows and the tuples that they still need."""
        return saved.write(self._live.state(), self.windows, self.schema)

    def resume(self, data: bytes) -> None:
        """Go on where another one stood; a `DataError` for what is no snapshot of these windows."""
        self._before = saved.read(data, self.windows, self.schema)
        self._live, self._since, self._count = self._new(), [], 0
        self._live.restore(self._before)


class WindowStream(WindowStreams):
    """One pattern window over a stream that goes on."""

    def __init__(self, w: PatternWindow, schema: Schema, limits: Limits | None = None) -> None:
        super().__init__([w], schema, limits)

    def push(self, events: Any) -> Closed:
        """The windows that some tuples close."""
        return self.push_all(events)[0]

    @classmethod
    def restore(cls, data: bytes, w: PatternWindow, schema: Schema, limits: Limits | None = None) -> Self:
        """A stream that goes on where the other stood; a `DataError` for what is no snapshot of this window."""
        made = cls(w, schema, limits)
        made.resume(data)
        return made


class _Live:
    """What is open, and the tuples that it needs.

    `full`: conditions may be asked of any window; else only of those of a tuple's own key, so that keys need not be
    compared, and nothing be read of them. It becomes full when a tuple first touches other windows.
    """

    def __init__(
        self, plans: Sequence[WindowPlan], schema: Schema, bare: Sequence[bool], *, full: bool = False
    ) -> None:
        self.plans, self.schema, self.full = plans, schema, full
        self.bare = [b and p.alike and p.ranged for b, p in zip(bare, plans, strict=True)]  # the others must know
        self.programs = programs_of(plans, schema, [False if full else None if p.alike else True for p in plans])
        program = self.programs.program
        self.kernels = [
            windows.Windows(
                *(program.code, preds, program.const_f, len(self.programs.columns), plan.alike),
                windows.NOWHERE if b else windows.BY_GROUP if plan.ranged or plan.alike else windows.BY_WINDOW,
            )
            for plan, preds, b in zip(plans, self.programs.preds, self.bare, strict=True)
        ]
        self.store: Store = Store([c.expr.type for c in self.programs.columns])
        self.labels, self.keys = Labels(program), Keys()
        self.store.set_constants(np.array(program.const_i, np.int64), [])
        self.labels.begin(self.store)
        self.position, self.clock = 0, -(2**63)
        self.settled = 0  # tuples that were needed when that was last asked

    def push(self, events: Events, limits: Limits) -> list[Closed]:
        size, place = len(events), len(self.store)
        table = events.table if events.rows is None else events.table.take(pa.array(events.rows))
        columns = _Tuples(events, self)
        steps = [
            steps_of(plan, columns, lean=b, live=True, loose=kernel.has_loose)
            for plan, kernel, b in zip(self.plans, self.kernels, self.bare, strict=True)
        ]
        if not self.full and any(s.spread for s in steps):
            self._become_full()
            columns, place = _Tuples(events, self), len(self.store)
        self.store.add(table, self.position, self._read(columns), _wanted(size, steps))
        lead = 0 if columns.by_arrival else int(np.searchsorted(events.ts, self.clock, side="right"))
        nanoseconds = -1 if limits.max_seconds is None else int(limits.max_seconds * 1e9)
        state = state_bytes(limits)
        loaded = self.store.loaded()
        for plan, kernel, s in zip(self.plans, self.kernels, steps, strict=True):
            groups = groups_of(plan, columns, s)
            kernel.load(len(self.store), loaded, self.store.constants)
            if lead:
                kernel.delay(self.position, lead)
            kernel.begin(
                *(s.at, groups.codes, groups.homes, s.flags, columns.ends(), self.position, place),
                *(groups.count, limits.max_matches, nanoseconds, state, 0, 1, size),
            )
        check(windows.together(self.kernels, size, state), limits)
        found: list[Found] = []
        for kernel in self.kernels:
            _, *places = kernel.finish()
            found.append(ordered(tuple(places)) if kernel.mixed else tuple(places))  # type: ignore[arg-type]
        listed = [part for f, b in zip(found, self.bare, strict=True) for part in (f[:2] if b else f[4:])]
        needed = _distinct(listed, place, place + size)
        rows = self.store.rows(needed) if len(needed) else table.slice(0, 0)
        closed = [of_rows(f, self.store.positions.values, needed, rows) for f in found]
        self.position += size
        self.clock = int(events.ts[-1]) if size else self.clock
        full = limits.max_state_bytes is not None and self.bytes > state
        if full or len(self.store) > 4 * self.settled + LEAST:
            self.settle(0 if full else LEAST)
        if full and self.bytes > state:
            check(windows.TOO_MUCH_STATE, limits)
        return closed

    def _become_full(self) -> None:
        other = _Live(self.plans, self.schema, self.bare, full=True)
        other.restore(self.state())
        self.__dict__.update(other.__dict__)

    @property
    def bytes(self) -> int:
        return self.store.bytes + self.keys.bytes + sum(k.state_bytes for k in self.kernels)

    def _read(self, columns: Columns) -> list[ColumnData]:
        """What conditions read of some tuples."""
        values = [columns.values(c.expr) for c in self.programs.columns]
        texts = [v.data for c, v in zip(self.programs.columns, values, strict=True) if c.text]
        labels = iter(self.labels.of(texts, self.store))
        return [
            (next(labels), valid(v)) if c.text else numbers(c, v)
            for c, v in zip(self.programs.columns, values, strict=True)
        ]

    def settle(self, least: int = 0) -> None:
        """Let go of what no open window needs: tuples, keys, strings. The last tuple stays: bounds look back at it.

        `least`: so many keys may stay that need not.
        """
        used = np.zeros(len(self.store), np.uint8)
        for kernel in self.kernels:
            kernel.trim()
            kernel.mark(used)
        used[-1:] = 1
        places = np.flatnonzero(used)
        moved = np.cumsum(used, out=memory.empty(len(used)))  # one more than the place that each of these gets
        moved -= 1
        for kernel in self.kernels:
            kernel.move(moved)
        self.store.keep(places)
        for keys in {plan.keys for plan in self.plans}:
            busy = [k.groups() for k, plan in zip(self.kernels, self.plans, strict=True) if plan.keys == keys]
            self.keys.keep(keys, np.concatenate(busy), least)
        if len(self.labels) > 2 * len(places) + LEAST:
            self.labels.forget(self.store)
        self.settled = len(places)

    def state(self) -> saved.State:
        self.settle(LEAST)
        listed = [kernel.state() for kernel in self.kernels]
        table = self.store.rows(np.arange(len(self.store))) if self.store.names else None
        return saved.State(
            *(table, self.store.positions.values.copy(), [w for w, _ in listed], [t for _, t in listed]),
            *(self.position, self.clock),
        )

    def restore(self, s: saved.State) -> None:
        self.position, self.clock = s.position, s.clock
        if s.tuples is None:
            return
        events = load(s.tuples, self.schema)
        columns = _Tuples(events, self)
        self.store.add(events.table, 0, self._read(columns))
        self.store.positions.values[:] = s.positions
        for plan, kernel, listed, taken in zip(self.plans, self.kernels, s.windows, s.taken, strict=True):
            first = np.ascontiguousarray(listed[:, 1])
            groups = columns.codes(tuple(k.first for k in plan.keys), plan.keys, first)
            try:
                kernel.restore(
                    np.ascontiguousarray(np.column_stack([groups, listed[:, 1:]])),
                    np.ascontiguousarray(np.column_stack([_owners(taken[:, 0], listed[:, 0], groups), taken[:, 1]])),
                    max(1, self.keys.size(plan.keys)),
                    s.position,
                )
            except ValueError as e:
                raise DataError(f"not a snapshot of pattern windows: {e}") from e
        self.settled = len(self.store)


def _wanted(size: int, steps: Sequence[Steps]) -> NDArray[np.uint8]:
    """Which tuples windows may hold: those that matter to one; and the last one, which bounds look back at."""
    wanted = np.zeros(size, np.uint8)
    for s in steps:
        wanted[s.at] = 1
    wanted[-1:] = 1
    return wanted


def _distinct(places: Sequence[Index], first: int, end: int) -> Index:
    """All these places below `end`, ascending, each once. Most are not below `first`: these are marked, not sorted."""
    marks = np.zeros(end - first, np.bool_)
    old: list[Index] = []
    for p in places:
        is_old = p < first
        old.append(p[is_old])
        marks[p[~is_old] - first] = True
    return np.concatenate([np.unique(np.concatenate(old)), np.flatnonzero(marks) + first])


def _owners(owners: Index, before: Index, now: Index) -> Index:
    """Groups by the numbers that they have now; what is no group stays as it is."""
    at = np.argsort(before, kind="stable")
    found = np.searchsorted(before[at], owners)
    found = np.minimum(found, len(at) - 1)
    if len(owners) and (not len(at) or (before[at][found] != owners)[owners >= 0].any()):
        raise DataError("not a snapshot of pattern windows: a tuple of no window")
    return np.where(owners >= 0, now[at][found], owners) if len(owners) else owners


class _Tuples(Columns):
    """Tuples whose keys have the numbers that they had in the pushes before."""

    def __init__(self, events: Events, live: _Live) -> None:
        super().__init__(events, [e for plan in live.plans for e in conditions(plan.window)], live.keys)

    def groups(self, keys: tuple[Key, ...], at: Index, starts: Mask) -> tuple[Index, Index]:
        """Only windows make keys known: a tuple whose key is not known touches none."""
        homes = np.full(len(at), -1, np.int64)
        if not keys:
            homes[starts] = 0
            return np.zeros(len(at), np.int64), homes
        here, home = tuple(k.here for k in keys), tuple(k.first for k in keys)
        table, rows = self.keys.table(keys), self.events.input_rows(at)
        if here == home:
            codes = table.find_or_add(self._parts(here), rows, starts.view(np.uint8))
            return codes, np.where(starts, codes, -1)
        homes[starts] = self.codes(home, keys, at[starts])
        return table.find(self._parts(here), rows), homes
