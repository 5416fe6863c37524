"""The engine of a stream: takes in events in the order of time, and gives each match once, when it is decided.

It keeps the events that a later match can still see, and nothing else: no partial matches. Every search starts from
the events that fix the moment of a release (release.py), so that what was joined is never joined again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from quercus.backends.base import Limits
from quercus.backends.local import kept_views
from quercus.backends.local.buffers import buffer_specs, variables_of
from quercus.backends.local.choose import can_switch, planned_orders
from quercus.backends.local.conform import conforms, wanted_columns
from quercus.backends.local.events import Events
from quercus.backends.local.expressions import true_mask
from quercus.backends.local.fill import column, numbers, valid
from quercus.backends.local.history import History, Piece, row_numbers, taken
from quercus.backends.local.inputs import as_table
from quercus.backends.local.labels import Keys, Labels
from quercus.backends.local.numbered import Chunks, Numbered
from quercus.backends.local.orders import Orders
from quercus.backends.local.outputs import Answer, Bound
from quercus.backends.local.program import Compiler
from quercus.backends.local.release import all_variants, looks_back
from quercus.backends.local.run import Part, check, combine, repeats
from quercus.backends.local.running import too_many_partial
from quercus.backends.local.running_stream import Group, live_totals
from quercus.backends.local.specs import NEVER, BufferSpec, ColumnData, FlatSpec, Index, Program
from quercus.backends.local.values import combined, raw
from quercus.errors import LimitExceeded
from quercus.ir.flat import flatten
from quercus.kernels import match, running
from quercus.kernels.route import Router
from quercus.plan import Plan
from quercus.result import Matches

BEGIN, END = -(2**63), 2**63 - 1  # before every time, after every time
_SLACK = match.SLACK  # events that may be out of the window before a sweep
_STREAM = "stream"  # what a plan keeps for its next streams
_STRINGS = 16_384  # strings that may be known beyond those of kept events
_NONE = np.empty(0, np.int64)

Given = dict[tuple[object, ...], int]
Moment = tuple[int, int]  # the clock, and the number of events


class Found:
    """What a step decided: matches as places in the stream, and the pieces that they lie in."""

    __slots__ = ("bound", "engine", "parts", "pieces")

    def __init__(self, parts: list[Part], engine: Engine, pieces: tuple[Piece, ...]) -> None:
        self.parts, self.engine, self.pieces = parts, engine, pieces
        self.bound: list[Bound] | None = None

    def __len__(self) -> int:
        return len(self.places()[0])

    def places(self) -> list[Bound]:
        """What each variable is bound to, in the order of the answer."""
        if self.bound is None:
            e = self.engine
            self.bound = combine(
                e.plan.query, self.parts, None, distinct=e.distinct, ordered=e.ordered, single=not e.keyed
            )
            self.parts = []
        return self.bound

    def numbered(self) -> tuple[Bound, ...]:
        """What each variable is bound to, as rows that were pushed."""
        bound = tuple(self.places())
        if all(p.straight for p in self.pieces):
            return bound  # nothing was out of order or left out: places are rows
        used = [b.events() for b in bound if len(b)]
        places = np.unique(np.concatenate(used)) if used else _NONE
        numbers = row_numbers(self.pieces, places)
        return tuple(b.found_in(places).numbered(numbers) for b in bound)

    def answer(self) -> Answer:
        """The matches with their events."""
        bound, plan = self.places(), self.engine.plan
        used = [b.events() for b in bound if len(b)]
        places = np.unique(np.concatenate(used)) if used else _NONE
        table, numbers = (
            taken(self.pieces, places, self.engine.empty.column_names) if len(places) else (self.engine.empty, _NONE)
        )
        return Answer(table, plan.schema, plan.query, {b.var: b.found_in(places) for b in bound}, numbers)


@frozen(eq=False)
class Prepared:
    """A step that is not yet for good: what it found, and all that it takes to go on from there, or back."""

    events: pa.Table | pa.RecordBatch | None
    count: int
    rows: Index | int
    clock: int
    groups: list[Group] | None
    found: Found


@frozen(eq=False)
class Totalled:
    """What a step added to the totals of AGG, without matches; and what they could be listed from."""

    groups: list[Group]
    before: tuple[Piece, ...]
    piece: Piece | None
    moment: Moment
    numbered: Chunks = ()  # positions before, where each key has its own
    positions: Index | None = None  # of the piece


class Engine:
    """A plan over a stream. With `listed`, AGG goes over listed matches always."""

    def __init__(
        self,
        plan: Plan,
        columns: frozenset[str] | None = None,
        orders: Orders | None = None,
        *,
        listed: bool = False,
    ) -> None:
        """`orders`: in which the searches bind components; None: as the plan says."""
        tree = plan.tree
        self.plan, self.schema, self.partition_by = plan, plan.schema, tree.partition_by
        self.columns_kept = [plan.schema.time, plan.schema.type, *wanted_columns(plan.schema, columns)]
        self.course = match.Course()
        if orders is not None:
            self._compiled(plan, orders)
        elif _STREAM in plan.made:
            self.__dict__.update(plan.made[_STREAM])
        else:
            plan.made[_STREAM] = self._compiled(plan, None)
        self.matcher = match.StreamMatcher(self.program, self.searches, self.keyed, self.own_positions)
        self.keys, self.labels, self.history = Keys(), Labels(self.program), History(self.columns_kept)
        self.labels.begin(self.matcher)
        self.given: Given = {}  # matches that another alternative may give again, until when
        self.waiting = 0  # bytes of events that wait for their turn
        self._schema: pa.Schema | None = None  # of the last record batch
        self._inlet: match.Inlet | None = None
        self._inflow: running.Inflow | None = None
        self._behind: int | None = None  # the first place that only totals have seen
        self._columns = columns
        self.live = None if listed else live_totals(plan, self.specs)
        self.numbered = Numbered()
        self._fed: tuple[Index, Index] | None = None  # places and positions of the batch at hand
        self.check_groups: Callable[[list[Group]], None] = lambda groups: None  # refuses what cannot be added
        self.bytes_of_groups: Callable[[], int] = lambda: 0

    def _compiled(self, plan: Plan, orders: Orders | None) -> dict[str, Any]:
        """What all streams of a plan have in common, and none changes."""
        others, tree = set(self.__dict__), plan.tree
        flats = flatten(tree.root, tree.window)
        self.alternatives = len(flats)
        self.specs = buffer_specs(flats, tree)
        self.names = variables_of(flats, tree)
        self.requests = list(dict.fromkeys(b.accepts for b in self.specs))
        self.keyed = any(b.key is not None for b in self.specs)
        self.count = tree.window.kind == "count"
        compiler = Compiler(tree, plan.schema, self.specs, key_holds=False, trees=False)
        searches: list[tuple[int, int, str, int]] = []
        moments = set()  # when matches may come: the modes, and whether each is asked
        back = False
        self.variants = list(all_variants(flats, count=self.count, strict=plan.schema.ties != "arrival"))
        self.can_switch = can_switch(self.variants)
        self.orders: Orders = planned_orders(plan, self.variants) if orders is None else orders
        for (f, given), order in zip(self.variants, self.orders, strict=True):
            v = evolve(given, order=order, chain=given.chain and not order)
            plain = compiler.flat(f, {}, root=True, variant=evolve(v, chain=False))
            chain = -1
            if v.chain and v.mode in ("last", "delayed") and not v.rivals:
                made = compiler.flat(f, {}, root=True, variant=v)
                chain = made if compiler.program.flats[made].chain is not None else -1
            level = compiler.program.flats[plain].levels[0]
            searches.append((plain, chain, v.mode, compiler.program.slots[level.slot]))
            moments.add((v.mode, v.asks))
            back = back or v.reaches_back or (v.mode == "first" and looks_back(f))
        self.program: Program = compiler.program
        self.program.build_indexes = NEVER  # over buffers that change with every batch
        self.has_views = any(not s.collects for s in self.program.subs)
        self.searches = searches
        own = [self.program.flats[max(plain, chain)] for plain, chain, _, _ in searches]
        self.found: list[FlatSpec] = own
        self.ordered = len(own) == 1 and own[0].natural
        self.in_place = self.ordered and own[0].variables == [v.var for v in plan.query.variables]
        self.own_positions = bool(tree.partition_by) and any(w.count for w in self.program.windows)
        self.columns = [
            [i for i, c in enumerate(self.program.columns) if c.buffer == b] for b in range(len(self.specs))
        ]
        # A match that waits may be asked about events before its start, and so may sets that reach back beyond it.
        self.reach = min(self.program.window_size * (2 if back else 1), END)
        self.distinct = repeats(tree.root)
        self.remembers = self.distinct and moments not in ({("last", False)}, {("first", False)})
        return {name: value for name, value in self.__dict__.items() if name not in others}

    @property
    def clock(self) -> int:
        """The greatest time seen."""
        return self.course.clock

    @property
    def place(self) -> int:
        """The number of events."""
        return self.course.place

    @cached_property
    def empty(self) -> pa.Table:
        """No events."""
        return as_table([], self.schema, self._columns)

    # a batch ----------------------------------------------------------------------------------------------------------

    def step(
        self, events: pa.Table | pa.RecordBatch | None, ts: Index, rows: Index | int, clock: int, limits: Limits
    ) -> Found | Totalled:
        """Take in events in order, if any, move the clock, and give what is decided. An error changes nothing."""
        return self.commit(self.prepare(events, ts, rows, clock, limits))

    def prepare(
        self, events: pa.Table | pa.RecordBatch | None, ts: Index, rows: Index | int, clock: int, limits: Limits
    ) -> Prepared:
        """The first half of a step: events are taken in and searched. `commit` or `revoke` comes next."""
        self._catch_up()
        n = len(ts)
        place = self.place + n
        parts: list[Part] = []
        groups: list[Group] | None = None
        try:
            if n:
                assert events is not None
                self._feed(events, ts, self.place)
            if self.live is not None:
                groups = self.live.totals(self.keys.values if self.keyed else [], clock, place, limits)
                self.check_groups(groups)
            else:
                before = (self.clock, self.place, self.place)
                parts = self._search(before, (clock, END if clock == END else place, place), limits)
            if limits.max_state_bytes is not None and clock != END:
                self._check_state(limits, events, clock, place)
        except BaseException:
            self.revoke()
            raise
        return Prepared(events, n, rows, clock, groups, Found(parts, self, ()))

    def revoke(self) -> None:
        """Take back what was prepared."""
        self._fed = None
        self.matcher.undo()
        if self.live is not None:
            self.live.undo()
            self.live.let_go(self.keys.new)
        self.keys.undo()

    def commit(self, made: Prepared) -> Found | Totalled:
        """The second half of a step: what was prepared is for good, and what no later match can see goes."""
        self.keys.keep()
        if self.live is not None:
            self.live.commit()
        before, pieces, piece, numbered = (
            (self.clock, self.place),
            tuple(self.history.pieces),
            None,
            self.numbered.chunks,
        )
        if made.count:
            piece = Piece(made.events, self.place, None, made.rows, made.clock)
            self.history.add(piece)
        positions = None if self._fed is None else self._fed[1]
        self._number()
        self.course.clock, self.course.place = made.clock, self.place + made.count
        if made.groups is not None:
            self._purge()
            return Totalled(made.groups, pieces, piece, before, numbered, positions)
        found = made.found
        found.pieces = tuple(self.history.pieces)
        if self.remembers:
            found.bound = self._once(found.places())
        self._purge()
        return found

    def inlet(self, schema: pa.Schema) -> match.Inlet | None:
        """What takes in record batches of a schema as they are, if anything can."""
        if self._schema is None or not schema.equals(self._schema):
            feed = self._feed_of(schema)
            self._schema, self._inlet = schema, None if feed is None else self._inlet_of(feed, schema)
        return self._inlet

    def _inlet_of(self, feed: match.Feed, schema: pa.Schema) -> match.Inlet:
        none = Found([], self, ())
        matches = match.Like(Matches.of_stream(self.schema, self.plan.query, none), none)
        bound = [match.Like(Bound(v.var, False, _NONE), _NONE) for v in self.plan.query.variables]
        written = bound if self.in_place else None
        return match.Inlet(feed, self.course, pa.RecordBatch, schema, self.history, self.reach, matches, written)

    def total(self, batch: pa.RecordBatch, check: Callable[[Group], None]) -> Totalled | None:
        """Take in a record batch as it is, where totals can be made of that; None, with nothing taken in, else."""
        schema, live, course = batch.schema, self.live, self.course
        if live is None:
            return None
        if self._schema is None or not schema.equals(self._schema):
            self._schema, self._inflow = schema, None
            if conforms(schema, self.schema, self._columns):
                self._inflow = live.inflow(schema, self.schema)
        if self._inflow is None:
            return None
        counter = live.counters[0].running
        try:
            sums = self._inflow.step(batch, course.place, course.seen)
            if sums is None:
                return None
            parts = live.parts(sums)
            groups = [] if parts is None else [Group(0, (), parts)]
            if groups:
                check(groups[0])
        except BaseException as e:
            counter.undo()
            if isinstance(e, OverflowError):
                raise too_many_partial() from None
            raise
        counter.commit()
        before, pieces = (course.clock, course.place), tuple(self.history.pieces)
        if self._behind is None:
            self._behind = course.place
        piece = Piece(batch, course.place, None, course.rows, self._inflow.last)
        self.history.add(piece)
        course.clock = course.seen = self._inflow.last
        course.place, course.rows = course.place + self._inflow.count, course.rows + self._inflow.count
        if self.count:
            self.history.purge(place=course.place - self.reach)
        else:
            self.history.purge(ts=self._least_ts)
        return Totalled(groups, pieces, piece, before)

    def _catch_up(self) -> None:
        """Give the matcher what went into totals alone."""
        if self._behind is None:
            return
        for p in self.history.pieces:
            places = p.all_places()
            first = int(np.searchsorted(places, self._behind))
            if first < len(places):
                given = p.events if isinstance(p.events, pa.Table) else pa.Table.from_batches([p.events])
                table = given.slice(first)
                ts = raw(combined(table.column(self.schema.time)).view(pa.int64()), np.int64)
                self._feed(table, ts, places[first:], again=True)
        self._behind = None
        self._commit(everywhere=True)

    def refuse(self, status: int, limits: Limits) -> None:
        """Say why a batch was not taken in."""
        check(status, self.found[0], limits)

    def found_by(self, raw: match.Raw) -> Found:
        """What an inlet found."""
        return Found([Part(self.found[0], *raw.take())], self, raw.pieces)

    def _feed_of(self, schema: pa.Schema) -> match.Feed | None:
        """What routes record batches of a schema, if they need no other look."""
        names = [b.accepts[0].encode("utf-8", "surrogatepass") for b in self.specs]
        plain = not self.keyed and not self.program.columns and not any(b.local for b in self.specs)
        single = self.alternatives == 1 and all(len(b.accepts) == 1 for b in self.specs)
        if not (plain and single and not self.remembers and Router.can(names)):
            return None
        if not conforms(schema, self.schema, self._columns):
            return None
        ts, kind = schema.get_field_index(self.schema.time), schema.get_field_index(self.schema.type)
        return match.Feed(self.matcher, names, ts, kind, bool(pa.types.is_large_string(schema.field(kind).type)))

    def switched(self, orders: Orders) -> Engine:
        """The same stream, searched in other orders from now on."""
        other = Engine(self.plan, self._columns, orders, listed=self.live is None)
        other.check_groups, other.bytes_of_groups = self.check_groups, self.bytes_of_groups
        places = self.kept()
        for name in ("clock", "place", "rows", "seen"):
            setattr(other.course, name, getattr(self.course, name))
        other.given, other.waiting = dict(self.given), self.waiting
        if self.own_positions:
            other.restore_keys(self.keys.values, np.array(self.matcher.positions(), np.int64)[: len(self.keys.values)])
        if len(places):
            events, _ = taken(self.history.pieces, places, self.columns_kept)
            ts = raw(combined(events.column(self.schema.time)).view(pa.int64()), np.int64)
            positions = self.positions_of(places, 0) if self.own_positions else None
            other._feed(events, ts, places, positions)
        if other.live is not None:
            other.live.commit()
        other.history.pieces[:] = self.history.pieces
        other.keys.keep()
        other._purge()
        if self.has_views and other.has_views:
            kept_views.restore(other, *kept_views.told(self))
        return other

    def restore(self, events: pa.Table, ts: Index, rows: Index, places: Index, positions: Index) -> None:
        """Events that were kept before, at their places."""
        if len(ts):
            self._feed(events, ts, places, positions if self.own_positions else None)
            if self.live is not None:
                self.live.forget_decided(self.clock, self.place)
                self.live.commit()
            self._number()
            self.history.add(Piece(events, int(places[0]), places, rows, int(ts[-1]), 1))
        self.keys.keep()
        self._purge()

    def _feed(
        self,
        given: pa.Table | pa.RecordBatch,
        ts: Index,
        places: Index | int,
        positions: Index | None = None,
        *,
        again: bool = False,
    ) -> None:
        """Events into buffers and, but `again`, into totals."""
        table = given if isinstance(given, pa.Table) else pa.Table.from_batches([given])
        events = Events(table, self.schema, ts, None)
        routed = dict(zip(self.requests, events.route(self.requests), strict=True))
        segments: Index | None = None
        if self.own_positions:
            everything = np.arange(len(ts))
            segments = self.keys.of([events.values(a, everything) for a in self.partition_by], alone=False)
            positions = self.matcher.number(segments) if positions is None else positions
            if self.live is not None:
                everywhere = np.arange(places, places + len(ts)) if isinstance(places, int) else places
                self._fed = everywhere, positions
        feeds = [self._chosen(b, routed[b.accepts], events, segments) for b in self.specs]
        filled = self._columns_of(feeds, events)
        for number, (at, own) in enumerate(feeds):
            if len(at):
                where = at + places if isinstance(places, int) else places[at]
                columns = [filled[i] for i in self.columns[number]]
                pos = where if positions is None else np.ascontiguousarray(positions[at])
                self.matcher.append(number, np.ascontiguousarray(ts[at]), pos, where, own, columns)
        if self.live is not None and not again and not self.live.take_in(events, feeds, places, positions):
            self.live = None

    def _number(self) -> None:
        """Remember the positions of the batch at hand."""
        if self._fed is not None:
            self.numbered.add(*self._fed)
            self._fed = None

    def _chosen(self, b: BufferSpec, at: Index, events: Events, segments: Index | None) -> tuple[Index, Index]:
        """The events of a buffer that pass its conditions, and their segments."""
        for c in b.local:
            if len(at):
                at = at[true_mask(c, lambda k, at=at: events.values(k.attr, at), len(at))]  # type: ignore[misc]
        if b.key is None or not len(at):
            return at, _NONE
        if segments is not None:
            own = segments[at]
        else:
            own = self.keys.of([events.values(a, at) for a in b.key], alone=not self.partition_by)
        if self.partition_by and (own < 0).any():
            at, own = at[own >= 0], own[own >= 0]
        return at, own

    def _columns_of(self, feeds: list[tuple[Index, Index]], events: Events) -> dict[int, ColumnData]:
        """The columns of the buffers that get any event."""
        values = {
            i: column(c, events, feeds[c.buffer][0])
            for i, c in enumerate(self.program.columns)
            if len(feeds[c.buffer][0])
        }
        texts = [i for i in self.labels.columns if i in values]
        labels = dict(zip(texts, self.labels.of([values[i].data for i in texts], self.matcher), strict=True))
        return {
            i: (labels[i], valid(v)) if i in labels else numbers(self.program.columns[i], v) for i, v in values.items()
        }

    def _search(self, before: match.Moment, now: match.Moment, limits: Limits) -> list[Part]:
        left = limits.max_matches
        end = None if limits.max_seconds is None else time.monotonic() + limits.max_seconds
        parts: list[Part] = []
        for number, spec in enumerate(self.found):
            nanoseconds = -1 if end is None else max(0, int((end - time.monotonic()) * 1e9))
            status, columns, sets = self.matcher.run(number, before, now, left, nanoseconds)
            check(status, spec, limits)
            parts.append(Part(spec, columns, sets))
            left -= parts[-1].count
        return parts

    def _once(self, bound: list[Bound]) -> list[Bound]:
        """Without the matches that were given before."""
        count = len(bound[0]) if bound else 0
        keep: list[int] = []
        for i in range(count):
            key = tuple(b.one(i) for b in bound)
            if key not in self.given:
                keep.append(i)
                self.given[key] = max(e for k in key if k is not None for e in (k if isinstance(k, tuple) else (k,)))
        return bound if len(keep) == count else [b.take(np.array(keep, np.int64)) for b in bound]

    # state ------------------------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Let go of events that no buffer holds, where they are many."""
        self._commit(everywhere=True)
        if len(self.history) > 4 * self.course.live + 16 * _SLACK:
            self._keep(self.kept())

    def _purge(self) -> None:
        """Let go of what no later match can see; of keys that had no event, now and then."""
        if self.clock == END:
            return
        sweep = self.matcher.events > 2 * self.course.live + _SLACK
        self._commit(everywhere=sweep)
        if not self.count:
            self.history.purge(ts=self._least_ts)
        elif not self.own_positions:
            self.history.purge(place=self.place - self.reach)
        if sweep:
            if len(self.labels) > 2 * self.course.live + _STRINGS:
                self.labels.forget(self.matcher)
            if len(self.history) > 4 * self.course.live + 16 * _SLACK or (self.own_positions and self.count):
                self._keep(self.kept())
            if self.given and self.history.pieces:
                first = self.history.pieces[0].first
                self.given = {k: last for k, last in self.given.items() if last >= first}

    def _keep(self, places: Index) -> None:
        self.history.keep(places)
        if self.numbered.chunks:
            self.numbered.keep(places)

    def _commit(self, *, everywhere: bool) -> None:
        least_pos = self.reach if self.own_positions else self.place - self.reach
        freed = self.matcher.commit(self._least_ts, least_pos, everywhere)
        self.keys.let_go(freed)
        if self.live is not None and everywhere:
            self.live.let_go(freed)
            if not self.own_positions:
                self.live.sweep(least_pos if self.count else self._least_ts)
        if everywhere:
            self.course.live = self.matcher.events

    @property
    def _least_ts(self) -> int:
        return max(BEGIN, self.clock - self.reach)

    def restore_keys(self, keys: list[Any], next_positions: Index) -> None:
        """The keys of a snapshot, in the order of their segments."""
        for k in keys:
            value = tuple(k) if isinstance(k, list) else k
            self.keys.segments[value] = len(self.keys.values)
            self.keys.values.append(value)
        if len(keys):
            self.matcher.set_positions(next_positions)

    def begin_positions(self, events: pa.Table | pa.RecordBatch, positions: Index) -> None:
        """Let the next batch have these positions in its keys' own streams."""
        table = events if isinstance(events, pa.Table) else pa.Table.from_batches([events])
        given, everything = Events(table, self.schema, positions, None), np.arange(len(positions))
        segments = self.keys.of([given.values(a, everything) for a in self.partition_by], alone=False)
        self.keys.keep()
        first = np.full(len(self.keys.values), END)
        np.minimum.at(first, segments[segments >= 0], positions[segments >= 0])
        self.matcher.set_positions(np.where(first == END, 0, first))

    def positions_of(self, places: Index, more: int) -> Index:
        """The positions of kept events in their keys' own streams; -1 for others, and for `more` at the end."""
        found = np.full(len(places) + more, -1, np.int64)
        if self.own_positions:
            for b in range(len(self.specs)):
                found[np.searchsorted(places, self.matcher.kept(b))] = self.matcher.kept_positions(b)
        return found

    def kept(self) -> Index:
        """The places that a buffer still holds, ascending."""
        self._catch_up()
        self._commit(everywhere=True)
        held = [self.matcher.kept(b) for b in range(len(self.specs))]
        return np.unique(np.concatenate(held)) if held else _NONE

    def _check_state(self, limits: Limits, added: pa.Table | pa.RecordBatch | None, clock: int, place: int) -> None:
        """What would be kept: events with their columns in buffers, and the rows that they came with."""
        assert limits.max_state_bytes is not None
        least_ts, least_pos = max(BEGIN, clock - self.reach), self.reach if self.own_positions else place - self.reach
        counts = self.matcher.live(least_ts, least_pos)
        state = sum(n * (24 + 9 * len(c)) for n, c in zip(counts, self.columns, strict=True))
        state += sum(p.events.nbytes for p in self.history.pieces if self.count or p.last_ts >= least_ts)
        state += (0 if self.live is None else self.live.bytes) + self.bytes_of_groups()
        state += self.waiting + self.matcher.view_bytes + (0 if added is None else added.nbytes)
        if state <= limits.max_state_bytes:
            return
        held = ""
        if len(counts):
            most = max(range(len(counts)), key=lambda b: counts[b])
            names = ", ".join(self.names[self.specs[most]])
            held = f"; the buffer of ({names}) holds most, {counts[most]:,} events"
        raise LimitExceeded(
            f"the stream would keep {state:,} bytes, more than {limits.max_state_bytes:,}{held}: tighten WITHIN, "
            "filter the events, or raise Limits(max_state_bytes=)",
            limit="max_state_bytes",
            value=limits.max_state_bytes,
        )
