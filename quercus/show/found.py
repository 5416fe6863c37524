"""Matches with their events, as a page draws them over time: each event once, matches as places in their list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quercus.ir import pattern as p
from quercus.show.values import columns, short

if TYPE_CHECKING:
    from quercus.backends.local.outputs import Answer, Bound
    from quercus.schema import Schema

MOST_MATCHES = 2_000
MOST_EVENTS = 20_000  # of all matches that are shown
MOST_ELEMENTS = 200  # of one set; the last one of a longer set is kept too
MOST_ATTRIBUTES = 30
Rows = NDArray[np.int64]


def shown(answer: Answer, *, most: int = MOST_MATCHES, total: int | None = None) -> dict[str, Any]:
    """The first matches of an answer, their variables and their events.

    `total` says how many there are in all, if the answer is only some of them.
    """
    schema, variables = answer.schema, answer.query.variables
    bound = [answer.bound[v.var] for v in variables if v.var in answer.bound]
    count = min(len(answer), most)
    matches: list[list[Any]] = []
    seen: set[int] = set()
    cut = 0
    for i in range(count):
        one = [_bound(b, i) for b in bound]
        cut += sum(rows[1] for rows in one if isinstance(rows, tuple))
        match = [rows[0] if isinstance(rows, tuple) else rows for rows in one]
        mine = {r for rows in match for r in (rows if isinstance(rows, list) else [rows]) if r is not None}
        if matches and len(seen | mine) > MOST_EVENTS:
            break
        seen |= mine
        matches.append(match)
    rows = np.array(sorted(seen), np.int64)
    place = {int(r): k for k, r in enumerate(rows)}
    ts = answer.table.column(schema.time).combine_chunks()
    times = ts.view(pa.int64()).to_numpy(zero_copy_only=False)[rows] if len(rows) else rows
    base = int(times.min()) if len(times) else 0
    numbers = rows if answer.numbers is None else answer.numbers[rows]
    names = [n for n in answer.table.column_names if n not in schema.special][:MOST_ATTRIBUTES]
    some = answer.table.select([schema.type, *names]).take(pa.array(rows))
    kinds, *attributes = columns(_plain_strings(some))
    return {
        "variables": [_variable(v) for v in variables if v.var in answer.bound],
        "attributes": [short(n) for n in names],
        "key": key_of(answer.query, schema),
        "clock": {"base": str(base), "unit": schema.time_unit, "stamps": schema.time_is_timestamp},
        "events": {
            "row": numbers.tolist(),
            "at": [int(t) - base for t in times],
            "type": kinds,
            "values": attributes,
        },
        "matches": [[_placed(rows_, place) for rows_ in m] for m in matches],
        "total": len(answer) if total is None else total,
        "cut": cut,
    }


def key_of(q: p.Query, schema: Schema) -> str | None:
    """The attribute by which matches are told apart, if there is one."""
    declared = (*q.partition_by, *schema.key)
    if declared:
        return declared[0]
    if q.key is None:
        return None
    attr = q.key.columns[0].attr
    return attr if attr not in ("ts", "type") else None


def _variable(v: p.Leaf | p.Kleene) -> dict[str, Any]:
    leaf, sign = (v.leaf, v.sign) if isinstance(v, p.Kleene) else (v, "")
    return {"name": short(v.var), "type": short(leaf.type), "sign": sign}


def _bound(b: Bound, i: int) -> Any:
    """A row, None, or of a set some rows and how many were left out."""
    one = b.one(i)
    if one is None or isinstance(one, int):
        return one
    if len(one) <= MOST_ELEMENTS:
        return list(one), 0
    return [*one[: MOST_ELEMENTS - 1], one[-1]], len(one) - MOST_ELEMENTS


def _placed(rows: Any, place: dict[int, int]) -> Any:
    if rows is None:
        return None
    return [place[r] for r in rows] if isinstance(rows, list) else place[rows]


def _plain_strings(table: pa.Table) -> pa.Table:
    """Dictionaries as what they stand for."""
    arrays = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    return pa.Table.from_arrays(arrays, table.column_names)
