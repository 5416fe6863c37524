"""Write a report: one file that opens offline, with the query, its plan with counts, and its matches over time.

quercus report query.txt events.parquet -o report.html
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from quercus.cli import exits
from quercus.cli.compiled import add_planning, add_quiet, asked
from quercus.cli.events import add_events, refuse_input
from quercus.cli.queries import add_query
from quercus.cli.schemas import add_schema


def add(parser: argparse.ArgumentParser) -> None:
    add_query(parser)
    add_events(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="report.html", help="default: report.html; - for standard output"
    )
    add_schema(parser)
    add_planning(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    if args.output != "-" and not args.output.lower().endswith((".html", ".htm")):
        raise exits.UsageError(f"a report is a page: '{args.output}' must end in .html")
    ask = asked(args)
    report = import_module("quercus.report")
    if args.output == "-":
        sys.stdout.write(report.html(ask.plan, ask.events))
        return exits.OK
    refuse_input(args.output, ask.events)
    report.write(ask.plan, ask.events, args.output)
    print(args.output)
    return exits.OK
