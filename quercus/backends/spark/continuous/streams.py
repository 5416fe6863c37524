"""Streams as DataFrames of one make: `t`, the time as a number; `q`, what breaks ties; `e0`, `e1`, ... the attributes.

Times and timestamps are counts of their unit, as the engine has them. What cannot be decided from the types of columns
(a time that is null) is an error of the job.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_schema

from quercus.backends.local.conform import wanted_columns
from quercus.backends.local.inputs import as_table
from quercus.backends.spark.key_values import micros_of
from quercus.backends.spark.pushdown import MICROSECONDS, column
from quercus.backends.spark.schemas import ZONE, check_names, check_order, is_case_sensitive
from quercus.errors import DataError
from quercus.ir.expr import Type
from quercus.schema import Schema

MOMENTS = (st.DateType, st.TimestampType, st.TimestampNTZType)
SPARK_TYPES: dict[Type, str] = {
    "int64": "bigint",
    "timestamp": "bigint",
    "float64": "double",
    "bool": "boolean",
    "string": "string",
    "null": "bigint",
}


@frozen(eq=False)
class Stream:
    """The tuples of a stream. `names` are its attributes, each in column `e<i>`; `tied`: `q` breaks ties."""

    name: str
    df: DataFrame
    schema: Schema
    names: tuple[str, ...]
    tied: bool

    def column(self, attr: str) -> Column:
        """An attribute as the language calls it."""
        if attr in ("ts", self.schema.time):
            return f.col("t")
        return f.col(f"e{self.names.index(attr)}")

    def kind(self, attr: str) -> Type:
        """The type of an attribute, as the engine knows it."""
        if attr == "type":
            return "string"
        return self.schema.columns()[attr]

    @property
    def order(self) -> list[Column]:
        """What tuples are sorted by."""
        return [f.col("t"), f.col("q")] if self.tied else [f.col("t")]

    @property
    def place(self) -> Column:
        """A tuple's place in the order of the stream, as one value."""
        return f.struct(*self.order)

    def untied(self, by: Sequence[Column], why: str) -> Stream:
        """The same, where two tuples of one time (and of the same `by`) that nothing tells apart are an error."""
        many = f.count(f.lit(1)).over(Window.partitionBy(*by, *self.order))
        checked = self.df.withColumn("t", f.when(many > 1, raised(self.untold(why), "bigint")).otherwise(f.col("t")))
        return evolve(self, df=checked)

    def untold(self, why: str) -> str:
        """What is said of two tuples that nothing tells apart."""
        what = f"several tuples of one time, and {why} needs them in an order: "
        if self.tied:
            return f"stream '{self.name}' has {what}their '{self.schema.order}' is the same too"
        return f"stream '{self.name}' has {what}give Schema(order=) the column that has it"


def given(name: str, df: DataFrame, schema: Schema, columns: frozenset[str]) -> Stream:
    """A DataFrame of the user's, checked; of its attributes only `columns`."""
    typed = "type" in columns and bool(schema.type)
    wanted = wanted_columns(schema, columns)
    order = [] if schema.order is None else [schema.order]
    needed = list(dict.fromkeys([schema.time, *([schema.type] if typed else []), *wanted, *order]))
    check(name, df.schema, schema, needed, columns, typed=typed, case_sensitive=is_case_sensitive(df))
    time = counted(df, name, schema.time, schema.time_unit, exact=True)
    far = time.isNull() | time.isin(-(2**63), 2**63 - 1)
    lost = f"stream '{name}', column '{schema.time}': a tuple without a time"
    listed = [f.when(far, raised(lost, "bigint")).otherwise(time).alias("t")]
    if order:
        own = column(order[0])
        kind = df.schema[order[0]].dataType.simpleString()
        lost = f"stream '{name}', column '{order[0]}': a tuple without a value to break ties by"
        listed.append(f.when(own.isNull(), raised(lost, kind)).otherwise(own).alias("q"))
    names = [*wanted, *(["type"] if typed else [])]
    for i, attr in enumerate(names):
        if attr == "type":
            found = column(schema.type).cast("string")
        elif wanted[attr] == "timestamp":
            found = counted(df, name, attr, schema.timestamp_unit, exact=False)
        else:
            found = converted(df, name, attr, wanted[attr])
        listed.append(found.alias(f"e{i}"))
    return Stream(name, df.select(*listed), schema, tuple(names), bool(order))


