"""The position of each tuple in its whole stream, without any node that sees the whole.

Time is cut into cells. The tuples of each are counted, and each is numbered by itself, from where the cells before it
end.
"""

from __future__ import annotations

from itertools import accumulate

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from quercus.backends.spark import survey
from quercus.backends.spark.continuous.streams import Stream
from quercus.backends.spark.sharing import CELLS, MANY
from quercus.backends.spark.slices import by_quantiles, slice_of

CELL = "quercus_cell"


def with_positions(stream: Stream, *, cells: int | None = None) -> DataFrame:
    """The tuples with `pos`, their position, and `end`, that of the first tuple of a later time."""
    df, at = stream.df, "t"
    times = survey.times(df, at)
    most = cells or min(CELLS, max(times.events * 8 // MANY, 1))
    borders = by_quantiles(times.quantiles, most) if times.quantiles and most > 1 else ()
    cell = f.expr(slice_of(at, borders))
    sizes = survey.sizes(df, cell, len(borders) + 1)[:-1] if borders else ()
    begins = f.array(*(f.lit(n).cast("bigint") for n in (0, *accumulate(sizes))))
    one = Window.partitionBy(CELL)
    pos = f.element_at(begins, f.col(CELL) + 1) + f.row_number().over(one.orderBy(*stream.order)) - 1
    numbered = df.withColumn(CELL, cell).withColumn("pos", pos)
    return numbered.withColumn("end", f.max("pos").over(Window.partitionBy(CELL, "t")) + 1).drop(CELL)
