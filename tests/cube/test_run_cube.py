"""Running a cube: what it is asked, who is skipped, AGG, limits, sets, threads."""

from __future__ import annotations

import doctest
from collections.abc import Mapping
from random import Random

import numpy as np
import pytest

import quercus as qc
from quercus.backends.local.cube import actions, execute, held, run_cube, stacks
from quercus.backends.local.cube.actions import Results
from quercus.backends.local.cube.execute import Cube
from quercus.backends.local.events import Events
from quercus.compiler.cube import alone
from quercus.ir import workload as w
from quercus.kernels import listing, reuse
from quercus.plan import Plan

SCHEMA = qc.Schema({"id": "int64"}, hierarchy={"X": ["A", "B"]})
EVENTS = {"ts": [*range(1, 9)], "type": ["A", "C", "B", "C", "A", "D", "C", "D"], "id": [1, 1, 2, 2, 1, 1, 2, 2]}


def compiled(**texts: str) -> dict[str, Plan]:
    return {name: qc.compile(f"PATTERN {text}", SCHEMA) for name, text in texts.items()}


def cuboid(name: str, source: str | None = None, *how: w.Action) -> w.Cuboid:
    return w.Cuboid(name, source, None if source is None else "5.1", how, "", 0.0, 0.0)


def run(plans: dict[str, Plan], *cuboids: w.Cuboid, events: object = EVENTS, **limits: float) -> object:
    ordering = w.Ordering("chase", cuboids)
    return run_cube(plans, lambda *_: ordering, events, qc.Limits(**limits), 1)  # type: ignore[arg-type]


def part(var: str, *accepts: str) -> w.Part:
    return w.Part(var, var, accepts)


def test_the_order_is_asked_once_with_what_is_known() -> None:
    plans = compiled(q1="SEQ(X x, C c) WITHIN 5", q2="SEQ(A a, !B b, C c) WITHIN 5")
    asked: list[tuple[Mapping[tuple[str, ...], int], int, float]] = []

    def order(counts: Mapping[tuple[str, ...], int], events: int, span: float) -> w.Ordering:
        asked.append((counts, events, span))
        return w.Ordering("independent", (cuboid("q1"), cuboid("q2")))

    found = run_cube(plans, order, EVENTS, qc.Limits(), 1)
    ((counts, events, span),) = asked
    assert counts == {("X", "A", "B"): 3, ("A", "B", "X"): 3, ("A",): 2, ("B",): 1, ("C",): 3}
    assert (events, span) == (8, 7.0)
    assert dict(found.sizes) == {"q1": len(found["q1"]), "q2": len(found["q2"])}
    assert len(found) == 2


def test_events_are_routed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = compiled(q1="SEQ(X x, C c) WITHIN 5", q2="SEQ(A a, C c, D d) WITHIN 5", q3="AND(A a, B b) WITHIN 5")
    calls: list[list[str]] = []
    routed = Events._positions
    monkeypatch.setattr(Events, "_positions", lambda self, names: calls.append(names) or routed(self, names))
    run(plans, cuboid("q1"), cuboid("q2"), cuboid("q3"))
    assert [sorted(names) for names in calls] == [["A", "B", "C", "D", "X"]]


def test_what_is_stricter_than_nothing_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = compiled(
        q1="SEQ(D d, A a) WITHIN 1", q2="SEQ(D d, A a, C c) WITHIN 1", q3="SEQ(D d, A a, C c, B b) WITHIN 1"
    )
    window = plans["q1"].query.window
    monkeypatch.setattr(actions.Worker, "run", None)
    found = run(
        plans,
        cuboid("q1"),
        cuboid("q2", "q1", w.Insert(part("c", "C"), 2, (), window)),
        cuboid("q3", "q2", w.Insert(part("b", "B"), 3, (), window)),
    )
    assert [len(found[name]) for name in plans] == [0, 0, 0]  # type: ignore[index]
    assert found["q3"].rows() == []  # type: ignore[index]


