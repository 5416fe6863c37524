"""`qc.cube`: what it shows, how one moves in it, and, over events, that each query returns what it returns alone."""

from __future__ import annotations

from collections import Counter
from math import inf
from pathlib import Path
from random import Random

import numpy as np
import pytest

import quercus as qc
from quercus import cubes
from quercus.backends.local.cube import execute
from quercus.compiler.cube import alone
from quercus.compiler.cube.order import STRATEGIES
from tests import reference
from tests.cube.test_refine import FIGURE_1, TRAVEL
from tests.cube.workloads import workload
from tests.reference_stream import Options

FOLDER = Path(__file__).parent
SCHEMA = qc.Schema({"id": "int64", "age": "int64"}, hierarchy=TRAVEL, time_unit="s")
EVENTS = [
    {"ts": 0, "type": "DHospital", "id": 1, "age": 70},
    {"ts": 60, "type": "GBusStation", "id": 1, "age": 30},
    {"ts": 90, "type": "DBusStation", "id": 2, "age": 65},
    {"ts": 120, "type": "AHospital", "id": 1, "age": 30},
    {"ts": 150, "type": "DShelter", "id": 1, "age": 30},
    {"ts": 180, "type": "THospital", "id": 1, "age": 30},
    {"ts": 200, "type": "TBusStation", "id": 2, "age": 65},
    {"ts": 240, "type": "THospital", "id": 2, "age": 65},
]
OPTIONS = Options(time_unit="s", hierarchy=TRAVEL)


def figure_1(share: str = "chase", tail: str = "WITHIN 48 h") -> qc.Cube:
    queries = {name: f"PATTERN {q} {tail}" for name, q in FIGURE_1.items()}
    return qc.cube(queries, SCHEMA, share=share)  # type: ignore[arg-type]


# What it shows --------------------------------------------------------------------------------------------------------

STATS = qc.Stats(
    rates={"DBusStation": 1e-3, "DHospital": 1e-4, "GBusStation": 1e-5, "AHospital": 1e-4, "THospital": 1e-5}
)


def shown() -> qc.Cube:
    """A cube in which everything happens: queries alone, and from others by several cases."""
    queries = {name: f"PATTERN {q} WITHIN 48 h" for name, q in FIGURE_1.items()}
    queries["keyed"] = "PATTERN SEQ(TX a, OK b, [id]) WHERE a.age > 60 WITHIN 24 h"
    queries["sets"] = "PATTERN SEQ(D, T+ t) WITHIN 48 h"
    queries["set"] = "PATTERN SEQ(D, T+ b) WITHIN 48 h RETURN count(b)"
    queries["total"] = "PATTERN SEQ(TX, OK) WITHIN 48 h AGG COUNT(*)"
    return qc.cube(queries, SCHEMA, stats=STATS)


@pytest.mark.parametrize("name", ["explain.txt", "picture.dot"])
def test_it_shows(name: str, updating: bool) -> None:
    cube = shown()
    text = f"{cube.explain()}\n" if name == "explain.txt" else cube.graph().source
    path = FOLDER / name
    if updating:
        path.write_text(text)
    assert path.read_text() == text


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    drawn = figure_1().render(tmp_path / "cube.svg").read_text()
    assert "concept &amp; pattern" in drawn
    assert "SEQ(G, !DBusStation, A, T)" in drawn
    bundle = figure_1()._repr_mimebundle_()
    assert bundle["text/plain"].startswith("cube\n")
    assert bundle["image/svg+xml"].startswith("<?xml")


def test_results_show_themselves() -> None:
    cube = qc.cube({"q": "PATTERN SEQ(A, B) WITHIN 5", "n": "PATTERN SEQ(A, B) WITHIN 5 AGG COUNT(*)"}, qc.Schema({}))
    shown = cube.run({"ts": [1, 2, 3], "type": ["A", "B", "B"]})._repr_html_()
    assert "<td>q</td><td>2</td>" in shown
    assert "2 queries" in shown


