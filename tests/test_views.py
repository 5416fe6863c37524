"""Sub-queries: every strategy gives what the reference gives, in runs and in streams; views hold what they should."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local import threads
from quercus.backends.local.analyze import analyzed
from quercus.ir import tree as t
from quercus.ir.analysis import Actual, places
from tests import generate
from tests.generate import Sample
from tests.nested import Nesting, trades
from tests.reference import canonical
from tests.test_engine import table

STRATEGIES = ("rewrite", "iterative", "aggressive", "passive", "balanced", "index", "auto")
VIEWS = ("aggressive", "passive", "balanced")
SCHEMA = qc.Schema({"id": "int64", "v": "int64"}, time_unit="s")
CHUNK = 25
MATCHES = qc.Limits(max_matches=20_000)


def samples(first: int, count: int, size: int) -> Iterator[Sample]:
    for seed in range(first, first + count):
        yield Nesting(seed).sample(size)


def answer(s: Sample, nested: str, threads: int = 1) -> frozenset[object]:
    plan = qc.compile(s.query, s.schema(), nested=nested)
    return canonical(plan.run(table(s.events), limits=MATCHES, threads=threads).rows())


def streamed(s: Sample, nested: str, r: Random, *, restored: bool) -> frozenset[object]:
    """What a stream of some pushes gives, and whether it gives each match once."""
    plan = qc.compile(s.query, s.schema(), nested=nested)
    size = len(s.events)
    events, cuts = table(s.events), sorted(r.sample(range(size), min(size, r.choice((1, 4, 12)))))
    stream, rows = plan.stream(), []
    for a, b in zip([0, *cuts], [*cuts, len(s.events)], strict=True):
        rows += stream.push(events.slice(a, b - a)).rows()
        if restored and r.random() < 0.3:
            stream = plan.restore(stream.snapshot())
    rows += stream.close().rows()
    found = canonical(rows)
    assert len(found) == len(rows), s
    return found


# One result -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 50, CHUNK))
def test_all_strategies_agree_with_the_reference(first: int) -> None:
    some = 0
    for s in samples(first, CHUNK, 11):
        expected = s.answer()
        some += bool(expected)
        for nested in STRATEGIES:
            assert answer(s, nested) == expected, (nested, s)
    assert some > CHUNK // 4


@pytest.mark.parametrize("first", range(0, 75, CHUNK))
def test_all_strategies_agree_where_intervals_overlap(first: int) -> None:
    for s in samples(1000 + first, CHUNK, 40):
        try:
            expected = answer(s, "rewrite")
        except qc.LimitExceeded:
            continue
        for nested in STRATEGIES[1:]:
            assert answer(s, nested) == expected, (nested, s)


@pytest.mark.parametrize("first", range(0, 50, CHUNK))
def test_random_queries_of_all_kinds(first: int) -> None:
    for s, _ in generate.valid(range(5000 + first, 5000 + first + CHUNK)):
        expected = s.answer()
        for nested in (*VIEWS, "iterative", "rewrite"):
            assert answer(s, nested) == expected, (nested, s)


def test_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST", 2)
    for s in samples(2000, CHUNK, 30):
        expected = answer(s, "rewrite")
        for nested in STRATEGIES:
            assert answer(s, nested, threads=2) == expected, (nested, s)


@pytest.mark.parametrize("restored", [False, True], ids=["pushes", "snapshots"])
def test_streams(restored: bool) -> None:
    for s in samples(3000, CHUNK, 30):
        expected = answer(s, "rewrite")
        for nested in STRATEGIES[1:]:
            assert streamed(s, nested, Random(s.seed), restored=restored) == expected, (nested, s)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(110_000, 111_440, 180))
def test_many_random_queries_in_runs_and_in_streams_with_snapshots(first: int) -> None:
    for s in samples(first, 180, 10):
        expected = s.answer()
        for nested in STRATEGIES:
            assert answer(s, nested) == expected, (nested, s)
            assert streamed(s, nested, Random(s.seed), restored=True) == expected, (nested, s)


# What views do --------------------------------------------------------------------------------------------------------


def run(pattern: str, nested: str, events: pa.Table, window: int = 20) -> tuple[Actual, int]:
    """What the first sub-query did, and how many matches there are."""
    plan = qc.compile(f"PATTERN {pattern} WITHIN {window}", SCHEMA, shape="stack", nested=nested)
    done = analyzed(plan, events)
    subs = [done.nodes[path] for path, n in places(plan.tree.root) if isinstance(n, t.Nest | t.Negation)]
    return subs[0], done.matches


@pytest.mark.parametrize(
    "pattern", ["SEQ(A a, SEQ(B b, C c), D d, E e)", "SEQ(A a, !SEQ(B b, C c, b.v < c.v), D d, E e)"]
)
def test_a_view_finds_each_result_once(pattern: str) -> None:
    events = trades(400)
    fresh, matches = run(pattern, "iterative", events)
    assert matches > 100
    for nested in VIEWS:
        kept, same = run(pattern, nested, events)
        assert same == matches
        assert kept.asked is not None
        assert kept.hits > 0.7 * kept.asked
        assert kept.bytes is not None
        if fresh.asked is not None:
            assert kept.results < fresh.results


def test_passive_and_balanced_leave_out_what_nobody_asks_for() -> None:
    types = ["B", "C"] * 60 + ["A", "B", "C", "D"] + ["B", "C"] * 60
    n = len(types)
    events = pa.table({"ts": range(n), "type": types, "id": [0] * n, "v": [0] * n})
    found = {nested: run("SEQ(A a, SEQ(B b, C c), D d)", nested, events, 50)[0].results for nested in VIEWS}
    assert found["passive"] == found["balanced"] == 1
    assert found["aggressive"] > 100


def test_flags_of_a_negated_sub_query_keep_no_results() -> None:
    passive, _ = run("SEQ(A a, !SEQ(B b, C c), D d)", "passive", trades(400))
    assert passive.results == 0
    assert passive.hits > 0


def test_equal_values_have_a_part_each() -> None:
    events = trades(600)
    tied = "SEQ(A a, SEQ(B b, C c, b.id = a.id, c.id = a.id), D d)"
    for nested in VIEWS:
        kept, matches = run(tied, nested, events)
        assert kept.hits > 0
        assert matches == run(tied, "iterative", events)[1]


def test_views_are_purged() -> None:
    small, large = (run("SEQ(A a, SEQ(B b, C c), D d)", "aggressive", trades(n))[0].bytes for n in (2_000, 8_000))
    assert small is not None
    assert large is not None
    assert large < 2 * small


def test_a_stream_keeps_its_views_from_push_to_push() -> None:
    events = trades(800)
    plan = qc.compile("PATTERN SEQ(A a, SEQ(B b, C c, b.v < c.v), D d, E e) WITHIN 40", SCHEMA, nested="balanced")
    stream = plan.stream()
    for i in range(0, 800, 10):
        stream.push(events.slice(i, 10))
    matcher = stream._engine.matcher
    asked, hits, results, held, most = matcher.tally_sub(0)
    whole, _ = run("SEQ(A a, SEQ(B b, C c, b.v < c.v), D d, E e)", "balanced", events, 40)
    assert hits > 0.8 * asked
    assert results <= 1.2 * whole.results
    assert 0 < held <= most < 20_000


def test_a_view_that_grows_too_large_is_a_limit() -> None:
    plan = qc.compile("PATTERN SEQ(A a, SEQ(B b, C c), D d) WITHIN 900", SCHEMA, nested="aggressive")
    with pytest.raises(qc.LimitExceeded, match="the view of the sub-query of") as caught:
        plan.run(trades(1_000), limits=qc.Limits(max_state_bytes=20_000))
    assert caught.value.limit == "max_state_bytes"


# What the plan says ---------------------------------------------------------------------------------------------------

SAID = [
    ("SEQ(A a, SEQ(B b, C c), D d)", "balanced", "sub-query by balanced: asked for"),
    ("SEQ(A a, SEQ(B b, C+ c), D d)", "balanced", "sub-query by rewrite: its sets are completed with the match around"),
    ("SEQ(SEQ(A a, B b), SEQ(C c, D d))", "passive", "sub-query by rewrite: nothing else is bound before it"),
    ("SEQ(A a, SEQ(B b, SEQ(C c, D d)), E e)", "aggressive", "sub-query by rewrite: its last event begins the search"),
    ("SEQ(A a, !SEQ(B[2] b, C c), D d)", "passive", "by iterative: a set of n inside it is bound event by event"),
    ("SEQ(A a, !SEQ(B b, C c), D d)", "rewrite", "by index: existence alone decides"),
    ("SEQ(A a, SEQ(B b, C c) WITHIN 3, D d)", "rewrite", "sub-query by rewrite"),
]


@pytest.mark.parametrize(("pattern", "nested", "said"), SAID)
def test_explain_says_which_and_why(pattern: str, nested: str, said: str) -> None:
    assert said in qc.compile(f"PATTERN {pattern} WITHIN 9", SCHEMA, nested=nested).explain()


def test_a_join_that_is_asked_for_keeps_its_composites() -> None:
    plan = qc.compile("PATTERN SEQ(A a, SEQ(B b, C c), D d) WITHIN 9", SCHEMA, nested="balanced", shape="left")
    assert "sub-query by rewrite: a join keeps its composites" in plan.explain()