@pytest.mark.parametrize(
    "agg", ["COUNT(*)", "COUNT(*), SUM(c.id), MIN(x.ts) GROUPBY x.id", "COUNT(*) AS n GROUPBY c.type", "AVG(c.id)"]
)
def test_agg_alone_reused_and_over_what_is_held(agg: str) -> None:
    plans = compiled(q1=f"SEQ(X x, C c) AGG {agg} WITHIN 5", q2=f"SEQ(X x, C c, D d) AGG {agg} WITHIN 5")
    how = w.Insert(part("d", "D"), 2, (), plans["q1"].query.window)
    for cuboids in ([cuboid("q1"), cuboid("q2")], [cuboid("q1"), cuboid("q2", "q1", how)]):
        found = run(plans, *cuboids)
        for name, plan in plans.items():
            alone = plan.run(EVENTS)
            assert found[name].to_arrow().equals(alone.to_arrow())  # type: ignore[index]
            assert found[name].rows() == alone.rows()  # type: ignore[index]
            assert len(found[name]) == len(alone)  # type: ignore[index]


def test_queries_of_other_forms_run_beside() -> None:
    plans = compiled(
        q1="SEQ(X x, C+ c) WITHIN 5",
        q2="OR(SEQ(A a, C c), SEQ(B b, D d)) WITHIN 5",
        q3="SEQ(X x, C c) WITHIN 5",
        q4="SEQ(A x, C c) WITHIN 5",
    )
    for threads in (1, 2):
        ordering = w.Ordering(
            "chase", (cuboid("q1"), cuboid("q2"), cuboid("q3"), cuboid("q4", "q3", w.Retype("x", ("A",))))
        )
        found = run_cube(plans, lambda *_, o=ordering: o, EVENTS, qc.Limits(), threads)  # type: ignore[misc]
        for name, plan in plans.items():
            assert found[name].rows() == plan.run(EVENTS).rows()
            assert found[name].to_arrow().equals(plan.run(EVENTS).to_arrow())


def test_nothing_comes_from_sets() -> None:
    plans = compiled(q1="SEQ(A a, C+ c) WITHIN 5", q2="SEQ(A a, C+ c, D d) WITHIN 5")
    with pytest.raises(AssertionError, match="sets"):
        run(plans, cuboid("q1"), cuboid("q2", "q1", w.Insert(part("d", "D"), 2, (), plans["q1"].query.window)))


def test_actions_must_bind_what_the_query_does() -> None:
    plans = compiled(q1="SEQ(A a, C c) WITHIN 5", q2="SEQ(A a, C c, D d) WITHIN 5")
    with pytest.raises(AssertionError, match="bind"):
        run(plans, cuboid("q1"), cuboid("q2", "q1"))


def test_no_events() -> None:
    plans = compiled(q1="SEQ(X x, C c) WITHIN 5", q2="SEQ(A x, C c) WITHIN 5")
    found = run(plans, cuboid("q1"), cuboid("q2", "q1", w.Retype("x", ("A",))), events={"ts": [], "type": [], "id": []})
    assert [len(m) for m in found.values()] == [0, 0]  # type: ignore[attr-defined]


def test_limits_are_those_of_each_query() -> None:
    plans = compiled(q1="SEQ(X x, C c) WITHIN 9", q2="SEQ(X x, C c, D d) WITHIN 9")
    how = w.Insert(part("d", "D"), 2, (), plans["q1"].query.window)
    sizes = [len(plan.run(EVENTS)) for plan in plans.values()]
    assert sizes[0] < sizes[1]
    run(plans, cuboid("q1"), cuboid("q2", "q1", how), max_matches=sizes[1])
    with pytest.raises(qc.LimitExceeded, match=r"more matches of \(x, c, d\)") as told:
        run(plans, cuboid("q1"), cuboid("q2", "q1", how), max_matches=sizes[1] - 1)
    assert told.value.limit == "max_matches"
    with pytest.raises(qc.LimitExceeded, match=r"more matches of \(x, c\)"):
        run(plans, cuboid("q1"), cuboid("q2", "q1", how), max_matches=sizes[0] - 1)
    with pytest.raises(qc.LimitExceeded, match="held for the matches") as told:
        run(plans, cuboid("q1"), cuboid("q2", "q1", how), max_state_bytes=16)
    assert told.value.limit == "max_state_bytes"
    with pytest.raises(qc.LimitExceeded, match=r"not done after 0\.0 s"):
        run(plans, cuboid("q1"), cuboid("q2", "q1", how), max_seconds=0.0)


