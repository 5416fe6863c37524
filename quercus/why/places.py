"""Where given events stand in the stream: times, positions, order, and words for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quercus.backends.local.events import Events
from quercus.ir import pattern as p
from quercus.schema import Schema
from quercus.why.columns import value
from quercus.why.data import Event
from quercus.why.engine import Match
from quercus.why.words import duration, moment

Index = NDArray[np.int64]
Binding = Mapping[str, tuple[int, ...]]


def binding_of(match: Mapping[str, object]) -> dict[str, tuple[int, ...]]:
    """Each variable's rows, however many it may have."""
    return {v: (r,) if isinstance(r, int) else tuple(r) for v, r in match.items()}  # type: ignore[arg-type]


class Places:
    """The events of a stream by their rows in the input."""

    def __init__(self, stream: Events, schema: Schema, partition_by: tuple[str, ...]) -> None:
        self.stream, self.schema, self.partition_by = stream, schema, partition_by
        self.strict = schema.ties == "strict"

    @cached_property
    def _place(self) -> Index:
        """The position of each row."""
        rows = self.stream.rows
        found = np.arange(len(self.stream))
        if rows is not None:
            found = np.empty(len(rows), np.int64)
            found[rows] = np.arange(len(rows))
        return found

    @cached_property
    def _ranks(self) -> Index:
        """The position of each row in the stream of its key."""
        if not self.partition_by:
            return self._place
        codes = self.stream.key_codes(self.partition_by, np.arange(len(self.stream)))
        order = np.argsort(codes, kind="stable")
        first = np.r_[True, np.diff(codes[order]) != 0] if len(order) else np.zeros(0, bool)
        begin = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0)) if len(order) else order
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order)) - begin
        return ranks[self._place]

    def ts(self, row: int) -> int:
        return int(self.stream.ts[self._place[row]])

    def position(self, row: int) -> int:
        return int(self._place[row])

    def before(self, one: int, other: int) -> bool:
        if self.strict:
            return self.ts(one) < self.ts(other)
        return self.position(one) < self.position(other)

    def ends(self, rows: Iterable[int]) -> tuple[int, int]:
        """The first and the last of some rows."""
        ordered = sorted(rows, key=self.position)
        return ordered[0], ordered[-1]

    def size(self, rows: Iterable[int], window: p.Window) -> int:
        """The least window of this kind that holds the rows."""
        rows = list(rows)
        if not rows:
            return 0
        if window.kind == "time":
            times = [self.ts(r) for r in rows]
            return max(times) - min(times)
        ranks = [int(self._ranks[r]) for r in rows]
        return max(ranks) - min(ranks) + 1

    def type_of(self, row: int) -> str:
        return str(value(self.stream.column("type").take(np.array([row]))))

    def value(self, row: int, attr: str) -> object:
        return value(self.stream.column(attr).take(np.array([row])))

    def event(self, var: str, row: int) -> Event:
        return Event(var, row, self.type_of(row), moment(self.ts(row), self.schema))

    def events(self, match: Match | Binding) -> tuple[Event, ...]:
        return tuple(self.event(v, r) for v, rows in binding_of(match).items() for r in rows)

    def gap(self, one: int, other: int) -> str:
        """How much later one of two rows is."""
        between = abs(self.ts(one) - self.ts(other))
        if between:
            return duration(between, self.schema.time_unit)
        return f"{abs(self.position(one) - self.position(other))} events"

    def said(self, var: str, row: int) -> str:
        return f"{var} (row {row})"
