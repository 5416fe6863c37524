"""A column of values with its nulls: what events hand over and expressions compute with."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from numpy.typing import NDArray

from quercus.kernels import gather

Kind = Literal["int64", "float64", "bool", "string", "timestamp"]
Mask = NDArray[np.bool_]


@frozen(eq=False)
class Values:
    """`data` is int64 (timestamps too), float64, uint8 for bool, or a pa.Array of (large) strings.

    `valid` is None where nothing is null; where it is False, `data` is anything.
    """

    kind: Kind
    data: Any
    valid: Mask | None = None

    def __len__(self) -> int:
        return len(self.data)

    def take(self, at: NDArray[np.int64]) -> Values:
        """The values at some places."""
        valid = None if self.valid is None else self.valid[at]
        if valid is not None and valid.all():
            valid = None
        if self.kind == "string":
            data = self.data.take(pa.array(at))
        elif self.kind == "bool" or not (self.data.flags.c_contiguous and at.flags.c_contiguous):
            data = self.data[at]
        else:
            data = gather.take(self.data, at)
        return Values(self.kind, data, valid)

    def as_float(self) -> Values:
        """Integers as float64; others as they are."""
        return Values("float64", self.data.astype(np.float64), self.valid) if self.kind == "int64" else self

    def to_arrow(self, timestamp: pa.DataType | None = None) -> pa.Array:
        """The values as an Arrow array; of type `timestamp`, where they are timestamps and it is given."""
        mask = None if self.valid is None else ~self.valid
        match self.kind:
            case "string":
                if mask is None or (pc.is_null(self.data).to_numpy(zero_copy_only=False) >= mask).all():
                    return self.data
                return pc.if_else(pa.array(self.valid), self.data, None)
            case "bool":
                return pa.array(self.data.astype(np.bool_), mask=mask)
            case "timestamp":
                return pa.array(self.data, mask=mask).view(timestamp or pa.timestamp("us"))
            case _:
                return pa.array(self.data, mask=mask)


def from_arrow(column: Any) -> Values:
    """The values of an Arrow array or column of the types that conform() leaves; views where Arrow allows."""
    array = combined(column)
    t = array.type
    if pa.types.is_dictionary(t):
        array, t = array.cast(t.value_type), t.value_type
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False) if array.null_count else None
    if pa.types.is_string(t) or pa.types.is_large_string(t):
        return Values("string", array, valid)
    if pa.types.is_boolean(t):
        return Values("bool", array.cast(pa.uint8()).fill_null(0).to_numpy(), valid)
    if pa.types.is_timestamp(t):
        return Values("timestamp", raw(array.view(pa.int64()), np.int64), valid)
    if t == pa.int64():
        return Values("int64", raw(array, np.int64), valid)
    assert t == pa.float64(), t
    return Values("float64", raw(array, np.float64), valid)


def combined(column: Any) -> pa.Array:
    """A column as one array, without a copy where it has one chunk."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) and column.nbytes >= 2**31:
        column = column.cast(pa.large_string())
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def raw(array: pa.Array, dtype: Any) -> NDArray[Any]:
    """The values buffer of a primitive array, whatever stands at its nulls."""
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype)[array.offset : array.offset + len(array)]