def test_totals_are_given_where_a_list_takes_too_much() -> None:
    """What was thought to be few and is not, or needs more to be listed than it may: as the query does by itself."""
    events = {"ts": [*range(60)], "type": ["A", "C", "D"] * 20, "id": [1] * 60}
    plans = {"q": qc.compile("PATTERN SEQ(A a, C c, D d) WITHIN 60 AGG COUNT(*)", SCHEMA, shape="right")}
    expected = plans["q"].run(events, limits=qc.Limits(max_state_bytes=8)).to_arrow()
    for most in ({"max_state_bytes": 8}, {"max_matches": 5}):
        found = run(plans, cuboid("q"), events=events, **most)
        assert found["q"].to_arrow().equals(expected)  # type: ignore[index]
        assert found.ordering.cuboids[0].totalled  # type: ignore[attr-defined]
        assert found.sizes["q"] == -1  # type: ignore[attr-defined]


def test_what_ran_otherwise_than_planned_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that lists no matches after all is no source: who was to be computed from it says so."""
    queries = {"pair": "PATTERN SEQ(A a, C c) WITHIN 9 AGG COUNT(*)", "more": "PATTERN SEQ(A a, C c, D d) WITHIN 9"}
    cube = qc.cube(queries, SCHEMA, share="top_down")
    monkeypatch.setattr(alone, "CLEARLY", 0.0)
    cube.run(EVENTS)
    assert [(c.source, c.totalled) for c in cube.ordering.cuboids] == [(None, False), ("pair", False)]
    monkeypatch.setattr(execute, "MANY", 0)
    monkeypatch.setattr(execute, "OFTEN", 0)
    found = cube.run(EVENTS)
    assert found["more"].rows() == qc.compile(queries["more"], SCHEMA).run(EVENTS).rows()
    assert [(c.source, c.totalled) for c in cube.ordering.cuboids] == [(None, True), (None, False)]
    told = cube.explain()
    assert "alone, totalled event by event: its matches are more than expected" in told
    assert "alone: the matches of pair are more than expected, and are not held" in told
    assert cube.graph().source.count(", alone<") == 2
    monkeypatch.undo()
    monkeypatch.setattr(alone, "CLEARLY", 0.0)
    cube.run(EVENTS)  # it is planned as before, whatever came of it
    assert cube.cuboid("more").source == "pair"


def test_counts_need_no_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inserting, forbidding beside what was inserted, and reading its concept again: ranges only."""
    plans = compiled(q1="SEQ(A a, C c) WITHIN 9", q2="SEQ(!B n, A a, C c, !A m, D d) WITHIN 9")
    window = plans["q1"].query.window
    how = (
        w.Insert(part("d", "D", "B"), 2, (), window),
        w.Retype("d", ("D",)),
        w.Forbid(w.Part("m", "A", ("A",), negated=True), "c", "d", window),
        w.Forbid(w.Part("n", "B", ("B",), negated=True), None, "a", window),
        w.Narrow(window),
    )
    plans |= {"q3": qc.compile(plans["q2"].text.replace("WITHIN", "AGG COUNT(*), COUNT(d) AS n WITHIN"), SCHEMA)}
    for name in ("columns_by_event", "by_group", "by_match", "take"):
        monkeypatch.setattr(reuse, name, None)
    found = run(plans, cuboid("q1"), cuboid("q2", "q1", *how), cuboid("q3", "q1", *how))
    count = len(plans["q2"].run(EVENTS))
    assert len(found["q2"]) == count > 0  # type: ignore[index]
    assert found["q3"].to_arrow().equals(plans["q3"].run(EVENTS).to_arrow())  # type: ignore[index]


