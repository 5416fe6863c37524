"""Keys of tuples as numbers, by a table that strings are looked up in as they lie in Arrow's buffers."""

from __future__ import annotations

import secrets
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.backends.local.events import string_buffers
from quercus.backends.local.specs import Index
from quercus.backends.local.values import Mask, Values
from quercus.kernels import keys

Bytes = NDArray[np.uint8] | None
Part = tuple[Index, Bytes] | tuple[NDArray[Any], NDArray[np.uint8], Bytes]


def table_of(parts: int) -> keys.Table:
    """A table of keys of so many parts. Its hashes are its own, so that no stream can choose keys that meet in it."""
    return keys.Table(parts, secrets.randbits(64))


def part_of(v: Values) -> Part:
    """A part of keys as the kernel reads it. Null and NaN equal nothing; 0.0 and -0.0 are one value."""
    known = v.valid
    if v.kind == "string":
        found = string_buffers(v.data)
        return found["offsets"], found["data"], _bytes(known)
    if v.kind == "float64":
        numbers = ~np.isnan(v.data)
        known = numbers if known is None else known & numbers
        return np.ascontiguousarray(v.data + 0.0).view(np.int64), None if known.all() else _bytes(known)
    return np.ascontiguousarray(v.data, np.int64), _bytes(known)


def _bytes(mask: Mask | None) -> Bytes:
    return None if mask is None else np.ascontiguousarray(mask).view(np.uint8)


class Keys:
    """The keys of windows over one stream: a table for each way to make them, shared by all windows that have it."""

    def __init__(self) -> None:
        self.tables: dict[Hashable, keys.Table] = {}

    def table(self, space: tuple[Hashable, ...]) -> keys.Table:
        """That of keys which are made in this way."""
        found = self.tables.get(space)
        if found is None:
            found = self.tables[space] = table_of(len(space))
        return found

    def size(self, space: tuple[Hashable, ...]) -> int:
        """More than any number of a key."""
        return self.tables[space].size if space in self.tables else 0

    def keep(self, space: tuple[Hashable, ...], numbers: Index, least: int) -> None:
        """Let go of all other keys, unless these are about as many, or so few: the table is made anew for that."""
        table = self.tables.get(space)
        if table is not None and len(table) > (2 * len(numbers) + least if least else 0):
            table.keep(numbers)

    @property
    def bytes(self) -> int:
        return sum(t.bytes for t in self.tables.values())
