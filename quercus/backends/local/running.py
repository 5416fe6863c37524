"""AGG without listing matches: each alternative as an automaton over its events, group by group."""

from __future__ import annotations

import math
import time
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from quercus.backends.base import Limits
from quercus.backends.local.aggregate import aggregated, group_codes
from quercus.backends.local.automaton import BEFORE
from quercus.backends.local.buffers import BufferSource, buffer_specs, routed_to, segments, spec_of
from quercus.backends.local.events import Events
from quercus.backends.local.first_matches import in_order
from quercus.backends.local.outputs import Answer
from quercus.backends.local.ranks import ranked
from quercus.backends.local.specs import BufferData, BufferSpec
from quercus.backends.local.symbols import Symbols, leaves
from quercus.backends.local.totals import Key, Totals, nothing
from quercus.backends.local.trace import Trace
from quercus.backends.local.values import Values
from quercus.errors import LimitExceeded
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import tree as t
from quercus.ir.flat import Flat, flatten
from quercus.ir.running import Countable, Grouped, countable, grouped
from quercus.kernels import running
from quercus.plan import Plan

Index = NDArray[np.int64]
_NONE = np.empty(0, np.int64)
_BOTTOM, _TOP = -(2**63), 2**63 - 1
_GROUP = 64  # bytes of one total of a group, about
_LEAST, _LISTED, _PASS, _STEP = 0.05, 60e-9, 800e-6, 40e-9  # seconds: at least; a match, a pass, an event in it


@frozen(eq=False)
class Entries:
    """Events of an alternative in order (backwards, where it is read from its end), each once."""

    mask: Index  # who holds it: a bit for each role's buffer
    mark: NDArray[np.uint8]
    at: Index  # time or position in the window; negative backwards
    row: Index  # the position in the stream
    window: int
    symbol: NDArray[np.uint8]
    segment: Index  # counted from 1, of those that hold any event; empty, where nobody asks
    origin: Index  # the place of each among all entries of the alternative; empty: its own
    group: NDArray[np.int32] | None = None
    reach: Index | None = None  # of each, the first that is in a window with it; None: as `at` and `window` say

    def __len__(self) -> int:
        return len(self.mask)

    def some(self, kept: Index, mask: Index, symbol: NDArray[np.uint8]) -> Entries:
        """Some of the events, by their places, with other roles."""
        mark = _marks(self.mark, kept)
        segment = self.segment[kept] if len(self.segment) else self.segment
        origin = self.origin[kept] if len(self.origin) else kept
        return Entries(mask, mark, self.at[kept], self.row[kept], self.window, symbol, segment, origin)

    def place(self, i: int) -> int:
        """Where an event stands among all entries."""
        return int(self.origin[i]) if len(self.origin) else i


@frozen(eq=False)
class Found:
    """Totals of one group in one alternative: where its first match ends, events that show its values (-1: absent), the
    parts of each AGG; and what its first match is looked for by.
    """

    end: int
    shown: tuple[int, ...]
    parts: list[Any]
    alternative: Alternative
    place: int  # of the entry where the first match was totalled
    codes: tuple[int, ...] = ()  # of the components that are looked at apart


@define
class Told:
    """What a run tells of itself."""

    trace: Trace
    specs: list[BufferSpec] = field(factory=list)
    buffers: list[BufferData] = field(factory=list)
    alternatives: int = 0
    matches: int = 0
    passes: int = 0
    steps: int = 0
    states: int = 0

    def add(self, a: Alternative) -> None:
        self.alternatives, self.states = self.alternatives + 1, self.states + a.states.count
        self.matches, self.passes, self.steps = self.matches + a.matches, self.passes + a.passes, self.steps + a.steps


