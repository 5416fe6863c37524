"""Fit the constants of the cost model to runs of the kernels: `python -m benchmarks.calibrate`.

The model is linear in its constants. So each small run gives one equation: for each constant, how often the model says
that its step is taken, and the nanoseconds that the run took. Least squares over all runs, of relative errors and
without negative values, gives the constants. The shapes of one query share what is not the matcher's: that is one more
unknown for each query. Constants that no run can tell stay as they are.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

import quercus as qc
from benchmarks import record
from benchmarks.random_queries import SCHEMA as RANDOM_SCHEMA
from benchmarks.random_queries import drawn
from quercus.backends.base import Limits
from quercus.backends.local.analyze import run_and_analyze
from quercus.backends.local.events import load
from quercus.backends.local.run import find
from quercus.compiler import constants
from quercus.compiler.constants import CALIBRATED, Constants
from quercus.compiler.planner import plan_tree
from quercus.ir import tree as t
from quercus.ir.analysis import places

SCHEMA = qc.Schema({"id": "int64", "x": "float64"}, time_unit="ms")
SHAPES = ("stack", "left", "right", "bushy", "inner")
FIXED = ("route", "leaf", "filter")  # measured by themselves
# Runs of a small stream come again and again to branches that the processor has learnt, which flatters steps that it
# cannot foresee; a large stream is beyond what it learns.
SIZES = (60_000, 300_000)
ROUNDS = 5
RANDOM = 120  # random queries whose rows are expected and counted
PULL = 0.2  # towards the constants that are there: runs tell some of them only together
NAMES = [f.name for f in attrs.fields(Constants)]


@frozen
class Case:
    """A query over events whose types come at some rates, in one shape, with sub-queries by one strategy."""

    query: str
    rates: tuple[float, ...]
    shape: str
    nested: str = "rewrite"


@frozen
class Row:
    case: Case
    events: int
    work: tuple[float, ...]  # how often each step is taken
    nanoseconds: float


def events(rates: tuple[float, ...], n: int, seed: int = 5) -> pa.Table:
    """Types A, B, C, ... with some parts of all events, one event a millisecond; the rest is 'other'."""
    r = np.random.default_rng(seed)
    names = [*"ABCDEFGH"[: len(rates)], "other"]
    parts = np.array([*rates, max(0.0, 1 - sum(rates))])
    codes = r.choice(len(names), n, p=parts / parts.sum())
    types = pa.DictionaryArray.from_arrays(codes.astype(np.int8), names).cast(pa.string())
    return pa.table({"ts": np.arange(n), "type": types, "id": r.integers(0, 50, n), "x": r.random(n)})


def cases() -> Iterator[Case]:
    """Small runs that differ in what they do most: each step is the main work of some."""
    even, rising, falling = (0.05,) * 4, (0.01, 0.02, 0.05, 0.1), (0.1, 0.05, 0.02, 0.01)
    for rates in (even, rising, falling):
        for window in (150,):
            yield from _shapes(f"SEQ(A a, B b, C c) WITHIN {2 * window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C c, D d) WITHIN {window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C c, D d, a.x < b.x * 0.2) WITHIN {window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C c, D d, c.x < d.x * 0.2) WITHIN {window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C c, D d, a.x < d.x * 0.5, b.x < c.x) WITHIN {window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C c, a.id = c.id) WITHIN {4 * window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C c, D d, b.id = c.id, a.x < d.x) WITHIN {2 * window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C c, [id]) WITHIN {20 * window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C c, [id]) WITHIN {6 * window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C c, [id], a.x < b.x, b.x < c.x) WITHIN {20 * window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C c, [id], a.x < b.x) WITHIN {6 * window} ms", rates)
            yield from _shapes(f"AND(A a, B b, C c) WITHIN {window // 2} ms", rates)
            yield from _shapes(f"AND(A a, B b, C c, a.id = b.id, b.x < c.x) WITHIN {window} ms", rates)
            yield from _shapes(f"AND(A a, B b, C c, a.x < b.x * 0.3, b.x < c.x) WITHIN {window} ms", rates)
            yield from _shapes(f"SEQ(A+ a, B b, C c, D d) WITHIN {window} ms", rates)
            yield from _shapes(f"SEQ(A a, B+ b, C c, D d) WITHIN {window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C c, D+ d) WITHIN {window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C+ c, D d, c.x < d.x, a.x < b.x) WITHIN {window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C c, D+ d, a.x < b.x * 0.2) WITHIN {window} ms", rates)
            yield from _shapes(f"SEQ(A[2] a, B b, C c) WITHIN {window} ms", rates)
            yield from _shapes(f"SEQ(A a, B b, C[2] c, D d) WITHIN {window // 2} ms", rates)
            yield from _shapes(f"SEQ(A a, SEQ(B b, C c) WITHIN {window // 2} ms, D d) WITHIN {window} ms", rates)
        for low, high in ((1, 1), (5, 1), (20, 1), (20, 20), (100, 20)):
            where = f"a.x * {low} < b.x, b.x * {high} < c.x"
            yield from _shapes(f"SEQ(A a, B b, C c, {where}) WITHIN {100 * low} ms", rates)
            yield from _shapes(f"AND(A a, B b, C c, {where}) WITHIN {50 * low} ms", rates)
            yield from _shapes(f"SEQ(D d, A a, B b, C c, {where}) WITHIN {20 * low + 50} ms", rates)
        for pair in ("ab", "bc", "ac"):
            yield from _shapes(f"SEQ(A a, B b, C c, {pair[0]}.id = {pair[1]}.id) WITHIN 1500 ms", rates)
        for window, where in ((100, ""), (200, ", b.x < c.x * 0.2"), (600, ", b.x < c.x * 0.02")):
            for nested in ("iterative", "aggressive", "passive", "balanced"):
                yield Case(f"PATTERN SEQ(A a, SEQ(B b, C c{where}), D d) WITHIN {window} ms", rates, "auto", nested)
        yield from _shapes("SEQ(A a, B+ b, C+ c) WITHIN 100 ms", rates)
        yield from _shapes("SEQ(A a, !(B b, b.x > a.x), C c, D d) WITHIN 100 ms", rates)
        yield from _shapes("SEQ(A a, C c, !(B b, b.id = a.id), D d) WITHIN 100 ms", rates)
        yield from _shapes("SEQ(Never a, B b, x.x > 0) WITHIN 100 ms".replace("x.x", "b.x"), rates)
        yield Case("PATTERN SEQ(A a, Never b) WITHIN 100 ms", rates, "stack")
        yield Case("PATTERN SEQ(A a, Never b, a.x < 0.5) WITHIN 100 ms", rates, "stack")


def _shapes(pattern: str, rates: tuple[float, ...]) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case(f"PATTERN {pattern}", rates, shape)


def work(plan: qc.Plan, observed: Any = None) -> tuple[float, ...]:
    """How often a plan takes each step in one window, as the model has it."""
    none = Constants(*(0.0 for _ in NAMES))
    found = []
    for name in NAMES:
        one = evolve(none, **{name: 1.0})
        tree, _ = plan_tree(
            plan.query, plan.schema, plan.options.stats, plan.options.shape, plan.options.nested, observed, one
        )
        found.append(tree.cost)
    return tuple(found)


def measured(plans: list[qc.Plan], table: pa.Table, rounds: int, most: int) -> list[float | None]:
    """The least CPU seconds of each plan, taken in turn; None: too many matches."""
    stream = load(table, SCHEMA)
    best: list[float | None] = [float("inf")] * len(plans)
    for _ in range(rounds):
        for i, plan in enumerate(plans):
            if best[i] is None:
                continue
            start = time.thread_time()
            try:
                find(plan, stream, Limits(max_matches=most))
            except qc.LimitExceeded:
                best[i] = None
                continue
            best[i] = min(best[i] or 0.0, time.thread_time() - start)
    return best


def rows(n: int, rounds: int, times: dict[str, list[float | None]]) -> Iterator[Row]:
    """An equation for each case; what is in `times` is not measured again."""
    groups: dict[tuple[str, tuple[float, ...]], list[Case]] = {}
    for case in cases():
        groups.setdefault((case.query, case.rates), []).append(case)
    for (query, rates), same in groups.items():
        table = events(rates, n)
        stats = qc.Stats.collect(table)
        plans = [qc.compile(query, SCHEMA, shape=c.shape, nested=c.nested, stats=stats) for c in same]
        name = f"{query} {rates} {n}"
        if name not in times:
            times[name] = measured(plans, table, rounds, 1_000_000)
        for case, plan, seconds in zip(same, plans, times[name], strict=True):
            if seconds is not None:
                windows = n / plan.tree.window.size
                taken = tuple(w * windows for w in work(plan))
                yield Row(case, n, taken, seconds * 1e9)


def fitted(found: list[Row]) -> tuple[Constants, np.ndarray]:
    """Constants without negative values that make the least relative error; and for each run what its query shares."""
    keys = [(r.case.query, r.case.rates, r.events) for r in found]
    groups = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    of = np.array([groups[key] for key in keys])
    took = np.array([r.nanoseconds for r in found])
    start = np.array([getattr(CALIBRATED, n) for n in NAMES])
    shared = np.zeros((len(found), len(groups)))
    shared[np.arange(len(found)), of] = 1e6
    a = np.hstack([np.array([r.work for r in found]) * np.maximum(start, 0.1), shared]) / took[:, None]
    told = (a.sum(axis=0) > 0) & np.array([*(n not in FIXED for n in NAMES), *(True for _ in groups)])
    rest = np.ones(len(found)) - a[:, ~told].sum(axis=1)
    m, x = a[:, told], np.ones(int(told.sum()))
    x[-len(groups) :] = 0.3
    pull = np.array([PULL] * (len(x) - len(groups)) + [1e-6] * len(groups))  # towards what is there
    for _ in range(30):  # large errors of single runs count less: they are the model's, not the constants'
        weight = 1 / np.maximum(np.abs(m @ x - rest), 0.1)
        normal = m.T @ (m * weight[:, None]) + np.diag(pull) * weight.mean()
        x = _nonnegative(normal, m.T @ (rest * weight) + pull * weight.mean(), x)
    values = np.maximum(start, 0.1).copy()
    known = told[: len(NAMES)]
    values[known] *= x[: int(known.sum())]
    values[~known] = start[~known]
    return Constants(*(float(f"{v:.2g}") for v in values)), x[-len(groups) :][of] * 1e6


def _nonnegative(normal: Any, right: Any, x: Any) -> Any:
    """The least of a quadratic form over values that are not negative, one coordinate after the other."""
    for _ in range(20):
        for i in range(len(x)):
            x[i] = max(0.01, x[i] + (right[i] - normal[i] @ x) / normal[i, i])
    return x


def errors(found: list[Row], c: Constants, shared: np.ndarray) -> np.ndarray:
    """What the model expects of each run, against what it took."""
    values = np.array([getattr(c, n) for n in NAMES])
    return np.array([(np.dot(r.work, values) + s) / r.nanoseconds for r, s in zip(found, shared, strict=True)])


def spread(ratio: np.ndarray) -> dict[str, Any]:
    """By which factor half of all are wrong at most, and nine of ten."""
    off = np.maximum(ratio, 1 / np.maximum(ratio, 1e-9))
    return {"count": len(off), "half": float(np.median(off)), "most": float(np.quantile(off, 0.9))}


def rows_off(count: int) -> np.ndarray:
    """Of every join and stack of random queries, planned with statistics: rows expected over rows that came."""
    found = []
    for seed in range(count):
        one = drawn(seed)
        plan = qc.compile(one.query, RANDOM_SCHEMA, stats=qc.Stats.collect(one.events))
        ran, did = run_and_analyze(plan, one.events)
        for path, node in places(ran.tree.root):
            rows = did.nodes[path].rows if path in did.nodes else None
            if isinstance(node, t.Join | t.Stack) and rows is not None:
                found.append((node.estimate.rows * did.windows + 1) / (rows + 1))
    return np.array(found)


def write(c: Constants) -> None:
    """Put constants where the planner finds them."""
    path = Path(constants.__file__)
    text = path.read_text()
    for name in NAMES:
        text = re.sub(rf"(?m)^    {name}: float = \S+", f"    {name}: float = {getattr(c, name)}", text)
    path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", help="sizes of the streams")
    parser.add_argument("--rounds", type=int, help=f"runs of everything (default {ROUNDS}, quick 1)")
    parser.add_argument("--times", type=Path, help="a file that keeps the times, for another fit")
    parser.add_argument("--write", action="store_true", help="write the constants into their file")
    parser.add_argument("--verbose", action="store_true")
    record.options(parser)
    asked = parser.parse_args()
    sizes = asked.events or (SIZES[:1] if asked.quick else SIZES)
    rounds = asked.rounds or (1 if asked.quick else ROUNDS)
    times = json.loads(asked.times.read_text()) if asked.times and asked.times.exists() else {}
    found = [row for n in sizes for row in rows(n, rounds, times)]
    if asked.times:
        asked.times.write_text(json.dumps(times))
    new, shared = fitted(found)
    for name in NAMES:
        print(f"{name:<10}{getattr(CALIBRATED, name):>10.3g}{getattr(new, name):>10.3g}")
    off = {label: spread(errors(found, c, shared)) for label, c in (("before", CALIBRATED), ("after", new))}
    for label, one in off.items():
        print(f"{label}: {len(found)} runs, error factor: half {one['half']:.2f}, 90% {one['most']:.2f}")
    queries = 10 if asked.quick else RANDOM
    expected = spread(rows_off(queries))
    print(f"rows of {expected['count']} nodes, error factor: half {expected['half']:.2f}, 90% {expected['most']:.2f}")
    figures = {"runs": len(found), "times": off, "queries": queries, "rows": expected}
    wrong = {"times, fitted: half within": off["after"]["half"], "rows: half within": expected["half"]}
    record.keep(asked, "calibrate", figures, {name: record.Ratio(v, less=True) for name, v in wrong.items()})
    if asked.write:
        write(new)
    if asked.verbose:
        for r, e in sorted(zip(found, errors(found, new, shared), strict=True), key=lambda k: k[1]):
            of = f"{r.case.query} {r.case.rates} {r.events:,}"
            print(f"{e:6.2f} {r.nanoseconds / 1e6:8.2f} ms  {r.case.shape:<6} {of}")


if __name__ == "__main__":
    main()
