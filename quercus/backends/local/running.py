"""AGG without listing matches: each alternative as an automaton over its events, group by group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen
from numpy.typing import NDArray

from quercus.backends.local.aggregate import aggregated, group_codes
from quercus.backends.local.buffers import BufferSource, buffer_specs, routed_to, segments, spec_of
from quercus.backends.local.events import Events
from quercus.backends.local.outputs import Answer
from quercus.backends.local.ranks import ranked
from quercus.backends.local.specs import BufferData
from quercus.backends.local.symbols import Symbols, leaves
from quercus.backends.local.totals import Key, Totals, nothing
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


@frozen(eq=False)
class Entries:
    """Events of an alternative in order (backwards, where it is read from its end), each once."""

    mask: Index  # who holds it: a bit for each role's buffer
    mark: NDArray[np.uint8]
    at: Index  # time or position in the window; negative backwards
    row: Index  # the position in the stream
    window: int
    symbol: NDArray[np.uint8]
    segment: Index | None = None  # the segment, counted from 1, of those that hold any event; for GROUPBY
    group: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.mask)

    def some(self, kept: Index, mask: Index, symbol: NDArray[np.uint8]) -> Entries:
        """Some of the events, by their places, with other roles."""
        mark = _marks(self.mark, kept)
        segment = None if self.segment is None else self.segment[kept]
        return Entries(mask, mark, self.at[kept], self.row[kept], self.window, symbol, segment)


@frozen(eq=False)
class Found:
    """Totals of one group: where it stands in the answer, events that show its values, and the parts of each AGG."""

    order: tuple[int, ...]
    shown: tuple[int, ...]
    parts: list[Any]


def run_totals(plan: Plan, stream: Events) -> pa.Table:
    """The aggregates of a plan whose strategy is `running`."""
    query = plan.query
    totals = Totals(query, plan.schema)
    found: list[Found] = []
    tree = plan.tree
    flats = flatten(tree.root, tree.window)
    if flats:
        wanted = buffer_specs(flats, tree)
        source = BufferSource(stream, tree, wanted, routed_to(wanted, stream))
        starts = segments(source.data)
        for f in flats:
            numbers = [wanted.index(spec_of(b, tree)) for b in leaves(f)]
            found += Alternative(plan, stream, f, source.data, numbers, starts, totals.flat).totals()
    empty = Answer(stream.table, plan.schema, query, nothing(query))
    found.sort(key=lambda g: g.order)
    keys: list[Key] = []
    for number, g in enumerate(found):
        key: Key = (number,) if query.group_by else ()
        keys.append(key)
        totals.merge(key, g.parts)
    rows = np.array([g.shown for g in found], np.int64).reshape(len(found), len(query.group_by))
    shown = [empty.arrow_at(c.attr, stream.input_rows(rows[:, i])) for i, c in enumerate(query.group_by)]
    return totals.table(keys if query.group_by else [()], shown, aggregated(empty).schema)


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
    ) -> None:
        self.plan, self.stream, self.parts = plan, stream, parts
        self.buffers, self.starts = buffers, starts
        tree = plan.tree
        made = countable(f, tree)
        how = grouped(made, tree) if isinstance(made, Countable) else made
        assert isinstance(made, Countable)
        assert isinstance(how, Grouped)
        self.how = how
        shape = made if made.backwards == how.backwards else made.reversed()
        super().__init__(shape, f, numbers, {g.var for g in how.apart})
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
        segment = np.cumsum(mark == 3) if self.plan.query.group_by else None
        return Entries(mask, mark, at, row, min(window, 2**64 - 1), self.symbols_of(mask), segment)

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

                return apart(self)
            return self.found(self.entries, self.automaton())
        except OverflowError:
            raise LimitExceeded(
                "a window has more than 10**38 partial matches: tighten WITHIN", limit="decimal digits", value=38
            ) from None

    def found(self, e: Entries, a: running.Automaton) -> list[Found]:
        """The groups of some entries that have matches, each with its place in the answer."""
        at = self.ends(e) if self.plan.query.group_by else _NONE
        e, shown, count = self._grouped(e, at)
        counts, first = a.count(e, count)
        if self.how.backwards and self.plan.query.group_by:
            orders, first = self._first_ends(e, a, at, count)
        else:
            orders = [(int(e.row[i]),) if i >= 0 else () for i in first.tolist()]
        where = np.searchsorted(at, first)
        parts = list(zip(*(self._part(part, e, a, counts) for part in self.parts), strict=True))
        return [
            Found(orders[g], tuple(int(s[where[g]]) for s in shown), list(parts[g])) for g in range(count) if counts[g]
        ]

    def _grouped(self, e: Entries, at: Index) -> tuple[Entries, list[Index], int]:
        """Numbers the groups of the entries that end matches; gives, for each column, an event that shows the value."""
        columns = self.plan.query.group_by
        if not columns:
            return e, [], 1
        shown: list[Index] = []
        for g in columns:
            if g in self.how.at_end:
                shown.append(e.row[at])
            elif g in self.how.apart:
                shown.append(np.zeros(len(at), np.int64))  # one value, which the caller knows
            else:
                shown.append(self._of_segment(g, e, at))
        values = [self.stream.values(g.attr, s) for g, s in zip(columns, shown, strict=True) if g not in self.how.apart]
        codes = group_codes(values, len(at))
        count = int(codes.max(initial=0)) + 1
        group = np.zeros(len(e), np.int32)
        group[at] = codes
        return evolve(e, group=group), shown, count

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
        assert e.segment is not None
        segment = there[e.segment[at] - 1] if len(at) else at
        return np.asarray(rows[np.minimum(starts[segment], len(rows) - 1)])

    def _first_ends(
        self, e: Entries, a: running.Automaton, at: Index, count: int
    ) -> tuple[list[tuple[int, ...]], Index]:
        """Backwards: of each group, the end and the start of its first match, and the entry of that start."""
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
        orders: list[tuple[int, ...]] = [()] * count
        first = np.zeros(count, np.int64)
        for g, i in zip(groups.tolist(), order[begin].tolist(), strict=True):
            orders[g], first[g] = (int(ends[i]), int(e.row[at[i]])), at[i]
        return orders, first

    def _each(self, e: Entries, a: running.Automaton, role: int, sign: int) -> Index:
        """Of each entry that begins matches, the least row (or the greatest, negative) of what has a role in them."""
        values = np.full(len(e), running.NO_VALUE, np.int64)
        places = self.places(e, role)
        values[places] = sign * e.row[places]
        each = np.full(len(e), running.NONE, np.int64)
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
        return [value_of(n) if n < running.NO_VALUE else None for n in a.least(e, count, role, column).tolist()]


def backwards(mark: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Marks of the same groups and segments from the end."""
    last = np.append(mark[1:], np.uint8(3))[::-1]
    return np.ascontiguousarray(last[: len(mark)])


def _marks(mark: NDArray[np.uint8], kept: Index) -> NDArray[np.uint8]:
    """Marks of some of the events."""
    group, segment = np.cumsum(mark & 1)[kept], np.cumsum(mark == 3)[kept]
    found = np.r_[True, group[1:] != group[:-1]].astype(np.uint8) if len(kept) else np.empty(0, np.uint8)
    if len(kept):
        found[np.r_[True, segment[1:] != segment[:-1]]] = 3
    return found
