"""Keys as the engine compares them.

Spark hashes a column as it is given, and may tell apart what the engine does not: integers that become one float64,
moments finer than the schema's unit. So a key is hashed as what it becomes there.
"""

from __future__ import annotations

from functools import reduce
from operator import add

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as st

from quercus.backends.local.conform import wanted_columns
from quercus.backends.spark.clock import PARTS
from quercus.backends.spark.pushdown import MICROSECONDS, column
from quercus.plan import Plan

INTEGERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_FLOATS = (st.FloatType, st.DoubleType)
_DIGITS = 15  # decimals of no more are all different as floats


def key_value(name: str, plan: Plan, given: st.DataType) -> Column | str:
    """A key as it is hashed, 0.0 and -0.0 alike; or, in words, why Spark cannot tell which are equal, and what would
    help."""
    own, kind = column(name), wanted_columns(plan.schema).get(name)
    if kind == "timestamp":
        if isinstance(given, st.StringType):
            return f"'{name}' is text that stands for moments: cast it to a timestamp first"
        if isinstance(given, st.NullType):
            return own
        micros, unit = micros_of(own, given), plan.schema.timestamp_unit
        return micros if unit in ("us", "ns") else micros - f.pmod(micros, f.lit(MICROSECONDS[unit]))
    if kind == "float64" and isinstance(given, (*INTEGERS, *_FLOATS)):
        return own.cast("double") + f.lit(0.0)
    if kind == "float64" and isinstance(given, st.DecimalType) and given.precision > _DIGITS:
        return f"'{name}' is {given.simpleString()}, and a float64 has fewer digits: cast it to a double first"
    return own.cast("long") if kind == "int64" and isinstance(given, INTEGERS) else own


def micros_of(c: Column, given: st.DataType) -> Column:
    """A moment as microseconds since 1970."""
    if isinstance(given, st.DateType):
        return f.unix_date(c).cast("long") * f.lit(86_400_000_000)
    if isinstance(given, st.TimestampNTZType):
        since = c - f.lit("1970-01-01").cast("timestamp_ntz")  # timestamp_diff would go by the zone of the session
        parts = [f.extract(f.lit(name), since).cast("long") * f.lit(size) for name, size in PARTS.items()]
        return reduce(add, parts) + (f.extract(f.lit("SECOND"), since) * f.lit(1_000_000)).cast("long")
    return f.unix_micros(c)
