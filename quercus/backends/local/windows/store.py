"""The tuples that open windows of a stream still need: their rows, their positions, and what conditions read of them.

A tuple's place is its number here. Places change when tuples are let go; the order of tuples never does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quercus.backends.local.specs import ColumnData, Index
from quercus.backends.local.windows.kept import Kept


class Growing:
    """An array that grows at its end."""

    def __init__(self, dtype: Any) -> None:
        self.room: NDArray[Any] = np.empty(64, dtype)
        self.size = 0

    @property
    def values(self) -> NDArray[Any]:
        return self.room[: self.size]

    def add(self, values: NDArray[Any]) -> None:
        size = self.size + len(values)
        if size > len(self.room):
            room = np.empty(max(size, 2 * len(self.room)), self.room.dtype)
            room[: self.size] = self.values
            self.room = room
        self.room[self.size : size] = values
        self.size = size

    def keep(self, places: Index) -> None:
        kept = self.values[places]
        self.room, self.size = np.empty(max(64, 2 * len(kept)), self.room.dtype), 0
        self.add(kept)


class Store:
    """The rows of tables that were pushed, and columns of numbers beside them."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.names: list[str] = []  # of the columns of the tables
        self.positions = Growing(np.int64)
        self.columns = [(Growing(np.float64 if k == "float64" else np.int64), Growing(np.uint8)) for k in kinds]
        self.kept = Kept()
        self.constants: Index = np.empty(0, np.int64)

    def __len__(self) -> int:
        return self.positions.size

    @property
    def bytes(self) -> int:
        return self.kept.bytes + 8 * len(self) * (1 + len(self.columns))

    def add(
        self, table: pa.Table, first: int, columns: Sequence[ColumnData], wanted: NDArray[np.uint8] | None = None
    ) -> None:
        """Tuples in order, from this position on. Of those that are not `wanted`, no rows will be asked for."""
        self.positions.add(np.arange(first, first + len(table)))
        for (values, known), (new, valid) in zip(self.columns, columns, strict=True):
            values.add(new)
            known.add(np.ones(len(new), np.uint8) if valid is None else valid)
        self.names = self.names or table.column_names
        self.kept.add(table.select(self.names), wanted)

    def loaded(self) -> list[ColumnData]:
        return [(values.values, known.values) for values, known in self.columns]

    def rows(self, places: Index) -> pa.Table:
        """The rows at some places, ascending."""
        return self.kept.take(places)

    def keep(self, places: Index) -> None:
        """Let go of all other tuples."""
        self.kept.keep(places)
        self.positions.keep(places)
        for values, known in self.columns:
            values.keep(places)
            known.keep(places)

    # labels of strings, as a matcher has them; two counts come before the columns

    def set_constants(self, constants: Index, maps: list[Index]) -> None:
        self.constants = constants

    def relabel(self, columns: list[int], moved: Index, constants: Index) -> None:
        """Strings have new labels: what was i is now moved[i]."""
        self.constants = constants
        for c in columns:
            values = self.columns[c - 2][0].values
            values[values >= 0] = moved[values[values >= 0]]

    def column(self, number: int) -> Index:
        return np.asarray(self.columns[number - 2][0].values)
