"""Write a report: one file that opens offline, with the query, its plan with counts, and its matches over time.

quercus report query.txt events.parquet -o report.html
"""

from __future__ import annotations

import argparse
from importlib import import_module

from quercus.cli import exits
from quercus.cli.compiled import add_planning, add_quiet, asked
from quercus.cli.events import add_events
from quercus.cli.queries import add_query
from quercus.cli.schemas import add_schema


def add(parser: argparse.ArgumentParser) -> None:
    add_query(parser)
    add_events(parser)
    parser.add_argument("-o", "--output", metavar="FILE", default="report.html", help="default: report.html")
    add_schema(parser)
    add_planning(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    ask = asked(args)
    import_module("quercus.report").write(ask.plan, ask.events, args.output)
    print(args.output)
    return exits.OK
