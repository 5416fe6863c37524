"""The events of the last windows that queries of a live cube share, and results over them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from attrs import frozen

from quercus.backends.local.cube.actions import Equal
from quercus.backends.local.cube.held import Held, Listed
from quercus.backends.local.cube.lanes import Lanes
from quercus.backends.local.cube.stacks import Stacks
from quercus.backends.local.events import Events
from quercus.backends.local.history import concatenated
from quercus.backends.local.outputs import Answer, Bound
from quercus.backends.local.specs import Index
from quercus.plan import Plan
from quercus.schema import Schema


@frozen(eq=False)
class Recent:
    """Some events of a stream in order. A place is an event's number among all that came; a row, how it was pushed."""

    table: pa.Table
    schema: Schema
    ts: Index
    places: Index
    rows: Index

    def __len__(self) -> int:
        return len(self.ts)

    @cached_property
    def events(self) -> Events:
        """They alone as a stream: positions count them."""
        return Events(self.table, self.schema, self.ts, None)

    def with_events(self, table: pa.Table, ts: Index, places: Index, rows: Index) -> Recent:
        """With those that came after them."""
        if not len(ts):
            return self
        return Recent(
            concatenated([self.table, table.select(self.table.column_names)]) if len(self) else table,
            self.schema,
            np.concatenate([self.ts, ts]),
            np.concatenate([self.places, places]),
            np.concatenate([self.rows, rows]),
        )

    def since(self, ts: int) -> Recent:
        """Those from a time on."""
        first = int(np.searchsorted(self.ts, ts))
        if not first:
            return self
        table = self.table.slice(first)
        if table.column(0).num_chunks > 16 or first > len(table):  # nothing that is gone is held on to
            table = table.combine_chunks()
        return Recent(table, self.schema, self.ts[first:], self.places[first:], self.rows[first:])

    def positions(self, places: Index) -> Index:
        """Where events that are among these stand."""
        return np.searchsorted(self.places, places)


class Shared:
    """What the queries of a cube look up in the same events, made when first asked for."""

    def __init__(self, recent: Recent, requests: Sequence[tuple[str, ...]]) -> None:
        self.recent = recent
        self.stacks = Stacks(recent.events, requests)
        self._lanes: dict[tuple[str, ...], Lanes] = {}

    def lanes(self, partition: tuple[str, ...]) -> Lanes:
        if partition not in self._lanes:
            self._lanes[partition] = Lanes(self.recent.events, self.stacks, partition)
        return self._lanes[partition]


@frozen(eq=False)
class Window:
    """Results of a source that later events can still be joined to: columns of places, and what is known of them."""

    columns: tuple[Index, ...]
    names: tuple[str, ...]
    equal: Equal

    def over(self, recent: Recent) -> Held:
        return Listed([recent.positions(c) for c in self.columns])

    def __len__(self) -> int:
        return len(self.columns[0])


@frozen(eq=False)
class LiveMatches:
    """Held results of one push, as the matches of a query: listed when they are asked for."""

    plan: Plan
    recent: Recent
    held: Held

    def __len__(self) -> int:
        return len(self.held)

    def _bound(self) -> tuple[Bound, ...]:
        return tuple(Bound(v.var, False, self.held.column(i)) for i, v in enumerate(self.plan.query.variables))

    def answer(self) -> Answer:
        bound = {b.var: b for b in self._bound()}
        return Answer(self.recent.table, self.plan.schema, self.plan.query, bound, self.recent.rows)

    def numbered(self) -> tuple[Bound, ...]:
        return tuple(b.numbered(self.recent.rows) for b in self._bound())
