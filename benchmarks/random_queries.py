"""Random queries over streams with skewed rates, in every shape: `python -m benchmarks.random_queries`.

Each query has a stream of its own: types that are up to a hundred times as frequent as others, a key with or without
skew, values with or without. The window is such that the search looks at some ten thousands to some millions of
candidates: enough to matter, and little enough to be measured.
"""

from __future__ import annotations

import argparse
from math import factorial

import numpy as np
import pyarrow as pa
from attrs import frozen

import quercus as qc
from benchmarks import record
from benchmarks.shapes import Compared, compare, kept, nearness, ratios, summary, table

SCHEMA = qc.Schema({"id": "int64", "x": "float64"}, time_unit="ms")
LETTERS = "ABCDE"
DOUBT, AGAIN = 1.15, 3  # times the best shape: from here on a query is measured again, so often


@frozen
class Drawn:
    query: str
    events: pa.Table


def drawn(seed: int, n: int = 60_000) -> Drawn:
    """A query and its stream."""
    r = np.random.default_rng(seed)
    m = int(r.choice([3, 3, 4, 4, 5]))
    rates = 10 ** r.uniform(-3, -0.9, m)
    rates *= min(1.0, 0.9 / rates.sum())
    events = _events(r, rates, n)
    op = "AND" if r.random() < 0.3 and m < 5 else "SEQ"
    kleene = int(r.integers(0, m)) if op == "SEQ" and r.random() < 0.3 else -1
    negated = op == "SEQ" and kleene < 0 and m > 3 and r.random() < 0.25
    plain = [i for i in range(m) if i != kleene]
    parts, where = [], []
    gone = int(r.integers(1, m - 1)) if negated else -1
    for i in range(m):
        name = LETTERS[i].lower()
        sign = str(r.choice(["+", "*"])) if i == kleene else ""
        parts.append(f"!({LETTERS[i]} {name}, {name}.x < 0.3)" if i == gone else f"{LETTERS[i]}{sign} {name}")
    free = [LETTERS[i].lower() for i in range(m) if i != gone]
    for _ in range(int(r.integers(0, 4))):
        a, b = (str(v) for v in r.choice(free, 2, replace=False))
        kind = r.random()
        if kind < 0.4:
            where.append(f"{a}.id = {b}.id")
        else:
            where.append(f"{a}.x < {b}.x * {r.choice([0.1, 0.3, 1.0, 2.0])}")
    if r.random() < 0.25:
        where.append(f"{free[0]}.x < {r.choice([0.1, 0.5, 0.9])}")
    bound = [rates[i] for i in plain if i != gone]
    window = _window(op, np.array(bound), n, 10 ** r.uniform(4.3, 6.0))
    query = f"PATTERN {op}({', '.join([*parts, *dict.fromkeys(where)])}) WITHIN {window} ms"
    return Drawn(query, events)


def _events(r: np.random.Generator, rates: np.ndarray, n: int) -> pa.Table:
    names = [*LETTERS[: len(rates)], "other"]
    codes = r.choice(len(names), n, p=[*rates, 1 - rates.sum()])
    types = pa.DictionaryArray.from_arrays(codes.astype(np.int8), names).cast(pa.string())
    keys = int(10 ** r.uniform(0.7, 2.7))
    ids = r.zipf(1.3, n) % keys if r.random() < 0.4 else r.integers(0, keys, n)
    values = r.random(n) ** float(r.choice([1.0, 1.0, 3.0]))
    return pa.table({"ts": np.arange(n), "type": types, "id": ids, "x": values})


def _window(op: str, rates: np.ndarray, n: int, candidates: float) -> int:
    """The window in which the plain components make about so many combinations."""
    m = len(rates)
    times = n * float(np.prod(rates)) * (m if op == "AND" else 1 / factorial(m - 1))
    return int(min(max((candidates / times) ** (1 / max(m - 1, 1)), 5), n // 20))


def best_of(seed: int, budget: float = 0.2, least: int = 7) -> Compared | None:
    """A query in all shapes; None: more matches than are worth measuring.

    Where the choice looks bad all shapes are measured again, longer, and the least times count: machines may be busy.
    """
    one = drawn(seed)
    try:
        found = compare(one.query, SCHEMA, one.events, budget, least)
        for _ in range(AGAIN):
            if max(found.ratio, found.first_ratio) > DOUBT:
                found = compare(one.query, SCHEMA, one.events, 2 * budget, 2 * least, before=found)
    except qc.LimitExceeded as e:  # no shape can run it
        print(f"{seed}: {e}")
        return None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    record.options(parser)
    parser.add_argument("--count", type=int, help="of queries (default 200, quick 5)")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--budget", type=float, default=0.2, help="seconds for each query, at first")
    asked = parser.parse_args()
    asked.quick |= asked.count is not None
    seeds = range(asked.first, asked.first + (asked.count or (5 if asked.quick else 200)))
    found = []
    for seed in seeds:
        one = best_of(seed, asked.budget)
        if one is not None:
            found.append(one)
            print(table([one]).splitlines()[1], flush=True)
    print(f"\n{table(sorted(found, key=lambda c: -c.ratio)[:10])}\n{summary(found)}")
    near = nearness(found)
    record.keep(asked, "random", {"summary": near, "queries": kept(found)}, ratios(near))


if __name__ == "__main__":
    main()
