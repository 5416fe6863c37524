"""Streams whose plan is switched: no match is lost or doubled, and switches come when the stream changes."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from benchmarks.adaptive import half
from quercus.backends.local.choose import planned_searches
from quercus.backends.local.orders import Orders, fixed, normal
from tests.generate import valid
from tests.stream_checks import FORMS, Fed, broken_off, cuts, delayed, in_order, keyed, ordered, same, schema_of
from tests.test_engine import table

CHUNK = 125
LIVELY = qc.Adapt(theta=1.0, gamma=1.0, every=1, work=0)  # looks all the time, and switches where it can


def any_orders(stream: Any, r: Random) -> Orders:
    """What the planner would choose by now, or a random order for each search of a stream."""
    if stream._adapter is not None and r.random() < 0.5:
        stream.explain()  # sees what has come
        orders: Orders = stream._adapter.choice(stream._engine, stream._adapter.running.stats()).orders
        return orders
    found = []
    for f, v in stream._engine.variants:
        rest = [name for name in fixed(f) if name != v.pivot]
        r.shuffle(rest)
        found.append(normal(f, v, tuple(rest)))
    return tuple(found)


def switching(plan: qc.Plan, events: list[Any], r: Random) -> Fed:
    """Push events piece by piece, with switches and snapshots in between."""
    stream = plan.stream(adapt=r.choice((False, LIVELY)))
    pushes = []
    for first, last in cuts(r, len(events)):
        for _ in range(r.choice((0, 0, 1, 1, 2))):
            stream._switch(any_orders(stream, r))
        stream = broken_off(plan, stream, r.choice((0, 0, 0, 1)), r)
        pushes.append(stream.push(FORMS[r.choice(tuple(FORMS))](events[first:last])))
    stream._switch(any_orders(stream, r))
    stream.close()
    return Fed(pushes, stream.final, stream.dropped)


def agree(seeds: range, key: tuple[str, ...], shape: str) -> int:
    found = 0
    for drawn, _ in valid(seeds):
        sample, r = keyed(in_order(drawn), *key), Random(drawn.seed)
        plan = qc.compile(sample.query, schema_of(sample), shape=shape)
        fed = switching(plan, sample.events, r)
        shown = f"{sample}\nkey {key}, shape {shape}"
        found += same(fed.rows(), plan.run(table(sample.events)).rows(), shown)
        ordered(fed, plan, sample.events, shown)
    return found


@pytest.mark.parametrize("start", range(760_000, 760_500, CHUNK))
def test_forced_switches_change_nothing(start: int) -> None:
    assert agree(range(start, start + CHUNK), (), "auto") > 0


@pytest.mark.parametrize("start", range(770_000, 770_250, CHUNK))
@pytest.mark.parametrize("shape", ["right", "inner", "stack"])
def test_keys_are_kept_over_switches(start: int, shape: str) -> None:
    assert agree(range(start, start + CHUNK), ("id",), shape) > 0


def test_events_that_come_late_wait_through_switches() -> None:
    for drawn, _ in valid(range(780_000, 780_060)):
        sample, r = in_order(drawn), Random(drawn.seed)
        plan = qc.compile(sample.query, schema_of(sample))
        events, given = delayed(sample.events, 3, r), []
        stream = plan.stream(max_delay=3, adapt=LIVELY)
        for first, last in cuts(r, len(events)):
            stream._switch(any_orders(stream, r))
            given += stream.push(table(events[first:last])).rows()
        stream._switch(any_orders(stream, r))
        same([*given, *stream.close().rows()], plan.run(table(events)).rows(), sample)


# When streams switch --------------------------------------------------------------------------------------------------

QUERY = "PATTERN SEQ(A a, B b, C c, D d, a.x + c.x = b.x + d.x) WITHIN 1000"
SCHEMA = qc.Schema({"x": "int64"})
MANY_A = {"A": 0.1, "B": 0.02, "C": 0.0005, "D": 0.05}
KEPT = {"(a.x + c.x) = b.x + d.x": 0.001}
MANY_C = MANY_A | {"A": MANY_A["C"], "C": MANY_A["A"]}


def push_all(stream: Any, *tables: pa.Table) -> list[Any]:
    return [row for t in tables for b in t.to_batches(max_chunksize=500) for row in stream.push(b).rows()]


@pytest.fixture(scope="module")
def reversing() -> list[pa.Table]:
    return [half(MANY_A, 0, 60_000, 1), half(MANY_C, 60_000, 60_000, 2)]


def test_a_stream_that_reverses_switches_once_or_twice(reversing: list[pa.Table]) -> None:
    plan = qc.compile(QUERY, SCHEMA)
    stream = plan.stream()
    rows = push_all(stream, *reversing)
    first, second = stream.switches
    assert first.before == second.after == "d a b c (stack)"
    assert first.after == second.before == "d c b a"
    assert first.row < 8_000
    assert 0 < second.row - reversing[0].num_rows < 4_000
    assert second.drift > 2
    assert second.gain > 1.2
    assert rows == plan.run(pa.concat_tables(reversing)).rows()


def test_a_stream_that_was_foretold_does_not_switch() -> None:
    plan = qc.compile(QUERY, SCHEMA, stats=qc.Stats(MANY_A, {}, KEPT))
    stream = plan.stream()
    assert "binds d c b a" in stream.explain()
    push_all(stream, half(MANY_A, 0, 120_000, 3))
    assert stream.switches == ()
    assert "no switch so far" in stream.explain()


def test_statistics_that_are_wrong_are_found_out() -> None:
    stream = qc.compile(QUERY, SCHEMA, stats=qc.Stats(MANY_C, {}, KEPT)).stream()
    push_all(stream, half(MANY_A, 0, 60_000, 3))
    assert [s.after for s in stream.switches] == ["d c b a"]


@pytest.mark.parametrize("asked", ["shape", "adapt"])
def test_what_was_asked_for_stays(asked: str, reversing: list[pa.Table]) -> None:
    plan = qc.compile(QUERY, SCHEMA, shape="right" if asked == "shape" else "auto")
    stream = plan.stream(adapt=asked == "shape")
    push_all(stream, *reversing)
    assert stream.switches == ()
    assert "does not adapt" in stream.explain()


def test_conditions_that_change_are_seen() -> None:
    """First every c passes and hardly any a, then the other way round."""
    query = "PATTERN SEQ(A a, C c, D d, a.x * a.x + d.x > 900, c.x * c.x + d.x > 900) WITHIN 300"
    r = np.random.default_rng(5)
    tables = []
    for number, many in enumerate(("A", "C")):
        types = r.choice(["A", "C", "D"], 30_000)
        x = np.where(types == many, r.integers(0, 31, 30_000), r.integers(29, 60, 30_000))
        tables.append(
            pa.table({"ts": np.arange(30_000) + number * 30_000, "type": types, "x": np.where(types == "D", 0, x)})
        )
    stream = qc.compile(query, SCHEMA).stream()
    push_all(stream, *tables)
    assert [s.after for s in stream.switches][-1] == "d c a"


def test_a_snapshot_knows_the_switches(reversing: list[pa.Table]) -> None:
    plan = qc.compile(QUERY, SCHEMA)
    stream = plan.stream()
    rows = push_all(stream, reversing[0])
    restored = plan.restore(stream.snapshot())
    assert restored.switches == stream.switches
    assert len(stream.switches) == 1
    rows += push_all(restored, reversing[1])
    assert rows == plan.run(pa.concat_tables(reversing)).rows()
    assert "switched at row" in restored.explain()


def test_results_outlive_a_switch() -> None:
    stream = qc.compile("PATTERN SEQ(A a, B b, C c) WITHIN 9", SCHEMA).stream()
    batch = pa.record_batch({"ts": [1, 2, 3, 4], "type": ["A", "B", "B", "C"], "x": [1, 2, 3, 4]})
    given = stream.push(batch)
    stream._switch((("b", "a"),))
    assert given.rows() == [{"a": 0, "b": 1, "c": 3}, {"a": 0, "b": 2, "c": 3}]
    assert given.to_arrow().num_rows == 2


def test_an_error_after_a_switch_takes_nothing() -> None:
    stream = qc.compile("PATTERN SEQ(A a, B b, C c) WITHIN 9 PARTITION BY x", SCHEMA).stream()
    stream.push({"ts": [1, 2], "type": ["A", "B"], "x": [7, 7]})
    stream._switch((("b", "a"),))
    with pytest.raises(qc.DataError):
        stream.push({"ts": [1], "type": ["C"], "x": [7]})
    assert stream.push({"ts": [3], "type": ["C"], "x": [7]}).rows() == [{"a": 0, "b": 1, "c": 2}]


def test_bad_settings() -> None:
    plan = qc.compile(QUERY, SCHEMA)
    for wrong in ({"theta": 0.5}, {"gamma": 0.0}, {"half_life": 0.0}, {"every": 0}, {"work": -1}):
        with pytest.raises(qc.DataError):
            qc.Adapt(**wrong)  # type: ignore[arg-type]
    with pytest.raises(qc.DataError):
        plan.stream(adapt=2)  # type: ignore[arg-type]


# The cost of an order -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "order"), [("left", "d a b c (stack)"), ("right", "d c b a"), ("bushy", "d c a b"), ("inner", "d b c a")]
)
def test_a_shape_is_an_order(shape: str, order: str) -> None:
    stream = qc.compile("PATTERN SEQ(A a, B b, C c, D d) WITHIN 9", SCHEMA, shape=shape).stream()
    assert f"binds {order}\n" in stream.explain()


def test_the_best_order_is_the_cheapest_of_all() -> None:
    r = Random(1)
    for _ in range(30):
        rates = {name: 10 ** r.uniform(-4, -1) for name in "ABCD"}
        stats = qc.Stats(rates, {"x": r.choice((2, 50))})
        plan = qc.compile("PATTERN SEQ(A a, AND(B b, C c), D d, a.x = c.x, b.x < d.x) WITHIN 1000", SCHEMA, stats=stats)
        (search,) = planned_searches(plan, plan.stream()._engine.variants)
        costs = {order: search.cost(order) for order in permutations("abc")}
        assert costs[search.best()] == pytest.approx(min(costs.values()))


def test_many_components_are_ordered_one_by_one() -> None:
    names = "ABCDEFGHIJ"
    rates = {name: 0.001 * 3**i for i, name in enumerate(names)}
    parts = ", ".join(f"{name} {name.lower()}" for name in names)
    plan = qc.compile(f"PATTERN SEQ({parts}) WITHIN 100", SCHEMA, stats=qc.Stats(rates))
    (search,) = planned_searches(plan, plan.stream()._engine.variants)
    assert search.best() == tuple("abcdefghi")
    stream = plan.stream(adapt=False)
    stream._switch((tuple("ihgfedcba"),))
    given = stream.push({"ts": list(range(10)), "type": list(names), "x": [0] * 10}).rows()
    assert given == [{name: i for i, name in enumerate(names.lower())}]


def test_many_searches_stay_as_they_are() -> None:
    either = ", ".join(f"OR(A{i} a{i}, B{i} b{i})" for i in range(6))
    plan = qc.compile(f"PATTERN SEQ({either}) WITHIN 9", SCHEMA, stats=qc.Stats({"A1": 3.0, "B2": 0.1}))
    stream = plan.stream()
    assert len(stream._engine.variants) > 32
    assert set(stream._engine.orders) == {()}
    assert "does not adapt" in stream.explain()


def test_numbers_beyond_all_bounds() -> None:
    stats = qc.Stats({"A": 1e300, "B": 1e300, "C": 1e-300, "D": 1e9})
    plan = qc.compile("PATTERN SEQ(A[50] a, B b, C c, D[80] d) WITHIN 100", SCHEMA, stats=stats)
    stream = plan.stream()
    stream.push({"ts": [1, 2], "type": ["A", "D"], "x": [1, 1]})
    stream._switch(stream._adapter.choice(stream._engine, stats).orders)
    assert stream.explain()
