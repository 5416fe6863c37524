"""The positions of a stream's events in their keys' own streams, for as long as the events are kept."""

from __future__ import annotations

import numpy as np

from quercus.backends.local.specs import Index

_MANY = 64
_NONE = np.empty(0, np.int64)

Chunks = tuple[tuple[Index, Index], ...]


class Numbered:
    """Places in the whole stream with positions, ascending, in chunks that never change."""

    def __init__(self) -> None:
        self.chunks: Chunks = ()

    def add(self, places: Index, positions: Index) -> None:
        self.chunks = (*self.chunks, (places, positions))
        if len(self.chunks) > _MANY:
            self.chunks = (joined(self.chunks),)

    def keep(self, places: Index) -> None:
        """Keep these places only."""
        own, positions = joined(self.chunks)
        there = np.isin(own, places, assume_unique=True)
        self.chunks = ((own[there], positions[there]),)


def joined(chunks: Chunks) -> tuple[Index, Index]:
    if not chunks:
        return _NONE, _NONE
    return np.concatenate([c[0] for c in chunks]), np.concatenate([c[1] for c in chunks])


def positions_at(chunks: Chunks, places: Index) -> Index:
    """The positions of some places, ascending; -1 where they are not known."""
    own, positions = joined(chunks)
    if not len(own):
        return np.full(len(places), -1, np.int64)
    at = np.minimum(np.searchsorted(own, places), len(own) - 1)
    return np.where(own[at] == places, positions[at], -1)
