"""A continuous query over streams that are at hand as a whole.

Stream to relation here, in numpy and the engine's own kernels; relation to relation and relation to stream in one SQL
statement a query (statement.py). Queries of WITH run first: their outputs are streams like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from quercus.backends.base import Limits
from quercus.backends.local.continuous.direct import is_direct, rows_of
from quercus.backends.local.continuous.duck import check_rows
from quercus.backends.local.continuous.duck import query as in_duckdb
from quercus.backends.local.continuous.relations import (
    Closed,
    ClosedWindows,
    Relation,
    SeveralWindows,
    Times,
    of_ends,
    of_windows,
    relation,
)
from quercus.backends.local.continuous.statement import INSTANTS, Statement, statement
from quercus.backends.local.events import Events, load
from quercus.errors import DataError, nearest
from quercus.ir import window as w
from quercus.ir.expr import Type
from quercus.schema import Schema

if TYPE_CHECKING:
    from quercus.plan import Plan
    from quercus.result import Matches

_ARROW = {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_(), "string": pa.string()}


class Run:
    """One run: the streams by name, as far as they are needed and known."""

    def __init__(
        self,
        query: w.Continuous,
        patterns: Sequence[Plan],
        schemas: Mapping[str, Schema],
        clock: Schema,
        closed_windows: ClosedWindows,
        limits: Limits,
        threads: int,
        several: SeveralWindows | None = None,
    ) -> None:
        """`several`: a way to come by those of several pattern windows over one stream at once."""
        self.query, self.patterns, self.schemas, self.clock = query, patterns, schemas, clock
        self.closed_windows, self.limits, self.threads, self.several = closed_windows, limits, threads, several
        self.streams: dict[w.Stream, Events] = {}
        self._closed: dict[tuple[w.Stream, w.PatternWindow], Closed] = {}

    def output(self, given: Mapping[str, object]) -> pa.Table:
        """The output stream: `ts`, and the columns of SELECT."""
        self.load(given)
        for name, query in self.query.named:
            self.streams[w.Named(name)] = self.as_events(self.answer(query), query.columns)
        return self.answer(self.query.query)

    def load(self, given: Mapping[str, object]) -> None:
        needed = needs(self.query, self.patterns)
        if not isinstance(given, Mapping):
            raise DataError(f"streams are given as {{name: events}}, not as a {type(given).__name__}")
        for name in given:
            if name not in self.schemas:
                raise DataError(f"no stream '{name}': {nearest(name, self.schemas) or ', '.join(self.schemas)}")
        for name, columns in needed.items():
            if name not in given:
                raise DataError(f"the stream '{name}' is missing: give {{'{name}': events, ...}}")
            typed = "type" in columns and bool(self.schemas[name].type)
            self.streams[w.Given(name)] = load(given[name], self.schemas[name], columns, self.threads, typed=typed)

    # streams

    def stream(self, stream: w.Stream) -> Events:
        if stream not in self.streams:
            assert isinstance(stream, w.Matched)
            self.streams[stream] = self.matches(stream)
        return self.streams[stream]

    def matches(self, stream: w.Matched) -> Events:
        """The matches of a pattern, each at the time of its last event."""
        plan = self.patterns[stream.number]
        if stream.typed:
            found = plan.run(self.stream(stream.streams[0]).table, threads=self.threads, limits=self.limits)
        else:
            names = [one.name for one in stream.streams]
            tables = {n: by_name(self.stream(s), plan.schema) for n, s in zip(names, stream.streams, strict=True)}
            found = plan.run(tables, threads=self.threads, limits=self.limits)
        return self.as_events(as_tuples(found, plan, self.clock), columns_of(plan))

    def as_events(self, table: pa.Table, columns: tuple[tuple[str, Type], ...]) -> Events:
        """An output stream as one to read."""
        return load(table, output_schema(columns, self.clock), None, self.threads)

    # queries

    def answer(self, query: w.Query) -> pa.Table:
        written = statement(query)
        found = [
            [
                self.relation(select, source, written.counted.get(f"k{i}_{j}", frozenset()))
                for j, source in enumerate(select.sources)
            ]
            for i, select in enumerate(w.selects(query.relation))
        ]
        instants = np.empty(0, np.int64)
        if written.instants:
            instants = np.unique(np.concatenate([r.instants() for select in found for r in select]))
        return evaluated(query, written, found, instants, self.clock, self.limits, self.threads)

    def relation(self, select: w.Select, source: w.Source, counted: frozenset[str]) -> Relation:
        events = self.stream(source.stream)
        if not isinstance(source.window, w.PatternWindow):
            return relation(source, events)
        key = (source.stream, source.window)
        if key not in self._closed and self.several is not None:
            windows = w.pattern_windows(self.query)[source.stream]
            found = self.several(windows, events, self.limits, self.threads)
            self._closed |= {(source.stream, one): closed for one, closed in zip(windows, found, strict=True)}
        elif key not in self._closed:
            self._closed[key] = self.closed_windows(source.window, events, self.limits, self.threads)
        closed = self._closed[key]
        if select.is_of_ends:
            return of_ends(select, events, closed, counted)
        return of_windows(source, events, closed, counted)


def evaluated(
    query: w.Query,
    written: Statement,
    relations: Sequence[Sequence[Relation]],
    instants: Times,
    clock: Schema,
    limits: Limits,
    threads: int,
) -> pa.Table:
    """What a query gives of the relations of its sources, SELECT by SELECT: `ts`, and its columns."""
    if is_direct(query):
        ts, values = rows_of(query, relations[0][0])
        check_rows(len(ts), limits)
        columns = {"ts": as_time(ts, clock)}
        for (name, kind), v in zip(query.columns, values, strict=True):
            columns[name] = as_values(v.to_arrow(pa.timestamp(clock.timestamp_unit)), kind, clock)
        return pa.table(columns)
    tables: dict[str, pa.Table] = {}
    for i, select in enumerate(relations):
        for j, found in enumerate(select):
            tables[f"s{i}_{j}"] = found.tuples
            if f"k{i}_{j}" in written.counted:
                assert found.windows is not None
                tables[f"k{i}_{j}"] = found.windows
    if written.instants:
        tables[INSTANTS] = pa.table({"t": instants})
    rows = in_duckdb(written.sql, written.parameters, tables, limits=limits, threads=threads)
    columns = {"ts": as_time(rows.column(0).to_numpy(), clock)}
    for number, (name, kind) in enumerate(query.columns, 1):
        columns[name] = as_values(rows.column(number), kind, clock)
    return pa.table(columns)


def output_schema(columns: tuple[tuple[str, Type], ...], clock: Schema) -> Schema:
    """That of an output stream: its time is `ts`, counted as `clock` does."""
    time = {"ts": f"timestamp[{clock.time_unit}]"} if clock.time_is_timestamp else {}
    return Schema({**dict(columns), **time}, time="ts", type=None, time_unit=clock.time_unit)


def as_tuples(found: Matches, plan: Plan, clock: Schema) -> pa.Table:
    """Matches as the tuples of a stream, each at the time of its last event; in the order of a run."""
    answer = found.answer
    ts = np.asarray(answer.table.column(plan.schema.time).combine_chunks().view(pa.int64()))
    ends = np.full(len(found), np.iinfo(np.int64).min)
    for bound in answer.bound.values():
        last = bound.ends_of()[1]
        ends = np.maximum(ends, np.where(last >= 0, ts[last] if len(ts) else last, ends))
    table = found.to_arrow()
    values = {n: as_values(table.column(n), kind, clock) for n, kind in columns_of(plan)}
    return pa.table({"ts": as_time(ends, clock), **values})


def columns_of(plan: Plan) -> tuple[tuple[str, Type], ...]:
    return tuple((o.name, o.value.type) for o in plan.query.returns if not isinstance(o.value, str))


def needs(query: w.Continuous, patterns: Sequence[Plan]) -> dict[str, frozenset[str]]:
    """The columns that are read of each stream of the user's, `type` where its events need one."""
    found: dict[str, set[str]] = {}
    for one in (*(q for _, q in query.named), query.query):
        for select in w.selects(one.relation):
            for source in select.sources:
                stream = source.stream
                if isinstance(stream, w.Matched):
                    plan = patterns[stream.number]
                    for part in stream.streams:
                        if isinstance(part, w.Given):
                            every = (
                                {"type", *plan.schema.columns()} if stream.typed else plan.schema.attributes(part.name)
                            )
                            found.setdefault(part.name, set()).update(every)
                elif isinstance(stream, w.Given):
                    own = found.setdefault(stream.name, set())
                    own.update(column.attr for column in source.reads)
                    own.update(w.attributes(source.window))
    return {name: frozenset(columns) for name, columns in found.items()}


def by_name(events: Events, schema: Schema) -> pa.Table:
    """A stream as the events of one type: its time is `ts`."""
    own = events.schema
    columns = {"ts": events.table.column(own.time)}
    columns |= {n: events.table.column(n) for n in schema.columns() if n in events.table.column_names}
    return pa.table(columns)


def as_time(ts: object, clock: Schema) -> pa.Array:
    array = pa.array(np.asarray(ts, np.int64))
    return array.view(pa.timestamp(clock.time_unit)) if clock.time_is_timestamp else array


def as_values(column: pa.ChunkedArray, kind: Type, clock: Schema) -> pa.ChunkedArray:
    if kind == "timestamp":
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_timestamp(whole.type):
            return whole
        return whole.cast(pa.int64()).view(pa.timestamp(clock.timestamp_unit))
    return column.cast(_ARROW[kind])
