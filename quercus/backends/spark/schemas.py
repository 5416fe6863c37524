"""What goes in and what comes out: the columns of a DataFrame, checked before a run, and those of the answer."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as st
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from quercus.backends.base import Limits
from quercus.backends.local.conform import wanted_columns
from quercus.backends.local.inputs import as_table
from quercus.backends.local.run import needed, run_plan
from quercus.errors import DataError, nearest
from quercus.plan import Plan

ZONE = "UTC"  # of moments on their way to a worker and back


def columns_of(plan: Plan) -> list[str]:
    """The columns that a run reads: time, type, the attributes that the answer is made from, keys, what breaks ties."""
    schema = plan.schema
    names = [schema.time, schema.type, *wanted_columns(schema, needed(plan)), *plan.tree.partition_by]
    return list(dict.fromkeys([*names, *([schema.order] if schema.order is not None else [])]))


def check_input(plan: Plan, df: DataFrame) -> None:
    """Refuse a DataFrame that lacks a column, or has one of another type than declared."""
    given = df.schema
    for name in columns_of(plan):
        if given.names.count(name) != 1:
            often = f"{given.names.count(name)} columns" if name in given.names else "no column"
            hint = nearest(name, given.names) or "columns: " + ", ".join(given.names[:12])
            raise DataError(f"the DataFrame has {often} '{name}': {hint}", column=name)
    time = given[plan.schema.time].dataType
    if isinstance(time, st.StringType):
        raise DataError(
            f"column '{plan.schema.time}' is text: cast it to a timestamp first, "
            f'df.withColumn("{plan.schema.time}", F.to_timestamp("{plan.schema.time}"))',
            column=plan.schema.time,
        )
    empty_input(plan, given)


def empty_input(plan: Plan, given: st.StructType) -> pa.Table:
    """No events, in the columns of the DataFrame as the engine takes them."""
    names = [n for n in columns_of(plan) if n != plan.schema.order or n in wanted_columns(plan.schema)]
    chosen = to_arrow_schema(st.StructType([given[n] for n in names]), timezone=ZONE)
    return as_table(chosen.empty_table(), plan.schema, needed(plan))


def output_schema(plan: Plan, given: st.StructType) -> st.StructType:
    """The columns of the answer: those of `to_arrow()`. Moments have a zone, unless all that go in have none."""
    found = run_plan(plan, empty_input(plan, given), Limits(), narrow=True).to_arrow().schema
    moments = [f.dataType for f in given if isinstance(f.dataType, st.TimestampType | st.TimestampNTZType)]
    plain = bool(moments) and all(isinstance(m, st.TimestampNTZType) for m in moments)
    return from_arrow_schema(found, prefer_timestamp_ntz=plain)


def arrow_schema(columns: st.StructType) -> pa.Schema:
    """The same columns as Arrow has them on the way back."""
    return to_arrow_schema(columns, timezone=ZONE)
