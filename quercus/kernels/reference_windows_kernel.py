"""The windows kernel in plain Python: every open window is looked at by itself, and keeps its own tuples and counts."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.kernels import windows as k
from quercus.kernels.reference_code import Event, value_of

Index = NDArray[np.int64]
HERE, FIRST, PREV, COUNTS = range(4)
TERMINATION, ITERATION, FILTER, BOUND = range(4)


class Window:
    """An open window; `group` is -1 for one without a key."""

    def __init__(self, group: int, first: int, ready: int) -> None:
        self.group, self.first, self.prev, self.ready = group, first, first, ready
        self.iter = self.num = 1
        self.taken: list[int] = []


class Windows:
    """As `quercus.kernels.windows.Windows`."""

    def __init__(
        self,
        code: Sequence[int],
        preds: Sequence[tuple[int, int] | None],
        const_f: Sequence[float],
        n_columns: int,
        alike: bool,
        keeping: int,
    ) -> None:
        self.programs = [None if p is None else list(code[p[0] : p[1]]) for p in preds]
        self.constants = SimpleNamespace(const_i=np.empty(0, np.int64), const_f=const_f, maps=[])
        self.columns: list[Any] = []
        self.alike, self.keeping = alike, keeping
        self.open: list[Window] = []

    def load(self, n: int, columns: Sequence[tuple[NDArray[Any], NDArray[np.uint8] | None]], const_i: Index) -> None:
        self.columns, self.constants.const_i = list(columns), const_i

    def run(
        self,
        steps: Index,
        codes: Index,
        homes: Index,
        flags: NDArray[np.uint16],
        ends: Index,
        position: int,
        place: int,
        n_groups: int,
        max_closed: int,
        max_nanoseconds: int,
        max_state: int,
        part: int = 0,
        parts: int = 1,
        size: int = -1,
    ) -> tuple[int, Index, Index, Index, Index, Index]:
        closed: list[tuple[int, Window]] = []
        status = k.OK
        for step in zip(steps.tolist(), codes.tolist(), homes.tolist(), flags.tolist(), strict=True):
            i, code, home, f = step
            end = position + (int(ends[i]) if len(ends) else i + 1)
            if f & k.STARTS and max(home, 0) % parts == part:
                self.open.append(Window(home, place + i, end))
            left = []
            for w in self.open:
                told = self._told(w, code, f)
                if told is None or position + i < w.ready:
                    left.append(w)
                    continue
                outcome = self._look(w, position + i, place + i, told, end)
                if outcome == "closed":
                    closed.append((place + i, w))
                elif outcome == "stayed":
                    left.append(w)
            self.open = left
            if len(closed) > max_closed:
                status = k.TOO_MANY
                closed = closed[:max_closed]
                break
        rows = [[c, w.first, w.iter, w.num] for c, w in closed]
        columns = np.array(rows, np.int64).reshape(-1, 4).T
        tuples = [t for c, w in closed for t in (w.first, *w.taken, c)] if self.keeping != k.NOWHERE else []
        return status, *(np.ascontiguousarray(c) for c in columns), np.array(tuples, np.int64)  # type: ignore[return-value]

    def _told(self, w: Window, code: int, f: int) -> int | None:
        """The flags that speak for this window, -1: none do; None: the tuple does not touch it."""
        if w.group == -1:
            return -1 if f & k.TO_LOOSE else None
        if w.group != code:
            return -1 if f & k.TO_ALL else None
        return None if f & (k.MAY_END | k.MAY_TAKE | k.STAYS) == k.STAYS else f

    def _look(self, w: Window, position: int, here: int, f: int, end: int) -> str:
        went = w.iter + position - w.ready
        if self.programs[BOUND] is not None and position > w.ready and not self._holds(BOUND, w, here - 1, went - 1):
            return "dropped"
        if self._true(TERMINATION, f, k.MAY_END, k.ENDS, w, here, went):
            w.iter = went
            w.num += 1
            return "closed"
        if not self._true(ITERATION, f, k.MAY_STAY, k.STAYS, w, here, went):
            return "dropped"
        if self.programs[BOUND] is not None and not self._holds(BOUND, w, here, went):
            return "dropped"
        if self._true(FILTER, f, k.MAY_TAKE, k.TAKES, w, here, went):
            w.iter, w.ready, w.prev = went + 1, end, here
            w.num += 1
            w.taken.append(here)
        return "stayed"

    def _true(self, program: int, f: int, may: int, must: int, w: Window, here: int, went: int) -> bool:
        if f >= 0 and (not f & may or f & must):
            return bool(f & must)
        return self._holds(program, w, here, went)

    def _holds(self, program: int, w: Window, here: int, went: int) -> bool:
        code = self.programs[program]
        assert code is not None
        slots = {HERE: self._event(here), FIRST: self._event(w.first), PREV: self._event(w.prev)}
        slots[COUNTS] = Event(0, 0, 0, 0, {0: went, 1: w.num})
        return bool(value_of(code, slots, {}, self.constants) or 0)

    def _event(self, place: int) -> Event:
        values: dict[int, int | float | None] = {}
        for number, (column, valid) in enumerate(self.columns):
            known = valid is None or valid[place]
            values[number + 2] = column[place].item() if known else None
        return Event(place, 0, 0, 0, values)

    def delay(self, position: int, lead: int) -> None:
        for w in self.open:
            if w.ready == position:
                w.ready += lead

    def mark(self, used: NDArray[np.uint8]) -> None:
        for w in self.open:
            used[[w.first, *w.taken]] = 1

    def move(self, places: Index) -> None:
        for w in self.open:
            w.first, w.prev = int(places[w.first]), int(places[w.prev])
            w.taken = places[w.taken].tolist() if w.taken else []

    def restore(self, windows: Index, tuples: Index, n_groups: int, position: int) -> None:
        """What the kernel's `state` gave: of windows that keep tuples by group, the last ones of it are theirs."""
        chains: dict[int, list[int]] = {}
        for owner, at in tuples.tolist():
            chains.setdefault(owner, []).append(at)
        for number, (group, first, prev, ready, went, num) in enumerate(windows.tolist()):
            w = Window(group, first, ready)
            w.prev, w.iter, w.num = prev, went, num
            w.taken = chains.get(-1 - number) or chains.get(group, [])[-(num - 1) :] if num > 1 else []
            self.open.append(w)

    def state(self) -> Index:
        """Group, first, ready, iter and num of each open window, in the order of opening."""
        rows = [(w.group, w.first, w.ready, w.iter, w.num) for w in self.open]
        return np.array(rows, np.int64).reshape(-1, 5)


def pairs(
    steps: Index,
    codes: Index,
    flags: NDArray[np.uint16],
    n_groups: int,
    max_closed: int,
    max_nanoseconds: int,
    max_state: int,
) -> tuple[int, Index, Index]:
    """As `quercus.kernels.windows.pairs`."""
    windows: dict[int, list[int]] = {}
    found: list[tuple[int, int]] = []
    for i, code, f in zip(steps.tolist(), codes.tolist(), flags.tolist(), strict=True):
        mine = windows.setdefault(code, [])
        if code >= 0 and f & k.ENDS:
            found += [(i, first) for first in mine]
        if f & k.ENDS or not f & k.STAYS:
            mine.clear()
        if f & k.STARTS:
            mine.append(i)
    status = k.TOO_MANY if len(found) > max_closed else k.OK
    close, first = np.array(found, np.int64).reshape(-1, 2).T
    return status, np.ascontiguousarray(close), np.ascontiguousarray(first)
