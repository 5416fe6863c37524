"""Totals at every level of a hierarchy: `cube.table`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from attrs import evolve

from quercus.errors import QueryError
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.plan import Plan
from quercus.schema import Schema

if TYPE_CHECKING:
    from quercus.backends.base import Limits

_JOINED: dict[str, Callable[[list[Any]], Any]] = {"count": sum, "sum": sum, "min": min, "max": max}


def table(plan: Plan, events: Any, positions: int | Iterable[int] | None, limits: Limits | None) -> pa.Table:
    """Totals of a query by the concepts at these positions, of every level."""
    from quercus.compiler import compile

    chosen = _leaves(plan, positions)
    counted = p.Aggregate("count", "count", None, None, "int64")
    aggregates = plan.bound.aggregates or (counted,)
    for a in aggregates:
        if a.function not in _JOINED:
            raise QueryError(
                "E801", f"{a.function.upper()} of levels does not follow from those below", hint="give SUM and COUNT"
            )
    by = (*(x.Column(leaf.var, "type", "string") for leaf in chosen), *plan.bound.group_by)
    made = evolve(plan.bound, returns=(), aggregates=aggregates, group_by=tuple(dict.fromkeys(by)))
    asked = compile(text.query(made, plan.schema.timestamp_unit), plan.schema, stats=plan.options.stats)
    found = asked.run(events, limits=limits).to_arrow()
    return _rolled_up(found, chosen, aggregates, plan.schema)


def _leaves(plan: Plan, positions: int | Iterable[int] | None) -> list[p.Leaf]:
    from quercus.compiler.cube.operations import components

    parts = components(plan.bound.pattern)
    if positions is None:
        plain = [c for c in parts if isinstance(c, p.Leaf)]
        return [c for c in plain if plan.schema.hierarchy.get(c.type)] or plain[:1]
    listed: list[Any] = [positions] if isinstance(positions, int) else list(positions)
    found = []
    for at in listed:
        if not isinstance(at, int) or not 1 <= at <= len(parts):
            raise QueryError("E802", f"no position {at}: there are {len(parts)}, from 1 on")
        part = parts[at - 1]
        if not isinstance(part, p.Leaf):
            raise QueryError("E801", f"at position {at} stands no single event that a match binds")
        found.append(part)
    return found


def _rolled_up(found: pa.Table, chosen: list[p.Leaf], aggregates: tuple[p.Aggregate, ...], schema: Schema) -> pa.Table:
    """Each group goes into those of all concepts above it, up to the query's own."""
    names = [a.name for a in aggregates]
    grouped = [c for c in found.column_names if c not in names]
    types, others = grouped[: len(chosen)], grouped[len(chosen) :]
    totals: dict[tuple[object, ...], list[list[Any]]] = {}
    places = [list(_below(leaf.type, schema)) for leaf in chosen]
    rank = [{concept: (level, i) for i, (level, concept) in enumerate(place)} for place in places]
    for row in found.to_pylist():
        paths = [_above(row[c], leaf.type, schema) for c, leaf in zip(types, chosen, strict=True)]
        for concepts in product(*paths):
            key = (*concepts, *(row[c] for c in others))
            sums = totals.setdefault(key, [[] for _ in names])
            for s, name in zip(sums, names, strict=True):
                s.append(row[name])

    def order(key: tuple[object, ...]) -> tuple[object, ...]:
        levels = [rank[i][str(key[i])] for i in range(len(chosen))]
        return sum(level for level, _ in levels), levels

    keys = sorted(totals, key=order)
    columns: dict[str, pa.Array] = {}
    for i, leaf in enumerate(chosen):
        lead = f"{leaf.var}_" if len(chosen) > 1 else ""
        columns[f"{lead}level"] = pa.array([rank[i][str(k[i])][0] for k in keys], pa.int64())
        columns[leaf.var] = pa.array([k[i] for k in keys], pa.string())
    for j, name in enumerate(others, len(chosen)):
        columns[name] = pa.array([k[j] for k in keys], found.schema.field(name).type)
    for j, a in enumerate(aggregates):
        values = [_joined(a, totals[k][j]) for k in keys]
        columns[a.name] = pa.array(values, found.schema.field(a.name).type)
    return pa.table(columns)


def _joined(a: p.Aggregate, values: list[Any]) -> Any:
    there = [v for v in values if v is not None]
    return _JOINED[a.function](there) if there else None


def _below(name: str, schema: Schema, level: int = 0) -> Iterator[tuple[int, str]]:
    """A concept and all below it, depth first, with their levels."""
    yield level, name
    for c in schema.hierarchy.get(name, ()):
        yield from _below(c, schema, level + 1)


def _above(name: str, top: str, schema: Schema) -> list[str]:
    """A type and the concepts above it, as far as `top`."""
    parent = {c: n for n, below in schema.hierarchy.items() for c in below}
    found = [name]
    while found[-1] != top:
        found.append(parent[found[-1]])
    return found
