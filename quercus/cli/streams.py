"""Continuous queries on the command line: streams as NAME=PATH."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from quercus.backends.local.dialect import Files
from quercus.cli.answers import show, stream
from quercus.cli.compiled import limits_of
from quercus.cli.events import described, refuse_input
from quercus.cli.exits import UsageError
from quercus.cli.schemas import schema_of
from quercus.cli.terminal import counted
from quercus.cql import Continuous, continuous


def named(events: Sequence[str]) -> dict[str, list[str]]:
    """The paths of each stream."""
    found: dict[str, list[str]] = {}
    for given in events:
        name, equals, path = given.partition("=")
        if not equals or not path or not name.isidentifier():
            raise UsageError(f"a continuous query reads streams by name: write NAME=PATH, not '{given}'")
        found.setdefault(name, []).append(path)
    return found


def streams_of(args: argparse.Namespace) -> dict[str, Files]:
    return {name: described(args, paths, args.format) for name, paths in named(args.events).items()}


def compiled_streams(args: argparse.Namespace, text: str) -> tuple[Continuous, dict[str, Files]]:
    streams = streams_of(args)
    return continuous(
        text, {name: schema_of(args, files, text, typed=False) for name, files in streams.items()}
    ), streams


def run_streams(args: argparse.Namespace, text: str) -> int:
    """Run a continuous query; the number of its tuples."""
    query, streams = compiled_streams(args, text)
    refuse_input(args.output, *streams.values())
    found = query.run(streams, limits=limits_of(args), threads=args.threads)
    if args.output == "-":
        stream(found.to_arrow(), args.to or "jsonl")
    elif args.output is not None and not args.count:
        found.write(args.output)
        if not args.quiet:
            print(f"{counted(len(found), 'tuple')} in {args.output}", file=sys.stderr)
    else:
        show(found, args)
    return len(found)
