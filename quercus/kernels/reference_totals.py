"""A plain Python twin of `kernels.running.Running`: keeps all events, and looks for matches from their start or end."""

from __future__ import annotations

from typing import Any

from attrs import define, frozen

NONE, NO_VALUE = 2**63 - 1, 2**63 - 2


@frozen
class Event:
    segment: int
    symbol: int
    at: int
    ts: int
    values: tuple[Any, ...]
    tag: int
    place: int  # in its batch


class Pairs:
    """How many matches, and the sum of what they have."""

    zero, one = (0, 0), (1, 0)

    def add(self, a: Any, b: Any) -> Any:
        return a[0] + b[0], a[1] + b[1]

    def times(self, a: Any, b: Any) -> Any:
        return a[0] * b[0], (a[0] * b[1] if a[0] and b[1] else 0) + (a[1] * b[0] if a[1] and b[0] else 0)

    def value(self, v: Any) -> Any:
        return 1, v


class Least:
    """The least of what any match has."""

    zero, one = NONE, NO_VALUE

    def add(self, a: int, b: int) -> int:
        return min(a, b)

    def times(self, a: int, b: int) -> int:
        return NONE if NONE in (a, b) else min(a, b)

    def value(self, v: int) -> int:
        return v


@define
class Pass:
    kind: str
    role: int
    number: int

    @property
    def ring(self) -> Any:
        return Least() if self.kind == "least" else Pairs()

    def told(self, total: Any) -> Any:
        return total if self.kind == "least" else total[0 if self.kind == "count" else 1]


class Running:
    """The same names."""

    def __init__(self, states: int, passes: Any, window: int, ties: bool, delayed: bool = False) -> None:
        self.passes = [Pass(kind, role, n) for n, (kind, role) in enumerate(passes)]
        self.window, self.ties, self.delayed = window, ties, delayed
        self.kept: list[Event] = []
        self.new: list[Event] = []
        self.until = -(2**63)

    def take_in(
        self, segments: Any, symbol: Any, at: Any, ts: Any, values: Any, tags: Any = None, automaton: Any = None
    ) -> None:
        for i in range(len(symbol)):
            own = tuple(0 if v is None else v[i].item() for v in values)
            tag = 0 if tags is None else int(tags[i])
            self.new.append(Event(int(segments[i]), int(symbol[i]), int(at[i]), int(ts[i]), own, tag, i))

    def commit(self) -> None:
        self.kept, self.new = self.kept + self.new, []
        self.until = max(self.until, self.moved)

    def undo(self) -> None:
        self.new = []

    moved = -(2**63)

    def totals(self, automaton: Any, row: Any, group: Any, groups: int) -> tuple[list[list[Any]], list[int]]:
        first = [-1] * groups
        sums = [[p.ring.zero] * groups for p in self.passes]
        for e in self.new:
            g = int(group[e.place])
            for p in self.passes:
                found = self._ended(automaton, p, e, None)
                sums[p.number][g] = p.ring.add(sums[p.number][g], found)
                if p.number == 0 and found[0] and (first[g] < 0 or row[e.place] < row[first[g]]):
                    first[g] = e.place
        return [[p.told(s) for s in own] for p, own in zip(self.passes, sums, strict=True)], first

    def settled(self, automaton: Any, until: int) -> dict[int, list[Any]]:
        """Of each tag that has a match whose moment has come, the totals of each pass."""
        found: dict[int, list[Any]] = {}
        for start in [e for e in self.kept + self.new if self._begins(automaton, e)]:
            border = start.at + self.window
            for p in self.passes:
                total = p.ring.zero
                if self.until <= border and (border < until or until == NONE):
                    total = self._waited(automaton, p, start)
                for e in self.new if self.ties else []:
                    if e.segment == start.segment and e.at == border and e.at > start.at:
                        total = p.ring.add(total, self._ended(automaton, p, e, start))
                own = found.setdefault(start.tag, [q.ring.zero for q in self.passes])
                own[p.number] = p.ring.add(own[p.number], total)
        self.moved = until
        kept = {tag: [p.told(t) for p, t in zip(self.passes, own, strict=True)] for tag, own in found.items()}
        return {tag: own for tag, own in kept.items() if own[0]}

    # matches

    def _begins(self, automaton: Any, e: Event) -> bool:
        return any(source == 0 for source, _, _, _ in automaton.symbols[e.symbol][0])

    def _segment(self, e: Event) -> list[Event]:
        return [o for o in self.kept + self.new if o.segment == e.segment]

    def _ended(self, automaton: Any, p: Pass, end: Event, start: Event | None) -> Any:
        """What one event ends, of all matches or of those that one event begins."""
        events = [e for e in self._segment(end) if end.at - e.at <= self.window]
        events = events[: next(i for i, e in enumerate(events) if e is end) + 1]
        return _walk(automaton, p, events, start, end, self.ties)

    def _waited(self, automaton: Any, p: Pass, start: Event) -> Any:
        """What one event begins, but for what ends with the last moment of its window, where ties are."""
        events = [e for e in self._segment(start) if 0 <= e.at - start.at <= self.window]
        return _walk(automaton, p, events, start, None, self.ties, start.at + self.window)


def _walk(
    a: Any, p: Pass, events: list[Event], start: Event | None, end: Event | None, ties: bool, border: int | None = None
) -> Any:
    ring = p.ring
    old = {0: ring.one}
    fresh: dict[int, Any] = {}
    flags: dict[int, int] = {}
    weight: dict[int, Any] = {}
    before: Event | None = None
    for e in events:
        if before is not None and (not ties or e.ts != before.ts):
            old = _closed(a, ring, old, fresh, flags, weight)
            fresh, flags, weight = {}, {}, {}
        before = e
        edges, stays = a.symbols[e.symbol]
        more: list[tuple[int, Any]] = []
        for source, target, role, inner in edges:
            if source == 0 and start is not None and e is not start:
                continue
            waiting = ring.add(old.get(source, ring.zero), fresh.get(source, ring.zero) if inner else ring.zero)
            moved = ring.times(waiting, ring.value(e.values[p.number])) if role == p.role else waiting
            whole = target < 0 or target in a.accepts
            if end is None and ties and whole and border is not None and e.at == border:
                continue
            more.append((-1 if whole and e is end else target, moved))
        if e is end:
            total = ring.zero
            for target, moved in more:
                total = ring.add(total, moved) if target < 0 else total
            return total
        for target, moved in more:
            if target >= 0:
                fresh[target] = ring.add(fresh.get(target, ring.zero), moved)
        for gap, flag, role in stays:
            flags[gap] = flags.get(gap, 0) | flag
            if role == p.role:
                weight[gap] = ring.times(weight.get(gap, ring.one), ring.value(e.values[p.number]))
    last = _closed(a, ring, old, fresh, flags, weight)
    total = ring.zero
    for state in a.accepts:
        total = ring.add(total, last.get(state, ring.zero))
    return total


def _closed(a: Any, ring: Any, old: Any, fresh: Any, flags: dict[int, int], weight: dict[int, Any]) -> dict[int, Any]:
    new = dict(fresh)
    for state, waiting in old.items():
        to, moved = state, waiting
        for gap, (first, size, moves) in enumerate(a.gaps):
            if first <= state < first + size and gap in flags:
                place = moves[flags[gap]][state - first]
                to = first + place if place >= 0 else -1
                moved = ring.times(waiting, weight.get(gap, ring.one)) if flags[gap] & 1 else waiting
        if to >= 0:
            new[to] = ring.add(new.get(to, ring.zero), moved)
    return new
