"""Views of sub-queries in a snapshot: what each holds, for whoever keeps the same results of the same events.

A stretch is a row of a table. Events are told by their positions, segments by the row of their first event, and values
that choose a part as they are. A view goes to a sub-query that keeps the same: others find their results again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import pyarrow as pa

from quercus.errors import DataError
from quercus.ir import tree as t

if TYPE_CHECKING:
    from quercus.backends.local.incremental import Engine
    from quercus.backends.local.specs import SubSpec
    from quercus.kernels.match import Stretch

VERSION = 1
SCHEMA = pa.schema(
    [
        ("view", pa.int64()),
        ("segment", pa.int64()),
        ("values", pa.string()),
        ("found", pa.bool_()),  # of flags: whether there is a result
        ("from", pa.int64()),
        ("to", pa.int64()),
        ("records", pa.large_list(pa.int64())),
    ]
)


def told(engine: Engine) -> tuple[pa.Table, dict[str, Any]]:
    """The views of a stream, and what is said of them once. All that can go has been purged."""
    subs = engine.program.subs
    stretches = [(i, s) for i in range(len(subs)) for s in engine.matcher.view(i)]
    texts = engine.labels.texts() if any(any(_are_texts(engine, s)) for s in subs) else []
    values = [json.dumps(_named(s[1], _are_texts(engine, subs[i]), texts)) for i, s in stretches]
    records = [s[5] for _, s in stretches]
    offsets = np.cumsum([0, *(len(r) for r in records)], dtype=np.int64)
    flat = pa.array(np.concatenate(records) if records else np.empty(0, np.int64))
    columns = [pa.array([i for i, _ in stretches], pa.int64()), *_columns(stretches)]
    columns.insert(2, pa.array(values, pa.string()))
    columns.append(pa.LargeListArray.from_arrays(pa.array(offsets), flat))
    facts = {
        "version": VERSION,
        "subs": [identity(engine, s) for s in subs],
        "marks": [engine.matcher.marks(i) for i in range(len(subs))],
    }
    return pa.table(columns, schema=SCHEMA), facts


def restore(engine: Engine, table: pa.Table, facts: dict[str, Any]) -> None:
    """Fill the views of a stream that has its events again; a `DataError` for what these cannot have."""
    if facts["version"] != VERSION:
        return
    ids, marks = facts["subs"], facts["marks"]
    if not table.schema.equals(SCHEMA) or any(c.null_count for c in table.columns) or len(ids) != len(marks):
        raise DataError("not a snapshot of a stream: its views are not laid out as views are")
    views = table.column("view").to_numpy()
    if len(views) and (views.min() < 0 or views.max() >= len(ids) or (np.diff(views) < 0).any()):
        raise DataError("not a snapshot of a stream: it holds a view of no sub-query")
    values = [json.loads(v) for v in table.column("values").to_pylist()]
    if any(type(v) is not list or any(type(k) not in (int, str) for k in v) for v in values):
        raise DataError("not a snapshot of a stream: a part of a view has values that are none")
    texts = sorted({k for v in values for k in v if type(k) is str})
    labels = dict(zip(texts, _labels(engine, texts), strict=True))  # all at once: a new one may change those before
    wanted = [identity(engine, s) for s in engine.program.subs]
    reach = dict(sorted(zip(views.tolist(), table.column("to").to_pylist(), strict=True)))  # the greatest counts
    in_turn = range(len(ids)) if ids == wanted else sorted(range(len(ids)), key=lambda i: -reach.get(i, -(2**63)))
    for i in in_turn:  # of several views of the same, the one that reaches furthest first
        if ids[i] in wanted:
            number = wanted.index(ids[i])
            wanted[number] = ""
            first, last = np.searchsorted(views, [i, i + 1])
            kinds = [str if is_text else int for is_text in _are_texts(engine, engine.program.subs[number])]
            if any([type(k) for k in v] != kinds for v in values[first:last]):
                raise DataError("not a snapshot of a stream: a part of a view has values of another kind")
            chosen = [[labels.get(k, k) for k in v] for v in values[first:last]]
            held = _stretches(table.slice(int(first), int(last - first)), chosen)
            engine.matcher.set_view(number, tuple(marks[i]), held, engine.place)


def identity(engine: Engine, sub: SubSpec) -> str:
    """What a view must agree with to hold the same: its results, the values that choose a part, and the segments."""
    tree = engine.plan.tree
    said = (sub.strategy, sub.sparse, sub.flags, sub.kept, sub.tied, tree.partition_by, engine.keyed, tree.key)
    return hashlib.sha256(_text(said).encode()).hexdigest()


def _text(value: Any) -> str:
    """A part of the IR, without places in the text and expectations; equal ones have equal texts, in any process."""
    if isinstance(value, t.Estimate):
        return ""
    if isinstance(value, t.Predicate):
        return _text(value.expr)
    if attrs.has(type(value)):
        fields = [_text(getattr(value, a.name)) for a in attrs.fields(type(value)) if a.repr]
        return f"{type(value).__name__}({','.join(fields)})"
    if isinstance(value, tuple | list):
        return f"[{','.join(_text(v) for v in value)}]"
    if isinstance(value, frozenset | set):
        return f"{{{','.join(sorted(_text(v) for v in value))}}}"
    return repr(value)


def _columns(stretches: list[tuple[int, Stretch]]) -> list[pa.Array]:
    kinds = ((0, pa.int64()), (2, pa.bool_()), (3, pa.int64()), (4, pa.int64()))
    return [pa.array([s[k] for _, s in stretches], kind) for k, kind in kinds]


def _are_texts(engine: Engine, sub: SubSpec) -> list[bool]:
    """Which values of a part are strings."""
    return [engine.program.columns[c].text for _, c in sub.ties]


def _named(values: list[int], are_texts: list[bool], texts: list[str]) -> list[int | str]:
    """The values of a part, strings instead of their labels."""
    return [texts[v] if is_text else v for v, is_text in zip(values, are_texts, strict=True)]


def _labels(engine: Engine, texts: list[str]) -> list[int]:
    return engine.labels.of([pa.array(texts, pa.large_string())], engine.matcher)[0].tolist() if texts else []


def _stretches(table: pa.Table, values: list[list[int]]) -> Iterator[Stretch]:
    lists = table.column("records").combine_chunks()
    flat, offsets = lists.values.to_numpy(zero_copy_only=False), lists.offsets.to_numpy()
    if lists.values.null_count:
        raise DataError("not a snapshot of a stream: a view holds a result without events")
    plain = (table.column(name).to_pylist() for name in ("segment", "found", "from", "to"))
    for i, (segment, found, lo, hi) in enumerate(zip(*plain, strict=True)):
        records = np.ascontiguousarray(flat[offsets[i] : offsets[i + 1]], np.int64)
        yield segment, values[i], found, lo, hi, records
