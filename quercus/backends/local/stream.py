"""A plan over a live stream: `plan.stream()`."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyarrow import RecordBatch, Table

from quercus.adapt import Adapt, Switch
from quercus.backends.base import Limits
from quercus.backends.local import kept_views, snapshot
from quercus.backends.local.adaptive import Adapter, explain_stream
from quercus.backends.local.delay import gathered
from quercus.backends.local.history import concatenated, taken
from quercus.backends.local.incremental import BEGIN, END, Engine, Found, Totalled
from quercus.backends.local.inputs import as_table
from quercus.backends.local.intake import Intake
from quercus.backends.local.moments import next_moment
from quercus.backends.local.orders import Orders
from quercus.backends.local.relisted import Relisted
from quercus.backends.local.specs import Index
from quercus.backends.local.totals import Totals
from quercus.backends.local.values import combined, raw
from quercus.errors import DataError
from quercus.kernels import group, match
from quercus.plan import Plan
from quercus.result import Matches

NEVER = END  # events pushed before which nothing is looked at
_NONE = np.empty(0, np.int64)


class Stream(Intake[Matches]):
    """A stream that a plan watches. Each push gives the matches that are now decided; every match comes out once.

    >>> import quercus as qc
    >>> plan = qc.compile("PATTERN SEQ(A a, !B b) WITHIN 3", qc.Schema({}))
    >>> with plan.stream() as s:
    ...     s.push({"ts": [1, 2], "type": ["A", "A"]}).rows()
    ...     s.push({"ts": [5], "type": ["B"]}).rows()
    []
    [{'a': 0}]
    >>> s.final.rows()
    []
    """

    def __init__(
        self,
        plan: Plan,
        *,
        max_delay: str | int | None = None,
        late: Literal["error", "drop"] = "error",
        limits: Limits | None = None,
        columns: frozenset[str] | None = None,
        adapt: bool | Adapt = True,
    ) -> None:
        """`columns`: the attributes that events have; None: all of the schema's."""
        if not isinstance(adapt, bool | Adapt):
            raise DataError(f"adapt={adapt!r}: choose True, False or a quercus.Adapt")
        self.plan = plan
        self._engine = Engine(plan, columns)
        super().__init__(
            plan.schema,
            self._engine.columns_kept,
            max_delay=max_delay,
            late=late,
            limits=limits,
            columns=columns,
        )
        self._totals = Totals(plan.query, plan.schema) if plan.query.aggregates else None
        if self._totals is not None:
            self._engine.check_groups = self._totals.check
            self._engine.bytes_of_groups = lambda: 0 if self._totals is None else self._totals.bytes
        self._direct = not self._delay and self._totals is None
        self._counts = not self._delay and self._totals is not None
        self._course = self._engine.course
        self._inlet: match.Inlet | None = None  # what takes in record batches as they are
        self._adapt = adapt
        self._adapter: Adapter | None = None
        self._look_at = NEVER
        self._adapted([])

    @property
    def _rows(self) -> int:
        """Events pushed."""
        return self._course.rows

    @property
    def _seen(self) -> int:
        """The greatest time pushed."""
        return self._course.seen

    # ---- events

    @property
    def _clock(self) -> int:
        return self._engine.clock

    def _went(self, seen: int, rows: int) -> None:
        self._course.seen, self._course.rows = seen, rows

    def _waits(self, size: int) -> None:
        self._engine.waiting = size

    def _ended(self) -> None:
        self._inlet = None

    @property
    def next_moment(self) -> int | None:
        """The least clock that can decide a match with no further event; None: only events can decide any."""
        self._check_open()
        return next_moment(self._engine)

    def push(self, events: Any, *, until: int | None = None) -> Matches:
        """Take in some events, one or many; gives the matches that are now decided.

        `until` says besides that no event before that time will come, as `advance` does, in one step. Bad events, or a
        limit reached, are errors that leave the stream as it was before this push.
        """
        if self._course.rows >= self._look_at:
            self._look()
        if until is not None:
            self._check_open()
            return self._push_until(events, until)
        if self._inlet is not None:
            found = self._inlet.push(events, self._engine, self.limits)
            if found is not None:
                return found  # type: ignore[no-any-return]
        return self._push(events)

    def _quick(self, events: Any) -> Matches | None:
        """Record batches in order need no preparation, for most queries."""
        batch = events
        if isinstance(events, Table):
            batches = events.to_batches()
            batch = batches[0] if len(batches) == 1 else None
        if not isinstance(batch, RecordBatch):
            return None
        inlet = self._engine.inlet(batch.schema)
        if inlet is None or (inlet is self._inlet and batch is events):  # it was asked
            return None
        self._inlet = inlet
        return inlet.push(batch, self._engine, self.limits)  # type: ignore[no-any-return]

    def _quick_totals(self, batch: RecordBatch) -> Matches | None:
        """Record batches in order need no preparation for totals without groups."""
        limits, totals = self.limits, self._totals
        if limits.max_state_bytes is not None or limits.max_seconds is not None or totals is None:
            return None
        found = self._engine.total(batch, totals.check_one)
        return None if found is None else self._totalled(found)

    def _push(self, events: Any) -> Matches:
        self._check_open()
        if self._direct:
            quick = self._quick(events)
            if quick is not None:
                return quick
        elif self._counts and type(events) is RecordBatch:
            counted = self._quick_totals(events)
            if counted is not None:
                return counted
        return super()._push(events)

    # ---- matches

    def _step(self, table: pa.Table | None, ts: Index, rows: Index | int, clock: int) -> Matches:
        return self._matches(self._engine.step(table, ts, rows, clock, self.limits))

    def _matches(self, found: Found | Totalled) -> Matches:
        query, schema = self.plan.query, self.plan.schema
        if isinstance(found, Totalled):
            return self._totalled(found)
        if self._totals is None:
            return Matches.of_stream(schema, query, found)
        answer = found.answer()
        never = self._engine.clock == END and not query.group_by and not self._totals.groups and not len(answer)
        totals = self._totals.sum_up(answer) if never else self._totals.add(answer)
        return Matches.of_stream(schema, query, found, totals)

    # ---- plans

    @property
    def switches(self) -> tuple[Switch, ...]:
        """The switches of the plan so far."""
        return tuple(self._switches)

    def explain(self) -> str:
        """The plan as text, the order in which the stream is searched by now, what was seen, and all switches."""
        return explain_stream(self.plan, self._engine, self._adapter, self._switches)

    def _adapted(self, switches: list[Switch]) -> None:
        """Begin to watch the stream, if its plan may change."""
        self._switches = switches
        may = self._adapt is not False and self.plan.options.shape == "auto" and self._engine.live is None
        if may and self._engine.can_switch:
            asked = self._adapt if isinstance(self._adapt, Adapt) else Adapt()
            self._adapter = Adapter(self._engine, asked, switches)
            self._look_at = self._adapter.next

    def _look(self) -> None:
        """See whether another plan has become better."""
        if self._adapter is None or self._closed:
            return
        orders = self._adapter.look(self._engine)
        self._look_at = self._adapter.next
        if orders is not None:
            self._switch(orders)

    def _switch(self, orders: Orders) -> None:
        """Search in other orders from the next push on: the events that are kept move, and nothing else changes."""
        self._check_open()
        self._engine = self._engine.switched(orders)
        self._course, self._inlet = self._engine.course, None
        if self._adapter is not None:
            self._adapter.switched(self._engine)

    def _totalled(self, found: Totalled) -> Matches:
        """The groups that changed, where no matches were listed."""
        assert self._totals is not None
        query, totals, engine = self.plan.query, self._totals, self._engine
        facts = found.before, found.piece, found.moment, engine.clock, self.limits, found.numbered, found.positions
        later = Relisted(self.plan, self._columns, *facts)
        never = engine.clock == END and not query.group_by and not totals.groups and not found.groups
        return Matches.of_stream(self.plan.schema, query, later, totals.add_groups(found.groups, engine.empty, never))

    # ---- snapshots

    def snapshot(self) -> bytes:
        """The state as bytes, versioned Arrow IPC: `plan.restore(state)` goes on from there."""
        self._check_open()
        engine = self._engine
        places = engine.kept()
        pieces = engine.history.pieces
        events, rows = taken(pieces, places, self._names) if pieces else (self._engine.empty, _NONE)
        waiting = (
            gathered(self._waiting.events.pieces, self._waiting.rows, self._names)
            if len(self._waiting)
            else self._engine.empty
        )
        keys = [list(k) if isinstance(k, tuple) else k for k in engine.keys.values] if engine.own_positions else []
        views, of_views = kept_views.told(engine) if engine.has_views else (None, None)
        state = snapshot.State(
            concatenated([events, waiting]),
            np.r_[places, np.full(len(waiting), -1)],
            np.r_[rows, self._waiting.rows],
            engine.positions_of(places, len(waiting)),
            keys,
            np.array(engine.matcher.positions() if engine.own_positions else [], np.int64)[: len(keys)],
            [list(k) for k in engine.given],
            {
                "clock": engine.clock,
                "place": engine.place,
                "seen": self._seen,
                "rows": self._rows,
                "dropped": self.dropped,
                "delay": self._delay,
                "late": self.late,
                "switches": [k.told() for k in self._switches],
                "totals": [] if self._totals is None else self._totals.to_json(),
                "views": of_views,
            },
            views,
        )
        return snapshot.write(state, self.plan)

    @classmethod
    def restore(
        cls,
        plan: Plan,
        state: bytes,
        *,
        limits: Limits | None = None,
        columns: frozenset[str] | None = None,
        adapt: bool | Adapt = True,
    ) -> Stream:
        """A stream that goes on where a snapshot was taken; `columns` as they were given to that one."""
        s = snapshot.read(state, plan)
        facts = _checked(s)
        try:
            stream = cls(
                plan, max_delay=facts["delay"], late=facts["late"], limits=limits, columns=columns, adapt=adapt
            )
            engine, course = stream._engine, stream._course
            course.seen, course.rows, stream.dropped = facts["seen"], facts["rows"], facts["dropped"]
            course.clock, course.place = facts["clock"], facts["place"]
            if stream._totals is not None:
                stream._totals.from_json(facts["totals"])
            engine.given = {tuple(tuple(v) if isinstance(v, list) else v for v in k): facts["place"] for k in s.given}
            table = as_table(s.events, plan.schema, columns)
            ts = raw(combined(table.column(plan.schema.time)).view(pa.int64()), np.int64)
            n = int((s.places >= 0).sum())
            if not group.is_sorted(ts[:n]) or not group.is_sorted(s.places[:n]) or (s.places[:n] < 0).any():
                raise DataError("not a snapshot of a stream: its events are out of order")
            engine.restore_keys(s.keys, s.next_positions)
            engine.restore(table.slice(0, n), ts[:n], s.rows[:n], s.places[:n], s.positions[:n])
            stream._adapted([Switch.of(k) for k in facts.get("switches", [])])
            stream._waiting.restore(table.slice(n), ts[n:], s.rows[n:])
            if engine.own_positions and not len(s.keys) == len(s.next_positions) == len(engine.keys.values):
                raise DataError("not a snapshot of a stream: its keys do not fit its events")
            if (s.views is None) != (facts.get("views") is None):
                raise DataError("not a snapshot of a stream: its views are not what it says of them")
            if s.views is not None:
                kept_views.restore(engine, s.views, facts["views"])
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, pa.ArrowException) as e:
            raise DataError(f"not a snapshot of a stream: {e}") from e
        return stream


def _checked(s: snapshot.State) -> dict[str, Any]:
    """The facts of a snapshot, if they can be."""
    facts = s.facts
    numbers = ("clock", "place", "seen", "rows", "dropped", "delay")
    sound = all(type(facts.get(n)) is int and BEGIN <= facts[n] < END for n in numbers)
    if sound:
        n, places = int((s.places >= 0).sum()), s.places
        sound = (
            0 <= facts["dropped"] <= facts["rows"]
            and 0 <= facts["place"] <= facts["rows"]
            and 0 <= facts["delay"] < 2**62
            and (n == 0 or int(places[n - 1]) < facts["place"])
            and bool((s.rows >= 0).all())
            and bool((s.rows < facts["rows"]).all())
            and bool((s.next_positions >= 0).all())
            and facts.get("late") in ("error", "drop")
            and type(facts.get("totals")) is list
        )
    if not sound:
        raise DataError("not a snapshot of a stream: what it says of itself cannot be")
    return facts
