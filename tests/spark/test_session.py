"""The session helper: what it sets, and what it says where Spark or Java is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def test_arrow_goes_through_the_workers(spark: SparkSession) -> None:
    def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"id": pa.array([2 * i for i in batch.column(0).to_pylist()], pa.int64())})

    assert sorted(row.id for row in spark.range(5).mapInArrow(doubled, "id long").collect()) == [0, 2, 4, 6, 8]
