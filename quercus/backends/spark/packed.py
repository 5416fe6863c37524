"""Columns of a table as text, on their way to a worker."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pyarrow as pa


def packed(columns: pa.Schema) -> str:
    """
    >>> unpacked(packed(pa.schema({"x": pa.int64()}))).names
    ['x']
    """
    return b64encode(columns.serialize()).decode()


def unpacked(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.BufferReader(b64decode(text)))
