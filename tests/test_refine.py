"""Plans that are made again from the data: the same matches, better shapes, and explain says so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local import refine
from quercus.backends.local.analyze import run_and_analyze
from tests.generate import valid
from tests.test_engine import table

SCHEMA = qc.Schema({"id": "int64", "x": "float64", "name": "string"}, time_unit="ms")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[refine.Again]]:
    """Every run plans again, however little there is to gain; what was planned is kept."""
    made: list[refine.Again] = []
    planned = qc.Plan.planned_again

    def keep(plan: qc.Plan, observed: object, best: object = None) -> qc.Plan:
        again = planned(plan, observed, best)  # type: ignore[arg-type]
        made.append(refine.Again(again, ""))
        return again

    monkeypatch.setattr(refine, "LEAST", -1.0)
    monkeypatch.setattr(refine, "WHOLE", -1.0)
    monkeypatch.setattr(refine, "ORDERED", -1.0)
    monkeypatch.setattr(refine, "GAIN", -1.0)
    monkeypatch.setattr(refine, "_is_open", lambda root: True)
    monkeypatch.setattr(qc.Plan, "planned_again", keep)
    return made


@pytest.mark.parametrize("first", [810_000, 810_100, 810_200])
def test_planning_again_changes_no_match(first: int, eager: list[refine.Again]) -> None:
    for sample, _ in valid(range(first, first + 100)):
        events = table(sample.events)
        own = qc.compile(sample.query, sample.schema()).run(events)
        asked = qc.compile(sample.query, sample.schema(), shape="stack").run(events)
        assert own.rows() == asked.rows(), sample.query
    assert len(eager) > 20


def skewed(n: int = 30_000) -> pa.Table:
    """Many A and B, few C and D."""
    r = np.random.default_rng(4)
    types = r.choice(["A", "B", "C", "D"], n, p=[0.48, 0.48, 0.02, 0.02])
    ids = r.integers(0, 500, n)
    return pa.table(
        {"ts": np.arange(n), "type": pa.array(types), "id": ids, "x": r.random(n), "name": pa.array(ids.astype(str))}
    )


@pytest.mark.parametrize("equal", ["c.id = d.id", "c.name = d.name"])
def test_the_data_decide_the_shape(equal: str) -> None:
    query = f"PATTERN SEQ(A a, B b, C c, D d, {equal}, a.x < b.x) WITHIN 200 ms"
    plan = qc.compile(query, SCHEMA)
    ran, analysis = run_and_analyze(plan, skewed())
    assert "planned again" in plan.explain(analyze=skewed())
    assert analysis.again.startswith("30,000 events in 4 buffers, 2 conditions tried on samples")
    (chosen,) = (a for a in ran.alternatives() if a.chosen)
    assert chosen.shape in ("a;(b;(c;d))", "(a;b);(c;d)")
    assert ran.run(skewed()).rows() == qc.compile(query, SCHEMA, shape="stack").run(skewed()).rows()


def test_what_was_asked_for_is_kept() -> None:
    query, events = "PATTERN SEQ(A a, B b, C c, D d, c.id = d.id, a.x < b.x) WITHIN 200 ms", skewed()
    for plan in (qc.compile(query, SCHEMA, shape="left"), qc.compile(query, SCHEMA, stats=qc.Stats.collect(events))):
        ran, analysis = run_and_analyze(plan, events)
        assert ran is plan
        assert analysis.again == ""


def test_small_runs_are_left_alone() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, C c, D d, c.id = d.id) WITHIN 200 ms", SCHEMA)
    assert run_and_analyze(plan, skewed(200))[1].again == ""
    chain = qc.compile("PATTERN SEQ(A a, B b, C c) WITHIN 100 ms", SCHEMA)
    assert run_and_analyze(chain, skewed())[1].again == ""


def test_what_was_found_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs look at the data, the second more closely; later ones over about as many events do not."""
    looks: list[float] = []
    refined = refine.refined

    def count(*args: object) -> refine.Again | None:
        looks.append(args[-1])  # type: ignore[arg-type]
        return refined(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(refine, "refined", count)
    query = "PATTERN SEQ(A a, B b, C c, D d, c.id = d.id, a.x < b.x) WITHIN 200 ms"
    plan, events = qc.compile(query, SCHEMA), skewed()
    expected = qc.compile(query, SCHEMA, shape="stack").run(events).rows()
    assert all(plan.run(events).rows() == expected for _ in range(4))
    assert looks == [1.0, refine.AGAIN]
    plan.run(skewed(31_000))
    assert looks == [1.0, refine.AGAIN]
    plan.run(skewed(60_000))
    plan.run(skewed(60_000), limits=qc.Limits(max_state_bytes=1 << 30))
    assert looks == [1.0, refine.AGAIN, 1.0, 1.0]
    assert plan == qc.compile(query, SCHEMA)


def test_another_stream_does_not_get_a_wrong_answer() -> None:
    """A plan that was made for other events of the same number still finds what there is."""
    query = "PATTERN SEQ(A a, B b, C c, c.id = b.id, a.x < b.x) WITHIN 100 ms"
    plan, one = qc.compile(query, SCHEMA), skewed()
    other = one.set_column(2, "id", pa.array(np.zeros(len(one), np.int64)))
    for events in (one, one, other, one):
        assert plan.run(events).rows() == qc.compile(query, SCHEMA, shape="stack").run(events).rows()
