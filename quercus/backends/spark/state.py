"""The state of one group of keys in a Spark stream: the engine's snapshot, and the events that wait for the watermark.

As bytes: a line of JSON that says what it belongs to, the snapshot, the waiting events as Arrow IPC, and a digest.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
from attrs import frozen

from quercus.backends.base import Limits
from quercus.backends.local.run import needed
from quercus.backends.local.snapshot import identity
from quercus.backends.local.stream import Stream
from quercus.backends.spark.schemas import named
from quercus.backends.spark.stream_columns import ORDER
from quercus.backends.spark.stream_groups import counts_events
from quercus.errors import DataError
from quercus.plan import Plan
from quercus.result import Matches

VERSION = 2  # 1: keys were hashed as given, not as they are compared
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_MILLISECOND, _MICROSECOND = 10**6, 10**3  # in nanoseconds: of a watermark, and between two times of Spark
_DIGEST = 32


@frozen
class Owner:
    """What a state must agree with to go on."""

    plan: str  # a digest of the query and its schema
    groups: int

    @classmethod
    def of(cls, plan: Plan, groups: int) -> Owner:
        return cls(identity(plan), groups)


class GroupState:
    """A stream of one group. Events are held until the watermark has reached them, and then go through in order."""

    def __init__(self, plan: Plan, stream: Stream, waiting: pa.Table | None, timer: int | None) -> None:
        self.plan, self.stream, self.waiting, self.timer = plan, stream, waiting, timer

    @classmethod
    def new(cls, plan: Plan, limits: Limits) -> GroupState:
        """That of a group that has seen nothing."""
        return cls(plan, Stream(plan, limits=limits, columns=needed(plan)), None, None)

    def step(self, events: pa.Table | None, watermark: int) -> tuple[Matches | None, bool]:
        """Take in events, in any order, and let those through that the watermark (in ms) has reached.

        Gives what is decided, and whether the state has changed. No event at or before the watermark may come later;
        all that have the same time go through together.
        """
        schema = self.plan.schema
        clock = self.clock_at(watermark)
        added = events is not None and len(events) > 0
        parts = [p for p in (self.waiting, events) if p is not None and len(p)]
        due = None
        if parts:
            whole = pa.concat_tables(parts) if len(parts) > 1 else parts[0]
            ts = whole.column(schema.time).combine_chunks().view(pa.int64()).to_numpy()
            ready = ts < clock
            if ready.any():
                due = whole if ready.all() else whole.filter(pa.array(ready))
                self.waiting = None if ready.all() else whole.filter(pa.array(~ready))
            else:
                self.waiting = whole
        if due is not None:
            if schema.order is None and counts_events(self.plan):
                self._check_ties(due)
            keys = [(schema.time, "ascending"), *([(ORDER, "ascending")] if schema.order is not None else [])]
            order = pc.sort_indices(due, sort_keys=keys)
            names = [n for n in due.column_names if n != ORDER]
            return self.stream.push(due.select(names).take(order).combine_chunks(), until=clock), True
        moment = self.stream.next_moment
        if moment is not None and moment <= clock:
            return self.stream.advance(clock), True
        return None, added

    def _check_ties(self, due: pa.Table) -> None:
        """Refuse events of one time, and of one key where it is declared: nothing tells their order, and it matters."""
        time = self.plan.schema.time
        keys = [named(self.plan, key) for key in self.plan.tree.partition_by]
        told = due.group_by(list(dict.fromkeys([time, *keys]))).aggregate([([], "count_all")])
        several = told.filter(pc.greater(told.column("count_all"), 1))
        if len(several):
            raise DataError(
                f"column '{time}': several events have the time {several.column(time)[0].as_py()}, and a window of "
                "events needs them in an order: give Schema(order=) the column that has it",
                column=time,
            )

    def clock_at(self, watermark: int) -> int:
        """The first time that can still come when Spark's watermark is here, in the unit of the time column."""
        return (watermark * _MILLISECOND) // _NANOSECONDS[self.plan.schema.time_unit] + (
            _MICROSECOND if self.plan.schema.time_unit == "ns" else 1
        )

    def next_timer(self) -> int | None:
        """When the group must be looked at if nothing comes: Spark wakes it when the watermark is past this (in ms)."""
        schema = self.plan.schema
        moments = [self.stream.next_moment]
        if self.waiting is not None:
            moments.append(pc.min(self.waiting.column(schema.time).combine_chunks().view(pa.int64())).as_py() + 1)
        known = [m for m in moments if m is not None]
        if not known:
            return None
        return -(-(min(known) - 1) * _NANOSECONDS[schema.time_unit] // _MILLISECOND) - 1

    # ---- bytes

    def to_bytes(self, owner: Owner) -> bytes:
        snapshot, waiting = self.stream.snapshot(), b""
        if self.waiting is not None:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, self.waiting.schema) as writer:
                writer.write_table(self.waiting)
            waiting = sink.getvalue().to_pybytes()
        head: dict[str, Any] = {
            "quercus_group": VERSION,
            "plan": owner.plan,
            "groups": owner.groups,
            "timer": self.timer,
            "snapshot": len(snapshot),
            "waiting": len(waiting),
        }
        body = json.dumps(head).encode() + b"\n" + snapshot + waiting
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, data: bytes, plan: Plan, owner: Owner, limits: Limits) -> GroupState:
        """The state; a `DataError` for what is none, or that of another plan or another number of groups."""
        head, body = read_head(data, owner)
        snapshot, waiting = body[: head["snapshot"]], body[head["snapshot"] :]
        stream = Stream.restore(plan, snapshot, limits=limits, columns=needed(plan))
        table = pa.ipc.open_stream(waiting).read_all() if waiting else None
        return cls(plan, stream, table, head["timer"])


def read_head(data: bytes, owner: Owner) -> tuple[dict[str, Any], bytes]:
    """What a state says of itself, if it belongs to this owner, and the rest."""
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise DataError("the state of a stream was cut off or changed in the checkpoint")
    line, _, body = data[:-_DIGEST].partition(b"\n")
    head: dict[str, Any] = json.loads(line)
    start = "start this stream with another checkpointLocation, or "
    version = head.get("quercus_group")
    if version != VERSION:
        raise DataError(f"the checkpoint has version {version} of a stream's state, this is version {VERSION}")
    if head["plan"] != owner.plan:
        raise DataError(
            f"the checkpoint belongs to another query or schema: {start}go on with the query it was started with"
        )
    if head["groups"] != owner.groups:
        raise DataError(
            f"the checkpoint was made with groups={head['groups']}, not {owner.groups}: {start}go on with that number"
        )
    return head, body


def digest(data: bytes) -> bytes:
    """What tells a state from all others."""
    return data[-_DIGEST:]


def earlier_than(table: pa.Table, time: str, clock: int) -> tuple[pa.Table, pa.Table]:
    """The events before a clock, and the others."""
    late = table.column(time).combine_chunks().view(pa.int64()).to_numpy() < clock
    return table.filter(pa.array(late)), table.filter(pa.array(np.logical_not(late)))
