"""A stream whose rates reverse half way: fixed orders of binding in each half, and a stream that adapts.

Run it with `python -m benchmarks.adaptive`. CPU time; of each push the least of some rounds in which all take turns.
The first half has many A and hardly any C, the second the other way round; every stream runs through both, so that each
has the same windows across the border. The stream that adapts knows nothing beforehand.
"""

from __future__ import annotations

import argparse
import time
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import quercus as qc
from benchmarks import record
from quercus.backends.local.adaptive import shown
from quercus.backends.local.orders import Order, normal
from quercus.backends.local.stream import Stream

QUERY = "PATTERN SEQ(A a, B b, C c, D d, a.x + c.x = b.x + d.x) WITHIN 1000"
SCHEMA = qc.Schema({"x": "int64"})
RATES = {"A": 0.1, "B": 0.02, "C": 0.0005, "D": 0.05}
REVERSED = RATES | {"A": RATES["C"], "C": RATES["A"]}
LENGTH = 1_000_000  # of each half, in time
BATCH = 1_000
LOT = 5  # batches that are one point of the picture
ROUNDS = 7
AWAY = 1.5  # times the best
Times = np.ndarray[Any, np.dtype[np.float64]]
NEAR, FAR = 1.2, 2.0  # what adapting may cost against the best, and must save against the worst


def half(rates: dict[str, float], first: int, length: int, seed: int) -> pa.Table:
    """Events at random times, each type at its own rate."""
    r = np.random.default_rng(seed)
    counts = {name: int(r.poisson(rate * length)) for name, rate in rates.items()}
    ts = np.concatenate([r.integers(first, first + length, n) for n in counts.values()])
    names = np.repeat(list(counts), list(counts.values()))
    order = np.argsort(ts, kind="stable")
    return pa.table({"ts": ts[order], "type": pa.array(names[order]), "x": r.integers(0, 1000, len(ts))})


def spent(stream: Stream, events: pa.Table) -> tuple[Times, int]:
    """CPU seconds of each push of a batch, and all matches."""
    found, seconds = 0, []
    for b in events.to_batches(max_chunksize=BATCH):
        begin = time.process_time()
        found += len(stream.push(b))
        seconds.append(time.process_time() - begin)
    return np.array(seconds), found


def fixed(plan: qc.Plan, order: Order) -> Stream:
    """A stream that binds in one order for good."""
    stream = plan.stream(adapt=False)
    f, v = stream._engine.variants[0]
    stream._switch((normal(f, v, order),))
    return stream


def measured(length: int = LENGTH, rounds: int = ROUNDS) -> tuple[list[dict[str, float]], list[float], str]:
    """Seconds of each order in each half, those of the stream that adapts, and the history of that one.

    Every stream runs through both halves. Orders that are far from the best in both are not measured again.
    """
    plan = qc.compile(QUERY, SCHEMA)
    halves = [half(RATES, 0, length, 1), half(REVERSED, length, length, 2)]
    least: list[dict[str, Times]] = [{}, {}]
    told = ""
    for _ in range(rounds):
        adapting = plan.stream()
        runs = {"": adapting}
        for order in permutations("abc"):
            stream = fixed(plan, order)
            name = shown(stream._engine, stream._engine.orders)
            if not all(name in known and _away(known, name) for known in least):
                runs[name] = stream
        counts = {}
        for name, stream in runs.items():
            for i, events in enumerate(halves):
                seconds, counts[name, i] = spent(stream, events)
                least[i][name] = np.minimum(seconds, least[i].get(name, np.inf))
        assert all(n == counts["", i] for (_, i), n in counts.items()), counts
        told = adapting.explain()
    own = [float(known.pop("").sum()) for known in least]
    return [{name: float(t.sum()) for name, t in known.items()} for known in least], own, told[told.index("Stream\n") :]


def _away(known: dict[str, Times], name: str) -> bool:
    return bool(known[name].sum() > AWAY * min(t.sum() for t in known.values()))


def course(stream: Stream, events: pa.Table) -> list[float]:
    """CPU milliseconds of each lot of pushes, all along a stream."""
    batches = events.to_batches(max_chunksize=BATCH)
    found = []
    for i in range(0, len(batches) - LOT + 1, LOT):
        begin = time.process_time()
        for b in batches[i : i + LOT]:
            stream.push(b)
        found.append(1e3 * (time.process_time() - begin))
    return found


def plot(path: Path, length: int = LENGTH, rounds: int = 3) -> None:
    """What the stream costs as it goes on: two orders that are good for one half each, and the stream that adapts."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "quercus"
    import matplotlib.pyplot as plt

    plan = qc.compile(QUERY, SCHEMA)
    both = pa.concat_tables([half(RATES, 0, length, 1), half(REVERSED, length, length, 2)]).combine_chunks()
    makes = {
        "d b a c for good": lambda: fixed(plan, ("b", "a", "c")),
        "d c b a for good": lambda: fixed(plan, ("c", "b", "a")),
        "adapting": plan.stream,
    }
    least = {name: [np.inf] for name in makes}
    for _ in range(rounds):
        for name, make in makes.items():
            least[name] = np.minimum(least[name], course(make(), both)).tolist()
    drawn, axes = plt.subplots(figsize=(8, 3.6))
    for (name, values), colour in zip(least.items(), ("#f58518", "#4c78a8", "black"), strict=True):
        axes.plot(LOT * BATCH / 1000 * np.arange(len(values)), values, color=colour, label=name)
    axes.set_yscale("log")
    axes.set_xlabel("thousand events pushed")
    axes.set_ylabel(f"CPU ms of {LOT * BATCH:,} events")
    axes.set_title("Rates that reverse half way")
    axes.legend(frameon=False)
    drawn.tight_layout()
    drawn.savefig(path, metadata={"Date": None})
    plt.close(drawn)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    record.options(parser)
    asked = parser.parse_args()
    least, own, told = measured(LENGTH // 10, 1) if asked.quick else measured()
    for name in least[0]:
        print(f"{name:18} {least[0][name]:8.3f} s {least[1][name]:8.3f} s")
    print(f"{'adaptive':18} {own[0]:8.3f} s {own[1]:8.3f} s\n\n{told}")
    ratios = {}
    for i, which in enumerate(("first", "second")):
        best, worst = min(least[i].values()), max(least[i].values())
        ratios[f"{which} half: over the best order"] = record.Ratio(own[i] / best, NEAR, less=True)
        ratios[f"{which} half: the worst order over it"] = record.Ratio(worst / own[i], FAR)
        print(
            f"{which} half: {own[i] / best:.2f} times the best (at most {NEAR}), "
            f"the worst is {worst / own[i]:.1f} times as slow (at least {FAR})"
        )
    record.keep(asked, "adaptive", {"orders": least, "adaptive": own}, ratios)
    if (folder := record.images(asked)) is not None:
        plot(folder / "adapting.svg", *((LENGTH // 10, 1) if asked.quick else ()))


if __name__ == "__main__":
    main()
