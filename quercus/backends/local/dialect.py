"""Files that need more than a path to be read: several of them, text with other delimiters, without a header, words
for null, decimal commas, times in a format of their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeGuard

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from quercus.errors import DataError

UNIX = "unix"  # a time format: seconds since 1970
KINDS = ("parquet", "csv", "tsv", "jsonl", "arrow")


@frozen(init=False)
class Files:
    """Files as events, with what their suffixes do not tell.

    >>> import quercus as qc
    >>> bars = qc.Files("bars.txt", format="csv", columns=["ticker", "minute", "close"], time_format="%Y%m%d%H%M")
    >>> bars.paths
    ('bars.txt',)

    `format`: parquet, csv, tsv, jsonl or arrow; without it, the suffix says. Of CSV: `delimiter`, `columns` for a file
    without a header, `nulls`, the words that mean null beside an empty field, such as NA, and `decimal`, what stands
    before the fraction of a number. `time_format` reads the time column, text or digits, as `strptime` does, in UTC;
    `unix`: seconds since 1970, with a fraction or without.
    """

    paths: tuple[str, ...]
    format: str | None
    delimiter: str | None
    columns: tuple[str, ...] | None
    time_format: str | None
    nulls: tuple[str, ...]
    decimal: str

    def __init__(
        self,
        *paths: str | Path,
        format: str | None = None,
        delimiter: str | None = None,
        columns: Iterable[str] | None = None,
        time_format: str | None = None,
        nulls: Iterable[str] = (),
        decimal: str = ".",
    ) -> None:
        if not paths:
            raise DataError("no path: name a file, a folder or a glob")
        if format not in (None, *KINDS):
            raise DataError(f"no format '{format}': choose one of {' '.join(KINDS)}")
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii()):
            raise DataError(f"the delimiter {delimiter!r} is not one character")
        if decimal not in (".", ","):
            raise DataError(f"the decimal mark {decimal!r} is neither a point nor a comma")
        if isinstance(columns, str):
            raise DataError(f"columns are a list of names, not the text {columns!r}")
        if isinstance(nulls, str):
            raise DataError(f"nulls are a list of words, not the text {nulls!r}")
        names = None if columns is None else tuple(map(str, columns))
        if names is not None and len(set(names)) < len(names):
            raise DataError("a name stands twice among the columns")
        words = tuple(map(str, nulls))
        self.__attrs_init__(tuple(map(str, paths)), format, delimiter, names, time_format, words, decimal)

    def separator(self, kind: str | None) -> str:
        """What stands between two fields of text of this kind."""
        found = self.delimiter or ("\t" if kind == "tsv" else ",")
        if found == self.decimal:
            raise DataError(f"{found!r} cannot be both the delimiter and the decimal mark: name another delimiter")
        return found

    def timed(self, table: pa.Table, time: str) -> pa.Table:
        """The table with its time column read as `time_format` says."""
        at = table.schema.get_field_index(time)
        if self.time_format is None or at < 0 or pa.types.is_timestamp(table.schema.field(at).type):
            return table
        texts = table.column(at).cast(pa.string())
        try:
            moments = _moments(texts, self.time_format, self.decimal)
        except pa.ArrowException:
            row = next(i for i, text in enumerate(texts) if not _is_moment(text, self.time_format, self.decimal))
            raise DataError(
                f"column '{time}', row {row}: {texts[row].as_py()!r} is no time of the format '{self.time_format}'",
                column=time,
                row=row,
            ) from None
        return table.set_column(at, time, moments)


def _moments(texts: pa.ChunkedArray, format: str, decimal: str) -> pa.ChunkedArray:
    if format != UNIX:
        return pc.strptime(texts, format=format, unit="us")
    numbers = pc.cast(pc.replace_substring(texts, decimal, "."), pa.float64())
    micros = pc.round(pc.multiply(numbers, 1e6))
    return pc.cast(pc.cast(micros, pa.int64()), pa.timestamp("us"))


def _is_moment(text: pa.Scalar, format: str, decimal: str) -> bool:
    try:
        _moments(pa.chunked_array([pa.array([text.as_py()], pa.string())]), format, decimal)
    except pa.ArrowException:
        return False
    return True


def is_files(events: object) -> TypeGuard[str | Path | Files]:
    """Whether events are in files."""
    return isinstance(events, str | Path | Files)


def as_files(where: str | Path | Files) -> Files:
    return where if isinstance(where, Files) else Files(where)
