"""A continuous query over Spark DataFrames.

Stream to relation by the engine's kernel on workers and by arithmetic on times, relation to relation and relation to
stream by Spark SQL: the statement is the one that DuckDB runs locally, in Spark's dialect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import evolve
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from quercus.backends.base import Limits
from quercus.backends.local.continuous.run import columns_of, needs, output_schema
from quercus.backends.local.continuous.statement import INSTANTS, statement
from quercus.backends.spark.continuous.dialect import SPARK, add_functions
from quercus.backends.spark.continuous.relations import instants, relation
from quercus.backends.spark.continuous.streams import SPARK_TYPES, Stream, given, is_plain, moment
from quercus.backends.spark.continuous.task import Rows
from quercus.backends.spark.continuous.windows import Place, closed, share_out
from quercus.backends.spark.pushdown import column
from quercus.backends.spark.report import Shown, remember
from quercus.backends.spark.sharing import parallelism
from quercus.cql import Continuous
from quercus.errors import DataError, QueryError, nearest
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import window as w
from quercus.plan import Plan

END = "quercus_end"


def run(
    query: Continuous, streams: Mapping[str, Any], *, limits: Limits | None = None, partitions: int | None = None
) -> DataFrame:
    """`q.run({stream: DataFrame})` with options. `partitions`: into how many parts keys are shared out."""
    if partitions is not None and (type(partitions) is not int or partitions < 1):
        raise DataError(f"partitions={partitions!r}: give a whole number from 1 up, or None")
    made = Run(query, _checked(query, streams), limits or Limits(), partitions)
    found = made.output()
    remember(found, Shown(query, tuple(dict.fromkeys(made.said))))
    return found


def _checked(query: Continuous, streams: Mapping[str, Any]) -> dict[str, DataFrame]:
    """The DataFrames that are needed; what is none, streams on, or is of another session, is refused."""
    if not isinstance(streams, Mapping):
        raise DataError(f"streams are given as {{name: DataFrame}}, not as a {type(streams).__name__}")
    for name in streams:
        if name not in query.schemas:
            raise DataError(f"no stream '{name}': {nearest(name, query.schemas) or ', '.join(query.schemas)}")
    found: dict[str, DataFrame] = {}
    for name in needs(query.query, query.patterns):
        if name not in streams:
            raise DataError(f"the stream '{name}' is missing: give {{'{name}': DataFrame, ...}}")
        df = streams[name]
        if not isinstance(df, DataFrame):
            raise DataError(
                f"the stream '{name}' is a {type(df).__name__}, and the backend 'spark' takes DataFrames: "
                "give all streams as DataFrames of Spark (spark.createDataFrame), or none"
            )
        if df.isStreaming:
            hint = "run over DataFrames at rest, or push tuples to q.stream(): see docs/continuous.md"
            raise QueryError(
                "E703", f"'{name}' is a streaming DataFrame, over which continuous queries do not run", hint=hint
            )
        other = next(iter(found.values()), None)
        if other is not None and not _is_one(other.sparkSession, df.sparkSession):
            raise DataError(f"the streams '{next(iter(found))}' and '{name}' are of different Spark sessions")
        found[name] = df
    return found


def _is_one(a: Any, b: Any) -> bool:
    """Whether two sessions are the same, whatever Python object stands for them."""
    return a is b or (
        hasattr(a, "_jsparkSession") and hasattr(b, "_jsparkSession") and a._jsparkSession == b._jsparkSession
    )


class Run:
    """One run: the streams by name, as far as they are known."""

    def __init__(
        self, query: Continuous, frames: Mapping[str, DataFrame], limits: Limits, partitions: int | None
    ) -> None:
        self.query, self.clock, self.limits, self.frames = query, query.clock, limits, frames
        one = next(iter(frames.values()))
        self.session = one.sparkSession
        self.partitions = partitions or max(4 * parallelism(one), 8)
        self.plain = is_plain(list(frames.values()))
        self.said: list[str] = []
        self.schemas = json.dumps({n: s.to_dict() for n, s in query.schemas.items()})
        wanted = needs(query.query, query.patterns)
        self.streams: dict[w.Stream, Stream] = {
            w.Given(n): given(n, df, query.schemas[n], wanted[n]) for n, df in frames.items()
        }

    def output(self) -> DataFrame:
        """The output stream: `ts`, and the columns of SELECT."""
        whole = self.query.query
        for number, (name, query) in enumerate(whole.named):
            rows = self.answer(query, number)
            self.streams[w.Named(name)] = self.as_stream(name, rows, query)
        rows = self.answer(whole.query, len(whole.named))
        return self.shown(rows, whole.query.columns)

    def shown(self, rows: DataFrame, columns: tuple[tuple[str, x.Type], ...]) -> DataFrame:
        """Counts as times, and columns under their names."""
        values = [f.col(f"x{i}") for i in range(len(columns))]
        listed = [self.time(f.col("ts"), self.clock.time_unit) if self.clock.time_is_timestamp else f.col("ts")]
        for value, (_, kind) in zip(values, columns, strict=True):
            listed.append(self.time(value, self.clock.timestamp_unit) if kind == "timestamp" else value)
        return rows.select(*listed).toDF("ts", *(name for name, _ in columns))

    def time(self, count: Column, unit: str) -> Column:
        return moment(count, unit, plain=self.plain)

    # streams

    def as_stream(self, name: str, rows: DataFrame, query: w.Query) -> Stream:
        """An output as a stream. Rows of one time in their order; where it has none, by their values."""
        values = [f"x{i}" for i in range(len(query.columns))]
        own = Window.partitionBy("ts").orderBy("o", *values)
        listed = [f.col(v).alias(f"e{i}") for i, v in enumerate(values)]
        df = rows.select(f.col("ts").alias("t"), f.row_number().over(own).cast("bigint").alias("q"), *listed)
        schema = output_schema(query.columns, self.clock)
        return Stream(name, df, schema, tuple(n for n, _ in query.columns), True)

    def stream(self, stream: w.Stream) -> Stream:
        if stream not in self.streams:
            assert isinstance(stream, w.Matched)
            self.streams[stream] = self.matches(stream)
        return self.streams[stream]

    def matches(self, stream: w.Matched) -> Stream:
        """The matches of a pattern, each at the time of its last event; those of one time by their values."""
        plan = self.query.patterns[stream.number]
        name = f"pattern {stream.number + 1}"
        df = self.frames[stream.streams[0].name] if stream.typed else self.by_name(stream, plan)
        kind: x.Type = "timestamp" if plan.schema.time_is_timestamp else "int64"
        ends = [
            p.Output(
                f"{END}{i}",
                x.GroupCall("last", v.var, "ts", kind) if isinstance(v, p.Kleene) else x.Column(v.var, "ts", kind),
            )
            for i, v in enumerate(plan.bound.variables)
        ]
        told = plan.retold(evolve(plan.bound, returns=(*plan.bound.returns, *ends)))
        found = told.run(df, backend="spark", limits=self.limits)
        last = [column(e.name) for e in ends]
        columns = columns_of(plan)
        schema = output_schema(columns, self.clock)
        dated = found.select(
            (f.greatest(*last) if len(last) > 1 else last[0]).alias("ts"), *(column(n) for n, _ in columns)
        )
        self.said.append(f"{name}: as plan.run(df) does, see explain(plan, df)")
        made = given(name, dated, schema, frozenset(n for n, _ in columns))
        own = Window.partitionBy("t").orderBy(*(f"e{i}" for i in range(len(columns))))
        return evolve(made, df=made.df.withColumn("q", f.row_number().over(own).cast("bigint")), tied=True)

    def by_name(self, stream: w.Matched, plan: Plan) -> DataFrame:
        """Several streams as the events of one, each of the type that is its name."""
        schema = plan.schema
        parts = []
        for one in stream.streams:
            own = self.stream(one)
            t = f.col("t")
            listed = [self.time(t, schema.time_unit).alias("ts") if schema.time_is_timestamp else t.alias("ts")]
            listed.append(f.lit(one.name).alias("type"))
            for attr, kind in schema.columns().items():
                value = own.column(attr) if attr in own.names else f.lit(None).cast(SPARK_TYPES[kind])
                if attr in own.names and own.kind(attr) != kind:
                    hint = f"declare '{attr}' alike in all streams of the pattern"
                    raise QueryError(
                        "E703", f"'{attr}' is {kind} and {own.kind(attr)} in streams of one pattern", hint=hint
                    )
                listed.append((self.time(value, schema.timestamp_unit) if kind == "timestamp" else value).alias(attr))
            if schema.order is not None:
                if not own.tied:
                    hint = "give Schema(order=) the column that has it"
                    raise QueryError("E703", f"stream '{own.name}' has no order for ties=\"arrival\"", hint=hint)
                listed.append(f.col("q").alias(schema.order))
            parts.append(own.df.select(*listed))
        every = parts[0]
        for part in parts[1:]:
            every = every.union(part)
        return every

    # queries

    def answer(self, query: w.Query, number: int) -> DataFrame:
        """The rows of a query: `ts`, `x0`, `x1`, ..., and `o`."""
        written = statement(query, SPARK)
        tables: dict[str, DataFrame] = {}
        lasting, windows = [], []
        for i, select in enumerate(w.selects(query.relation)):
            ordered = {a.source for a in select.aggregates if a.function in ("first", "last")}
            for j, source in enumerate(select.sources):
                stream = self.stream(source.stream)
                window, counts = source.window, f"k{i}_{j}"
                if not isinstance(window, w.PatternWindow):
                    tables[f"s{i}_{j}"] = relation(source, stream, self.said, ordered=j in ordered)
                    lasting.append(tables[f"s{i}_{j}"])
                    continue
                counted = written.counted.get(counts, frozenset())
                shared = share_out(stream, window, counted, self.partitions, self.said)
                place = Place(number, i, j)
                rest = (self.query.text, self.schemas, self.limits)
                rows: Rows = "ends" if select.is_of_ends else "tuples"
                tables[f"s{i}_{j}"] = closed(shared, place, select, rows, frozenset(), *rest)
                if counts in written.counted:
                    tables[counts] = closed(shared, place, select, "windows", counted, *rest)
                elif written.instants:
                    tables[counts] = closed(shared, place, select, "windows", frozenset(), *rest)
                if written.instants:
                    windows.append(tables[counts])
        if written.instants:
            tables[INSTANTS] = instants(lasting, windows)
        add_functions(self.session, written.functions)
        parameters = {f"p{i}": value for i, value in enumerate(written.parameters, 1)}
        return self.session.sql(written.sql, args=parameters, **tables)
