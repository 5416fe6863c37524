"""The events of a stream on their way to the workers, in columns that lose nothing in pandas, and back to Arrow there.

pandas knows no null in an integer column and cannot tell null from NaN: numbers are sent without nulls, and one column
of bits says which were null. Moments are sent as microseconds, types as small integers. `quercus_time` stays a
timestamp, because Spark drops late rows by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as st

from quercus.backends.local.conform import wanted_columns
from quercus.backends.local.run import needed
from quercus.backends.spark.key_values import INTEGERS, key_value, micros_of
from quercus.backends.spark.pushdown import MICROSECONDS, column
from quercus.backends.spark.schemas import named
from quercus.backends.spark.stream_groups import Grouping, counts_events, labels
from quercus.errors import DataError
from quercus.ir import tree as t
from quercus.ir.expr import Type
from quercus.plan import Plan

GROUP, TIME, MICROS, CODE, ORDER, NULLS = (
    f"quercus_{name}" for name in ("group", "time", "micros", "type", "order", "nulls")
)
Frame = Any  # of pandas
OTHER = -1  # the code of types that no leaf takes
WATERMARK = "spark.watermarkDelayMs"  # in the metadata of a column that has one
_MOST_NULLS = 62  # columns that one number can tell the nulls of


@frozen
class Layout:
    """What the columns of a worker's rows are. Plain data, so that it travels as JSON."""

    time: str
    time_unit: str
    time_is_timestamp: bool
    type: str
    types: tuple[str, ...]  # what codes stand for
    attributes: tuple[tuple[str, Type], ...]
    timestamp_unit: str
    ordered: bool

    @classmethod
    def of(cls, plan: Plan) -> Layout:
        schema = plan.schema
        leaves = [n for n in t.walk(plan.tree.root) if isinstance(n, t.Buffer)]
        return cls(
            schema.time,
            schema.time_unit,
            schema.time_is_timestamp,
            schema.type,
            tuple(sorted({name for n in leaves for name in n.accepts})),
            tuple(wanted_columns(schema, needed(plan)).items()),
            schema.timestamp_unit,
            schema.order is not None,
        )

    def sent(self, i: int) -> str:
        """What the i-th attribute is called on the way."""
        return f"quercus_a{i}"


def packed(plan: Plan, df: DataFrame, layout: Layout, shared: Grouping, *, spark_drops: bool) -> DataFrame:
    """The rows that the plan needs, with the group of each. `spark_drops`: late ones, by `quercus_time`."""
    given, schema = df.schema, plan.schema
    names = labels(shared.count)
    time = column(schema.time)
    text = column(schema.type).cast("string")
    wanted = f.lit(True) if counts_events(plan) else f.coalesce(text.isin(list(layout.types)), f.lit(False))
    for key in plan.tree.partition_by:  # null keys belong to no stream
        wanted = wanted & column(named(plan, key)).isNotNull()
    own = f.lit(names[0])
    if shared.columns:
        keys = [named(plan, key) for key in shared.columns]
        values = [_key_value(name, plan, given[name].dataType) for name in keys]
        own = f.element_at(f.array(*map(f.lit, names)), f.pmod(f.hash(*values), f.lit(shared.count)) + 1)
    # One expression over the time: a condition of its own would be moved to before the watermark, and then events of
    # other types would not move the clock.
    no_time = f.raise_error(f.lit(f"column '{schema.time}': an event without a time")).cast("boolean")
    rows = df.where(f.when(time.isNull(), no_time).otherwise(wanted))
    chosen = [own.alias(GROUP), f.unix_micros(time).alias(MICROS), _code(text, layout.types).cast("int").alias(CODE)]
    if spark_drops:
        chosen.append(time.alias(TIME))
    if schema.order is not None:
        chosen.append(_order(schema.order, given[schema.order].dataType).alias(ORDER))
    chosen += [
        _sent(column(name), kind, given[name].dataType, name).alias(layout.sent(i))
        for i, (name, kind) in enumerate(layout.attributes)
    ]
    return rows.select(*chosen, *_nulls(layout))


def every_group(df: DataFrame, shared: Grouping) -> DataFrame:
    """A row for each group: all begin with the stream, so that one without a state is none of its checkpoint."""
    names = f.array(*map(f.lit, labels(shared.count)))
    return df.sparkSession.range(shared.count).select(f.element_at(names, f.col("id").cast("int") + 1).alias(GROUP))


def table_of(frame: Frame, layout: Layout) -> pa.Table:
    """The events of some rows as the engine takes them, and `quercus_order` at the end, if there is one."""
    code = frame[CODE].to_numpy()
    columns: dict[str, Any] = {
        layout.time: _moments(frame[MICROS].to_numpy(np.int64), layout),
        layout.type: pa.array(layout.types, pa.string()).take(pa.array(code, pa.int32(), mask=code < 0)),
    }
    for i, (name, kind) in enumerate(layout.attributes):
        columns[name] = _array(frame, i, kind, layout)
    if layout.ordered:
        columns[ORDER] = pa.array(frame[ORDER], from_pandas=True)
        if pa.types.is_large_string(columns[ORDER].type):
            columns[ORDER] = columns[ORDER].cast(pa.string())
    return pa.table(columns)


