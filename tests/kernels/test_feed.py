"""Batches straight from Arrow: the feed and the router in it, beside a twin that reads one event after the other."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quercus as qc
from quercus.backends.local.incremental import Engine
from quercus.kernels import match, reference_stream
from quercus.kernels.route import Router

QUERY = "PATTERN SEQ(A a, Bb b, AND(A c, A0123456789abcde d)) WITHIN 20"
NAMES = ["A", "Bb", "A0123456789abcde"]  # in the order of the buffers
OTHERS = ["", "AA", "B", "A0123456789abcdf", "A0123456789abcde-", "é"]

pytestmark = pytest.mark.skipif(not Router.can([b"A"]), reason="no routing of several rows at once on this machine")
batches = st.lists(
    st.lists(st.tuples(st.sampled_from([*NAMES, *NAMES, *OTHERS]), st.integers(0, 3)), max_size=40), max_size=6
)


def engine() -> Engine:
    return Engine(qc.compile(QUERY, qc.Schema({})))


@given(
    given=batches,
    wide=st.booleans(),
    cut=st.integers(0, 3),
    spoilt=st.sampled_from(["", "", "", "back", "null time", "null type"]),
)
def test_feed_agrees_with_its_twin(given: list[list[tuple[str, int]]], wide: bool, cut: int, spoilt: str) -> None:
    made = engine()
    names = [b.accepts[0].encode() for b in made.specs]
    assert sorted(names) == sorted(n.encode() for n in NAMES)
    kernel, twin = made.matcher, reference_stream.StreamMatcher(made.program, made.searches, False, False)
    feed, plain = match.Feed(kernel, names, 0, 1, wide), reference_stream.Feed(twin, names)
    clock, place = -(2**63), 0
    for number, rows in enumerate(given):
        ts: list[int | None] = [100 * number + sum(step for _, step in rows[: i + 1]) for i in range(len(rows))]
        types: list[str | None] = [name for name, _ in rows]
        if number == 1 and len(rows) > 2:
            if spoilt == "back":
                ts[1] = -1
            elif spoilt == "null time":
                ts[-1] = None
            elif spoilt == "null type":
                types[0] = None
        kind = pa.large_string() if wide else pa.string()
        batch = pa.record_batch({"ts": pa.array(ts, pa.int64()), "type": pa.array(types, kind)}).slice(cut)
        left = [None if t is None else t.encode() for t in batch["type"].to_pylist()]
        last = feed.take(batch.__arrow_c_array__()[1], place, clock)
        assert last == plain.take(batch["ts"].to_pylist(), left, place, clock)
        if last is None:
            continue
        now = (last, place + len(batch), place + len(batch))
        for search in range(len(made.searches)):
            found, want = (m.run(search, (clock, place, place), now, 10**6, -1) for m in (kernel, twin))
            assert rows_of(found) == rows_of(want)
        if number == 2:
            kernel.undo()
            twin.undo()
        else:
            clock, place = last, place + len(batch)
            assert kernel.commit(clock - 20, 0, False) == twin.commit(clock - 20, 0, False)
        assert kernel.events == twin.events
        for b in range(len(names)):
            assert kernel.kept(b).tolist() == twin.kept(b).tolist()


def rows_of(found: match.Found) -> list[tuple[int, ...]]:
    return sorted(zip(*(c.tolist() for c in found[1]), strict=True))


def test_a_feed_refuses_what_needs_a_closer_look() -> None:
    keyed = Engine(qc.compile("PATTERN SEQ(A a, B b) WITHIN 3 PARTITION BY id", qc.Schema({"id": "int64"})))
    with pytest.raises(ValueError, match="closer look"):
        match.Feed(keyed.matcher, [b"A", b"B"], 0, 1, False)
    with pytest.raises(ValueError, match="closer look"):
        match.Feed(engine().matcher, [b"A"], 0, 1, False)
