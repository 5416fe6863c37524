"""The state of a pattern window over a stream as bytes: Arrow IPC with JSON in its metadata, and a digest.

Tables one after the other: the tuples that are needed with their positions; of each pattern window the open
ones, and what they took in. Nothing in them is code; what does not agree with itself, with this version or with the
windows is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from attrs import frozen

from quercus.backends.local.specs import Index
from quercus.errors import DataError
from quercus.ir.window import PatternWindow
from quercus.schema import Schema

VERSION = 2
_META = b"quercus_windows"
_POSITION = "__position"
_WINDOW = ("group", "first", "prev", "ready", "iter", "num")
_TAKEN = ("owner", "tuple")


@frozen(eq=False)
class State:
    """`windows` and `taken` are what the kernel gives; tuples by their place in the table."""

    tuples: pa.Table | None  # None: there were none yet
    positions: Index
    windows: list[Index]  # of each pattern window
    taken: list[Index]
    position: int  # of the next tuple
    clock: int  # the time of the last one


def identity(ws: Sequence[PatternWindow], schema: Schema) -> str:
    """What a snapshot must agree with."""
    told = [*map(repr, ws), schema.to_dict()]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def write(state: State, ws: Sequence[PatternWindow], schema: Schema) -> bytes:
    facts = {"version": VERSION, "window": identity(ws, schema), "position": state.position, "clock": state.clock}
    tuples = pa.table({}) if state.tuples is None else state.tuples
    if state.tuples is not None:
        tuples = tuples.append_column(_POSITION, pa.array(state.positions, pa.int64()))
    sink = pa.BufferOutputStream()
    parts = [tuples.replace_schema_metadata({_META: json.dumps(facts)})]
    for pair in zip(state.windows, state.taken, strict=True):
        for names, rows in zip((_WINDOW, _TAKEN), pair, strict=True):
            parts.append(pa.table({n: np.ascontiguousarray(rows[:, i]) for i, n in enumerate(names)}))
    for table in parts:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    return body + hashlib.sha256(body).digest()


def read(data: bytes, ws: Sequence[PatternWindow], schema: Schema) -> State:
    """The state; a `DataError` for whatever is none of these windows."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise DataError(f"a snapshot is bytes, not a {type(data).__name__}")
    data = bytes(data)
    body, digest = data[:-32], data[-32:]
    if hashlib.sha256(body).digest() != digest:
        raise DataError("not a snapshot of pattern windows, or one that was cut off or changed")
    try:
        source = pa.BufferReader(body)
        tables: list[pa.Table] = []
        for _ in range(1 + 2 * len(ws)):
            with pa.ipc.open_stream(source) as reader:
                tables.append(reader.read_all())
        for t in tables:
            t.validate(full=True)
        tuples, *listed = tables
        facts = json.loads(tuples.schema.metadata[_META])
        if facts["version"] != VERSION:
            raise DataError(f"a snapshot of version {facts['version']}; this is version {VERSION}")
        if facts["window"] != identity(ws, schema):
            raise DataError("the snapshot belongs to another pattern window or another schema")
        tuples = tuples.replace_schema_metadata(None)
        positions = np.empty(0, np.int64)
        if len(tuples.column_names):
            positions = tuples.column(_POSITION).to_numpy().astype(np.int64)
            tuples = tuples.drop_columns([_POSITION])
        state = State(
            tuples if len(tuples.column_names) else None,
            positions,
            [_rows(t, _WINDOW) for t in listed[::2]],
            [_rows(t, _TAKEN) for t in listed[1::2]],
            int(facts["position"]),
            int(facts["clock"]),
        )
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, AttributeError) as e:
        told = str(e).splitlines()[0] if str(e) else type(e).__name__
        raise DataError(f"not a snapshot of pattern windows: {told}") from e
    places = np.concatenate([*(r[:, c] for r in state.windows for c in (1, 2)), *(t[:, 1] for t in state.taken)])
    if len(places) and not (places.min() >= 0 and places.max() < len(positions)):
        raise DataError("not a snapshot of pattern windows: a tuple that is not there")
    return state


def _rows(table: pa.Table, names: tuple[str, ...]) -> Index:
    return np.column_stack([table.column(n).to_numpy().astype(np.int64) for n in names]).reshape(-1, len(names))
