"""Where the time of a run goes: each stage of every workload, the least of many runs that are watched."""

from __future__ import annotations

from benchmarks.streams import stream
from benchmarks.workloads import SCHEMA, WORKLOADS
from quercus.backends.base import Limits
from quercus.backends.local.analyze import analyze_stream
from quercus.backends.local.events import load
from quercus.backends.local.trace import Trace

RUNS = 100
STAGES = ("load", "prepare", "route", "buffers", "match", "order")


def measured(runs: int) -> dict[str, dict[str, float]]:
    """Seconds by workload and stage."""
    found = {}
    for w in WORKLOADS.values():
        table, plan = stream(w.stream), w.compile()
        least = dict.fromkeys(STAGES, float("inf"))
        for _ in range(runs + 2):  # a plan looks at its data in its first two runs
            trace = Trace()
            events = load(table, SCHEMA)
            trace.lap("load")
            analyze_stream(plan, events, Limits(), trace)
            for stage in STAGES:
                least[stage] = min(least[stage], trace.stages.get(stage, 0.0))
        found[w.name] = least
    return found


def show(found: dict[str, dict[str, float]]) -> None:
    print(f"\n{'stages, ms':36}" + "".join(f"{stage:>9}" for stage in STAGES))
    for name, row in found.items():
        print(f"{name:36}" + "".join(f"{1e3 * row[stage]:9.2f}" for stage in STAGES))


if __name__ == "__main__":
    show(measured(RUNS))
