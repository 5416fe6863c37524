"""What a run on Spark says of itself: how events are shared out, Spark's own plan, and what was counted."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from attrs import frozen
from pyspark.sql import DataFrame

from quercus.backends.spark.counters import Counters
from quercus.compiler.explain import explain as explained
from quercus.errors import DataError
from quercus.plan import Plan

_KEPT = "_quercus"


@frozen(eq=False)
class Report:
    plan: Plan
    said: tuple[str, ...]
    counters: Counters | None


def remember(result: DataFrame, plan: Plan, said: tuple[str, ...], counters: Counters | None) -> None:
    """Keep with a DataFrame how it was made."""
    setattr(result, _KEPT, Report(plan, said, counters))


def _report(result: Any) -> Report:
    found = getattr(result, _KEPT, None) if isinstance(getattr(result, "__dict__", None), dict) else None
    if not isinstance(found, Report):
        raise DataError("give the DataFrame that plan.run(df) returned, not one made from it")
    return found


def explain(plan: Plan, df: DataFrame, **options: Any) -> str:
    """The plan, how its events are shared out on Spark, and Spark's own plan. Looks at the events, but runs nothing else."""
    from quercus.backends.spark.backend import run

    result = run(plan, df, **options)
    report = _report(result)
    shared = "\n".join(f"  {line}" for line in report.said)
    physical = "\n".join(f"  {line}" for line in _spark_plan(result).splitlines() if line.strip())
    return f"{explained(plan, verbose=False)}\n\nshared out\n{shared}\n\nspark\n{physical}"


def metrics(result: DataFrame) -> dict[str, float]:
    """What the workers of a run counted, once it has run; of several runs of one DataFrame, the sum.

    tasks, events that reached workers, how many of these for the halo of slices, matches (with AGG: rows of parts),
    seconds in the engine. A task that Spark runs twice counts twice.
    """
    counters = _report(result).counters
    if counters is None:
        raise DataError("over Spark Connect nothing is counted: Spark's accumulators are not there")
    return counters.told()


def _spark_plan(df: DataFrame) -> str:
    text = StringIO()
    with redirect_stdout(text):  # Spark prints it, and does nothing else with it
        df.explain(mode="formatted")
    return text.getvalue()
