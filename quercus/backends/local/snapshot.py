"""The state of a stream as bytes: Arrow IPC, with what is said once as JSON in the schema's metadata, and a digest.

Tables one after the other: the events that are kept or wait for their turn, the keys with the next position of their
own streams, the rows of matches that must not be given again, and, where sub-queries have views, what these hold.
Nothing in them is code; what does not agree with itself, with this version or with the plan is refused.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from attrs import frozen

from quercus.backends.local.specs import Index
from quercus.errors import DataError
from quercus.plan import Plan

VERSION = 1
_META = b"quercus_stream"
_PLACE, _ROW, _POSITION = "__place", "__row", "__position"


@frozen(eq=False)
class State:
    """What a stream is made of. `places`: of kept events, in order; -1 for events that wait for their turn."""

    events: pa.Table
    places: Index
    rows: Index
    positions: Index
    keys: list[Any]  # JSON values, or lists of them
    next_positions: Index
    given: list[Any]
    facts: dict[str, Any]  # numbers and texts
    views: pa.Table | None = None  # of sub-queries; older snapshots have none


def identity(plan: Plan) -> str:
    """What a snapshot must agree with: the query and its schema, whatever the shape of the plan."""
    told = json.dumps([plan.text, plan.schema.to_dict()], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def write(state: State, plan: Plan) -> bytes:
    facts = {"version": VERSION, "plan": identity(plan), **state.facts}
    keys = pa.table({"key": [json.dumps(k) for k in state.keys], "next": pa.array(state.next_positions, pa.int64())})
    given = pa.table({"match": [json.dumps(g) for g in state.given]})
    events = state.events
    for name, values in ((_PLACE, state.places), (_ROW, state.rows), (_POSITION, state.positions)):
        events = events.append_column(name, pa.array(values, pa.int64()))
    sink = pa.BufferOutputStream()
    views = [] if state.views is None else [state.views]
    for table in (events.replace_schema_metadata({_META: json.dumps(facts)}), keys, given, *views):
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    return body + hashlib.sha256(body).digest()


def read(data: bytes, plan: Plan) -> State:
    """The state; a `DataError` for whatever is none of this plan."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise DataError(f"a snapshot is bytes, not a {type(data).__name__}")
    data = bytes(data)
    body, digest = data[:-32], data[-32:]
    if hashlib.sha256(body).digest() != digest:
        raise DataError("not a snapshot of a stream, or one that was cut off or changed")
    try:
        source = pa.BufferReader(body)
        tables: list[pa.Table] = []
        while len(tables) < 3 or (len(tables) == 3 and source.tell() < len(body)):
            with pa.ipc.open_stream(source) as reader:
                tables.append(reader.read_all())
        events, keys, given, *views = tables
        for t in tables:
            t.validate(full=True)
        facts = json.loads(events.schema.metadata[_META])
        if facts["version"] != VERSION:
            raise DataError(f"a snapshot of version {facts['version']}; this is version {VERSION}")
        if facts["plan"] != identity(plan):
            raise DataError("the snapshot belongs to the plan of another query or another schema")
        own = {name: events.column(name).to_numpy().astype(np.int64) for name in (_PLACE, _ROW, _POSITION)}
        return State(
            events.drop_columns([_PLACE, _ROW, _POSITION]).replace_schema_metadata(None),
            own[_PLACE],
            own[_ROW],
            own[_POSITION],
            [json.loads(k) for k in keys.column("key").to_pylist()],
            keys.column("next").to_numpy().astype(np.int64),
            [json.loads(g) for g in given.column("match").to_pylist()],
            facts,
            views[0] if views else None,
        )
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, AttributeError) as e:
        raise DataError(f"not a snapshot of a stream: {str(e).splitlines()[0] if str(e) else type(e).__name__}") from e
