"""What a cube costs, and that Chase is the cheapest of all orderings by that measure."""

from __future__ import annotations

import time
from itertools import product
from math import inf
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.compiler.cube.order import STRATEGIES, Prices, ordering, prices
from quercus.compiler.cube.rates import Rates
from quercus.compiler.cube.sizes import passing
from quercus.compiler.cube.workload import Workload
from quercus.ir.workload import Ordering
from tests.cube.workloads import workload

TYPES = ("DELL", "INTC", "MSFT", "QQQ", "FCF", "ROM", "EFC", "ANAT", "OREL")
SECTORS = {"Computer": TYPES[:3], "Finance": TYPES[3:6], "Education": TYPES[6:]}
SCHEMA = qc.Schema({"id": "int64"}, hierarchy={k: list(v) for k, v in SECTORS.items()}, time_unit="ms")


def made(*patterns: str, within: str = "1 s") -> Workload:
    plans = {f"q{i}": qc.compile(f"PATTERN SEQ({q}) WITHIN {within}", SCHEMA) for i, q in enumerate(patterns, 1)}
    return Workload(plans, None)


def counted(w: Workload, events: dict[str, int], span: float) -> Rates:
    leaves = {c.accepts for s in w.sequences.values() if not isinstance(s, str) for c in s.parts}
    counts = {types: sum(events.get(name, 0) for name in types) for types in leaves}
    return Rates.of_run(counts, sum(events.values()), span)


# Rows -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("within", ["1 s", "3 s", "45 EVENTS"])
@pytest.mark.parametrize(
    "pattern",
    [
        "DELL, QQQ, EFC",
        "DELL, !INTC, QQQ",
        "DELL, QQQ, !INTC, !MSFT, EFC",
        "!Computer, QQQ, EFC",
        "QQQ, EFC, !ROM",
        "Computer, !FCF, Education",
    ],
)
def test_estimates_are_near_what_a_run_finds(pattern: str, within: str) -> None:
    r = np.random.default_rng(7)
    n, span = 9_000, 200_000
    types = np.array(TYPES)[r.integers(0, len(TYPES), n)]
    events = pa.table({"ts": np.sort(r.integers(0, span, n)), "type": types, "id": np.zeros(n, np.int64)})
    w = made(pattern, within=within)
    rates = counted(w, {name: int((types == name).sum()) for name in TYPES}, span)
    found = len(w.plans["q1"].run(events))
    assert w.alone["q1"].rows(rates) == pytest.approx(found, rel=0.2), found


def test_a_part_of_a_concept_is_what_the_rest_leaves() -> None:
    rates = Rates.of_run({("A", "B", "X"): 100, ("A",): 30}, 500, 10.0)
    assert rates.events(("B", "X")) == 70
    assert rates.events(("A",)) == 30
    assert rates.events(("A", "B", "X")) == 100
    assert rates.events(("E",)) == 0


@pytest.mark.parametrize("m", [1, 2, 3, 6])
@pytest.mark.parametrize("often", [0.0, 0.3, 5.0, 13.9, 14.1, 60.0])
def test_what_a_negation_lets_through(m: int, often: float) -> None:
    """The mean of exp(-often * gap), where a gap is one of m parts of a window that is cut at random."""
    gaps = (np.arange(400_000) + 0.5) / 400_000
    weights = (m - 1) * (1 - gaps) ** (m - 2) if m > 1 else None
    expected = np.exp(-often) if m == 1 else float(np.mean(weights * np.exp(-often * gaps)))
    assert passing(often, m) == pytest.approx(expected, rel=2e-3, abs=1e-9)


# Orderings ------------------------------------------------------------------------------------------------------------


def cheapest(w: Workload, found: Prices) -> float:
    """Over all choices of a source for every query that make no circle."""
    names = list(w.plans)
    options = [[None, *(s for s in names if (s, name) in found.reuse)] for name in names]
    best = float("inf")
    for choice in product(*options):
        source = dict(zip(names, choice, strict=True))
        if all(_ends(name, source) for name in names):
            costs = (found.alone[n] if s is None else found.reuse[s, n][0] for n, s in source.items())
            best = min(best, sum(costs))
    return best


def _ends(name: str, source: dict[str, str | None]) -> bool:
    seen, at = set[str](), name
    while (above := source[at]) is not None:
        if above in seen or above == name:
            return False
        seen.add(above)
        at = above
    return True


def is_sound(w: Workload, o: Ordering) -> bool:
    """Each query once, after its source."""
    done: set[str] = set()
    for c in o.cuboids:
        if c.source is not None and c.source not in done:
            return False
        done.add(c.name)
    return done == set(w.plans) and len(o.cuboids) == len(w.plans)


def test_chase_is_the_cheapest_of_all_orderings() -> None:
    shared = 0
    for seed in range(60):
        sample, r = workload(seed, size=5), Random(seed)
        w = Workload({n: qc.compile(q, sample.schema()) for n, q in sample.queries.items()}, None)
        events = {t: r.choice([0, 10, 1_000, 20_000]) for t in "ABCDEXYZ"}
        rates = counted(w, events, r.choice([50.0, 1e4, 1e6]))
        found = prices(w, rates)
        orders = {s: ordering(w, s, rates, found) for s in STRATEGIES}
        assert all(is_sound(w, o) for o in orders.values())
        assert orders["chase"].cost == pytest.approx(cheapest(w, found)), sample
        assert ordering(w, "chase", rates).cost == pytest.approx(orders["chase"].cost)  # what costs too much left out
        assert all(orders["chase"].cost <= o.cost * (1 + 1e-9) for o in orders.values())
        shared += any(c.source is not None for c in orders["chase"].cuboids)
    assert shared > 20


