"""The events that a stream still needs: what matches are made of when they come out, and what a snapshot holds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quercus.backends.local import inputs
from quercus.backends.local.specs import Index
from quercus.kernels.match import PIECES, Piece

__all__ = ["History", "Piece", "concatenated", "merged", "row_numbers", "taken"]


class History:
    """Pieces of the stream, the oldest first. A piece never changes, so that results may keep some."""

    def __init__(self, names: list[str]) -> None:
        self.names = names  # of the columns that are needed
        self.pieces: list[Piece] = []  # the same list for good: who takes batches in holds it

    def __len__(self) -> int:
        return sum(len(p) for p in self.pieces)

    def add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.merge()

    def merge(self) -> None:
        """Make one piece of many that are about as large."""
        while len(self.pieces) >= PIECES and self.pieces[-PIECES].level == self.pieces[-1].level:
            level = self.pieces[-1].level + 1
            self.pieces[-PIECES:] = [merged(self.pieces[-PIECES:], self.names, level)]

    def purge(self, *, ts: int | None = None, place: int | None = None) -> None:
        """Let go of the pieces that end before a time, or before a place."""
        gone = 0
        for p in self.pieces:
            if (ts is not None and p.last_ts >= ts) or (place is not None and p.last >= place):
                break
            gone += 1
        if gone:
            del self.pieces[:gone]

    def keep(self, places: Index) -> None:
        """Keep these places only."""
        if self.pieces:
            last_ts = self.pieces[-1].last_ts
            events, rows = taken(self.pieces, places, self.names)
            self.pieces[:] = [Piece(events, int(places[0]), places, rows, last_ts, 1)] if len(places) else []


def merged(pieces: Sequence[Piece], names: list[str], level: int) -> Piece:
    """Pieces one after the other as one."""
    first, last = pieces[0], pieces[-1]
    schema = first.events.schema
    if all(isinstance(p.events, pa.RecordBatch) and p.events.schema.equals(schema) for p in pieces):
        events = pa.Table.from_batches([p.events for p in pieces]).select(names).combine_chunks()
    else:
        events = concatenated([p.events.select(names) for p in pieces]).combine_chunks()
    whole = all(p.places is None for p in pieces) and len(events) == last.last - first.first + 1
    places = None if whole else np.concatenate([p.all_places() for p in pieces])
    rows = first.rows
    if not _in_a_row(pieces):
        rows = np.concatenate([p.row_numbers(np.arange(len(p))) for p in pieces])
    return Piece(events, first.first, places, rows, last.last_ts, level)


def _in_a_row(pieces: Sequence[Piece]) -> bool:
    """Whether the rows of all follow each other."""
    return all(isinstance(p.rows, int) for p in pieces) and all(a.rows + len(a) == b.rows for a, b in pairwise(pieces))


def taken(pieces: Sequence[Piece], places: NDArray[np.int64], names: list[str]) -> tuple[pa.Table, Index]:
    """The events at some places, ascending, and the rows that they were pushed as."""
    parts: list[pa.Table] = []
    rows: list[Index] = []
    for p in pieces:
        first, last = np.searchsorted(places, [p.first, p.last + 1])
        if first < last or not parts:
            at = p.index(places[first:last])
            parts.append(p.events.select(names).take(pa.array(at, pa.int64())))
            rows.append(p.row_numbers(at))
    return concatenated(parts), np.concatenate(rows)


def row_numbers(pieces: Sequence[Piece], places: NDArray[np.int64]) -> Index:
    """The rows that the events at some places, ascending, were pushed as."""
    found = np.empty(len(places), np.int64)
    for p in pieces:
        first, last = np.searchsorted(places, [p.first, p.last + 1])
        if first < last:
            found[first:last] = p.row_numbers(p.index(places[first:last]))
    return found


def concatenated(parts: Sequence[pa.Table | pa.RecordBatch]) -> pa.Table:
    return inputs.concatenated([p if isinstance(p, pa.Table) else pa.Table.from_batches([p]) for p in parts])
