"""Kleene sets are ranges: a match costs the same however many elements they have, and listing them changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.base import Limits
from quercus.backends.local import threads
from quercus.backends.local.events import load
from quercus.backends.local.outputs import Bound
from quercus.backends.local.run import find, run_plan
from quercus.result import Matches
from tests.generate import valid

SCHEMA = qc.Schema({"id": "int64", "x": "float64"})
MANY, SETS = 100, 10_000
WINDOW = 1_000_000

Sets = tuple[Any, Any, Any]


def events(types: list[str], **columns: list[Any]) -> pa.Table:
    n = len(types)
    filled = {"id": [0] * n, "x": [0.5] * n} | columns
    return pa.table({"ts": list(range(n)), "type": types, **filled})


def written(monkeypatch: pytest.MonkeyPatch, query: str, table: pa.Table, **options: Any) -> tuple[list[Bound], int]:
    """What a run binds, and the bytes that its matcher wrote for sets."""
    outputs: list[Sets] = []
    buffers: list[Any] = []
    run: Callable[..., Any] = threads.Matchers.run

    def watched(self: threads.Matchers, *given: Any) -> Any:
        found = run(self, *given)
        buffers.extend(b.row for b in self.data.buffers)
        outputs.extend(found[2])
        return found

    monkeypatch.setattr(threads.Matchers, "run", watched)
    bound = find(qc.compile(query, SCHEMA), load(table, SCHEMA), Limits(), **options)
    arrays = {id(a): a for sets in outputs for a in sets if not any(a is b for b in buffers)}
    return bound, sum(a.nbytes for a in arrays.values())


TRAIL = ["A"] * MANY + ["B"] * SETS
AROUND = [*["A"] * 10, *["B"] * SETS, *["C"] * 10]


@pytest.mark.parametrize(
    ("pattern", "types"),
    [
        ("SEQ(A a, B+ b)", TRAIL),
        ("SEQ(A a, B* b)", TRAIL),
        ("SEQ(A a, B+ b, C c)", AROUND),
        ("SEQ(A a, B+ b, C c, [id])", AROUND),
        ("SEQ(A a, B+ b, C c, count(b) > 3)", AROUND),
        ("SEQ(A a, B+ b, !D d, C c)", AROUND),
        ("AND(A a, SEQ(B+ b, C c))", AROUND),
        ("SEQ(B+ b, C c)", ["B"] * SETS + ["C"] * MANY),
    ],
)
def test_large_sets_cost_two_numbers(monkeypatch: pytest.MonkeyPatch, pattern: str, types: list[str]) -> None:
    """100 matches of 10,000 elements each write 1,600 bytes, not 8 MB."""
    bound, size = written(monkeypatch, f"PATTERN {pattern} WITHIN {WINDOW}", events(types))
    b = next(b for b in bound if b.var == "b")
    assert len(b) == MANY
    assert b.sizes.tolist() == [SETS] * MANY
    assert size == 2 * 8 * MANY
    assert b.starts is not None
    assert b.ends is not None
    assert b.starts.nbytes + b.ends.nbytes + b.held.nbytes <= 2 * 8 * MANY + 8 * SETS  # the buffer's rows, shared
    assert len(b.rows) == MANY * SETS


def test_several_threads_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    table = events(["A"] * 6_000 + ["B"] * 500)
    bound, size = written(monkeypatch, f"PATTERN SEQ(A a, B+ b) WITHIN {WINDOW}", table, threads=2)
    assert size == 2 * 8 * 6_000
    assert len(bound[1].held) == 500
    assert bound[1].sizes.tolist() == [500] * 6_000


def test_holes_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where conditions leave out elements of some sets, those are listed, and the others copied once at the most."""
    types = [*["A"] * 10, *["B"] * 1_000]
    table = events(types, id=[*[5] * 9, 999, *range(1_000)])
    bound, size = written(monkeypatch, f"PATTERN SEQ(A a, B+ b, b.id != a.id) WITHIN {WINDOW}", table)
    assert bound[1].sizes.tolist() == [999] * 10
    assert size == 8 * (2 * 10 + 9 * 999 + 999)
    assert bound[1].one(0) == tuple(range(10, 1_009))  # it ends first
    assert bound[1].one(9) == tuple(r for r in range(10, 1_010) if r != 15)
    _, size = written(monkeypatch, f"PATTERN SEQ(A a, B+ b, b.id >= a.id) WITHIN {WINDOW}", table)
    assert size == 2 * 8 * 10  # what is left has no holes


@pytest.mark.parametrize("pattern", ["SEQ(A a, B+ b, C c)", "SEQ(A a, B+ b, C c, [id])"])
def test_a_push_copies_what_its_sets_cover_once(pattern: str) -> None:
    """The buffers of a stream move on, so that a result has rows of its own: once, not once a match."""
    s = qc.compile(f"PATTERN {pattern} WITHIN {WINDOW}", SCHEMA).stream()
    s.push(events(["A"] * 10 + ["B"] * SETS))
    last = {"ts": [SETS + 20] * 10, "type": ["C"] * 10, "id": [0] * 10, "x": [0.0] * 10}
    found = s.push(last)
    b = found.bound[1]
    assert (len(found), len(b.held), b.starts is not None and b.starts.nbytes) == (100, SETS, 800)
    s.push({"ts": [2 * WINDOW + 50], "type": ["B"], "id": [0], "x": [0.0]})  # everything is purged
    s.push({"ts": [2 * WINDOW + 50] * SETS, "type": ["B"] * SETS, "id": [0] * SETS, "x": [0.0] * SETS})
    assert all(b.one(i) == tuple(range(10, SETS + 10)) for i in (0, 99))


