"""Events in files: Parquet, CSV, JSON Lines and Arrow IPC, one by one or many by a glob or a folder."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet
from attrs import evolve, frozen

from quercus.backends.local.conform import Source, parsed
from quercus.backends.local.dialect import UNIX, Files, as_files
from quercus.errors import DataError
from quercus.ir.expr import Type
from quercus.schema import Schema

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
COMPRESSED = {".gz", ".bz2", ".zst", ".lz4"}
_PIECE = 262_144  # rows
_BLOCK = 2**24  # bytes of text
_SHORT, _LONGEST = 2**20, 2**28  # ... of a whole file: at first, and where lines are longer than that
_DECLARED = {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}


T = TypeVar("T")


def format_of(path: Path) -> str | None:
    """The format that a file's suffix stands for."""
    suffixes = [s.lower() for s in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in COMPRESSED and FORMATS.get(suffixes[-2]) in ("csv", "tsv", "jsonl"):
        return FORMATS[suffixes[-2]]
    return FORMATS.get(path.suffix.lower())


def find(where: str | Path | Files) -> list[Path]:
    """The files of paths, folders and globs, those of each in sorted order."""
    files = as_files(where)
    return [found for path in files.paths for found in _found(path, files)]


def _found(where: str, files: Files) -> list[Path]:
    path = Path(where)
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.is_file() and format_of(p) and p.name[0] not in "._")
    elif path.exists():
        found = [path]
    else:
        found = sorted(Path(p) for p in glob(where, recursive=True) if Path(p).is_file())
    if not found:
        raise DataError(f"no file at '{where}'")
    for p in found:
        if _kind(p, files) is None:
            raise DataError(f"'{p}' has none of the suffixes {' '.join(FORMATS)}: name its format")
    return found


def _kind(path: Path, files: Files) -> str | None:
    return files.format or format_of(path)


@frozen
class Read:
    """The wanted columns as they lie in a file, all that it has, and whether one it lacks counts as nulls."""

    table: pa.Table
    names: list[str]
    sparse: bool = False
    part: float = 1.0  # of the file, up to here


def read(
    path: Path, schema: Schema, wanted: Mapping[str, Type], source: Source, where: str | Path | Files = ""
) -> Read:
    """The wanted columns of a file; `where`: what it was found by."""
    files = as_files(where)
    names = [*schema.special, *wanted]
    with _explained(path, names, wanted, source, files):
        found = _read(path, schema, wanted, files, names)
        return evolve(found, table=files.timed(found.table, schema.time))


def _read(path: Path, schema: Schema, wanted: Mapping[str, Type], files: Files, names: list[str]) -> Read:
    kind = _kind(path, files)
    match kind:
        case "parquet":
            with pa.parquet.ParquetFile(path) as file:
                known = file.schema_arrow.names
                return Read(file.read(columns=[n for n in known if n in names]), known)
        case "arrow":
            return _read_ipc(path, names)
        case "csv" | "tsv" if (header := _only_a_header(path, files, kind)) is not None:
            return Read(pa.table({n: pa.nulls(0) for n in header if n in names}), header)
        case "csv" | "tsv":
            csv_ = _csv_options(path, names, _text_types(schema, wanted, files), files, kind)
            return Read(
                by_blocks(lambda block: pa.csv.read_csv(path, csv_.read(block), csv_.parse, csv_.convert)), csv_.header
            )
        case _:
            return Read(_read_json(path, schema, wanted, files), names, sparse=True)


def by_blocks(read: Callable[[int], T]) -> T:
    """Read text in blocks, and again in larger ones where a line is longer than a block."""
    block = _SHORT
    while True:
        try:
            return read(block)
        except pa.ArrowInvalid as e:
            if "straddl" not in str(e) or block >= _LONGEST:
                raise
            block *= 16


def said(e: Exception) -> str:
    """The first line of what Arrow says; in our words where its own would help nobody."""
    first = (str(e).splitlines() or [type(e).__name__])[0]
    if "straddl" in first:
        return f"a line or a field is longer than {_BLOCK >> 20} MB: is a quote not closed?"
    return first


def _text_types(schema: Schema, wanted: Mapping[str, Type], files: Files) -> dict[str, Type]:
    text: tuple[str, ...] = (schema.type,) if schema.type else ()
    if files.time_format is not None:
        text += (schema.time,)
    return {**wanted, **dict.fromkeys(text, "string")}


