"""Streams whose tuples have no type: schemas, inputs in all forms, and what still needs types."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

import quercus as qc
from quercus.backends.local.events import load

SCHEMA = qc.Schema({"v": "int64", "type": "string"}, type=None)
TABLE = pa.table({"ts": [1, 2], "v": [3, 4], "type": ["a", "b"]})


def test_a_schema_without_a_type_column() -> None:
    assert SCHEMA.special == ("ts",)
    assert SCHEMA.attribute("", "type") == "string"  # an attribute like any other
    assert SCHEMA.canonical("type") == "type"
    assert qc.Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    assert qc.Schema.infer({"ts": [1], "v": [2]}, type=None).columns() == {"v": "int64"}
    assert qc.Schema({"v": "int64"}, type=None).attribute("", "type") is None
    with pytest.raises(qc.DataError, match="no type column 'type'"):
        qc.Schema.infer({"ts": [1], "v": [2]})


def test_a_pattern_needs_types() -> None:
    with pytest.raises(qc.QueryError, match="no type column"):
        qc.compile("PATTERN SEQ(A, B) WITHIN 5", SCHEMA)


def test_columns_of_all_types_together() -> None:
    schema = qc.Schema({"A": {"x": "int64", "y": "string"}, "B": {"x": "float64", "z": "bool"}})
    assert schema.columns() == {"x": "int64", "y": "string", "z": "bool"}


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "arrow"])
def test_files(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"stream.{suffix}"
    match suffix:
        case "parquet":
            pa.parquet.write_table(TABLE, path)
        case "csv":
            pa.csv.write_csv(TABLE, path)
        case "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()))
        case "arrow":
            with pa.ipc.new_file(path, TABLE.schema) as writer:
                writer.write_table(TABLE)
    assert load(str(path), SCHEMA).table.to_pylist() == TABLE.to_pylist()


def test_a_column_of_types_that_is_not_asked_for_need_not_be_there() -> None:
    schema = qc.Schema({"v": "int64"})
    assert load({"ts": [1], "v": [2]}, schema, typed=False).table.column_names == ["ts", "v"]
    assert load({"ts": [1], "v": [2], "type": ["A"]}, schema, typed=False).table.column_names == ["ts", "v"]
    with pytest.raises(qc.DataError, match="no type column 'type'"):
        load({"ts": [1], "v": [2]}, schema)
    with pytest.raises(qc.DataError, match="no column 'v'"):
        load({"ts": [1]}, schema, typed=False)
