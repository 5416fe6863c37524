"""Tables into files, by suffix."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from quercus.backends.local.records import records, values
from quercus.errors import DataError

_BATCH = 10_000
_KINDS = (".parquet", ".csv", ".jsonl", ".ndjson", ".arrow")


def write_table(table: pa.Table, path: str | Path) -> None:
    """Parquet (.parquet), CSV (.csv), JSON Lines (.jsonl, .ndjson) or Arrow IPC (.arrow).

    CSV has no structs and lists: a struct becomes a column per field (`a.ts`), a list becomes JSON text. JSON has no
    NaN and no infinities: they become null.
    """
    with Writer(path) as writer:
        writer.write(table)


class Writer:
    """Writes tables of one schema into a file, one after the other. The file is there once all are written."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.kind = self.path.suffix.lower()
        if self.kind not in _KINDS:
            raise DataError(f"cannot write '{self.kind}' files: choose {', '.join(_KINDS[:-1])} or {_KINDS[-1]}")
        if not self.path.parent.is_dir():
            raise DataError(f"'{self.path}' cannot be written: no folder '{self.path.parent}'")
        self._part = self.path.with_name(f".{self.path.name}.part")
        self._sink: Any = None
        self._schema: pa.Schema | None = None

    def write(self, table: pa.Table) -> None:
        try:
            table = flat(table) if self.kind == ".csv" else table
            if self._schema is None:
                self._schema = table.schema
                self._sink = self._open(table.schema)
            elif table.schema != self._schema:
                table = table.cast(self._schema)
            if self.kind in (".jsonl", ".ndjson"):
                _write_json(table, self._sink)
            else:
                self._sink.write_table(table)
        except (OSError, pa.ArrowException) as e:
            raise DataError(f"'{self.path}' cannot be written: {e}") from e

    def _open(self, schema: pa.Schema) -> Any:
        match self.kind:
            case ".parquet":
                return pa.parquet.ParquetWriter(self._part, schema)
            case ".csv":
                return pa.csv.CSVWriter(self._part, schema)
            case ".arrow":
                return pa.ipc.new_file(str(self._part), schema)
            case _:
                return self._part.open("w", encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if self._sink is not None:
                self._sink.close()
            if kind is None:
                self._part.replace(self.path)
            else:
                self._part.unlink(missing_ok=True)
        except OSError as e:
            with suppress(OSError):
                self._part.unlink(missing_ok=True)
            raise DataError(f"'{self.path}' cannot be written: {e}") from e


def flat(table: pa.Table) -> pa.Table:
    """The table without structs and lists, as CSV needs it."""
    columns: list[tuple[str, Any]] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_struct(column.type):
            fields = [column.type.field(i).name for i in range(column.type.num_fields)]
            columns += [(f"{name}.{f}", part) for f, part in zip(fields, column.flatten(), strict=True)]
        elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            texts = [None if v is None else json.dumps(_plain(v), ensure_ascii=False) for v in values(column)]
            columns.append((name, pa.array(texts, pa.string())))
        else:
            columns.append((name, column))
    return pa.Table.from_arrays([c for _, c in columns], [n for n, _ in columns])


def _write_json(table: pa.Table, file: TextIO) -> None:
    for batch in table.to_batches(max_chunksize=_BATCH):
        file.writelines(map(json_line, records(batch)))


def json_line(row: dict[str, Any]) -> str:
    """A row as a line of JSON Lines."""
    return json.dumps(_plain(row), ensure_ascii=False) + "\n"


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
