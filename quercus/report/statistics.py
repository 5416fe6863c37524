"""What is known of the events and of the conditions: types and rates, values, how much each test let through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from quercus.backends.local.events import Events
from quercus.backends.local.records import values
from quercus.compiler.explain import describe
from quercus.ir import pattern as p
from quercus.ir import tree as t
from quercus.ir.analysis import Analysis, places
from quercus.plan import Plan
from quercus.show.found import key_of
from quercus.show.values import plain, rows, short

if TYPE_CHECKING:
    from quercus.result import Matches

MOST_TYPES = 200
MOST_GROUPS = 2_000
SECONDS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def statistics(stream: Events) -> dict[str, Any]:
    """Types with their numbers and rates, and the attributes of all events together."""
    table, schema = stream.table, stream.schema
    counted = pc.value_counts(table.column(schema.type).cast(pa.string()).combine_chunks())
    kinds = sorted(((c["values"], c["counts"]) for c in counted.to_pylist()), key=lambda c: (-c[1], str(c[0])))
    span = int(stream.ts[-1]) - int(stream.ts[0]) if len(stream) else 0
    seconds = span / SECONDS[schema.time_unit]
    head = table.column(schema.time).combine_chunks()
    ends = values(pa.array([pc.min(head), pc.max(head)], head.type)) if len(stream) else [None, None]
    return {
        "types": [
            {"type": "null" if name is None else short(name), "events": n, "share": n / len(stream)}
            for name, n in kinds[:MOST_TYPES]
        ],
        "more": max(len(kinds) - MOST_TYPES, 0),
        "first": plain(ends[0]),
        "last": plain(ends[1]),
        "seconds": seconds,
        "attributes": [_attribute(n, table.column(n)) for n in table.column_names if n not in schema.special],
    }


def _attribute(name: str, column: pa.ChunkedArray) -> dict[str, Any]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    there = column.drop_null()
    bounds = {"min": None, "max": None}
    if len(there) and not pa.types.is_boolean(column.type):
        found = pc.min_max(there)
        bounds = {k: plain(values(pa.array([found[k]], column.type))[0]) for k in bounds}
    return {
        "name": short(name),
        "type": str(column.type),
        "nulls": column.null_count,
        "distinct": pc.count_distinct(there).as_py() if len(there) else 0,
        **bounds,
    }


def conditions(plan: Plan, stream: Events, analysis: Analysis) -> Iterator[dict[str, Any]]:
    """What each test let through, where that was counted: of a leaf's events, of a join's candidates, of tests."""
    unit = plan.schema.timestamp_unit
    for path, n in places(plan.tree.root):
        a = analysis.nodes[path]
        passed: int | None = a.rows
        looked_at: int | None = a.compared
        if isinstance(n, t.Negation):
            looked_at, passed = a.tests, None if a.tests is None or a.found is None else a.tests - a.found
            label = f"!{n.pattern}"
        elif isinstance(n, t.Buffer):
            if not n.where:
                continue
            looked_at = len(stream.route([n.accepts])[0])
            label = describe(n, unit)[0].removeprefix("buffer ")
        elif isinstance(n, t.Test):
            looked_at, label = a.tests, describe(n, unit)[0]
        elif isinstance(n, t.Join):
            label = describe(n, unit)[0].partition(", cursors")[0]
        else:
            continue
        if passed is not None and looked_at is not None:
            yield {"node": short(label), "of": looked_at, "passed": passed}


def groups(plan: Plan, found: Matches | None) -> dict[str, Any] | None:
    """The aggregates of a query with AGG; of any other the matches of each key, where there is one."""
    if found is None:
        return None
    if plan.query.aggregates:
        return {"title": "Groups", **rows(found.to_arrow(), MOST_GROUPS)}
    key = key_of(plan.query, plan.schema)
    first = next((v for v in plan.query.variables if isinstance(v, p.Leaf)), None)
    answer = found.answer
    if key is None or first is None or key not in answer.table.column_names:
        return None
    table = pa.table({key: answer.arrow_at(key, answer.bound[first.var].rows), "_ts": _starts(answer, first.var)})
    by = table.group_by(key, use_threads=False).aggregate([([], "count_all"), ("_ts", "min"), ("_ts", "max")])
    by = by.sort_by([("count_all", "descending")])
    return {
        "title": f"Matches by {short(key)}",
        **rows(by.rename_columns([key, "matches", "first", "last"]), MOST_GROUPS),
    }


def _starts(answer: Any, var: str) -> pa.Array:
    return answer.arrow_at("ts", answer.bound[var].rows)
