"""The values of columns as Python has them, or as text where it has none: nanoseconds, and years beyond 9999."""

from __future__ import annotations

import datetime
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """As Python values; nanoseconds, which Python has no time for, as text, also inside of others."""
    if isinstance(column, pa.ChunkedArray):
        return [v for chunk in column.chunks for v in values(chunk)]
    kind = column.type
    if pa.types.is_struct(kind):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        fields = zip(*(values(column.field(i)) for i in range(kind.num_fields)), strict=True)
        there = column.is_valid().to_pylist()
        return [dict(zip(names, f, strict=True)) if v else None for v, f in zip(there, fields, strict=True)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = iter(values(column.flatten()))
        sizes = pc.list_value_length(column).to_pylist()
        return [None if n is None else list(islice(inner, n)) for n in sizes]
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return [None if v is None else _nanoseconds(v) for v in column.cast(pa.int64()).to_pylist()]
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):  # times that Python has no year for
        return list(column.cast(pa.string()).to_pylist())


def records(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows; times in years that Python has no date for are text."""
    try:
        return list(table.to_pylist())
    except (ValueError, OverflowError):
        return [
            dict(zip(table.schema.names, row, strict=True)) for row in zip(*map(values, table.columns), strict=True)
        ]


def _nanoseconds(v: int) -> str:
    at = datetime.datetime.fromtimestamp(v // 10**9, datetime.UTC).replace(tzinfo=None)
    return at.isoformat(" ") + (f".{v % 10**9:09}" if v % 10**9 else "")
