"""Fit the constants of a cube's cost model to runs of cubes: `python -m benchmarks.fit_cube`.

As in `benchmarks.calibrate`, the model is linear in its constants, so that each run gives one equation. A run is a cube
of two queries, the one computed from the other, beside a cube of the first alone; what it takes longer is the cost of
reuse. All results are listed. The same two, each alone, tell `start` and `write`.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import numpy as np
import pyarrow as pa
from attrs import frozen

import quercus as qc
from quercus.compiler.cube import constants
from quercus.compiler.cube.alone import stacked
from quercus.compiler.cube.constants import CALIBRATED, CubeConstants
from quercus.compiler.cube.cost import priced
from quercus.compiler.cube.rates import Rates
from quercus.compiler.cube.sizes import Sizer
from quercus.compiler.cube.steps import Extent
from quercus.compiler.cube.workload import Workload
from quercus.ir.workload import Strategy

TYPES = tuple("ABCDEFGHI")
CONCEPTS = {"P": list("ABC"), "Q": list("DEF"), "R": list("GHI")}
SCHEMA = qc.Schema({"id": "int64", "x": "float64"}, hierarchy=CONCEPTS, time_unit="ms")
NAMES = [f.name for f in attrs.fields(CubeConstants)]
# (source, query, how): top_down from the general one, bottom_up from the special one.
PAIRS: tuple[tuple[str, str, Strategy], ...] = (
    ("P p, Q q, R r", "A p, Q q, R r", "top_down"),
    ("P p, Q q, R r", "A p, D q, G r", "top_down"),
    ("A a, D d", "A a, G g, D d", "top_down"),
    ("A a, D d, G g", "A a, D d, G g, H h", "top_down"),
    ("A a, D d, G g", "H h, A a, D d, G g", "top_down"),
    ("A a, D d, G g", "A a, B b, D d, G g", "top_down"),
    ("A a, D d, G g", "A a, D d, G g, H h, x: a.x < h.x", "top_down"),
    ("A a, D d, G g", "A a, !B b, D d, G g", "top_down"),
    ("A a, D d, G g", "A a, D d, !P p, G g", "top_down"),
    ("A a, D d, G g", "A a, D d, G g, !B b", "top_down"),
    ("A a, D d, G g", "A a, !B b, D d, G g, x: b.id = a.id", "top_down"),
    ("A a, D d, G g", "A a, D d, G g, x: a.x < g.x", "top_down"),
    ("A a, D d, G g", "A a, D d, G g WITHIN 500", "top_down"),
    ("A a, G g, D d", "A a, D d", "bottom_up"),
    ("A a, D d, G g", "A a, D d", "bottom_up"),
    ("A p, Q q, R r", "P p, Q q, R r", "bottom_up"),
    ("A p, D q, R r", "P p, Q q, R r", "bottom_up"),
    ("A a, !B b, D d, G g", "A a, D d, G g", "bottom_up"),
)


@frozen
class Row:
    label: str
    work: tuple[float, ...]  # how often each step is taken
    rest: float  # nanoseconds of steps that are the planner's
    nanoseconds: float


def text(pattern: str) -> str:
    body, _, within = pattern.partition(" WITHIN ")
    body, _, asked = body.partition(", x: ")
    where = f" WHERE {asked}" if asked else ""
    return f"PATTERN SEQ({body}){where} WITHIN {within or 1000}"


def events(n: int, per_second: float, seed: int = 3) -> pa.Table:
    r = np.random.default_rng(seed)
    types = np.array(TYPES)[r.integers(0, len(TYPES), n)]
    ts = np.sort(r.integers(0, int(n / per_second * 1000), n))
    return pa.table({"ts": ts, "type": types, "id": r.integers(0, 50, n), "x": r.random(n)})


def seconds(cubes: list[qc.Cube], table: pa.Table, rounds: int) -> list[float]:
    """The least time of each, in turn."""
    best = [float("inf")] * len(cubes)
    for _ in range(rounds):
        for i, cube in enumerate(cubes):
            start = time.process_time()
            for matches in cube.run(table).values():
                _ = matches.bound
            best[i] = min(best[i], time.process_time() - start)
    return best


def rates_of(w: Workload, table: pa.Table) -> Rates:
    counted = {v["values"]: v["counts"] for v in table["type"].value_counts().to_pylist()}
    leaves = {c.accepts for s in w.sequences.values() if not isinstance(s, str) for c in s.parts}
    span = table["ts"][-1].as_py() - table["ts"][0].as_py()
    counts = {types: sum(counted.get(t, 0) for t in types) for types in leaves}
    return Rates.of_run(counts, table.num_rows, span, {"id": 50})


def only(name: str | None) -> CubeConstants:
    """One nanosecond for one step, and nothing for all others."""
    return CubeConstants(**{n: float(n == name) for n in NAMES})


def rows(n: int, per_second: float, rounds: int) -> Iterator[Row]:
    table = events(n, per_second)
    for source, query, how in PAIRS:
        two = {"s": text(source), "q": text(query)}
        cube = qc.cube(two, SCHEMA, share=how)
        cubes = [qc.cube({"s": two["s"]}, SCHEMA), cube, qc.cube(two, SCHEMA, share="independent")]
        first, both, apart = seconds(cubes, table, rounds)
        w = Workload(cube.plans, None)
        rates, sizer = rates_of(w, table), Sizer(None)
        way = next(p.way for p in w.reusable["s", "q"] if p.way.actions == cube.cuboid("q").actions)
        held = w.alone["s"].rows(rates)
        columns = len(cube.plans["q"].query.variables)
        costs = [priced(way, columns, sizer, only(k)).cost(held, rates) for k in (None, *NAMES)]
        label = f"{per_second:g}/s {n:,}: {source} -> {query}"
        yield Row(label, tuple(c - costs[0] for c in costs[1:]), costs[0], max(both - first, 1e-6) * 1e9)
        sequence = w.sequences["q"]
        assert not isinstance(sequence, str)
        costs = [stacked(Extent(sequence), sizer, only(k)).cost(rates) for k in (None, *NAMES)]
        yield Row(f"{label} alone", tuple(c - costs[0] for c in costs[1:]), costs[0], max(apart - first, 1e-6) * 1e9)


def fitted(found: list[Row]) -> CubeConstants:
    """Constants without negative values that make the least relative error."""
    start = np.array([getattr(CALIBRATED, name) for name in NAMES])
    took = np.array([max(r.nanoseconds, 2e5) for r in found])
    a = np.array([r.work for r in found]) * start / took[:, None]
    rest = (np.array([r.nanoseconds for r in found]) - np.array([r.rest for r in found])) / took
    told = a.sum(axis=0) > 0
    m, x = a[:, told], np.ones(int(told.sum()))
    for _ in range(200):  # large errors of single runs count less
        weight = 1 / np.maximum(np.abs(m @ x - rest), 0.1)
        for i in range(len(x)):
            left = rest - m @ x + m[:, i] * x[i]
            x[i] = max(0.02, (m[:, i] * weight) @ left / max((m[:, i] * weight) @ m[:, i], 1e-12))
    values = start.copy()
    values[told] *= x
    return CubeConstants(*(float(f"{v:.2g}") for v in values))


def errors(found: list[Row], c: CubeConstants) -> np.ndarray:
    values = np.array([getattr(c, name) for name in NAMES])
    expected = np.array([r.rest + float(np.dot(r.work, values)) for r in found])
    return expected / np.array([r.nanoseconds for r in found])


def write(c: CubeConstants) -> None:
    path = Path(constants.__file__)
    source = path.read_text()
    for name in NAMES:
        source = re.sub(rf"(\n    {name}: float = )[\d._e+]+", rf"\g<1>{getattr(c, name)!r}", source)
    path.write_text(source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true", help="write the constants into their file")
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    sizes = ((20_000, 45.0), (5_000, 120.0), (100_000, 20.0), (200_000, 6.0))
    found = [row for n, per_second in sizes for row in rows(n, per_second, asked.rounds)]
    new = fitted(found)
    for name in NAMES:
        print(f"{name:<10}{getattr(CALIBRATED, name):>10.3g}{getattr(new, name):>10.3g}")
    for label, c in (("before", CALIBRATED), ("after", new)):
        ratio = errors(found, c)
        off = np.maximum(ratio, 1 / np.maximum(ratio, 1e-9))
        print(f"{label}: {len(found)} runs, error factor: half {np.median(off):.2f}, 90% {np.quantile(off, 0.9):.2f}")
    if asked.write:
        write(new)
    if asked.verbose:
        for r, e in sorted(zip(found, errors(found, new), strict=True), key=lambda k: k[1]):
            print(f"{e:6.2f} {r.nanoseconds / 1e6:8.2f} ms  {r.label}")


if __name__ == "__main__":
    main()
