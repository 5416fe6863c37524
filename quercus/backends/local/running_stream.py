"""AGG over a stream without listing matches: what each push adds to the groups that it changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen
from numpy.typing import NDArray

from quercus.backends.base import Limits
from quercus.backends.local.aggregate import group_codes
from quercus.backends.local.buffers import spec_of
from quercus.backends.local.events import Events
from quercus.backends.local.running import not_in_time, too_many_partial
from quercus.backends.local.specs import BufferSpec, Index
from quercus.backends.local.spread import Spread, TooMany
from quercus.backends.local.symbols import Symbols, leaves
from quercus.backends.local.totals import Totals, known
from quercus.backends.local.values import Values
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir.flat import Flat, flatten
from quercus.ir.running import Countable, Grouped, countable, live_groups
from quercus.kernels import running
from quercus.kernels.route import Router
from quercus.plan import Plan
from quercus.schema import Schema

Feeds = list[tuple[Index, Index]]  # of each buffer: its new events, by their places in the batch, and their segments
_TOP = 2**63 - 1


_ATTENTIVE = running.Watch()  # for Ctrl-C


class Unfit(Exception):
    """A value that cannot be told from no value: matches must be listed."""


@frozen
class Need:
    """What a pass adds up: `what` is one of `one` (for each event), `valid`, `value`, `min` and `max`."""

    kind: str
    role: int
    attr: str = ""
    what: str = "one"


@frozen(eq=False)
class Group:
    """What a push added to a group: where it stands among others, its values, and the parts of each AGG."""

    order: int
    shown: tuple[Any, ...]
    parts: list[Any]


def live_totals(plan: Plan, specs: list[BufferSpec]) -> LiveTotals | None:
    """What totals a stream of a plan, where that needs no matches."""
    found = plan.tree.aggregation
    if found is None or found.strategy != "running" or found.listed_live:
        return None
    return LiveTotals(plan, specs)


class LiveTotals:
    """The alternatives of a plan over a stream."""

    def __init__(self, plan: Plan, specs: list[BufferSpec]) -> None:
        tree, self.specs = plan.tree, specs
        parts = Totals(plan.query, plan.schema).flat
        self.counters = [
            Counter(plan, f, specs, [specs.index(spec_of(b, tree)) for b in leaves(f)], parts)
            for f in flatten(tree.root, tree.window)
        ]

    def inflow(self, batch: pa.Schema, schema: Schema) -> running.Inflow | None:
        """What takes in record batches of a schema as they are, if anything can."""
        if not self.counters:
            return None
        (c, *others) = self.counters
        if others or c.waits or c.columns or any(s.local or s.key is not None for s in self.specs):
            return None
        names = list(dict.fromkeys(n for number in c.merged for n in self.specs[number].accepts))
        encoded = [n.encode("utf-8", "surrogatepass") for n in names]
        if not Router.can(encoded):
            return None
        values = [c.source(n, batch) for n in c.needs]
        if any(v is None and n.kind != "count" for v, n in zip(values, c.needs, strict=True)):
            return None
        masks = [sum(1 << bit for bit, b in enumerate(c.merged) if n in self.specs[b].accepts) for n in names]
        symbols = c.symbols_of(np.array(masks, np.int64)).tolist()
        ts, kind = batch.get_field_index(schema.time), batch.get_field_index(schema.type)
        wide = bool(pa.types.is_large_string(batch.field(kind).type))
        return running.Inflow(c.running, c.automaton(), encoded, symbols, ts, kind, wide, c.counted, values)

    def parts(self, sums: list[list[Any]]) -> list[Any] | None:
        """What an inflow's totals add to each aggregate; None: there were no matches."""
        return [told(sums)[0] for told in self.counters[0].parts] if sums[0][0] else None

    def take_in(self, events: Events, feeds: Feeds, places: Index | int, positions: Index | None) -> bool:
        """Events of a batch, with the positions that windows count; False: this needs listed matches."""
        try:
            for c in self.counters:
                c.take_in(events, feeds, places, positions)
        except Unfit:
            self.undo()
            return False
        return True

    def totals(self, keys: list[Any], clock: int, place: int, limits: Limits) -> list[Group]:
        """What they added, group by group in the order of what decided first. `keys`: of each segment."""
        watch = None if limits.max_seconds is None else running.Watch(time.monotonic() + limits.max_seconds)
        try:
            found = []
            for c in self.counters:
                c.running.watch = watch or _ATTENTIVE
                found += c.totals(keys, clock, place)
        except OverflowError:
            raise too_many_partial() from None
        except TimeoutError:
            raise not_in_time(limits) from None
        return sorted(found, key=lambda g: g.order)

    def forget_decided(self, clock: int, place: int) -> None:
        """After events were taken in again: what was decided by then was given before."""
        for c in self.counters:
            if c.waits:
                c.settled(clock, place)

    def commit(self) -> None:
        for c in self.counters:
            c.running.commit()
            c.pending = None
            if c.spread is not None:
                c.spread.commit()

    def undo(self) -> None:
        for c in self.counters:
            c.running.undo()
            c.pending = None
            if c.spread is not None:
                c.spread.undo()

    def let_go(self, segments: list[int]) -> None:
        for c in self.counters:
            (c.running if c.spread is None else c.spread).let_go(segments)

    def sweep(self, least: int) -> None:
        """Forget events before a time, or before a position where windows count."""
        for c in self.counters:
            c.running.sweep(least)

    @property
    def bytes(self) -> int:
        return sum(c.running.bytes for c in self.counters)

    @property
    def steps(self) -> int:
        """Events looked at, in all passes."""
        return sum(c.running.steps for c in self.counters)


