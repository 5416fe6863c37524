"""A schema from data: the columns of a table or of the first file, with their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from quercus.backends.local import files
from quercus.errors import DataError, nearest


def infer_columns(source: object, time: str, type_: str | None) -> dict[str, str]:
    """Attribute names and types, as `Schema` takes them; columns that no query could read are left out."""
    found = _arrow_schema(source)
    for needed, role in ((time, "time"), (type_, "type")):
        if needed is not None and needed not in found.names:
            hint = nearest(needed, found.names) or "columns: " + ", ".join(found.names[:12])
            raise DataError(f"no {role} column '{needed}': {hint}", column=needed)
    kinds = {f.name: _kind(f.type, is_time=f.name == time) for f in found}
    return {n: k for n, k in kinds.items() if k is not None and n != type_ and (n != time or k.startswith("timestamp"))}


def _arrow_schema(source: object) -> pa.Schema:
    if isinstance(source, str | Path):
        return _file_schema(files.find(source)[0])
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


def _file_schema(path: Path) -> pa.Schema:
    """The first block of a file says what its columns are."""
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet

    kind = files.format_of(path)
    try:
        if kind == "parquet":
            return pyarrow.parquet.read_schema(path)
        if kind == "arrow":
            with pa.memory_map(str(path)) as raw:
                return pa.ipc.open_file(raw).schema
        if kind in ("csv", "tsv"):
            parse = pyarrow.csv.ParseOptions(delimiter="\t" if kind == "tsv" else ",")
            with pyarrow.csv.open_csv(path, parse_options=parse) as reader:
                return reader.schema
        return pyarrow.json.read_json(path).schema
    except (pa.ArrowException, OSError, ValueError) as e:
        raise DataError(f"'{path}' cannot be read: {str(e).splitlines()[0]}") from None


def _kind(t: pa.DataType, *, is_time: bool) -> str | None:
    if pa.types.is_dictionary(t):
        t = t.value_type
    if pa.types.is_timestamp(t):
        return f"timestamp[{t.unit}]" if is_time else "timestamp"
    if pa.types.is_date(t):
        return "timestamp"
    if pa.types.is_boolean(t):
        return "bool"
    if pa.types.is_integer(t):
        return "int64"
    if pa.types.is_decimal(t):
        return "int64" if t.scale == 0 else "float64"
    if pa.types.is_floating(t):
        return "float64"
    if pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return "string"
    return None
