"""The experiments of the papers on nested queries, on a stream like theirs: `python -m benchmarks.views [--quick]`.

10,000 trades of 20 tickers, one a second. The papers' figures name no query text that can be read, but for NEEL's q1 to
q10; the others are made alike: an outer SEQ around sub-queries. Each query runs by every strategy in turn, on one
thread; the CPU time of `plan.run(table)`, best of some rounds in turn. Every strategy must find the same.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

import quercus as qc
from benchmarks import record
from benchmarks.measure import pooled
from benchmarks.plot import bars
from benchmarks.shapes import chosen
from quercus.backends.local.analyze import analyzed
from quercus.backends.local.events import load

TICKERS = ("MSFT", "RIMM", "AMAT", "ORCL", "INTC", "IPIX", "YHOO", "DELL", "CSCO", "QQQ")
OTHERS = tuple(f"T{i}" for i in range(10))
SCHEMA = qc.Schema({"price": "float64", "broker": "int64"}, time_unit="s")
WAYS = ("iterative", "aggressive", "passive", "balanced", "rewrite", "auto")
NEGATED = ("iterative", "aggressive", "passive", "balanced", "index", "auto")


@frozen
class Experiment:
    """A figure: its queries by name, and the ways to run them."""

    name: str
    title: str
    across: str
    queries: dict[str, str]
    ways: tuple[str, ...] = WAYS


def falling(*names: str) -> str:
    """Conditions by which each price is a tenth below the one before."""
    return "".join(f", {a}.price > {b}.price * 1.1" for a, b in pairwise(names))


LEAVES = (("RIMM", "r"), ("AMAT", "a"), ("YHOO", "y"), ("DELL", "d"))
SUBS = (("RIMM r", "AMAT a", "YHOO y"), ("DELL d", "CSCO c"), ("QQQ q", "IPIX x"))


def sub(length: int, sign: str = "") -> str:
    some = LEAVES[:length]
    return f"{sign}SEQ({', '.join(f'{t} {v}' for t, v in some)}{falling(*(v for _, v in some))})"


def outer(inside: str, window: int) -> str:
    return f"SEQ(MSFT m, {inside}, ORCL o, INTC i) WITHIN {window} s"


def several(count: int) -> str:
    parts = [f"SEQ({', '.join(s)}{falling(*(k.split()[1] for k in s))})" for s in SUBS[:count]]
    parts += [""] * (3 - count)
    ends = ("ORCL o", "INTC i", "T0 z")
    return f"SEQ(MSFT m, {', '.join(x for p in zip(parts, ends, strict=True) for x in p if x)}) WITHIN 300 s"


EXPERIMENTS = (
    Experiment(
        "fig10", "Windows (sliding views, Fig. 10)", "window", {f"{w} s": outer(sub(3), w) for w in (100, 500, 1000)}
    ),
    Experiment(
        "fig10-plain",
        "Windows, no condition in the sub-query",
        "window",
        {f"{w} s": outer("SEQ(RIMM r, AMAT a)", w) for w in (100, 300, 500)},
    ),
    Experiment("fig19", "Length of the sub-query (Fig. 19)", "events", {str(n): outer(sub(n), 500) for n in (2, 3, 4)}),
    Experiment("fig21", "Number of sub-queries (Fig. 21)", "sub-queries", {str(n): several(n) for n in (1, 2, 3)}),
    Experiment(
        "fig23",
        "Length, negated (Fig. 23)",
        "events of the negated sub-query",
        {str(n): outer(sub(n, "!"), 500) for n in (2, 3, 4)},
        NEGATED,
    ),
    Experiment(
        "neel6a",
        "Number of negated sub-queries (NEEL, Fig. 6a)",
        "query: one, two, three negated sub-queries",
        {
            "q1": "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, IPIX, INTC) WITHIN 200 s",
            "q2": "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, !SEQ(YHOO, DELL), IPIX, INTC) WITHIN 200 s",
            "q3": "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, !SEQ(YHOO, DELL), IPIX, !SEQ(CSCO, QQQ), INTC) WITHIN 200 s",
        },
        NEGATED,
    ),
    Experiment(
        "neel6b",
        "Length of a negated sub-query (NEEL, Fig. 6b)",
        "query: two, three, four events",
        {
            "q4": "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, INTC) WITHIN 500 s",
            "q5": "SEQ(MSFT, !SEQ(RIMM, AMAT, YHOO), ORCL, INTC) WITHIN 500 s",
            "q6": "SEQ(MSFT, !SEQ(RIMM, AMAT, YHOO, DELL), ORCL, INTC) WITHIN 500 s",
        },
        NEGATED,
    ),
    Experiment(
        "neel6c",
        "Levels of sub-queries (NEEL, Fig. 6c)",
        "query: one, two, three levels",
        {
            "q7": "SEQ(MSFT, !SEQ(IPIX, QQQ), ORCL, INTC) WITHIN 500 s",
            "q8": "SEQ(MSFT, !SEQ(IPIX, SEQ(RIMM, AMAT), QQQ), ORCL, INTC) WITHIN 500 s",
            "q9": "SEQ(MSFT, !SEQ(IPIX, SEQ(RIMM, SEQ(YHOO, DELL), AMAT), QQQ), ORCL, INTC) WITHIN 500 s",
        },
        NEGATED,
    ),
    Experiment(
        "neel8",
        "Cached results (NEEL, Fig. 8)",
        "query",
        {"q10": "SEQ(YHOO, SEQ(QQQ, AMAT, DELL), ORCL, IPIX) WITHIN 200 s"},
    ),
)
DOMAINS = (1, 5, 10, 50)
ROUNDS, LONG = 5, 100_000
PAPER = (6, 9, 16)  # times as fast as iterative search are its views, by window
INDEXED, NEAR = 5, 1.2  # an index over balanced, at least; the planner's choice over the best, at most
SLOW = 2_000  # milliseconds beyond which two runs are enough


def trades(size: int = 10_000, brokers: int = 20, seed: int = 20261116) -> pa.Table:
    """One trade a second; prices move together a little, and each trade by itself by some hundredths."""
    r = np.random.Generator(np.random.PCG64(seed))
    names = np.array([*TICKERS, *OTHERS])
    price = 100 * np.exp(np.cumsum(r.normal(0, 0.001, size)) + r.normal(0, 0.05, size))
    return pa.table(
        {
            "ts": np.arange(size),
            "type": pa.array(names[r.integers(0, len(names), size)]),
            "price": np.round(price, 2),
            "broker": r.integers(0, brokers, size),
        }
    )


def timed(query: str, ways: tuple[str, ...], table: pa.Table, rounds: int) -> tuple[dict[str, float], int]:
    """CPU milliseconds by way, best of some rounds that take turns, and the number of matches.

    `auto` often runs the very plan of another way: then they are one.
    """
    plans = {w: qc.compile(f"PATTERN {query}", SCHEMA, nested=w) for w in ways}
    best, counts = dict.fromkeys(ways, float("inf")), set()
    for i in range(rounds):
        for w, plan in plans.items():
            if i > 1 and best[w] > SLOW:
                continue
            start = time.thread_time()
            found = plan.run(table)
            best[w] = min(best[w], 1e3 * (time.thread_time() - start))
            counts.add((len(found), *(int(b.rows.sum()) for b in found.bound)))
    if len(counts) != 1:
        raise AssertionError(f"{query}: the strategies differ: {counts}")
    stream = load(table, SCHEMA)
    ran = {w: chosen(plan, stream).tree for w, plan in plans.items() if best[w] <= SLOW}
    ran = {w: ran.get(w, w) for w in ways}  # what takes that long is not run for this alone
    least = pooled({w: [ms] for w, ms in best.items()}, ran)
    return {w: ms for w, (ms,) in least.items()}, counts.pop()[0]


def correlated(rounds: int) -> dict[str, dict[str, float]]:
    """Fig. 25: microseconds a match by the number of different values, with parts for each and without."""
    found: dict[str, dict[str, float]] = {}
    for domain in DOMAINS:
        table = trades(brokers=domain)
        parted = outer("SEQ(RIMM r, AMAT a, r.price > a.price, r.broker = m.broker, a.broker = m.broker)", 500)
        whole = outer("SEQ(RIMM r, AMAT a, r.price > a.price, r.broker - m.broker = 0, a.broker - m.broker = 0)", 500)
        a, n = timed(parted, ("balanced",), table, rounds)
        b, same = timed(whole, ("balanced",), table, rounds)
        assert n == same
        found[str(domain)] = {"partitioned": 1e3 * a["balanced"] / n, "one view": 1e3 * b["balanced"] / n}
    return found


def longer(rounds: int, size: int) -> dict[str, dict[str, float]]:
    """Negated sub-queries over ten times as many trades, where what each run does anyway matters less."""
    table, found = trades(size), {}
    for e in EXPERIMENTS:
        if e.ways == NEGATED and e.name != "neel6c":
            for name, query in e.queries.items():
                found[name], _ = timed(query, ("balanced", "index"), table, rounds)
    return found


def memory() -> dict[str, dict[str, float]]:
    """Fig. 26: the most kilobytes that the view of the sub-query held."""
    found: dict[str, dict[str, float]] = {}
    for window in (100, 500):
        found[f"{window} s"] = {}
        for way in ("aggressive", "passive", "balanced"):
            plan = qc.compile(f"PATTERN {outer('SEQ(RIMM r, AMAT a)', window)}", SCHEMA, nested=way)
            nodes = analyzed(plan, trades()).nodes.values()
            found[f"{window} s"][way] = max(a.bytes or 0 for a in nodes if a.asked is not None) / 1e3
    return found


def work(query: str, way: str, table: pa.Table) -> dict[str, int]:
    """What the sub-query of a query did: intervals asked for, held already, results found; tests, events compared."""
    plan = qc.compile(f"PATTERN {query}", SCHEMA, nested=way)
    done = [a for a in analyzed(plan, table).nodes.values() if a.asked is not None or a.tests is not None]
    found: dict[str, int] = {}
    for a in done:
        for name in ("asked", "hits", "results", "tests", "compared"):
            value = getattr(a, name)
            if value is not None:
                found[name] = found.get(name, 0) + value
    return found


def measured(rounds: int, *, quick: bool = False) -> dict[str, Any]:
    """Everything, as it is kept: milliseconds by query and way."""
    table = trades()
    least, _ = timed("SEQ(MSFT, T9) WITHIN 1 s", ("auto",), table, 2 * rounds)
    print(f"A run that finds next to nothing: {least['auto']:.2f} CPU ms")
    found: dict[str, Any] = {"least": least["auto"], "rounds": rounds, "experiments": {}}
    for e in EXPERIMENTS:
        print(f"\n{e.title}: CPU ms\n{'':10}{'matches':>11}" + "".join(f"{w:>12}" for w in e.ways))
        rows: dict[str, dict[str, float]] = {}
        counts: dict[str, int] = {}
        for name, query in e.queries.items():
            rows[name], counts[name] = timed(query, e.ways, table, rounds)
            print(f"{name:10}{counts[name]:11,}" + "".join(f"{rows[name][w]:12.1f}" for w in e.ways), flush=True)
        found["experiments"][e.name] = {"rows": rows, "matches": counts}
    found |= {"correlated": correlated(rounds), "memory": memory(), "longer": longer(rounds, 10_000 if quick else LONG)}
    asked = {**EXPERIMENTS[0].queries, **EXPERIMENTS[4].queries}
    ways = {name: ("iterative", "balanced", *(("index",) if "!" in q else ())) for name, q in asked.items()}
    found["work"] = {name: {way: work(q, way, table) for way in ways[name]} for name, q in asked.items()}
    return found


def ratios(found: dict[str, Any]) -> dict[str, record.Ratio]:
    """The papers' factors, what an index should save, and how near the planner's own choice is."""
    of = found["experiments"]
    out = {
        f"{name} window: balanced over iterative": record.Ratio(row["iterative"] / row["balanced"], asked)
        for (name, row), asked in zip(of["fig10"]["rows"].items(), PAPER, strict=True)
    }
    for name, row in found["longer"].items():
        out[f"{name}, {LONG:,} trades: index over balanced"] = record.Ratio(row["balanced"] / row["index"], INDEXED)
    for figure, one in of.items():
        for name, row in one["rows"].items():
            best = min(ms for way, ms in row.items() if way != "auto")
            out[f"{figure}, {name}: auto over the best"] = record.Ratio(row["auto"] / best, NEAR, less=True)
    return out


def draw(found: dict[str, Any], folder: Path) -> None:
    for e in EXPERIMENTS:
        rows = found["experiments"][e.name]["rows"]
        bars(folder / f"views-{e.name}.svg", e.title, "CPU ms", e.across, rows, log=True)
    for name, of, title, unit, across in (
        ("fig25", "correlated", "Values of the correlation (Fig. 25)", "us a match", "different values"),
        ("fig26", "memory", "Memory of the view (Fig. 26)", "kB", "window"),
        ("long", "longer", f"Negated, {LONG:,} trades", "CPU ms", "events (Fig. 23), and NEEL's queries"),
    ):
        bars(folder / f"views-{name}.svg", title, unit, across, found[of], log=name != "fig26")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    record.options(parser)
    asked = parser.parse_args()
    found = measured(1 if asked.quick else ROUNDS, quick=asked.quick)
    for of in ("correlated", "memory", "longer", "work"):
        print(f"\n{of}")
        for row, values in found[of].items():
            print(f"{row:10} {values}")
    record.keep(asked, "views", found, ratios(found))
    if (folder := record.images(asked)) is not None:
        draw(found, folder)


if __name__ == "__main__":
    main()
