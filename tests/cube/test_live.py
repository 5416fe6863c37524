"""A cube over a live stream: push by push, every query gives what its own stream gives."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import quercus as qc
from quercus.backends.local.cube.stream import CubeStream
from quercus.ir.workload import Strategy
from tests.cube.workloads import Workload, workload
from tests.stream_checks import cuts

SHARES: tuple[Strategy, ...] = ("independent", "top_down", "bottom_up", "chase")
BATCH = 25
Rows = list[dict[str, Any]]


def opened(given: Workload, share: Strategy, **options: Any) -> CubeStream:
    return qc.cube(given.queries, given.schema(), share=share).stream(**options)


def pushed(stream: CubeStream, pieces: list[list[dict[str, object]]]) -> list[dict[str, Rows]]:
    """The rows that each push gives, and then those of the end."""
    found = [{n: m.rows() for n, m in stream.push(piece).items()} for piece in pieces]
    return [*found, {n: m.rows() for n, m in stream.close().items()}]


def alone(given: Workload, pieces: list[list[dict[str, object]]]) -> list[dict[str, Rows]]:
    found: list[dict[str, Rows]] = [{} for _ in range(len(pieces) + 1)]
    for name, text in given.queries.items():
        stream = qc.compile(text, given.schema()).stream()
        for i, piece in enumerate(pieces):
            found[i][name] = stream.push(piece).rows()
        found[-1][name] = stream.close().rows()
    return found


def pieces_of(given: Workload, r: Random) -> list[list[dict[str, object]]]:
    return [given.events[a:b] for a, b in cuts(r, len(given.events))]


@pytest.mark.parametrize(
    "first", [*range(0, 75, BATCH), *(pytest.param(i, marks=pytest.mark.slow) for i in range(1000, 7000, BATCH))]
)
def test_every_query_gives_what_its_own_stream_gives(first: int) -> None:
    shares: Counter[str] = Counter()
    for seed in range(first, first + BATCH):
        r = Random(seed)
        given = workload(seed, size=r.choice([2, 2, 3, 3, 5, 12]), length=r.choice([11, 40]))
        pieces = pieces_of(given, r)
        expected = alone(given, pieces)
        for share in SHARES:
            stream = opened(given, share)
            shares[share] += sum(c.source is not None for c in stream.ordering.cuboids)
            assert pushed(stream, pieces) == expected, f"{given}\n{share}\n{stream.explain()}"
    assert shares["independent"] == 0
    assert shares["top_down"] > 5
    assert shares["bottom_up"] > 5


@pytest.mark.parametrize("first", range(0, 50, BATCH))
def test_forced_switches_lose_and_double_nothing(first: int) -> None:
    switched = 0
    for seed in range(first, first + BATCH):
        r = Random(seed)
        given = workload(seed, size=4, length=40)
        pieces = [given.events[i : i + 3] for i in range(0, len(given.events), 3)]
        expected = alone(given, pieces)
        orderings = [opened(given, share) for share in SHARES]
        stream = opened(given, r.choice(SHARES))
        found = []
        for piece in pieces:
            found.append({n: m.rows() for n, m in stream.push(piece).items()})
            if r.random() < 0.5:
                before = stream.ordering
                stream._switch(r.choice(orderings).ordering)
                switched += stream.ordering != before
        found.append({n: m.rows() for n, m in stream.close().items()})
        assert found == expected, str(given)
    assert switched > BATCH


@pytest.mark.parametrize("first", range(0, 50, BATCH))
def test_snapshots_go_on(first: int) -> None:
    for seed in range(first, first + BATCH):
        r = Random(seed)
        given = workload(seed, size=4, length=40)
        pieces = pieces_of(given, r)
        expected = alone(given, pieces)
        cube = qc.cube(given.queries, given.schema(), share=r.choice(SHARES))
        stream, found = cube.stream(), []
        for piece in pieces:
            found.append({n: m.rows() for n, m in stream.push(piece).items()})
            if r.random() < 0.5:
                stream = cube.restore(stream.snapshot())
        found.append({n: m.rows() for n, m in stream.close().items()})
        assert found == expected, str(given)


@pytest.mark.parametrize("share", SHARES)
def test_events_out_of_order(share: Strategy) -> None:
    for seed in range(40):
        r = Random(seed)
        given = workload(seed, size=4, length=40)
        events = sorted(given.events, key=lambda e: int(str(e["ts"])) + r.randint(0, 3))
        stream = opened(given, share, max_delay=3)
        streams = {n: qc.compile(q, given.schema()).stream(max_delay=3) for n, q in given.queries.items()}
        for i in range(0, len(events), 4):
            found = stream.push(events[i : i + 4])
            for name, other in streams.items():
                mine, own = found[name], other.push(events[i : i + 4])
                assert mine.rows() == own.rows(), str(given)
                assert mine.to_arrow().equals(own.to_arrow())
        final = stream.close()
        assert {n: m.rows() for n, m in final.items()} == {n: s.close().rows() for n, s in streams.items()}


@pytest.mark.parametrize("share", SHARES)
def test_queries_come_and_go(share: Strategy) -> None:
    """A query that is added sees what comes after; the others do not notice."""
    for seed in range(30):
        r = Random(seed)
        given, other = workload(seed, size=3, length=60), workload(seed, size=6, length=4)
        stream = opened(given, share)
        mine = {n: qc.compile(q, given.schema()).stream() for n, q in given.queries.items()}
        for i in range(0, len(given.events), 3):
            piece = given.events[i : i + 3]
            found = stream.push(piece)
            for name in mine:
                assert [_shifted(m, 0) for m in found[name].rows()] == mine[name].push(piece).rows(), (seed, name)
            choice = r.random()
            if choice < 0.3:
                name, text = f"n{i}", r.choice(list(other.queries.values()))
                stream.add(name, text)
                mine[name] = _from_now(qc.compile(text, given.schema()), mine)
            elif choice < 0.5 and len(mine) > 1:
                name = r.choice(list(mine))
                stream.remove(name)
                del mine[name]
            elif choice < 0.6:
                name, text = r.choice(list(mine)), r.choice(list(other.queries.values()))
                stream.replace(name, text)
                mine[name] = _from_now(qc.compile(text, given.schema()), mine)
            assert set(stream.names) == set(mine)


def _shifted(match: dict[str, Any], by: int) -> dict[str, Any]:
    return {v: r + by for v, r in match.items()}


def _from_now(plan: qc.Plan, mine: dict[str, Any]) -> Any:
    """A stream of its own that numbers events as the others do."""
    one = next(iter(mine.values()))
    stream = plan.stream()
    for name in ("clock", "place", "rows", "seen"):
        setattr(stream._course, name, getattr(one._course, name))
    return stream


def test_an_error_leaves_every_query_as_it_was() -> None:
    queries = {"ab": "PATTERN SEQ(A a, B b) WITHIN 9", "abc": "PATTERN SEQ(A a, B b, C c) WITHIN 9"}
    stream = qc.cube(queries, qc.Schema({}), share="top_down").stream(limits=qc.Limits(max_matches=4))
    assert stream.ordering.cuboids[1].source == "ab"
    stream.push({"ts": [1, 2, 3, 4], "type": list("AABB")})
    for _ in range(2):
        with pytest.raises(qc.LimitExceeded) as e:
            stream.push({"ts": [5, 6], "type": ["C", "C"]})
        assert e.value.limit == "max_matches"
        with pytest.raises(qc.DataError):
            stream.push({"ts": [5], "kind": ["C"]})
    found = stream.push({"ts": [5], "type": ["C"]})
    assert (len(found["ab"]), len(found["abc"])) == (0, 4)


def test_rates_that_drift_change_the_ordering() -> None:
    """At first C is rare, and SEQ(A, B, C) is cheap alone; then A and B are, and their pairs are worth keeping."""
    queries = {f"q{c}": f"PATTERN SEQ(A a, B b, {c} c) WITHIN 400" for c in "CDEF"} | {
        "ab": "PATTERN SEQ(A a, B b) WITHIN 400"
    }
    r, events, ts = Random(1), [], 0
    for half in ("AB" * 20 + "CDEF", "AB" + "CDEF" * 10):
        for _ in range(3000):
            ts += 1
            events.append({"ts": ts, "type": r.choice(half)})
    schema = qc.Schema({})
    stream = qc.cube(queries, schema).stream(adapt=qc.Adapt(every=500, theta=1.5, gamma=1.01))
    own = {n: qc.compile(q, schema).stream() for n, q in queries.items()}
    for i in range(0, len(events), 200):
        found = stream.push(events[i : i + 200])
        for name, other in own.items():
            mine, its = ([b.rows.tolist() for b in m.bound] for m in (found[name], other.push(events[i : i + 200])))
            assert mine == its
    assert stream.switches
    assert "switches\n  after" in stream.explain()


def test_snapshots_that_were_tampered_with() -> None:
    queries = {"ab": "PATTERN SEQ(A a, B b) WITHIN 9", "abc": "PATTERN SEQ(A a, B b, C c) WITHIN 9"}
    cube = qc.cube(queries, qc.Schema({}))
    stream = cube.stream()
    stream.push({"ts": [1, 2], "type": ["A", "B"]})
    state = stream.snapshot()
    assert cube.restore(state).names == ("ab", "abc")
    for bad in (state[:-1], state[:50], b"", state[:100] + b"x" + state[101:], "text"):
        with pytest.raises(qc.DataError):
            cube.restore(bad)  # type: ignore[arg-type]
    with pytest.raises(qc.DataError, match="another schema"):
        qc.cube(queries, qc.Schema({"x": "int64"})).restore(state)


def test_names_that_are_not_there() -> None:
    stream = qc.cube({"q1": "PATTERN SEQ(A a, B b) WITHIN 9"}, qc.Schema({})).stream()
    with pytest.raises(qc.DataError, match="queries: q1"):
        stream.remove("q2")
    with pytest.raises(qc.DataError, match="last query"):
        stream.remove("q1")
    with pytest.raises(qc.DataError, match="already"):
        stream.add("q1", "PATTERN A WITHIN 3")


def test_names_are_text() -> None:
    cube = qc.cube({"1": "PATTERN SEQ(A a, B b) WITHIN 9"}, qc.Schema({}))
    assert cube.pattern_drill_down("1", [("C", 3)], to=2).name == "2"  # type: ignore[arg-type]
    stream = cube.stream()
    with pytest.raises(qc.DataError, match="already"):
        stream.add(1, "PATTERN A WITHIN 3")  # type: ignore[arg-type]
    with pytest.raises(qc.DataError, match="no query '3'"):
        stream.remove(3)  # type: ignore[arg-type]
