"""Streams beside runs: W1 pushed in record batches, and how many events a second go through in batches of a size.

Each push gives the row numbers of all its matches, as a run does: `bound` is asked for. Columns are made by neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

import quercus as qc
from benchmarks import measure
from benchmarks.streams import stream
from benchmarks.workloads import WORKLOADS

W1 = WORKLOADS["W1"]
BATCH = 1_000
SIZES = (1, 10, 100, 1_000, 10_000)
TARGET = 2.0  # times as long as a run, at most


def streamed(plan: qc.Plan, batches: list[pa.RecordBatch]) -> Callable[[], int]:
    """Push all batches, and take the row numbers of the matches of each: nothing is kept, as in a live stream."""

    def push_all() -> int:
        count = 0
        with plan.stream() as s:
            for batch in batches:
                count += len(s.push(batch).bound[0])
        return count + len(s.final)

    return push_all


def beside_a_run(rounds: int) -> dict[str, Any]:
    """W1 in batches of 1,000 events beside a run over the whole table, in turns."""
    table, plan = stream(W1.stream), W1.compile()
    batches = table.to_batches(max_chunksize=BATCH)

    def look(number: int, result: Any) -> None:
        count = len(result) if number == 0 else result
        if count != W1.count:
            raise AssertionError(f"{'a run' if number == 0 else 'a stream'} found {count}, expected {W1.count}")

    run, pushed = measure.interleaved([lambda: plan.run(table), streamed(plan, batches)], rounds, look)
    return {
        "events": len(table),
        "batch": BATCH,
        "matches": W1.count,
        "run_seconds": run.best,
        "stream_seconds": pushed.best,
        "ratio": pushed.best / run.best,
        "median_ratio": pushed.middle / run.middle,
        "cpu_ratio": min(pushed.cpus) / min(run.cpus),
        "target": TARGET,
    }


def by_batch(rounds: int) -> list[dict[str, Any]]:
    """W1 on a smaller stream, in batches of each size."""
    table, plan = stream("u100k"), W1.compile()
    expected = len(plan.run(table))
    found = []
    for size in SIZES:
        action = streamed(plan, table.to_batches(max_chunksize=size))
        if action() != expected:
            raise AssertionError(f"batches of {size} do not find {expected} matches")
        seconds = measure.least(action, 1 if size == 1 else rounds)
        found.append({"batch": size, "events": len(table), "matches": expected, "seconds": seconds})
    return found


def show(beside: dict[str, Any], sizes: list[dict[str, Any]]) -> None:
    what = f"W1 streamed, batches of {beside['batch']:,}"
    print(f"\n{what:36}{'run':>11} {'stream':>9} {'ratio':>8} {'median':>8} {'CPU':>8} {'target':>10}")
    verdict = "met" if beside["ratio"] <= beside["target"] else "MISSED"
    print(
        f"{'':36}{1e3 * beside['run_seconds']:11.2f} {1e3 * beside['stream_seconds']:9.2f} {beside['ratio']:7.2f}x"
        f" {beside['median_ratio']:7.2f}x {beside['cpu_ratio']:7.2f}x  within {beside['target']:g}x  {verdict}"
    )
    print("Best times in ms; the ratio is how many times as long as a run over the whole table a stream takes.")
    print(f"\n{'W1 streamed, 100,000 events':36}{'matches':>11} {'ms':>9} {'us/batch':>9} {'events/s':>12}")
    for r in sizes:
        pushes, label = -(-r["events"] // r["batch"]), f"batches of {r['batch']:,}"
        print(
            f"{label:36}{r['matches']:11,} {1e3 * r['seconds']:9.2f}"
            f" {r['seconds'] / pushes * 1e6:9.1f} {r['events'] / r['seconds']:12,.0f}",
            flush=True,
        )
