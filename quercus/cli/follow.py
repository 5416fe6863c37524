"""`quercus run --follow`: a growing file or standard input as a live stream, matches printed as they happen."""

from __future__ import annotations

import argparse
import csv
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.ipc

from quercus.backends.local.dialect import Files
from quercus.backends.local.files import COMPRESSED, format_of
from quercus.backends.local.inputs import as_table
from quercus.backends.local.records import records
from quercus.backends.local.stream import Stream
from quercus.backends.local.write import json_line
from quercus.cli import exits
from quercus.cli.compiled import compiled, limits_of, note
from quercus.cli.events import delimiter_of, described, say_delimiter, sniffed
from quercus.cli.guard import in_options
from quercus.cli.queries import is_continuous
from quercus.cli.schemas import schema_of
from quercus.cli.streams import named
from quercus.cli.tail import Tail
from quercus.cli.terminal import cell, counted, is_terminal
from quercus.cql import Continuous, continuous
from quercus.errors import DataError
from quercus.plan import Plan
from quercus.result import Matches, Tuples
from quercus.schema import Schema

if TYPE_CHECKING:  # patterns need nothing of it
    from quercus.backends.local.continuous.stream import ContinuousStream

PER_SECOND = {"s": 1, "ms": 1_000, "us": 10**6, "ns": 10**9}
LIVE = ("max_delay", "late", "bad", "idle_advance", "snapshot")  # options for live streams only
_TOLD = 10  # lines that are dropped, one by one


