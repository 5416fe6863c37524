"""The matcher in plain Python: the twin of ``match.Matcher``, which reads the very same program.

It tries every event for every slot, and knows no pointers, no indexes and no trees of composites: a chain, a trail, a
tree of joins and the ways of a negation are read for what they say, not for how they find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.kernels.reference_code import Event, value_of

OK, TOO_MANY, TOO_LARGE = 0, -2, -4
MAX_CLIQUE = 8192

Slots = dict[int, Event]
Sets = dict[int, list[Event]]
Match = tuple[Slots, Sets]
Buffers = list[list[Event]]
Index = NDArray[np.int64]
Found = tuple[int, list[Index], list[tuple[Index, Index, Index]]]


class TooLarge(Exception):
    """Sets that could share too many events."""


class Matcher:
    """Runs the alternatives of one query over its buffers."""

    def __init__(self, program: Any) -> None:
        self.program = program
        self.constants = SimpleNamespace(const_i=[], const_f=program.const_f, maps=[])
        self.buffers: Buffers = []
        self.inside: Buffers = []  # the events of the segment at hand

    def load(self, data: Any) -> None:
        """The data of the program."""
        if len(data.buffers) != len(self.program.buffers) or len(data.columns) != len(self.program.columns):
            raise ValueError("not the data of this program")
        self.constants.const_i, self.constants.maps = data.const_i, data.maps
        self.buffers = []
        for b, given in enumerate(data.buffers):
            columns = {i: listed(*data.columns[i]) for i, c in enumerate(self.program.columns) if c.buffer == b}
            rows = zip(given.ts.tolist(), given.pos.tolist(), given.row.tolist(), strict=True)
            self.buffers.append(
                [Event(i, *e, {c: values[i] for c, values in columns.items()}) for i, e in enumerate(rows)]
            )

    def run(
        self,
        flat: int,
        segments: NDArray[np.int64],
        max_matches: int,
        max_nanoseconds: int,
        first: int = 0,
        last: int = -1,
        room: int = 0,
    ) -> Found:
        """The twin of ``match.Matcher.run``; it takes its time."""
        f = self.program.flats[flat]
        owner = owner_of(f)
        found: list[Match] = []
        for k in range(segments.shape[1] - 1):
            self.inside = [b[segments[i, k] : segments[i, k + 1]] for i, b in enumerate(self.buffers)]
            try:
                matches = list(self.matches(f))
            except TooLarge:
                return self.told(f, TOO_LARGE, found)
            if owner is not None:
                matches = [m for m in matches if first <= m[0][owner].place and (last < 0 or m[0][owner].place < last)]
            found.extend(in_order(f, matches))
        return self.told(f, OK if len(found) <= max_matches else TOO_MANY, found[:max_matches])

    def told(self, f: Any, status: int, found: list[Match]) -> Found:
        """(status, columns, sets), as the kernel tells it; every set with rows of its own."""
        columns = [np.array([slots[s].row for slots, _ in found], np.int64) for s in f.outs]
        sets = []
        for s in f.out_sets:
            offsets = np.cumsum([0, *(len(found_sets[s]) for _, found_sets in found)], dtype=np.int64)
            rows = np.array([e.row for _, k in found for e in k[s]], np.int64)
            sets.append((offsets[:-1], offsets[1:], rows))
        return status, columns, sets

    # matches of an alternative

    def matches(self, f: Any) -> Iterator[Match]:
        """All matches in the segment at hand."""
        for slots in self.bindings(f, {}, {}, lambda e: True, None):
            for sets in self.completed(f, slots):
                if self.finished(f, slots, sets, (f, slots, sets)):
                    yield slots, sets

    def bindings(
        self, f: Any, outer: Slots, sets: Sets, inside: Callable[[Event], bool], ties: Sequence[Any] | None
    ) -> Iterator[Slots]:
        """What the slots of an alternative can hold: each event in turn, for leaves of its tree, then levels.

        Around a negated body there are slots and sets of the match.
        """
        steps = [*f.joins, *f.levels]

        def bind(k: int, slots: Slots) -> Iterator[Slots]:
            if k == len(steps):
                if all(self.limit_holds(f, limit, slots) for limit in f.limits) and not any(
                    self.exists(g, slots, {}, None) for _, g in f.jump_limits
                ):
                    yield slots
                return
            step, tree = steps[k], k < len(f.joins)
            if not tree and step.sub >= 0:
                for bound in self.results(self.program.subs[step.sub], slots, sets, inside):
                    if self.sub_holds(step, bound, sets):
                        yield from bind(k + 1, bound)
                return
            if tree and step.children is not None:
                if self.join_holds(f, step, slots):
                    yield from bind(k + 1, slots)
                return
            slot = step.slots[0] if tree else step.slot
            for e in self.inside[self.program.slots[slot]]:
                bound = slots | {slot: e}
                if (
                    inside(e)
                    and (tree or self.level_holds(step, bound, sets))
                    and (ties is None or all(tied(e, tie, bound) for tie in ties[k].ties))
                ):
                    yield from bind(k + 1, bound)

        yield from bind(0, outer)

    def order(self, e: Event) -> int:
        return e.pos if self.program.by_arrival else e.ts

    def level_holds(self, level: Any, slots: Slots, sets: Sets) -> bool:
        e = slots[level.slot]
        return (
            all(self.order(slots[s]) < self.order(e) for s in level.after)
            and all(self.order(e) < self.order(slots[s]) for s in level.before)
            and all(e.pos < slots[s].pos for s in level.below)
            and all(slots[s].pos < e.pos for s in level.above)
            and all(slots[s].row != e.row for s in level.distinct)
            and (level.previous < 0 or slots[level.previous].place < e.place)
            and (level.following < 0 or e.place < slots[level.following].place)
            and all(self.fits(w, [e, *(slots[s] for s in there)]) for w, there in level.reach)
            and all(self.holds(p, slots, sets) for p in level.preds)
            and not any(self.exists(g, slots, sets, None) for g in level.negations)
        )

    def results(self, sub: Any, slots: Slots, sets: Sets, inside: Callable[[Event], bool]) -> Iterator[Slots]:
        """What the slots of a sub-query can hold beside those around it."""
        body, own = self.program.flats[sub.flat], sub.end_slots[0]
        for found in self.bindings(body, slots, sets, inside, None):
            if self.finished(body, found, sets, None):
                yield slots | {s: found[k] for s, k in zip(sub.slots, own, strict=True)}

    def sub_holds(self, level: Any, slots: Slots, sets: Sets) -> bool:
        """A result of a sub-query stands where it must, is made of other events, and fits into the windows around."""
        own = [slots[s] for s in level.slots]
        pairs = self.program.subs[level.sub].distinct
        return (
            all(self.order(slots[s]) < self.order(e) for s in level.after for e in own)
            and all(self.order(e) < self.order(slots[s]) for s in level.before for e in own)
            and all(slots[a].row != slots[b].row for a, b in zip(pairs[::2], pairs[1::2], strict=True))
            and all(self.fits(w, own + [slots[s] for s in there]) for w, there in level.reach)
            and all(self.holds(p, slots, sets) for p in level.preds)
            and not any(self.exists(g, slots, sets, None) for g in level.negations)
        )

    def join_holds(self, f: Any, node: Any, slots: Slots) -> bool:
        left, right = ([slots[s] for s in f.joins[c].slots] for c in node.children)
        return (
            (not node.ordered or max(map(self.order, left)) < min(map(self.order, right)))
            and (node.within_time is None or spread([e.ts for e in left + right]) <= node.within_time)
            and (node.within_count is None or spread([e.pos for e in left + right]) <= node.within_count)
            and all(slots[a].row != slots[b].row for a, b in node.distinct)
            and all(self.holds(p, slots, {}) for p in node.preds)
            and not any(self.exists(g, slots, {}, None) for g in node.negations)
        )

    def limit_holds(self, f: Any, limit: Any, slots: Slots) -> bool:
        """No events of these buffers, one after the other, between a component and the next."""
        component, buffers = limit
        here, there = (slots[f.levels[0 if i == len(f.levels) - 1 else i + 1].slot] for i in (component, component + 1))
        reached = [here]
        for b in buffers:
            reached = [e for e in self.inside[b] if any(self.order(r) < self.order(e) for r in reached)]
        return not any(self.order(r) < self.order(there) for r in reached)

    def fits(self, window: int, events: list[Event]) -> bool:
        w = self.program.windows[window]
        return bool(spread([e.pos if w.count else e.ts for e in events]) <= w.size)

    def holds(self, pred: int, slots: Slots, sets: Sets) -> bool:
        """A predicate; one over a set, of each of its elements."""
        start, end, over = self.program.preds[pred]
        element = self.program.sets[over].slot if over >= 0 else -1
        tried = [slots] if over < 0 else [slots | {element: e} for e in sets[over]]
        return all(value_of(self.program.code[start:end], s, sets, self.constants) for s in tried)

    # sets

    def completed(self, f: Any, slots: Slots) -> Iterator[Sets]:
        """The sets of [n], and the maximal sets of + and * that fit together."""
        counted = {s: [slots[k] for k in self.program.sets[s].slots] for s in f.counted}
        elements = [(s, e) for s in f.sets for e in self.candidates(s, slots)]
        if len(f.sets) + len(f.pairs) > 1 and len(elements) > MAX_CLIQUE:
            raise TooLarge
        maximal: list[list[tuple[int, Event]]] = [[]]
        for x in elements:  # a set with x is part of one without it, and all of that which fits x
            fitting = [([y for y in known if self.compatible(f, *x, *y)], known) for known in maximal]
            larger = [[*part, x] for part, _ in fitting]
            kept = [known for part, known in fitting if len(part) < len(known)]
            maximal = kept + [k for i, k in enumerate(larger) if not _within_another(k, i, larger)]
        for known in maximal:
            sets = {s: [e for owner, e in known if owner == s] for s in f.sets}
            if all(len(sets[s]) >= self.program.sets[s].least for s in f.sets):
                yield sets | counted

    def candidates(self, number: int, slots: Slots) -> list[Event]:
        """The events that could be elements, each by itself."""
        s = self.program.sets[number]
        return [
            e
            for e in self.inside[self.program.slots[s.slot]]
            if all(self.order(slots[k]) < self.order(e) for k in s.after)
            and all(self.order(e) < self.order(slots[k]) for k in s.before)
            and all(slots[k].row != e.row for k in s.distinct)
            and all(self.fits(w, [e, *(slots[k] for k in self.program.windows[w].slots)]) for w in s.windows)
            and all(self.holds(p, slots | {s.slot: e}, {}) for p in s.preds)
        ]

    def compatible(self, f: Any, a: int, x: Event, b: int, y: Event) -> bool:
        """Whether element x of set a and element y of set b can stand in one match."""
        shared = [w for w in self.program.sets[a].windows if b in self.program.windows[w].sets]
        if not all(self.fits(w, [x, y]) for w in shared):
            return False
        for kind, left, right, col_left, col_right in f.pairs:
            if {left, right} != {a, b}:
                continue
            u, v = (x, y) if left == a else (y, x)
            if kind == 0 and not self.order(u) < self.order(v):
                return False
            if kind == 1 and u.row == v.row:
                return False
            if kind > 1 and not equal(u.values[col_left], v.values[col_right]):
                return False
        return True

    # negations

    def finished(self, f: Any, slots: Slots, sets: Sets, whole: tuple[Any, Slots, Sets] | None) -> bool:
        """What is asked when everything is bound. `whole` is the match around negations, once it is there."""
        return not any(self.exists(g, slots, sets, whole) for g in f.negations) and all(
            self.holds(t, slots, sets) for t in f.tests
        )

    def exists(self, number: int, slots: Slots, sets: Sets, whole: tuple[Any, Slots, Sets] | None) -> bool:
        """Whether the negated pattern has a match in its scope."""
        g = self.program.negations[number]
        count, size = self.program.count_window, self.program.window_size
        after, before = self.edge(g.after, slots, sets, max), self.edge(g.before, slots, sets, min)
        barred = {slots[s].row for s in g.exclude_slots} | {e.row for s in g.exclude_sets for e in sets[s]}
        start = end = 0
        if (after is None and g.left) or (before is None and g.right):
            assert whole is not None
            ends = [e.pos if count else e.ts for e in events_of(*whole)]
            start, end = min(ends), max(ends)

        def inside(e: Event) -> bool:
            at = e.pos if count else e.ts
            if e.row in barred:
                return False
            if after is not None:
                if self.order(e) <= after:
                    return False
            elif g.left and at < end - size:
                return False
            if before is not None:
                if self.order(e) >= before:
                    return False
            elif g.right and at > (start + size if g.right == 1 else end):
                return False
            return True

        for way in g.ways:
            body = self.program.flats[way.flat]
            for found in self.bindings(body, slots, sets, inside, way.jumps or None):
                own = sets | {s: [found[k] for k in self.program.sets[s].slots] for s in body.counted}
                if self.finished(body, found, own, whole):
                    return True
        return False

    def edge(self, groups: Any, slots: Slots, sets: Sets, ends: Callable[[list[int]], int]) -> int | None:
        """The end of the nearest neighbour that has bound anything."""
        for own_slots, own_sets in groups:
            there = [slots[s] for s in own_slots] + [e for s in own_sets for e in sets.get(s, [])]
            if there:
                return ends([self.order(e) for e in there])
        return None


def _within_another(k: list[tuple[int, Event]], i: int, others: list[list[tuple[int, Event]]]) -> bool:
    """Whether another one has all of these; of equal ones the first stays."""

    def key(x: tuple[int, Event]) -> tuple[int, int]:
        return x[0], x[1].place

    own = {key(x) for x in k}
    return any(own < (o := {key(x) for x in other}) or (own == o and j < i) for j, other in enumerate(others))


def events_of(f: Any, slots: Slots, sets: Sets) -> list[Event]:
    """The events of a match."""
    return [slots[s] for s in f.slots] + [e for s in f.sets for e in sets[s]]


def owner_of(f: Any) -> int | None:
    """The slot whose events are shared out: a tree's last leaf, a trail's first component, else what is bound first."""
    leaves = [j for j in f.joins if j.children is None]
    if leaves:
        return int(leaves[-1].slots[0])
    if not f.levels:
        return None
    return int(f.levels[1 if f.trail is not None and len(f.levels) > 1 else 0].slot)


def in_order(f: Any, matches: list[Match]) -> list[Match]:
    """By end, start, and what is bound, where the kernel's come so."""

    def key(m: Match) -> tuple[int, ...]:
        rows = [e.row for e in events_of(f, *m)]
        return max(rows), min(rows), *(m[0][s].row for s in f.outs)

    return sorted(matches, key=key) if f.natural else matches


def listed(values: NDArray[Any], valid: NDArray[np.uint8] | None) -> list[Any]:
    """A column's values, None for null."""
    known = [True] * len(values) if valid is None else valid.tolist()
    return [v if k else None for v, k in zip(values.tolist(), known, strict=True)]


def spread(values: list[int]) -> int:
    return max(values) - min(values)


def equal(u: object, v: object) -> bool:
    return u is not None and v is not None and bool(u == v)


def tied(e: Event, tie: tuple[int, int, int, bool], slots: Slots) -> bool:
    column, slot, outer, _ = tie
    return equal(e.values[column], slots[slot].values[outer])
