"""A schema from data: the columns of a table or of the first file, with their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from quercus.backends.local import files
from quercus.backends.local.dialect import Files, as_files, is_files
from quercus.errors import DataError, nearest

_BLOCK = 2**24  # bytes of text that say what columns are
_ROWS = 1_000


def infer_columns(source: object, time: str, type_: str | None) -> dict[str, str]:
    """Attribute names and types, as `Schema` takes them; columns that no query could read are left out."""
    found = source_schema(source, time)
    for needed, role in ((time, "time"), (type_, "type")):
        if needed is not None and needed not in found.names:
            hint = nearest(needed, found.names) or "columns: " + ", ".join(found.names[:12])
            raise DataError(f"no {role} column '{needed}': {hint}", column=needed)
    kinds = {f.name: _kind(f.type, is_time=f.name == time) for f in found}
    return {n: k for n, k in kinds.items() if k is not None and n != type_ and (n != time or k.startswith("timestamp"))}


def source_schema(source: object, time: str | None = None) -> pa.Schema:
    """The columns of anything that can be read; of files, those of the first rows."""
    if is_files(source):
        return first_rows(source, time).schema
    try:
        if isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
            return source.schema
        if isinstance(source, Mapping):
            return pa.table(cast("Any", dict(source))).schema
        if isinstance(source, Sequence):
            return pa.Table.from_pylist(cast("Any", list(source))).schema
        return pa.RecordBatchReader.from_stream(cast("Any", source)).schema
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as e:
        raise DataError(f"no schema can be read off {type(source).__name__}: {e}") from None


def first_rows(where: str | Path | Files, time: str | None) -> pa.Table:
    """The first rows of the first file, with all its columns: they say what these are."""
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet

    source = as_files(where)
    path = files.find(source)[0]
    kind = source.format or files.format_of(path)
    try:
        if kind == "parquet":
            with pyarrow.parquet.ParquetFile(path) as file:
                batches = [*islice(file.iter_batches(_ROWS), 1)]
                found = pa.Table.from_batches(batches, file.schema_arrow)
        elif kind == "arrow":
            with pa.memory_map(str(path)) as raw:
                found = _first_of_ipc(raw)
        elif kind in ("csv", "tsv"):
            parse = pyarrow.csv.ParseOptions(delimiter=source.separator(kind), newlines_in_values=True)
            read = pyarrow.csv.ReadOptions(block_size=_BLOCK, column_names=source.columns)
            with pyarrow.csv.open_csv(path, read, parse) as reader:
                found = pa.Table.from_batches([*islice(reader, 1)], reader.schema)
        elif path.stat().st_size > _BLOCK:
            with pyarrow.json.open_json(path, pyarrow.json.ReadOptions(block_size=_BLOCK)) as reader:
                found = pa.Table.from_batches([*islice(reader, 1)], reader.schema)
        else:
            found = pyarrow.json.read_json(path)
    except (pa.ArrowException, OSError, ValueError) as e:
        raise DataError(f"'{path}' cannot be read: {str(e).splitlines()[0]}") from None
    return found if time is None else source.timed(found, time)


def _first_of_ipc(raw: Any) -> pa.Table:
    try:
        file = pa.ipc.open_file(raw)
        batches = [file.get_batch(0)] if file.num_record_batches else []
        return pa.Table.from_batches(batches, file.schema)
    except pa.ArrowInvalid:
        raw.seek(0)
        reader = pa.ipc.open_stream(raw)
        return pa.Table.from_batches([*islice(reader, 1)], reader.schema)


def _kind(t: pa.DataType, *, is_time: bool) -> str | None:
    if pa.types.is_dictionary(t):
        t = t.value_type
    if pa.types.is_timestamp(t):
        return f"timestamp[{t.unit}]" if is_time else "timestamp"
    if pa.types.is_date(t):
        return "timestamp[s]" if is_time else "timestamp"
    if pa.types.is_boolean(t):
        return "bool"
    if pa.types.is_integer(t):
        return "int64"
    if pa.types.is_decimal(t):
        return "int64" if t.scale == 0 else "float64"
    if pa.types.is_floating(t):
        return "float64"
    if pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return "timestamp[us]" if is_time else "string"  # ISO 8601
    return None
