"""AGG by running totals: against listed matches and the reference, on random cases and by hand."""

from __future__ import annotations

import math
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.base import Limits
from quercus.backends.local import running as running_totals
from quercus.backends.local.analyze import analyzed
from quercus.backends.local.events import load
from quercus.backends.local.run import run_plan
from quercus.errors import LimitExceeded
from tests import generate
from tests.aggregate_cases import Case, alike, both, case, referred, same
from tests.interrupts import interrupted
from tests.test_engine import table as table_of

STEP = 250


def disagree(seeds: range) -> tuple[int, int]:
    """How many cases were run by running totals, and in how many of those there was a match."""
    running = some = 0
    for seed in seeds:
        c = case(seed)
        strategy, got, want = both(c)
        assert got.schema == want.schema, c
        assert same(got.to_pylist(), want.to_pylist()), f"{c}\n{got.to_pylist()}\n{want.to_pylist()}"
        running += strategy == "running"
        some += strategy == "running" and any(v for row in want.to_pylist() for v in row.values())
    return running, some


@pytest.mark.parametrize("first", range(0, 2000, STEP))
def test_running_totals_are_those_of_listed_matches(first: int) -> None:
    running, some = disagree(range(first, first + STEP))
    assert running > STEP * 0.75
    assert some > STEP * 0.4


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100_000, 112_000, 1000))
def test_running_totals_are_those_of_listed_matches_at_length(first: int) -> None:
    running, _ = disagree(range(first, first + 1000))
    assert running > 750


@pytest.mark.parametrize("first", range(5000, 5300, 60))
def test_running_totals_agree_with_the_reference(first: int) -> None:
    for seed in range(first, first + 60):
        c = case(seed, length=9)
        got = both(c)[1].to_pylist()
        want = referred(c)  # with PARTITION BY, key by key: in another order
        assert len(got) == len(want), c
        for mine in got:
            found = [
                theirs
                for theirs in want
                if all(alike(a, b) for a, b in zip(mine.values(), theirs.values(), strict=True))
            ]
            assert found, f"{c}\n{got}\n{want}"
            want.remove(found[0])


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_queries_of_every_kind_give_the_same_either_way(first: int) -> None:
    """The queries of the engine's tests, which have ORs, windows on parts and conditions of all kinds."""
    for sample, query in generate.valid(range(first, first + 100)):
        if query.aggregates or query.returns:
            continue
        text = (
            f"{sample.query} AGG COUNT(*) AS n, {', '.join(f'COUNT({v.var}), SUM({v.var}.v)' for v in query.variables)}"
        )
        plan = qc.compile(text, sample.schema())
        events = table_of(sample.events)
        got, want = (run_plan(plan, events, Limits(), listed=k).to_arrow() for k in (False, True))
        assert same(got.to_pylist(), want.to_pylist()), f"{sample}\n{plan.explain()}"


def test_the_comparison_can_fail() -> None:
    c = case(1)
    assert not same([{"n": Decimal(1)}], [{"n": Decimal(2)}])
    assert not same([{"n": Decimal(1)}], [])
    assert not same([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}])
    assert not alike(None, 0)
    other = Case(c.seed, "PATTERN SEQ(A a, B b) AGG COUNT(*) AS n WITHIN 9", c.events, c.ties)
    wider = Case(c.seed, "PATTERN SEQ(A a, B b) AGG COUNT(*) AS n WITHIN 1 EVENTS", c.events, c.ties)
    assert both(other)[1] != both(wider)[1]


# By hand --------------------------------------------------------------------------------------------------------------

SCHEMA = qc.Schema({"id": "int64", "v": "int64"})


def counted(query: str, types: str, **columns: list[object]) -> list[dict[str, object]]:
    data = {"ts": list(range(len(types))), "type": list(types), "id": [0] * len(types), "v": [0] * len(types)} | columns
    plan = qc.compile(query, SCHEMA)
    assert plan.tree.aggregation is not None
    assert plan.tree.aggregation.strategy == "running"
    return plan.run(data).to_arrow().to_pylist()


@pytest.mark.parametrize(("kleene", "n"), [("B+", 1), ("B[2]", 10)])
def test_a_set_is_totalled_whole_beside_what_is_negated(kleene: str, n: int) -> None:
    """Its elements need not agree with each other on what each of them shares with the negated event."""
    query = f"PATTERN SEQ({kleene} b, !(C c, c.id = b.id)) WITHIN 9"
    events = {"ts": [1, 2, 3, 4, 7], "type": ["B"] * 5, "id": [1, 1, 1, 0, 1], "v": [0] * 5}
    assert len(qc.compile(query, SCHEMA).run(events)) == n
    [total] = qc.compile(f"{query} AGG COUNT(*) AS n", SCHEMA).run(events).to_arrow().to_pylist()
    assert total == {"n": n}


def test_counts_beyond_64_bits_are_exact() -> None:
    leaves = ", ".join(f"A a{i}" for i in range(20))
    found = counted(f"PATTERN SEQ({leaves}) AGG COUNT(*) AS n WITHIN 1000", "A" * 120)
    assert found == [{"n": Decimal(math.comb(120, 20))}]
    assert math.comb(120, 20) > 2**64