def test_strategies_go_their_own_way() -> None:
    w = made("Computer, Finance", "DELL, QQQ", "DELL, QQQ, EFC")
    rates = counted(w, dict.fromkeys(TYPES, 500), 60_000)

    def sources(strategy: str) -> dict[str, str | None]:
        return {c.name: c.source for c in ordering(w, strategy, rates).cuboids}  # type: ignore[arg-type]

    assert sources("independent") == {"q1": None, "q2": None, "q3": None}
    assert set(sources("top_down").values()) <= {None, "q1", "q2"}
    assert sources("top_down")["q1"] is None
    assert sources("top_down")["q2"] == "q1"
    assert sources("bottom_up")["q3"] is None
    assert sources("bottom_up")["q2"] == "q3"
    assert sources("bottom_up")["q1"] in ("q2", "q3")


def test_a_source_without_matches_costs_next_to_nothing() -> None:
    """5.1: a pattern that is not found need not be looked for in a finer one."""
    w = made("DELL, QQQ", "DELL, QQQ, EFC", "DELL, QQQ, ANAT")
    chosen = ordering(w, "chase", counted(w, {"QQQ": 10_000, "EFC": 10_000, "ANAT": 10_000}, 60_000))
    assert sum(c.cost for c in chosen.cuboids[1:]) < 1_000
    events = {"DELL": 1, "QQQ": 1, "EFC": 10_000, "ANAT": 10_000}  # too far apart
    chosen = ordering(w, "chase", counted(w, events, 600_000_000))
    assert [c.source for c in chosen.cuboids] == [None, "q1", "q1"]


def test_no_estimate_is_beyond_all_numbers() -> None:
    pattern = ", ".join(f"DELL a{i}" for i in range(60))
    schema = qc.Schema({"id": "int64"}, types=TYPES)
    plan = qc.compile(f"PATTERN SEQ({pattern}) WHERE a0.id > 3 WITHIN 1000 s AGG COUNT(*) AS n", schema)
    w = Workload({"q": plan}, None)
    (c,) = ordering(w, "chase", Rates.of_run({("DELL",): 300_000}, 300_000, 300_000)).cuboids
    assert 0 < c.rows < inf
    assert 0 < c.cost < inf
    events = {"ts": [0], "type": ["DELL"], "id": [1]}
    assert qc.cube({"q": plan.text}, schema).run(events)["q"].to_arrow().column("n").to_pylist() == [0]


@pytest.mark.parametrize("share", STRATEGIES)
def test_what_has_no_events_costs_nothing(share: str) -> None:
    w = made("DELL, QQQ", "DELL, QQQ, EFC", "DELL, QQQ, ANAT", "DELL, !ANAT, QQQ")
    rates = counted(w, {"DELL": 10_000, "QQQ": 10_000, "EFC": 10_000}, 60_000)
    chosen = {c.name: c for c in ordering(w, share, rates).cuboids}  # type: ignore[arg-type]
    assert chosen["q3"].source is None
    assert chosen["q3"].cost == 0
    assert chosen["q3"].reason == "no events are known of one of its types"
    assert all(chosen[name].cost for name in ("q1", "q2", "q4"))


def test_totals_are_a_source_where_matches_are_few() -> None:
    """They are listed where that costs less than to total them event by event."""
    patterns = {"pair": "SEQ(Computer, Finance)", "more": "SEQ(Computer, Finance, EFC)"}
    plans = {n: qc.compile(f"PATTERN {q} WITHIN 1 s AGG COUNT(*)", SCHEMA) for n, q in patterns.items()}
    plans["one"] = qc.compile("PATTERN SEQ(DELL, QQQ) WITHIN 1 s", SCHEMA)
    w = Workload(plans, None)
    events = {"DELL": 500_000, "INTC": 1_000, "QQQ": 1_000, "ROM": 1_000, "EFC": 1_000}
    few, many = (counted(w, events, span) for span in (500_000_000, 100_000))
    listed = {c.name: (c.source, c.totalled) for c in ordering(w, "chase", few).cuboids}
    assert listed == {"pair": (None, False), "more": ("pair", False), "one": ("pair", False)}
    totalled = {c.name: (c.source, c.totalled) for c in ordering(w, "chase", many).cuboids}
    assert totalled == {"pair": (None, True), "more": (None, True), "one": (None, False)}
    why = {c.name: c.reason for c in ordering(w, "top_down", many).cuboids}
    assert why["more"] == "not from pair: its matches are totalled without being listed"
    assert all(source != "pair" for source, _ in prices(w, few, live=True).reuse)


def test_a_workload_of_fifty_is_ordered_quickly() -> None:
    """20 ms on a free machine: here a bound that a busy one keeps too."""
    levels = [[name, *TYPES[3 * i : 3 * i + 2]] for i, name in enumerate(SECTORS)]
    patterns = [", ".join(c) for c in product(*levels)]
    patterns += [f"{a}, {b}" for a, b in product(levels[0], levels[1])]
    patterns += [f"{a}, {b}, OREL, {c}" for a, b in product(levels[0], levels[1]) for c in ("EFC", "ANAT")]
    w = made(*patterns[:50])
    rates = counted(w, dict.fromkeys(TYPES, 1_000), 60_000)
    assert len(w.reusable) > 300
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        ordering(w, "chase", rates)
        best = min(best, time.process_time() - start)
    assert best < 0.1
