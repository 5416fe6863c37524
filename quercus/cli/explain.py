"""Show how a query is read, rewritten and planned.

  quercus explain query.txt events.parquet
  quercus explain query.txt events.parquet --analyze

Events say what the columns are. With --schema none are needed. --analyze runs the plan over them, and shows what each
node did beside what was expected of it. A continuous query takes its streams as NAME=PATH, as `quercus run` does.
"""

from __future__ import annotations

import argparse
import json

from quercus.backends.local.analyze import run_and_analyze
from quercus.cli import exits
from quercus.cli.compiled import add_planning, add_quiet, asked, planned_alone
from quercus.cli.events import add_events
from quercus.cli.queries import add_query, is_continuous, query_text
from quercus.cli.schemas import add_schema
from quercus.cli.streams import compiled_streams


def add(parser: argparse.ArgumentParser) -> None:
    add_query(parser)
    add_events(parser, nargs="*")
    parser.add_argument("--analyze", action="store_true", help="run it over the events, and say what each node did")
    parser.add_argument("--verbose", action="store_true", help="what each rule changed")
    parser.add_argument("--alternatives", action="store_true", help="the shapes that were considered, with their costs")
    parser.add_argument(
        "--json",
        action="store_true",
        help="the plan as JSON, which Plan.from_json reads back; what --analyze or --alternatives says",
    )
    add_schema(parser)
    add_planning(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    text = query_text(args.query)
    if is_continuous(text):
        return _continuous(args, text)
    if not args.events:
        if args.analyze:
            raise exits.UsageError("--analyze needs events to run over")
        plan, events = planned_alone(args, text), None
    else:
        ask = asked(args, text)
        plan, events = ask.plan, ask.events
    if args.json and args.analyze:
        ran, analysis = run_and_analyze(plan, events)
        print(json.dumps({"plan": json.loads(ran.to_json()), "run": analysis.to_dict()}))
    elif args.json and args.alternatives:
        print(json.dumps([{"shape": a.shape, "cost": a.cost, "chosen": a.chosen} for a in plan.alternatives()]))
    elif args.json:
        print(plan.to_json())
    elif args.alternatives:
        for a in plan.alternatives():
            print(f"{a.cost:>12.1f}  {a.shape}{'  chosen' if a.chosen else ''}")
    else:
        print(plan.explain(verbose=args.verbose, analyze=events if args.analyze else None))
    return exits.OK


def _continuous(args: argparse.Namespace, text: str) -> int:
    for option in ("analyze", "verbose", "alternatives", "json"):
        if getattr(args, option):
            raise exits.UsageError(f"--{option} is about the plans of patterns: leave it out for a continuous query")
    print(compiled_streams(args, text)[0].explain())
    return exits.OK
