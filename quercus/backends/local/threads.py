"""One alternative on several threads: each takes a part of the outermost component's events, all share the buffers.

What a match binds first decides which thread finds it, so that no match is found twice and nothing need be cut at
borders. The parts come back in order: together they are what one thread would have found, in the same order.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.backends.local import joins, views
from quercus.backends.local.specs import Filled, Program
from quercus.errors import LimitExceeded
from quercus.kernels import match

LEAST = 2_048  # outermost events that make a thread worth its start

Found = tuple[int, list[NDArray[np.int64]], list[tuple[NDArray[np.int64], NDArray[np.int64]]]]


class Matchers:
    """A matcher for each thread, over one program."""

    def __init__(self, program: Program, data: Filled, threads: int, max_state_bytes: int | None = None) -> None:
        self.program, self.data, self.threads = program, data, threads
        self.max_state_bytes = joins.STATE_BYTES if max_state_bytes is None else max_state_bytes
        self.matchers = [self._matcher()]
        self.used = self.matchers  # those of the last run

    def _matcher(self) -> match.Matcher:
        made = match.Matcher(self.program)
        made.load(self.data)
        return made

    def run(self, flat: int, segments: Any, max_matches: int, max_nanoseconds: int) -> list[Found]:
        """What each part found, in order."""
        size = self.matchers[0].outermost(flat)[1]
        count = max(1, min(self.threads, size // LEAST))
        while len(self.matchers) < count:
            self.matchers.append(self._matcher())
        self.used = self.matchers[:count]
        for m in self.used:
            m.limit_state(self.max_state_bytes // count, joins.ROUND)
        if count == 1:
            return [self.matchers[0].run(flat, segments, max_matches, max_nanoseconds)]
        borders = [size * i // count for i in range(count + 1)]
        with ThreadPoolExecutor(count) as pool:
            jobs = [
                pool.submit(m.run, flat, segments, max_matches, max_nanoseconds, first, last)
                for m, (first, last) in zip(self.matchers, pairwise(borders), strict=False)
            ]
            try:
                return [job.result() for job in jobs]
            except BaseException:
                for m in self.matchers:
                    m.cancel()  # leaving the pool waits for them
                raise

    def counters(self) -> dict[str, int]:
        """Exact operation counts of the last run, over all threads."""
        total: dict[str, int] = {}
        for m in self.used:
            for name, count in m.counters.items():
                total[name] = total.get(name, 0) + count
        return total

    def joins(self, flat: int) -> list[joins.Measured]:
        """What each join of the last run did, over all threads."""
        parts = zip(*(m.joins(flat) for m in self.used), strict=True)
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
