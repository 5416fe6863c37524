"""Views of sub-queries in snapshots: a restored stream holds what it held, and what cannot be is refused."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve

import quercus as qc
from quercus.backends.local import incremental, kept_views, snapshot
from quercus.backends.local.orders import stack_order
from quercus.kernels import match, reference_stream, reference_views
from tests.nested import Nesting, trades
from tests.reference import canonical
from tests.test_engine import table

VIEWS = ("aggressive", "passive", "balanced")
SCHEMA = qc.Schema({"id": "int64", "v": "int64", "f": "float64", "s": "string"}, time_unit="s")
KEYED = qc.Schema({"id": "int64", "v": "int64", "f": "float64", "s": "string"}, time_unit="s", key="id")
QUERIES = {
    "positive": "SEQ(A a, SEQ(B b, C c, b.v < c.v), D d, E e) WITHIN 40",
    "negated": "SEQ(A a, !SEQ(B b, C c, b.v + 6 < c.v), D d, E e) WITHIN 40",
    "negated with a condition": "SEQ(A a, !SEQ(B b, C c, b.v < a.v, c.v < a.v), D d, E e) WITHIN 40",
    "parts": "SEQ(A a, SEQ(B b, C c, b.id = a.id, c.id = a.id), D d) WITHIN 40",
    "negated parts": "SEQ(A a, !SEQ(B b, C c, b.id = a.id, c.id = a.id), D d) WITHIN 40",
    "parts of strings": "SEQ(A a, SEQ(B b, C c, b.s = a.s, b.f = a.f), D d) WITHIN 40",
    "strings in order": "SEQ(A a, SEQ(B b, C c, b.s = a.s, b.s <= c.s), D d) WITHIN 40",
    "two levels": "SEQ(A a, SEQ(B b, SEQ(C c, D d), E e), D g, A h) WITHIN 24",
    "two negated levels": "SEQ(A a, !SEQ(B b, !SEQ(C c, D d), E e), D g, A h) WITHIN 30",
    "a level in a negated one": "SEQ(A a, !SEQ(B b, SEQ(C c, D d, c.v < d.v), E e), D g, A h) WITHIN 30",
    "events": "SEQ(A a, SEQ(B b, C c), D d) WITHIN 30 EVENTS",
    "held back": "SEQ(A a, SEQ(B b, C c), D d, !E e) WITHIN 20",
    "a window of its own": "SEQ(A a, SEQ(B b, C c) WITHIN 5, D d, !E e) WITHIN 20",
}


def stream_of(plan: qc.Plan, events: pa.Table, step: int = 10) -> Any:
    stream = plan.stream(adapt=False)
    for i in range(0, len(events), step):
        stream.push(events.slice(i, step))
    return stream


def counts(stream: Any) -> np.ndarray[Any, Any]:
    """Intervals asked for, those that were there, and results found, of each sub-query."""
    engine = stream._engine
    return np.array([engine.matcher.tally_sub(i)[:3] for i in range(len(engine.program.subs))])


@pytest.mark.parametrize("nested", VIEWS)
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("schema", [SCHEMA, KEYED], ids=["", "keyed"])
def test_the_next_push_is_asked_and_held_the_same(name: str, nested: str, schema: qc.Schema) -> None:
    plan = qc.compile(f"PATTERN {QUERIES[name]}", schema, nested=nested)
    events = trades(400)
    stream = stream_of(plan, events.slice(0, 300))
    views = len(stream._engine.program.subs)
    assert views
    state = stream.snapshot()
    before, restored = counts(stream), plan.restore(state, adapt=False)
    same = snapshot.read(restored.snapshot(), plan)
    assert same.views.equals(snapshot.read(state, plan).views)
    hits = 0
    for i in range(300, 400, 10):
        push = events.slice(i, 10)
        assert restored.push(push).rows() == stream.push(push).rows()
        assert (counts(restored) == counts(stream) - before).all()
        hits += counts(restored)[:, 1].sum()
    assert hits or schema is KEYED
    assert restored.close().rows() == stream.close().rows()


@pytest.mark.parametrize("nested", VIEWS)
@pytest.mark.parametrize(
    "name", ["positive", "negated", "parts of strings", "strings in order", "two levels", "events"]
)
@pytest.mark.parametrize("schema", [SCHEMA, KEYED], ids=["", "keyed"])
def test_another_order_of_binding_keeps_the_views(name: str, nested: str, schema: qc.Schema) -> None:
    plan = qc.compile(f"PATTERN {QUERIES[name]}", schema, nested=nested)
    events = trades(400)
    stream, switched = (stream_of(plan, events.slice(0, 300)) for _ in range(2))
    orders = tuple(tuple(reversed(stack_order(f, v))) for f, v in switched._engine.variants)
    switched._engine.kept()
    before, _ = kept_views.told(switched._engine)
    switched._switch(orders)
    assert switched._engine.orders == orders
    after = kept_views.told(switched._engine)[0].drop_columns("view").to_pylist()
    assert all(stretch in before.drop_columns("view").to_pylist() for stretch in after)
    assert max(before.column("to").to_pylist(), default=0) == max((stretch["to"] for stretch in after), default=0)
    for i in range(300, 400, 10):
        push = events.slice(i, 10)
        assert canonical(switched.push(push).rows()) == canonical(stream.push(push).rows())


@pytest.mark.parametrize("nested", VIEWS)
def test_without_its_views_a_restored_stream_finds_more_again(nested: str) -> None:
    plan = qc.compile(f"PATTERN {QUERIES['positive']}", SCHEMA, nested=nested)
    events = trades(320)
    stream = stream_of(plan, events.slice(0, 310))
    state = snapshot.read(stream.snapshot(), plan)
    old = {k: v for k, v in state.facts.items() if k != "views"}
    bare = plan.restore(snapshot.write(evolve(state, views=None, facts=old), plan), adapt=False)
    full = plan.restore(snapshot.write(state, plan), adapt=False)
    push = events.slice(310, 10)
    assert bare.push(push).rows() == full.push(push).rows() == stream.push(push).rows()
    assert counts(bare)[:, 2].sum() > counts(full)[:, 2].sum()


@pytest.mark.parametrize("nested", ["rewrite", "iterative", *VIEWS])
def test_another_plan_of_the_query_goes_on(nested: str) -> None:
    text, events = f"PATTERN {QUERIES['positive']}", trades(400)
    stream = stream_of(qc.compile(text, SCHEMA, nested="passive"), events.slice(0, 300))
    other = qc.compile(text, SCHEMA, nested=nested, shape="stack").restore(stream.snapshot(), adapt=False)
    rest = events.slice(300, 100)
    assert other.push(rest).rows() == stream.push(rest).rows()
    assert nested != "passive" or counts(other)[:, 1].sum()


def test_views_of_another_version_are_found_again() -> None:
    plan = qc.compile(f"PATTERN {QUERIES['positive']}", SCHEMA, nested="balanced")
    stream = stream_of(plan, trades(300))
    state = snapshot.read(stream.snapshot(), plan)
    later = evolve(state, facts={**state.facts, "views": {"version": kept_views.VERSION + 1}})
    restored = plan.restore(snapshot.write(later, plan))
    assert restored._engine.matcher.view_bytes == 0
    rest = trades(400).slice(300)
    assert restored.push(rest).rows() == stream.push(rest).rows()


def test_a_view_that_no_longer_fits_its_limit_is_told_at_the_next_push() -> None:
    plan = qc.compile("PATTERN SEQ(A a, SEQ(B b, C c), D d) WITHIN 200", SCHEMA, nested="aggressive")
    state = stream_of(plan, trades(300)).snapshot()
    with pytest.raises(qc.LimitExceeded):
        plan.restore(state, limits=qc.Limits(max_state_bytes=9_000)).push(trades(310).slice(300))


# What cannot be -------------------------------------------------------------------------------------------------------


def changed(views: pa.Table, facts: dict[str, Any], r: Random) -> tuple[pa.Table | None, Any]:
    """The views with something else in one place."""
    odd: list[Any] = [-1, 0, 2**63 - 1, -(2**63), None, "x", [], {}, 1.5, [[1]]]
    kind = r.choice(("facts", "marks", "column", "column", "records", "records", "records", "rows", "gone"))
    rows = views.to_pylist()
    i = r.randrange(len(rows))
    match kind:
        case "facts":
            return views, r.choice((r.choice(odd), {**facts, r.choice(tuple(facts)): r.choice(odd)}))
        case "marks":
            return views, {**facts, "marks": [r.choice(odd) for _ in facts["marks"]]}
        case "gone":
            return None, facts
        case "rows":
            return pa.Table.from_pylist([*rows, rows[i]], views.schema), facts
        case "column":
            name = r.choice(("view", "segment", "values", "found", "from", "to"))
            rows[i][name] = {
                "values": r.choice(("", "x", "[]", "[1]", '["p"]', "[1, 2]", "{}", "[null]", "[1e9]", f"[{10**30}]")),
                "found": not rows[i]["found"],
            }.get(name, r.choice((-1, 0, 1, 7, 299, 300, 301, 2**40, 2**63 - 1, -(2**63))))
        case "records":
            some = [k for k, row in enumerate(rows) if row["records"]]
            records = rows[r.choice(some) if some else i]["records"]
            if records and r.random() < 0.7:
                records[r.randrange(len(records))] += r.choice((-(2**63) + 400, -100, -1, 1, 5, 100, 2**62))
            else:
                records += r.choice(([1], [0, 0], [299, 298, 298, 299], [5] * 4, [299, 298] * 3))
    return pa.Table.from_pylist(rows, views.schema), facts


@pytest.mark.parametrize("nested", VIEWS)
@pytest.mark.parametrize("name", ["positive", "negated", "parts of strings", "negated parts", "two levels"])
def test_a_forged_view_is_refused_or_does_no_harm(name: str, nested: str) -> None:
    plan, r, refused = qc.compile(f"PATTERN {QUERIES[name]}", SCHEMA, nested=nested), Random(7), 0
    state = snapshot.read(stream_of(plan, trades(300)).snapshot(), plan)
    rest = trades(330).slice(300)
    for _ in range(60):
        views, facts = changed(state.views, state.facts["views"], r)
        forged = snapshot.write(evolve(state, views=views, facts={**state.facts, "views": facts}), plan)
        try:
            stream = plan.restore(forged)
            stream.push(rest).to_arrow()
            stream.snapshot()
            stream.close().to_arrow()
        except qc.DataError:
            refused += 1
    assert refused > 30


@pytest.mark.parametrize("nested", VIEWS)
def test_views_of_other_events_are_refused(nested: str) -> None:
    plan = qc.compile(f"PATTERN {QUERIES['positive']}", SCHEMA, nested=nested)
    one, two = (snapshot.read(stream_of(plan, trades(300, seed)).snapshot(), plan) for seed in (1, 2))
    with pytest.raises(qc.DataError, match="view"):
        plan.restore(snapshot.write(evolve(one, views=two.views), plan))


# What views hold ------------------------------------------------------------------------------------------------------


class Both(match.StreamMatcher):
    """The stream matcher beside its twin."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.twin = reference_stream.StreamMatcher(*given)

    def __getattribute__(self, name: str) -> Any:
        own = super().__getattribute__(name)
        if name not in ("number", "append", "commit", "undo", "set_positions", "relabel", "set_constants"):
            return own

        def both(*given: Any) -> Any:
            found = own(*given)
            getattr(self.twin, name)(*given)
            return found

        return both


