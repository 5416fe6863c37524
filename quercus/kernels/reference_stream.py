"""Streams in plain Python: the twins of ``match.StreamMatcher`` and ``match.Feed``.

Every run looks for all matches among the events that are kept, and gives those whose moment has come since the one
before: there are no pivots, no queues and no chains. quercus/backends/local/release.py says which moment that is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quercus.kernels.reference_code import Event, Value
from quercus.kernels.reference_match import (
    OK,
    TOO_LARGE,
    TOO_MANY,
    Buffers,
    Found,
    Match,
    Matcher,
    TooLarge,
    events_of,
    in_order,
    listed,
)

END = 2**63 - 1

Index = NDArray[np.int64]


class Moment(NamedTuple):
    """A stream's clock, the position of its next event, and how many events it has seen."""

    ts: int
    pos: int
    row: int


class Segment:
    """A key's events by buffer, and the next position of its own stream, now and before this batch."""

    def __init__(self, buffers: int) -> None:
        self.events: Buffers = [[] for _ in range(buffers)]
        self.before: Buffers | None = None  # the events before this batch, where it brought any
        self.next_pos = self.next_before = 0


class StreamMatcher(Matcher):
    """Runs the variants of a query's alternatives over a stream that comes in batches."""

    def __init__(
        self, program: Any, searches: list[tuple[int, int, str, int]], keyed: bool, own_positions: bool
    ) -> None:
        super().__init__(program)
        self.searches, self.keyed, self.own_positions = searches, keyed, own_positions
        self.constants.const_i = list(program.const_i)
        self.segments: dict[int, Segment] = {}
        self.known = 0  # segments that there have been
        self.events = 0  # kept, purged ones in between included
        if not keyed:
            self.segment(0)

    def segment(self, k: int) -> Segment:
        self.known = max(self.known, k + 1)
        return self.segments.setdefault(k, Segment(len(self.program.buffers)))

    def touched(self, k: int) -> Segment:
        s = self.segment(k)
        if s.before is None:
            s.before, s.next_before = [list(b) for b in s.events], s.next_pos
        return s

    # a batch comes in

    def number(self, segments: Index) -> Index:
        """The positions of the next events in their keys' own streams; -1 where the key is null."""
        positions = []
        for k in segments.tolist():
            positions.append(self.touched(k).next_pos if k >= 0 else -1)
            if k >= 0:
                self.segments[k].next_pos += 1
        return np.array(positions, np.int64)

    def append(self, b: int, ts: Index, pos: Index, row: Index, segments: Index, columns: list[Any]) -> None:
        """Events for a buffer, in order, with a pair of values and validity for each of its columns."""
        own = [i for i, c in enumerate(self.program.columns) if c.buffer == b]
        values = [listed(*given) for given in columns]
        if {len(pos), len(row), *map(len, values)} != {len(ts)} or (self.keyed and len(segments) != len(ts)):
            raise ValueError("the columns of a buffer differ in length")
        for i in range(len(ts)):
            run = self.touched(int(segments[i]) if self.keyed else 0).events[b]
            place = run[-1].place + 1 if run else 0
            known = {c: v[i] for c, v in zip(own, values, strict=True)}
            run.append(Event(place, int(ts[i]), int(pos[i]), int(row[i]), known))
            self.events += 1

    # matches

    def run(self, number: int, before: Any, now: Any, max_matches: int, max_nanoseconds: int) -> Found:  # type: ignore[override]
        """The matches of a search whose moment lies after `before` and not after `now`."""
        flat, _, mode, _ = self.searches[number]
        f = self.program.flats[flat]
        found: list[Match] = []
        for _, s in sorted(self.segments.items()):
            then, moment = Moment(*before), Moment(*now)
            if self.own_positions:
                then = then._replace(pos=s.next_before)
                moment = moment if moment.pos == END else moment._replace(pos=s.next_pos)
            self.inside = s.events
            try:
                decided = [m for m in self.matches(f) if self.is_released(f, mode, m, then, moment)]
            except TooLarge:
                return self.told(f, TOO_LARGE, found)
            found.extend(in_order(f, decided))
        return self.told(f, OK if len(found) <= max_matches else TOO_MANY, found[:max_matches])

    def is_released(self, f: Any, mode: str, m: Match, before: Moment, now: Moment) -> bool:
        """Whether a match is decided now, and was not before."""
        new = max(e.row for e in events_of(f, *m)) >= before.row
        if f.held is None:
            return new if mode == "last" else self.ends(f.due, m, before, now)
        if not self.over(f, m, now) or not (new or not self.over(f, m, before)):
            return False
        if f.held.ending and self.is_ending(f, f.held.ending, m, before, now):
            return False
        return self.has_pivot(f, m, before, now, mode) and not any(self.ends(w, m, before, now) for w in f.held.earlier)

    def ends(self, window: int, m: Match, before: Moment, now: Moment) -> bool:
        """Whether a window of a match is over now, and was not before."""
        w = self.program.windows[window]
        return self.least(w, m) < END and self.window_over(w, m, now) and not self.window_over(w, m, before)

    def has_pivot(self, f: Any, m: Match, before: Moment, now: Moment, mode: str) -> bool:
        """Whether what is bound first fixes the moment: the last event, or the first of the window that is over."""
        slots, sets = m
        pivot, last = slots[f.levels[0].slot], max(events_of(f, *m), key=lambda e: e.row)
        if f.due < 0:
            exact = not f.held.exact or last.ts - min(e.ts for e in events_of(f, *m)) >= self.program.window_size
            own = f.held.pivot < 0 or pivot.row in [e.row for e in sets[f.held.pivot]]
            ending = 1 if mode == "last" else 2 if f.held.pivot < 0 else 4
            return own and pivot.row == last.row and exact and self.is_ending(f, ending, m, before, now)
        w = self.program.windows[f.due]
        there = [slots[s] for s in w.slots] + [e for s in w.sets for e in sets[s]]
        own = f.held.pivot < 0 or pivot.row in [e.row for e in sets[f.held.pivot]]
        return own and pivot.row == min(e.row for e in there) and self.ends(f.due, m, before, now)

    def is_ending(self, f: Any, ending: int, m: Match, before: Moment, now: Moment) -> bool:
        """Whether a match is found from its last event in this push: last, delayed, exact, or any."""
        end = max(events_of(f, *m), key=lambda e: e.row)
        if ending < 4 and end.row not in [m[0][s].row for s in f.slots]:
            return False
        if ending == 3 and end.ts - min(e.ts for e in events_of(f, *m)) < self.program.window_size:
            return False
        return end.row >= before.row or (ending in (2, 4) and before.ts < now.ts and end.ts >= before.ts)

    def at(self, e: Event, count: bool) -> int:
        return e.pos if count else e.ts

    def over(self, f: Any, m: Match, t: Moment) -> bool:
        """Whether no event from that moment on could violate a match or enlarge a set of it."""
        negations = [*f.negations, *(g for level in f.levels for g in level.negations)]
        return all(self.out_of_reach(f, self.program.negations[g], m, t) for g in negations) and all(
            self.cannot_grow(f, s, m, t) for s in f.held.sets
        )

    def cannot_grow(self, f: Any, s: int, m: Match, t: Moment) -> bool:
        """Whether no event from that moment on can be an element of a set."""
        slots, sets = m
        if any(kind == 0 and a == s and sets[b] for kind, a, b, _, _ in f.pairs):
            return True
        before = [e for kind, a, b, _, _ in f.pairs if kind == 0 and b == s for e in sets[a]]
        after = max((self.order(e) for e in [*before, *(slots[k] for k in self.program.sets[s].after)]), default=-END)
        for w in (self.program.windows[w] for w in self.program.sets[s].windows):
            least = self.least(w, m)
            strict = not self.program.by_arrival and not w.count
            if past(t, w.count, least, w.size) or (strict and least < END and after >= least + w.size):
                return True
        return False

    def out_of_reach(self, f: Any, g: Any, m: Match, t: Moment) -> bool:
        """Whether no event from that moment on can lie in a negation's scope."""
        if g.right == 0 or self.edge(g.before, *m, min) is not None:
            return True
        events, size = events_of(f, *m), self.program.window_size
        if self.program.count_window:
            return g.right == 2 or past(t, True, min(e.pos for e in events), size)
        end = min(e.ts for e in events) + size if g.right == 1 else max(e.ts for e in events)
        after = self.edge(g.after, *m, max)
        if t.ts > end or t.ts == END:
            return True
        return not self.program.by_arrival and after is not None and after >= end  # nothing lies between

    def window_over(self, w: Any, m: Match, t: Moment) -> bool:
        return past(t, w.count, self.least(w, m), w.size)

    def least(self, w: Any, m: Match) -> int:
        """Where a window begins."""
        slots, sets = m
        there = [slots[s] for s in w.slots] + [e for s in w.sets for e in sets[s]]
        return min((self.at(e, w.count) for e in there), default=END)

    # after a batch

    def commit(self, least_ts: int, least_pos: int, all_: bool) -> list[int]:
        """Purge events of the segments that the batch touched, or of all; returns segments with nothing left."""
        for s in self.segments.values():
            if all_ or s.before is not None:
                s.events = [[e for e in b if self.stays(e, s, least_ts, least_pos)] for b in s.events]
            if s.before is not None:
                s.before, s.next_before = None, s.next_pos
        if not all_:
            return []
        self.events = sum(len(b) for s in self.segments.values() for b in s.events)
        if not self.keyed or self.own_positions:
            return []
        freed = sorted(k for k, s in self.segments.items() if not any(s.events))
        for k in freed:
            del self.segments[k]
        return freed

    def stays(self, e: Event, s: Segment, least_ts: int, least_pos: int) -> bool:
        """Whether a purge leaves an event; positions of a key's own stream count back from its next."""
        least = s.next_pos - least_pos if self.own_positions else least_pos
        return e.pos >= least if self.program.count_window else e.ts >= least_ts

    def undo(self) -> None:
        """Take the batch back."""
        for s in self.segments.values():
            if s.before is not None:
                self.events -= sum(len(now) - len(then) for now, then in zip(s.events, s.before, strict=True))
                s.events, s.before, s.next_pos = s.before, None, s.next_before

    # what snapshots, limits and labels need

    def live(self, least_ts: int, least_pos: int) -> list[int]:
        """How many events of each buffer a purge would leave."""
        return [
            sum(self.stays(e, s, least_ts, least_pos) for s in self.segments.values() for e in s.events[b])
            for b in range(len(self.program.buffers))
        ]

    def positions(self) -> list[int]:
        """The next position of every key's own stream."""
        return [self.segments[k].next_pos if k in self.segments else 0 for k in range(self.known)]

    def set_positions(self, next_: Index) -> None:
        for k, position in enumerate(next_.tolist()):
            s = self.segment(k)
            s.next_pos = s.next_before = position

    def kept(self, b: int) -> Index:
        """The rows that a buffer holds, of all segments."""
        return np.array([e.row for _, s in sorted(self.segments.items()) for e in s.events[b]], np.int64)

    def kept_positions(self, b: int) -> Index:
        """Their positions."""
        return np.array([e.pos for _, s in sorted(self.segments.items()) for e in s.events[b]], np.int64)

    def column(self, c: int) -> Index:
        """The labels of a column of strings at all kept events, -1 for null."""
        b = self.program.columns[c].buffer
        kept = [e.values[c] for _, s in sorted(self.segments.items()) for e in s.events[b]]
        return np.array([-1 if v is None else v for v in kept], np.int64)

    def relabel(self, columns: list[int], labels: Index, constants: Index) -> None:
        """New labels for strings: old label i of these columns becomes labels[i]; and all constants anew."""

        def new(c: int, v: Value) -> Value:
            return int(labels[v]) if c in columns and isinstance(v, int) and 0 <= v < len(labels) else v

        def renamed(e: Event) -> Event:
            return e._replace(values={c: new(c, v) for c, v in e.values.items()})

        for s in self.segments.values():
            s.events = [[renamed(e) for e in b] for b in s.events]
            s.before = None if s.before is None else [[renamed(e) for e in b] for b in s.before]
        self.constants.const_i = constants

    def set_constants(self, constants: Index, maps: list[Index] | None) -> None:
        self.constants.const_i = constants
        self.constants.maps = self.constants.maps if maps is None else maps


