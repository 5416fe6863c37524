"""A stream of Spark's without Spark: groups that are woken by rows and by timers, as the watermark moves on."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa

import quercus as qc
from quercus.backends.spark.state import GroupState, Owner
from quercus.backends.spark.stream_columns import ORDER
from quercus.backends.spark.stream_groups import grouping
from tests.test_adapt import any_orders
from tests.test_engine import table

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
Event = dict[str, Any]


def bag(tables: Sequence[pa.Table]) -> Counter[str]:
    return Counter(repr(row) for t in tables for row in t.to_pylist())


def batches(r: Random, events: list[Event], unit: str) -> list[tuple[list[tuple[int, Event]], int]]:
    """The events with their numbers in random order, cut into batches, and the watermark (in ms) of each.

    No event lies at or before the watermark of a batch before its own.
    """
    order = sorted(range(len(events)), key=lambda i: events[i]["ts"] * r.choice((1.0, 1.0, 0.8, 1.3)))
    found = []
    watermark = -(10**12)
    while order or r.random() < 0.3:
        n = r.randint(0, 4)
        found.append(([(i, events[i]) for i in order[:n]], watermark))
        order = order[n:]
        first = min((events[i]["ts"] for i in order), default=10**6) * NANOSECONDS[unit]
        highest = -(-first // 10**6) - 1
        watermark = max(watermark, highest - r.choice((0, 0, 1, 5)))
    return [*found, ([], 10**9)]


class Groups:
    """The groups of a plan. A group is stepped only where it has rows, or where its timer has expired, as by Spark."""

    def __init__(self, plan: qc.Plan, r: Random, asked: int, shapes: Sequence[str] = ()) -> None:
        """With `shapes`, states are read again by plans of other shapes, and searched in other orders in between."""
        self.plans = [plan, *(qc.compile(plan.text, plan.schema, shape=s) for s in shapes)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            self.shared = grouping(plan, asked)
        self.plan, self.random = plan, r
        self.owner = Owner.of(plan, self.shared.count)
        limits = qc.Limits()
        self.states = [GroupState.new(plan, limits).to_bytes(self.owner) for _ in range(self.shared.count)]
        self.live: dict[int, GroupState] = {}
        self.timers: list[int | None] = [None] * self.shared.count
        self.steps = self.switches = 0

    def batch(self, events: list[tuple[int, Event]], watermark: int) -> list[pa.Table]:
        found = []
        for g in range(self.shared.count):
            own = [(i, e) for i, e in events if self._group(e) == g]
            timer = self.timers[g]
            if own or (timer is not None and timer < watermark):
                found += self._step(g, own, watermark)
        return found

    def _group(self, event: Event) -> int | None:
        values = tuple(event.get(c) for c in self.shared.columns)
        if self.plan.tree.partition_by and None in [event.get(c) for c in self.plan.tree.partition_by]:
            return None
        return hash(values) % self.shared.count

    def _step(self, g: int, own: list[tuple[int, Event]], watermark: int) -> list[pa.Table]:
        self.steps += 1
        state = self.live.pop(g, None)
        if state is None or self.random.random() < 0.5:
            plan = self.random.choice(self.plans)
            state = GroupState.from_bytes(self.states[g], plan, Owner.of(plan, self.shared.count), qc.Limits())
        if len(self.plans) > 1 and state.stream._engine.can_switch:
            state.stream._switch(any_orders(state.stream, self.random))
            self.switches += 1
        rows = None
        if own:
            rows = table([e for _, e in own])
            if self.plan.schema.order is not None:
                rows = rows.append_column(ORDER, pa.array([i for i, _ in own]))
        matches, changed = state.step(rows, watermark)
        before, state.timer = state.timer, state.next_timer()
        assert state.timer is None or state.timer >= watermark
        if changed or state.timer != before:
            self.states[g] = state.to_bytes(self.owner)
        self.timers[g], self.live[g] = state.timer, state
        return [] if matches is None else [matches.to_arrow()]

    def close(self) -> list[pa.Table]:
        """What only the end of the input decides."""
        states = (GroupState.from_bytes(s, self.plan, self.owner, qc.Limits()) for s in self.states)
        return [s.stream.close().to_arrow() for s in states]
