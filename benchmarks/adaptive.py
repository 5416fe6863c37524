"""A stream whose rates reverse half way: fixed orders of binding in each half, and a stream that adapts.

Run it with `python -m benchmarks.adaptive`. CPU time, the least of some rounds in which all take turns. The first half
has many A and hardly any C, the second the other way round. The stream that adapts knows nothing beforehand.
"""

from __future__ import annotations

import time
from itertools import permutations

import numpy as np
import pyarrow as pa

import quercus as qc
from quercus.backends.local.adaptive import shown
from quercus.backends.local.orders import Order, normal
from quercus.backends.local.stream import Stream

QUERY = "PATTERN SEQ(A a, B b, C c, D d, a.x + c.x = b.x + d.x) WITHIN 1000"
SCHEMA = qc.Schema({"x": "int64"})
RATES = {"A": 0.1, "B": 0.02, "C": 0.0005, "D": 0.05}
REVERSED = RATES | {"A": RATES["C"], "C": RATES["A"]}
LENGTH = 600_000  # of each half, in time
BATCH = 1_000
ROUNDS = 3
NEAR, FAR = 1.2, 2.0  # what adapting may cost against the best, and must save against the worst


def half(rates: dict[str, float], first: int, length: int, seed: int) -> pa.Table:
    """Events at random times, each type at its own rate."""
    r = np.random.default_rng(seed)
    counts = {name: int(r.poisson(rate * length)) for name, rate in rates.items()}
    ts = np.concatenate([r.integers(first, first + length, n) for n in counts.values()])
    names = np.repeat(list(counts), list(counts.values()))
    order = np.argsort(ts, kind="stable")
    return pa.table({"ts": ts[order], "type": pa.array(names[order]), "x": r.integers(0, 1000, len(ts))})


def spent(stream: Stream, events: pa.Table) -> tuple[float, int]:
    """CPU seconds and matches of pushing events in batches."""
    batches = events.to_batches(max_chunksize=BATCH)
    found, begin = 0, time.process_time()
    for b in batches:
        found += len(stream.push(b))
    return time.process_time() - begin, found


def fixed(plan: qc.Plan, order: Order) -> Stream:
    """A stream that binds in one order for good."""
    stream = plan.stream(adapt=False)
    f, v = stream._engine.variants[0]
    stream._switch((normal(f, v, order),))
    return stream


def measured(length: int = LENGTH, rounds: int = ROUNDS) -> tuple[dict[str, list[float]], str]:
    """Seconds of both halves for each order and for the stream that adapts, and the history of that one."""
    plan = qc.compile(QUERY, SCHEMA)
    halves = [half(RATES, 0, length, 1), half(REVERSED, length, length, 2)]
    least: dict[str, list[float]] = {}
    told = ""
    for _ in range(rounds):
        streams = [fixed(plan, order) for order in permutations("abc")]
        streams = [*streams, plan.stream()]
        counts = set()
        for s in streams:
            name = "adaptive" if s is streams[-1] else shown(s._engine, s._engine.orders)
            took = [spent(s, events) for events in halves]
            counts.add(tuple(n for _, n in took))
            before = least.get(name, [np.inf] * 2)
            least[name] = [min(a, b) for a, (b, _) in zip(before, took, strict=True)]
        assert len(counts) == 1, counts
        told = streams[-1].explain()
    return least, told[told.index("Stream\n") :]


def main() -> None:
    least, told = measured()
    for name, (first, second) in least.items():
        print(f"{name:18} {first:8.3f} s {second:8.3f} s")
    print(told)
    own = least.pop("adaptive")
    for i, which in enumerate(("first", "second")):
        best, worst = (f(times[i] for times in least.values()) for f in (min, max))
        print(
            f"{which} half: {own[i] / best:.2f} times the best (at most {NEAR}), "
            f"the worst is {worst / own[i]:.1f} times as slow (at least {FAR})"
        )


if __name__ == "__main__":
    main()
