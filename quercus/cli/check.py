"""Look at a query beside its events: what is asked in vain, what never holds, what would grow beyond limits.

  quercus check query.txt events.parquet
  quercus check query.txt events.parquet --json

Exits with 1 if there are errors or warnings; with --strict also if there are notes.
"""

from __future__ import annotations

import argparse
import json

from quercus.cli import exits
from quercus.cli.compiled import add_quiet, asked
from quercus.cli.events import add_events
from quercus.cli.queries import add_query
from quercus.cli.schemas import add_schema
from quercus.cli.terminal import counted, plain


def add(parser: argparse.ArgumentParser) -> None:
    add_query(parser)
    add_events(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document: a list of findings")
    parser.add_argument("--strict", action="store_true", help="notes count as well")
    add_schema(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    ask = asked(args, warn=False)
    found = ask.plan.check(ask.events)
    if args.json:
        print(json.dumps([f.to_dict() for f in found], indent=2))
    else:
        for f in found:
            print(plain(str(f)), end="\n\n")
        kinds = [counted(n, kind) for kind in ("error", "warning", "note") if (n := _count(found, kind))]
        print(", ".join(kinds) or "nothing found")
    bad = [f for f in found if args.strict or f.severity != "note"]
    return exits.FOUND if bad else exits.OK


def _count(found: tuple[object, ...], severity: str) -> int:
    return sum(getattr(f, "severity", None) == severity for f in found)
