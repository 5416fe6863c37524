"""Draw the plan of a query: .svg, .png, .pdf or .dot.

quercus plan query.txt events.parquet -o plan.svg
quercus plan continuous.txt At=locations.csv -o tree.svg
quercus plan query.txt --schema schema.json -o - | dot -Tpng > plan.png
"""

from __future__ import annotations

import argparse

from quercus.cli import exits
from quercus.cli.compiled import add_planning, add_quiet, asked, planned_alone
from quercus.cli.events import add_events
from quercus.cli.queries import add_query, is_continuous, query_text
from quercus.cli.schemas import add_schema
from quercus.cli.streams import compiled_streams
from quercus.compiler.render import FORMATS
from quercus.cql import Continuous
from quercus.plan import Plan


def add(parser: argparse.ArgumentParser) -> None:
    add_query(parser)
    add_events(parser, nargs="*")
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="plan.svg", help="the picture (default: plan.svg); - writes .dot"
    )
    add_schema(parser)
    add_planning(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    if args.output != "-" and not args.output.lower().endswith(tuple(f".{f}" for f in FORMATS)):
        raise exits.UsageError(f"cannot draw '{args.output}': the name must end in .{', .'.join(FORMATS)}")
    text = query_text(args.query)
    plan: Plan | Continuous
    if is_continuous(text):
        plan = compiled_streams(args, text)[0]
    else:
        plan = asked(args, text).plan if args.events else planned_alone(args, text)
    if args.output == "-":
        print(plan.graph().source)
    else:
        print(plan.render(args.output))
    return exits.OK