def test_sums_beyond_64_bits_are_exact() -> None:
    large: list[object] = [2**63 - 1] * 60
    found = counted("PATTERN SEQ(A a, A b, A c) AGG SUM(a.v) AS s, AVG(b.v) AS m WITHIN 1000", "A" * 60, v=large)
    assert found == [{"s": Decimal(34220 * (2**63 - 1)), "m": float(2**63 - 1)}]


def test_counts_beyond_38_digits_are_refused() -> None:
    leaves = ", ".join(f"A a{i}" for i in range(30))
    with pytest.raises(LimitExceeded, match=r"38 digits|10\*\*38"):
        counted(f"PATTERN SEQ({leaves}) AGG COUNT(*) AS n WITHIN 100000", "A" * 2000)


def test_no_limit_is_hit_by_matches_that_are_not_listed() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) AGG COUNT(*) AS n WITHIN 100", SCHEMA)
    events = {"ts": [0] * 10 + [1] * 10, "type": ["A"] * 10 + ["B"] * 10, "id": [0] * 20, "v": [0] * 20}
    found = plan.run(events, limits=qc.Limits(max_matches=5))
    assert list(found) == [{"n": Decimal(100)}]
    assert len(found) == 1
    with pytest.raises(LimitExceeded):
        found.rows()
    assert len(plan.run(events).rows()) == 100


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("SEQ(A a, B b, a.v < b.v)", "a.v < b.v ties events to each other"),
        ("SEQ(A a, SEQ(B b, C c) WITHIN 2)", "a part has a window of its own"),
        ("SEQ(A a, B+ b, count(b) > 1)", "count(b) > 1 is tested on whole matches"),
        ("SEQ(A+ a, B+ b)", "it is made of sets alone"),
        ("SEQ(A a, B+ b, C+ c, D d)", "the sets b and c stand side by side"),
        ("SEQ(A a, !SEQ(B b, C c), D d)", "more than a leaf is negated"),
        ("SEQ(A+ a, B b, C+ c)", "it has sets at both ends"),
        ("AND(A a, B b, !C c)", "a negation stands in an AND"),
        ("AND(A+ a, B b)", "two branches of an OR can give the same match"),
    ],
)
def test_explain_says_why_matches_are_listed(pattern: str, reason: str) -> None:
    plan = qc.compile(f"PATTERN {pattern} AGG COUNT(*) AS n WITHIN 9", SCHEMA)
    assert plan.tree.aggregation is not None
    assert (plan.tree.aggregation.strategy, plan.tree.aggregation.reason) == ("enumerated", reason)
    assert f"totalled    over all matches: {reason}" in plan.explain()
    assert qc.Plan.from_json(plan.to_json()) == plan


def test_explain_shows_running_totals() -> None:
    plan = qc.compile("PATTERN SEQ(A a, !C c, B b) AGG COUNT(*) AS n WITHIN 9 GROUPBY a.id", SCHEMA)
    assert "totalled    running totals" in plan.explain()
    assert "totalled: running totals" in plan.graph().source
    assert qc.Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("window", [10, 1000, 100_000])
def test_counts_in_large_windows_are_those_of_prefix_sums(window: int) -> None:
    r = np.random.default_rng(window)
    types = r.integers(0, 3, 20_000)
    events = pa.table({"ts": np.arange(20_000), "type": np.array(list("ABC"))[types]})
    plan = qc.compile(f"PATTERN SEQ(A a, C c) AGG COUNT(*) AS n WITHIN {window}", qc.Schema({}))
    seen = np.r_[0, np.cumsum(types == 0)]
    ends = np.flatnonzero(types == 2)
    want = int((seen[ends] - seen[np.maximum(ends - window, 0)]).sum())
    assert plan.run(events).to_arrow().to_pylist() == [{"n": Decimal(want)}]