def test_buffers_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = compiled(q1="SEQ(X x, C c) WITHIN 5", q2="SEQ(A a, C c) WITHIN 5", q3="SEQ(C a, X c, c.id > 1) WITHIN 5")
    asked: list[int] = []
    times = Events.times
    monkeypatch.setattr(Events, "times", lambda self, at: asked.append(len(at)) or times(self, at))
    run(plans, cuboid("q1"), cuboid("q2"), cuboid("q3"))
    assert asked == [2, 1, 1]


def test_sources_go_when_nobody_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = compiled(q1="SEQ(X x, C c) WITHIN 9", q2="SEQ(A x, C c) WITHIN 9", q3="SEQ(B x, C c) WITHIN 9")
    seen: list[int] = []
    reused = Cube.reused

    def watched(self: Cube, plan: Plan, source: Results, how: tuple[w.Action, ...]) -> Results:
        seen.append(len(source.held))
        return reused(self, plan, source, how)

    monkeypatch.setattr(Cube, "reused", watched)
    found = run(
        plans,
        cuboid("q1"),
        cuboid("q2", "q1", w.Retype("x", ("A",))),
        cuboid("q3", "q1", w.Retype("x", ("B",))),
    )
    assert seen == [len(found["q1"])] * 2  # type: ignore[index]


@pytest.mark.parametrize("most", [0, 3, 8, 9])
def test_what_is_too_large_is_computed_alone(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = compiled(
        q1="SEQ(X x, C c) WITHIN 9", q2="SEQ(X x, C c, D d) WITHIN 9", q3="SEQ(X x, C c, D d, C e) WITHIN 9"
    )
    window = plans["q1"].query.window
    monkeypatch.setattr(execute, "MOST", most)
    found = run(
        plans,
        cuboid("q1"),
        cuboid("q2", "q1", w.Insert(part("d", "D"), 2, (), window)),
        cuboid("q3", "q2", w.Insert(part("e", "C"), 3, (), window)),
    )
    for name, plan in plans.items():
        assert found[name].rows() == plan.run(EVENTS).rows()  # type: ignore[index]


def test_long_windows_are_sorted_in_passes() -> None:
    """Matches too wide to be one number each."""
    columns = [np.array(c, np.int64) for c in ([5, 0, 3, 0], [2**17, 7, 2**18, 9], [2**19, 2**20, 2**20, 2**20])]
    lexical = held.in_lexical_order(columns)
    rows = list(zip(*(c.tolist() for c in columns), strict=True))
    assert list(zip(*(c.tolist() for c in lexical.columns), strict=True)) == sorted(rows)


@pytest.mark.parametrize("module", [stacks])
def test_examples_run(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("ties", ["strict", "arrival"])
@pytest.mark.parametrize("window", ["40", "60 EVENTS"])
def test_long_lists_with_one_more_event(ties: str, window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources with many matches for each event: listed event by event, many rows at once."""
    r = Random(7)
    ts = sorted(r.randrange(1000) for _ in range(1500))
    events = {"ts": ts, "type": [r.choice("AABBCD") for _ in ts]}
    schema = qc.Schema({}, ties=ties)  # type: ignore[arg-type]
    queries = {
        p: f"PATTERN SEQ({', '.join(f'{t} {t.lower()}' for t in p)}) WITHIN {window}" for p in ("AB", "ABC", "ABD")
    }
    used = []
    by_event = listing.by_event
    monkeypatch.setattr(listing, "by_event", lambda *given: (used.append(given), by_event(*given))[1])
    found = qc.cube(queries, schema, share="top_down").run(events)
    for name, text in queries.items():
        own = qc.compile(text, schema).run(events)
        assert len(found[name]) == len(own) > 1000
        for mine, other in zip(found[name].bound, own.bound, strict=True):
            assert mine.held.tolist() == other.held.tolist()
    assert len(used) == 2
