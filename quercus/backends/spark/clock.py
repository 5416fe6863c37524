"""The time of an event as a number that Spark can compare: an integer as it is, a moment in microseconds.

In the words of Spark SQL: a function of PySpark is a dozen calls into the JVM, an expression of any length is one.
"""

from __future__ import annotations

from pyspark.sql import types as st

from quercus.backends.spark.pushdown import MICROSECONDS, quoted
from quercus.plan import Plan

PARTS = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000}  # of an interval, in microseconds


def clock(plan: Plan, given: st.StructType) -> str:
    """The time column as a number."""
    kind, own = given[plan.schema.time].dataType, quoted(plan.schema.time)
    if isinstance(kind, st.DateType):
        return f"CAST(unix_date({own}) AS BIGINT) * 86400000000"
    if isinstance(kind, st.TimestampType):
        return f"unix_micros({own})"
    if isinstance(kind, st.TimestampNTZType):
        since = f"({own} - TIMESTAMP_NTZ '1970-01-01 00:00:00')"  # timestampdiff would go by the zone of the session
        parts = [f"extract({name} FROM {since}) * {size}L" for name, size in PARTS.items()]
        return f"({' + '.join(parts)} + CAST(extract(SECOND FROM {since}) * 1000000 AS BIGINT))"
    return f"CAST({own} AS BIGINT)"


def length(plan: Plan, given: st.StructType) -> int:
    """The query's window in the numbers of `clock`, rounded up."""
    size, unit = plan.tree.window.size, plan.schema.time_unit
    if isinstance(given[plan.schema.time].dataType, st.DateType | st.TimestampType | st.TimestampNTZType):
        return -(-size // 1000) if unit == "ns" else size * MICROSECONDS[unit]
    return size
