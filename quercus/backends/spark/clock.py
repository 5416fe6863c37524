"""The time of an event as a number that Spark can compare: an integer as it is, a moment in microseconds.

In the words of Spark SQL: a function of PySpark is a dozen calls into the JVM, an expression of any length is one.
"""

from __future__ import annotations

from pyspark.sql import types as st

from quercus.backends.spark.pushdown import MICROSECONDS, quoted
from quercus.plan import Plan


def clock(plan: Plan, given: st.StructType) -> str:
    """The time column as a number."""
    kind, own = given[plan.schema.time].dataType, quoted(plan.schema.time)
    if isinstance(kind, st.DateType):
        return f"CAST(unix_date({own}) AS BIGINT) * 86400000000"
    if isinstance(kind, st.TimestampType):
        return f"unix_micros({own})"
    if isinstance(kind, st.TimestampNTZType):
        return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01 00:00:00', {own})"
    return f"CAST({own} AS BIGINT)"


def length(plan: Plan, given: st.StructType) -> int:
    """The query's window in the numbers of `clock`, rounded up."""
    size, unit = plan.tree.window.size, plan.schema.time_unit
    if isinstance(given[plan.schema.time].dataType, st.DateType | st.TimestampType | st.TimestampNTZType):
        return -(-size // 1000) if unit == "ns" else size * MICROSECONDS[unit]
    return size