class Counter(Symbols):
    """One alternative over a stream."""

    def __init__(
        self, plan: Plan, f: Flat, specs: list[BufferSpec], numbers: list[int], parts: list[p.Aggregate]
    ) -> None:
        tree = plan.tree
        shape = countable(f, tree)
        assert isinstance(shape, Countable)
        how = live_groups(shape, tree, arrival=plan.schema.ties == "arrival")
        assert isinstance(how, Grouped)
        self.waits, self.present = how.backwards, f.variables
        super().__init__(shape, f, numbers, {g.var for g in how.apart}, waits=how.backwards)
        self.tags: dict[Any, int] = {}
        self.tagged: list[tuple[Any, ...]] = []  # of each tag: the values of its group
        self.columns, self.how = plan.query.group_by, how
        self.keyed_by: list[frozenset[x.Column] | str] = [*tree.partition_by]
        if not tree.partition_by:
            self.keyed_by += [frozenset(k.columns) for k in tree.keys]
        self.several = len({specs[number].key for number in numbers}) > 1  # an event can be in several segments
        self.counted = tree.window.kind == "count"
        self.needs: list[Need] = [Need("count", -1)]
        self.parts = [self._part(part) for part in parts]
        alone = len(shape.blocks) == 1 and not any(shape.gaps)
        window = min(tree.window.size - 1 if self.counted else tree.window.size, 2**64 - 1)
        ties = plan.schema.ties != "arrival" and not alone
        passes = [(n.kind, n.role) for n in self.needs]
        self.running = running.Running(self.states.count, passes, window, ties, self.waits)
        self.running.watch = _ATTENTIVE
        self.spread: Spread | None = None
        self.values: dict[Any, int] = {}  # of the component that is looked at apart: a number for each value
        self.shown: list[tuple[Any, ...]] = []  # of each number
        if how.apart:
            role = self.role(how.apart[0].var)
            assert role is not None
            self.spread = Spread(self.running, self.bits[role[0]], window)
        self.pending: tuple[Events, Index, Index, Index] | None = None

    # events

    def take_in(self, events: Events, feeds: Feeds, places: Index | int, positions: Index | None) -> None:
        at, segment, mask = self._held_in_two(feeds) if self.several else self._held(feeds, len(events))
        if self.spread is not None:
            at, segment, mask = self._spread_out(self.spread, events, at, segment, mask, places, positions)
        row = at + places if isinstance(places, int) else places[at]
        ts = events.ts[at]
        values = [self._values(n, events, at, mask) for n in self.needs]
        where = self._where(events, at, places, positions)
        symbols = self.symbols_of(mask)
        if self.waits:
            tags = self._tags(events, at, segment, mask)
            self.running.take_in(segment, symbols, where, ts, values, tags, self.automaton())
        else:
            self.running.take_in(segment, symbols, where, ts, values)
        self.pending = (events, at, row, segment)

    def _where(self, events: Events, at: Index, places: Index | int, positions: Index | None) -> Index:
        """Where events stand in windows."""
        if not self.counted:
            return events.ts[at]
        if positions is not None:
            return np.asarray(positions[at])
        return at + places if isinstance(places, int) else places[at]

    def _spread_out(
        self,
        spread: Spread,
        events: Events,
        at: Index,
        segment: Index,
        mask: Index,
        places: Index | int,
        positions: Index | None,
    ) -> tuple[Index, Index, Index]:
        """The same events for the segment of each value of a component."""
        there = np.flatnonzero(mask & spread.bit)
        columns = [events.values(g.attr, at[there]) for g in self.how.apart]
        _, first, inverse = np.unique(group_codes(columns, len(there)), return_index=True, return_inverse=True)
        numbers = np.empty(len(first), np.int64)
        for n, i in enumerate(first.tolist()):
            shown = tuple(_plain(events.values(g.attr, at[there[i : i + 1]])) for g in self.how.apart)
            numbers[n] = self.values.setdefault(tuple(known(v) for v in shown), len(self.values))
            if numbers[n] == len(self.shown):
                self.shown.append(shown)
        values = np.full(len(at), -1, np.int64)
        values[there] = numbers[inverse] if len(there) else 0
        try:
            chosen, segment, mask = spread.expand(segment, mask, self._where(events, at, places, positions), values)
        except TooMany:
            raise Unfit from None
        return at[chosen], segment, mask

    def _held(self, feeds: Feeds, n: int) -> tuple[Index, Index, Index]:
        """The events of all buffers, segment by segment: their places, their segments, and who holds each."""
        mask, segment = np.zeros(n, np.int64), np.zeros(n, np.int64)
        for bit, number in enumerate(self.merged):
            at, own = feeds[number]
            mask[at] |= 1 << bit
            if len(own):
                segment[at] = own
        at = np.flatnonzero(mask)
        segment = segment[at]
        if len(at) and (segment != segment[0]).any():
            order = np.argsort(segment, kind="stable")
            at, segment = at[order], segment[order]
        return at, segment, mask[at]

    def _held_in_two(self, feeds: Feeds) -> tuple[Index, Index, Index]:
        """The same, where buffers go by different keys."""
        at = np.concatenate([feeds[number][0] for number in self.merged])
        segment = np.concatenate([feeds[number][1] for number in self.merged])
        bits = np.repeat(1 << np.arange(len(self.merged)), [len(feeds[number][0]) for number in self.merged])
        order = np.lexsort((at, segment))
        at, segment = at[order], segment[order]
        first = np.flatnonzero(np.r_[True, (at[1:] != at[:-1]) | (segment[1:] != segment[:-1])][: len(at)])
        mask = np.bitwise_or.reduceat(bits[order], first) if len(first) else bits
        return at[first], segment[first], mask

    def source(self, need: Need, batch: pa.Schema) -> tuple[str, int] | None:
        """Where a record batch has what a pass adds up, if it is there as it is."""
        if need.kind == "count" or need.kind == "least":
            return None
        if need.what == "one" or (need.what == "valid" and batch.get_field_index(need.attr) >= 0):
            return "one", -1 if need.what == "one" else batch.get_field_index(need.attr)
        kind = {"sum": pa.int64(), "real": pa.float64()}[need.kind]
        at = batch.get_field_index(need.attr)
        if at < 0 or batch.field(at).type != kind:
            return None
        return "real" if need.kind == "real" else "integer", at

    def _values(self, need: Need, events: Events, at: Index, mask: Index) -> NDArray[Any] | None:
        if need.kind == "count":
            return None
        there = np.flatnonzero(mask & (1 << self.bits[need.role]))
        column = np.zeros(len(at), np.float64 if need.kind == "real" else np.int64)
        if need.what == "one":
            column[there] = 1
            return column
        values = events.values(need.attr, at[there])
        if need.what == "valid":
            column[there] = 1 if values.valid is None else values.valid
        elif need.kind == "least":
            column[there] = _ordered(values, need.what)
        else:
            data = values.as_float().data if need.kind == "real" else values.data
            column[there] = data if values.valid is None else np.where(values.valid, data, 0)
        return column

    # totals

    def totals(self, keys: list[Any], clock: int, place: int) -> list[Group]:
        """What the events at hand added, or a clock and a number of events that have come so far."""
        if self.waits:
            sums, tags, first = self.settled(clock, place)
            parts = list(zip(*(told(sums) for told in self.parts), strict=True)) if self.parts else [()] * len(tags)
            return [Group(g, self._tagged(tag, keys), list(parts[g])) for g, tag in enumerate(tags) if first[g] >= 0]
        if self.pending is None or not len(self.pending[1]):
            return []
        events, at, row, segment = self.pending
        codes, count = self._groups(events, at, segment)
        sums, first = self.running.totals(self.automaton(), row, codes, count)
        parts = list(zip(*(told(sums) for told in self.parts), strict=True)) if self.parts else [()] * count
        return [
            Group(int(row[i]), self._shown(events, at[i], int(segment[i]), keys), list(parts[g]))
            for g, i in enumerate(list(first))
            if i >= 0
        ]

    def settled(self, clock: int, place: int) -> tuple[list[list[Any]], list[int], Sequence[int]]:
        """The totals of matches that have waited long enough, by the tags of their starts."""
        return self.running.settled(self.automaton(), place if self.counted and clock != _TOP else clock)

    def _tags(self, events: Events, at: Index, segment: Index, mask: Index) -> Index:
        """A number for the group of each event that can begin a match."""
        tags = np.zeros(len(at), np.int64)
        if not self.columns:
            self.tagged = [()]
            return tags
        bits = 0
        for r, bit in zip(self.states.roles, self.bits, strict=True):
            bits |= 1 << bit if any(source == 0 for source, _, _, _ in r.edges) else 0
        there = np.flatnonzero(mask & bits)
        own = [g for g in self.columns if g in self.how.at_end]
        values = [events.values(g.attr, at[there]) for g in own]
        keyed = len(own) < sum(g.var in self.present for g in self.columns)
        codes = group_codes([*values, Values("int64", segment[there])] if keyed else values, len(there))
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        found = np.empty(len(first), np.int64)
        for n, i in enumerate(first.tolist()):
            shown = tuple(_plain(events.values(g.attr, at[there[i : i + 1]])) for g in own)
            key = (*(known(v) for v in shown), int(segment[there[i]]) if keyed else -1)
            found[n] = self.tags.setdefault(key, len(self.tags))
            if found[n] == len(self.tagged):
                self.tagged.append((*shown, key[-1]))
        tags[there] = found[inverse] if len(there) else 0
        return tags

    def _tagged(self, tag: int, keys: list[Any]) -> tuple[Any, ...]:
        """The values of a group."""
        if not self.columns:
            return ()
        *own, segment = self.tagged[tag]
        key = keys[segment] if segment >= 0 else None
        at_start = iter(own)
        return tuple(next(at_start) if g in self.how.at_end else self._of_key(g, key) for g in self.columns)

    def _groups(self, events: Events, at: Index, segment: Index) -> tuple[NDArray[np.int32], int]:
        """The group of each event, if it ends a match."""
        if not self.columns:
            return np.zeros(len(at), np.int32), 1
        values = [events.values(g.attr, at) for g in self.columns if g in self.how.at_end]
        if self.spread is not None or len(values) < sum(g.var in self.present for g in self.columns):
            values.append(Values("int64", self._by_value(segment)))
        codes = group_codes(values, len(at))
        return codes.astype(np.int32), int(codes.max(initial=0)) + 1

    def _by_value(self, segment: Index) -> Index:
        """What groups of segments are told apart by: the key too, only if it is asked for."""
        if self.spread is None or any(
            g.var in self.present and g not in self.how.at_end and g not in self.how.apart for g in self.columns
        ):
            return segment
        numbers, inverse = np.unique(segment, return_inverse=True)
        return np.array([self.spread.of[n][1] for n in numbers.tolist()], np.int64)[inverse]

    def _shown(self, events: Events, at: int, segment: int, keys: list[Any]) -> tuple[Any, ...]:
        """The values of a group, as Totals has them."""
        value = -1
        if self.spread is not None:
            segment, value = self.spread.of[segment]
        key = keys[segment] if keys else None
        found = []
        for g in self.columns:
            if g in self.how.at_end:
                found.append(_plain(events.values(g.attr, np.array([at]))))
            elif g in self.how.apart:
                found.append(self.shown[value][self.how.apart.index(g)])
            else:
                found.append(self._of_key(g, key))
        return tuple(found)

    def _of_key(self, g: x.Column, key: Any) -> Any:
        if g.var not in self.present:  # of an OR branch that is not taken here
            return None
        part = next(i for i, k in enumerate(self.keyed_by) if (k == g.attr if isinstance(k, str) else g in k))
        return key[part] if len(self.keyed_by) > 1 else key

    # parts of aggregates

    def _part(self, part: p.Aggregate) -> Callable[[list[list[Any]]], list[Any]]:
        """Tells the part of each group from the sums of all passes; None over no value."""
        if part.var is None:
            return lambda sums: sums[0]
        found = self.role(part.var)
        if found is None:  # of an OR branch that is not taken here
            nothing = 0 if part.function == "count" and part.attr is None else None
            return lambda sums: [nothing] * len(sums[0])
        role, leaf = found[0], found[1].leaf
        if part.attr is None:
            number = self._need(Need("sum", role)) if leaf.kleene else 0
            return lambda sums: sums[number]
        if part.function in ("min", "max"):
            real = part.type == "float64"
            number = self._need(Need("least", role, part.attr, part.function))
            told = _told(part.function, real, part.type == "bool")
            return lambda sums: [None if n >= running.NO_VALUE else told(n) for n in sums[number]]
        valid = self._need(Need("sum", role, part.attr, "valid"))
        if part.function == "count":
            return lambda sums: sums[valid]
        number = self._need(Need("real" if part.type == "float64" else "sum", role, part.attr, "value"))
        return lambda sums: [s if n else None for s, n in zip(sums[number], sums[valid], strict=True)]

    def _need(self, need: Need) -> int:
        if need not in self.needs:
            self.needs.append(need)
        return self.needs.index(need)