def test_random_groups_of_many_keys() -> None:
    r = Random(3)
    n = 4000
    data = {
        "ts": sorted(r.randint(0, 3000) for _ in range(n)),
        "type": [r.choice("ABC") for _ in range(n)],
        "id": [r.randint(0, 200) for _ in range(n)],
        "v": [r.randint(0, 40) for _ in range(n)],
    }
    for by in (
        "",
        "GROUPBY a.id",
        "GROUPBY a.v",
        "GROUPBY b.v",
        "GROUPBY c.v",
        "GROUPBY b.v, c.id",
        "GROUPBY a.id, c.v",
    ):
        text = f"PATTERN SEQ(A a, B b, C c, [id]) {by} AGG COUNT(*) AS n, SUM(b.v) AS s, MAX(a.ts) AS m WITHIN 900"
        plan = qc.compile(text, SCHEMA)
        assert plan.tree.aggregation is not None
        assert plan.tree.aggregation.strategy == "running"
        got, want = (run_plan(plan, data, Limits(), listed=k).to_arrow() for k in (False, True))
        assert got.equals(want)
        assert int(want.column("n")[0].as_py()) > 0


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(!C c, A a, B b, !X x) AGG COUNT(*) AS n, SUM(b.v) AS s WITHIN 9",
        "PATTERN SEQ(!C c, A a, B b, !X x) GROUPBY a.v AGG COUNT(*) AS n WITHIN 9",
        "PATTERN SEQ(!C c, A a, B b, !X x) GROUPBY b.v AGG COUNT(*) AS n WITHIN 9",
        "PATTERN SEQ(A+ a, B b, !X x) AGG COUNT(*) AS n, COUNT(a) AS c WITHIN 9",
        "PATTERN OR(SEQ(A a, B b), SEQ(A d, C c)) GROUPBY a.v AGG COUNT(*) AS n WITHIN 9",
        "PATTERN OR(SEQ(A a, B b), C c) GROUPBY a.v, c.id AGG COUNT(*) AS n WITHIN 9",
        "PATTERN SEQ(A a, B b, C c) GROUPBY a.v, b.v AGG COUNT(*) AS n, MAX(b.v) AS m WITHIN 9",
        "PATTERN SEQ(A a, B b, !C c, [id], [v]) GROUPBY b.v AGG COUNT(*) AS n WITHIN 9",
        "PATTERN SEQ(!X x, A a, [id]) AGG COUNT(*) AS n WITHIN 9",
    ],
)
def test_what_needs_no_listing(query: str) -> None:
    r = Random(7)
    n = 400
    data = {
        "ts": sorted(r.randint(0, 900) for _ in range(n)),
        "type": [r.choice("AABBCX") for _ in range(n)],
        "id": [r.randint(0, 2) for _ in range(n)],
        "v": [r.randint(0, 3) for _ in range(n)],
    }
    plan = qc.compile(query, SCHEMA)
    assert plan.tree.aggregation is not None
    assert plan.tree.aggregation.strategy == "running"
    got, want = (run_plan(plan, data, Limits(), listed=k).to_arrow() for k in (False, True))
    assert got.equals(want)
    assert int(want.column("n")[0].as_py()) > 0


def test_a_window_that_turns_over_among_equal_times() -> None:
    data = {"ts": [0, 0, 1, 1], "type": list("ABBA")}
    plan = qc.compile("PATTERN SEQ(A a, B+ b) AGG COUNT(*) AS n, COUNT(b) AS c WITHIN 3 EVENTS", qc.Schema({}))
    assert list(plan.run(data)) == [{"n": Decimal(1), "c": Decimal(1)}]


def test_many_groups_are_listed_where_that_is_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 300
    data = {"ts": list(range(n)), "type": list("ABC" * (n // 3)), "id": [0] * n, "v": list(range(n))}
    plan = qc.compile("PATTERN SEQ(A a, B b, C c) GROUPBY b.v AGG COUNT(*) AS n WITHIN 9", SCHEMA)
    want = plan.run(data).to_arrow()
    monkeypatch.setattr(running_totals, "_LEAST", 0.0)
    with pytest.raises(running_totals.Costly):
        running_totals.run_totals(plan, load(data, SCHEMA), Limits())
    assert plan.run(data).to_arrow().equals(want)


LONG = {"ts": np.arange(100_000), "type": np.tile(np.array(list("AB")), 50_000), "id": np.arange(100_000)}


@pytest.mark.parametrize("call", ["COUNT(*)", "SUM(a.id)", "MIN(a.id)"])
def test_a_pass_stops_when_its_time_is_over(call: str) -> None:
    plan = qc.compile(f"PATTERN SEQ(A a, B b) AGG {call} AS n WITHIN 9", qc.Schema({"id": "int64"}))
    with pytest.raises(LimitExceeded, match="max_seconds"):
        plan.run(LONG, limits=Limits(max_seconds=0))
    with pytest.raises(LimitExceeded, match="max_seconds"), plan.stream(limits=Limits(max_seconds=0)) as s:
        s.push(LONG)


def test_a_pass_stops_on_a_signal() -> None:
    """The handler is due before the pass begins, and Python is not run until it looks."""
    plan = qc.compile("PATTERN SEQ(A a, B b) AGG COUNT(*) AS n WITHIN 9", qc.Schema({"id": "int64"}))
    with interrupted(0.001):
        while True:
            plan.run(LONG)


def test_groups_count_as_state() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) GROUPBY b.id AGG COUNT(*) AS n WITHIN 9", qc.Schema({"id": "int64"}))
    with pytest.raises(LimitExceeded, match="50,000 groups"):
        plan.run(LONG, limits=Limits(max_state_bytes=100_000))


def test_analyze_shows_what_passes_did() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) AGG COUNT(*) AS n, SUM(a.id) AS s WITHIN 9", qc.Schema({"id": "int64"}))
    done = analyzed(plan, LONG)
    assert done.totals is not None
    assert (done.totals.passes, done.totals.states, done.groups) == (2, 2, 1)
    assert done.matches == int(next(iter(plan.run(LONG)))["n"])
    assert 200_000 <= done.totals.steps <= 500_000
    assert "steps         " in plan.explain(analyze=LONG)
