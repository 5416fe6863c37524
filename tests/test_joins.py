"""Trees of joins run as trees: what each internal buffer compares, builds and holds, counted by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local import joins, threads
from quercus.backends.local.events import load
from quercus.backends.local.joins import Measured
from quercus.backends.local.run import find
from tests import generate
from tests.reference import canonical
from tests.test_engine import table

SCHEMA = qc.Schema({"id": "int64", "f": "float64"})
TREES = ("left", "right", "bushy", "inner")
CHUNK = 100


def stream(types: str, ids: list[int] | None = None, f: list[float | None] | None = None) -> pa.Table:
    """One event a letter, at times 1, 2, 3, ..."""
    n = len(types)
    columns = {"id": pa.array(ids or [0] * n, pa.int64()), "f": pa.array(f or [0.0] * n, pa.float64())}
    return pa.table({"ts": np.arange(1, n + 1), "type": list(types)} | columns)


def ran(query: str, shape: str, events: pa.Table, schema: qc.Schema = SCHEMA) -> tuple[list[Measured], int]:
    """What each join did, and the number of matches."""
    plan = qc.compile(query, schema, shape=shape)
    measured: list[Measured] = []
    found = find(plan, load(events, plan.schema), qc.Limits(), joins=measured)
    return measured, len(found[0].rows)


def counted(query: str, shape: str, events: pa.Table) -> dict[str, tuple[int, int]]:
    """(compared, built) of each join."""
    return {" ".join(m.variables): (m.compared, m.built) for m in ran(query, shape, events)[0]}


# Counts by hand -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "buffers"),
    [
        ("left", {"a b": (3, 3), "a b c": (4, 4)}),
        ("right", {"c d": (3, 3), "b c d": (4, 4)}),
        ("bushy", {"a b": (3, 3), "c d": (3, 3)}),
        ("inner", {"b c": (3, 3), "b c d": (4, 4)}),
    ],
)
def test_each_shape_builds_its_own_buffers(shape: str, buffers: dict[str, tuple[int, int]]) -> None:
    """a1 b2 c3 d4 a5 b6 c7 d8: two neighbours make 3 composites, three 4, all of them 5."""
    got = counted("PATTERN SEQ(A a, B b, C c, D d) WITHIN 20", shape, stream("ABCDABCD"))
    assert got == buffers | {"a b c d": (5, 5)}
    assert list(got)[-1] == "a b c d"


def test_a_window_narrows_what_is_compared_and_built() -> None:
    """a1 b2 c3 a4 b5 c6."""
    query, events = "PATTERN SEQ(A a, B b, C c) WITHIN ", stream("ABCABC")
    assert counted(query + "9", "left", events) == {"a b": (3, 3), "a b c": (4, 4)}
    # c6 reaches back to ends from 2 on: a1 b2 and a1 b5 are looked at, and start too early
    assert counted(query + "4", "left", events) == {"a b": (3, 3), "a b c": (4, 2)}
    assert counted(query + "3", "left", events) == {"a b": (2, 2), "a b c": (2, 2)}
    assert counted(query + "3", "right", events) == {"b c": (2, 2), "a b c": (2, 2)}


def test_a_count_window_narrows_as_well() -> None:
    assert counted("PATTERN SEQ(A a, B b, C c) WITHIN 5 EVENTS", "left", stream("ABCABC")) == {
        "a b": (3, 3),
        "a b c": (4, 2),
    }


def test_and_looks_both_ways() -> None:
    """a1 b2 a3 b4: whichever comes later looks at what came before."""
    assert counted("PATTERN AND(A a, B b) WITHIN 9", "left", stream("ABAB")) == {"a b": (4, 4)}
    assert counted("PATTERN AND(A a, B b) WITHIN 1", "left", stream("ABAB")) == {"a b": (3, 3)}


def test_and_of_one_type_binds_no_event_twice() -> None:
    measured, matches = ran("PATTERN AND(A a, A b) WITHIN 9", "left", stream("AA"))
    assert [(m.compared, m.built) for m in measured] == [(4, 2)]
    assert matches == 2


def test_an_inner_window_ends_at_its_node() -> None:
    """a1 b2 b3 c4 c5 d6: of four pairs of b and c, b2 c5 does not fit."""
    query = "PATTERN SEQ(A a, SEQ(B b, C c) WITHIN 2, D d) WITHIN 100"
    assert counted(query, "left", stream("ABBCCD")) == {"b c": (3, 3), "a b c": (3, 3), "a b c d": (3, 3)}
    assert counted(query, "right", stream("ABBCCD")) == {"b c": (3, 3), "b c d": (3, 3), "a b c d": (3, 3)}


def test_a_condition_is_tested_where_its_variables_meet() -> None:
    events = stream("AABBC", [1, 9, 5, 5, 0])
    query = "PATTERN SEQ(A a, B b, C c, a.id < b.id) WITHIN 9"
    assert counted(query, "left", events) == {"a b": (4, 2), "a b c": (2, 2)}
    assert counted(query, "right", events) == {"b c": (2, 2), "a b c": (4, 2)}


def test_a_negation_in_the_middle_drops_composites_early() -> None:
    """a1 x2 a3 b4 c5 c6: nothing is built on a1."""
    query = "PATTERN SEQ(A a, !X x, B b, C c) WITHIN 9"
    assert counted(query, "left", stream("AXABCC")) == {"a b": (2, 1), "a b c": (2, 2)}
    assert counted(query, "right", stream("AXABCC")) == {"b c": (2, 2), "a b c": (4, 2)}


def test_kleene_leaves_are_not_joined() -> None:
    """The sets are ranges of the leaf buffer, completed on the root's composites."""
    query = "PATTERN SEQ(A a, B+ b, C c, D d) WITHIN 9"
    measured, _ = ran(query, "left", stream("ABBBCD"))
    assert {m.variables: m.built for m in measured} == {("a", "c"): 1, ("a", "c", "d"): 1}
    (found,) = qc.compile(query, SCHEMA, shape="left").run(stream("ABBBCD")).rows()
    assert found == {"a": 0, "b": [1, 2, 3], "c": 4, "d": 5}