def check_views(engine: Any) -> int:
    """Every stretch of every view holds what its twin finds there; how many records there are."""
    engine.kept()
    some = 0
    for number, sub in enumerate(engine.program.subs):
        for stretch in engine.matcher.view(number):
            _, _, found, _, _, held = stretch
            expected = reference_views.records_of(engine.matcher.twin, number, stretch)
            if sub.flags:
                assert bool(expected) == found
            else:
                assert sorted(map(tuple, held.reshape(-1, 2 + len(sub.slots)).tolist())) == expected
                some += len(expected)
    return some


@pytest.mark.parametrize("nested", VIEWS)
@pytest.mark.parametrize("keyed", [False, True], ids=["", "keyed"])
def test_a_view_holds_all_results_of_its_stretches(nested: str, keyed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "StreamMatcher", Both)
    monkeypatch.setattr(incremental.Engine, "_feed_of", lambda self, schema: None)
    some = 0
    for text in QUERIES.values():
        plan = qc.compile(f"PATTERN {text}", KEYED if keyed else SCHEMA, nested=nested)
        stream, events = plan.stream(adapt=False), trades(90)
        for i in range(0, 90, 15):
            stream.push(events.slice(i, 15))
            some += check_views(stream._engine)
        stream = plan.restore(stream.snapshot(), adapt=False)
        some += check_views(stream._engine)
    assert some > 30


@pytest.mark.parametrize("nested", VIEWS)
def test_views_of_random_queries(nested: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "StreamMatcher", Both)
    monkeypatch.setattr(incremental.Engine, "_feed_of", lambda self, schema: None)
    some = 0
    for seed in range(9000, 9030):
        s = Nesting(seed).sample(30)
        plan = qc.compile(s.query, s.schema(), nested=nested)
        stream, events, rows = plan.stream(adapt=False), table(s.events), []
        for i in range(0, 30, 10):
            rows += stream.push(events.slice(i, 10)).rows()
            some += check_views(stream._engine)
            stream = plan.restore(stream.snapshot(), adapt=False)
            some += check_views(stream._engine)
        rows += stream.close().rows()
        assert canonical(rows) == canonical(plan.run(events).rows())
    assert some
