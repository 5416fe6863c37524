"""One alternative on several threads: each takes slices of its work, all share the buffers.

What a match binds first decides which slice finds it, so that no match is found twice and nothing need be copied at
borders. The slices come back in order: together they are what one thread would have found, in the same order.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from quercus.backends.local import joins, views
from quercus.backends.local.pool import shared
from quercus.backends.local.slices import Slice, cut, merged, whole
from quercus.backends.local.specs import Filled, Index, Program, Sets
from quercus.errors import LimitExceeded
from quercus.kernels import match, memory

LEAST = 256  # events that a slice is made of, at least
WORTH = 250_000  # nanoseconds of work that make one more thread worth its start
SAMPLE = 32  # the last of so many parts of the events tells how long the others will take
PIECE = 2**16  # numbers that are copied at once
COPIED = 1  # nanoseconds that it takes to copy a number
FIXED = 25_000  # nanoseconds that any part takes
ALONG = 2**17  # events that are followed along pointers before one more thread is worth its start
EACH = 3  # slices for each thread: who is done sooner takes more

Found = tuple[int, list[Index], list[Sets]]


class Matchers:
    """A matcher for each thread, over one program."""

    def __init__(self, program: Program, data: Filled, threads: int, max_state_bytes: int | None = None) -> None:
        self.program, self.data, self.threads = program, data, threads
        self.max_state_bytes = joins.STATE_BYTES if max_state_bytes is None else max_state_bytes
        self.matchers = [self._matcher()]
        self.used = self.matchers  # those of the last run
        self.idle = deque(self.matchers)
        self.lock = threading.Lock()
        self.status, self.left, self.deadline = match.OK, 0, -1
        self.time = self.rate = 0.0  # nanoseconds and matches of all events, as far as seen
        self.counted: dict[str, int] = {}
        self.joined: dict[match.Matcher, list[tuple[int, int, int, int]]] = {}

    def _matcher(self) -> match.Matcher:
        made = match.Matcher(self.program)
        made.load(self.data)
        return made

    def run(self, flat: int, segments: Any, max_matches: int, max_nanoseconds: int, expected: float = 0.0) -> Found:
        """What was found, in order, and the status: the first that was not OK. There is room for what is expected."""
        self.status, self.left, self.counted, self.joined = match.OK, max_matches, {}, {}
        self.time = self.rate = 0.0
        self.deadline = time.monotonic_ns() + max_nanoseconds if max_nanoseconds >= 0 else -1
        self._use(1)
        parts = self._parts(flat, segments, expected)
        done = [p for p in parts if p is not None]
        if self.status != match.OK or len(done) == 1:
            return self.status, *done[0][1:]
        return self.status, *joined(done, len(self.used))

    def _parts(self, flat: int, segments: Index, expected: float) -> list[Found | None]:
        """What each slice found; None of those that were not begun."""
        owner, size = self.matchers[0].outermost(flat)
        events, keyed = int(segments[:, -1].sum()), segments.shape[1] > 2
        most = min(EACH * self.threads, events // LEAST, size if owner >= 0 else events)
        if self.threads == 1 or most < 2 or not (keyed or owner >= 0):
            return [self._run(flat, whole(segments), expected)]
        if self.program.flats[flat].trail is not None and not keyed:  # each slice follows all pointers: no sample
            self._use(max(1, min(self.threads, most, events // ALONG if WORTH else most)))
            return self._share(flat, cut(segments, owner, [1.0] * len(self.used)), 0.0)
        *slices, sample = cut(segments, owner, [(SAMPLE - 1) / most] * most + [1])
        last = self._timed(flat, sample)
        if not slices:
            return [last]
        first = []
        if not self._threads_for(1.0):
            first = [self._timed(flat, slices[0], self.rate)]
            slices = slices[1:]
        count = self._threads_for(sum(s.share for s in slices))
        if count == 0:
            rest = [self._run(flat, merged(segments, slices), self.rate)] if slices else []
            return [*first, *rest, last]
        self._use(count + 1)
        if COPIED * self.rate * len(self.program.flats[flat].outs) > self.time / 8:  # the fewer, the less is copied
            size = -(-len(slices) // (count + 1))
            slices = [merged(segments, slices[i : i + size]) for i in range(0, len(slices), size)]
        return [*first, *self._share(flat, slices, self.rate), last]

    def _timed(self, flat: int, part: Slice, rate: float = 0.0) -> Found | None:
        """One slice, and from it the time and the matches that all events are expected to take and give."""
        began = time.perf_counter_ns()
        found = self._run(flat, part, rate)
        if found is not None:
            self.time = max(self.time, (time.perf_counter_ns() - began - FIXED) / part.share)
            self.rate = max(self.rate, 1.125 * _count(found) / part.share)
        return found

    def _threads_for(self, share: float) -> int:
        """How many more threads a part of the work is worth."""
        return min(self.threads - 1, int(share * self.time / WORTH) if WORTH else self.threads)

    def _share(self, flat: int, slices: list[Slice], rate: float) -> list[Found | None]:
        """Slices on all threads; the first gets room for what all of them find."""
        rates = [rate / slices[0].share, *[rate] * (len(slices) - 1)]
        tasks = [partial(self._run, flat, s, r) for s, r in zip(slices, rates, strict=True)]
        return shared(tasks, len(self.used), self._stop)

    def _run(self, flat: int, part: Slice, rate: float = 0.0) -> Found | None:
        """One slice, on a matcher that nobody uses; None: another slice could not go on."""
        if self.status != match.OK:
            return None
        m = self.idle.pop()
        nanoseconds = -1 if self.deadline < 0 else max(0, self.deadline - time.monotonic_ns())
        left = max(self.left, 0)
        room = min(int(rate * part.share) + 64, left) if rate else 0
        found = m.run(flat, part.segments, left, nanoseconds, part.first, part.last, room)
        with self.lock:
            self.left -= _count(found)
            status = match.TOO_MANY if self.left < 0 and found[0] == match.OK else found[0]
            for name, count in m.counters.items():
                self.counted[name] = self.counted.get(name, 0) + count
            self._count_joins(m, flat)
            failed = status != match.OK and self.status == match.OK
            if failed:
                self.status = status
        if failed:
            self._stop()
        self.idle.append(m)
        return found

    def _use(self, count: int) -> None:
        """So many matchers, which share what internal buffers may take."""
        while len(self.matchers) < count:
            self.matchers.append(self._matcher())
        self.used = self.matchers[:count]
        self.idle = deque(self.used)
        for m in self.used:
            m.limit_state(self.max_state_bytes // count, joins.ROUND)

    def _stop(self) -> None:
        for m in self.used:
            m.cancel()

    def _count_joins(self, m: match.Matcher, flat: int) -> None:
        now = m.joins(flat)
        before = self.joined.get(m, [(0, 0, 0, 0)] * len(now))
        self.joined[m] = [
            (a + c, b + d, max(most, held), t + u) for (a, b, most, t), (c, d, held, u) in zip(before, now, strict=True)
        ]

    def counters(self) -> dict[str, int]:
        """Exact operation counts of the last run, over all threads."""
        return self.counted

    def joins(self, flat: int) -> list[joins.Measured]:
        """What each join of the last run did, over all threads."""
        parts = zip(*self.joined.values(), strict=True)
        summed = [tuple(sum(counts) for counts in zip(*nodes, strict=True)) for nodes in parts]
        return joins.measured(self.program.flats[flat], summed)

    def too_much_view(self) -> LimitExceeded:
        """The error of a run that stopped because its views were full."""
        sub = self.program.subs[next(m.grew for m in self.used if m.grew >= 0)]
        return views.too_much(self.program, sub, self.max_state_bytes)

    def too_much_state(self, flat: int) -> LimitExceeded:
        """The error of a run that stopped because its internal buffers were full."""
        node = next(m.grew for m in self.used if m.grew >= 0)
        return joins.too_much_state(self.program.flats[flat], node, self.max_state_bytes)


def _count(found: Found) -> int:
    _, columns, sets = found
    return len(columns[0]) if columns else len(sets[0][0]) if sets else 0


# Slices one behind the other: the first has room for all, as far as could be foretold --------------------------------


def joined(parts: list[Found], threads: int) -> tuple[list[Index], list[Sets]]:
    """The matches of some slices as if one had found them."""
    copies: list[Any] = []
    columns = [_behind([p[1][c] for p in parts], copies) for c in range(len(parts[0][1]))]
    sets = [_joined_sets([p[2][s] for p in parts], copies) for s in range(len(parts[0][2]))]
    size = sum(len(part) for _, part, _ in copies)
    shared([partial(np.add, part, add, out=to) for to, part, add in copies], threads if size > 2 * PIECE else 1)
    return columns, sets


def _joined_sets(parts: list[Sets], copies: list[Any]) -> Sets:
    """One set's variable: ranges of rows that all slices share stay as they are."""
    starts, ends, rows = zip(*parts, strict=True)
    there = list({id(r): r for r in rows if len(r)}.values()) or [rows[0]]
    begin = dict(zip(map(id, there), (0, *accumulate(map(len, there))), strict=False))
    add = [begin.get(id(r), 0) for r in rows]
    return (
        _behind(list(starts), copies, add),
        _behind(list(ends), copies, add),
        there[0] if len(there) == 1 else np.concatenate(there),
    )


def _behind(arrays: list[Index], copies: list[Any], add: list[int] | None = None) -> Index:
    """One array for all; what must be copied into it, and what to add to it, is put among the copies."""
    first, *others = arrays
    ends = list(accumulate(map(len, arrays)))
    to = memory.extended(first, ends[-1])
    for i, part in enumerate(others):
        for begin in range(0, len(part), PIECE):
            piece = part[begin : begin + PIECE]
            at = ends[i] + begin
            copies.append((to[at : at + len(piece)], piece, 0 if add is None else add[i + 1]))
    return to