def test_sets_far_apart_are_copied_one_by_one() -> None:
    """A push whose sets are small and far from each other copies them, and not what lies between."""
    schema = qc.Schema({"id": "int64"})
    s = qc.compile("PATTERN SEQ(SEQ(A a, B+ b) WITHIN 2, C c) WITHIN 100000", schema).stream()
    types = ["A", *["B"] * 50_000, "A", "B"]
    s.push({"ts": list(range(len(types))), "type": types, "id": [0] * len(types)})
    found = s.push({"ts": [60_000], "type": ["C"], "id": [0]})
    assert [(m["a"], m["b"]) for m in found.rows()] == [(0, [1, 2]), (50_001, [50_002])]
    assert len(found.bound[1].held) == 3


def test_windows_cut_long_ranges_into_runs() -> None:
    """Runs that overlap, each maximal, as the definition has them."""
    schema = qc.Schema({})
    random = Random(3)
    for _ in range(200):
        ts = sorted(random.randrange(40) for _ in range(random.randrange(1, 30)))
        width = random.randrange(1, 8)
        found = qc.compile(f"PATTERN B+ b WITHIN {width}", schema).run({"ts": ts, "type": ["B"] * len(ts)})
        fitting = [[j for j, t in enumerate(ts) if j >= i and t <= ts[i] + width] for i in range(len(ts))]
        maximal = [r for i, r in enumerate(fitting) if i == 0 or fitting[i - 1][-1] < r[-1]]
        assert [m["b"] for m in found.rows()] == maximal


FUNCTIONS = "count(b) AS n, first(b).x AS f, last(b).id AS l, sum(b.x) AS s, sum(b.id) AS t, avg(b.x) AS g, "
FUNCTIONS += "avg(b.id) AS h, min(b.x) AS m, max(b.id) AS o, min(b.type) AS p"
TOTALS = "COUNT(b) AS n, SUM(b.x) AS s, SUM(b.id) AS t, AVG(b.x) AS g, AVG(b.id) AS h, MIN(b.x) AS m, MAX(b.id) AS o"


def one_by_one(found: Matches) -> Matches:
    """The same with every set listed."""
    bound = [Bound.listed(b.var, b.rows, b.offsets, b.absent) if b.offsets is not None else b for b in found.bound]
    return Matches(found.answer.table, found.schema, found.query, bound)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("pattern", ["SEQ(A a, B+ b)", "SEQ(A a, B* b, C c)", "SEQ(B+ b, C c, [id])", "AND(A+ b, C c)"])
def test_functions_of_ranges_are_those_of_elements(pattern: str, seed: int) -> None:
    """To the last bit."""
    random = Random(seed)
    n = 120
    ids = random.choices([None, 0, 1, 2, 3, 2**62, -(2**63)], k=n)
    floats = random.choices([None, 0.1, 0.2, 1e16, -1e16, 3.3, float("nan"), -0.0], [2, 9, 9, 1, 1, 9, 0.1, 1], k=n)
    table = events(random.choices("ABBBC", k=n), id=ids, x=floats)
    for query in (
        f"PATTERN {pattern} WITHIN 30 RETURN {FUNCTIONS}",
        f"PATTERN {pattern} WITHIN 30 AGG {TOTALS}",
        f"PATTERN {pattern} WITHIN 30 AGG {TOTALS} GROUPBY {'c' if 'C c' in pattern else 'a'}.id",
    ):
        found = run_plan(qc.compile(query, SCHEMA), table, Limits(), listed=True)
        assert str(found.to_arrow().to_pylist()) == str(one_by_one(found).to_arrow().to_pylist())
        sums = [floats_of(m["b"], floats) for m in found.rows()]  # type: ignore[arg-type]
        if "RETURN" in query:
            assert str(found.to_arrow()["s"].to_pylist()) == str(sums)


def floats_of(rows: list[int], floats: list[float | None]) -> float | None:
    there = [v for v in (floats[r] for r in rows) if v is not None]
    total = 0.0
    for v in there:
        total += v
    return total if there else None


@pytest.mark.parametrize("first", range(820_000, 820_300, 100))
def test_listing_changes_nothing(first: int) -> None:
    """Random queries: rows, columns and the first few, of ranges and of elements."""
    for drawn, _ in valid(range(first, first + 100)):
        plan = qc.compile(drawn.query, drawn.schema())
        if any(v.sign for v in plan.query.variables if hasattr(v, "sign")):
            found = plan.run(drawn.events)
            listed = one_by_one(found)
            assert found.rows() == listed.rows()
            assert str(found.to_arrow().to_pylist()) == str(listed.to_arrow().to_pylist())
            order = np.random.default_rng(first).permutation(len(found.bound[0]))
            for b, c in zip(found.bound, listed.bound, strict=True):
                assert [b.take(order).one(i) for i in range(len(b))] == [c.take(order).one(i) for i in range(len(b))]
                assert [b.identity(i) for i in range(len(b))] == [c.identity(i) for i in range(len(c))]
                assert [b.narrowed.one(i) for i in range(len(b))] == [b.one(i) for i in range(len(b))]
                assert all(a.tolist() == d.tolist() for a, d in zip(b.ends_of(), c.ends_of(), strict=True))