def test_combinations_are_taken_last() -> None:
    """a1 b2 b3 b4 c5: one composite, three choices of two."""
    query = "PATTERN SEQ(A a, B[2] b, C c) WITHIN 9"
    measured, _ = ran(query, "right", stream("ABBBC"))
    assert [(m.variables, m.compared, m.built) for m in measured] == [(("a", "c"), 1, 1)]
    found = qc.compile(query, SCHEMA, shape="right").run(stream("ABBBC")).rows()
    assert [m["b"] for m in found] == [[1, 2], [1, 3], [2, 3]]


def test_each_branch_of_an_or_is_joined_by_itself() -> None:
    measured, matches = ran("PATTERN SEQ(A a, OR(B b, SEQ(C c, D d)), E e) WITHIN 9", "left", stream("ABCDE"))
    assert [" ".join(m.variables) for m in measured] == ["a b", "a b e", "a c", "a c d", "a c d e"]
    assert all(m.built == 1 for m in measured)
    assert matches == 2


def test_a_stack_builds_nothing() -> None:
    query = "PATTERN SEQ(A a, B b, C c) WITHIN 9"
    assert counted(query, "stack", stream("ABCABC")) == {}
    assert counted("PATTERN SEQ(A a, B+ b) WITHIN 9", "left", stream("ABAB")) == {}