def run_totals(plan: Plan, stream: Events, limits: Limits, told: Told | None = None) -> pa.Table:
    """The aggregates of a plan whose strategy is `running`."""
    query = plan.query
    totals = Totals(query, plan.schema)
    found: list[Found] = []
    tree = plan.tree
    flats = flatten(tree.root, tree.window)
    if flats:
        wanted = buffer_specs(flats, tree)
        routed = routed_to(wanted, stream)
        if told is not None:
            told.trace.lap("route")
        source = BufferSource(stream, tree, wanted, routed)
        starts = segments(source.data)
        if told is not None:
            told.specs, told.buffers = wanted, source.data
            told.trace.lap("buffers")
        watch = running.Watch(None if limits.max_seconds is None else time.monotonic() + limits.max_seconds)
        for f in flats:
            numbers = [wanted.index(spec_of(b, tree)) for b in leaves(f)]
            alternative = Alternative(plan, stream, f, source.data, numbers, starts, totals.flat, watch, limits)
            found += alternative.totals()
            if told is not None:
                told.add(alternative)
    if query.group_by:
        found = in_order(found)
    empty = Answer(stream.table, plan.schema, query, nothing(query))
    first: dict[int, int] = {}  # of each group: the first that was found of it
    for number, (code, g) in enumerate(zip(_codes(found, plan, stream), found, strict=True)):
        first.setdefault(code, number)
        totals.merge((code,) if query.group_by else (), g.parts)
    rows = np.array([found[i].shown for i in first.values()], np.int64).reshape(len(first), len(query.group_by))
    shown = [empty.arrow_at(c.attr, _input_rows(stream, rows[:, i])) for i, c in enumerate(query.group_by)]
    keys: list[Key] = [(code,) for code in first]
    return totals.table(keys if query.group_by else [()], shown, aggregated(empty).schema)


def _codes(found: list[Found], plan: Plan, stream: Events) -> list[int]:
    """Numbers that are equal where groups of several alternatives are one."""
    columns = plan.query.group_by
    if len({id(g.alternative) for g in found}) < 2 or not columns:
        return list(range(len(found))) if columns else [0] * len(found)
    rows = np.array([g.shown for g in found], np.int64)
    values = []
    for i, c in enumerate(columns):
        v, there = stream.values(c.attr, np.maximum(rows[:, i], 0)), rows[:, i] >= 0
        values.append(Values(v.kind, v.data, there if v.valid is None else there & v.valid))
    return [int(code) for code in group_codes(values, len(found))]


def _input_rows(stream: Events, rows: Index) -> Index:
    return np.where(rows < 0, -1, stream.input_rows(np.maximum(rows, 0)))


def too_many_partial() -> LimitExceeded:
    return LimitExceeded(
        "a window has more than 10**38 partial matches: tighten WITHIN", limit="decimal digits", value=38
    )


def not_in_time(limits: Limits) -> LimitExceeded:
    return LimitExceeded(
        f"not done after {limits.max_seconds} s: raise Limits(max_seconds=)",
        limit="max_seconds",
        value=limits.max_seconds,
    )


class Costly(Exception):
    """There are so many groups that matches are sooner listed."""


