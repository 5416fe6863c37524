"""What windows took in, where that is a range of what their key can take in: counted and listed from positions.

Of the tuples of one key and one time that pass the filter, a window is shown the first, and takes it in unless that
closes or drops it; then it is not shown the others. So a window that lasted has taken in the first of each time between
its own first tuple and its last one.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from quercus.backends.local.specs import Index
from quercus.backends.local.windows.closed import spliced
from quercus.backends.local.windows.columns import Columns
from quercus.backends.local.windows.plan import WindowPlan
from quercus.ir import expr as x
from quercus.kernels import group


class Taken:
    """The ranges of some closed windows."""

    def __init__(self, plan: WindowPlan, columns: Columns, close: Index, first: Index) -> None:
        self.plan, self.columns, self.close, self.first = plan, columns, close, first

    @cached_property
    def _list(self) -> tuple[Index, Index]:
        """(keys and positions as one number, positions) of what can be taken in, by key and then by position."""
        at = np.flatnonzero(self.columns.mask(self.plan.own.must_take))
        codes = self._codes(tuple(k.here for k in self.plan.keys), at)
        if (codes < 0).any():
            at, codes = at[codes >= 0], codes[codes >= 0]
        if self.plan.keys:
            order = group.stable_order(codes)
            order = np.argsort(codes, kind="stable") if order is None else order
            at, codes = at[order], codes[order]
        if len(self.columns.ends()) and len(at):
            ts = self.columns.events.ts[at]
            again = (ts[1:] == ts[:-1]) & (codes[1:] == codes[:-1])
            kept = np.append(True, ~again)
            at, codes = at[kept], codes[kept]
        return codes * len(self.columns) + at, at

    @cached_property
    def _ranges(self) -> tuple[Index, Index]:
        numbers, _ = self._list
        own = self._codes(tuple(k.first for k in self.plan.keys), self.first) * len(self.columns)
        ends = self.columns.ends()
        begin = ends[self.first] if len(ends) else self.first + 1  # past the tuples of the first one's time
        return np.searchsorted(numbers, own + begin), np.searchsorted(numbers, own + self.close)

    def num(self) -> Index:
        starts, ends = self._ranges
        return ends - starts + 2

    def tuples(self) -> Index:
        return spliced(self.first, self._list[1], *self._ranges, self.close)

    def iter(self) -> Index:
        """A window went on at every tuple between, but for those that it was not shown."""
        went = self.close - self.first
        ends = self.columns.ends()
        if not len(ends):
            return went
        starts, stops = self._ranges
        at = self._list[1]
        hidden = np.append(0, np.cumsum(ends[at] - at - 1))
        went -= ends[self.first] - self.first - 1
        went -= hidden[stops] - hidden[starts]
        return went

    def _codes(self, parts: tuple[x.Expr, ...], at: Index) -> Index:
        return self.columns.codes(parts, self.plan.keys, at)
