"""How time grows: with events, the window, the length of the pattern, the size of sets; what a small stream costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import quercus as qc
from benchmarks.measure import least
from benchmarks.streams import TYPES, stream
from benchmarks.workloads import SCHEMA, WORKLOADS

ROOT = Path(__file__).parents[1]
W1 = WORKLOADS["W1"]


def row(label: str, query: str, table: pa.Table, rounds: int) -> dict[str, Any]:
    plan = qc.compile(query, SCHEMA)
    seconds, n = least(lambda: plan.run(table), rounds), len(plan.run(table))
    return {"of": label, "query": query, "events": len(table), "matches": n, "seconds": seconds}


def with_events(rounds: int, *, quick: bool) -> list[dict[str, Any]]:
    """W1 over the first events of one stream."""
    whole = stream("u1m" if quick else "u10m")
    sizes = [n for n in (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000) if n <= len(whole)]
    return [row(f"{n:,} events", W1.query, whole.slice(0, n), rounds) for n in sizes]


def with_window(rounds: int) -> list[dict[str, Any]]:
    """W1 itself would find 6 billion matches in a window of 10 s. So: no event of the last type; or few of the first
    and the last, so that the matches stay about as many as those of W1.
    """
    u1m = stream("u1m")
    queries = {
        "last never occurs": "PATTERN SEQ(T0 a, T1 b, Never c) WITHIN {w} ms",
        "last never occurs, EVENTS": "PATTERN SEQ(T0 a, T1 b, Never c) WITHIN {w} EVENTS",
        "few first and last": "PATTERN SEQ(T0 a, T1 b, T2 c, a.value < 10, c.value < 10) WITHIN {w} ms",
    }
    return [
        row(f"{what}, x{times}", q.format(w=100 * times), u1m, rounds)
        for what, q in queries.items()
        for times in (1, 3, 10, 30, 100)
    ]


def with_length(rounds: int) -> list[dict[str, Any]]:
    """SEQ of the first 2 to 8 types, in W1's window."""
    u1m = stream("u1m")
    patterns = {n: ", ".join(TYPES[:n]) for n in range(2, 9)}
    return [row(f"{n} components", f"PATTERN SEQ({p}) WITHIN 100 ms", u1m, rounds) for n, p in patterns.items()]


def with_sets(rounds: int) -> list[dict[str, Any]]:
    """The same 1,000 matches in as many events, with sets of 10 to 100,000 elements."""
    patterns = {"at the end": "SEQ(T0 a, T1+ b)", "in the middle": "SEQ(T0 a, T1+ b, T2 c)"}
    return [
        row(f"{where}, {n:,} elements", f"PATTERN {p} WITHIN 1000000000 ms", between(n), rounds)
        for where, p in patterns.items()
        for n in (10, 100, 1_000, 10_000, 100_000)
    ]


def between(n: int) -> pa.Table:
    """1,000 T0, events that are not asked for, n T1, and one T2."""
    types = ["T0"] * 1_000 + ["T9"] * (100_000 - n) + ["T1"] * n + ["T2"]
    zeros = np.zeros(len(types), np.int64)
    return pa.table({"ts": np.arange(len(types)), "type": types, "id": zeros, "value": zeros.astype(np.float64)})


_COLD = """
import time
from benchmarks.streams import stream
from benchmarks.workloads import WORKLOADS
few = stream("u100k").slice(0, 100)
start = time.perf_counter()
WORKLOADS["W1"].compile().run(few)
print(time.perf_counter() - start)
"""


def small(rounds: int) -> dict[str, float]:
    """Seconds to compile and run on 100 events: each workload, and W1 as the first query of a process."""
    u, m = stream("u100k").slice(0, 100), stream("music1m").slice(0, 100)
    found = {
        w.name: least(lambda w=w: w.compile().run(m if w.stream == "music1m" else u), 5 * rounds)  # type: ignore[misc]
        for w in WORKLOADS.values()
    }
    cold = [float(subprocess.check_output([sys.executable, "-c", _COLD], cwd=ROOT)) for _ in range(min(rounds, 5))]
    return {**found, "W1, first query of a process": min(cold)}
