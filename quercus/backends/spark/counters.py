"""What workers count: accumulators of Spark, where the session has them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from quercus.backends.spark.session import is_connected

NAMES = ("tasks", "events", "halo", "matches", "seconds")


class Counters:
    """`counters(events=, halo=, matches=, seconds=)` on a worker, `counters.told()` on the driver."""

    def __init__(self, session: SparkSession) -> None:
        context = session.sparkContext
        self.by_name: dict[str, Any] = {n: context.accumulator(0.0 if n == "seconds" else 0) for n in NAMES}

    def __call__(self, **found: float) -> None:
        for name, n in {"tasks": 1, **found}.items():
            self.by_name[name].add(n)

    def told(self) -> dict[str, float]:
        return {name: a.value for name, a in self.by_name.items()}


def counters_for(session: SparkSession) -> Counters | None:
    """None: over Spark Connect there are no accumulators."""
    return None if is_connected(session) else Counters(session)
