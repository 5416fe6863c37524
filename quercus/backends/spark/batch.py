"""A plan over a DataFrame that is at hand as a whole."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from attrs import asdict
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as st

from quercus.backends.base import Limits
from quercus.backends.local.run import run_plan
from quercus.backends.spark.counters import counters_for
from quercus.backends.spark.packed import packed
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
        task = partial(run_task, _job(plan, shared, limits, packed(arrow_schema(columns)), refined=refined), counters)
        found = _plainly_named(shared.events).mapInArrow(task, columns)
    remember(found, Report(plan, df, shared.needed, shared.said, counters))
    return found


def _job(plan: Plan, shared: Shared, limits: Limits, output: str, *, refined: bool, totals: bool = False) -> str:
    names = type_names(plan)
    return Job(
        plan.to_json(),
        json.dumps(asdict(limits)),
        tuple(shared.events.columns),
        CODE if names is not None else plan.schema.type,
        None if names is None else tuple(names),
        shared.ranges,
        shared.expected,
        totals,
        _apart(plan),
        refined,
        output,
    ).to_json()


def _apart(plan: Plan) -> tuple[str, ...]:
    """The columns that must tell events apart, if their order matters."""
    if not counts_events(plan) and plan.schema.ties != "arrival":
        return ()
    order = [] if plan.schema.order is None else [plan.schema.order]
    return tuple(dict.fromkeys([plan.schema.time, *(named(plan, k) for k in plan.tree.partition_by), *order]))


def _totals(plan: Plan, df: DataFrame, shared: Shared, limits: Limits, counters: Any, *, refined: bool) -> DataFrame:
    """Parts of totals by each worker, then added up, group by group."""
    parts = parts_of(plan)
    empty = empty_input(plan, df.schema)
    local, whole = (run_plan(p, empty, Limits(), narrow=True).to_arrow() for p in (parts, plan))
    columns = output_schema(plan, df.schema)
    between = st.StructType(
        [st.StructField(f"c{i}", k.dataType) for i, k in enumerate(output_schema(parts, df.schema))]
    )
    job = _job(plan, shared, limits, packed(arrow_schema(between)), refined=refined, totals=True)
    found = _plainly_named(shared.events).mapInArrow(partial(run_task, job, counters), between)
    width = len(plan.query.group_by)
    if width:
        found = found.repartition(parallelism(df), *(_one_value(k) for k in between.fields[:width]))
    else:  # without any match there is one row all the same
        none = df.sparkSession.createDataFrame([tuple(_nothing(local))], between)
        found = found.union(none).repartition(1)
    task = partial(add_up, plan.to_json(), packed(local.schema), packed(whole.schema), packed(arrow_schema(columns)))
    return found.mapInArrow(task, columns)


def _plainly_named(df: DataFrame) -> DataFrame:
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
