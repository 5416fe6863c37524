"""The state of a continuous query that goes on, as bytes: Arrow IPC, with JSON in its metadata, and a digest.

Tables one after the other, as the parts of the query give them; what a part has as bytes is a table of one value.
Nothing in them is code; what does not agree with itself, with this version or with the query is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from quercus.errors import DataError
from quercus.schema import Schema

VERSION = 2
_META = b"quercus_continuous"
_BYTES = "__bytes"


def identity(text: str, schemas: Mapping[str, Schema]) -> str:
    """What a snapshot must agree with."""
    told = [text, {name: schema.to_dict() for name, schema in schemas.items()}]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def write(facts: Mapping[str, Any], parts: list[pa.Table | bytes], query: str) -> bytes:
    said = {"version": VERSION, "query": query, "parts": len(parts), **facts}
    tables = [pa.table({_BYTES: pa.array([p], pa.binary())}) if isinstance(p, bytes) else p for p in parts]
    sink = pa.BufferOutputStream()
    head = pa.table({"version": [VERSION]}).replace_schema_metadata({_META: json.dumps(said)})
    for table in (head, *tables):
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    return body + hashlib.sha256(body).digest()


def read(data: object, query: str) -> tuple[dict[str, Any], list[pa.Table | bytes]]:
    """The facts and the parts; a `DataError` for whatever is no state of this query."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise DataError(f"a snapshot is bytes, not a {type(data).__name__}")
    body, digest = bytes(data)[:-32], bytes(data)[-32:]
    if hashlib.sha256(body).digest() != digest:
        raise DataError("not a snapshot of a continuous query, or one that was cut off or changed")
    try:
        source = pa.BufferReader(body)
        with pa.ipc.open_stream(source) as reader:
            facts = json.loads(reader.read_all().schema.metadata[_META])
        if facts["version"] != VERSION:
            raise DataError(f"a snapshot of version {facts['version']}; this is version {VERSION}")
        if facts["query"] != query:
            raise DataError("the snapshot belongs to another query or other schemas")
        parts: list[pa.Table | bytes] = []
        for _ in range(facts["parts"]):
            with pa.ipc.open_stream(source) as reader:
                table = reader.read_all()
            table.validate(full=True)
            parts.append(table[_BYTES][0].as_py() if table.column_names == [_BYTES] else table)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, AttributeError) as e:
        told = str(e).splitlines()[0] if str(e) else type(e).__name__
        raise DataError(f"not a snapshot of a continuous query: {told}") from e
    return facts, parts
