"""The time of an event as a number that Spark can compare: an integer as it is, a moment in microseconds."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as st

from quercus.backends.spark.pushdown import MICROSECONDS, column
from quercus.plan import Plan


def clock(plan: Plan, given: st.StructType) -> Column:
    """The time column as a number."""
    name = plan.schema.time
    kind = given[name].dataType
    if isinstance(kind, st.DateType):
        return f.unix_date(column(name)).cast("long") * f.lit(86_400_000_000)
    if isinstance(kind, st.TimestampType):
        return f.unix_micros(column(name))
    if isinstance(kind, st.TimestampNTZType):
        return f.timestamp_diff("MICROSECOND", f.lit("1970-01-01").cast("timestamp_ntz"), column(name))
    return column(name).cast("long")


def length(plan: Plan, given: st.StructType) -> int:
    """The query's window in the numbers of `clock`, rounded up."""
    size, unit = plan.tree.window.size, plan.schema.time_unit
    if isinstance(given[plan.schema.time].dataType, st.DateType | st.TimestampType | st.TimestampNTZType):
        return -(-size // 1000) if unit == "ns" else size * MICROSECONDS[unit]
    return size
