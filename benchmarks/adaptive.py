"""A stream whose rates reverse half way: fixed orders of binding in each half, and a stream that adapts.

Run it with `python -m benchmarks.adaptive`. CPU time, the least of some rounds; all variants take turns.
"""

from __future__ import annotations

import time
from itertools import permutations

import numpy as np
import pyarrow as pa

import quercus as qc
from quercus.backends.local.orders import Orders, normal

QUERY = "PATTERN SEQ(A a, B b, C c, D d, a.x < d.x) WITHIN 1000"
SCHEMA = qc.Schema({"x": "int64"})
RATES = {"A": 0.2, "B": 0.02, "C": 0.0005, "D": 0.1}
REVERSED = RATES | {"A": RATES["C"], "C": RATES["A"]}
BATCH = 500
ROUNDS = 5
NEAR, FAR = 1.2, 2.0  # what adapting may cost against the best, and must save against the worst


def half(rates: dict[str, float], first: int, length: int, seed: int) -> pa.Table:
    """Events at random times, each type at its own rate."""
    r = np.random.default_rng(seed)
    counts = {name: r.poisson(rate * length) for name, rate in rates.items()}
    ts = np.concatenate([r.integers(first, first + length, n) for n in counts.values()])
    names = np.repeat(list(counts), list(counts.values()))
    order = np.argsort(ts, kind="stable")
    x = r.integers(0, 1000, len(ts))
    return pa.table({"ts": ts[order], "type": pa.array(names[order]), "x": x})


def spent(stream: qc.backends.base.Any, events: pa.Table) -> tuple[float, int]:
    """CPU seconds and matches of pushing events in batches."""
    batches = events.to_batches(max_chunksize=BATCH)
    found, begin = 0, time.process_time()
    for b in batches:
        found += len(stream.push(b))
    return time.process_time() - begin, found
