"""The state of a live cube as bytes: Arrow IPC with JSON facts and a digest, never code.

A table of the queries, each with its text and, where it is computed alone, the snapshot of its own stream; the events
of the last window that queries share; and those that wait for their turn. What is shared is made again from these.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from quercus.adapt import Adapt, Switch
from quercus.backends.base import Limits
from quercus.backends.local.cube.live import Member
from quercus.backends.local.cube.recent import Recent
from quercus.backends.local.delay import gathered
from quercus.backends.local.inputs import as_table
from quercus.backends.local.specs import Index
from quercus.backends.local.stream import Stream
from quercus.backends.local.values import combined, raw
from quercus.errors import DataError
from quercus.kernels import group
from quercus.schema import Schema

if TYPE_CHECKING:
    from quercus.backends.local.cube.stream import CubeStream, Planning

VERSION = 1
_META = b"quercus_cube_stream"
_PLACE, _ROW = "__place", "__row"
_NUMBERS = ("clock", "place", "seen", "rows", "dropped", "delay")


def taken(s: CubeStream) -> bytes:
    """The state of a stream between two pushes."""
    members = list(s._members.values())
    queries = pa.table(
        {
            "name": pa.array([m.name for m in members], pa.string()),
            "text": pa.array([m.plan.text for m in members], pa.string()),
            "since": pa.array([m.since for m in members], pa.int64()),
            "stream": pa.array(
                [s._streams[m.name].snapshot() if m.name in s._streams else None for m in members], pa.large_binary()
            ),
        }
    )
    facts = {
        "version": VERSION,
        "schema": s.schema.to_dict(),
        "clock": s._now,
        "place": s._place,
        "seen": s._latest,
        "rows": s._pushed,
        "dropped": s.dropped,
        "delay": s._delay,
        "late": s.late,
        "switches": [k.told() for k in s.switches],
    }
    waiting, rows = as_table([], s.schema, None), s._waiting.rows
    if len(s._waiting):
        waiting = gathered(s._waiting.events.pieces, rows, s._names)
    sink = pa.BufferOutputStream()
    for table in (
        queries.replace_schema_metadata({_META: json.dumps(facts)}),
        _numbered(s._recent.table, s._recent.places, s._recent.rows),
        _numbered(waiting, np.full(len(waiting), -1), rows),
    ):
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    return body + hashlib.sha256(body).digest()


def restored(
    planning: Planning, schema: Schema, state: bytes, *, limits: Limits | None, adapt: bool | Adapt
) -> CubeStream:
    """A stream that goes on from a state; a `DataError` for whatever is none of this schema."""
    from quercus.backends.local.cube.stream import CubeStream

    queries, recent, waiting, facts = _read(state, schema)
    try:
        members: dict[str, Member] = {}
        for q in queries:
            members[q["name"]] = Member(q["name"], planning.compiled(q["name"], q["text"]), q["since"])
        if len(members) != len(queries) or not members:
            raise DataError("not a snapshot of a cube's stream: its queries cannot be")
        plans = {name: m.plan for name, m in members.items()}
        s = CubeStream(
            plans, planning.of(plans), max_delay=facts["delay"], late=facts["late"], limits=limits, adapt=adapt
        )
        s._now, s._place, s._latest, s._pushed = (facts[k] for k in ("clock", "place", "seen", "rows"))
        s.dropped, s.switches = facts["dropped"], [Switch.of(k) for k in facts["switches"]]
        s._members, s._recent = members, recent
        s._look_at = s._pushed + s._asked.every
        s._streams = {
            q["name"]: Stream.restore(plans[q["name"]], q["stream"], limits=limits, adapt=adapt)
            for q in queries
            if q["stream"] is not None
        }
        alone = {name for name, other in s._streams.items() if other.clock == s.clock}
        if len(alone) != len(s._streams):
            raise DataError("not a snapshot of a cube's stream: the clocks of its queries differ")
        s._switch(s._best())
        table, ts, rows = waiting
        s._waiting.restore(table, ts, rows)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, pa.ArrowException) as e:
        raise DataError(f"not a snapshot of a cube's stream: {e}") from e
    return s


def _numbered(events: pa.Table, places: Index, rows: Index) -> pa.Table:
    for name, values in ((_PLACE, places), (_ROW, rows)):
        events = events.append_column(name, pa.array(values, pa.int64()))
    return events


def _read(
    data: bytes, schema: Schema
) -> tuple[list[dict[str, Any]], Recent, tuple[pa.Table, Index, Index], dict[str, Any]]:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise DataError(f"a snapshot is bytes, not a {type(data).__name__}")
    data = bytes(data)
    body, digest = data[:-32], data[-32:]
    if hashlib.sha256(body).digest() != digest:
        raise DataError("not a snapshot of a cube's stream, or one that was cut off or changed")
    try:
        source = pa.BufferReader(body)
        tables: list[pa.Table] = []
        for _ in range(3):
            with pa.ipc.open_stream(source) as reader:
                tables.append(reader.read_all())
        for t in tables:
            t.validate(full=True)
        facts = json.loads(tables[0].schema.metadata[_META])
        if facts["version"] != VERSION:
            raise DataError(f"a snapshot of version {facts['version']}; this is version {VERSION}")
        if facts["schema"] != json.loads(json.dumps(schema.to_dict())):
            raise DataError("the snapshot belongs to a cube of another schema")
        kept, waiting = (_events(t, schema) for t in tables[1:])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, AttributeError) as e:
        raise DataError(f"not a snapshot of a cube's stream: {str(e) or type(e).__name__}") from e
    _check(facts, kept, waiting)
    table, ts, places, rows = kept
    return tables[0].to_pylist(), Recent(table, schema, ts, places, rows), (waiting[0], waiting[1], waiting[3]), facts


def _events(t: pa.Table, schema: Schema) -> tuple[pa.Table, Index, Index, Index]:
    places, rows = (t.column(name).to_numpy().astype(np.int64) for name in (_PLACE, _ROW))
    table = as_table(t.drop_columns([_PLACE, _ROW]).replace_schema_metadata(None), schema, None)
    return table, raw(combined(table.column(schema.time)).view(pa.int64()), np.int64), places, rows


def _check(
    facts: dict[str, Any], kept: tuple[pa.Table, Index, Index, Index], waiting: tuple[pa.Table, Index, Index, Index]
) -> None:
    """What it says of itself can be, and its events are in order."""
    sound = all(type(facts.get(n)) is int for n in _NUMBERS) and facts.get("late") in ("error", "drop")
    sound = sound and 0 <= facts["dropped"] <= facts["rows"] and 0 <= facts["place"] <= facts["rows"]
    sound = sound and 0 <= facts["delay"] < 2**62 and type(facts.get("switches")) is list
    if sound:
        _, ts, places, rows = kept
        sound = group.is_sorted(ts) and group.is_sorted(places) and (not len(ts) or int(ts[-1]) <= facts["clock"])
        sound = sound and (not len(places) or (int(places[0]) >= 0 and int(places[-1]) < facts["place"]))
        sound = sound and group.is_sorted(waiting[1])
        for r in (rows, waiting[3]):
            sound = sound and (not len(r) or (int(r.min()) >= 0 and int(r.max()) < facts["rows"]))
    if not sound:
        raise DataError("not a snapshot of a cube's stream: what it says of itself cannot be")
