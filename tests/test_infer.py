"""Schema.infer: what a table or a file says of itself."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import quercus as qc

TABLE = pa.table(
    {
        "when": pa.array([datetime(2026, 11, 16, tzinfo=UTC)], pa.timestamp("ms")),
        "kind": pa.array(["A"]).dictionary_encode(),
        "id": pa.array([1], pa.int32()),
        "price": pa.array([1.5]),
        "room": ["x"],
        "ok": [True],
        "tags": [["a"]],
    }
)
EXPECTED = {"id": "int64", "price": "float64", "room": "string", "ok": "bool"}


@pytest.mark.parametrize("source", [TABLE, TABLE.to_batches()[0], pl.from_arrow(TABLE), TABLE.to_reader()], ids=type)
def test_tables(source: object) -> None:
    schema = qc.Schema.infer(source, time="when", type="kind")
    assert schema.attributes("A") == EXPECTED
    assert schema.time_is_timestamp
    assert schema.time_unit in ("ms", "us")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "arrow"])
def test_files_that_then_run(tmp_path: Path, suffix: str) -> None:
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "id": [7, 7]})
    path = tmp_path / f"events.{suffix}"
    match suffix:
        case "parquet":
            pyarrow.parquet.write_table(table, path)
        case "csv":
            pyarrow.csv.write_csv(table, path)
        case "jsonl":
            pl.from_arrow(table).write_ndjson(path)  # type: ignore[union-attr]
        case _:
            pyarrow.feather.write_feather(table, path, compression="uncompressed")
    schema = qc.Schema.infer(path, time_unit="s")
    assert schema.attributes("A") == {"id": "int64"}
    assert schema.time_unit == "s"
    assert qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 5 s", schema).run(path).rows() == [{"a": 0, "b": 1}]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(qc.DataError, match="did you mean 'when'"):
        qc.Schema.infer(TABLE, time="wehn", type="kind")
    with pytest.raises(qc.DataError, match="type column 'type'"):
        qc.Schema.infer({"ts": [1]})
    with pytest.raises(qc.DataError, match="int"):
        qc.Schema.infer(5)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"no")
    with pytest.raises(qc.DataError, match=r"broken\.parquet"):
        qc.Schema.infer(broken)
