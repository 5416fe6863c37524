"""What `plan.why` takes beside `plan.run`, in one run on the same stream of a million events."""

from __future__ import annotations

import argparse
import time
from typing import Any

import quercus as qc
from benchmarks import record
from benchmarks.streams import stream
from benchmarks.workloads import SCHEMA

QUERIES = {
    "a window": "SEQ(T0 a, T1 b, T2 c, [id], a.value > 999, c.value > 999) WITHIN 100 ms",
    "a condition": "SEQ(T0 a, T1 b, T2 c, a.id = b.id, b.id = c.id, a.value > 900, c.value > 2 * a.value) WITHIN 1 s",
    "conditions between all": "SEQ(T0 a, T1 b, T2 c, b.value > a.value + 990, c.value > b.value) WITHIN 100 ms",
    "a negation": "SEQ(T0 a, T1 b, !T3 d, !T4 e, T2 c, a.id = b.id, b.id = c.id, a.value > 990) WITHIN 1 s",
    "a type": "SEQ(T0 a, T1 b, t2 c, [id]) WITHIN 100 ms",
    "nothing": "SEQ(T0 a, T1 b, T2 c) WITHIN 100 ms AGG COUNT(*)",
    "a set": "SEQ(T0 a, T1+ b, T2 c, a.id = b.id, b.id = c.id, sum(b.value) > 1000000) WITHIN 100 ms",
}


def measured(events: str) -> list[dict[str, Any]]:
    """Each query: seconds of a run and of a why, and what the why told."""
    table, found = stream(events), []
    for what, query in QUERIES.items():
        plan = qc.compile(f"PATTERN {query}", SCHEMA)
        began = time.perf_counter()
        plan.run(table)
        ran = time.perf_counter()
        why = plan.why(table)
        ended = time.perf_counter()
        found.append(
            {
                "stopped by": what,
                "query": query,
                "run": ran - began,
                "why": ended - ran,
                "matches": str(why.matches),
                "obstacles": len(why.obstacles),
                "misses": len(why.misses),
                "notes": list(why.notes),
            }
        )
    return found


def ratios(found: list[dict[str, Any]]) -> dict[str, record.Ratio]:
    return {f"{one['stopped by']}: why over a run": record.Ratio(one["why"] / one["run"], less=True) for one in found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    record.options(parser)
    asked = parser.parse_args()
    found = measured("u100k" if asked.quick else "u1m")
    for one in found:
        print(
            f"{one['stopped by']:<24} run {one['run']:6.2f} s  why {one['why']:6.2f} s  matches {one['matches']:>12}  "
            f"obstacles {one['obstacles']}  misses {one['misses']}  {'; '.join(one['notes'])}"
        )
    record.keep(asked, "why", found, ratios(found))


if __name__ == "__main__":
    main()
