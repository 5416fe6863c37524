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
from quercus.ir import expr as x
from quercus.plan import Plan
from quercus.schema import Schema

_OWN = {"quercus_type", "quercus_slice", "quercus_own", "quercus_key", "quercus_end", "quercus_cell", "quercus_answer"}
ZONE = "UTC"  # of moments on their way to a worker and back


def columns_of(plan: Plan) -> list[str]:
    """The columns that a run reads: time, type, the attributes that the answer is made from, keys, what breaks ties."""
    schema = plan.schema
    keys = [named(plan, n) for n in plan.tree.partition_by]
    names = [schema.time, schema.type, *wanted_columns(schema, needed(plan)), *keys]
    return list(dict.fromkeys([*names, *([schema.order] if schema.order is not None else [])]))


def named(plan: Plan, attr: str) -> str:
    """The column of an attribute as the language calls it: `ts` and `type` may be called otherwise."""
    return {"ts": plan.schema.time, "type": plan.schema.type}.get(attr, attr)


def check_input(plan: Plan, df: DataFrame) -> None:
    """Refuse a DataFrame that lacks a column, or has one of another type than declared."""
    given = df.schema
    check_names("the DataFrame", given.names, columns_of(plan), case_sensitive=is_case_sensitive(df))
    check_order(plan.schema, given)
    made = [o for o in plan.query.returns if not isinstance(o.value, str | x.Column) and o.value.type == "timestamp"]
    if made and plan.schema.timestamp_unit == "ns":
        raise DataError(f"'{made[0].name}' is in nanoseconds, which Spark does not know: declare timestamp[us]")
    time = given[plan.schema.time].dataType
    if isinstance(time, st.StringType):
        raise DataError(
            f"column '{plan.schema.time}' is text: cast it to a timestamp first, "
            f'df.withColumn("{plan.schema.time}", F.to_timestamp("{plan.schema.time}"))',
            column=plan.schema.time,
        )
    empty_input(plan, given)


def is_case_sensitive(df: DataFrame) -> bool:
    """Whether Spark tells `id` from `ID`."""
    return str(df.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def check_names(whose: str, given: list[str], wanted: list[str], *, case_sensitive: bool) -> None:
    """Refuse what lacks a column, has it twice, as Spark sees it, or has one that workers use themselves."""
    for name in wanted:
        if name in _OWN:
            raise DataError(f"'{name}' is a name that Quercus uses on Spark itself: rename the column", column=name)
        if given.count(name) != 1:
            often = f"{given.count(name)} columns" if name in given else "no column"
            hint = nearest(name, given) or "columns: " + ", ".join(given[:12])
            raise DataError(f"{whose} has {often} '{name}': {hint}", column=name)
        alike = [n for n in given if n.casefold() == name.casefold()]
        if len(alike) > 1 and not case_sensitive:
            both = " and ".join(map(repr, alike))
            raise DataError(f"{whose} has {both}, which Spark takes for one: rename or drop one", column=name)


def check_order(schema: Schema, given: st.StructType) -> None:
    """Refuse what breaks no ties."""
    name = schema.order
    if name is None:
        return
    if name == schema.type:
        raise DataError(f"Schema(order={name!r}): on Spark, the type of events breaks no ties", column=name)
    if isinstance(given[name].dataType, st.StructType | st.MapType | st.ArrayType | st.VariantType):
        kind = given[name].dataType.simpleString()
        raise DataError(f"column '{name}' is {kind[:60]}, which has no order: choose another one", column=name)


def empty_input(plan: Plan, given: st.StructType) -> pa.Table:
    """No events, in the columns of the DataFrame as the engine takes them."""
    known = (*plan.schema.special, *wanted_columns(plan.schema))
    names = [n for n in columns_of(plan) if n != plan.schema.order or n in known]
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
