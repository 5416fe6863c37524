"""How fast it is here: a made-up stream, a few queries, events a second; beside DuckDB and Polars where installed.

  quercus bench
  quercus bench --events 5000000 --threads 4

Each figure is the best of three runs in this process, one after the other. It is a first impression, not a benchmark:
`make bench` in a clone measures more, and with more care.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

from quercus.backends.base import Limits
from quercus.backends.local.continuous.duck import SIGNALLED
from quercus.backends.local.run import run_plan
from quercus.cli import exits
from quercus.cli.compiled import add_quiet, note
from quercus.cli.progress import short
from quercus.cli.terminal import table
from quercus.compiler import compile
from quercus.schema import Schema

SCHEMA = Schema({"id": "int64", "price": "float64"}, time_unit="ms")
PAIRS = "PATTERN SEQ(A a, B b, a.id = b.id, b.price > a.price) WITHIN 10 s"
QUERIES = {
    "pairs by key": PAIRS,
    "three in a row": "PATTERN SEQ(A a, B b, C c, [id]) WITHIN 10 s",
    "a negation": "PATTERN SEQ(A a, !B b, C c, [id]) WITHIN 10 s",
    "sets": "PATTERN SEQ(A a, B+ b, C c, [id]) WITHIN 10 s",
    "counted": "PATTERN SEQ(A a, B b, C c) WITHIN 10 s AGG COUNT(*) AS n",
}
SQL = (
    "SELECT count(*) FROM e a JOIN e b ON a.id = b.id AND b.ts > a.ts AND b.ts <= a.ts + 10000 "
    "WHERE a.type = 'A' AND b.type = 'B' AND b.price > a.price"
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=1_000_000, metavar="N", help="how many (default: a million)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads of Quercus (default: 1)")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    if args.events < 1 or args.threads < 1:
        raise exits.UsageError("--events and --threads are numbers from 1 up")
    events = made(args.events)
    rows: list[dict[str, Any]] = []
    for name, query in QUERIES.items():
        plan = compile(query, SCHEMA)
        note(args, f"{name} ...")
        rows.append(_row(name, "quercus", args.events, lambda: _count(plan, events, args.threads)))  # noqa: B023
    if find_spec("duckdb") is not None:
        rows.append(_row("pairs by key", "duckdb", args.events, lambda: _duckdb(events, args.threads)))
    if find_spec("polars") is not None:
        rows.append(_row("pairs by key", "polars", args.events, lambda: _polars(events)))
    if args.json:
        print(json.dumps({"events": args.events, "threads": args.threads, "results": rows}))
    else:
        shown = [{**r, "seconds": f"{r['seconds']:.3f}", "events/s": short(r["events/s"])} for r in rows]
        print(table(shown))
    return exits.OK


def made(n: int) -> pa.Table:
    """Ten types, a thousand keys, a thousand events a second."""
    random = np.random.default_rng(1)
    return pa.table(
        {
            "ts": np.arange(n, dtype=np.int64),
            "type": pa.array(np.array(list("ABCDEFGHIJ"))[random.integers(0, 10, n)]),
            "id": random.integers(0, 1000, n),
            "price": random.random(n) * 100,
        }
    )


def _row(query: str, engine: str, n: int, work: Callable[[], int]) -> dict[str, Any]:
    best, matches = float("inf"), 0
    for _ in range(3):
        began = time.perf_counter()
        matches = work()
        best = min(best, time.perf_counter() - began)
    return {"query": query, "engine": engine, "matches": matches, "seconds": best, "events/s": n / best}


def _count(plan: Any, events: pa.Table, threads: int) -> int:
    found = run_plan(plan, events, Limits(), threads)
    return int(next(iter(found))["n"]) if plan.query.aggregates else len(found)


def _duckdb(events: pa.Table, threads: int) -> int:
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    connection.register("e", events)
    try:
        return int(connection.execute(SQL).fetchall()[0][0])
    except RuntimeError as e:
        if str(e) == SIGNALLED:
            raise KeyboardInterrupt from None
        raise


def _polars(events: pa.Table) -> int:
    import polars as pl

    frame = pl.from_arrow(events).lazy()  # type: ignore[union-attr]
    a, b = frame.filter(pl.col("type") == "A"), frame.filter(pl.col("type") == "B")
    later = (pl.col("ts_right") > pl.col("ts")) & (pl.col("ts_right") <= pl.col("ts") + 10_000)
    joined = a.join(b, on="id").filter(later & (pl.col("price_right") > pl.col("price")))
    return int(joined.select(pl.len()).collect().item())
