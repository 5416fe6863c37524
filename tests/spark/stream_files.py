"""Events in files, one micro-batch each, and a stream over them that runs until all are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

import quercus as qc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "ts timestamp, type string, id long, x double, s string, n long"
SCHEMA = qc.Schema({"ts": "timestamp[us]", "id": "int64", "x": "float64", "s": "string"}, order="n")
SECOND = 10**6
Row = dict[str, Any]
END: Row = {"ts": 10**6 * SECOND, "type": "Z", "id": None, "x": None, "s": None, "n": 10**6}  # moves the watermark


def drawn(seed: int, count: int, types: str = "ABCD", keys: int = 5) -> list[Row]:
    """Random events in the order of time, some at the same time, with nulls, NaN and integers that no float holds."""
    r = Random(seed)
    at = 1000 * SECOND
    found = []
    for n in range(count):
        at += r.choice((0, 1, SECOND // 2, SECOND, 2 * SECOND))
        id = r.choice((None, *(2**60 + k for k in range(keys))))
        x = r.choice((None, float("nan"), 0.5, 1.5))
        found.append({"ts": at, "type": r.choice(types), "id": id, "x": x, "s": r.choice((None, "p", "q")), "n": n})
    return found


def table(rows: Iterable[Row]) -> pa.Table:
    types = pa.schema(
        {"ts": pa.timestamp("us", tz="UTC")}
        | {"type": pa.string(), "id": pa.int64(), "x": pa.float64(), "s": pa.string(), "n": pa.int64()}
    )
    return pa.Table.from_pylist(list(rows), types)


def disordered(rows: list[Row], seed: int, delay: int) -> list[Row]:
    """The same rows, none more than `delay` behind a later one."""
    r = Random(seed)
    return sorted(rows, key=lambda row: row["ts"] + r.randint(0, delay))


class Files:
    """A folder of events, and the stream over it."""

    def __init__(self, spark: SparkSession | None, folder: Path) -> None:
        self.spark, self.folder, self.count = spark, folder, 0
        (folder / "in").mkdir(exist_ok=True)

    def add(self, rows: Iterable[Row]) -> None:
        """One more file, which is one more micro-batch."""
        hidden = self.folder / f"{self.count:04d}.parquet"
        pa.parquet.write_table(table(rows), hidden)
        hidden.rename(self.folder / "in" / hidden.name)
        self.count += 1

    def read(self, delay: str = "10 seconds") -> DataFrame:
        assert self.spark is not None
        found = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(self.folder / "in"))
        return found.withWatermark("ts", delay)

    def run(self, df: DataFrame, mode: str = "append", name: str = "out") -> list[dict[str, Any]]:
        """Run until all files are read, and on where it stopped the last time; the progress of each batch."""
        out = df.writeStream.outputMode(mode).option("checkpointLocation", str(self.folder / f"{name}.checkpoint"))
        if mode == "append":
            out = out.format("parquet").option("path", str(self.folder / name))
        else:
            place = str(self.folder / name)
            out = out.foreachBatch(lambda batch, i: batch.write.mode("overwrite").parquet(f"{place}/{i:04d}"))
        query = out.trigger(availableNow=True).start()
        query.awaitTermination()
        return [dict(p) for p in query.recentProgress]

    def found(self, name: str = "out") -> Counter[str]:
        """The rows of the answer, as Spark reads them."""
        assert self.spark is not None
        return bag(self.spark.read.parquet(str(self.folder / name)).toArrow())

    def batches(self, name: str = "out") -> list[list[Row]]:
        """What each batch gave, in update mode."""
        spark = self.spark
        assert spark is not None
        places = sorted((self.folder / name).glob("[0-9]*"))
        return [spark.read.parquet(str(place)).toArrow().to_pylist() for place in places]


def begun(folder: Path, kind: str) -> set[str]:
    """The batches of a stream that have begun (`offsets`), or that are done (`commits`)."""
    place = folder / "out.checkpoint" / kind
    return {p.name for p in place.iterdir() if p.name.isdigit()} if place.exists() else set()


def bag(answer: pa.Table) -> Counter[str]:
    """Rows as a bag; moments without their zone, which tells the same in all."""
    return Counter(repr(row).replace(", tzinfo=<UTC>", "") for row in _plain(answer).to_pylist())


def _plain(answer: pa.Table) -> pa.Table:
    return answer.cast(pa.schema([pa.field(f.name, _unzoned(f.type)) for f in answer.schema]))


def _unzoned(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _unzoned(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(_unzoned(kind.value_type))
    return kind


def local(plan: qc.Plan, rows: Iterable[Row]) -> Counter[str]:
    """What the local engine finds in the same events."""
    ordered = sorted(rows, key=lambda row: (row["ts"], row["n"]))
    return bag(plan.run(table(ordered).drop_columns(["n"])).to_arrow())