class Alternative(Symbols):
    """One alternative over a stream."""

    def __init__(
        self,
        plan: Plan,
        stream: Events,
        f: Flat,
        buffers: list[BufferData],
        numbers: list[int],
        starts: Index,
        parts: list[p.Aggregate],
        watch: running.Watch,
        limits: Limits,
    ) -> None:
        self.plan, self.stream, self.parts = plan, stream, parts
        self.watch, self.limits = watch, limits
        self.matches = self.passes = self.steps = self.groups = 0
        self.budget = math.inf  # seconds that passes for single values may take
        self.buffers, self.starts = buffers, starts
        tree = plan.tree
        made = countable(f, tree)
        assert isinstance(made, Countable)
        how = grouped(made, tree, arrival=plan.schema.ties == "arrival")
        assert isinstance(how, Grouped)
        self.how, self.columns = how, plan.query.group_by
        self.present = f.variables
        super().__init__(how.read(made), f, numbers, {g.var for g in how.apart})
        self.entries = self._entries()

    # events

    def _entries(self) -> Entries:
        schema, tree = self.plan.schema, self.plan.tree
        alone = len(self.shape.blocks) == 1 and not any(self.shape.gaps)
        counted = tree.window.kind == "count"
        given = []
        for number in self.merged:
            b = self.buffers[number]
            given.append((b.row, b.pos if counted else b.ts, b.ts))
        starts = np.ascontiguousarray(self.starts[self.merged])
        mask, mark, at, row = running.merge(given, starts, schema.ties != "arrival" and not alone)
        if self.how.backwards:
            mask, at, row = mask[::-1].copy(), -at[::-1], row[::-1].copy()
            mark = backwards(mark)
        window = tree.window.size - 1 if counted else tree.window.size
        segment = np.cumsum(mark == 3) if self.columns or self.states.far else _NONE
        return Entries(mask, mark, at, row, min(window, 2**64 - 1), self.symbols_of(mask), segment, _NONE)

    def with_kills(self, e: Entries) -> Entries:
        """With what is negated after the end of matches: each such event kills, a window before it, all that has not
        begun, for matches that end before it.
        """
        if not self.states.far:
            return e
        bits = 0
        for role in self.states.far:
            bits |= 1 << self.bits[role]
        later = np.flatnonzero(e.mask & bits)
        begins = earlier(e.at, e.window)
        count = np.searchsorted(later, np.arange(len(e)), side="right")  # of those that are not later than an event
        if len(e) and self.plan.schema.ties != "arrival":
            group = np.cumsum(e.mark & 1) - 1
            count = count[np.r_[np.flatnonzero(e.mark & 1)[1:] - 1, len(e) - 1][group]]
        n, m = len(e), len(later)
        order = np.lexsort(
            (np.r_[np.ones(n), np.zeros(m)], np.r_[e.at, begins[later]], np.r_[e.segment, e.segment[later]])
        )
        source = np.r_[np.arange(n), later][order]
        kills = order >= n
        mask = np.where(kills, 1 << self.killer, e.mask[source])
        mark = np.where(kills, 1, e.mark[source] & 1).astype(np.uint8)
        segment = e.segment[source]
        if len(mark):
            mark[np.r_[True, segment[1:] != segment[:-1]]] = 3
        window = reached(e.segment, e.at, begins)
        reach = np.where(kills, 0, window[source] + count[source])
        origin = e.origin if len(e.origin) else np.arange(n)
        return Entries(
            *(mask, mark, np.where(kills, begins[source], e.at[source]), e.row[source], e.window),
            *(self.symbols_of(mask), segment, np.where(kills, -1, origin[source])),
            reach=reach,
        )

    @cached_property
    def whole(self) -> Entries:
        """All entries, and what kills."""
        return self.with_kills(self.entries)

    def place_in_whole(self, place: int) -> int:
        return int(np.flatnonzero(self.whole.origin == place)[0]) if len(self.whole.origin) else place

    @cached_property
    def apart_variables(self) -> list[str]:
        return list(dict.fromkeys(g.var for g in self.how.apart))

    @cached_property
    def apart_roles(self) -> list[int]:
        found = [self.role(var) for var in self.apart_variables]
        return [f[0] for f in found if f is not None]

    @cached_property
    def code_of(self) -> list[Index]:
        from quercus.backends.local.running_apart import codes_of

        return codes_of(self)

    def unbegun(self, state: int) -> bool:
        """Whether nothing is bound yet, and so an event that kills kills it."""
        begin, size, moves = self.states.gaps[0]
        return begin <= state < begin + size and moves[BEFORE][state - begin] < 0

    def rows_of(self, row: int) -> Index:
        return np.array([row], np.int64)

    def places(self, e: Entries, role: int) -> Index:
        """The entries that have a role."""
        return np.flatnonzero(e.mask & (1 << self.bits[role]))

    def ends(self, e: Entries) -> Index:
        """The entries that can end a match."""
        bits = 0
        for role in self.states.ends:
            bits |= 1 << self.bits[role]
        return np.flatnonzero(e.mask & bits)

    # totals

    def totals(self) -> list[Found]:
        try:
            if self.how.apart:
                from quercus.backends.local.running_apart import apart

                self.budget = self._listing()
                return apart(self)
            return self.found(self.entries)
        except OverflowError:
            raise too_many_partial() from None
        except TimeoutError:
            raise not_in_time(self.limits) from None

    def found(self, e: Entries, codes: tuple[int, ...] = (), rows: dict[x.Column, int] | None = None) -> list[Found]:
        """The groups of some entries that have matches. `rows`: events that show what all of them have in common."""
        e = self.with_kills(e)
        a = self.automaton()
        a.watch, before = self.watch, a.steps
        at = self.ends(e) if self.columns else _NONE
        e, shown, count = self._grouped(e, at, rows or {})
        self._check_groups(count)
        self.passes += 1
        counts, first = a.count(e, count)
        if self.how.backwards and self.columns:
            ends, first = self._first_ends(e, a, at, count)
        else:
            ends = e.row[np.maximum(first, 0)].tolist() if len(e) else [0] * count
        where = np.searchsorted(at, first)
        parts = list(zip(*(self._part(part, e, a, counts) for part in self.parts), strict=True))
        self.matches += sum(counts)
        self.steps += a.steps - before
        return [
            Found(ends[g], tuple(int(s[where[g]]) for s in shown), list(parts[g]), self, e.place(int(first[g])), codes)
            for g in range(count)
            if counts[g]
        ]

    def _listing(self) -> float:
        """Seconds that listing all matches would take, about."""
        e, a = self.with_kills(self.entries), self.automaton()
        a.watch = self.watch
        try:
            matches = a.count(e)[0][0]
        except OverflowError:
            return math.inf
        return math.inf if matches > self.limits.max_matches else _LEAST + matches * _LISTED * (1 + len(self.columns))

    def spend(self, events: int) -> None:
        """Book a pass over some events."""
        self.budget -= _PASS + events * _STEP * (1 + len(self.parts))
        if self.budget < 0:
            raise Costly

    def _check_groups(self, more: int) -> None:
        """Refuse more groups than there is room for."""
        self.groups += more if self.columns else 0
        size, most = _GROUP * self.groups * (1 + len(self.parts)), self.limits.max_state_bytes
        if most is not None and size > most:
            raise LimitExceeded(
                f"the totals of {self.groups:,} groups take {size:,} bytes, more than {most:,}: group by less, or "
                "raise Limits(max_state_bytes=)",
                limit="max_state_bytes",
                value=most,
            )

    def _grouped(self, e: Entries, at: Index, rows: dict[x.Column, int]) -> tuple[Entries, list[Index], int]:
        """Numbers the groups of the entries that end matches; gives, for each column, an event that shows the value."""
        if not self.columns:
            return e, [], 1
        shown: list[Index] = []
        told: list[Values] = []  # what tells groups apart
        for g in self.columns:
            if g.var not in self.present or g in rows:
                shown.append(np.full(len(at), rows.get(g, -1)))
                continue
            shown.append(e.row[at] if g in self.how.at_end else self._of_segment(g, e, at))
            told.append(self.stream.values(g.attr, shown[-1]))
        codes = group_codes(told, len(at))
        group = np.zeros(len(e), np.int32)
        group[at] = codes
        return evolve(e, group=group), shown, int(codes.max(initial=0)) + 1

    def _of_segment(self, g: x.Column, e: Entries, at: Index) -> Index:
        """An event of the variable in the segment of each entry; any, where there is none, and so no match."""
        found = self.role(g.var)
        assert found is not None
        number = self.merged[self.bits[found[0]]]
        rows, starts = self.buffers[number].row, self.starts[number]
        if not len(rows):
            return np.zeros(len(at), np.int64)
        there = np.flatnonzero((np.diff(self.starts[self.merged], axis=1) > 0).any(axis=0))
        if self.how.backwards:
            there = there[::-1]
        segment = there[e.segment[at] - 1] if len(at) else at
        return np.asarray(rows[np.minimum(starts[segment], len(rows) - 1)])

    def _first_ends(self, e: Entries, a: running.Automaton, at: Index, count: int) -> tuple[list[int], Index]:
        """Backwards: of each group, the end of its first match, and the entry of the start of that."""
        last = self.role(self.shape.blocks[0].leaves[0].var)
        assert last is not None
        ends = self._each(e, a, last[0], sign=1)[at]
        trailing = self.shape.gaps[0].set
        if trailing is not None:
            role = self.role(trailing.var)
            assert role is not None
            elements = self._each(e, a, role[0], sign=-1)[at]
            there = elements < running.NO_VALUE
            ends = np.where(there & (ends < running.NO_VALUE), np.maximum(ends, np.where(there, -elements, 0)), ends)
        assert e.group is not None
        order = np.lexsort((e.row[at], ends, e.group[at]))
        order = order[ends[order] < running.NO_VALUE]
        groups, begin = np.unique(e.group[at][order], return_index=True)
        found, first = [0] * count, np.zeros(count, np.int64)
        for g, i in zip(groups.tolist(), order[begin].tolist(), strict=True):
            found[g], first[g] = int(ends[i]), at[i]
        return found, first

    def _each(self, e: Entries, a: running.Automaton, role: int, sign: int) -> Index:
        """Of each entry that begins matches, the least row (or the greatest, negative) of what has a role in them."""
        values = np.full(len(e), running.NO_VALUE, np.int64)
        places = self.places(e, role)
        values[places] = sign * e.row[places]
        each = np.full(len(e), running.NONE, np.int64)
        self.passes += 1
        a.least(evolve(e, group=None), 1, role, values, each)
        return each

    # parts of aggregates

    def _part(self, part: p.Aggregate, e: Entries, a: running.Automaton, counts: list[int]) -> list[Any]:
        """One value for each group; None over no value."""
        if part.var is None:
            return list(counts)
        found = self.role(part.var)
        if found is None:  # of an OR branch that is not taken here
            return [0 if part.function == "count" and part.attr is None else None] * len(counts)
        role, leaf = found[0], found[1].leaf
        places = self.places(e, role)
        if part.attr is None:
            return list(self._bound(e, a, role, leaf, counts, None))
        values = self.stream.values(part.attr, e.row[places])
        if part.function in ("min", "max"):
            return self._extreme(part, e, a, role, values, len(counts))
        valid = None if values.valid is None else values.valid.astype(np.int64)
        some = self._bound(e, a, role, leaf, counts, valid)
        if part.function == "count":
            return list(some)
        self.passes += 1
        if part.type == "float64":
            data = values.as_float().data
            column = np.zeros(len(e), np.float64)
            column[places] = data if values.valid is None else np.where(values.valid, data, 0.0)
            sums: list[Any] = a.real_sums(e, len(counts), role, column).tolist()
        else:
            sums = a.sums(e, len(counts), role, self._spread(e, places, values.data, values.valid))
        return [s if n else None for s, n in zip(sums, some, strict=True)]

    def _bound(
        self, e: Entries, a: running.Automaton, role: int, leaf: t.Buffer, counts: list[int], valid: Index | None
    ) -> list[int]:
        """How many events of a variable all matches have bound, or those that have a value."""
        if valid is None and not leaf.kleene:
            return counts
        places = self.places(e, role)
        self.passes += 1
        return a.sums(e, len(counts), role, self._spread(e, places, np.ones(len(places)) if valid is None else valid))

    def _spread(self, e: Entries, places: Index, data: Any, valid: Any = None) -> Index:
        column = np.zeros(len(e), np.int64)
        column[places] = data if valid is None else np.where(valid, data, 0)
        return column

    def _extreme(
        self, part: p.Aggregate, e: Entries, a: running.Automaton, role: int, values: Values, count: int
    ) -> list[Any]:
        numbers, value_of = ranked(values.as_float() if part.type == "float64" else values, part.function)
        column = np.full(len(e), running.NO_VALUE, np.int64)
        column[self.places(e, role)] = numbers
        self.passes += 1
        return [value_of(n) if n < running.NO_VALUE else None for n in a.least(e, count, role, column).tolist()]