def add_follow(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("live streams")
    group.add_argument("-f", "--follow", action="store_true", help="go on reading; print matches as they happen")
    group.add_argument("--max-delay", metavar="TIME", help="how late events may come: '5 s'")
    group.add_argument("--late", choices=("error", "drop"), default="error", help="what becomes of later ones")
    group.add_argument("--bad", choices=("error", "drop"), default="error", help="... of lines that cannot be read")
    group.add_argument(
        "--idle-advance",
        type=float,
        metavar="S",
        help="after S seconds without events, let the clock of the stream go on with the wall's",
    )
    group.add_argument("--snapshot", metavar="FILE", help="go on from FILE if it is there, and leave the state there")


def follow(args: argparse.Namespace, text: str) -> int:
    """Watch until the input ends, or Ctrl-C. The one stream of a continuous query is NAME=PATH."""
    stream = None
    if is_continuous(text):
        if len(args.events) > 1:
            raise exits.UsageError("--follow watches one stream: this query runs over several as a whole, without it")
        stream, [path] = next(iter(named(args.events).items()))
        args.events = [path]
    if len(args.events) > 1:
        raise exits.UsageError("--follow watches one file, or -")
    if args.query == "-" and args.events == ["-"]:
        raise exits.UsageError("the query and the events cannot both be standard input")
    if args.output is not None:
        raise exits.UsageError("--follow prints to standard output: redirect it")
    for option in ("why", "count", "limit", "to"):
        if getattr(args, option) not in (None, False):
            raise exits.UsageError(f"--{option} is about events that are at hand as a whole: leave out --follow")
    return Follow(args, text, stream).run()


class Follow:
    """A stream, what feeds it, and what was seen of it."""

    def __init__(self, args: argparse.Namespace, text: str, name: str | None) -> None:
        self.args, self.text = args, text
        self.name = name  # of the stream, in a continuous query
        self.path: str = args.events[0]
        self.events = self.matches = self.bad = 0
        self.saved = _saved(args.snapshot)
        self.offset: int = self.saved.get("offset", 0)  # how much of the file is in the stream
        self.readable = is_terminal(sys.stdout) and not args.json
        self.stream: Stream | ContinuousStream | None = None
        self.schema: Schema | None = None
        self.tail: Tail | None = None
        self.heard = 0.0  # when events came last
        self.clock: int | None = None  # that of the stream, then

    def run(self) -> int:
        try:
            for table in self.tables():
                with _whole_steps(self.args.snapshot is not None):
                    self.push(table)
                    self.offset = 0 if self.tail is None or self.path == "-" else self.tail.offset
            if self.stream is not None and self.args.snapshot is None:
                self.show(self.stream.close())
            return exits.FOUND if self.args.fail_on_match and self.matches else exits.OK
        finally:
            self.save()
            if self.stream is not None and not self.args.quiet:
                self.summary(self.stream.dropped)

    # ---- events

    def tables(self) -> Iterator[pa.Table | None]:
        """Events as they come; None where none do."""
        kind = self.args.format or (format_of(Path(self.path)) if self.path != "-" else None)
        if kind == "arrow" and self.path == "-":
            yield from self._batches()
            return
        kind = kind and _of_lines(kind)
        if Path(self.path).suffix.lower() in COMPRESSED:
            raise exits.UsageError(f"--follow cannot look into '{self.path}' while it grows: unpack it")
        self.tail = Tail(self.path, self.saved.get("offset", 0))
        header: list[str] | None = self.saved.get("columns")
        begun, read = 0, False
        for lines in self.tail:
            if lines is None or not lines.strip():
                yield None
                continue
            if begun != self.tail.begun:  # another file, with a header of its own
                begun, header = self.tail.begun, None
            kind = kind or _of_lines(sniffed(lines[:64]))
            if kind == "csv" and self.args.delimiter is None and not read:
                self.args.delimiter = self.delimiter(lines)
            files = described(self.args, ["-"], kind)
            again = self.path == "-" and not read  # what goes on may begin with its header once more
            read = True
            if kind != "jsonl" and files.columns is None and (header is None or again):
                first, _, rest = lines.lstrip(b"\r\n").partition(b"\n")
                if not first:
                    continue
                text = first.decode("utf-8", "replace").lstrip("\ufeff").strip("\r")
                names = _names(text, files.separator(kind))
                if header is None or names == header:
                    header, lines = names, rest
                    self.saved["columns"] = header
            columns = list(files.columns) if files.columns is not None else header
            if not lines.strip():
                continue
            yield from self.read(lines, partial(_source, files, kind, columns))

    def delimiter(self, lines: bytes) -> str | None:
        """What separates columns, where that is not said."""
        if "schema" in self.saved:
            found: str | None = self.saved.get("delimiter")
            return found
        found = delimiter_of(lines.lstrip(b"\r\n").partition(b"\n")[0])
        say_delimiter(self.args, found)
        return found

    def read(self, lines: bytes, source_of: Callable[[str], Files]) -> Iterator[pa.Table]:
        """The events of some lines; what cannot be read of them is an error, or dropped, line by line."""
        with _kept(lines) as name:
            source = source_of(name)
            try:
                if self.schema is None:
                    known = self.saved.get("schema")
                    self.begin(self.described(source) if known is None else Schema.from_dict(known))
                assert self.schema is not None
                found = as_table(source, self.schema)
            except DataError as e:
                said = str(e).replace(f" in {name!r}", "")
                if self.args.bad == "error":
                    raise DataError(
                        f"after {self.events:,} events: {said}" if self.schema is not None else said
                    ) from None
                found = None
        if found is not None:
            yield found
            return
        rows = lines.splitlines(keepends=True)
        if len(rows) > 1:
            middle = len(rows) // 2
            yield from self.read(b"".join(rows[:middle]), source_of)
            yield from self.read(b"".join(rows[middle:]), source_of)
        elif lines.strip():
            self.bad += 1
            if self.bad <= _TOLD:
                note(self.args, in_options(f"quercus: a line is dropped: {said}"))

    def _batches(self) -> Iterator[pa.Table]:
        try:
            reader = pa.ipc.open_stream(sys.stdin.buffer)
            for batch in reader:
                table = pa.Table.from_batches([batch])
                table.validate(full=True)
                if self.stream is None:
                    self.begin(self.described(table))
                yield table
        except pa.ArrowException as e:
            raise DataError(f"standard input is no Arrow stream: {e}") from None

    def described(self, source: Files | pa.Table) -> Schema:
        return schema_of(self.args, source, self.text, typed=self.name is None)

    # ---- matches

    def begin(self, schema: Schema) -> None:
        limits = limits_of(self.args)
        self.schema = schema
        plan: Plan | Continuous
        if self.name is None:
            plan = compiled(self.args, self.text, schema)
        else:
            plan = continuous(self.text, {self.name: schema})
        if "state" in self.saved:
            self.stream = plan.restore(self.saved["state"], limits=limits)
        else:
            delay = self.args.max_delay
            delay = int(delay) if delay is not None and delay.isdigit() else delay
            self.stream = plan.stream(max_delay=delay, late=self.args.late, limits=limits)
        self.heard = time.monotonic()

    def push(self, table: pa.Table | None) -> None:
        stream = self.stream
        if stream is None:
            return
        now = time.monotonic()
        if table is None and _unread():
            raise BrokenPipeError
        if table is not None:
            found = stream.push(table) if isinstance(stream, Stream) else stream.push({str(self.name): table})
            self.events += len(table)
            self.heard, self.clock = now, stream.clock
            self.show(found)
        elif self.clock is not None and now - self.heard >= (self.args.idle_advance or float("inf")):
            assert self.schema is not None
            passed = int((now - self.heard) * PER_SECOND[self.schema.time_unit])
            self.show(stream.advance(self.clock + passed))

    def show(self, found: Matches | Tuples) -> None:
        if not len(found):
            return
        rows = records(found.to_arrow())
        self.matches += len(rows)
        if self.readable:
            text = "".join("  ".join(f"{n} {cell(v)}" for n, v in row.items()) + "\n" for row in rows)
        else:
            text = "".join(map(json_line, rows))
        sys.stdout.write(text)
        sys.stdout.flush()

    def summary(self, dropped: int) -> None:
        late = f", {counted(dropped, 'event')} dropped as late" if dropped else ""
        if self.bad:
            late += f", {counted(self.bad, 'line')} dropped that cannot be read"
        found = counted(self.matches, "match", "matches") if self.name is None else counted(self.matches, "tuple")
        print(f"{found} in {counted(self.events, 'event')}{late}", file=sys.stderr)

    def save(self) -> None:
        """The state of the stream and how far the file was read, to go on from there."""
        if self.args.snapshot is None or self.stream is None or self.schema is None:
            return
        facts = {
            "offset": self.offset,
            "columns": self.saved.get("columns"),
            "delimiter": self.args.delimiter,
            "schema": self.schema.to_dict(),
        }
        head = json.dumps({"quercus_follow": 1, **facts})
        path = Path(self.args.snapshot)
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(head.encode() + b"\n" + self.stream.snapshot())
        part.replace(path)


def _of_lines(kind: str) -> str:
    """A format that comes line by line."""
    if kind not in ("csv", "tsv", "jsonl"):
        raise exits.UsageError(
            f"--follow reads lines, CSV or JSON, not {kind} (an Arrow stream from standard input, though, "
            "with --format arrow)"
        )
    return kind


def _names(header: str, delimiter: str) -> list[str]:
    """The columns that a header names."""
    try:
        return [name.strip() for names in csv.reader([header], delimiter=delimiter) for name in names]
    except csv.Error:
        raise DataError(f"the first line is no header of a CSV file: {header[:60]!r}") from None


def _source(files: Files, kind: str, columns: list[str] | None, name: str) -> Files:
    """Lines that were kept in a file, read as the options say."""
    return Files(
        name,
        format=kind,
        delimiter=files.delimiter,
        columns=columns,
        time_format=files.time_format,
        nulls=files.nulls,
        decimal=files.decimal,
    )


def _saved(path: str | None) -> dict[str, Any]:
    if path is None or not Path(path).exists():
        return {}
    head, _, state = Path(path).read_bytes().partition(b"\n")
    try:
        found = json.loads(head)
        if found["quercus_follow"] != 1:
            raise ValueError
        Schema.from_dict(found["schema"])
        return {**found, "offset": int(found["offset"]), "state": state}
    except (ValueError, KeyError, TypeError, AttributeError, DataError):
        raise DataError(f"'{path}' is no snapshot of --follow") from None


def _unread() -> bool:
    """Whether nobody reads standard output any more: a stream may have nothing to write for long."""
    try:
        watched = select.poll()
        watched.register(sys.stdout.fileno(), 0)
        return any(event & select.POLLERR for _, event in watched.poll(0))
    except (OSError, ValueError):
        return False


@contextmanager
def _whole_steps(needed: bool) -> Iterator[None]:
    """Ctrl-C waits until a step is done, so that a snapshot is of all of it or of nothing."""
    if not needed:
        yield
        return
    came: list[int] = []  # handlers, not masks: other threads would take the signal
    before = {n: signal.signal(n, lambda number, _: came.append(number)) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for again in came:
        signal.raise_signal(again)


class _kept:
    """Lines in a file for as long as they are read."""

    def __init__(self, lines: bytes) -> None:
        handle, self.name = tempfile.mkstemp(prefix="quercus-", suffix=".lines")
        with os.fdopen(handle, "wb") as file:
            file.write(lines)

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *failure: object) -> None:
        os.unlink(self.name)
