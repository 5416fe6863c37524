"""A query and its events, compiled: what most commands begin with."""

from __future__ import annotations

import argparse
import sys

from attrs import frozen

from quercus.backends.base import Limits
from quercus.backends.local.dialect import Files
from quercus.cli.events import files_of
from quercus.cli.exits import UsageError
from quercus.cli.queries import is_continuous, query_text
from quercus.cli.schemas import schema_from_file, schema_of
from quercus.compiler import SHAPES, compile
from quercus.compiler.nested import STRATEGIES
from quercus.plan import Plan
from quercus.schema import Schema


@frozen
class Asked:
    """A plan and the events to run it over."""

    plan: Plan
    events: Files


def add_planning(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it is planned")
    group.add_argument("--shape", choices=SHAPES, default="auto", help="the shape of the tree")
    group.add_argument("--nested", choices=("auto", *STRATEGIES), default="auto", help="how sub-queries run")


def add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    group.add_argument("--max-matches", type=int, metavar="N", help="stop beyond N matches (default: 100 million)")
    group.add_argument("--max-seconds", type=float, metavar="S", help="stop after S seconds of search")
    group.add_argument("--max-state", type=_bytes, metavar="BYTES", help="of memory for what is kept: 500M, 2G")


def limits_of(args: argparse.Namespace) -> Limits:
    given = {"max_matches": args.max_matches, "max_seconds": args.max_seconds, "max_state_bytes": args.max_state}
    return Limits(**{name: value for name, value in given.items() if value is not None})


def _bytes(text: str) -> int:
    """
    >>> _bytes("2G"), _bytes("500")
    (2147483648, 500)
    """
    units = {"k": 2**10, "m": 2**20, "g": 2**30}
    number = text.lower().removesuffix("b").removesuffix("i")
    unit = units.get(number[-1:], 1)
    try:
        return int(float(number[:-1] if unit > 1 else number) * unit)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of bytes: write 500M or 2G") from None


def add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help="no notes, warnings and progress on stderr")


def asked(args: argparse.Namespace, text: str | None = None, *, warn: bool = True) -> Asked:
    """What a command line asks for."""
    text = query_text(args.query) if text is None else text
    if is_continuous(text):
        raise UsageError("a continuous query: `quercus run` runs it, `quercus explain` and `quercus plan` show it")
    files = files_of(args, args.events)
    return Asked(compiled(args, text, schema_of(args, files, text), warn=warn), files)


def planned_alone(args: argparse.Namespace, text: str) -> Plan:
    """The plan of a query without events: the schema has to be said."""
    if args.schema is None:
        raise UsageError("name EVENTS, which say what the columns are, or give --schema")
    return compiled(args, text, schema_from_file(args))


def compiled(args: argparse.Namespace, text: str, schema: Schema, *, warn: bool = True) -> Plan:
    """The plan of a query, as the options ask for it; its warnings on stderr."""
    plan = compile(text, schema, shape=getattr(args, "shape", "auto"), nested=getattr(args, "nested", "auto"))
    if warn and not args.quiet:
        for warning in plan.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    return plan


def note(args: argparse.Namespace, text: str) -> None:
    """Something on the side."""
    if not args.quiet:
        print(text, file=sys.stderr)
