"""Negated sub-patterns: existence indexes against the search match by match, in one run on the same stream."""

from __future__ import annotations

from functools import partial
from typing import Any

import quercus as qc
from benchmarks.measure import interleaved
from benchmarks.streams import stream
from benchmarks.workloads import SCHEMA

QUERIES = {
    "leaf between": "SEQ(T0 a, !T3 x, T1 b, T2 c) WITHIN 100 ms",
    "leaf between, its id": "SEQ(T0 a, !(T3 x, x.id = a.id), T1 b) WITHIN 500 ms",
    "leaf between, the other id": "SEQ(T0 a, !(T3 x, x.id = b.id), T1 b) WITHIN 500 ms",
    "SEQ of 2 between": "SEQ(T0 a, !SEQ(T3 x, T4 y), T1 b, T2 c) WITHIN 100 ms",
    "SEQ of 2 between, its id": "SEQ(T0 a, !SEQ(T3 x, T4 y, x.id = y.id = a.id), T1 b) WITHIN 500 ms",
    "SEQ of 2 between, all ids": "SEQ(T0 a, !SEQ(T3 x, T4 y), T1 b, T2 c, [id]) WITHIN 2000 ms",
    "SEQ of 3 between": "SEQ(T0 a, !SEQ(T3 x, T4 y, T5 z), T1 b) WITHIN 500 ms",
    "SEQ of 2 at the end": "SEQ(T0 a, T1 b, !SEQ(T3 x, T4 y)) WITHIN 300 ms",
    "AND of 2 between": "SEQ(T0 a, !AND(T3 x, T4 y), T1 b, T2 c) WITHIN 100 ms",
    "SEQ of 2, values": "SEQ(T0 a, !SEQ(T3 x, T4 y, x.value * 20 < y.value), T1 b) WITHIN 300 ms",
    "SEQ of 2, values, its id": (
        "SEQ(T0 a, !SEQ(T3 x, T4 y, x.id = y.id = a.id, x.value < y.value), T1 b) WITHIN 500 ms"
    ),
}


def compared(rounds: int) -> list[dict[str, Any]]:
    """Every query both ways; they must find the same."""
    table, found = stream("u1m"), []
    for what, pattern in QUERIES.items():
        query = f"PATTERN {pattern}"
        actions = [partial(qc.compile(query, SCHEMA, nested=n).run, table) for n in ("auto", "iterative")]
        rows = [b.rows for b in actions[0]().bound]
        expected = [(len(r), int(r.sum())) for r in rows]

        def look(number: int, result: Any, what: str = what, expected: Any = expected) -> None:
            got = [(len(b.rows), int(b.rows.sum())) for b in result.bound]
            if got != expected:
                raise AssertionError(f"{what}: number {number} found {got}, expected {expected}")

        index, search = (t.best for t in interleaved(actions, rounds, look))
        found.append({"of": what, "query": query, "matches": len(rows[0]), "index": index, "search": search})
    return found


def show(found: list[dict[str, Any]]) -> None:
    print(f"\n{'negated':36}{'matches':>11} {'index':>9} {'search':>9} {'ratio':>8}")
    for e in found:
        ratio = e["search"] / e["index"]
        print(f"{e['of']:36}{e['matches']:11,} {1e3 * e['index']:9.2f} {1e3 * e['search']:9.2f} {ratio:7.1f}x")
    print("Best times in ms over 1,000,000 events, by index and match by match (nested='iterative').")


if __name__ == "__main__":
    show(compared(2))
