"""A plan on another backend: Spark, or one that is installed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from quercus import backends
from quercus.backends.local.files import find, format_of
from quercus.backends.local.inputs import as_table
from quercus.backends.local.write import write_table
from quercus.cli.answers import show, stream
from quercus.cli.compiled import Asked, limits_of, note
from quercus.cli.terminal import counted
from quercus.result import Tuples


def run_elsewhere(args: argparse.Namespace, ask: Asked) -> int:
    """Run it there, and bring the answer back; the number of matches."""
    backends.get(args.backend)  # or an error that names those that are there
    if args.backend == "spark":
        found = ask.plan.run(_frame(args, ask), "spark", limits=limits_of(args))
        if args.output is not None and args.output != "-" and format_of(Path(args.output)) is None:
            found.write.parquet(args.output)  # a folder, written by the workers
            note(args, f"matches in {args.output}/")
            return 0
        table = found.toArrow()
    else:
        found = ask.plan.run(ask.events, args.backend, threads=args.threads, limits=limits_of(args))
        if not hasattr(found, "to_arrow"):
            print(found)
            return 0
        table = found.to_arrow()
    if args.output == "-":
        stream(table, args.to or "jsonl")
    elif args.output is not None:
        write_table(table, args.output)
        note(args, f"{counted(len(table), 'match', 'matches')} in {args.output}")
    else:
        show(Tuples(table), args)
    return len(table)


def _frame(args: argparse.Namespace, ask: Asked) -> Any:
    """The events as a DataFrame: Spark reads Parquet by itself, the rest is read here and handed over."""
    from quercus.backends.spark import session

    spark = session(args.master)
    files = ask.events
    if files.time_format is None and all((files.format or format_of(p)) == "parquet" for p in find(files)):
        return spark.read.parquet(*(str(p.resolve()) for p in find(files)))
    return spark.createDataFrame(as_table(files, ask.plan.schema))