def test_what_there_is() -> None:
    cube = figure_1()
    assert cube.names == tuple(FIGURE_1)
    assert len(cube) == 7
    assert cube.queries["q2"] == "PATTERN SEQ(D, T) WITHIN 48 h"
    assert cube.plans["q2"] == qc.compile(cube.queries["q2"], SCHEMA)
    assert {c.name for c in cube.ordering.cuboids} == set(FIGURE_1)
    assert cube.cuboid("q1").name == "q1"
    assert cube["q1"] == qc.CubeQuery("q1", cube.queries["q1"])
    assert repr(cube) == "<Cube: 7 queries (q1, q2, q3, q4, q5, q6, q7), shared by chase>"


@pytest.mark.parametrize(
    ("queries", "options", "code", "said"),
    [
        ({}, {}, "E804", "at least one query"),
        (["PATTERN A WITHIN 5"], {}, "E804", "at least one query"),
        ({"q": "PATTERN A WITHIN 5"}, {"share": "chas"}, "E702", "did you mean 'chase'?"),
        ({"q": "PATTERN A WITHIN 5", "r": "PATTERN A a WHERE a.aeg > 3 WITHIN 5"}, {}, "E104", "r: no attribute 'aeg'"),
    ],
)
def test_what_is_refused(queries: object, options: dict[str, str], code: str, said: str) -> None:
    with pytest.raises(qc.QueryError) as caught:
        qc.cube(queries, SCHEMA, **options)  # type: ignore[arg-type]
    assert (caught.value.code, said in str(caught.value)) == (code, True), str(caught.value)


def test_names_that_are_not_there() -> None:
    cube = figure_1()
    for wrong in (
        lambda: cube["q8"],
        lambda: cube.cuboid("q8"),
        lambda: cube.concept_roll_up("q8", [("D", "TX", 1)]),
        lambda: cube.slice({"q8": "D.age > 3"}),
        lambda: cube.concept_roll_up("q2", [("D", "TX", 1)], to="q1"),
    ):
        with pytest.raises(qc.QueryError) as caught:
            wrong()
        assert caught.value.code == "E804"
    assert cube.names == tuple(FIGURE_1)


# Moving ---------------------------------------------------------------------------------------------------------------


def test_an_operation_leads_to_a_query_that_is_there() -> None:
    cube = figure_1()
    assert cube.pattern_drill_down("q3", [("!D", 2)]).name == "q7"
    assert cube.concept_roll_up("q2", [("D", "TX", 1), ("T", "OK", 2)]).name == "q1"
    assert cube.pattern_roll_up("q6", [("G", 1), ("A", 2)]).name == "q2"
    assert len(cube) == 7


def test_an_operation_adds_a_query() -> None:
    cube = figure_1()
    new = cube.concept_drill_down("q1", [("TX", "D", 1)])
    assert (new.name, new.text, new.came_from, new.operation) == (
        "q1.1",
        "PATTERN SEQ(D, OK)\nWITHIN 2 d",
        "q1",
        "concept_drill_down",
    )
    assert cube["q1.1"] is new
    assert len(cube) == 8
    assert ("q1", "q1.1", "concept") in {(r.general, r.special, r.kind) for r in cube.refinements}
    named = cube.pattern_roll_up("q3", [("A", 2)], to="direct")
    assert named.name == "direct"
    assert cube.names[-2:] == ("q1.1", "direct")
    assert "\n  direct\n    PATTERN SEQ(G, T)\n" in cube.explain()


def test_a_slice_asks_every_event() -> None:
    cube = figure_1().slice("age > 60 and type <> 'age'")
    assert cube.queries["q7"].splitlines() == [
        "PATTERN SEQ(G, !D, A, T)",
        "WHERE " + " and ".join(f"({v}.age > 60 and {v}.type <> 'age')" for v in ("G", "D", "A", "T")),
        "WITHIN 2 d",
    ]
    kept = [e for e in EVENTS if e["age"] > 60]
    for name, text in cube.queries.items():
        whole = figure_1().queries[name]
        rows = reference.matches(text, EVENTS, OPTIONS)
        expected = reference.matches(whole, kept, OPTIONS)
        assert [{v: EVENTS[r[v]] for v in r} for r in rows] == [{v: kept[r[v]] for v in r} for r in expected]