def test_a_stack_below_a_join_is_joined_from_left_to_right() -> None:
    """Nothing that the planner makes today, but a plan may say so."""
    from attrs import evolve

    from quercus.ir import tree as t

    plan = qc.compile("PATTERN SEQ(A a, AND(B b, C c, D d), E e) WITHIN 9", SCHEMA, shape="left")
    stacked = qc.compile("PATTERN AND(B b, C c, D d) WITHIN 9", SCHEMA, shape="stack").tree.root
    assert isinstance(plan.tree.root, t.Join)
    assert isinstance(plan.tree.root.left, t.Join)
    inside = plan.tree.root.left.right
    assert isinstance(inside, t.Nest)
    left = evolve(plan.tree.root.left, right=evolve(inside, source=stacked))
    mixed = evolve(plan, tree=evolve(plan.tree, root=evolve(plan.tree.root, left=left)))
    measured: list[Measured] = []
    events = stream("ACBDE")
    find(mixed, load(events, SCHEMA), qc.Limits(), joins=measured)
    assert [" ".join(m.variables) for m in measured] == ["b c", "b c d", "a b c d", "a b c d e"]
    assert mixed.run(events).rows() == plan.run(events).rows() == [{"a": 0, "b": 2, "c": 1, "d": 3, "e": 4}]


# Hashing --------------------------------------------------------------------------------------------------------------


def test_an_equality_is_hashed_and_compares_less_than_a_scan() -> None:
    """Of 4 x 4 pairs, 4 have equal ids."""
    events = stream("AAAABBBBC", [1, 2, 3, 4, 1, 2, 3, 4, 0])
    hashed = "PATTERN SEQ(A a, B b, C c, a.id = b.id) WITHIN 99"
    scanned = "PATTERN SEQ(A a, B b, C c, a.id <= b.id, a.id >= b.id) WITHIN 99"
    assert counted(hashed, "left", events)["a b"] == (4, 4)
    assert counted(scanned, "left", events)["a b"] == (16, 4)
    assert counted(hashed.replace("SEQ", "AND"), "left", events)["a b"] == (4, 4)


def test_a_hash_join_stops_at_the_window_and_at_the_order() -> None:
    """b c with one id: c's partners are looked for between the window's edge and the start of (c d)."""
    got = counted("PATTERN SEQ(B b, C c, D d, b.id = c.id) WITHIN 6", "right", stream("BBBCDBCD"))
    assert got["c d"] == (3, 3)
    # c4 d5: b1 b2 b3; c4 d8: b2 b3 (and not b6); c7 d8: b2 b3 b6
    assert got["b c d"] == (8, 8)


def test_null_nan_and_zero_as_keys() -> None:
    nan = float("nan")
    values = [None, nan, 0.0, 2.0, None, nan, -0.0, 2.0, 9.0]
    events = stream("AAAABBBBC", f=values)
    query = "PATTERN SEQ(A a, B b, C c, a.f = b.f) WITHIN 99"
    assert counted(query, "left", events)["a b"] == (2, 2)
    assert qc.compile(query, SCHEMA, shape="left").run(events).rows() == [
        {"a": 2, "b": 6, "c": 8},
        {"a": 3, "b": 7, "c": 8},
    ]


def test_two_equalities_are_one_key() -> None:
    events = stream("AABBC", [1, 2, 1, 2, 0], [1.0, 1.0, 1.0, 5.0, 0.0])
    assert counted("PATTERN SEQ(A a, B b, C c, a.id = b.id, a.f = b.f) WITHIN 9", "left", events)["a b"] == (1, 1)


@pytest.mark.parametrize("shape", TREES)
@pytest.mark.parametrize(
    "query", ["SEQ(A a, B b, C c, D d)", "SEQ(A a, B b, C c, D d, b.id = c.id)", "AND(A a, B b, C c, a.id = b.id)"]
)
def test_estimates_are_near_what_is_built(query: str, shape: str) -> None:
    """Where types and ids are independent, as the model assumes."""
    rng, n, window = np.random.default_rng(0), 20_000, 50
    types = rng.choice(list("ABCD"), n, p=[0.1, 0.2, 0.3, 0.4])
    events = stream("".join(types), rng.integers(0, 20, n).tolist())
    plan = qc.compile(f"PATTERN {query} WITHIN {window}", SCHEMA, shape=shape, stats=qc.Stats.collect(events))
    measured: list[Measured] = []
    find(plan, load(events, SCHEMA), qc.Limits(), joins=measured)
    for m in measured:
        assert m.built == pytest.approx(m.source.estimate.rows * n / window, rel=0.15)