# in Spark's words -----------------------------------------------------------------------------------------------------


def _code(text: Column, types: tuple[str, ...]) -> Column:
    code = f.lit(OTHER)
    for i in range(len(types) - 1, -1, -1):
        code = f.when(text == f.lit(types[i]), f.lit(i)).otherwise(code)
    return code


def _key_value(name: str, plan: Plan, given: st.DataType) -> Column:
    """A key as the engine compares it, from what is sent: decimals become floats on the way."""
    if wanted_columns(plan.schema).get(name) == "float64" and isinstance(given, st.DecimalType):
        return column(name).cast("double") + f.lit(0.0)
    found = key_value(name, plan, given)
    if isinstance(found, str):
        raise DataError(f"column {found}", column=name)
    return found


def _sent(c: Column, kind: Type, given: st.DataType, name: str) -> Column:
    if isinstance(given, st.NullType):
        given = {"string": st.StringType(), "bool": st.BooleanType()}.get(kind, st.LongType())
        c = c.cast(given)
    if kind == "string":
        return c
    if kind == "timestamp":
        if isinstance(given, st.StringType):
            raise DataError(f"column '{name}' is text: cast it to a timestamp first", column=name)
        return f.coalesce(micros_of(c, given), f.lit(0))
    if kind == "bool":
        return f.coalesce(c, f.lit(False))
    number = "long" if kind == "int64" else "double"
    if kind == "int64" and isinstance(given, st.DecimalType):  # a cast may go round without a word
        wrong = f.concat(f.lit(f"column '{name}': "), c.cast("string"), f.lit(" does not fit int64"))
        c = f.when(~c.between(f.lit(-(2**63)), f.lit(2**63 - 1)), f.raise_error(wrong).cast("long")).otherwise(c)
    return f.coalesce(c.cast(number), f.lit(0).cast(number))


def _order(name: str, given: st.DataType) -> Column:
    """What breaks ties, as something that pandas keeps exactly; null is an error, for it is in no order."""
    c = column(name)
    if isinstance(given, INTEGERS):
        kept, kind = c.cast("long"), "long"
    elif isinstance(given, st.StringType):
        kept, kind = c, "string"
    elif isinstance(given, st.TimestampType | st.TimestampNTZType | st.DateType):
        kept, kind = micros_of(c, given), "long"
    else:
        raise DataError(
            f"column '{name}', which breaks ties, is {given.simpleString()}: give integers, text or moments",
            column=name,
        )
    missing = f.raise_error(f.lit(f"column '{name}': an event without a value to break ties by")).cast(kind)
    return f.when(c.isNull(), missing).otherwise(kept)


def _numbers(layout: Layout) -> list[int]:
    """The attributes whose nulls pandas would lose."""
    return [i for i, (_, kind) in enumerate(layout.attributes) if kind != "string"]


def _nulls(layout: Layout) -> list[Column]:
    found = []
    numbers = _numbers(layout)
    for first in range(0, len(numbers), _MOST_NULLS):
        bits = f.lit(0).cast("long")
        for bit, i in enumerate(numbers[first : first + _MOST_NULLS]):
            name = layout.attributes[i][0]
            bits = bits + f.when(column(name).isNull(), f.lit(1 << bit).cast("long")).otherwise(f.lit(0).cast("long"))
        found.append(bits.alias(f"{NULLS}{first // _MOST_NULLS}"))
    return found


# on a worker ----------------------------------------------------------------------------------------------------------


def _moments(micros: Any, layout: Layout) -> pa.Array:
    """Microseconds in the unit of the time column, exactly."""
    if layout.time_unit == "ns":
        made = micros * 1000
    else:
        length = MICROSECONDS[layout.time_unit]
        made = micros if length == 1 else micros // length
        if length > 1 and (made * length != micros).any():
            wrong = int(micros[np.argmax(made * length != micros)])
            raise DataError(
                f"column '{layout.time}': {wrong} microseconds are no whole number of {layout.time_unit}, "
                "the unit of the time column",
                column=layout.time,
            )
    array = pa.array(made, pa.int64())
    return array.view(pa.timestamp(layout.time_unit)) if layout.time_is_timestamp else array


def _array(frame: Frame, i: int, kind: Type, layout: Layout) -> pa.Array:
    values = frame[layout.sent(i)]
    if kind == "string":
        return pa.array(values, from_pandas=True).cast(pa.string())
    at = _numbers(layout).index(i)
    bits = frame[f"{NULLS}{at // _MOST_NULLS}"].to_numpy(np.int64)
    missing = (bits >> (at % _MOST_NULLS)) & 1 == 1
    mask = missing if missing.any() else None
    if kind == "timestamp":
        micros, unit = values.to_numpy(np.int64), layout.timestamp_unit
        made = micros * 1000 if unit == "ns" else micros // MICROSECONDS[unit]  # rounded down, as everywhere
        return pa.array(made, pa.int64(), mask=mask).view(pa.timestamp(unit))
    target = {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}[kind]
    return pa.array(values.to_numpy(), target, mask=mask)