def weight(path: Path, names: Collection[str], where: str | Path | Files = "") -> int:
    """About how many bytes the wanted columns of a file take in memory."""
    try:
        if _kind(path, as_files(where)) == "parquet":
            with pa.parquet.ParquetFile(path) as file:
                groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
                columns = (g.column(j) for g in groups for j in range(g.num_columns))
                return sum(c.total_uncompressed_size for c in columns if c.path_in_schema in names)
        return path.stat().st_size * (8 if path.suffix.lower() in COMPRESSED else 1)
    except (pa.ArrowException, OSError):
        return 0  # reading it will say what is wrong


def read_pieces(
    path: Path, schema: Schema, wanted: Mapping[str, Type], source: Source, where: str | Path | Files = ""
) -> Iterator[Read]:
    """The wanted columns of a file, some rows at a time."""
    files = as_files(where)
    names = [*schema.special, *wanted]
    with _explained(path, names, wanted, source, files):
        for found in _pieces(path, schema, wanted, files, names, source):
            yield evolve(found, table=files.timed(found.table, schema.time)) if files.time_format else found


def _pieces(
    path: Path, schema: Schema, wanted: Mapping[str, Type], files: Files, names: list[str], source: Source
) -> Iterator[Read]:
    kind = _kind(path, files)
    match kind:
        case "parquet":
            with pa.parquet.ParquetFile(path) as file:
                known, rows, of = file.schema_arrow.names, 0, max(1, file.metadata.num_rows)
                for batch in file.iter_batches(_PIECE, columns=[n for n in known if n in names]):
                    rows += batch.num_rows
                    yield Read(pa.Table.from_batches([batch]), known, part=rows / of)
        case "arrow":
            yield from _ipc_pieces(path, names)
        case "csv" | "tsv" if (header := _only_a_header(path, files, kind)) is not None:
            yield Read(pa.table({n: pa.nulls(0) for n in header if n in names}), header)
        case "csv" | "tsv":
            csv_ = _csv_options(path, names, _text_types(schema, wanted, files), files, kind)
            csv_ = csv_.with_text(schema.time, _opening(path, csv_))
            with (
                _opened(path) as (stream, part),
                pa.csv.open_csv(stream, csv_.read(_BLOCK), csv_.parse, csv_.convert) as reader,
            ):
                rows = 0
                for i, batch in enumerate(reader, 1):
                    here = evolve(source, first_row=source.first_row + rows)
                    rows += batch.num_rows
                    yield Read(csv_.zoned(pa.Table.from_batches([batch]), schema, here), csv_.header, part=part(i))
        case _:
            for table, read in _json_pieces(path, schema, wanted, files):
                yield Read(table, names, sparse=True, part=read)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Callable[[int], float]]]:
    """A file of text, and which part of it some blocks are: readers are ahead of what they give.

    Of a compressed file nobody knows: it is what was read.
    """
    size = max(1, path.stat().st_size)
    codec = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}.get(path.suffix.lower())
    with pa.OSFile(str(path)) as raw:
        if codec is None:
            yield raw, lambda blocks: min(1.0, blocks * _BLOCK / size)
        else:
            with pa.CompressedInputStream(raw, codec) as stream:
                yield stream, lambda blocks: min(1.0, raw.tell() / size)


@contextmanager
def _explained(
    path: Path, names: list[str], wanted: Mapping[str, Type], source: Source, files: Files
) -> Iterator[None]:
    """What goes wrong in reading a file as a `DataError`, with the column and the row where they can be found."""
    kind = _kind(path, files)
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError) as e:
        if kind in ("csv", "tsv", "jsonl") and isinstance(e, pa.ArrowInvalid):
            _blame(path, names, wanted, source, None if kind == "jsonl" else files.separator(kind), files)
        raise DataError(f"'{path}' cannot be read: {said(e)}") from e


def _blame(
    path: Path,
    names: list[str],
    wanted: Mapping[str, Type],
    source: Source,
    delimiter: str | None,
    files: Files,
) -> None:
    """Read a text file again, value by value, for an error that names the column and the row; or find nothing wrong."""
    try:
        with (
            pa.input_stream(str(path), compression="detect") as raw,
            io.TextIOWrapper(raw, "utf-8", newline="") as text,
        ):
            rows: Iterator[Any] = (
                csv.DictReader(text, files.columns, delimiter=delimiter) if delimiter else map(json.loads, text)
            )
            for number, row in enumerate(rows):
                for name in names:
                    value = row.get(name) if isinstance(row, dict) else None
                    kind = wanted.get(name, "")
                    if isinstance(value, str) and kind == "float64":
                        value = value.replace(files.decimal, ".")
                    if value not in (None, "", *files.nulls) and not _reads_as(value, kind):
                        hint = _hint(value, kind, name, is_text=delimiter is not None)
                        source.fail(f"{str(value)[:80]!r} is no {kind}{hint}", name, number)
    except (OSError, ValueError, csv.Error):
        return


