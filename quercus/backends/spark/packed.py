"""What is packed for the way: columns of a table as text, to a worker; rows of several tables as bytes, from one."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator

import pyarrow as pa


def packed(columns: pa.Schema) -> str:
    """
    >>> unpacked(packed(pa.schema({"x": pa.int64()}))).names
    ['x']
    """
    return b64encode(columns.serialize()).decode()


def unpacked(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.BufferReader(b64decode(text)))


BODY = "query int, body binary"  # the number of a query, and rows of its answer as Arrow IPC
ROWS = 1 << 16  # of one batch of the answer


def bodies(number: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows of the answer of one query of several, in the columns of BODY."""
    for batch in rows.to_batches(ROWS):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch(
            {"query": pa.array([number], pa.int32()), "body": pa.array([sink.getvalue().to_pybytes()], pa.binary())}
        )


def opened(output: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of an answer, out of what workers handed on."""
    columns = unpacked(output)
    for batch in batches:
        for body in batch.column(0):
            with pa.ipc.open_stream(body.as_buffer()) as reader:
                yield from reader.read_all().cast(columns).to_batches()
