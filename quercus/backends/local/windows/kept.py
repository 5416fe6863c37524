"""The rows of tuples that are kept: numbers and strings row by row in a kernel, anything else as it came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quercus.backends.local.events import string_buffers
from quercus.backends.local.history import concatenated
from quercus.backends.local.specs import Index
from quercus.backends.local.values import combined, raw
from quercus.kernels import rows

LARGE = 2**16  # rows of a piece that is merged with no later one
Bytes = NDArray[np.uint8]


class Kept:
    """Rows by place, in the order in which they were added."""

    def __init__(self) -> None:
        self._schema: pa.Schema | None = None
        self._rows: rows.Rows | None = None  # None: they are in pieces
        self._pieces: list[pa.Table] = []

    @property
    def bytes(self) -> int:
        return int(sum(p.nbytes for p in self._pieces)) if self._rows is None else self._rows.bytes

    def add(self, table: pa.Table, wanted: Bytes | None = None) -> None:
        """More rows; of those that are not `wanted`, none will be asked for."""
        if self._schema is None:
            self._schema = table.schema
            if all(map(_is_known, table.schema.types)):
                self._rows = rows.Rows([_is_text(t) for t in table.schema.types])
        if self._rows is not None and table.schema.equals(self._schema):
            try:
                return self._rows.add([_column(c) for c in table.columns], wanted)
            except OverflowError:  # a string that is too long
                pass
        if self._rows is not None:
            self._change()
        self._pieces.append(table)
        while len(self._pieces) > 1 and len(self._pieces[-2]) < min(2 * len(self._pieces[-1]), LARGE):
            self._pieces[-2:] = [concatenated(self._pieces[-2:]).combine_chunks()]

    def _change(self) -> None:
        """From rows to pieces; rows that nobody wants are nulls there."""
        assert self._rows is not None
        there, size = self._rows.there(), len(self._rows)
        at, absent = np.zeros(size, np.int64), np.ones(size, np.bool_)
        at[there], absent[there] = np.arange(len(there)), False
        self._pieces = [self.take(there).take(pa.array(at, mask=absent)).combine_chunks()] if size else []
        self._rows = None

    def take(self, places: Index) -> pa.Table:
        """The rows at some places, ascending."""
        if self._rows is not None:
            try:
                found = self._rows.take(places)
            except OverflowError:  # more strings than an array may hold
                half = len(places) // 2
                return concatenated([self.take(places[:half]), self.take(places[half:])])
            types = self._schema.types  # type: ignore[union-attr]
            return pa.Table.from_arrays([_array(t, *f) for t, f in zip(types, found, strict=True)], schema=self._schema)
        parts: list[pa.Table] = []
        begin = 0
        for p in self._pieces:
            first, last = np.searchsorted(places, [begin, begin + len(p)])
            if first < last or not parts:
                parts.append(p.take(pa.array(places[first:last] - begin, pa.int64())))
            begin += len(p)
        return concatenated(parts)

    def keep(self, places: Index) -> None:
        """Let go of all other rows."""
        if self._rows is not None:
            self._rows.keep(places)
        elif self._pieces:
            self._pieces = [self.take(places).combine_chunks()]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_word(kind: pa.DataType) -> bool:
    """Whether it has eight bytes a value."""
    return bool(pa.types.is_int64(kind) or pa.types.is_float64(kind) or pa.types.is_timestamp(kind))


def _is_known(kind: pa.DataType) -> bool:
    return _is_text(kind) or _is_word(kind) or bool(pa.types.is_boolean(kind))


def _column(column: pa.ChunkedArray) -> rows.Column:
    """As the kernel reads it."""
    array = combined(column)
    known = array.is_valid().to_numpy(zero_copy_only=False).view(np.uint8) if array.null_count else None
    if _is_text(array.type):
        found = string_buffers(array)
        return found["offsets"], found["data"], known
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), known
    return raw(array, np.int64), known


def _array(kind: pa.DataType, values: NDArray[Any], *more: Bytes | None) -> pa.Array:
    """As it was given."""
    size, known = len(values) - _is_text(kind), more[-1]
    nulls = None if known is None or known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    if pa.types.is_boolean(kind):
        values = np.packbits(values.astype(np.bool_), bitorder="little")
    elif pa.types.is_string(kind):
        values = values.astype(np.int32)
    return pa.Array.from_buffers(kind, size, [nulls, *map(pa.py_buffer, (values, *more[:-1]))])
