"""A plan over a DataFrame that is at hand as a whole."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Literal, Protocol

from attrs import asdict
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as st

from quercus.backends.base import Limits
from quercus.backends.local.run import run_plan
from quercus.backends.spark.counters import counters_for
from quercus.backends.spark.packed import opened, packed
from quercus.backends.spark.parts import add_up, parts_of
from quercus.backends.spark.planning import is_open
from quercus.backends.spark.pushdown import CODE, type_names
from quercus.backends.spark.report import Report, remember
from quercus.backends.spark.schemas import arrow_schema, check_input, empty_input, named, output_schema
from quercus.backends.spark.sharing import Options, Shared, parallelism, share_out
from quercus.backends.spark.stream_groups import counts_events
from quercus.backends.spark.task import Job, run_task
from quercus.plan import Plan


def run_batch(plan: Plan, df: DataFrame, limits: Limits, options: Options) -> DataFrame:
    """The matches of a plan as a DataFrame with the columns of `to_arrow()`; nothing of it has run yet."""
    check_input(plan, df)
    refined = is_open(plan)
    shared = share_out(plan, df, options)
    plan = shared.plan
    counters = counters_for(df.sparkSession)
    found = _totals(plan, df, shared, limits, counters, refined=refined) if plan.query.aggregates else None
    if found is None:
        columns = output_schema(plan, df.schema)
        task = partial(run_task, job_of(plan, shared, limits, packed(arrow_schema(columns)), refined=refined), counters)
        found = plainly_named(shared.events).mapInArrow(task, columns)
    remember(found, Report(plan, df, shared.needed, shared.said, counters))
    return found


def job_of(
    plan: Plan,
    shared: Shared,
    limits: Limits,
    output: str,
    *,
    refined: bool,
    totals: bool = False,
    names: list[str] | Literal["own"] | None = "own",
) -> str:
    """What a worker must know. `names`: what numbers of types stand for, if others than this plan's are sent too."""
    names = type_names(plan) if names == "own" else names
    return Job(
        plan.to_json(),
        json.dumps(asdict(limits)),
        tuple(shared.events.columns),
        CODE if names is not None else plan.schema.type,
        None if names is None else tuple(names),
        shared.ranges,
        shared.expected,
        totals,
        apart(plan),
        refined,
        output,
    ).to_json()


def apart(plan: Plan) -> tuple[str, ...]:
    """The columns that must tell events apart, if their order matters."""
    if not counts_events(plan) and plan.schema.ties != "arrival":
        return ()
    order = [] if plan.schema.order is None else [plan.schema.order]
    return tuple(dict.fromkeys([plan.schema.time, *(named(plan, k) for k in plan.tree.partition_by), *order]))


def _totals(plan: Plan, df: DataFrame, shared: Shared, limits: Limits, counters: Any, *, refined: bool) -> DataFrame:
    """Parts of totals by each worker, then added up, group by group."""
    job, add = totals_of(plan, df, shared, limits, refined=refined, names="own")
    between = parts_schema(plan, df)
    return add(plainly_named(shared.events).mapInArrow(partial(run_task, job, counters), between), packed_rows=False)


def parts_schema(plan: Plan, df: DataFrame) -> st.StructType:
    """The columns of parts of totals, as workers give them."""
    found = output_schema(parts_of(plan), df.schema)
    return st.StructType([st.StructField(f"c{i}", k.dataType) for i, k in enumerate(found)])


class Adding(Protocol):
    """Adds up parts of totals: those of a plan alone, or, packed, of one of many."""

    def __call__(self, found: DataFrame, *, packed_rows: bool = True) -> DataFrame: ...


def totals_of(
    plan: Plan,
    df: DataFrame,
    shared: Shared,
    limits: Limits,
    *,
    refined: bool,
    names: list[str] | Literal["own"] | None,
) -> tuple[str, Adding]:
    """What workers must know to total their own matches, and what adds up their parts."""
    empty = empty_input(plan, df.schema)
    local, whole = (run_plan(p, empty, Limits(), narrow=True).to_arrow() for p in (parts_of(plan), plan))
    columns, between = output_schema(plan, df.schema), parts_schema(plan, df)
    sent = packed(arrow_schema(between))
    job = job_of(plan, shared, limits, sent, refined=refined, totals=True, names=names)
    width = len(plan.query.group_by)
    task = partial(add_up, plan.to_json(), packed(local.schema), packed(whole.schema), packed(arrow_schema(columns)))

    def add(found: DataFrame, *, packed_rows: bool = True) -> DataFrame:
        if packed_rows:
            found = found.mapInArrow(partial(opened, sent), between)
        if width:
            found = found.repartition(parallelism(df), *(_one_value(k) for k in between.fields[:width]))
        else:  # without any match there is one row all the same
            none = df.sparkSession.createDataFrame([tuple(_nothing(local))], between)
            found = found.union(none).repartition(1)
        return found.mapInArrow(task, columns)

    return job, add


def plainly_named(df: DataFrame) -> DataFrame:
    """Columns c0, c1, ...: Spark sends none to a worker that has a dot in its name."""
    return df.toDF(*(f"c{i}" for i in range(len(df.columns))))


def _one_value(field: st.StructField) -> Column:
    """A column of groups as it is hashed: 0.0 and -0.0 are one value, and so is every NaN."""
    own = f.col(field.name)
    if isinstance(field.dataType, st.DoubleType | st.FloatType):
        return f.when(f.isnan(own), f.lit(float("nan"))).otherwise(own + f.lit(0.0))
    return own


def _nothing(local: Any) -> list[Any]:
    (row,) = local.to_pylist()
    return list(row.values())
