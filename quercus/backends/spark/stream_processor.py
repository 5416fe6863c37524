"""What Spark calls on its workers: one state for each group, rows in, answers out, and a timer at the next moment.

Answers leave as Arrow IPC in one column of bytes, and are opened by `opened`: pandas could not carry their types.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.ipc
from attrs import asdict, field, frozen
from pyspark.sql import types as st
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from quercus.backends.base import Limits
from quercus.backends.spark.schemas import arrow_schema
from quercus.backends.spark.state import GroupState, Owner, digest, earlier_than
from quercus.backends.spark.stream_columns import ORDER, Frame, Layout, table_of
from quercus.errors import DataError
from quercus.plan import Plan

ANSWER = "quercus_answer"
ANSWERS = st.StructType([st.StructField(ANSWER, st.BinaryType())])
_STATE = st.StructType([st.StructField("state", st.BinaryType())])
_ROWS = 65_536  # of an answer that travel together
_MOST_LIVE = 256


@frozen
class Job:
    """What a worker must know, once for all groups of a stream."""

    plan: Plan
    groups: int
    limits: Limits
    late: str | None  # the column for events that came too late; None: Spark drops them
    columns: st.StructType  # of the answer
    owner: Owner = field(init=False)
    layout: Layout = field(init=False)
    arrow: pa.Schema = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "owner", Owner.of(self.plan, self.groups))
        object.__setattr__(self, "layout", Layout.of(self.plan))
        object.__setattr__(self, "arrow", arrow_schema(self.columns))

    def to_json(self) -> str:
        return json.dumps(
            {
                "plan": self.plan.to_json(),
                "groups": self.groups,
                "limits": asdict(self.limits),
                "late": self.late,
                "columns": self.columns.jsonValue(),
            }
        )


@lru_cache(maxsize=32)
def job_of(text: str) -> Job:
    """The job of its JSON: a plan is compiled once in a worker, whatever number of groups and batches it sees."""
    told = json.loads(text)
    return Job(
        Plan.from_json(told["plan"]),
        told["groups"],
        Limits(**told["limits"]),
        told["late"],
        st.StructType.fromJson(told["columns"]),
    )


class Live:
    """The streams that this process has at hand, so that a state need not be read again.

    A stream is kept under the digest of the bytes that were written of it. It is used where Spark hands out the same
    bytes, which say all that it knows, and is gone from here while it is used: after an error it is made anew.
    """

    def __init__(self) -> None:
        self.kept: OrderedDict[tuple[str, Any], tuple[bytes, GroupState]] = OrderedDict()
        self.hits = 0

    def take(self, name: tuple[str, Any], data: bytes) -> GroupState | None:
        found = self.kept.pop(name, None)
        if found is None or found[0] != digest(data):
            return None
        self.hits += 1
        return found[1]

    def put(self, name: tuple[str, Any], data: bytes, state: GroupState) -> None:
        self.kept[name] = digest(data), state
        while len(self.kept) > _MOST_LIVE:
            self.kept.popitem(last=False)


LIVE = Live()


class GroupProcessor(StatefulProcessor):
    """One group after the other. It travels as the JSON of its job."""

    def __init__(self, text: str) -> None:
        self.text = text

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle, self.value = handle, handle.getValueState("state", _STATE)

    def handleInitialState(self, key: Any, initialState: Frame, timerValues: TimerValues) -> None:
        """Every group begins with the stream."""
        job = job_of(self.text)
        self.value.update((GroupState.new(job.plan, job.limits).to_bytes(job.owner),))

    def handleInputRows(self, key: Any, rows: Iterator[Frame], timerValues: TimerValues) -> Iterator[Frame]:
        job = job_of(self.text)
        tables = [table_of(frame, job.layout) for frame in rows]
        yield from self._step(job, key, pa.concat_tables(tables), timerValues.getCurrentWatermarkInMs(), None)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Frame]:
        expired = expiredTimerInfo.getExpiryTimeInMs()
        yield from self._step(job_of(self.text), key, None, timerValues.getCurrentWatermarkInMs(), expired)

    def close(self) -> None:
        pass

    def _step(
        self, job: Job, key: Any, events: pa.Table | None, watermark: int, expired: int | None
    ) -> Iterator[Frame]:
        found = self.value.get()
        if found is None:
            raise DataError(
                f"the checkpoint was made with fewer than groups={job.groups}: start this stream with another "
                "checkpointLocation, or go on with the number it was started with"
            )
        data, name = bytes(found[0]), (self.text, key)
        state = LIVE.take(name, data) or GroupState.from_bytes(data, job.plan, job.owner, job.limits)
        late = None
        if job.late is not None and events is not None and state.stream.clock is not None:
            late, events = earlier_than(events, job.plan.schema.time, state.stream.clock)
        matches, changed = state.step(events, watermark)
        answers = list(_answers(job, None if matches is None else matches.to_arrow(), late))
        changed = self._set_timer(state, expired) or changed
        if changed:
            data = state.to_bytes(job.owner)
            self.value.update((data,))
        LIVE.put(name, data, state)
        yield from answers

    def _set_timer(self, state: GroupState, expired: int | None) -> bool:
        """Let Spark wake the group at its next moment; whether that is another one than before."""
        timer = state.next_timer()
        if timer is not None and timer == expired:  # Spark woke it at this moment, not past it, and now removes it
            timer += 1
        if timer == state.timer:
            return False
        if state.timer is not None and state.timer != expired:  # Spark removes what has expired
            self.handle.deleteTimer(state.timer)
        if timer is not None:
            self.handle.registerTimer(timer)
        state.timer = timer
        return True


def _answers(job: Job, found: pa.Table | None, late: pa.Table | None) -> Iterator[Frame]:
    import pandas as pd  # type: ignore[import-untyped]

    tables = []
    if found is not None and len(found):
        if job.late is not None:
            nulls = pa.nulls(len(found), job.arrow.field(job.late).type)
            found = found.append_column(job.late, nulls)
        tables.append(found)
    if late is not None and len(late):
        assert job.late is not None
        names = [n for n in late.column_names if n != ORDER]
        events = pa.StructArray.from_arrays([late.column(n).combine_chunks() for n in names], names)
        tables.append(pa.table({n: pa.nulls(len(late)) for n in job.arrow.names[:-1]} | {job.late: events}))
    for table in tables:
        table = table.cast(job.arrow)
        for first in range(0, len(table), _ROWS):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, job.arrow) as writer:
                writer.write_table(table.slice(first, _ROWS).combine_chunks())
            yield pd.DataFrame({ANSWER: [sink.getvalue().to_pybytes()]})


def opened(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of answers, for mapInArrow."""
    for batch in batches:
        for answer in batch.column(0):
            with pa.ipc.open_stream(answer.as_buffer()) as reader:
                yield from reader