@pytest.mark.parametrize("condition", ["age > 3) or (id = 2", "(age > 3", "age > 3 and name = 'x"])
def test_a_slice_is_one_condition(condition: str) -> None:
    """Brackets are put around it: it may not close them."""
    for given in (condition, {"q2": condition}):
        with pytest.raises(qc.QueryError, match=r"closes nothing|is not closed") as e:
            figure_1().slice(given)
        assert condition in str(e.value)


def test_a_slice_of_some_queries() -> None:
    cube = figure_1().slice({"q2": "D.age > 60"})
    assert cube.queries["q2"] == "PATTERN SEQ(D, T)\nWHERE D.age > 60\nWITHIN 2 d"
    assert cube.queries["q1"] == figure_1().queries["q1"]
    with pytest.raises(qc.QueryError) as caught:
        figure_1().slice("price > 10")
    assert caught.value.code == "E104"
    with pytest.raises(qc.QueryError) as caught:
        figure_1().slice(3)  # type: ignore[arg-type]
    assert caught.value.code == "E801"


# Tables ---------------------------------------------------------------------------------------------------------------


def test_a_table_of_levels() -> None:
    cube = figure_1()
    table = cube.table("q1", EVENTS, 1)
    assert table.column_names == ["level", "TX", "count"]
    for row in table.to_pylist():
        text = f"PATTERN SEQ({row['TX']} a, OK) WITHIN 48 h"
        assert row["count"] == len(reference.matches(text, EVENTS, OPTIONS)), row
    assert [(r["level"], r["TX"]) for r in table.to_pylist()] == [
        (0, "TX"),
        (1, "D"),
        (1, "G"),
        (1, "A"),
        (2, "DBusStation"),
        (2, "DHospital"),
        (2, "DShelter"),
        (2, "GBusStation"),
        (2, "AHospital"),
    ]


def test_a_table_of_two_positions_with_groups_and_aggregates() -> None:
    cube = qc.cube(
        {
            "q": "PATTERN SEQ(TX a, !DShelter, OK b) WITHIN 48 h "
            "AGG COUNT(*) AS n, SUM(b.age) AS s, MAX(a.age) AS m GROUPBY a.id"
        },
        SCHEMA,
    )
    table = cube.table("q", EVENTS)
    assert table.column_names == ["a_level", "a", "b_level", "b", "a.id", "n", "s", "m"]
    assert table.num_rows > 10
    for row in table.to_pylist():
        text = (
            f"PATTERN SEQ({row['a']} a, !DShelter, {row['b']} b) WHERE a.id = {row['a.id']} WITHIN 48 h "
            "AGG COUNT(*) AS n, SUM(b.age) AS s, MAX(a.age) AS m"
        )
        assert reference.aggregate(text, EVENTS, OPTIONS) == [{k: row[k] for k in ("n", "s", "m")}], row


def test_a_table_that_cannot_be() -> None:
    cube = qc.cube({"q": "PATTERN SEQ(TX a, !D, OK b) WITHIN 48 h AGG AVG(a.age)"}, SCHEMA)
    for positions, code in ((None, "E801"), (4, "E802"), (0, "E802")):
        with pytest.raises(qc.QueryError) as caught:
            cube.table("q", EVENTS, positions)
        assert caught.value.code == code
    with pytest.raises(qc.QueryError) as caught:
        figure_1().table("q7", EVENTS, 2)
    assert caught.value.code == "E801"


# Over events ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", STRATEGIES)
def test_each_query_returns_what_it_returns_alone(share: str) -> None:
    cube = figure_1(share)
    result = cube.run(EVENTS)
    assert list(result) == list(cube.names)
    for name, plan in cube.plans.items():
        assert result[name].rows() == plan.run(EVENTS).rows()
        assert result[name].to_arrow() == plan.run(EVENTS).to_arrow()
    assert result.sizes["q1"] == len(result["q1"])
    assert f"{result.sizes['q1']:,} rows (~" in cube.explain()
    assert cube.ordering is result.ordering