def check(
    name: str,
    have: st.StructType,
    schema: Schema,
    needed: list[str],
    columns: frozenset[str],
    *,
    typed: bool,
    case_sensitive: bool,
) -> None:
    """Refuse a DataFrame that lacks a column, or has one of another type than declared."""
    check_names(f"the DataFrame of '{name}'", have.names, needed, case_sensitive=case_sensitive)
    check_order(schema, have)
    moments = [schema.time, *(n for n, k in wanted_columns(schema, columns).items() if k == "timestamp")]
    for n in moments:
        if isinstance(have[n].dataType, st.StringType):
            raise DataError(
                f"column '{n}' of '{name}' is text: cast it to a timestamp first, "
                f'df.withColumn("{n}", F.to_timestamp("{n}"))',
                column=n,
            )
        unit = schema.time_unit if n == schema.time else schema.timestamp_unit
        if unit == "ns" and isinstance(have[n].dataType, MOMENTS):
            raise DataError(f"column '{n}' of '{name}': Spark knows no nanoseconds; declare timestamp[us]", column=n)
    chosen = [n for n in needed if n != schema.order or n in (*schema.special, *wanted_columns(schema, columns))]
    empty = to_arrow_schema(st.StructType([have[n] for n in chosen]), timezone=ZONE).empty_table()
    as_table(empty, schema, columns, typed=typed)


def raised(said: str, kind: str) -> Column:
    return f.raise_error(f.lit(said)).cast(kind)


def counted(df: DataFrame, stream: str, name: str, unit: str, *, exact: bool) -> Column:
    """A time as a number: integers as they are, moments as counts of the unit, rounded down, or `exact`."""
    own, kind = column(name), df.schema[name].dataType
    if not isinstance(kind, st.DateType | st.TimestampType | st.TimestampNTZType):
        return converted(df, stream, name, "int64")
    micros, size = micros_of(own, kind), MICROSECONDS[unit]
    if size == 1:
        return micros
    over = f.pmod(micros, f.lit(size))
    down = ((micros - over) / f.lit(size).cast("decimal(20,0)")).cast("bigint")
    if not exact:
        return down
    said = f"stream '{stream}', column '{name}': a moment that is no whole number of {unit}: declare timestamp[us]"
    return f.when(over != 0, raised(said, "bigint")).otherwise(down)


def converted(df: DataFrame, stream: str, name: str, kind: Type) -> Column:
    """An attribute as the engine has it."""
    own, have = column(name), df.schema[name].dataType
    if isinstance(have, st.StringType):
        return own if have == st.StringType() else f.collate(own, "UTF8_BINARY")
    if kind == "int64" and isinstance(have, st.DecimalType):
        said = f"stream '{stream}', column '{name}': a number beyond int64"
        small = own.try_cast("bigint")
        return f.when(own.isNotNull() & small.isNull(), raised(said, "bigint")).otherwise(small)
    return own.cast(SPARK_TYPES[kind])


# The way back ---------------------------------------------------------------------------------------------------------


def moment(count: Column, unit: str, *, plain: bool) -> Column:
    """A count of a unit as a timestamp; `plain`: one without a zone."""
    micros = count * f.lit(MICROSECONDS[unit])
    if not plain:
        return f.timestamp_micros(micros)
    return f.timestamp_add("MICROSECOND", micros, f.lit("1970-01-01").cast("timestamp_ntz"))


def is_plain(frames: Sequence[DataFrame]) -> bool:
    """Whether moments go out without a zone: all that come in have none."""
    found = [k.dataType for df in frames for k in df.schema if isinstance(k.dataType, MOMENTS[1:])]
    return bool(found) and all(isinstance(k, st.TimestampNTZType) for k in found)
