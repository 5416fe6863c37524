"""Tables into files, by suffix."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from quercus.errors import DataError

_BATCH = 10_000


def write_table(table: pa.Table, path: str | Path) -> None:
    """Parquet (.parquet), CSV (.csv), JSON Lines (.jsonl, .ndjson) or Arrow IPC (.arrow).

    CSV has no structs and lists: a struct becomes a column per field (`a.ts`), a list becomes JSON text. JSON has no
    NaN and no infinities: they become null.
    """
    path = Path(path)
    try:
        match path.suffix.lower():
            case ".parquet":
                pa.parquet.write_table(table, path)
            case ".csv":
                pa.csv.write_csv(_flat(table), path)
            case ".jsonl" | ".ndjson":
                _write_json(table, path)
            case ".arrow":
                with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                    writer.write_table(table)
            case suffix:
                raise DataError(f"cannot write '{suffix}' files: choose .parquet, .csv, .jsonl or .arrow")
    except OSError as e:
        raise DataError(f"'{path}' cannot be written: {e}") from e


def _flat(table: pa.Table) -> pa.Table:
    columns: list[tuple[str, Any]] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_struct(column.type):
            fields = [column.type.field(i).name for i in range(column.type.num_fields)]
            columns += [(f"{name}.{f}", part) for f, part in zip(fields, column.flatten(), strict=True)]
        elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            texts = [None if v is None else json.dumps(_plain(v), ensure_ascii=False) for v in column.to_pylist()]
            columns.append((name, pa.array(texts, pa.string())))
        else:
            columns.append((name, column))
    return pa.Table.from_arrays([c for _, c in columns], [n for n, _ in columns])


def _write_json(table: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for batch in table.to_batches(max_chunksize=_BATCH):
            for row in batch.to_pylist():
                file.write(json.dumps(_plain(row), ensure_ascii=False) + "\n")


def _plain(value: Any) -> Any:
    """The value in the words of JSON."""
    match value:
        case dict():
            return {k: _plain(v) for k, v in value.items()}
        case list():
            return [_plain(v) for v in value]
        case Decimal():
            return int(value)
        case float() if not math.isfinite(value):
            return None
        case datetime() | date():
            return value.isoformat()
        case _:
            return value