def backwards(mark: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Marks of the same groups and segments from the end."""
    last = np.append(mark[1:], np.uint8(3))[::-1]
    return np.ascontiguousarray(last[: len(mark)])


def earlier(at: Index, window: int) -> Index:
    """Where windows begin that end at some times; no time is before the first there is."""
    size = np.int64(min(window, _TOP))
    return np.where(at < _BOTTOM + size, _BOTTOM, at - size)


def reached(segment: Index, at: Index, begins: Index) -> Index:
    """Of each event, the first of its segment that is not before where its window begins."""
    found = np.empty(len(at), np.int64)
    starts = np.flatnonzero(np.r_[True, segment[1:] != segment[:-1]]) if len(at) else _NONE
    for i, j in pairwise([*starts.tolist(), len(at)]):
        found[i:j] = i + np.searchsorted(at[i:j], begins[i:j])
    return found


def _marks(mark: NDArray[np.uint8], kept: Index) -> NDArray[np.uint8]:
    """Marks of some of the events."""
    group, segment = np.cumsum(mark & 1)[kept], np.cumsum(mark == 3)[kept]
    found = np.r_[True, group[1:] != group[:-1]].astype(np.uint8) if len(kept) else np.empty(0, np.uint8)
    if len(kept):
        found[np.r_[True, segment[1:] != segment[:-1]]] = 3
    return found
