"""What a run on Spark says of itself: how events are shared out, Spark's own plan, and what was counted."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from attrs import frozen
from pyspark.sql import DataFrame

from quercus.backends.spark.beside import beside
from quercus.backends.spark.counters import Counters
from quercus.cql import Continuous
from quercus.errors import DataError
from quercus.plan import Plan

WIDTH = 160  # of the text, where nothing else is asked for
_KEPT = "_quercus"
_NUMBER = re.compile(r"(?<=\S)#\d+L?\b")
_NODE = re.compile(r",? ?\[plan_id=\d+\]|(?<=RDD)\[\d+\](?: at [^,]*:\d+)?")
_RUN = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")
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
    """How an answer is made that nothing is counted of: that of a continuous query, or of a stream."""

    plan: Plan | Continuous
    said: tuple[str, ...]


def remember(result: DataFrame, report: Report | Shown) -> None:
    """Keep with a DataFrame how it was made."""
    setattr(result, _KEPT, report)


def explain(plan: Plan | Continuous, df: Any, *, analyze: bool = False, width: int = WIDTH, **options: Any) -> str:
    """The plan and how its events are shared out, and beside it Spark's own plan, in lines of `width` characters.

    Of a continuous query: `explain(q, {stream: df})`. Below `width=100` Spark's plan stands below, in lines as long as
    they are. Looks at the events, but runs nothing else; with `analyze` it does, and what workers counted is there too.
    """
    if isinstance(plan, Continuous):
        from quercus.backends.spark.continuous import run as run_continuous

        result = run_continuous(plan, df, **options)
    else:
        from quercus.backends.spark.backend import run

        result = run(plan, df, **options)
    found: Report | Shown = getattr(result, _KEPT)
    own = [*found.plan.explain().splitlines(), "", "shared out", *_indented(found.said)]
    if analyze:
        own += ["", "run", *_indented(_ran(result, _counted(found)))]
    return beside(own, ["spark", *_indented(_spark_plan(result))], width)


def _counted(found: Report | Shown | None) -> Report:
    """What a run can tell of itself."""
    if isinstance(found, Report):
        return found
    if found is None:
        raise DataError("give the DataFrame that plan.run(df) returned, not one made from it")
    if isinstance(found.plan, Continuous):
        raise DataError("nothing is counted of a continuous query")
    raise DataError("a stream has no end at which to count: start it, and see its query.lastProgress")


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line.rstrip()}" for line in lines if line.strip()]


def _ran(result: DataFrame, report: Report) -> list[str]:
    """What a run gave, line by line."""
    began = time.perf_counter()
    found = {"rows of the answer": float(result.count()), "seconds in all": time.perf_counter() - began}
    counted = {**report.rows(), **({} if report.counters is None else report.counters.told())}
    told = {LABELS.get(k, k): v for k, v in counted.items()}
    return [f"{name:<22}{_number(n)}" for name, n in {**found, **told}.items()]


def _number(n: float) -> str:
    return f"{n:,.0f}" if float(n).is_integer() else f"{n:,.2f}"


def metrics(result: DataFrame, *, rows: bool = False) -> dict[str, float]:
    """What the workers of a run counted, once it has run; of several runs of one DataFrame, the sum.

    tasks, events that reached workers, how many of these for the halo of slices, matches (with AGG: rows of parts),
    seconds in the engine. A task that Spark runs twice counts twice. With `rows` also the rows of the DataFrame, and
    how many of these no worker had to look at (pruned); Spark counts them now, in two small queries.
    """
    report = _counted(getattr(result, "__dict__", {}).get(_KEPT))
    if report.counters is None:
        raise DataError("over Spark Connect nothing is counted: Spark's accumulators are not there")
    return {**(report.rows() if rows else {}), **report.counters.told()}


def _spark_plan(df: DataFrame) -> list[str]:
    """Spark's plan without the numbers that it gives to columns, nodes and runs: they are others each time."""
    text = StringIO()
    with redirect_stdout(text):  # Spark prints it, and does nothing else with it
        df.explain(mode="formatted")
    lines = [
        _RUN.sub("<id>", _NODE.sub("", line)) for line in text.getvalue().splitlines() if line != "== Physical Plan =="
    ]
    numbers = {n for line in lines if line.startswith(("Output", "Input", "Arguments")) for n in _NUMBER.findall(line)}
    return [_NUMBER.sub(lambda m: "" if m[0] in numbers else m[0], line) for line in lines]