def test_a_new_query_is_run_with_the_others() -> None:
    cube = figure_1()
    cube.run(EVENTS)
    new = cube.concept_drill_down("q1", [("TX", "D", 1)])
    assert cube.run(EVENTS)[new.name].rows() == qc.compile(new.text, SCHEMA).run(EVENTS).rows()


@pytest.mark.parametrize("share", STRATEGIES)
def test_random_workloads_return_what_they_return_alone(share: str) -> None:
    reused = 0
    for seed in range(40):
        w = workload(seed, size=2 + seed % 11, length=14)
        cube = qc.cube(w.queries, w.schema(), share=share)  # type: ignore[arg-type]
        result = cube.run(w.events)
        reused += sum(c.source is not None for c in result.ordering.cuboids)
        for name, text in w.queries.items():
            expected = reference.canonical(reference.matches(text, w.events, w.options))
            assert reference.canonical(result[name].rows()) == expected, f"{name}: {cube.cuboid(name)}\n{w}"
    assert (reused > 30) == (share != "independent")


def test_what_is_counted_first_is_what_it_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries that are alone and no source are counted by running totals, and listed when somebody asks."""
    monkeypatch.setattr(alone, "COUNTED", inf)  # counting is worth it always
    seen: Counter[str] = Counter()
    for seed in range(200):
        w = workload(seed, size=2 + seed % 11, length=14)
        cube = qc.cube(w.queries, w.schema())
        result = cube.run(w.events)
        for name, plan in cube.plans.items():
            expected, c = plan.run(w.events), cube.cuboid(name)
            what = f"seed {seed}, {name}: {c}\n{plan.text}"
            assert len(result[name]) == len(expected) == result.sizes[name], what
            assert result[name].rows() == expected.rows(), what
            assert result[name].to_arrow().equals(expected.to_arrow()), what
            assert len(result[name]) == len(expected), what
            assert not c.counted or (c.source is None and all(o.source != name for o in cube.ordering.cuboids)), what
            seen["counted"] += c.counted
            seen["counted, with matches"] += c.counted and len(expected) > 0
    assert seen["counted, with matches"] > 30, seen


def test_very_many_matches_are_counted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of matches hold all the same, at once."""
    monkeypatch.setattr(alone, "COUNTED", 0.2)
    events = {"ts": list(range(1500)), "type": ["A", "B", "C"] * 500}
    queries = {"q": "PATTERN SEQ(A, B, C) WITHIN 300", "r": "PATTERN SEQ(B, C, A) WITHIN 300"}
    cube = qc.cube(queries, qc.Schema({}))
    result = cube.run(events)
    assert [c.counted for c in cube.ordering.cuboids] == [True, True]
    assert "alone, counted first" in cube.explain()
    expected = qc.compile(queries["q"], qc.Schema({})).run(events)
    assert len(result["q"]) == len(expected)
    assert all((a.held == b.held).all() for a, b in zip(result["q"].bound, expected.bound, strict=True))
    monkeypatch.setattr(alone, "COUNTED", inf)
    changed = {"ts": np.arange(1500), "type": np.array(["A", "B", "C"] * 500), "v": np.zeros(1500, np.int64)}
    same = "PATTERN SEQ(A a, B b, C c, [v]) WITHIN 300"
    later = qc.cube({"q": same}, qc.Schema({"v": "int64"})).run(changed)["q"]
    changed["v"][:] = np.arange(1500)
    with pytest.raises(qc.DataError, match="changed since"):
        later.rows()
    with pytest.raises(qc.LimitExceeded, match="than the limit of 1,000,000"):
        cube.run(events, limits=qc.Limits(max_matches=1_000_000))
    with cube.stream() as s:
        s.push({"ts": [0, 1, 2], "type": ["A", "B", "C"]})
        assert "counted first" not in s.explain()


