"""Streams whose plan is switched: no match is lost or doubled, and switches come when the stream changes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import quercus as qc
from quercus.backends.local.orders import Orders, fixed, normal
from tests.generate import valid
from tests.stream_checks import FORMS, Fed, broken_off, cuts, in_order, keyed, ordered, same, schema_of
from tests.test_engine import table

CHUNK = 125


def any_orders(stream: Any, r: Random) -> Orders:
    """A random order for each search of a stream."""
    found = []
    for f, v in stream._engine.variants:
        rest = [name for name in fixed(f) if name != v.pivot]
        r.shuffle(rest)
        found.append(normal(f, v, tuple(rest)))
    return tuple(found)


def switching(plan: qc.Plan, events: list[Any], r: Random) -> Fed:
    """Push events piece by piece, with switches and snapshots in between."""
    stream = plan.stream()
    pushes = []
    for first, last in cuts(r, len(events)):
        for _ in range(r.choice((0, 0, 1, 1, 2))):
            stream._switch(any_orders(stream, r))
        stream = broken_off(plan, stream, r.choice((0, 0, 0, 1)), r)
        pushes.append(stream.push(FORMS[r.choice(tuple(FORMS))](events[first:last])))
    stream._switch(any_orders(stream, r))
    stream.close()
    return Fed(pushes, stream.final, stream.dropped)


def agree(seeds: range, key: tuple[str, ...], shape: str) -> int:
    found = 0
    for drawn, _ in valid(seeds):
        sample, r = keyed(in_order(drawn), *key), Random(drawn.seed)
        plan = qc.compile(sample.query, schema_of(sample), shape=shape)
        fed = switching(plan, sample.events, r)
        shown = f"{sample}\nkey {key}, shape {shape}"
        found += same(fed.rows(), plan.run(table(sample.events)).rows(), shown)
        ordered(fed, plan, sample.events, shown)
    return found


@pytest.mark.parametrize("start", range(760_000, 761_000, CHUNK))
def test_forced_switches_change_nothing(start: int) -> None:
    assert agree(range(start, start + CHUNK), (), "auto") > 0


@pytest.mark.parametrize("start", range(770_000, 770_500, CHUNK))
@pytest.mark.parametrize("shape", ["right", "inner", "stack"])
def test_keys_are_kept_over_switches(start: int, shape: str) -> None:
    assert agree(range(start, start + CHUNK), ("id",), shape) > 0
