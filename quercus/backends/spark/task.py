"""What runs on a worker: the events of a partition -> the local engine -> rows of the answer.

A job travels as JSON, the plan in it as `Plan.to_json` has it. What is made of it is kept for the tasks that follow in
the same process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen
from numpy.typing import NDArray

from quercus.backends.base import Limits
from quercus.backends.local.aggregate import aggregated
from quercus.backends.local.outputs import Answer, projected
from quercus.backends.local.run import run_plan
from quercus.backends.local.values import combined
from quercus.backends.spark.anchor import OWN, anchored
from quercus.backends.spark.jobs import Travelling, fields_of, same_as_next, table_of
from quercus.backends.spark.packed import ROWS, unpacked
from quercus.backends.spark.parts import parts_of
from quercus.errors import DataError
from quercus.plan import Plan

PLACE = "quercus_slice"  # the column that says which worker a row is for

Range = tuple[int | None, int | None]


@frozen
class Job(Travelling):
    """What a worker needs to know. `ranges`: of each slice, by its number, the times that are its own."""

    plan: str
    limits: str
    columns: tuple[str, ...]  # of the events, as they are sent
    type_column: str  # one of them: names of types, or numbers in `names`
    names: tuple[str, ...] | None
    ranges: dict[str, Range]
    expected: dict[str, int]  # of each slice: how many events it must get, where events are counted
    totals: bool  # parts of totals instead of matches
    apart: tuple[str, ...]  # the columns that tell events apart whose order matters: of no two may all be the same
    refined: bool  # whether a worker may plan again for the events that it gets
    output: str  # the columns of the answer, packed


@frozen(eq=False)
class Made:
    """What a job comes to in a process."""

    job: Job
    plan: Plan
    whole: Plan  # what runs where all events are own
    own: Plan | None  # ... and where some are not; None: matches are told apart when they are listed
    limits: Limits
    output: pa.Schema


@lru_cache(maxsize=16)
def made(text: str) -> Made:
    """Read a job."""
    data = fields_of(text)
    ranges = {k: (v[0], v[1]) for k, v in data["ranges"].items()}
    job = Job(**{**data, "ranges": ranges})
    plan = Plan.from_json(job.plan)
    whole = parts_of(plan) if job.totals else plan
    own = anchored(whole) if ranges else None
    if job.refined:
        whole, own = _open(whole), None if own is None else _open(own)
    return Made(job, plan, whole, own, Limits(**json.loads(job.limits)), unpacked(job.output))


def _open(plan: Plan) -> Plan:
    """The plan as if its statistics were guesses, to which the events at hand go before."""
    return evolve(plan, options=evolve(plan.options, stats=None))


def run_task(
    text: str, count: Callable[..., None] | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """All matches of a partition's own events; `count` is told what was done."""
    m = made(text)
    table = table_of(batches, m.job.columns)
    if table is None:
        return
    for place, part in by_place(table):
        began = time.perf_counter()
        if m.job.expected.get(str(place), part.num_rows) != part.num_rows:
            raise DataError(
                f"slice {place} has {part.num_rows:,} events, and {m.job.expected[str(place)]:,} were counted: the "
                "DataFrame gives other rows each time it is read; cache() or write it first"
            )
        own = m.job.ranges.get(str(place))
        found = answer_of(m, part, own)
        if count is not None:
            halo = 0 if own is None else part.num_rows - int(inside(part.column(m.plan.schema.time), own).sum())
            count(events=part.num_rows, halo=halo, matches=found.num_rows, seconds=time.perf_counter() - began)
        yield from found.rename_columns(m.output.names).cast(m.output).to_batches(ROWS)


def answer_of(m: Made, table: pa.Table, own: Range | None) -> pa.Table:
    """The rows of the answer over some events: of all matches, or of those whose anchor lies in a range of time."""
    table, schema = read(m, table), m.plan.schema
    if own is None:
        return _columns(m, m.whole, table)
    mine = inside(table.column(schema.time), own)
    if m.own is not None:
        return _columns(m, m.own, table.append_column(OWN, pa.array(mine)))
    found = run_plan(m.whole, table, m.limits, listed=True, narrow=True).answer
    some = own_of(found, own)
    return aggregated(some) if m.job.totals else projected(some)


