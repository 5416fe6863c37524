"""Batches straight from Arrow: the feed and the router in it, beside a twin that reads one event after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quercus as qc
from quercus.backends.local.incremental import Engine
from quercus.backends.local.outputs import Bound
from quercus.kernels import match, reference_stream
from quercus.kernels.route import Router
from tests.interrupts import interrupted

QUERIES = [
    "SEQ(A a, Bb b, A0123456789abcde c) WITHIN 20",
    "SEQ(A a, Bb b, !A0123456789abcde c) WITHIN 5",
    "SEQ(A a, Bb+ b, A0123456789abcde c) WITHIN 9 EVENTS",
]
NAMES = ["A", "Bb", "A0123456789abcde"]  # in the order of the buffers
OTHERS = ["", "AA", "B", "A0123456789abcdf", "A0123456789abcde-", "é"]

pytestmark = pytest.mark.skipif(not Router.can([b"A"]), reason="no routing of several rows at once on this machine")
batches = st.lists(
    st.lists(st.tuples(st.sampled_from([*NAMES, *NAMES, *OTHERS]), st.integers(0, 3)), max_size=40), max_size=6
)


def engine(query: str) -> Engine:
    return Engine(qc.compile(f"PATTERN {query}", qc.Schema({})))


@pytest.mark.parametrize("query", QUERIES)
@given(
    given=batches,
    wide=st.booleans(),
    cut=st.integers(0, 3),
    limit=st.sampled_from([10**6, 10**6, 2]),
    spoilt=st.sampled_from(["", "", "back", "null time", "null type", "begin", "end"]),
)
def test_a_feed_agrees_with_its_twin(
    query: str, given: list[list[tuple[str, int]]], wide: bool, cut: int, limit: int, spoilt: str
) -> None:
    made = engine(query)
    names = [b.accepts[0].encode() for b in made.specs]
    assert sorted(names) == sorted(n.encode() for n in NAMES)
    kernel, twin = made.matcher, reference_stream.StreamMatcher(made.program, made.searches, False, False)
    feed, plain = match.Feed(kernel, names, 0, 1, wide), reference_stream.Feed(twin, names)
    clock, place = -(2**63), 0
    for number, rows in enumerate(given):
        ts: list[int | None] = [100 * number + sum(step for _, step in rows[: i + 1]) for i in range(len(rows))]
        types: list[str | None] = [name for name, _ in rows]
        if number == 1 and len(rows) > 2:
            spoil(spoilt, ts, types)
        kind = pa.large_string() if wide else pa.string()
        batch = pa.record_batch({"ts": pa.array(ts, pa.int64()), "type": pa.array(types, kind)}).slice(cut)
        left = [None if t is None else t.encode() for t in batch["type"].to_pylist()]
        found = feed.step(batch.__arrow_c_array__()[1], place, clock, made.reach, limit, -1)
        want = plain.step(batch["ts"].to_pylist(), left, place, clock, made.reach, limit)
        assert (found is None) == (want is None)
        if found is None or want is None:
            continue
        assert (found.clock, found.status) == (want[0], want[1][0])
        if found.status == match.OK:
            assert listed(*found.take()) == listed(*want[1][1:])
            clock, place = found.clock, place + len(batch)
        else:
            kernel.undo()
            twin.undo()
        assert kernel.events == twin.events
        for b in range(len(names)):
            assert kernel.kept(b).tolist() == twin.kept(b).tolist()


def spoil(how: str, ts: list[int | None], types: list[str | None]) -> None:
    if how == "back":
        ts[1] = -1
    elif how == "null time":
        ts[-1] = None
    elif how == "null type":
        types[0] = None
    elif how == "begin":
        ts[0] = -(2**63)
    elif how == "end":
        ts[-1] = 2**63 - 1


def listed(columns: Any, sets: Any) -> list[tuple[Any, ...]]:
    """The matches, in no order of theirs."""
    parts = [c.tolist() for c in columns]
    return sorted(zip(*parts, *([tuple(r[a:b]) for a, b in zip(i, j, strict=True)] for i, j, r in sets), strict=True))


def test_a_signal_leaves_the_stream_as_it_was() -> None:
    """A batch whose search is interrupted is taken back, as one that a limit stops."""
    n = 20_000
    plan = qc.compile("PATTERN SEQ(A a, !SEQ(A x, B y) WITHIN 1, B b) WITHIN 100000", qc.Schema({}))
    events = pa.record_batch({"ts": np.arange(n), "type": np.array(["A", "B"])[np.arange(n) % 2]})
    stream = plan.stream()
    few, more = events.slice(0, 4), events.slice(4, 4)
    found = len(stream.push(few))

    with interrupted(0.05):
        stream.push(events.slice(4))
    assert found + len(stream.push(more)) == len(plan.run(events.slice(0, 8))) > found > 0


def test_a_feed_refuses_what_needs_a_closer_look() -> None:
    keyed = Engine(qc.compile("PATTERN SEQ(A a, B b) WITHIN 3 PARTITION BY id", qc.Schema({"id": "int64"})))
    with pytest.raises(ValueError, match="closer look"):
        match.Feed(keyed.matcher, [b"A", b"B"], 0, 1, False)
    with pytest.raises(ValueError, match="closer look"):
        match.Feed(engine(QUERIES[0]).matcher, [b"A"], 0, 1, False)


def test_batches_of_several_schemas_make_one_stream() -> None:
    """Other columns, other offsets, rows that were dropped: each batch is taken in, or looked at more closely."""
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 9", qc.Schema({"x": "int64"}))
    one = pa.record_batch({"ts": [1, 2], "type": ["A", "B"], "x": [0, 1]})
    wide = pa.record_batch({"x": [2, 3], "type": pa.array(["A", "B"], pa.large_string()), "ts": [3, 4]})
    late = pa.record_batch({"ts": [0], "type": ["A"], "x": [9]})
    last = pa.record_batch({"ts": [5], "type": ["B"], "x": [4]})
    stream = plan.stream(late="drop")
    found = [stream.push(batch) for batch in (one, wide, late, last)]
    assert [[(r["a"], r["b"]) for r in f.rows()] for f in found] == [[(0, 1)], [(0, 3), (2, 3)], [], [(0, 5), (2, 5)]]
    assert [[r["b"]["x"] for r in f.to_arrow().to_pylist()] for f in found] == [[1], [3, 3], [], [4, 4]]
    assert stream.dropped == 1
    stream.close()
    with pytest.raises(qc.DataError, match="closed"):
        stream.push(last)


def test_an_object_like_another() -> None:
    """All slots but one are those of the pattern, also where attributes are frozen."""
    none, rows = np.empty(0, np.int64), np.arange(3)
    pattern = Bound("a", False, none)
    made = match.Like(pattern, none)(rows)
    assert (type(made), made.var, made.kleene, made.offsets, len(made)) == (Bound, "a", False, None, 3)
    assert made.rows is rows
    assert len(pattern) == 0
    for held in (rows, None):  # no slot holds it, two do
        with pytest.raises(ValueError, match="hold"):
            match.Like(pattern, held)
    with pytest.raises(ValueError, match="slots"):
        match.Like(engine(QUERIES[0]), none)
