"""AGG without listing: W6 beside DuckDB's fastest form, and how time grows with the window and the pattern."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import quercus as qc
from benchmarks import measure, peers
from benchmarks.streams import stream
from benchmarks.workloads import COUNTED, SCHEMA

BATCH = 1_000
WINDOWS = (100, 1_000, 10_000, 100_000)
QUERIES = {
    "count": "PATTERN SEQ(T0 a, T1 b, T2 c) AGG COUNT(*) AS n",
    "sum": "PATTERN SEQ(T0 a, T1 b, T2 c) AGG SUM(b.id) AS n",
    "negation": "PATTERN SEQ(T0 a, !T3 x, T1 b, T2 c) AGG COUNT(*) AS n",
    "set": "PATTERN SEQ(T0 a, T1+ b, T2 c) AGG COUNT(b) AS n",
    "key": "PATTERN SEQ(T0 a, T1 b, T2 c, [id]) AGG COUNT(*) AS n",
    "least": "PATTERN SEQ(T0 a, T1 b, T2 c) AGG MIN(b.value) AS n",
}


def beside_duckdb(rounds: int) -> dict[str, Any]:
    """W6 on both, in turns: best CPU seconds. Both answers are checked."""
    table = stream(COUNTED.stream)
    con = peers.duckdb_with({COUNTED.stream: table})
    plan = COUNTED.compile()
    own = [_cpu(lambda: _checked(plan.run(table).to_arrow().column("n")[0].as_py())) for _ in range(3)]
    other: list[float] = []
    for _ in range(rounds):
        other.append(_cpu(lambda: _checked(peers.duckdb_w6(con) and con.sql("SELECT n FROM found").fetchall()[0][0])))
        own += [_cpu(lambda: _checked(plan.run(table).to_arrow().column("n")[0].as_py())) for _ in range(20)]
    return {"quercus": min(own), "duckdb": min(other), "times": min(other) / min(own)}


def _cpu(action: Callable[[], Any]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin


def _checked(n: Any) -> None:
    if int(n) != COUNTED.count:
        raise AssertionError(f"W6: {n} instead of {COUNTED.count}")


def by_window(rounds: int) -> dict[str, list[tuple[int, float, str]]]:
    """Nanoseconds for each of 1,000,000 events of three types, and the answer, for windows of so many events."""
    r = np.random.default_rng(1)
    n = 1_000_000
    types = np.array(["T0", "T1", "T2", "T3"])[r.choice(4, n, p=(0.33, 0.33, 0.33, 0.01))]
    table = pa.table({"ts": np.arange(n), "type": types, "id": r.integers(0, 100, n), "value": r.random(n)})
    found: dict[str, list[tuple[int, float, str]]] = {}
    for name, query in QUERIES.items():
        for window in WINDOWS:
            run = partial(qc.compile(f"{query} WITHIN {window} EVENTS", SCHEMA).run, table)
            answer = run().to_arrow().column("n")[0].as_py()
            best = min(_cpu(run) for _ in range(rounds))
            found.setdefault(name, []).append((window, best / n * 1e9, f"{answer:.3g}"))
    return found


def streamed(rounds: int) -> dict[str, float]:
    """W6 as a run and as a stream in batches of 1,000: best CPU seconds, in turns. Both answers are checked."""
    table = stream(COUNTED.stream).combine_chunks()
    batches = table.to_batches(max_chunksize=BATCH)
    plan = COUNTED.compile()
    pairs = [(_cpu(partial(_run, plan, table)), _cpu(partial(_stream, plan, batches))) for _ in range(rounds)]
    return {"run": min(r for r, _ in pairs), "stream": min(s for _, s in pairs)}


def _run(plan: qc.Plan, table: pa.Table) -> None:
    _checked(plan.run(table).to_arrow().column("n")[0].as_py())


def _stream(plan: qc.Plan, batches: list[pa.RecordBatch]) -> None:
    n = 0
    with plan.stream() as s:
        for batch in batches:
            n = next((row["n"] for row in s.push(batch)), n)
    _checked(n)


def measured(rounds: int) -> dict[str, Any]:
    return {
        "W6": beside_duckdb(max(1, rounds // 2)),
        "streamed": streamed(rounds),
        "windows": by_window(rounds),
    }


def lines(found: dict[str, Any]) -> list[str]:
    """What `make bench` prints of it."""
    w6 = found["W6"]
    ms = f"{w6['quercus'] * 1e3:.1f}, DuckDB {w6['duckdb'] * 1e3:,.0f}"
    out = [f"W6, CPU ms: {ms}: {w6['times']:,.0f} times as fast"]
    live = found["streamed"]
    out.append(f"W6, CPU ms: as a run {live['run'] * 1e3:.1f}, as a stream of {BATCH:,} {live['stream'] * 1e3:.0f}")
    out.append("ns an event, by events in the window: " + ", ".join(f"{w:,}" for w in WINDOWS))
    for name, rows in found["windows"].items():
        out.append(f"  {name:10}" + "".join(f"{ns:8.1f}" for _, ns, _ in rows) + f"   {rows[-1][2]}")
    return out


def main() -> None:
    print(measure.machine())
    print("\n".join(lines(measured(4))))


if __name__ == "__main__":
    main()
