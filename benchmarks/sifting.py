"""Comparisons between components: candidates sifted in blocks against one by one, in one run on the same stream."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

import quercus as qc
from benchmarks.measure import interleaved
from benchmarks.streams import stream
from benchmarks.workloads import SCHEMA
from quercus.backends.local import sieves

NEVER = 1 << 62

# Values are even between 0 and 1000: so many pairs pass that the second is greater by so much, or so many times.
MORE = {"50%": 0.0, "10%": 552.8, "1%": 858.6, "0.1%": 955.3}
TIMES = {"50%": 1, "10%": 5, "1%": 50, "0.1%": 500}
THREE = "SEQ(T0 a, T1 b, T2 c, {} * a.value < b.value < c.value, a.id < 20, c.id = 0)"
PATTERNS = {
    "SEQ of 2": ("SEQ(T0 a, T1 b, b.value > a.value + {})", MORE, "auto"),
    "SEQ of 3, stack": (THREE, TIMES, "stack"),
    "SEQ of 3, tree": (THREE, TIMES, "right"),
    "negation": ("SEQ(T0 a, !(T3 x, x.value > a.value + {}), T1 b, a.id < 20, b.id = 0)", MORE, "auto"),
}
WINDOWS = (1, 10, 100)


def one_by_one(plan: qc.Plan, table: pa.Table) -> Any:
    usual = sieves.FROM
    sieves.FROM = NEVER
    try:
        return plan.run(table)
    finally:
        sieves.FROM = usual


def compared(rounds: int) -> list[dict[str, Any]]:
    """Every query both ways; they must find the same."""
    table, found = stream("u1m"), []
    for what, (pattern, shares, shape) in PATTERNS.items():
        for share, factor in shares.items():
            for times in WINDOWS:
                query = f"PATTERN {pattern.format(factor)} WITHIN {100 * times} ms"
                plan = qc.compile(query, SCHEMA, shape=shape)
                expected = [int(b.rows.sum()) for b in plan.run(table).bound]

                def look(number: int, result: Any, query: str = query, expected: Any = expected) -> None:
                    if [int(b.rows.sum()) for b in result.bound] != expected:
                        raise AssertionError(f"{query}: number {number} found something else")

                times_ = interleaved([partial(plan.run, table), partial(one_by_one, plan, table)], rounds, look)
                sifted, single = (min(t.cpus) for t in times_)
                found.append(
                    {
                        "of": f"{what}, {share}, x{times}",
                        "query": query,
                        "matches": len(plan.run(table)),
                        "sifted": sifted,
                        "one by one": single,
                    }
                )
    return found


def show(found: list[dict[str, Any]]) -> None:
    print(f"\n{'comparisons between components':36}{'matches':>11} {'sifted':>9} {'1 by 1':>9} {'ratio':>8}")
    for e in found:
        ratio = e["one by one"] / e["sifted"]
        print(f"{e['of']:36}{e['matches']:11,} {1e3 * e['sifted']:9.2f} {1e3 * e['one by one']:9.2f} {ratio:7.1f}x")
    print("Best CPU times in ms over 1,000,000 events: the share of pairs that pass, and the window (x1: 100 ms).")


if __name__ == "__main__":
    show(compared(2))
