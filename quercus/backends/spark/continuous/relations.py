"""Windows that slide, as relations over time: DataFrames with `n`, `f`, `u` and the columns that are read."""

from __future__ import annotations

from typing import assert_never

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from quercus.backends.local.continuous.relations import NEVER
from quercus.backends.spark.continuous.positions import with_positions
from quercus.backends.spark.continuous.streams import SPARK_TYPES, Stream
from quercus.ir import window as w

STAY = "tuples stay where they are: a tuple's own time decides"


def relation(source: w.Source, stream: Stream, said: list[str], *, ordered: bool) -> DataFrame:
    """A source whose window slides; `ordered`: FIRST or LAST ask for its order."""
    window = source.window
    assert not isinstance(window, w.PatternWindow)
    if ordered:
        stream = stream.untied((), "FIRST() or LAST()")
    df, gone = stream.df, f.lit(NEVER).cast("bigint")
    match window:
        case w.Range():
            said.append(f"{stream.name}[Range]: {STAY}")
            far = f.col("t") < f.lit(NEVER - window.size - 1)
            gone = f.when(far, f.col("t") + f.lit(min(window.size + 1, NEVER)).cast("bigint")).otherwise(gone)
        case w.Now():
            said.append(f"{stream.name}[Now]: {STAY}")
            gone = f.when(f.col("t") < gone, f.col("t") + 1).otherwise(gone)  # Spark may look at tuples of no time
        case w.Unbounded():
            said.append(f"{stream.name}[Unbounded]: {STAY}")
        case w.Rows():
            df = _rows(window, stream, said)
            gone = f.coalesce(f.col("gone"), gone)
        case _:
            assert_never(window)
    columns = [stream.column(c.attr).cast(SPARK_TYPES[c.type]).alias(f"c{i}") for i, c in enumerate(source.reads)]
    own = df.select(stream.place.alias("n"), f.col("t").alias("f"), gone.alias("u"), *columns)
    return own.where(f.col("f") < f.col("u")) if isinstance(window, w.Rows) else own


def _rows(window: w.Rows, stream: Stream, said: list[str]) -> DataFrame:
    """The tuples with `gone`, the time of the tuple that is `count` later, of all or of those with the same values."""
    if window.by:
        by: list[Column] = [stream.column(a) for a in window.by]
        stream = stream.untied(by, "[Partition By ... Rows n]")
        said.append(f"{stream.name}[Partition By {', '.join(window.by)} Rows {window.count}]: by these attributes")
        later = Window.partitionBy(*by).orderBy(*stream.order)
        return stream.df.withColumn("gone", f.lead("t", window.count).over(later))
    said.append(f"{stream.name}[Rows {window.count}]: by slices of time, whose tuples are counted before")
    numbered = with_positions(stream.untied((), "[Rows n]"))
    later_ = numbered.select((f.col("pos") - f.lit(window.count)).alias("pos"), f.col("t").alias("gone"))
    return numbered.join(later_, "pos", "left")


def instants(relations: list[DataFrame], windows: list[DataFrame]) -> DataFrame:
    """The times at which a relation gains or loses a tuple; `windows`: closed ones, each at its time only."""
    found = [df.select(f.explode(f.array("f", "u")).alias("t")) for df in relations]
    found += [df.select(f.explode(f.array(f.col("f"), f.col("f") + 1)).alias("t")) for df in windows]
    every = found[0]
    for df in found[1:]:
        every = every.union(df)
    return every.where(f.col("t") < f.lit(NEVER)).distinct()
