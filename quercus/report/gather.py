"""What a report tells: a run of the plan, and everything that is known of it, as plain data."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from attrs import frozen

from quercus.backends.base import Limits
from quercus.backends.local.analyze import analyze_stream
from quercus.backends.local.dialect import Files, as_files, is_files
from quercus.backends.local.events import Events, load
from quercus.backends.local.trace import Trace
from quercus.compiler.analyzed import run_facts
from quercus.compiler.explain import cut, essential, facts, trace
from quercus.errors import DataError, LimitExceeded
from quercus.ir import text
from quercus.ir import tree as t
from quercus.ir.analysis import Analysis
from quercus.plan import Plan, is_of_spark
from quercus.report.sample import first_matches
from quercus.report.statistics import conditions, groups, statistics
from quercus.show import found as shows
from quercus.show import tree as trees
from quercus.show.values import short

if TYPE_CHECKING:
    from quercus.result import Matches

LIMITS = Limits(max_matches=1_000_000, max_seconds=60)
MOST_ALTERNATIVES = 12
MOST_RULES = 60
MOST_WHY = 20_000  # characters
LISTED = 100_000  # matches behind totals that are listed to show some


@frozen(eq=False)
class Gathered:
    """A report's data: the picture of the tree is markup of our own making, all else is data."""

    title: str
    tree: str
    data: dict[str, Any]
    found: Matches | None  # None: the run was stopped


def gathered(plan: Plan, events: object, limits: Limits | None = None, title: str | None = None) -> Gathered:
    """Run the plan, and collect what there is to tell."""
    if is_of_spark(events):
        raise DataError(
            "a report is made from events in memory or in files: write the Spark DataFrame to Parquet first"
        )
    pa.array([0])  # pyarrow looks for pandas when it first makes an array: no part of the run
    watch = Trace()
    stream = load(events, plan.schema)
    watch.lap("load")
    warnings = list(plan.warnings)
    ran, analysis, found = plan, None, None
    try:
        ran, analysis, found = analyze_stream(plan, stream, limits or LIMITS, watch)
    except LimitExceeded as e:
        warnings.append(f"the run was stopped: {e}. What follows is the plan, and the first matches only.")
    root = trees.cards(ran, analysis)
    shown = _matches(ran, stream, found, analysis)
    unit = ran.schema.timestamp_unit
    data = {
        "query": plan.text,
        "types": sorted({n.type for n in t.walk(ran.tree.root) if isinstance(n, t.Buffer)}),
        "logical": [cut(line) for line in text.query(essential(ran.query), unit).splitlines()],
        "events": _source(events, stream),
        "summary": _summary(stream, analysis),
        "warnings": [short(w) for w in warnings],
        "facts": [[name, short(value)] for name, value in facts(ran.tree, unit)],
        "nodes": trees.details(root),
        "alternatives": [{"shape": short(a.shape), "cost": a.cost, "chosen": a.chosen} for a in _alternatives(ran)],
        "considered": len(ran.alternatives()),
        "run": [] if analysis is None else [list(f) for f in run_facts(analysis, ran.tree.cost)],
        "stages": [] if analysis is None else [list(s) for s in analysis.stages],
        "matches": shown,
        "groups": groups(ran, found),
        "statistics": statistics(stream),
        "conditions": [] if analysis is None else list(conditions(ran, stream, analysis)),
        "rules": list(_rules(ran)),
        "why": _why(plan, stream, analysis),
    }
    return Gathered(title or "Quercus report", trees.drawn(root, alone=False), data, found)


def _matches(plan: Plan, stream: Events, found: Matches | None, analysis: Analysis | None) -> dict[str, Any]:
    """Some matches with their events: those that the run found, or the first ones where it listed none."""
    if found is not None and analysis is not None and (analysis.totals is None or analysis.matches <= LISTED):
        return shows.shown(found.answer, total=analysis.matches)
    some = first_matches(plan, stream)
    total = None if analysis is None else analysis.matches
    return {**shows.shown(some.answer, total=total), "sampled": True}


def _source(events: object, stream: Events) -> str:
    return f"{len(stream):,} events from {_names(events) if is_files(events) else 'a table in memory'}"


def _names(events: str | Path | Files) -> str:
    names = [short(Path(p).name) for p in as_files(events).paths]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _summary(stream: Events, analysis: Analysis | None) -> dict[str, Any]:
    return {
        "events": len(stream),
        "matches": None if analysis is None else str(analysis.matches),
        "groups": None if analysis is None else analysis.groups,
        "milliseconds": None if analysis is None else round(analysis.seconds * 1e3, 1),
        "made": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _alternatives(plan: Plan) -> list[Any]:
    listed = sorted(plan.alternatives(), key=lambda a: a.cost)
    head = listed[:MOST_ALTERNATIVES]
    return head + [a for a in listed[MOST_ALTERNATIVES:] if a.chosen]


def _rules(plan: Plan) -> Iterator[dict[str, Any]]:
    for step in list(trace(plan))[:MOST_RULES]:
        yield {
            "rule": step.rule,
            "law": step.law,
            "before": [cut(line) for line in step.before],
            "after": [cut(line) for line in step.after],
            "finding": cut(step.finding),
        }


def _why(plan: Plan, stream: Events, analysis: Analysis | None) -> str | None:
    """Why there are no matches, where there are none."""
    why = getattr(plan, "why", None)
    if why is None or analysis is None or analysis.matches or plan.query.empty is not None:
        return None
    try:
        said = str(why(stream.table))
    except (DataError, LimitExceeded) as e:
        return f"Why there are none could not be told: {e}"
    return said if len(said) <= MOST_WHY else said[:MOST_WHY] + " ..."
