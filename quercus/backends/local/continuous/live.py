"""The parts of a continuous query that goes on: inboxes, windows that remember, patterns, queries.

A stream is known up to its *clock*: no tuple before that time is to come. A query looks at the times before the clocks
of all its streams, so what it gives is never taken back. It keeps the tuples that are still in a window, or were at
the last time it looked at; at each step they stand for all that was before. So a step is one statement over what is
kept and what is new, of which the rows in between the old clock and the new one count.

What a part holds does not change in place: a `memento` is what it held before a step, and `revert` goes back to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quercus.backends.base import Limits
from quercus.backends.local.continuous.arrivals import BEGIN, empty, in_order
from quercus.backends.local.continuous.journal import Journal
from quercus.backends.local.continuous.relations import NEVER, Relation, Times, of_ends, of_windows, relation, until
from quercus.backends.local.continuous.run import as_tuples, by_name, columns_of, evaluated, output_schema
from quercus.backends.local.continuous.statement import Statement, statement
from quercus.backends.local.events import Events, load
from quercus.backends.local.inputs import concatenated
from quercus.backends.local.windows import Closed, WindowStreams
from quercus.errors import QueryError
from quercus.ir import window as w
from quercus.schema import Schema

if TYPE_CHECKING:
    from quercus.plan import Plan
    from quercus.result import Matches


class Inbox:
    """The tuples of a stream that wait for their turn."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.tables: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        if len(table):
            self.tables = [*self.tables, table]

    def release(self, clock: int) -> Events:
        """Those before a time, in order; the others go on waiting."""
        events = load(self.whole(), self.schema)
        n = int(np.searchsorted(events.ts, clock))
        table = in_order(events)
        self.tables = [table.slice(n)] if n < len(table) else []
        return Events(table.slice(0, n), self.schema, events.ts[:n], None)

    def whole(self) -> pa.Table:
        if not self.tables:
            return empty(self.schema)
        return concatenated(self.tables)


class Sliding:
    """A window that slides: its tuples, and those that wait for their turn."""

    def __init__(self, source: w.Source, schema: Schema) -> None:
        self.source, self.schema = source, schema
        self.inbox = Inbox(schema)
        self.tuples = empty(schema)

    def step(self, clock: int) -> Relation:
        new = self.inbox.release(clock)
        self.tuples = concatenated([self.tuples, new.table]) if len(self.tuples) else new.table
        return relation(self.source, self._events())

    def _events(self) -> Events:
        return load(self.tuples, self.schema)

    def forget(self, clock: int) -> None:
        gone = until(self.source.window, self._events()) < clock
        if gone.any():
            self.tuples = self.tuples.filter(pa.array(~gone)).combine_chunks()

    def memento(self) -> Any:
        return self.inbox.tables, self.tuples

    def revert(self, memento: Any) -> None:
        self.inbox.tables, self.tuples = memento

    def state(self) -> list[pa.Table]:
        return [self.inbox.whole(), self.tuples]

    def restore(self, state: Sequence[pa.Table]) -> None:
        inbox, tuples = state
        self.inbox.tables = [inbox]
        self.tuples = load(tuples, self.schema).table


class Patterned:
    """A pattern window: what closed and was not looked at yet, or was last. What is open is in its `Watch`."""

    def __init__(self, select: w.Select, source: w.Source, schema: Schema, counted: frozenset[str]) -> None:
        self.select, self.source, self.schema, self.counted = select, source, schema, counted
        assert isinstance(source.window, w.PatternWindow)
        self.window = source.window
        self.next = 0  # the number of the next window
        self.kept = self._relation(_nothing(schema))

    @property
    def bare(self) -> bool:
        """Whether nothing is asked of its windows but their first tuples and their last ones."""
        return self.select.is_of_ends and not self.counted

    def take(self, closed: Closed) -> None:
        """Windows that closed after all that closed before."""
        if not len(closed):
            return
        found = self._relation(closed)
        assert self.kept.windows is not None
        assert found.windows is not None
        self.kept = Relation(
            _joined(self.kept.tuples, found.tuples), pa.concat_tables([self.kept.windows, found.windows])
        )

    def step(self, clock: int) -> Relation:
        assert self.kept.windows is not None
        return Relation(
            self.kept.tuples.filter(pc.less(self.kept.tuples["f"], clock)),
            self.kept.windows.filter(pc.less(self.kept.windows["f"], clock)),
        )

    def _relation(self, closed: Closed) -> Relation:
        events = load(closed.table, self.schema)
        own = _OfTable(closed)
        if self.select.is_of_ends:
            found = of_ends(self.select, events, own, self.counted, self.next)
        else:
            found = of_windows(self.source, events, own, self.counted, self.next)
        self.next += len(closed.close)
        return found

    def forget(self, clock: int) -> None:
        assert self.kept.windows is not None
        tuples = self.kept.tuples.filter(pc.greater_equal(self.kept.tuples["u"], clock))
        windows = self.kept.windows.filter(pc.greater_equal(self.kept.windows["f"], clock - 1))
        self.kept = Relation(tuples.combine_chunks(), windows.combine_chunks())

    def memento(self) -> Any:
        return self.kept, self.next

    def revert(self, memento: Any) -> None:
        self.kept, self.next = memento

    def state(self) -> list[pa.Table]:
        assert self.kept.windows is not None
        return [self.kept.tuples, self.kept.windows, pa.table({"next": [self.next]})]

    def restore(self, state: Sequence[pa.Table]) -> None:
        tuples, windows, number = state
        tuples = tuples.cast(self.kept.tuples.schema)
        self.kept, self.next = Relation(tuples, windows), number["next"][0].as_py()


