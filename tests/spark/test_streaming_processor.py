"""What Spark calls on its workers, called here by a stand-in: rows, timers, states read again or still at hand."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import types as st
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

import quercus as qc
from quercus.backends.spark.stream_columns import CODE, MICROS, NULLS, ORDER, Layout, table_of
from quercus.backends.spark.stream_processor import ANSWER, LIVE, GroupProcessor, Job, opened
from tests.spark.stream_files import SCHEMA, SECOND, bag, disordered, drawn, local, table


class Value:
    """Spark's ValueState, of the key at hand."""

    def __init__(self, handle: Handle) -> None:
        self.handle, self.reads = handle, 0

    def get(self) -> tuple[bytes] | None:
        self.reads += 1
        return self.handle.values.get(self.handle.key)

    def update(self, value: tuple[bytes]) -> None:
        self.handle.values[self.handle.key] = value


class Handle:
    """Spark's handle. `early`: timers expire when the watermark is at them, not only past them."""

    def __init__(self, early: bool) -> None:
        self.early, self.key = early, 0
        self.values: dict[int, tuple[bytes]] = {}
        self.timers: set[tuple[int, int]] = set()

    def getValueState(self, name: str, schema: st.StructType) -> Value:
        return Value(self)

    def registerTimer(self, at: int) -> None:
        self.timers.add((at, self.key))

    def deleteTimer(self, at: int) -> None:
        self.timers.remove((at, self.key))


def frame_of(rows: list[dict[str, Any]], layout: Layout) -> pd.DataFrame:
    """Rows as they are sent; `table_of` must make the same of them."""
    made: dict[str, Any] = {
        MICROS: np.array([r["ts"] for r in rows], np.int64),
        CODE: np.array([layout.types.index(r["type"]) if r["type"] in layout.types else -1 for r in rows], np.int32),
        ORDER: np.array([r["n"] for r in rows], np.int64),
    }
    bits, bit = np.zeros(len(rows), np.int64), 0
    for i, (name, kind) in enumerate(layout.attributes):
        if kind == "string":
            made[layout.sent(i)] = [r[name] for r in rows]
            continue
        made[layout.sent(i)] = np.array([r[name] or 0 for r in rows], {"int64": np.int64, "float64": np.float64}[kind])
        bits |= np.array([r[name] is None for r in rows]).astype(np.int64) << bit
        bit += 1
    return pd.DataFrame({**made, f"{NULLS}0": bits})


def test_rows_come_as_they_were_sent() -> None:
    layout = Layout.of(qc.compile("PATTERN SEQ(A a, B b) WITHIN 5 s", SCHEMA))
    rows = drawn(1, 50, "AB")
    found = table_of(frame_of(rows, layout), layout)
    expected = table(rows)
    for name in ("type", "id", "s"):
        assert found.column(name).to_pylist() == expected.column(name).to_pylist()
    assert found.column("ts").cast(pa.int64()) == expected.column("ts").cast(pa.int64())
    assert list(map(repr, found.column("x").to_pylist())) == list(map(repr, expected.column("x").to_pylist()))


class Batches:
    """Spark, batch by batch, for one processor and groups by id."""

    def __init__(self, plan: qc.Plan, groups: int, early: bool) -> None:
        columns = from_arrow_schema(plan.run(table([]).drop_columns(["n"])).to_arrow().schema)
        self.job = Job(plan, groups, qc.Limits(), None, columns)
        self.handle = Handle(early)
        self.groups, self.found = groups, Counter[str]()
        self.woken = 0
        for key in range(groups):
            self.handle.key = key
            self.processor().handleInitialState((key,), None, TimerValues(0, 0))

    def processor(self) -> GroupProcessor:
        made = GroupProcessor(self.job.to_json())
        made.init(self.handle)  # type: ignore[arg-type]
        return made

    def batch(self, rows: list[dict[str, Any]], watermark: int) -> None:
        processor, times = self.processor(), TimerValues(0, watermark)
        for key in range(self.groups):
            own = [r for r in rows if (r["id"] or 0) % self.groups == key]
            if own:
                self.handle.key = key
                frames = [frame_of(own[:3], self.job.layout), frame_of(own[3:], self.job.layout)]
                self._take(processor.handleInputRows((key,), iter(frames), times))
        for at, key in sorted(self.handle.timers):
            if at < watermark + self.handle.early:
                self.woken += 1
                self.handle.key = key
                self._take(processor.handleExpiredTimer((key,), times, ExpiredTimerInfo(at)))
                self.handle.timers.discard((at, key))

    def _take(self, answers: Any) -> None:
        for frame in answers:
            batch = pa.record_batch({ANSWER: pa.array(frame[ANSWER], pa.binary())})
            self.found += bag(pa.Table.from_batches(list(opened(iter([batch])))))


@pytest.mark.parametrize("early", [False, True], ids=["past a timer", "at a timer"])
@pytest.mark.parametrize("live", [False, True], ids=["states read again", "states at hand"])
def test_groups_batch_by_batch(early: bool, live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not live:
        monkeypatch.setattr(LIVE, "put", lambda *told: None)
    for seed, query in enumerate(
        (
            "PATTERN SEQ(A a, B b, C c, [id]) WITHIN 9 s",
            "PATTERN SEQ(A a, B+ b, !C c, [id]) WITHIN 6 s",
            "PATTERN SEQ(A a, !B b, C c) WITHIN 5 EVENTS PARTITION BY id",
        )
    ):
        plan, r = qc.compile(query, SCHEMA), Random(seed)
        rows = [{**row, "ts": row["ts"] // 1000 * 1000} for row in drawn(seed, 90)]  # times that a watermark can be at
        given = disordered(rows, seed, 5 * SECOND)
        spark = Batches(plan, 3, early)
        hits, newest, watermark = LIVE.hits, 0, 0
        while given:
            n = r.randint(1, 12)
            spark.batch(given[:n], watermark)
            newest = max(newest, *(row["ts"] for row in given[:n]))
            watermark, given = max(watermark, newest // 1000 - 5_001), given[n:]
            if r.random() < 0.5:
                spark.batch([], watermark)
        for _ in range(3):
            spark.batch([], newest // 1000 + 60_000)
        assert spark.found == local(plan, rows), query
        assert not spark.handle.timers
        assert spark.woken
        assert (LIVE.hits > hits) == live


def test_a_stream_at_hand_is_used_for_its_own_bytes_only() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 9 s", SCHEMA)
    spark = Batches(plan, 1, early=False)
    rows = drawn(5, 40)
    spark.batch(rows[:20], 0)
    before, timers, found = dict(spark.handle.values), set(spark.handle.timers), spark.found.copy()
    spark.batch(rows[20:], rows[15]["ts"] // 1000)  # a batch that fails after it ran here: Spark goes back
    spark.handle.values, spark.handle.timers, spark.found = before, timers, found
    hits = LIVE.hits
    spark.batch(rows[20:], rows[15]["ts"] // 1000)
    assert LIVE.hits == hits
    LIVE.kept.clear()
    spark.batch([], 10**10)
    assert spark.found == local(plan, rows)


def test_a_group_that_the_checkpoint_does_not_know_is_refused() -> None:
    spark = Batches(qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 9 s", SCHEMA), 2, early=False)
    del spark.handle.values[1]
    with pytest.raises(qc.DataError, match="made with fewer than groups=2"):
        spark.batch(drawn(1, 20), 0)
