"""GROUPBY of a component before the last, in streams: each of its values is totalled in a segment of its own."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from quercus.backends.local.specs import Index
from quercus.kernels import running

MOST = 64  # values in a window of one key, beyond which matches are sooner listed


class TooMany(Exception):
    """There are more values than are worth it."""


class Spread:
    """For each key's segment one without the component's events, and one for each value with those of that value."""

    def __init__(self, counter: running.Running, bit: int, window: int) -> None:
        self.running, self.bit, self.window = counter, 1 << bit, window
        self.own: dict[int, dict[int, int]] = {}  # of a key's segment: the number of each value's, and of none's (-1)
        self.of: dict[int, tuple[int, int]] = {}  # of a number: the key's segment and the value
        self.last: dict[int, int] = {}  # of a number: where the last event of its value is
        self.free: list[int] = []
        self.new: list[int] = []
        self.moved: list[tuple[int, int]] = []  # what `last` was before this batch
        self.ends: dict[int, int] = {}  # of the segments of this batch: where it ends

    def expand(self, segment: Index, mask: Index, where: Index, values: Index) -> tuple[Index, Index, Index]:
        """Events, with the value of those that are the component, for all segments that see them: which of the events,
        their segments, and who holds each.
        """
        parts: list[tuple[Index, Index, Index]] = []
        starts = np.flatnonzero(np.r_[True, segment[1:] != segment[:-1]][: len(segment)])
        for i, j in pairwise([*starts.tolist(), len(segment)]):
            own = self._numbers(int(segment[i]), values[i:j], where[i:j])
            codes = np.fromiter(own.keys(), np.int64, len(own))
            numbers = np.fromiter(own.values(), np.int64, len(own))
            held = np.where(values[None, i:j] == codes[:, None], mask[None, i:j], mask[None, i:j] & ~self.bit)
            which, event = np.nonzero(held)
            parts.append((event + i, numbers[which], held[which, event]))
        if not parts:
            return segment, segment, mask
        joined = [np.concatenate(p) for p in zip(*parts, strict=True)]
        return joined[0], joined[1], joined[2]

    def _numbers(self, segment: int, values: Index, where: Index) -> dict[int, int]:
        """The segments of a key, those of its new values among them."""
        own = self.own.setdefault(segment, {})
        if -1 not in own:
            own[-1] = self._number(segment, -1)
        there = np.flatnonzero(values >= 0)
        for value, last in dict(zip(values[there].tolist(), where[there].tolist(), strict=True)).items():
            if value not in own:
                own[value] = self._number(segment, value)
                self.running.clone(own[-1], own[value])
            self.moved.append((own[value], self.last.get(own[value], int(last))))
            self.last[own[value]] = last
        if len(own) > MOST:
            begin = int(where[0]) - self.window
            if sum(self.last[n] >= begin for v, n in own.items() if v >= 0) > MOST:
                raise TooMany
        self.ends[segment] = int(where[-1])
        return own

    def _number(self, segment: int, value: int) -> int:
        number = self.free.pop() if self.free else len(self.of)
        self.of[number] = segment, value
        self.new.append(number)
        return number

    def _drop(self, numbers: list[int]) -> None:
        for n in numbers:
            segment, value = self.of[n]
            del self.own[segment][value]
            self.last.pop(n, None)
            self.free.append(n)
        self.running.let_go(numbers)

    def commit(self) -> None:
        """The batch is kept: let go of values that are in no window any more."""
        for segment, end in self.ends.items():
            own = self.own[segment]
            self._drop([n for v, n in own.items() if v >= 0 and self.last[n] < end - self.window])
        self.new, self.moved, self.ends = [], [], {}

    def undo(self) -> None:
        """It is taken back."""
        for n, last in reversed(self.moved):
            self.last[n] = last
        self._drop(self.new)
        self.new, self.moved, self.ends = [], [], {}

    def let_go(self, segments: list[int]) -> None:
        """Forget some keys."""
        for s in segments:
            self._drop(list(self.own.get(s, {}).values()))
            self.own.pop(s, None)
