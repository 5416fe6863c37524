"""Results that are held: columns of stream positions, one a component, made when they are first looked at.

Matches of a SEQ stand in the order of the answer: by the last event, then by the others from the first on. In *lexical*
order they stand from the first event on: what one more event at the end is listed from. These have small numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.kernels import group, listing, memory, reuse

Index = NDArray[np.int64]
Small = NDArray[np.int32]
Column = NDArray[Any]  # int64, or int32 in lexical order
_LINE = 8  # numbers
_PARTS = 64  # lots of matches that are merged at once
Test = Callable[[list[Column]], Small]  # columns -> the rows that stay


def small(n: int) -> Small:
    """Room for so many small numbers."""
    return memory.empty((n + 1) // 2).view(np.int32)[:n]


def rooms(n: int, width: int) -> list[Index]:
    """Room for so many columns, in one piece: large ones come in large pages, and each begins a line of the cache."""
    apart = -(-n // _LINE) * _LINE
    room = memory.empty(apart * width)
    return [room[i * apart : i * apart + n] for i in range(width)]


def taken(column: Column, rows: Small, *, lexical: bool = False) -> Column:
    """The values at some rows, as small numbers in lexical order."""
    out = small(len(rows)) if lexical else memory.empty(len(rows))
    reuse.take(column, rows, out)
    return out


class Held(ABC):
    """Matches of so many components (`width`)."""

    width: int
    lexical: bool = False

    def __init__(self) -> None:
        self._columns: dict[int, Column] = {}
        self._once: dict[Hashable, Column] = {}

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _column(self, place: int) -> Column: ...

    def column(self, place: int) -> Column:
        """The positions of one component's events."""
        if place not in self._columns:
            self._columns[place] = self._column(place)
        return self._columns[place]

    def once(self, key: Hashable, make: Callable[[], Column]) -> Column:
        """What is found out of all matches, for all who are computed from them."""
        if key not in self._once:
            self._once[key] = make()
        return self._once[key]

    @property
    def bytes(self) -> int:
        """What is held beside the results themselves."""
        return 0

    @property
    def columns(self) -> list[Column]:
        return [self.column(i) for i in range(self.width)]

    @cached_property
    def in_lexical_order(self) -> Held:
        """The same matches by their first event, then the second, and so on: sorted once for all who ask."""
        return self if self.lexical else self._in_lexical_order()

    def _in_lexical_order(self) -> Held:
        return in_lexical_order(self.columns)

    def in_any_order(self) -> Held:
        """The same matches in whichever order costs least."""
        return self

    def keep(self, places: Sequence[int], test: Test) -> Held:
        """The matches that pass a test of some components."""
        return Kept(self, test([self.column(p) for p in places]))


class Listed(Held):
    """Columns as they are."""

    def __init__(self, columns: Sequence[Column], *, lexical: bool = False) -> None:
        super().__init__()
        self._columns = dict(enumerate(columns))
        self.width, self.lexical = len(columns), lexical

    def __len__(self) -> int:
        return len(self._columns[0])

    def _column(self, place: int) -> Column:
        raise AssertionError(place)


def nothing(width: int) -> Held:
    return Listed([np.empty(0, np.int64)] * width)


class Kept(Held):
    """Some rows of other matches, in their order."""

    def __init__(self, source: Held, rows: Small) -> None:
        super().__init__()
        self.source, self.rows, self.width, self.lexical = source, rows, source.width, source.lexical

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def bytes(self) -> int:
        return self.rows.nbytes + self.source.bytes

    def _column(self, place: int) -> Column:
        return taken(self.source.column(place), self.rows, lexical=self.lexical)


class Expanded(Held):
    """Matches with one more component at `place`: rows of the others, and the events of the new one."""

    def __init__(self, source: Held, place: int, rows: Small, events: Column, *, lexical: bool = False) -> None:
        super().__init__()
        self.source, self.rows, self.width, self.lexical = source, rows, source.width + 1, lexical
        self.place = place
        self._columns[place] = events

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def bytes(self) -> int:
        return self.rows.nbytes + self.source.bytes

    def _column(self, place: int) -> Column:
        return taken(self.source.column(place - (place > self.place)), self.rows, lexical=self.lexical)


class Merged(Held):
    """Lots of matches that share none, in one order."""

    def __init__(self, parts: Sequence[Held]) -> None:
        super().__init__()
        self.parts, self.width = parts, parts[0].width

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @cached_property
    def _merged(self) -> list[Column]:
        parts = [part.columns for part in self.parts]
        while True:
            lots = [parts[i : i + _PARTS] for i in range(0, len(parts), _PARTS)]
            parts = [_merged(lot) for lot in lots]
            if len(parts) == 1:
                return parts[0]

    def _column(self, place: int) -> Column:
        return self._merged[place]


def _merged(parts: list[list[Column]]) -> list[Column]:
    out = rooms(sum(len(columns[0]) for columns in parts), len(parts[0]))
    reuse.merge(parts, out)
    return out


def projected(source: Held, places: Sequence[int]) -> Held:
    """Some components only; equal matches are one."""
    columns = [source.column(p) for p in places]
    order = group.order_of(columns, columns)
    if order is not None:
        columns = [c[order] for c in columns]
    begins = np.zeros(len(source), np.uint8)
    for c in columns:
        reuse.mark_changes(c, begins)
    rows = np.flatnonzero(begins)
    return Listed(columns if len(rows) == len(begins) else [c[rows] for c in columns])


# Lexical order --------------------------------------------------------------------------------------------------------

_BITS, _PACKED = 16, 64  # of the distance from a match's first event, and of a match that is one number
_SPARSE = 4  # positions for each match from which they are sorted by comparing


def in_lexical_order(columns: list[Column]) -> Held:
    """Matches in the order of the answer, in lexical order."""
    n, width = len(columns[0]), len(columns)
    room = small(n * width)
    out = [room[i * n : (i + 1) * n] for i in range(width)]
    if width == 1 or n == 0:
        for to, column in zip(out, columns, strict=True):
            to[:] = column
        return Listed(out, lexical=True)
    low, high, far = reuse.widths(columns[0], columns[-1])
    bits = max(far.bit_length(), 1)
    firsts = high - low + 1
    if firsts <= _SPARSE * n and (width - 1) * bits <= _PACKED:
        keys, spare = (_keys(n, (width - 1) * bits) for _ in range(2))
        listing.lexical(columns, low, bits, keys, spare, small(firsts + 1).view(np.uint32), out)
        return Listed(out, lexical=True)
    if bits <= _BITS and (width - 1) * bits + firsts.bit_length() <= _PACKED:
        keys = memory.empty(n).view(np.uint64)
        reuse.pack(columns, low, bits, keys)
        keys.sort()
        reuse.unpack(keys, low, bits, out)
        return Listed(out, lexical=True)
    order: Small = np.arange(n, dtype=np.int32)
    for column in columns[-2::-1]:
        order = _ordered(column, order)
    return Listed([taken(c, order, lexical=True) for c in columns], lexical=True)


def _keys(n: int, bits: int) -> NDArray[Any]:
    """Room for n numbers of so many bits."""
    return small(n).view(np.uint32) if bits <= 32 else memory.empty(n).view(np.uint64)


def _ordered(column: Column, order: Small) -> Small:
    """A stable order by a column of rows that are in some order already."""
    least, out = int(column.min()), small(len(order))
    reuse.ordered(column, least, small(int(column.max()) - least + 2), order, out)
    return out
