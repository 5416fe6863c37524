"""A plan over a streaming DataFrame: `plan.run(df)` where `df.isStreaming`.

The rows that the plan needs go to groups of keys (stream_groups.py, stream_columns.py). A worker has one state for each
group (stream_processor.py, state.py): it holds events until the watermark has reached them, lets them through the
engine of local streams in the order of time, and gives what is decided.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import types as st

from quercus.backends.base import Limits
from quercus.backends.spark.report import Shown, remember
from quercus.backends.spark.schemas import check_input, output_schema
from quercus.backends.spark.session import is_connected
from quercus.backends.spark.ship import SHIPPED
from quercus.backends.spark.stream_columns import GROUP, WATERMARK, Layout, every_group, packed
from quercus.backends.spark.stream_groups import Grouping, grouping
from quercus.backends.spark.stream_processor import ANSWERS, GroupProcessor, Job, opened
from quercus.errors import DataError, NotInstalled, QueryError
from quercus.plan import Plan

LATE = "late"  # the column of late events, where they are kept
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run_stream(
    plan: Plan,
    df: DataFrame,
    limits: Limits | None = None,
    *,
    groups: int | None = None,
    late: Literal["drop", "keep"] = "drop",
) -> DataFrame:
    """The matches of a plan in a streaming DataFrame, as a streaming DataFrame with the columns of `to_arrow()`.

    `groups`: of keys, each with a state of its own; it stays the same for the life of a checkpoint. `late`: an event
    before the watermark is dropped by Spark and counted in its progress, or kept in a column `late` of the answer, in a
    row of its own. Matches are appended; totals (AGG) are for output mode "update". Limits are those of one group in
    one batch.
    """
    if late not in ("drop", "keep"):
        raise DataError(f"late={late!r}: choose 'drop' or 'keep'")
    check_input(plan, df)
    _check_watermark(plan, df)
    _check_ties(plan)
    _check_session(df)
    _check_shipped(df)
    shared = grouping(plan, groups)
    _check_tasks(df, shared)
    columns = output_schema(plan, df.schema)
    if late == "keep":
        columns = _with_late(plan, df, columns)
    layout = Layout.of(plan)
    job = Job(plan, shared.count, limits or Limits(), LATE if late == "keep" else None, columns)
    rows = packed(plan, df, layout, shared, spark_drops=late == "drop")
    mode = "Update" if plan.query.aggregates else "Append"
    processor = GroupProcessor(job.to_json())
    begin = every_group(df, shared).groupBy(GROUP)
    answers = rows.groupBy(GROUP).transformWithStateInPandas(processor, ANSWERS, mode, "EventTime", initialState=begin)
    found = answers.mapInArrow(opened, columns)
    kept = "dropped and counted by Spark" if late == "drop" else f"kept in the column '{LATE}'"
    remember(found, Shown(plan, (shared.said, f"output mode {mode.lower()}", f"late events are {kept}")))
    return found


def _check_watermark(plan: Plan, df: DataFrame) -> None:
    time = plan.schema.time
    given = df.schema[time]
    if not isinstance(given.dataType, st.TimestampType):
        raise DataError(
            f"column '{time}' is {given.dataType.simpleString()}, and only a timestamp can have a watermark: "
            f'df.withColumn("{time}", F.timestamp_millis("{time}")).withWatermark("{time}", "10 seconds"), '
            "or what fits its unit",
            column=time,
        )
    if WATERMARK not in given.metadata:
        others = [f.name for f in df.schema if WATERMARK in f.metadata]
        found = f" (the watermark is on '{others[0]}')" if others else ""
        raise DataError(
            f"the stream has no watermark on '{time}'{found}, so that no event could ever be looked at: "
            f'df.withWatermark("{time}", "10 seconds") lets events be ten seconds late',
            column=time,
        )


def _check_ties(plan: Plan) -> None:
    """Windows of events need an order of equal times too, but there may be none: the state looks at what comes."""
    if plan.schema.ties == "arrival" and plan.schema.order is None:
        raise QueryError(
            "E703",
            'ties="arrival" orders events of the same time, and rows of Spark come in no order',
            hint="give Schema(order=) the column that has it",
        )


def _check_session(df: DataFrame) -> None:
    provider = df.sparkSession.conf.get(PROVIDER, None)
    if provider is None or "RocksDB" not in provider:
        raise DataError(
            f"streams need Spark's RocksDB state store, and the session has {provider}: "
            f'spark.conf.set("{PROVIDER}", "{ROCKSDB}"); sessions of quercus.backends.spark.session() have it'
        )


def _check_shipped(df: DataFrame) -> None:
    """Over Spark Connect, Spark gives a session's files to the workers of batches, but not to those of a state."""
    session = df.sparkSession
    if is_connected(session) and session.conf.get(SHIPPED, None) is not None:
        raise NotInstalled(
            "over Spark Connect, what ship(spark) sent does not reach the processes of streams: install quercus where "
            "the server and its workers run"
        )


def _check_tasks(df: DataFrame, shared: Grouping) -> None:
    tasks = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions", None) or "200")
    if tasks > 4 * max(shared.count, 2):
        warnings.warn(
            f"every batch of this stream will have {tasks} tasks, for {shared.count} groups: "
            'lower spark.conf.set("spark.sql.shuffle.partitions", ...) before the first start',
            UserWarning,
            stacklevel=3,
        )


def _with_late(plan: Plan, df: DataFrame, columns: st.StructType) -> st.StructType:
    """The columns of the answer, and one for late events: the columns that the plan reads."""
    if LATE in columns.names:
        raise DataError(f"the answer has a column '{LATE}' of its own: rename it with AS, or drop late events")
    layout = Layout.of(plan)
    kinds: dict[str, Any] = {
        "int64": st.LongType(),
        "float64": st.DoubleType(),
        "bool": st.BooleanType(),
        "string": st.StringType(),
        "timestamp": st.TimestampType(),
    }
    fields = [
        st.StructField(layout.time, st.TimestampType() if layout.time_is_timestamp else st.LongType()),
        st.StructField(layout.type, st.StringType()),
        *(st.StructField(name, kinds[kind]) for name, kind in layout.attributes),
    ]
    return st.StructType([*columns.fields, st.StructField(LATE, st.StructType(fields))])
