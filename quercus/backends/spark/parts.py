"""AGG in parts: each worker totals its own matches, unlisted where the plan allows it; then parts are added up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa
from attrs import evolve

from quercus.backends.local.totals import Totals, keys_of, plain
from quercus.backends.spark.packed import unpacked
from quercus.plan import Plan


def parts_of(plan: Plan) -> Plan:
    """The same query with what is kept of each aggregate: of an average, its sum and its count."""
    kept = Totals(plan.bound, plan.schema).flat
    named = tuple(evolve(a, name=f"part {i}") for i, a in enumerate(kept))
    return plan.with_query(evolve(plan.bound, aggregates=named), plan.schema)


def add_up(
    plan: str, parts: str, total: str, output: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The totals of all groups whose parts are in a partition. `parts`, `total`: columns as the engine has them."""
    taken = [b for b in batches if b.num_rows]
    if not taken:
        return
    table = pa.Table.from_batches(taken).rename_columns(unpacked(parts).names).cast(unpacked(parts))
    totals = Totals((query := _read(plan)).query, query.schema)
    width = len(query.query.group_by)
    keys = list(zip(*(keys_of(c) for c in table.columns[:width]), strict=True)) if width else [()] * len(table)
    values = [plain(c).to_pylist() for c in table.columns[width:]]
    first: dict[tuple[object, ...], int] = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)
        totals.merge(key, [v[i] for v in values])
    rows = pa.array(first.values(), pa.int64())
    shown = [c.take(rows).combine_chunks() for c in table.columns[:width]]
    yield from totals.table(list(first), shown, unpacked(total)).cast(unpacked(output)).to_batches()


@lru_cache(maxsize=16)
def _read(text: str) -> Plan:
    return Plan.from_json(text)
