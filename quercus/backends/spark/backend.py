"""The Spark backend: takes DataFrames, gives DataFrames."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from quercus.backends.base import Limits
from quercus.backends.spark.sharing import Options
from quercus.errors import DataError, QueryError
from quercus.plan import Plan


class SparkBackend:
    """Runs a plan on Spark."""

    name = "spark"

    def supports(self, plan: Plan) -> str | None:
        """A source without an order needs one for what depends on it."""
        if plan.schema.ties == "arrival" and plan.schema.order is None:
            return 'a DataFrame has no order for ties="arrival": give Schema(order=) the column that has it'
        return None

    def run(self, plan: Plan, events: Any, *, threads: int | None = None, limits: Limits | None = None) -> DataFrame:
        """A DataFrame of the plan's matches over one of events; streaming, if that is."""
        if threads is not None:
            raise DataError("threads= is for the local backend: on Spark, cores and executors are the session's")
        return run(plan, events, limits=limits)


def run(
    plan: Plan,
    df: DataFrame,
    *,
    limits: Limits | None = None,
    partitions: int | None = None,
    slices: int | None = None,
    borders: tuple[int, ...] | None = None,
    split_keys: bool | None = None,
    **streaming: Any,
) -> DataFrame:
    """`plan.run(df)` with options. Limits hold for each task.

    `partitions`: into how many parts keys are shared out. `slices`: of time, where there is no key; `borders`: the
    same, one by one. `split_keys`: whether keys with very many events are cut into slices of time. By default all this
    follows from the events. Of a streaming DataFrame: `groups`, see `quercus.backends.spark.streaming`.
    """
    if not isinstance(df, DataFrame):
        raise DataError(f"events are a {type(df).__name__}: the Spark backend takes a Spark DataFrame")
    reason = SparkBackend().supports(plan)
    if reason is not None:
        raise QueryError("E703", f"the backend 'spark' cannot run this plan: {reason}")
    if df.isStreaming:
        from quercus.backends.spark.streaming import run_stream

        found: DataFrame = run_stream(plan, df, limits or Limits(), **streaming)
        return found
    if streaming:
        raise DataError(f"{', '.join(streaming)}: for streaming DataFrames only")
    for name, asked in (("partitions", partitions), ("slices", slices)):
        if asked is not None and (type(asked) is not int or asked < 1):
            raise DataError(f"{name}={asked!r}: give a whole number from 1 up, or None")
    from quercus.backends.spark.batch import run_batch

    return run_batch(plan, df, limits or Limits(), Options(partitions, slices, borders, split_keys))