@pytest.mark.parametrize("share", STRATEGIES)
def test_random_totals_are_what_they_are_alone(share: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries with AGG among others: totalled event by event, listed, computed from each other, more than expected."""
    totals = (
        "",
        " AGG COUNT(*) AS n",
        " AGG COUNT(*) AS n, SUM(z.v) AS s, MIN(z.id) AS m",
        " AGG COUNT(*) GROUPBY z.id",
    )
    seen: Counter[str] = Counter()
    for seed in range(60):
        r = Random(seed)
        w = workload(seed, size=2 + seed % 11, length=14)
        plans = {n: qc.compile(q, w.schema()) for n, q in w.queries.items()}
        last = {n: plan.query.variables[-1].var for n, plan in plans.items()}
        queries = {n: q + r.choice(totals).replace("z.", f"{last[n]}.") for n, q in w.queries.items()}
        monkeypatch.setattr(alone, "CLEARLY", r.choice([0.0, 1.0, inf]))
        monkeypatch.setattr(execute, "MANY", r.choice([0, 1e6]))
        monkeypatch.setattr(execute, "OFTEN", r.choice([0, 8]))
        cube = qc.cube(queries, w.schema(), share=share)  # type: ignore[arg-type]
        result = cube.run(w.events)
        for name, plan in cube.plans.items():
            expected = plan.run(w.events)
            what = f"seed {seed}, {name}: {cube.cuboid(name)}\n{plan.text}"
            assert result[name].to_arrow().equals(expected.to_arrow()), what
            assert result[name].rows() == expected.rows(), what
            c = cube.cuboid(name)
            assert c.totalled == (result.sizes[name] < 0), what
            more = "more than expected" in c.reason
            assert c.source is None or not more, what
            seen["totalled"] += c.totalled and not more
            seen["reused"] += c.source is not None and bool(plan.query.aggregates)
            seen["source"] += bool(c.source and cube.plans[c.source].query.aggregates)
            seen["given up"] += c.totalled and more
    assert min(seen[n] for n in ("totalled", "given up")) > 5, seen
    assert share == "independent" or min(seen[n] for n in ("reused", "source")) > 10, seen


def test_what_adds_nothing_costs_nothing() -> None:
    """Where all events of a concept are of one type, the concept's query is that of the type."""
    schema = qc.Schema({}, hierarchy={"X": ["A", "B"]})
    queries = {"wide": "PATTERN SEQ(X x, C c) WITHIN 400", "fine": "PATTERN SEQ(A x, C c) WITHIN 400"}
    for other, source in (("A", "fine"), ("B", None)):
        cube = qc.cube(queries, schema)
        types = [t for _ in range(1000) for t in ("A", "C", other, "C")]
        found = cube.run({"ts": list(range(4000)), "type": types})
        assert cube.cuboid("wide").source == source
        assert (
            found["wide"].rows()
            == qc.compile(queries["wide"], schema).run({"ts": list(range(4000)), "type": types}).rows()
        )


def test_backends_that_cannot_run_cubes_are_refused() -> None:
    with pytest.raises(qc.QueryError) as caught:
        figure_1().run(EVENTS, backend="other")
    assert caught.value.code == "E703"


def test_a_second_run_over_as_many_events_is_ordered_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    cube, ordered = figure_1(), []
    original = cubes.ordering
    monkeypatch.setattr(cubes, "ordering", lambda *given: ordered.append(1) or original(*given))
    first = cube.run(EVENTS)
    second = cube.run(EVENTS)
    assert len(ordered) == 1
    assert second.ordering == first.ordering
    assert {n: m.rows() for n, m in second.items()} == {n: m.rows() for n, m in first.items()}
    cube.run(EVENTS[:-1])
    assert len(ordered) == 2
    cube.pattern_drill_down(cube.names[0], [("!D", 1)], to="more")
    cube.run(EVENTS[:-1])
    assert len(ordered) == 3
