"""One query in every shape, and in the one that the planner chooses: time and memory, side by side."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable

import pyarrow as pa
from attrs import frozen

import quercus as qc
from quercus.backends.base import Limits
from quercus.backends.local.events import load
from quercus.backends.local.joins import Measured
from quercus.backends.local.run import find
from quercus.backends.local.trace import Trace

MOST = 3_000_000  # matches of a query that is measured
FAR = 1.5  # times as long as the best: no longer worth a round
TOO_LONG = 30.0  # seconds of a run
SHAPES = ("left", "right", "bushy", "inner", "stack")


@frozen
class Compared:
    """The least CPU seconds of a run in each shape; `auto` is the planner's own, planning from the data included."""

    query: str
    events: int
    matches: int
    seconds: dict[str, float]
    bytes: dict[str, int]  # the most that internal buffers held
    chosen: str  # the shape that ran

    @property
    def best(self) -> str:
        return min(SHAPES, key=lambda s: self.seconds[s])

    @property
    def ratio(self) -> float:
        """The chosen plan's time against that of the best shape."""
        return self.seconds["auto"] / self.seconds[self.best]


def compare(query: str, schema: qc.Schema, table: pa.Table, budget: float = 2.0, least: int = 5) -> Compared:
    """Run a query in all shapes in turn, `least` times and as often as `budget` seconds allow; the best time counts.

    A shape that takes more than `FAR` times as long as the best is out after two rounds, or stopped in its first.
    """
    plans = {s: qc.compile(query, schema, shape=s) for s in ("auto", "stack", *SHAPES[:-1])}
    seconds = dict.fromkeys(plans, float("inf"))
    found: set[int] = set()
    spent, rounds, end = 0.0, 0, TOO_LONG
    gc.collect()
    gc.disable()
    try:
        while rounds < least or (spent < budget and rounds < 40):
            best = min(seconds.values())
            for name, plan in plans.items():
                if rounds > 1 and name != "auto" and seconds[name] > FAR * best:
                    continue
                took, matches = _run(plan, table, end)
                seconds[name] = min(seconds[name], took)
                found |= matches
                spent += took
                end = min(end, max(0.5, 3 * FAR * seconds[name]))
            rounds += 1
    finally:
        gc.enable()
    (matches,) = found
    trace = Trace()
    find(plans["auto"], load(table, schema), Limits(), trace=trace)
    ran = plans["auto"] if trace.again is None else trace.again.plan
    chosen = next((a.shape for a in ran.alternatives() if a.chosen), ran.tree.shape)
    named = chosen if ran.tree.shape == "mixed" else ran.tree.shape
    return Compared(query, len(table), matches, seconds, {}, named)


def _run(plan: qc.Plan, table: pa.Table, end: float) -> tuple[float, set[int]]:
    """CPU seconds of a run, and how many matches it found; none, if it was stopped."""
    result = None
    start = time.process_time()
    try:
        result = plan.run(table, limits=Limits(max_matches=MOST, max_seconds=end))
    except qc.LimitExceeded as e:
        if e.limit != "max_seconds":
            raise
    took = time.process_time() - start
    return took, set() if result is None else {len(result)}


def held(query: str, schema: qc.Schema, table: pa.Table) -> dict[str, int]:
    """The most bytes that internal buffers hold in each shape."""
    stream = load(table, schema)
    found = {}
    for name in (*SHAPES, "auto"):
        joins: list[Measured] = []
        find(qc.compile(query, schema, shape=name), stream, Limits(), joins=joins)
        found[name] = sum(j.bytes for j in joins)
    return found


def summary(all_: Iterable[Compared]) -> str:
    """How near the chosen plans are to the best shapes."""
    ratios = sorted(c.ratio for c in all_)
    near = sum(r <= 1.2 for r in ratios) / len(ratios)
    return (
        f"{len(ratios)} queries: chosen plan within 1.2 times the best shape's time on {near:.0%}; "
        f"middle {ratios[len(ratios) // 2]:.2f}, worst {ratios[-1]:.2f}"
    )


def table(all_: Iterable[Compared]) -> str:
    """A line a query: milliseconds by shape, the chosen one, its time against the best."""
    lines = [f"{'ratio':>6} {'auto':>8} " + " ".join(f"{s:>8}" for s in SHAPES) + "  chosen        best    query"]
    for c in all_:
        times = " ".join(f"{c.seconds[s] * 1e3:8.2f}" for s in SHAPES)
        lines.append(
            f"{c.ratio:6.2f} {c.seconds['auto'] * 1e3:8.2f} {times}  {c.chosen:<13} {c.best:<7} {c.query}"
            f" ({c.matches:,} matches)"
        )
    return "\n".join(lines)
