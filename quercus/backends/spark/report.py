"""What a run on Spark says of itself: how events are shared out, Spark's own plan, and what was counted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from attrs import frozen
from pyspark.sql import DataFrame

from quercus.backends.spark.counters import Counters
from quercus.cql import Continuous
from quercus.errors import DataError
from quercus.plan import Plan

_KEPT = "_quercus"
LABELS = {
    "rows": "rows",
    "pruned": "left out before",
    "events": "events sent",
    "halo": "of these for a halo",
    "matches": "rows given by tasks",
    "seconds": "seconds in the engine",
}


@frozen(eq=False)
class Report:
    """How an answer is made: the plan as it runs, the events before and after what no leaf can use is left out."""

    plan: Plan
    given: DataFrame
    needed: DataFrame
    said: tuple[str, ...]
    counters: Counters | None

    def rows(self) -> dict[str, float]:
        """All rows, and those left out: Spark leaves them where they are, so that no worker could count them."""
        rows = self.given.count()
        return {"rows": rows, "pruned": rows - self.needed.count()}


@frozen(eq=False)
class Shown:
    """How the answer of a continuous query is made."""

    query: Continuous
    said: tuple[str, ...]


def remember(result: DataFrame, report: Report | Shown) -> None:
    """Keep with a DataFrame how it was made."""
    setattr(result, _KEPT, report)


def _report(result: Any) -> Report:
    found = getattr(result, _KEPT, None) if isinstance(getattr(result, "__dict__", None), dict) else None
    if not isinstance(found, Report):
        raise DataError("give the DataFrame that plan.run(df) returned, not one made from it")
    return found


def explain(plan: Plan | Continuous, df: Any, *, analyze: bool = False, **options: Any) -> str:
    """The plan, how its events are shared out, and Spark's own plan. Of a continuous query: `explain(q, {stream: df})`.

    Looks at the events, but runs nothing else; with `analyze` it does, and what workers counted is there too.
    """
    from quercus.backends.spark.backend import run

    if isinstance(plan, Continuous):
        return _explain_continuous(plan, df, **options)
    result = run(plan, df, **options)
    report = _report(result)
    shared = _indented(report.said)
    physical = _indented(_spark_plan(result).splitlines())
    ran = f"\n\nrun\n{_ran(result, report)}" if analyze else ""
    return f"{report.plan.explain()}\n\nshared out\n{shared}{ran}\n\nspark\n{physical}"


def _explain_continuous(query: Continuous, streams: Any, **options: Any) -> str:
    from quercus.backends.spark.continuous import run

    result = run(query, streams, **options)
    found = getattr(result, _KEPT)
    physical = _indented(_spark_plan(result).splitlines())
    return f"{query.explain()}\n\nshared out\n{_indented(found.said)}\n\nspark\n{physical}"


def _indented(lines: Sequence[str]) -> str:
    return "\n".join(f"  {line}" for line in lines if line.strip())


def _ran(result: DataFrame, report: Report) -> str:
    """What a run gave, line by line."""
    began = time.perf_counter()
    found = {"rows of the answer": float(result.count()), "seconds in all": time.perf_counter() - began}
    counted = {**report.rows(), **({} if report.counters is None else report.counters.told())}
    told = {LABELS.get(k, k): v for k, v in counted.items()}
    return "\n".join(f"  {name:<22}{_number(n)}" for name, n in {**found, **told}.items())


def _number(n: float) -> str:
    return f"{n:,.0f}" if float(n).is_integer() else f"{n:,.2f}"


def metrics(result: DataFrame, *, rows: bool = False) -> dict[str, float]:
    """What the workers of a run counted, once it has run; of several runs of one DataFrame, the sum.

    tasks, events that reached workers, how many of these for the halo of slices, matches (with AGG: rows of parts),
    seconds in the engine. A task that Spark runs twice counts twice. With `rows` also the rows of the DataFrame, and
    how many of these no worker had to look at (pruned); Spark counts them now, in two small queries.
    """
    report = _report(result)
    if report.counters is None:
        raise DataError("over Spark Connect nothing is counted: Spark's accumulators are not there")
    return {**(report.rows() if rows else {}), **report.counters.told()}


def _spark_plan(df: DataFrame) -> str:
    text = StringIO()
    with redirect_stdout(text):  # Spark prints it, and does nothing else with it
        df.explain(mode="formatted")
    return text.getvalue()