def _plain(values: Values) -> Any:
    found = values.to_arrow()
    return (found.cast(pa.int64()) if pa.types.is_timestamp(found.type) else found)[0].as_py()


def _ordered(values: Values, function: str) -> Index:
    """Numbers of which the least is that of the least value (of the greatest, for `max`): the same in every push."""
    if values.kind == "float64":
        bits = np.ascontiguousarray(values.data, np.float64).view(np.int64)
        numbers = bits ^ ((bits >> 63) & _TOP)
    else:
        numbers = np.asarray(values.data).astype(np.int64)
    numbers = numbers if function == "min" else ~numbers
    if values.kind == "float64":
        numbers = np.where(np.isnan(values.data), -_TOP - 1, numbers)
    if values.valid is not None:
        numbers = np.where(values.valid, numbers, _TOP)
    lost = numbers >= running.NO_VALUE
    if (lost if values.valid is None else lost & values.valid).any():
        raise Unfit
    return np.asarray(np.minimum(numbers, running.NO_VALUE))


def _told(function: str, real: bool, truth: bool) -> Callable[[int], Any]:
    """The value of a number."""

    def told(n: int) -> Any:
        if real and n == -_TOP - 1:
            return float("nan")
        n = n if function == "min" else ~n
        if not real:
            return bool(n) if truth else n
        return float((np.array([n]) ^ ((np.array([n]) >> 63) & _TOP)).view(np.float64)[0])

    return told
