"""What runs on a worker: the tuples of a partition -> the kernel -> closed windows.

A job travels as JSON, the query in it as its text; it is compiled again, once in a process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from numpy.typing import NDArray

from quercus.backends.base import Limits
from quercus.backends.local.continuous.relations import Closed, of_ends, of_windows
from quercus.backends.local.events import Events, load
from quercus.backends.local.values import combined
from quercus.backends.local.windows import closed_windows
from quercus.backends.spark.jobs import Travelling, fields_of, same_as_next, table_of
from quercus.backends.spark.packed import ROWS, unpacked
from quercus.cql import continuous
from quercus.errors import DataError
from quercus.ir import window as w
from quercus.schema import Schema

Rows = Literal["windows", "ends", "tuples"]
Index = NDArray[np.int64]


@frozen
class Job(Travelling):
    """What a worker needs to know."""

    text: str  # of the query
    schemas: str  # of its streams
    place: tuple[int, int, int]  # of the window: which query, which SELECT, which source
    schema: str  # of the tuples
    names: tuple[str, ...]  # what e0, e1, ... are called
    columns: tuple[str, ...]  # of the tuples as they are sent
    keys: tuple[str, ...]
    untold: str  # what is said of two tuples that nothing tells apart
    rows: Rows
    counted: tuple[str, ...]
    limits: str
    output: str  # the columns of the answer, packed


@frozen(eq=False)
class Made:
    """What a job comes to in a process."""

    job: Job
    select: w.Select
    source: w.Source
    schema: Schema
    limits: Limits
    output: pa.Schema


@lru_cache(maxsize=16)
def made(text: str) -> Made:
    """Read a job."""
    job = Job(**fields_of(text))
    schemas = {n: Schema.from_dict(d) for n, d in json.loads(job.schemas).items()}
    whole = continuous(job.text, schemas).query
    query = [*(q for _, q in whole.named), whole.query][job.place[0]]
    select = list(w.selects(query.relation))[job.place[1]]
    schema = Schema.from_dict(json.loads(job.schema))
    return Made(
        job, select, select.sources[job.place[2]], schema, Limits(**json.loads(job.limits)), unpacked(job.output)
    )


def run_windows(text: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The windows that the tuples of a partition open and close."""
    m = made(text)
    sent = table_of(batches, m.job.columns)
    if sent is None:
        return
    table = in_order(m, sent)
    events = tuples_of(m, table)
    assert isinstance(m.source.window, w.PatternWindow)
    closed = closed_windows(m.source.window, events, m.limits)
    yield from _answer(m, table, events, closed).cast(m.output).to_batches(ROWS)


def in_order(m: Made, table: pa.Table) -> pa.Table:
    """Tuples in the order of the stream; those of different keys that it does not tell apart, by their keys."""
    place = [n for n in ("t", "q") if n in table.column_names]
    keys = [f"e{m.job.names.index(k)}" for k in m.job.keys]
    table = table.take(pc.sort_indices(table, [(n, "ascending") for n in [*place, *keys]]))
    if len(table) > 1:
        same: Any = np.ones(len(table) - 1, bool)
        for n in [*place, *keys]:
            same &= same_as_next(table.column(n))
        if same.any():
            raise DataError(f"{m.job.untold} (time {table.column('t')[int(same.argmax())].as_py()})")
    return table


def tuples_of(m: Made, table: pa.Table) -> Events:
    """Tuples as they were sent -> as the engine takes them."""
    schema = m.schema
    time = combined(table.column("t"))
    columns = {schema.time: time.view(pa.timestamp(schema.time_unit)) if schema.time_is_timestamp else time}
    kinds = schema.columns()
    for i, name in enumerate(m.job.names):
        own = combined(table.column(f"e{i}"))
        if name == "type":
            columns[schema.type] = own
        else:
            columns[name] = own.view(pa.timestamp(schema.timestamp_unit)) if kinds[name] == "timestamp" else own
    return load(pa.table(columns), schema, frozenset(m.job.names), typed="type" in m.job.names)


def _answer(m: Made, table: pa.Table, events: Events, closed: Closed) -> pa.Table:
    """One row for each window, or for each tuple in it."""
    first, last = np.asarray(closed.first), np.asarray(closed.close)
    repeated: Any = None
    if m.job.rows == "tuples":
        repeated = np.repeat(np.arange(len(first)), np.diff(closed.offsets))

    def at(name: str, positions: Index) -> Any:
        return combined(table.column(name).take(pa.array(positions)))

    def of_window(values: Any) -> Any:
        return values if repeated is None else values.take(pa.array(repeated))

    columns: dict[str, Any] = {}
    for n in ("t", "q"):
        if n in table.column_names:
            columns[f"c{n}"] = of_window(at(n, last))
            columns[f"f{n}"] = of_window(at(n, first))
    for i, k in enumerate(m.job.keys):
        columns[f"k{i}"] = of_window(at(f"e{m.job.names.index(k)}", first))
    for name in m.job.counted:
        counts = iter_of(table, closed) if name == "iter" and "pos" in table.column_names else getattr(closed, name)
        columns[name] = of_window(pa.array(counts, pa.int64()))
    if m.job.rows == "tuples":
        found = of_windows(m.source, events, closed, frozenset()).tuples
        for n in ("t", "q"):
            if n in table.column_names:
                columns[f"n{n}"] = at(n, np.asarray(closed.tuples))
    elif m.job.rows == "ends":
        found = of_ends(m.select, events, closed, frozenset()).tuples
    else:
        found = pa.table({})
    columns |= {n: found.column(n) for n in found.column_names if n in m.output.names and n not in columns}
    return pa.table({name: columns[name] for name in m.output.names})


def iter_of(table: pa.Table, closed: Closed) -> Index:
    """ITER() by positions in the whole stream: a window went on at every tuple between its first and its last, but for
    those that came at the time of one it had taken in."""
    pos, end = (np.asarray(combined(table.column(n))) for n in ("pos", "end"))
    at = np.asarray(closed.tuples)
    hidden = np.append(0, np.cumsum(end[at] - pos[at] - 1))
    starts, stops = np.asarray(closed.offsets[:-1]), np.asarray(closed.offsets[1:]) - 1
    went: Index = pos[closed.close] - pos[closed.first] - (hidden[stops] - hidden[starts])
    return went