def _nothing(schema: Schema) -> Closed:
    none = np.empty(0, np.int64)
    return Closed(none, none, empty(schema), lambda at: at, lambda: none, lambda: none, lambda: none)


class Watch:
    """All pattern windows over one stream: one pass over its tuples, which are kept once, also for several queries.

    Tuples are looked at when they come, before the clocks of queries reach them.
    """

    def __init__(self, schema: Schema, readers: Sequence[Patterned], limits: Limits) -> None:
        self.schema, self.readers, self.limits = schema, readers, limits
        windows = list(dict.fromkeys(r.window for r in readers))
        self.numbers = [windows.index(r.window) for r in readers]
        bare = [all(r.bare for r in readers if r.window == window) for window in windows]
        self.stream = WindowStreams(windows, schema, limits, bare)
        self.pushes = 0

    def push(self, events: Events) -> None:
        if len(events):
            found = self.stream.push_all(events)
            self.pushes += 1
            for reader, number in zip(self.readers, self.numbers, strict=True):
                reader.take(found[number])

    def memento(self) -> int:
        return self.pushes

    def revert(self, memento: int) -> None:
        while self.pushes > memento:
            self.stream.undo()
            self.pushes -= 1


class _OfTable:
    """Closed windows by the rows of their own table."""

    def __init__(self, closed: Closed) -> None:
        self.close, self.first = closed.rows_at(closed.close), closed.rows_at(closed.first)
        self.closed = closed

    @property
    def offsets(self) -> Times:
        return self.closed.offsets

    @property
    def tuples(self) -> Times:
        return self.closed.rows_at(self.closed.tuples)

    @property
    def iter(self) -> Times:
        return self.closed.iter

    @property
    def num(self) -> Times:
        return self.closed.num


def _joined(one: pa.Table, other: pa.Table) -> pa.Table:
    """Tuples one after the other, numbered anew."""
    both = concatenated([one, other])
    name = both.column_names[0]
    return both.set_column(0, name, pa.array(np.arange(len(both), dtype=np.int64)))


class Pattern:
    """The matches of a pattern over streams, as a stream."""

    def __init__(
        self, stream: w.Matched, plan: Plan, schemas: Mapping[w.Stream, Schema], clock: Schema, limits: Limits
    ) -> None:
        self.stream, self.plan, self.clock_schema, self.limits = stream, plan, clock, limits
        self.inboxes = {one: Inbox(schemas[one]) for one in stream.streams}
        self.live = Journal(plan, limits)
        self.hold = _hold(plan)
        self.schema = output_schema(columns_of(plan), clock)
        self.waiting = pa.table({"end": pa.array([], pa.int64())})
        self.clock = BEGIN

    def step(self, clock: int) -> tuple[pa.Table, int]:
        """With its streams known up to a time: the matches that are new, and the time up to which all are known."""
        found: list[Matches] = []
        if clock > self.clock:
            released = {one: inbox.release(clock) for one, inbox in self.inboxes.items()}
            if any(len(events) for events in released.values()):
                found.append(self.live.push(self._events(released)))
            found.append(self.live.advance(clock) if clock < NEVER else self.live.close())
            self.clock = clock
        for one in found:
            if len(one):
                new = self._keyed(one)
                self.waiting = pa.concat_tables([self.waiting, new]) if len(self.waiting) else new
        known = clock if clock == NEVER or self.hold == 0 else max(BEGIN, clock - self.hold)
        return self._released(known), known

    def memento(self) -> Any:
        return [inbox.tables for inbox in self.inboxes.values()], self.live.memento(), self.waiting, self.clock

    def revert(self, memento: Any) -> None:
        tables, live, self.waiting, self.clock = memento
        for inbox, own in zip(self.inboxes.values(), tables, strict=True):
            inbox.tables = own
        self.live.revert(live)

    def _events(self, released: Mapping[w.Given | w.Named, Events]) -> Any:
        if self.stream.typed:
            return next(iter(released.values())).table
        return {one.name: by_name(events, self.plan.schema) for one, events in released.items()}

    def _keyed(self, found: Matches) -> pa.Table:
        """Matches with what a run orders them by: end, start, bound events."""
        ends = [b.ends_of() for b in found.bound]
        last = np.max([e for _, e in ends], axis=0)
        first = np.min([np.where(s < 0, NEVER, s) for s, _ in ends], axis=0)
        keys = {"end": last, "start": first, **{f"k{i}": s for i, (s, _) in enumerate(ends)}}
        tuples = as_tuples(found, self.plan, self.clock_schema)
        for name, key in keys.items():
            tuples = tuples.append_column(f"__{name}", pa.array(key, pa.int64()))
        return tuples

    def _released(self, known: int) -> pa.Table:
        if not len(self.waiting):
            return empty(self.schema)
        names = [n for n in self.waiting.column_names if n.startswith("__")]
        order = np.lexsort([self.waiting[n].to_numpy() for n in reversed(names)])
        table = self.waiting.take(pa.array(order))
        n = int((np.asarray(table["ts"].combine_chunks().view(pa.int64())) < known).sum())
        self.waiting = table.slice(n)
        return table.slice(0, n).drop_columns(names)

    def state(self) -> list[pa.Table | bytes]:
        return [self.live.snapshot(), self.waiting, *(inbox.whole() for inbox in self.inboxes.values())]

    def restore(self, clock: int, state: Sequence[pa.Table | bytes]) -> None:
        live, waiting, *inboxes = state
        assert isinstance(live, bytes)
        self.live = Journal(self.plan, self.limits, live)
        assert isinstance(waiting, pa.Table)
        self.waiting, self.clock = waiting, clock
        for inbox, table in zip(self.inboxes.values(), inboxes, strict=True):
            inbox.tables = [table]


