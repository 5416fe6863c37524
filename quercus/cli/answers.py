"""An answer on its way out: a table for people, JSON Lines for programs, or a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from quercus.backends.local.records import records
from quercus.backends.local.write import flat, json_line
from quercus.cli.terminal import counted, is_terminal, table
from quercus.result import Matches, Tuples

SHOWN = 20
KINDS = ("jsonl", "csv", "arrow", "parquet")


def add_answer(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what comes out")
    group.add_argument("-o", "--output", metavar="FILE", help="write all matches: .parquet .csv .jsonl .arrow, or -")
    group.add_argument("--to", choices=KINDS, help="the format of '-o -' (default: jsonl)")
    group.add_argument("--json", action="store_true", help="JSON Lines: an object a match (the default in a pipe)")
    group.add_argument("--count", action="store_true", help="their number only")
    group.add_argument("--limit", type=int, metavar="N", help=f"show the first N (default: {SHOWN} on a terminal)")


def show(found: Matches | Tuples, args: argparse.Namespace) -> None:
    """The answer on standard output."""
    grouped = isinstance(found, Matches) and bool(found.query.aggregates)
    what = (
        ("tuple", "tuples") if isinstance(found, Tuples) else ("group", "groups") if grouped else ("match", "matches")
    )
    if args.count:
        print(f'{{"{what[1]}": {len(found)}}}' if args.json else len(found))
        return
    if args.output == "-" or args.json or not is_terminal(sys.stdout):
        whole = _first(found, args.limit)
        stream(whole, args.to or "jsonl")
        return
    limit = SHOWN if args.limit is None else args.limit
    head = records(_first(found, limit))
    if head:
        print(table(_numbered(head, found)))
    more = f" (the first {len(head):,} are shown: --limit, -o FILE)" if len(head) < len(found) else ""
    print(f"{counted(len(found), *what)}{more}")


def words(found: Matches | Tuples) -> tuple[str, str]:
    """What an answer consists of."""
    if isinstance(found, Tuples):
        return "tuple", "tuples"
    return ("group", "groups") if found.query.aggregates else ("match", "matches")


def _numbered(rows: Sequence[dict[str, Any]], found: Matches | Tuples) -> list[dict[str, Any]]:
    if isinstance(found, Tuples) or found.query.aggregates:
        return list(rows)
    return [{"#": i, **row} for i, row in enumerate(rows, 1)]


def _first(found: Matches | Tuples, limit: int | None) -> pa.Table:
    if limit is None:
        return found.to_arrow()
    if isinstance(found, Tuples) or found.query.aggregates:
        return found.to_arrow().slice(0, limit)
    return found.head(limit).to_arrow()


def stream(answer: pa.Table, kind: str) -> None:
    """A table to standard output."""
    match kind:
        case "jsonl":
            for batch in answer.to_batches(max_chunksize=1_000):
                sys.stdout.write("".join(map(json_line, records(batch))))
        case "csv":
            pa.csv.write_csv(flat(answer), _binary())
        case "arrow":
            with pa.ipc.new_stream(_binary(), answer.schema) as writer:
                writer.write_table(answer)
        case _:
            pa.parquet.write_table(answer, _binary())
    sys.stdout.flush()


def _binary() -> Any:
    sys.stdout.flush()
    return pa.PythonFile(sys.stdout.buffer, "w")
