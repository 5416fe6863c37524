"""One query in every shape, and in the one that the planner chooses: time and memory, side by side."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable
from math import inf
from typing import Any

import pyarrow as pa
from attrs import asdict, frozen

import quercus as qc
from benchmarks.record import Ratio
from quercus.backends.base import Limits
from quercus.backends.local.events import Events, load
from quercus.backends.local.joins import Measured
from quercus.backends.local.refine import Remembered
from quercus.backends.local.run import find

MOST = 3_000_000  # matches of a query that is measured
FAR = 1.5  # times as long as the best: no longer worth a round
TOO_LONG = 30.0  # seconds of a run
NEAR, SHARE, WORST = 1.2, 0.9, 2.0  # of the best shape's time: near, for how many at least, for none beyond
SHAPES = ("left", "right", "bushy", "inner", "stack")


@frozen
class Compared:
    """The least CPU seconds of a run in each shape; `auto` is the planner's own.

    A plan looks at its data in its first two runs. `first` are first runs: of a plan that was compiled just before, in
    each shape and as the planner has it.
    """

    query: str
    events: int
    matches: int
    seconds: dict[str, float]
    first: dict[str, float]
    bytes: dict[str, int]  # the most that internal buffers held
    chosen: str  # the shape that ran

    @property
    def best(self) -> str:
        return min(SHAPES, key=lambda s: self.seconds[s])

    @property
    def first_ratio(self) -> float:
        """The same of first runs."""
        return self.first["auto"] / min(self.first[s] for s in SHAPES)

    @property
    def ratio(self) -> float:
        """The chosen plan's time against that of the best shape."""
        return self.seconds["auto"] / self.seconds[self.best]


def compare(
    query: str,
    schema: qc.Schema,
    table: pa.Table,
    budget: float = 2.0,
    least: int = 5,
    before: Compared | None = None,
) -> Compared:
    """Run a query in all shapes in turn, `least` times and as often as `budget` seconds allow; the best time counts.

    A shape that takes more than `FAR` times as long as the best is out after two rounds, or stopped in its first. What
    was measured `before` counts as well.
    """
    plans = {s: qc.compile(query, schema, shape=s) for s in ("auto", "stack", *SHAPES[:-1])}
    seconds = dict.fromkeys(plans, inf) if before is None else dict(before.seconds)
    first = dict.fromkeys(plans, inf) if before is None else dict(before.first)
    found: set[int] = set()
    spent, rounds, end = 0.0, 0, TOO_LONG
    gc.collect()
    gc.disable()
    try:
        while rounds < least or (spent < budget and rounds < 40):
            names = list(plans)
            best = min(seconds.values())
            for name in names[rounds % len(names) :] + names[: rounds % len(names)]:
                if rounds > 1 and name in SHAPES and seconds[name] > FAR * best:
                    continue
                for plan, times in ((plans[name], seconds), (qc.compile(query, schema, shape=name), first)):
                    took, matches = _run(plan, table, end)
                    times[name] = min(times[name], took)
                    found |= matches
                    spent += took
                end = min(end, max(0.5, 3 * FAR * seconds[name]))
            rounds += 1
    finally:
        gc.enable()
    (matches,) = found
    return Compared(query, len(table), matches, seconds, first, {}, _name(chosen(plans["auto"], load(table, schema))))


def chosen(plan: qc.Plan, stream: Events) -> qc.Plan:
    """What a plan becomes when it has seen its events twice."""
    for _ in range(2):
        find(plan, stream, Limits())
    kept = plan.made.get("refined")
    again = kept.again if isinstance(kept, Remembered) else None
    return plan if again is None else again.plan


def _name(plan: qc.Plan) -> str:
    chosen = next((a.shape for a in plan.alternatives() if a.chosen), plan.tree.shape)
    return chosen if plan.tree.shape == "mixed" else plan.tree.shape


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


def nearness(all_: Iterable[Compared]) -> dict[str, dict[str, float]]:
    """How near the chosen plans are to the best shapes, of plans that have seen their data and of first runs."""
    found = list(all_)
    out = {}
    for what, of in (("chosen plan", Compared.ratio), ("first runs", Compared.first_ratio)):
        over = sorted(of.__get__(c) for c in found)
        near = sum(r <= NEAR for r in over) / len(over)
        out[what] = {"queries": len(over), "near": near, "middle": over[len(over) // 2], "worst": over[-1]}
    return out


def ratios(found: dict[str, dict[str, float]]) -> dict[str, Ratio]:
    """The aims: nine of ten near the best shape, none beyond twice its time."""
    return {
        name: ratio
        for what, one in found.items()
        for name, ratio in (
            (f"{what}: share within {NEAR} times the best shape", Ratio(one["near"], SHARE)),
            (f"{what}: worst over the best shape", Ratio(one["worst"], WORST, less=True)),
        )
    }


def kept(found: Iterable[Compared]) -> list[dict[str, Any]]:
    """As JSON has it; a shape that was never measured to its end has no time."""
    return [
        {
            **asdict(c),
            **{k: {s: t if t < inf else None for s, t in getattr(c, k).items()} for k in ("seconds", "first")},
        }
        for c in found
    ]


def summary(all_: Iterable[Compared]) -> str:
    return "\n".join(
        f"{one['queries']} queries: {what} within {NEAR} times the best shape's time on {one['near']:.1%}; "
        f"middle {one['middle']:.2f}, worst {one['worst']:.2f}"
        for what, one in nearness(all_).items()
    )


def table(all_: Iterable[Compared]) -> str:
    """A line a query: its time against the best, also of first runs; milliseconds by shape, the chosen one."""
    lines = [
        f"{'ratio':>6} {'first':>6} {'auto':>8} "
        + " ".join(f"{s:>8}" for s in SHAPES)
        + "  chosen        best    query"
    ]
    for c in all_:
        times = " ".join(f"{c.seconds[s] * 1e3:8.2f}" for s in SHAPES)
        lines.append(
            f"{c.ratio:6.2f} {c.first_ratio:6.2f} {c.seconds['auto'] * 1e3:8.2f} {times}  {c.chosen:<13} {c.best:<7} "
            f"{c.query} ({c.matches:,} matches)"
        )
    return "\n".join(lines)