# Memory ---------------------------------------------------------------------------------------------------------------


def test_a_composite_is_two_links_and_an_extent() -> None:
    """Never a copy of events: 32 bytes, however many events it has; 48 where both time and position count."""
    (ab, abc, _), _ = ran("PATTERN SEQ(A a, B b, C c, D d) WITHIN 9", "left", stream("ABCD"))
    assert (ab.bytes, abc.bytes) == (32, 32)
    (ab, root), _ = ran("PATTERN SEQ(A a, B b, C c) WITHIN 9 EVENTS", "left", stream("ABC"))
    assert (ab.bytes, root.bytes) == (48, 0)
    arrival = qc.Schema({"id": "int64"}, ties="arrival")
    (ab, _), _ = ran("PATTERN SEQ(A a, B b, C c) WITHIN 9 EVENTS", "left", stream("ABC"), arrival)
    assert ab.bytes == 32


@pytest.mark.parametrize("condition", ["", ", a.id = b.id"])
def test_a_long_stream_needs_no_more_than_a_window(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "ROUND", 32)
    query = f"PATTERN SEQ(A a, B b, C c{condition}) WITHIN 30"
    short, long = (ran(query, "left", stream("ABC" * n))[0][0] for n in (200, 4_000))
    assert long.built > 19 * short.built
    held = (3 * 32 + 30) // 3 * 10  # each B of a round and a window, with ten A before it
    assert long.bytes == short.bytes == 32 * held


def test_rounds_change_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    events = stream("".join(rng.choice(list("ABCD"), 400)), rng.integers(0, 5, 400).tolist())
    query = "PATTERN SEQ(A a, B b, AND(C c, D d, c.id = d.id), a.id = b.id) WITHIN 40"
    for shape in TREES:
        whole = counted(query, shape, events)
        for size in (1, 7, 50):
            monkeypatch.setattr(joins, "ROUND", size)
            assert counted(query, shape, events) == whole
        monkeypatch.undo()


@pytest.mark.parametrize("count", [1, 3])
def test_too_large_internal_buffers_stop_with_their_name(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST", 64)
    monkeypatch.setattr(threads, "WORTH", 0)
    plan = qc.compile("PATTERN SEQ(A a, B b, C c) WITHIN 1000", SCHEMA, shape="left")
    events = stream("ABC" * 300)
    with pytest.raises(
        qc.LimitExceeded, match=r"internal buffer of \(a, b\).*shape=\"stack\".*max_state_bytes=\)"
    ) as e:
        plan.run(events, threads=count, limits=qc.Limits(max_state_bytes=30_000))
    assert (e.value.limit, e.value.value) == ("max_state_bytes", 30_000)
    enough = qc.Limits(max_state_bytes=10**8)
    assert len(plan.run(events, threads=count, limits=enough)) == 300 * 301 * 302 // 6
    stack = qc.compile("PATTERN SEQ(A a, B b, C c) WITHIN 1000", SCHEMA, shape="stack")
    assert len(stack.run(events, limits=qc.Limits(max_state_bytes=0))) == 300 * 301 * 302 // 6


@pytest.mark.parametrize("condition", ["a.id = b.id", "a.id < b.id"])
def test_every_limit_up_to_enough_stops_cleanly(condition: str) -> None:
    plan = qc.compile(f"PATTERN SEQ(A a, B b, C c, {condition}) WITHIN 1000", SCHEMA, shape="right")
    events = stream("ABC" * 100, list(range(100)) * 3)
    whole = len(plan.run(events))
    stopped = 0
    for limit in range(0, 400_000, 5_000):
        try:
            assert len(plan.run(events, limits=qc.Limits(max_state_bytes=limit))) == whole
        except qc.LimitExceeded as e:
            assert e.limit == "max_state_bytes"  # noqa: PT017
            stopped += 1
    assert 0 < stopped < 80


@pytest.mark.parametrize("shape", TREES)
def test_other_limits_stop_trees_too(shape: str) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, C c, a.id + b.id = c.id + 100) WITHIN 100000", SCHEMA, shape=shape)
    with pytest.raises(qc.LimitExceeded, match="max_seconds"):
        plan.run(stream("ABC" * 1_500), limits=qc.Limits(max_seconds=0.2))
    plan = qc.compile("PATTERN SEQ(A a, B b, C c) WITHIN 100", SCHEMA, shape=shape)
    with pytest.raises(qc.LimitExceeded, match="max_matches"):
        plan.run(stream("ABC" * 100), limits=qc.Limits(max_matches=99))


