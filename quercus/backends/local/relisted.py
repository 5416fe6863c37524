"""The matches behind a stream's totals: listed when they are asked for."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
from attrs import define, evolve

from quercus.backends.base import Limits
from quercus.backends.local.history import Piece, concatenated
from quercus.backends.local.incremental import Engine, Found, Moment
from quercus.backends.local.numbered import Chunks, positions_at
from quercus.backends.local.outputs import Answer, Bound
from quercus.backends.local.specs import Index
from quercus.backends.local.values import combined, raw
from quercus.plan import Plan


@define(eq=False, slots=False)
class Relisted:
    """One push: the pieces before it, its own, and the clock and the number of events before and after."""

    plan: Plan
    columns: frozenset[str] | None
    before: tuple[Piece, ...]
    piece: Piece | None
    moment: Moment
    clock: int
    limits: Limits
    chunks: Chunks = ()  # positions before, where each key has its own
    positions: Index | None = None  # of the piece

    def __len__(self) -> int:
        return len(self._found)

    def answer(self) -> Answer:
        return self._found.answer()

    def numbered(self) -> tuple[Bound, ...]:
        return self._found.numbered()

    @cached_property
    def _found(self) -> Found:
        engine = Engine(self.plan, self.columns, listed=True)
        engine.course.clock, engine.course.place = self.moment
        if self.before:
            events = concatenated([p.events.select(engine.columns_kept) for p in self.before])
            rows = np.concatenate([p.row_numbers(np.arange(len(p))) for p in self.before])
            places = np.concatenate([p.all_places() for p in self.before])
            own = positions_at(self.chunks, places) if engine.own_positions else places
            engine.restore(events, self._times(events), rows, places, own)
        limits = evolve(self.limits, max_state_bytes=None)
        if self.piece is None:
            found = engine.step(None, np.empty(0, np.int64), 0, self.clock, limits)
        else:
            ts = self._times(self.piece.events)
            if self.positions is not None:
                engine.begin_positions(self.piece.events, self.positions)
            found = engine.step(self.piece.events, ts, self.piece.rows, self.clock, limits)
        assert isinstance(found, Found)
        return found

    def _times(self, events: pa.Table | pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        column = events.column(self.plan.schema.time)
        return raw(
            combined(pa.chunked_array([column]) if isinstance(column, pa.Array) else column).view(pa.int64()), np.int64
        )
