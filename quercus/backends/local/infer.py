"""A schema from data: the columns of a table or of the first file, with their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from quercus.backends.local import files
from quercus.backends.local.dialect import Files, as_files, is_files
from quercus.errors import DataError, nearest

_BLOCK = 2**24  # bytes of text that say what columns are
_ROWS = 1_000


def infer_columns(source: object, time: str, type_: str | None) -> dict[str, str]:
    """Attribute names and types, as `Schema` takes them; columns that no query could read are left out."""
    head = _head(source, time)
    found = head if isinstance(head, pa.Schema) else head.schema
    for needed, role in ((time, "time"), (type_, "type")):
        if needed is not None and needed not in found.names:
            hint = nearest(needed, found.names) or "columns: " + ", ".join(found.names[:12])
            raise DataError(f"no {role} column '{needed}': {hint}", column=needed)
    kinds = {f.name: _kind(f.type, is_time=f.name == time) for f in found}
    if isinstance(head, pa.Table):
        for name, kind in kinds.items():
            if kind == "timestamp[us]" and _is_finer(head.column(name)):
                kinds[name] = "timestamp[ns]"
    return {n: k for n, k in kinds.items() if k is not None and n != type_ and (n != time or k.startswith("timestamp"))}


def source_schema(source: object, time: str | None = None) -> pa.Schema:
    """The columns of anything that can be read; of files, those of the first rows."""
    found = _head(source, time)
    return found if isinstance(found, pa.Schema) else found.schema


def _head(source: object, time: str | None) -> pa.Schema | pa.Table:
    """The columns of anything that can be read; of files, with the first rows."""
    if is_files(source):
        return first_rows(source, time)
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


def _is_whole(column: pa.ChunkedArray) -> bool:
    """Whether floats were whole numbers in the text, some beyond 64 bits.

    Without to_numpy(), which would look for pandas, and swallow a Ctrl-C that comes meanwhile.
    """
    if not pa.types.is_floating(column.type):
        return False
    if not pc.any(pc.greater_equal(pc.abs(column), 2.0**63)).as_py():
        return False
    return bool(pc.all(pc.equal(column, pc.trunc(column))).as_py())


def _is_finer(column: pa.ChunkedArray) -> bool:
    """Whether moments in text have more digits than microseconds."""
    text = column.slice(0, _ROWS)
    return pa.types.is_string(text.type) and bool(pc.any(pc.match_substring_regex(text, r"[.,]\d{7}")).as_py())


def unit_of(column: pa.ChunkedArray) -> str | None:
    """What integer times count, if they look like moments since 1970: of the years 2001 to 2286."""
    if not pa.types.is_integer(column.type) or not len(column) or column[0].as_py() is None:
        return None
    return {10: "s", 13: "ms", 16: "us", 19: "ns"}.get(len(str(abs(column[0].as_py()))))


def refuse_dates(column: pa.ChunkedArray, time: str) -> None:
    """Integers that are all dates as people write them are no numbers to subtract: 1000 is not 41 more than 959."""
    if not pa.types.is_integer(column.type):
        return
    some = [str(v) for v in column.slice(0, _ROWS).drop_null().to_pylist()]
    for digits, format in {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}.items():
        if some and all(len(v) == digits and _is_date(v, format) for v in some):
            raise DataError(
                f"the times in '{time}', such as {some[0]}, look like dates, not like numbers that can be subtracted: "
                f"read them with --time-format '{format}' (in Python: Files(..., time_format='{format}')), "
                "or say with --time-unit what they count",
                column=time,
            )


def _is_date(text: str, format: str) -> bool:
    try:
        return 1900 <= datetime.strptime(text, format).year < 2200
    except ValueError:
        return False


def first_rows(where: str | Path | Files, time: str | None) -> pa.Table:
    """The first rows of the first file, with all its columns: they say what these are."""
    import pyarrow.parquet

    source = as_files(where)
    path = files.find(source)[0]
    kind = source.format or files.format_of(path)
    try:
        if kind in ("csv", "tsv", "jsonl"):
            found = files.by_blocks(lambda block: _first_of_text(path, kind, source, max(block, _BLOCK)))
        elif kind == "parquet":
            with pyarrow.parquet.ParquetFile(path) as file:
                batches = [*islice(file.iter_batches(_ROWS), 1)]
                found = pa.Table.from_batches(batches, file.schema_arrow)
        else:
            with pa.memory_map(str(path)) as raw:
                found = _first_of_ipc(raw)
    except (pa.ArrowException, OSError, ValueError) as e:
        if kind == "jsonl" and _is_an_array(path):
            raise DataError(f"'{path}' is one JSON array, and JSON Lines has an object a line: jq -c '.[]'") from None
        raise DataError(f"'{path}' cannot be read: {files.said(e)}") from None
    return found if time is None else source.timed(found, time)


def _is_an_array(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(256).lstrip().startswith(b"[")
    return False


def _first_of_text(path: Path, kind: str, source: Files, block: int) -> pa.Table:
    import pyarrow.csv
    import pyarrow.json

    if kind != "jsonl":
        parse = pyarrow.csv.ParseOptions(delimiter=source.separator(kind), newlines_in_values=True)
        read = pyarrow.csv.ReadOptions(block_size=block, column_names=source.columns)
        words = pyarrow.csv.ConvertOptions().null_values
        convert = pyarrow.csv.ConvertOptions(
            null_values=[*words, *source.nulls],
            strings_can_be_null=bool(source.nulls),
            decimal_point=source.decimal,
        )
        with pyarrow.csv.open_csv(path, read, parse, convert) as reader:
            return _as_it_is_read(pa.Table.from_batches([*islice(reader, 1)], reader.schema), pa.string())
    options = pyarrow.json.ReadOptions(block_size=block)
    if path.stat().st_size <= block:
        return _as_it_is_read(pyarrow.json.read_json(path, options), pa.int64())
    with pyarrow.json.open_json(path, options) as reader:
        return _as_it_is_read(pa.Table.from_batches([*islice(reader, 1)], reader.schema), pa.int64())


def _as_it_is_read(table: pa.Table, beyond: pa.DataType) -> pa.Table:
    """Text whose columns are what they are read as: times of day as text, for no query knows another type for them;
    whole numbers beyond 64 bits not as floats, which would make one of several: as text in CSV, and in JSON, where text
    is in quotes, as int64, which then is an error.
    """
    for i, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if pa.types.is_time(column.type):
            table = table.set_column(i, name, column.cast(pa.string()))
        elif _is_whole(column):
            table = table.set_column(i, name, pa.nulls(len(column), beyond))
    return table


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
    if pa.types.is_integer(t) or (pa.types.is_null(t) and not is_time):
        return "int64"  # nulls fit everywhere
    if pa.types.is_decimal(t):
        return "int64" if t.scale == 0 else "float64"
    if pa.types.is_floating(t):
        return "float64"
    if pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return "timestamp[us]" if is_time else "string"  # ISO 8601
    return None
