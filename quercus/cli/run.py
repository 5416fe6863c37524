"""Find all matches of a query in events.

  quercus run 'PATTERN SEQ(Wash w, Operate o, [id]) WITHIN 1 hour' events.parquet
  quercus run query.txt 'logs/*.jsonl' -o matches.parquet
  cat trades.csv | quercus run query.txt - --count
  tail -f log.jsonl | quercus run query.txt - --follow

On a terminal the first matches are shown as a table. In a pipe, and with --json, all of them are written as JSON Lines.
A continuous query (ISTREAM, ...) takes its streams as NAME=PATH; with --follow one of them, NAME=- for standard input.
"""

from __future__ import annotations

import argparse
import json

import pyarrow.compute as pc

from quercus.backends.local.run import run_plan
from quercus.backends.local.scan import write
from quercus.cli import exits
from quercus.cli.answers import add_answer, show
from quercus.cli.compiled import Asked, add_limits, add_planning, add_quiet, asked, limits_of, note
from quercus.cli.elsewhere import run_elsewhere
from quercus.cli.events import add_events, refuse_input
from quercus.cli.follow import LIVE, add_follow, follow
from quercus.cli.guard import in_options
from quercus.cli.progress import Bar
from quercus.cli.queries import add_query, is_continuous, query_text
from quercus.cli.schemas import add_schema
from quercus.cli.streams import run_streams
from quercus.cli.terminal import counted, plain
from quercus.errors import nearest
from quercus.ir import pattern as p
from quercus.result import Matches


def add(parser: argparse.ArgumentParser) -> None:
    add_query(parser)
    add_events(parser)
    add_answer(parser)
    parser.add_argument("--why", action="store_true", help="say why there are not more matches, instead of the matches")
    parser.add_argument("--fail-on-match", action="store_true", help="exit with 1 if there is a match")
    add_schema(parser)
    add_follow(parser)
    add_planning(parser)
    add_limits(parser)
    group = parser.add_argument_group("where it runs")
    group.add_argument("--backend", default="local", help="local (the default), spark, or one that is installed")
    group.add_argument("--master", metavar="URL", help="of Spark: local[4], spark://host:7077, ...")
    group.add_argument("--threads", type=int, metavar="N", help="threads of the local backend (default: 1)")
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    text = query_text(args.query)
    if args.limit is not None and args.limit < 0:
        raise exits.UsageError("--limit is a number from 0 up")
    if args.threads is not None and args.threads < 1:
        raise exits.UsageError("--threads is a number from 1 up")
    if args.follow:
        return follow(args, text)
    for option in LIVE:
        if getattr(args, option) not in (None, "error"):
            raise exits.UsageError(f"--{option.replace('_', '-')} is about live streams: give --follow")
    if args.to is not None and args.output not in (None, "-"):
        raise exits.UsageError(f"--to is the format of standard output; the suffix of '{args.output}' says its own")
    if args.why and (args.output is not None or args.count or is_continuous(text)):
        raise exits.UsageError("--why says why a pattern has no more matches, on standard output: leave out the rest")
    if is_continuous(text):
        return _code(args, run_streams(args, text))
    ask = asked(args, text)
    if args.fail_on_match and ask.plan.query.aggregates:
        raise exits.UsageError("--fail-on-match is about matches, and AGG gives totals")
    refuse_input(args.output, ask.events)
    if args.backend != "local":
        return _code(args, run_elsewhere(args, ask))
    if args.why:
        return _why(args, ask)
    if args.output not in (None, "-") and not args.count:
        with Bar(quiet=args.quiet) as bar:
            count = write(ask.plan, ask.events, args.output, limits_of(args), bar)
        note(args, f"{counted(count, 'match', 'matches')} in {args.output}")
        return _code(args, count)
    with Bar(quiet=args.quiet) as bar:
        found: Matches = run_plan(ask.plan, ask.events, limits_of(args), args.threads or 1, progress=bar)
    show(found, args)
    if not len(found) and not args.count and not ask.plan.query.aggregates:
        note(args, f"quercus: no match{_unknown(found)}; --why says what stopped them")
    return _code(args, len(found))


def _unknown(found: Matches) -> str:
    """The first type of the query that no event has, where the events are at hand."""
    schema, table = found.schema, found.answer.table
    if not len(table) or schema.type not in table.column_names:
        return ""
    there = {str(t) for t in pc.unique(table.column(schema.type)).to_pylist() if t is not None}
    for leaf in p.leaves(found.query.pattern):
        kind = leaf.leaf.type if isinstance(leaf, p.Kleene) else leaf.type
        if not there.intersection(schema.accepts(kind)):
            hint = nearest(kind, there)
            return f": no event is a '{kind}'" + (f" ({hint})" if hint else "")
    return ""


def _why(args: argparse.Namespace, ask: Asked) -> int:
    """Instead of the matches, why there are no more of them."""
    why = ask.plan.why(ask.events)
    print(json.dumps(why.to_dict(), default=str) if args.json else plain(in_options(str(why))))
    return exits.OK


def _code(args: argparse.Namespace, count: int) -> int:
    return exits.FOUND if args.fail_on_match and count else exits.OK
