"""Totals at every level of a hierarchy: `cube.table`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
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


def _added(values: list[Any]) -> Any:
    """Whole numbers exactly, whatever their digits: sums of decimals are rounded to 28."""
    if all(isinstance(v, Decimal) for v in values):
        return Decimal(sum(map(int, values)))
    return sum(values)


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    return lambda values: next((v for v in values if v != v), None) or choose(values)


_JOINED: dict[str, Callable[[list[Any]], Any]] = {
    "count": _added,
    "sum": _added,
    "min": _extreme(min),
    "max": _extreme(max),
}
_NAN = float("nan")  # one object, so that it equals itself as a key


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
    listed: list[Any] = list(positions) if isinstance(positions, Iterable) else [positions]
    found = []
    for at in listed:
        if listed.count(at) > 1:
            raise QueryError("E802", f"position {at} stands twice")
        if not isinstance(at, int) or not 1 <= at <= len(parts):
            raise QueryError("E802", f"no position {at}: there are {len(parts)}, from 1 on")
        part = parts[at - 1]
        if not isinstance(part, p.Leaf):
            raise QueryError("E801", f"at position {at} stands no single event that a match binds")
        found.append(part)
    return found


def _rolled_up(found: pa.Table, chosen: list[p.Leaf], aggregates: tuple[p.Aggregate, ...], schema: Schema) -> pa.Table:
    """Each group goes into those of all concepts above it, up to the query's own."""
    kinds = {f.name: f.type for f in found.schema}
    for i, field in enumerate(found.schema):  # moments that Python has no datetime for are numbers on the way
        if pa.types.is_timestamp(field.type):
            found = found.set_column(i, field.name, found.column(i).cast(pa.int64()))
    names = [a.name for a in aggregates]
    grouped = [c for c in found.column_names if c not in names]
    types, others = grouped[: len(chosen)], grouped[len(chosen) :]
    totals: dict[tuple[object, ...], list[list[Any]]] = {}
    places = [list(_below(leaf.type, schema)) for leaf in chosen]
    rank = [{concept: (level, i) for i, (level, concept) in enumerate(place)} for place in places]
    for row in found.to_pylist():
        paths = [_above(row[c], leaf.type, schema) for c, leaf in zip(types, chosen, strict=True)]
        for concepts in product(*paths):
            key = (*concepts, *(_NAN if row[c] != row[c] else row[c] for c in others))
            sums = totals.setdefault(key, [[] for _ in names])
            for s, name in zip(sums, names, strict=True):
                s.append(row[name])

    def order(key: tuple[object, ...]) -> tuple[object, ...]:
        levels = [rank[i][str(key[i])] for i in range(len(chosen))]
        return sum(level for level, _ in levels), levels

    keys = sorted(totals, key=order)
    columns: list[tuple[str, pa.Array]] = []
    for i, leaf in enumerate(chosen):
        lead = f"{leaf.var}_" if len(chosen) > 1 else ""
        columns.append((f"{lead}level", pa.array([rank[i][str(k[i])][0] for k in keys], pa.int64())))
        columns.append((leaf.var, pa.array([k[i] for k in keys], pa.string())))
    for j, name in enumerate(others, len(chosen)):
        columns.append((name, pa.array([k[j] for k in keys], found.schema.field(name).type).cast(kinds[name])))
    for j, a in enumerate(aggregates):
        values = [_joined(a, totals[k][j]) for k in keys]
        columns.append((a.name, pa.array(values, found.schema.field(a.name).type).cast(kinds[a.name])))
    twice = [name for name, n in Counter(name for name, _ in columns).items() if n > 1]
    if twice:
        raise QueryError(
            "E107", f"two columns are called '{twice[0]}'", hint="name a total with AS, or a variable anew"
        )
    return pa.table([column for _, column in columns], [name for name, _ in columns])


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
