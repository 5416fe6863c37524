"""One thread against two, on every workload and on queries that test many candidates."""

from __future__ import annotations

from functools import partial
from typing import Any

import quercus as qc
from benchmarks.measure import interleaved
from benchmarks.streams import stream
from benchmarks.workloads import SCHEMA, WORKLOADS

HEAVY = {
    "6 types, all combinations": "PATTERN SEQ(T0, T1, T2, T3, T4, T5) WITHIN 100 ms",
    "AND of 3": "PATTERN AND(T0 a, T1 b, T2 c, a.value < b.value) WITHIN 100 ms",
    "sum of values": "PATTERN SEQ(T0 a, T1 b, T2 c, a.value + b.value < c.value) WITHIN 300 ms",
}
SMALL = {f"W1, {n:,} events": n for n in (1_000, 10_000, 100_000)}


def compared(rounds: int) -> list[dict[str, Any]]:
    """Every query both ways; they must find the same."""
    cases = [(f"{w.name} {w.what}", w.query, stream(w.stream)) for w in WORKLOADS.values()]
    cases += [(what, query, stream("u1m")) for what, query in HEAVY.items()]
    cases += [(what, WORKLOADS["W1"].query, stream("u1m").slice(0, n)) for what, n in SMALL.items()]
    found = []
    for what, query, table in cases:
        plan = qc.compile(query, SCHEMA)
        rows = [b.rows for b in plan.run(table).bound]
        expected = [(len(r), int(r.sum())) for r in rows]

        def look(number: int, result: Any, what: str = what, expected: Any = expected) -> None:
            got = [(len(b.rows), int(b.rows.sum())) for b in result.bound]
            if got != expected:
                raise AssertionError(f"{what}: {number + 1} threads found {got}, expected {expected}")

        one, two = interleaved([partial(plan.run, table, threads=n) for n in (1, 2)], rounds, look)
        cpu = min(two.cpus) / min(one.cpus)
        found.append(
            {"of": what, "query": query, "matches": expected[0][0], "one": one.best, "two": two.best, "cpu": cpu}
        )
    return found


def show(found: list[dict[str, Any]]) -> None:
    print(f"\n{'threads':36}{'matches':>11} {'1':>9} {'2':>9} {'ratio':>8} {'CPU':>8}")
    for e in found:
        ratio = e["one"] / e["two"]
        times = f"{1e3 * e['one']:9.2f} {1e3 * e['two']:9.2f}"
        print(f"{e['of']:36}{e['matches']:11,} {times} {ratio:7.2f}x {e['cpu']:7.2f}x", flush=True)
    print("Best times on the wall in ms, on one thread and on two, and the CPU time of two over that of one.")


if __name__ == "__main__":
    show(compared(7))