class Feed:
    """Takes plain batches into a stream's buffers, each of which holds the events of one type."""

    def __init__(self, matcher: StreamMatcher, names: list[bytes]) -> None:
        self.matcher, self.names = matcher, names

    def step(
        self, ts: list[int | None], types: list[bytes | None], place: int, clock: int, reach: int, max_matches: int
    ) -> tuple[int, Found] | None:
        """Append a batch, run the searches of the alternative over it, and purge; the last time, and what was found.

        None, where the batch must be looked at more closely. If the status is not OK, it is to be taken back by undo().
        """
        times = [t for t in ts if t is not None]
        if not times or len(times) < len(ts) or None in types or times != sorted(times):
            return None
        if times[0] < clock or times[0] == -(2**63) or times[-1] == END:
            return None
        self.matcher.touched(0)
        for b, name in enumerate(self.names):
            at = np.array([i for i, found in enumerate(types) if found == name], np.int64)
            self.matcher.append(b, np.array(times, np.int64)[at], place + at, place + at, at, [])
        last, next_ = times[-1], place + len(times)
        status, columns, sets = self.matcher.run(0, (clock, place, place), (last, next_, next_), max_matches, -1)
        for number in range(1, len(self.matcher.searches)):
            left = max_matches - (len(columns[0]) if columns else len(sets[0][0]))
            more = self.matcher.run(number, (clock, place, place), (last, next_, next_), left, -1)
            status = status or more[0]
            columns = [np.concatenate(both) for both in zip(columns, more[1], strict=True)]
            sets = [
                (np.concatenate([a, b + len(x)]), np.concatenate([c, d + len(x)]), np.concatenate([x, y]))
                for (a, c, x), (b, d, y) in zip(sets, more[2], strict=True)
            ]
        if status == OK:
            self.matcher.commit(last - reach, next_ - reach, False)
        return last, (status, columns, sets)


def past(t: Moment, count: bool, start: int, size: int) -> bool:
    """Whether a window from there takes in no event from that moment on."""
    at = t.pos if count else t.ts
    return at > start + size or at == END