def _hold(plan: Plan) -> int:
    """How much later than its last event a match can be decided."""
    waits = [v for _, v in plan.stream()._engine.variants if v.mode == "first"]
    if not waits:
        return 0
    if plan.query.window.kind == "count":
        raise QueryError(
            "E703",
            "a pattern in FROM whose matches wait for a number of events cannot be watched live",
            hint="give it a window of time, or run the query over whole streams",
        )
    return plan.query.window.size


class Standing:
    """A query over its windows."""

    def __init__(
        self,
        query: w.Query,
        schemas: Mapping[w.Stream, Schema],
        clock: Schema,
        limits: Limits,
    ) -> None:
        self.query, self.clock_schema, self.limits = query, clock, limits
        self.written: Statement = statement(query)
        self.streams: list[w.Stream] = []  # of its windows, one after the other
        self.windows: list[list[Sliding | Patterned]] = []
        for i, select in enumerate(w.selects(query.relation)):
            windows: list[Sliding | Patterned] = []
            for j, source in enumerate(select.sources):
                schema = schemas[source.stream]
                self.streams.append(source.stream)
                counted = self.written.counted.get(f"k{i}_{j}", frozenset())
                if isinstance(source.window, w.PatternWindow):
                    windows.append(Patterned(select, source, schema, counted))
                else:
                    windows.append(Sliding(source, schema))
            self.windows.append(windows)
        self.clock = BEGIN
        self.started = False  # whether there was an instant

    def step(self, clock: int) -> pa.Table:
        """The rows from its clock on to another one, up to which all its streams are known."""
        before, self.clock = self.clock, clock
        relations = [[window.step(clock) for window in windows] for windows in self.windows]
        every = np.unique(np.concatenate([r.instants() for select in relations for r in select]))
        instants = every[(every >= before) & (every < clock)]
        found = None
        if len(instants):
            given = np.concatenate([[before - 1], instants]) if self.started else instants
            rows = evaluated(self.query, self.written, relations, given, self.clock_schema, self.limits, 1)
            ts = np.asarray(rows["ts"].combine_chunks().view(pa.int64()))
            found = rows.filter(pa.array((ts >= before) & (ts < clock)))
            self.started = True
        for window in self.every():
            window.forget(clock)
        return empty(output_schema(self.query.columns, self.clock_schema)) if found is None else found

    def every(self) -> Iterator[Sliding | Patterned]:
        """Its windows, in the order of `streams`."""
        for windows in self.windows:
            yield from windows

    def memento(self) -> Any:
        return self.clock, self.started, [window.memento() for window in self.every()]

    def revert(self, memento: Any) -> None:
        self.clock, self.started, windows = memento
        for window, own in zip(self.every(), windows, strict=True):
            window.revert(own)

    def state(self) -> list[pa.Table | bytes]:
        return [table for window in self.every() for table in window.state()]

    def restore(self, clock: int, started: bool, state: list[pa.Table | bytes]) -> None:
        self.clock, self.started = clock, started
        left = iter(state)
        for window in self.every():
            own = [next(left) for _ in range(2 if isinstance(window, Sliding) else 3)]
            assert all(isinstance(table, pa.Table) for table in own)
            window.restore(own)
