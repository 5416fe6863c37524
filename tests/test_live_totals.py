"""AGG over streams without listing matches: against runs and listed streams, split at random."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local.incremental import Engine
from quercus.ir.flat import flatten
from quercus.ir.running import Countable, Grouped, countable, live_groups
from tests.aggregate_cases import Case, case, same

STEP = 250
SCHEMA = qc.Schema({"id": "int64", "v": "int64"})


def listed(stream: Any) -> Any:
    """The same stream, which lists its matches; before its first event."""
    stream._engine = Engine(stream.plan, stream._columns, listed=True)
    stream._course = stream._engine.course
    return stream


def streamed(c: Case, r: Random) -> bool:
    """Push the same batches into three streams: one with snapshots, one that lists. Whether they were totalled live."""
    plan = qc.compile(c.query, c.schema())
    table = c.table()
    ts = table.column("ts").to_pylist()
    disorder = max((max(ts[:i]) - ts[i] for i in range(1, len(ts))), default=0)
    delay = {"max_delay": max(disorder, 0) + r.randint(0, 2)} if disorder > 0 or r.random() < 0.2 else {}
    live, broken, by_list = plan.stream(**delay), plan.stream(**delay), listed(plan.stream(**delay))
    totalled = live._engine.live is not None
    at, seen = 0, {}
    while at < len(table):
        step = r.choice((1, 1, 2, 3, 7, 40))
        batch = table.slice(at, step)
        at += step
        if r.random() < 0.1:
            with pytest.raises(qc.DataError):
                live.push(pa.concat_tables([batch, Case(0, "", [{"ts": -(2**63), "type": "A"}], "").table()]))
        if totalled and r.random() < 0.1:
            failed(live, batch)
        given = [s.push(batch) for s in (live, broken, by_list)]
        tables = [g.to_arrow() for g in given]
        assert tables[0].schema == tables[2].schema, c
        assert agree(plan, tables[0], tables[2]), f"{c}\n{tables[0].to_pylist()}\n{tables[2].to_pylist()}"
        seen.update(_groups(plan, tables[0]))
        assert agree(plan, tables[1], tables[2]), f"snapshot {c}\n{tables[1].to_pylist()}\n{tables[2].to_pylist()}"
        if r.random() < 0.1:
            assert given[0].rows() == given[2].rows(), c
        if r.random() < 0.1:
            live.snapshot()
        if r.random() < 0.2:
            broken = plan.restore(broken.snapshot())
        if r.random() < 0.1 and not delay:
            clock = min(live.clock + r.randint(0, 2), *ts[at:], live.clock + 2)
            moved = [s.advance(max(clock, s.clock)).to_arrow() for s in (live, broken, by_list)]
            assert agree(plan, moved[0], moved[2]), c
            assert agree(plan, moved[1], moved[2]), c
            seen.update(_groups(plan, moved[0]))
    ends = [s.close().to_arrow() for s in (live, broken, by_list)]
    assert agree(plan, ends[0], ends[2]), c
    assert agree(plan, ends[1], ends[2]), c
    seen.update(_groups(plan, ends[0]))
    want = plan.run(table).to_arrow()
    assert sorted(map(str, seen)) == sorted(map(str, _groups(plan, want))), c
    assert all(same([seen[k]], [row]) for k, row in _groups(plan, want).items()), f"{c}\n{seen}\n{want.to_pylist()}"
    return totalled


def agree(plan: qc.Plan, a: pa.Table, b: pa.Table) -> bool:
    """The same groups; in the same order, where one event decides no two of them."""
    if same(a.to_pylist(), b.to_pylist()):
        return True
    mine, other = _groups(plan, a), _groups(plan, b)
    if ordered(plan) or len(mine) != a.num_rows:
        return False
    return mine.keys() == other.keys() and all(same([mine[k]], [other[k]]) for k in mine)


def ordered(plan: qc.Plan) -> bool:
    """Whether each group is decided by events of its own."""
    flats = flatten(plan.tree.root, plan.tree.window)
    found = countable(flats[0], plan.tree)
    if len(flats) > 1 or not isinstance(found, Countable):
        return False
    how = live_groups(found, plan.tree, arrival=plan.schema.ties == "arrival")
    return isinstance(how, Grouped) and not how.backwards and not how.apart


def failed(stream: Any, batch: Any) -> None:
    """A push that fails after its events were taken in."""
    limits, stream.limits = stream.limits, qc.Limits(max_state_bytes=0)
    try:
        with pytest.raises(qc.LimitExceeded):
            stream.push(batch)
    finally:
        stream.limits = limits


def _groups(plan: qc.Plan, table: pa.Table) -> dict[Any, Any]:
    by = [f"{g.var}.{g.attr}" for g in plan.query.group_by]
    return {tuple(_value(row[n]) for n in by): row for row in table.to_pylist()}


def _value(v: Any) -> Any:
    return "NaN" if v != v else v + 0 if isinstance(v, float) else v


@pytest.mark.parametrize("first", range(0, 1500, STEP))
def test_streams_total_as_listed_ones_and_runs_do(first: int) -> None:
    live = sum(streamed(case(seed), Random(seed)) for seed in range(first, first + STEP))
    assert live > STEP * 0.3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200_000, 206_000, 500))
def test_streams_total_as_listed_ones_and_runs_do_at_length(first: int) -> None:
    for seed in range(first, first + 500):
        streamed(case(seed), Random(seed))


# By hand --------------------------------------------------------------------------------------------------------------


def events(types: str, times: list[int], ids: list[int] | None = None) -> pa.Table:
    n = len(types)
    return pa.table({"ts": times, "type": list(types), "id": ids or [0] * n, "v": list(range(n))})


def test_equal_times_in_two_pushes_are_equal_times() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, C c) AGG COUNT(*) AS n, SUM(a.v) AS s WITHIN 9", SCHEMA)
    data = events("ABABCBAC", [1, 1, 1, 2, 3, 3, 3, 3])
    for cut in range(9):
        with plan.stream() as s:
            assert s._engine.live is not None
            given = [*s.push(data.slice(0, cut)), *s.push(data.slice(cut))]
        assert given[-1] == next(iter(plan.run(data))), cut
    with plan.stream() as s:
        given = [list(s.push(data.slice(i, 1))) for i in range(8)]
    assert [len(g) for g in given] == [0, 0, 0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize("by", ["", "GROUPBY c.v", "GROUPBY a.id", "GROUPBY a.id, c.v"])
@pytest.mark.parametrize("key", ["", ", [id]"])
@pytest.mark.parametrize("window", ["900", "700 EVENTS", "6000"])
def test_long_streams_of_many_keys(by: str, key: str, window: str) -> None:
    if "a.id" in by and not key:
        return
    r = np.random.default_rng(5)
    n = 20_000
    data = pa.table(
        {
            "ts": np.sort(r.integers(0, n, n)),
            "type": np.array(list("ABCX"))[r.integers(0, 4, n)],
            "id": r.integers(0, 300, n) + np.arange(n) // 4000 * 100,
            "v": r.integers(0, 5, n),
        }
    )
    query = (
        f"PATTERN SEQ(A a, !X x, B b, C c{key}) {by} AGG COUNT(*) AS n, SUM(b.v) AS s, MIN(a.v) AS m WITHIN {window}"
    )
    plan = qc.compile(query, SCHEMA)
    known: dict[Any, Any] = {}
    with plan.stream() as s:
        assert s._engine.live is not None
        at = 0
        while at < n:
            step = int(r.integers(1, 400))
            known.update(_groups(plan, s.push(data.slice(at, step)).to_arrow()))
            at += step
    want = _groups(plan, plan.run(data).to_arrow())
    assert known == want
    assert any(row["n"] for row in want.values())


def steps(window: int) -> int:
    """Events looked at, when 20,000 come in pushes of ten."""
    plan = qc.compile(f"PATTERN SEQ(A a, B b, C c) AGG COUNT(*) AS n WITHIN {window}", SCHEMA)
    data = events("ABC" * 7000, list(range(21_000)))
    with plan.stream() as s:
        for at in range(0, 21_000, 10):
            s.push(data.slice(at, 10))
        assert s._engine.live is not None
        return s._engine.live.steps


def test_the_cost_of_a_push_does_not_grow_with_the_window() -> None:
    found = [steps(window) for window in (10, 100, 1000, 10_000)]
    assert max(found) <= 2 * 21_000, found  # each event comes once, and becomes the older part once


def test_counts_beyond_64_bits_are_exact_in_streams() -> None:
    leaves = ", ".join(f"A a{i}" for i in range(20))
    plan = qc.compile(f"PATTERN SEQ({leaves}) AGG COUNT(*) AS n, SUM(a3.v) AS s WITHIN 1000", SCHEMA)
    data = events("A" * 120, list(range(120)))
    with plan.stream() as s:
        given = [row for at in range(0, 120, 7) for row in s.push(data.slice(at, 7))]
    assert given[-1] == next(iter(plan.run(data)))
    assert given[-1]["n"] > 2**64


def test_totals_of_too_many_digits_leave_a_stream_as_it_was() -> None:
    leaves = ", ".join(f"A a{i}" for i in range(30))
    plan = qc.compile(f"PATTERN SEQ({leaves}) AGG COUNT(*) AS n WITHIN 1000", SCHEMA)
    data = events("A" * 900, list(range(900)))
    with plan.stream() as s:
        before = list(s.push(data.slice(0, 100)))
        with pytest.raises(qc.LimitExceeded):
            s.push(data.slice(100, 800))
        assert next(iter(s.push(data.slice(100, 1))))["n"] > before[0]["n"]
        assert list(s.push(data.slice(101, 1))) == list(plan.run(data.slice(0, 102)))


def test_values_that_no_number_is_left_for_are_listed() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) AGG MIN(a.v) AS m, MAX(a.v) AS k WITHIN 9", SCHEMA)
    data = pa.table({"ts": [1, 2, 3, 4], "type": list("ABAB"), "id": [0] * 4, "v": [5, 0, 2**63 - 1, -(2**63)]})
    with plan.stream() as s:
        assert list(s.push(data.slice(0, 2))) == [{"m": 5, "k": 5}]
        assert list(s.push(data.slice(2))) == [{"m": 5, "k": 2**63 - 1}]
        assert s._engine.live is None


def test_matches_that_are_not_listed_reach_no_limit() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) AGG COUNT(*) AS n WITHIN 100", SCHEMA)
    data = events("A" * 10 + "B" * 10, [0] * 10 + [1] * 10)
    with plan.stream(limits=qc.Limits(max_matches=5)) as s:
        found = s.push(data)
    assert list(found) == list(plan.run(data))
    with pytest.raises(qc.LimitExceeded):
        found.rows()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "PATTERN SEQ(!C c, A a, !B b) AGG COUNT(*) AS n WITHIN 9",
            "matches wait, and are open at both ends",
        ),
        (
            "PATTERN SEQ(A a, C c, !B b) GROUPBY c.v AGG COUNT(*) AS n WITHIN 9",
            "matches wait, and GROUPBY names a component after the first",
        ),
        (
            "PATTERN SEQ(A a, !B b) AGG COUNT(*) AS n WITHIN 9 EVENTS",
            "matches wait, and a window of events can end among equal times",
        ),
        (
            "PATTERN SEQ(A a, B b, C c) GROUPBY a.v, b.v AGG COUNT(*) AS n WITHIN 9",
            "GROUPBY names several components before the last",
        ),
        ("PATTERN SEQ(A a, B b) AGG MIN(a.type) AS n WITHIN 9", "MIN and MAX of strings"),
    ],
)
def test_explain_says_why_streams_list_matches(query: str, reason: str) -> None:
    plan = qc.compile(query, SCHEMA)
    assert f"in streams  over the matches of each push: {reason}" in plan.explain()
    assert plan.stream()._engine.live is None
    live = qc.compile("PATTERN SEQ(A a, B b) GROUPBY b.v AGG COUNT(*) AS n WITHIN 9", SCHEMA)
    assert "in streams  running totals" in live.explain()


def batches(n: int, step: int) -> list[pa.RecordBatch]:
    r = np.random.default_rng(3)
    data = pa.table(
        {
            "ts": np.sort(r.integers(0, n, n)),
            "type": np.array(list("ABCX"))[r.integers(0, 4, n)],
            "id": r.integers(0, 5, n),
            "v": r.integers(0, 5, n),
        }
    )
    return data.to_batches(max_chunksize=step)


@pytest.mark.parametrize("totals", ["COUNT(*) AS n", "COUNT(*) AS n, SUM(b.v) AS s, AVG(a.id) AS m", "MIN(b.v) AS n"])
@pytest.mark.parametrize(
    "pattern", ["SEQ(A a, !X x, B b, C c)", "SEQ(A+ a, B b)", "SEQ(A a, B b, !X x)", "AND(A a, B b)"]
)
@pytest.mark.parametrize("window", ["50", "60 EVENTS"])
def test_record_batches_go_straight_into_totals(pattern: str, totals: str, window: str) -> None:
    plan = qc.compile(f"PATTERN {pattern} AGG {totals} WITHIN {window}", SCHEMA)
    given = batches(3000, 70)
    quick, broken, slow = plan.stream(), plan.stream(), listed(plan.stream())
    r = Random(4)
    for number, batch in enumerate(given):
        if r.random() < 0.1:
            quick.snapshot()
        if r.random() < 0.2:
            broken = plan.restore(broken.snapshot())
        found, other, want = quick.push(batch), broken.push(batch), slow.push(batch)
        assert list(found) == list(want)
        assert found.to_arrow().to_pylist() == list(other) == list(found)
        if number % 9 == 0:
            assert found.rows() == want.rows()
        if r.random() < 0.1:
            mixed = pa.Table.from_batches([batch]).slice(0, 0)
            assert list(quick.push(mixed)) == list(slow.push(mixed))
    assert list(quick.close()) == list(broken.close()) == list(slow.close())


def test_batches_that_cannot_go_straight_change_nothing() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) AGG COUNT(*) AS n WITHIN 9", SCHEMA)
    first, second = batches(200, 100)
    with plan.stream() as s:
        s.push(first)
        with pytest.raises(qc.DataError):
            s.push(first)
        given = list(s.push(second))
    assert given == list(plan.run(pa.Table.from_batches([first, second])))
    assert s._engine._inflow is not None
