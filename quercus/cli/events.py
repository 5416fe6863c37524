"""EVENTS: files, globs and standard input, with what their suffixes do not tell."""

from __future__ import annotations

import argparse
import atexit
import os
import re
import shutil
import sys
import tempfile
from itertools import zip_longest
from pathlib import Path

from quercus.backends.local.dialect import KINDS, Files
from quercus.backends.local.files import find, format_of
from quercus.cli.exits import UsageError
from quercus.errors import DataError

_HEAD = 65_536  # bytes of a file that are looked at
_COMMA = re.compile(r"[+-]?\d+(,\d+)?")
HELP = "events: files, folders or globs (.parquet .csv .tsv .jsonl .arrow), or - for standard input"


def add_events(parser: argparse.ArgumentParser, *, nargs: str = "+") -> None:
    parser.add_argument("events", metavar="EVENTS", nargs=nargs, help=HELP)
    add_dialect(parser)


def add_dialect(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how files are read")
    group.add_argument("--format", choices=KINDS, help="the format, where the suffix does not say it")
    group.add_argument("--delimiter", metavar="CHAR", help="between fields of CSV (default: a comma; 'tab' for one)")
    group.add_argument("--columns", metavar="A,B,...", help="names of the columns of CSV files without a header")
    group.add_argument(
        "--null", metavar="WORD", action="append", default=[], help="a word of CSV that means null, as NA; repeatable"
    )
    group.add_argument("--decimal", choices=(".", ","), help="what stands before the fraction of a number in CSV")
    group.add_argument(
        "--time-format", metavar="FMT", help="how times are written, as for strptime: '%%Y%%m%%d%%H%%M'; or unix"
    )


def files_of(args: argparse.Namespace, paths: list[str]) -> Files:
    """The events that were named; standard input is put into a file first, since it is read more than once."""
    if "-" in paths:
        if len(paths) > 1:
            raise UsageError("- stands for standard input, and for that alone")
        if getattr(args, "query", None) == "-":
            raise UsageError("the query and the events cannot both be standard input")
        path, kind = _spooled()
        return _files(args, [str(path)], args.format or kind)
    return _files(args, paths, args.format or _kind_of(args, paths))


def refuse_input(output: str | None, *given: Files) -> None:
    """An answer over its own events would be all that is left of them."""
    if output in (None, "-") or not Path(output).exists():
        return
    if any(Path(output).samefile(path) for files in given for path in find(files)):
        raise UsageError(f"'{output}' is one of the files of events: write to another one")


def _kind_of(args: argparse.Namespace, paths: list[str]) -> str | None:
    """What is described as CSV is CSV, whatever its suffix."""
    described = args.delimiter is not None or args.columns is not None
    return "csv" if described and not any(p.lower().endswith((".csv", ".tsv", ".gz")) for p in paths) else None


def _files(args: argparse.Namespace, paths: list[str], kind: str | None) -> Files:
    found = described(args, paths, kind)
    if found.delimiter is None:
        other = _delimiter(found)
        say_delimiter(args, other)
        found = _delimited(found, other)
    if args.decimal is None and found.delimiter is not None and not getattr(args, "quiet", False):
        for name in _with_commas(found):
            print(f"quercus: column '{name}' is text: --decimal , reads it as numbers", file=sys.stderr)
    return found


def say_delimiter(args: argparse.Namespace, taken: str | None) -> None:
    if taken is not None and not getattr(args, "quiet", False):
        print(f"quercus: taken: --delimiter {'tab' if taken == chr(9) else repr(taken)}", file=sys.stderr)


def described(args: argparse.Namespace, paths: list[str], kind: str | None) -> Files:
    """Files as the options describe them."""
    delimiter = {"tab": "\t", "\\t": "\t"}.get(args.delimiter, args.delimiter)
    columns = None if args.columns is None else [c.strip() for c in args.columns.split(",")]
    return Files(
        *paths,
        format=kind,
        delimiter=delimiter,
        columns=columns,
        time_format=args.time_format,
        nulls=args.null,
        decimal=args.decimal or ".",
    )


def _delimited(files: Files, delimiter: str | None) -> Files:
    return Files(
        *files.paths,
        format=files.format,
        delimiter=delimiter,
        columns=files.columns,
        time_format=files.time_format,
        nulls=files.nulls,
        decimal=files.decimal,
    )


def _delimiter(files: Files) -> str | None:
    """Another delimiter than a comma, if the first line of a CSV file has none of these and many of those."""
    return delimiter_of(_head(files).partition(b"\n")[0])


def _head(files: Files) -> bytes:
    """How the first file begins, if it is plain CSV."""
    try:
        path = find(files)[0]
    except DataError:
        return b""  # reading it will say what is wrong
    if (files.format or format_of(path)) != "csv" or path.suffix not in (".csv", ".txt", ".events"):
        return b""
    with path.open("rb") as file:
        return file.read(_HEAD)


def _with_commas(files: Files) -> list[str]:
    """Columns that seem to have decimal commas: nothing but numbers so far, and not only groups of three digits. What
    they are is for the user to say: they may be versions, lists or thousands.
    """
    head = _head(files)
    lines = head.decode("utf-8", "replace").splitlines()[: -1 if len(head) == _HEAD else None]
    rows = [line.split(files.delimiter) for line in lines]
    names = list(files.columns) if files.columns is not None else rows[0] if rows else []
    found = []
    for name, column in zip(names, zip_longest(*rows[files.columns is None :], fillvalue=""), strict=False):
        values = [v.strip() for v in column if v.strip() and v.strip() not in files.nulls]
        if all(map(_COMMA.fullmatch, values)) and any("," in v and len(v.partition(",")[2]) != 3 for v in values):
            found.append(name.strip().strip('"'))
    return found


def delimiter_of(line: bytes) -> str | None:
    """The delimiter of the first line of a CSV file, if it is plain to see that it is no comma."""
    text = line.decode("utf-8", "replace")
    return next((d for d in ";\t|" if d in text), None) if "," not in text else None


def _spooled() -> tuple[Path, str]:
    handle, name = tempfile.mkstemp(prefix="quercus-", suffix=".events")
    atexit.register(_gone, name)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with open(name, "rb") as file:
        return Path(name), sniffed(file.read(64))


def sniffed(head: bytes) -> str:
    """The format of a stream, by how it begins."""
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"\x1f\x8b"):
        raise DataError("standard input is compressed: gzip -dc reads it")
    return "jsonl" if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else "csv"


def _gone(name: str) -> None:
    Path(name).unlink(missing_ok=True)
