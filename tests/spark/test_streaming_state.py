"""The state of a Spark stream, without Spark: groups, the watermark, timers, bytes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.spark.state import GroupState, Owner
from quercus.backends.spark.stream_groups import counts_events, grouping, labels
from tests import generate
from tests.generate import ATTRIBUTES
from tests.spark.stream_groups import Groups, bag, batches
from tests.test_engine import table

SCHEMA = qc.Schema({"id": "int64", "room": "int64"}, time_unit="s")


def compared(sample: generate.Sample, key: list[str] | None = None, shapes: Sequence[str] = ()) -> Groups | None:
    """A random query over a random stream, by groups, against a run over the whole; None: totals, which are not."""
    o = sample.options
    schema = qc.Schema(ATTRIBUTES, ties=o.ties, time_unit=o.time_unit, hierarchy=dict(o.hierarchy), order="n", key=key)
    plan, r = qc.compile(sample.query, schema), Random(sample.seed)
    events = [dict(e) for e in sample.events]
    groups = Groups(plan, r, 3, shapes)
    found = []
    for rows, watermark in batches(r, events, o.time_unit):
        found += groups.batch(rows, watermark)
    last = groups.close()
    if not counts_events(plan):
        assert not bag(last), f"{sample}\nheld back past the watermark"
    found += last
    order = sorted(range(len(events)), key=lambda i: events[i]["ts"])
    expected = plan.run(table([events[i] for i in order])).to_arrow()
    if plan.query.aggregates:
        return None
    assert bag(found) == bag([expected]), f"{sample}\nkey {key}, {groups.shared}"
    return groups


@pytest.mark.parametrize("block", range(3))
def test_groups_find_what_a_run_finds(block: int) -> None:
    for sample, _ in generate.valid(range(block * 30, block * 30 + 30)):
        compared(sample)


@pytest.mark.parametrize("block", range(2))
def test_groups_of_declared_keys_find_what_a_run_finds(block: int) -> None:
    found = [compared(s, ["id"]) for s, _ in generate.valid(range(block * 30, block * 30 + 30))]
    assert 3 in [g.shared.count for g in found if g is not None]


def test_plans_of_other_shapes_go_on_from_a_state() -> None:
    """Adaptation between batches: other orders of search, and restarts with other plans of the same query."""
    found = [compared(s, [None, ["id"]][s.seed % 2], ("left", "stack")) for s, _ in generate.valid(range(300, 360))]
    assert sum(g.switches for g in found if g is not None) > 15


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_groups_find_what_a_run_finds(block: int) -> None:
    for sample, _ in generate.valid(range(1000 + block * 100, 1100 + block * 100)):
        compared(sample, [None, ["id"], ["v", "s"]][sample.seed % 3])


def test_a_bag_with_one_row_more_is_another() -> None:
    one = pa.table({"a": [1, 2]})
    assert bag([one, one]) != bag([one])


def plan_of(query: str) -> qc.Plan:
    return qc.compile(query, SCHEMA)


def state_of(query: str) -> GroupState:
    return GroupState.new(plan_of(query), qc.Limits())


def events(text: str) -> pa.Table:
    """`a1.7` is an A at 1 with the id 7."""
    words = [w[0].upper() + w[1:] for w in text.split()]
    return pa.table(
        {
            "ts": [int(w[1:].split(".")[0]) for w in words],
            "type": [w[0] for w in words],
            "id": [int(w.split(".")[1]) for w in words],
            "room": pa.array([None for _ in words], pa.int64()),
        }
    )


def ids(matches: object) -> list[int]:
    return [] if matches is None else [row["a"]["id"] for row in matches.to_arrow().to_pylist()]  # type: ignore[attr-defined]


def test_an_event_waits_for_the_watermark() -> None:
    state = state_of("PATTERN SEQ(A a, B b, [id]) WITHIN 10 s")
    found, changed = state.step(events("b5.1 a3.1"), 4_999)
    assert ids(found) == []
    assert changed
    assert state.next_timer() == 4_999  # Spark wakes what lies before the watermark: at 5,000 ms
    found, _ = state.step(None, 5_000)
    assert ids(found) == [1]
    assert state.next_timer() is None


def test_a_match_that_is_held_back_has_a_timer() -> None:
    state = state_of("PATTERN SEQ(A a, !B b, [id]) WITHIN 10 s")
    assert ids(state.step(events("a3.1 a4.2"), 5_000)[0]) == []
    assert state.next_timer() == 12_999
    assert ids(state.step(None, 12_999)[0]) == []
    assert ids(state.step(None, 13_000)[0]) == [1]
    assert state.next_timer() == 13_999


def test_windows_of_events_need_an_order_of_equal_times() -> None:
    state = state_of("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS PARTITION BY id")
    assert ids(state.step(events("a1.1 b2.1 a2.2 b3.2"), 10_000)[0]) == [1, 2]
    with pytest.raises(qc.DataError, match="several events have the time 12"):
        state.step(events("a12.1 b12.1"), 20_000)


def test_nothing_new_changes_nothing() -> None:
    state = state_of("PATTERN SEQ(A a, B b, [id]) WITHIN 10 s")
    state.step(events("a3.1 b9.1"), 4_000)
    assert state.step(None, 5_000) == (None, False)
    assert state.step(events("a3.1").slice(0, 0), 6_000) == (None, False)


def test_bytes_of_another_query_or_number_of_groups_are_refused() -> None:
    plan, other = plan_of("PATTERN SEQ(A a, B b, [id]) WITHIN 10 s"), plan_of("PATTERN SEQ(A a, B b) WITHIN 10 s")
    data = GroupState.new(plan, qc.Limits()).to_bytes(Owner.of(plan, 8))
    assert GroupState.from_bytes(data, plan, Owner.of(plan, 8), qc.Limits()).timer is None
    with pytest.raises(qc.DataError, match="belongs to another query"):
        GroupState.from_bytes(data, other, Owner.of(other, 8), qc.Limits())
    with pytest.raises(qc.DataError, match="made with groups=8, not 4"):
        GroupState.from_bytes(data, plan, Owner.of(plan, 4), qc.Limits())
    for broken in (data[:-1], data[1:], data[:40] + b"x" + data[41:], b""):
        with pytest.raises(qc.DataError, match="cut off or changed"):
            GroupState.from_bytes(broken, plan, Owner.of(plan, 8), qc.Limits())


# groups ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("PATTERN SEQ(A a, B b, [id]) WITHIN 10 s", ("id",)),
        ("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS PARTITION BY id", ("id",)),
        ("PATTERN SEQ(A a, B b) WITHIN 10 s PARTITION BY id, room", ("id", "room")),
        ("PATTERN SEQ(A a, A b, a.type = b.type) WITHIN 10 s", ("type",)),
        ("PATTERN SEQ(A a, B b, [id]) WITHIN 10 s AGG COUNT(*) GROUPBY a.id", ("id",)),
        ("PATTERN SEQ(A a, B b, [id]) WITHIN 10 s AGG COUNT(*) GROUPBY a.room, b.id", ("id",)),
    ],
)
def test_keys_part_a_stream(query: str, columns: tuple[str, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = grouping(plan_of(query), 5)
    assert (found.columns, found.count) == (columns, 5)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 10 s", "give one with"),
        ("PATTERN SEQ(A a, B b, a.id = b.room) WITHIN 10 s", "different columns"),
        ("PATTERN SEQ(A a, B b, [id]) WITHIN 10 EVENTS", "PARTITION BY id counts those of each key"),
        ("PATTERN SEQ(A a, SEQ(B b, C c) WITHIN 3 EVENTS, [id]) WITHIN 10 s", "counts the events of all keys"),
        ("PATTERN SEQ(A a, B b, [id]) WITHIN 10 s AGG COUNT(*)", "its totals are of several keys"),
        ("PATTERN SEQ(A a, B b, [id]) WITHIN 10 s AGG COUNT(*) GROUPBY a.room", "its totals are of several keys"),
        ("PATTERN SEQ(A a, B b) WITHIN 10 s PARTITION BY id, room AGG COUNT(*) GROUPBY a.id", "GROUPBY id, room"),
    ],
)
def test_one_group_is_said_loudly(query: str, why: str) -> None:
    with pytest.warns(UserWarning, match=why):
        assert grouping(plan_of(query), None).count == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grouping(plan_of(query), 1).count == 1


@pytest.mark.parametrize("asked", [0, -1, 5000, "8", True, 2.0])
def test_a_number_of_groups_that_cannot_be(asked: object) -> None:
    with pytest.raises(qc.DataError, match="groups="):
        grouping(plan_of("PATTERN SEQ(A a, B b, [id]) WITHIN 10 s"), asked)  # type: ignore[arg-type]


def test_labels_spread_evenly_and_never_change() -> None:
    from quercus.backends.spark.stream_groups import spark_hash

    assert labels(8) == [22362, 14516, 848, 16776, 10632, 1651, 6674, 4288]
    assert labels(64)[:8] == labels(8)
    for partitions in (2, 3, 4, 8, 16):
        at = spark_hash(np.array(labels(16), np.int32)) % partitions
        assert max(np.bincount(at, minlength=partitions)) == -(-16 // partitions)