def _hint(value: Any, kind: str, name: str, *, is_text: bool) -> str:
    """What would read it, where that is plain."""
    if is_text and value in pa.csv.ConvertOptions().null_values:
        return f", and null if --null {value} says so (in Python: Files(..., nulls=[{value!r}]))"
    if kind == "int64" and _reads_as(value, "float64"):
        other = "string reads it" if is_text else "float64 reads it, rounded"
        return f": --attribute {name}={other} (in Python, the schema)"
    return ""


def _reads_as(value: Any, kind: str) -> bool:
    """Whether a field of CSV (a str) or a value of JSON is of the declared type, as far as can be said simply."""
    try:
        match kind:
            case "int64":
                number = int(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
                return number is not None and -(2**63) <= number < 2**63
            case "float64":
                return not isinstance(value, bool) and float(value) is not None
            case "bool":
                return isinstance(value, bool) or str(value).lower() in ("true", "false", "0", "1")
            case "string":
                return isinstance(value, str)
            case _:
                return True
    except (TypeError, ValueError):
        return False


def _read_ipc(path: Path, names: list[str]) -> Read:
    source = pa.memory_map(str(path))
    try:
        table = pa.ipc.open_file(source).read_all()
    except pa.ArrowInvalid:
        source.seek(0)
        table = pa.ipc.open_stream(source).read_all()
    known = table.column_names
    found = table.select([i for i, n in enumerate(known) if n in names])
    found.validate(full=True)  # offsets that point elsewhere would be read as they are
    return Read(found, known)


def _ipc_pieces(path: Path, names: list[str]) -> Iterator[Read]:
    with pa.memory_map(str(path)) as source:
        try:
            file = pa.ipc.open_file(source)
            batches: Iterable[Any] = (file.get_batch(i) for i in range(file.num_record_batches))
            of: int | None = file.num_record_batches
        except pa.ArrowInvalid:
            source.seek(0)
            batches, of = pa.ipc.open_stream(source), None
        for i, batch in enumerate(batches, 1):
            known = batch.schema.names
            part = i / of if of else source.tell() / max(1, source.size())
            found = pa.Table.from_batches([batch]).select([i for i, n in enumerate(known) if n in names])
            found.validate(full=True)
            yield Read(found, known, part=part)


def _json_pieces(
    path: Path, schema: Schema, wanted: Mapping[str, Type], files: Files
) -> Iterator[tuple[pa.Table, float]]:
    """As _read_json: the first block says whether times and types are text or numbers."""
    if _is_blank(path):
        return
    failed: Exception | None = None
    block = pa.json.ReadOptions(block_size=_BLOCK)
    for explicit in _json_schemas(schema, wanted, files):
        options = pa.json.ParseOptions(explicit_schema=explicit, unexpected_field_behavior="ignore")
        began = False
        try:
            with (
                _opened(path) as (stream, part),
                pa.json.open_json(stream, read_options=block, parse_options=options) as reader,
            ):
                for i, batch in enumerate(reader, 1):
                    began = True
                    yield pa.Table.from_batches([batch]), part(i)
            return
        except pa.ArrowInvalid as e:
            if began:
                raise
            failed = failed or e
    assert failed is not None
    raise failed


@frozen
class _Csv:
    """How a text file is read."""

    header: list[str]
    parse: Any
    convert: Any
    named: bool  # there is no header in the file
    has_zone: bool = False  # times are text here, of moments with a zone

    def read(self, block: int) -> Any:
        names = self.header if self.named else None
        return pa.csv.ReadOptions(block_size=block, column_names=names)

    def with_text(self, time: str, seen: Any) -> _Csv:
        """Where times are moments: as text, of which later ones may have more digits, or a zone."""
        at = seen.get_field_index(time)
        if at < 0 or pa.types.is_integer(seen.field(at).type) or pa.types.is_string(seen.field(at).type):
            return self
        c = self.convert
        convert = _conversion(c.include_columns, {**c.column_types, time: pa.string()}, c.null_values, c.decimal_point)
        return evolve(self, convert=convert, has_zone=getattr(seen.field(at).type, "tz", None) is not None)

    def zoned(self, table: pa.Table, schema: Schema, source: Source) -> pa.Table:
        """Times that are text as moments, where they have a zone: as Arrow reads them in a whole file."""
        if not self.has_zone:
            return table
        at, target = table.schema.get_field_index(schema.time), pa.timestamp(schema.time_unit, "UTC")
        moments, _ = parsed(table.column(at), schema.time, schema.time_unit, source)
        return table.set_column(at, schema.time, pa.chunked_array([c.view(target) for c in moments.chunks], target))


def _only_a_header(path: Path, files: Files, kind: str) -> list[str] | None:
    """The names of a file that ends within its first line, which Arrow takes for none."""
    if files.columns is not None or path.stat().st_size > _SHORT or path.suffix.lower() in COMPRESSED:
        return None
    text = path.read_bytes()
    if not text.strip() or b"\n" in text or b"\r" in text:
        return None
    return next(csv.reader([text.decode("utf-8-sig", "replace")], delimiter=files.separator(kind)))


def _opening(path: Path, csv_: _Csv) -> Any:
    """The types of the columns, as the first block has them."""
    with (
        _opened(path) as (stream, _),
        pa.csv.open_csv(stream, csv_.read(_BLOCK), csv_.parse, csv_.convert) as reader,
    ):
        return reader.schema


def _conversion(columns: list[str], kinds: Mapping[str, Any], nulls: list[str], decimal: str) -> Any:
    return pa.csv.ConvertOptions(
        include_columns=columns,
        column_types=kinds,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=nulls,
        decimal_point=decimal,
    )


def _csv_options(path: Path, names: list[str], wanted: Mapping[str, Type], files: Files, kind: str) -> _Csv:
    """Attributes are read as what they are declared, so that the string 007 keeps its zeros.

    An empty field is null, in a string column too, unless it is quoted.
    """
    kinds = {n: _DECLARED.get(k, pa.string()) for n, k in wanted.items()}
    parse = pa.csv.ParseOptions(delimiter=files.separator(kind), newlines_in_values=True)
    if files.columns is not None:
        header = list(files.columns)
    else:
        header = by_blocks(lambda block: _names(path, pa.csv.ReadOptions(block_size=block), parse))
    chosen, known = [n for n in header if n in names], {n: k for n, k in kinds.items() if n in header}
    convert = _conversion(chosen, known, ["", *files.nulls], files.decimal)
    return _Csv(header, parse, convert, files.columns is not None)


def _names(path: Path, read: Any, parse: Any) -> list[str]:
    with pa.csv.open_csv(path, read, parse) as reader:
        found: list[str] = reader.schema.names
        return found


def _read_json(path: Path, schema: Schema, wanted: Mapping[str, Type], files: Files) -> pa.Table:
    """Times may be numbers or ISO 8601 text and types text or numbers: what fits first is taken."""
    if _is_blank(path):
        return pa.table({n: pa.nulls(0) for n in (*schema.special, *wanted)})
    failed: Exception | None = None
    for explicit in _json_schemas(schema, wanted, files):
        options = pa.json.ParseOptions(explicit_schema=explicit, unexpected_field_behavior="ignore")
        try:
            return by_blocks(partial(_json, path, options))
        except pa.ArrowInvalid as e:
            failed = failed or e
    assert failed is not None
    raise failed


def _is_blank(path: Path) -> bool:
    """Whether a file has no lines but empty ones. A line `null` is refused: Arrow does not survive it."""
    blank, tail, ended = True, b"\n", 0
    with pa.input_stream(str(path), compression="detect") as stream:
        while found := stream.read(_BLOCK):
            text = tail + found
            if (at := text.find(b"\nnull")) >= 0 and not text[at + 5 : at + 6].strip():
                line = ended - tail.count(b"\n") + text.count(b"\n", 0, at + 1) + 1
                raise DataError(f"'{path}' cannot be read: null where an object should stand, in line {line}")
            blank = blank and not found.strip()
            ended, tail = ended + found.count(b"\n"), text[-8:]
    return blank


def _json(path: Path, options: Any, block: int) -> pa.Table:
    return pa.json.read_json(path, pa.json.ReadOptions(block_size=block), options)


def _json_schemas(schema: Schema, wanted: Mapping[str, Type], files: Files) -> Iterator[Any]:
    attributes = [(n, _DECLARED.get(k, pa.string())) for n, k in wanted.items()]
    number = pa.float64() if files.time_format == UNIX else pa.int64()
    for time in (pa.string(), number) if schema.time_is_timestamp else (number, pa.string()):
        for type_ in (pa.string(), pa.int64()):
            special = zip(schema.special, (time, type_), strict=False)
            yield pa.schema([*special, *attributes])