def read(m: Made, table: pa.Table) -> pa.Table:
    """Events as they were sent -> as the engine takes them, in an order where one matters."""
    table, schema = _decoded(m, table), m.plan.schema
    if schema.order is not None:
        _check_order(table, schema.order)
        table = table.take(pc.sort_indices(table, [(schema.time, "ascending"), (schema.order, "ascending")]))
    if m.job.apart:
        _check_ties(m, table)
    return table


def own_of(found: Answer, own: Range) -> Answer:
    """The matches whose last event lies in a range of time."""
    last = np.stack([b.ends_of()[1] for b in found.bound.values()])
    times = _times(found.table.column(found.schema.time))
    latest = np.where(last < 0, np.iinfo(np.int64).min, times[np.maximum(last, 0)]).max(axis=0)
    kept = np.flatnonzero(_within(latest, own))
    return Answer(found.table, found.schema, found.query, {v: b.take(kept) for v, b in found.bound.items()})


def _columns(m: Made, plan: Plan, table: pa.Table) -> pa.Table:
    result = run_plan(plan, table, m.limits, narrow=True)
    if m.job.totals:
        return result.to_arrow()
    found = result.answer
    return projected(Answer(found.table, m.plan.schema, m.plan.query, found.bound))


def by_place(table: pa.Table) -> Iterator[tuple[int | None, pa.Table]]:
    """The events of each slice that a partition was given: one, as a rule."""
    if PLACE not in table.column_names:
        yield None, table
        return
    places = pc.unique(table.column(PLACE)).to_pylist()
    for place in sorted(places):
        part = table if len(places) == 1 else table.filter(pc.equal(table.column(PLACE), place))
        yield place, part.drop_columns([PLACE])


def _decoded(m: Made, table: pa.Table) -> pa.Table:
    """Numbers of types -> names."""
    if m.job.names is None:
        return table
    codes = combined(table.column(m.job.type_column))
    types = pa.DictionaryArray.from_arrays(codes, pa.array(m.job.names, pa.string()))
    return table.drop_columns([m.job.type_column]).append_column(m.plan.schema.type, types)


def inside(column: Any, own: Range) -> NDArray[np.bool_]:
    """Which events lie in a range of time."""
    return _within(_times(column), own)


def _within(at: NDArray[np.int64], own: Range) -> NDArray[np.bool_]:
    low, high = own
    inside = np.ones(len(at), bool)
    if low is not None:
        inside &= at >= low
    if high is not None:
        inside &= at < high
    return inside


def _times(column: Any) -> NDArray[np.int64]:
    """Times as slices count them: integers as they are, moments in microseconds."""
    if column.null_count:
        raise DataError("there are events without a time")
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return np.asarray(column.cast(pa.int64()).to_numpy(), np.int64)


def _check_order(table: pa.Table, order: str) -> None:
    if table.column(order).null_count:
        raise DataError(f"column '{order}': an event without a value to break ties by", column=order)


def _check_ties(m: Made, table: pa.Table) -> None:
    """Refuse events that are in no order, where the query needs one: of one time, and of one key if it is declared."""
    schema = m.plan.schema
    at = _times(table.column(schema.time))
    if schema.order is None:
        table, at = table.take(pa.array(np.argsort(at, kind="stable"))), np.sort(at)
    same = at[1:] == at[:-1]
    if schema.order is not None:  # by which events are sorted already
        same &= same_as_next(table.column(schema.order))
    if not same.any():
        return
    some = table.select(m.job.apart).filter(pa.array(np.append(same, False) | np.insert(same, 0, False)))
    told = some.group_by(list(m.job.apart)).aggregate([([], "count_all")])
    told = told.filter(pc.greater(told.column("count_all"), 1))
    if len(told):
        what = "and this query needs them in an order: give Schema(order=) the column that has it"
        if schema.order is not None:
            what = f"and the same '{schema.order}', which is to break ties"
        moment = told.column(schema.time)[0].as_py()
        raise DataError(f"column '{schema.time}': several events have the time {moment}, {what}", column=schema.time)
