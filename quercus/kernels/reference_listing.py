"""The plain Python twin of listing.pyx: what each of its loops means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
Small = NDArray[np.int32]
Keys = NDArray[Any]  # uint32 or uint64


def _same_length(*lengths: int) -> None:
    if len(set(lengths)) > 1:
        raise ValueError(f"arrays of different length: {lengths}")


def candidates(low: Small, high: Small, first: Small, events: int) -> int:
    """How many matches `by_event` looks at, for so many events."""
    _same_length(len(low), len(high))
    return sum(bool(low[p] <= x < high[p]) for x in range(events) for p in first.tolist())


def by_event(
    low: Small, high: Small, at: Index, columns: list[Small], out: list[Index], most: int = 16, past: int = 0
) -> None:
    """Matches in lexical order with the events `at` that may come at their end: event by event, each in that order."""
    _same_length(len(low), len(high))
    _same_length(len(columns) + 1, len(out))
    _same_length(*map(len, columns))
    matches = list(zip(*(c.tolist() for c in columns), strict=True))
    rows = [(*m, p) for x, p in enumerate(at.tolist()) for m in matches if low[m[-1]] <= x < high[m[0]]]
    if any(row[-1] >= 2**31 for row in rows):
        raise ValueError("a position beyond 32 bits")
    if len(rows) != len(out[0]):
        raise ValueError(f"room for {len(out[0])} results, not for those that there are")
    for to, values in zip(out, zip(*rows, strict=True), strict=False):
        to[:] = values


def lexical(
    columns: list[Index], low: int, bits: int, keys: Keys, spare: Keys, begins: NDArray[np.uint32], out: list[Small]
) -> None:
    """Matches in the order of the answer, in lexical order."""
    _same_length(len(keys), len(spare), *map(len, columns))
    if not 2 <= len(columns) <= 32 or bits < 1 or bits * (len(columns) - 1) > keys.itemsize * 8:
        raise ValueError(f"{len(columns)} positions of {bits} bits are no number")
    rows = sorted(zip(*(c.tolist() for c in columns), strict=True))
    for to, values in zip(out, zip(*rows, strict=True), strict=False):
        to[:] = values