def test_times_at_the_ends_of_int64() -> None:
    least, most = np.iinfo(np.int64).min + 1, np.iinfo(np.int64).max - 1  # the ends themselves are no times
    columns = {"id": [0] * 6, "f": [0.0] * 6}
    events = pa.table({"ts": [least, least + 1, 0, 1, most - 1, most], "type": list("ABABAB")} | columns)
    expected = [{"a": 0, "b": 1, "c": 2}, {"a": 0, "b": 1, "c": 4}, {"a": 0, "b": 3, "c": 4}, {"a": 2, "b": 3, "c": 4}]
    for shape in TREES:
        found = qc.compile("PATTERN SEQ(A a, B b, A c) WITHIN 9 EVENTS", SCHEMA, shape=shape).run(events)
        assert found.rows() == expected
        assert len(qc.compile("PATTERN AND(A a, B b, A c) WITHIN 9 EVENTS", SCHEMA, shape=shape).run(events)) == 18
        found = qc.compile("PATTERN AND(A a, B b) WITHIN 5", SCHEMA, shape=shape).run(events)
        assert found.rows() == [{"a": 0, "b": 1}, {"a": 2, "b": 3}, {"a": 4, "b": 5}]


# Against the reference ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(400_000, 400_400, CHUNK))
def test_small_rounds_and_threads_change_nothing(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(threads, "WORTH", 0)
    used = 0
    for sample, _ in generate.valid(range(first, first + CHUNK)):
        events = table(sample.events)
        rows = qc.compile(sample.query, sample.schema(), shape="stack").run(events).rows()
        assert canonical(rows) == sample.answer()
        for shape in TREES:
            monkeypatch.setattr(joins, "ROUND", 1 + first // CHUNK % 3)
            plan = qc.compile(sample.query, sample.schema(), shape=shape)
            assert plan.run(events).rows() == rows, f"{sample}\nshape {shape}"
            assert plan.run(events, threads=3).rows() == rows, f"{sample}\nshape {shape}, three threads"
            measured: list[Measured] = []
            find(plan, load(events, plan.schema), qc.Limits(), joins=measured)
            used += bool(measured)
    assert used > CHUNK, "too few samples run as trees"


def test_threads_share_a_larger_stream() -> None:
    rng = np.random.default_rng(3)
    events = stream("".join(rng.choice(list("ABCD"), 40_000)), rng.integers(0, 50, 40_000).tolist())
    for query in (
        "PATTERN SEQ(A a, B b, C c, a.id = b.id) WITHIN 60",
        "PATTERN AND(A a, B b, C c, b.id = c.id) WITHIN 60",
        "PATTERN SEQ(A a, B b, C c, D d, [id]) WITHIN 900",
    ):
        for shape in ("left", "right"):
            plan = qc.compile(query, SCHEMA, shape=shape)
            one, two = plan.run(events), plan.run(events, threads=2)
            assert one.rows() == two.rows()
            assert one.rows() == qc.compile(query, SCHEMA, shape="stack").run(events).rows()
            assert len(one) > 1_000
