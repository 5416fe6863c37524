"""AGG over streams without listing matches: against runs and listed streams, split at random."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local.incremental import Engine
from tests.aggregate_cases import Case, case, same

STEP = 250
SCHEMA = qc.Schema({"id": "int64", "v": "int64"})


def listed(stream: Any) -> Any:
    """The same stream, which lists its matches; before its first event."""
    stream._engine = Engine(stream.plan, stream._columns, listed=True)
    stream._course = stream._engine.course
    return stream


def streamed(c: Case, r: Random) -> bool:
    """Push the same batches into three streams: one with snapshots, one that lists. Whether they were totalled live."""
    plan = qc.compile(c.query, c.schema())
    table = c.table()
    ts = table.column("ts").to_pylist()
    disorder = max((max(ts[:i]) - ts[i] for i in range(1, len(ts))), default=0)
    delay = {"max_delay": max(disorder, 0) + r.randint(0, 2)} if disorder > 0 or r.random() < 0.2 else {}
    live, broken, by_list = plan.stream(**delay), plan.stream(**delay), listed(plan.stream(**delay))
    totalled = live._engine.live is not None
    at, seen = 0, {}
    while at < len(table):
        step = r.choice((1, 1, 2, 3, 7, 40))
        batch = table.slice(at, step)
        at += step
        if r.random() < 0.1:
            with pytest.raises(qc.DataError):
                live.push(pa.concat_tables([batch, Case(0, "", [{"ts": -(2**63), "type": "A"}], "").table()]))
        if totalled and r.random() < 0.1:
            failed(live, batch)
        given = [s.push(batch) for s in (live, broken, by_list)]
        tables = [g.to_arrow() for g in given]
        assert tables[0].schema == tables[2].schema, c
        assert same(tables[0].to_pylist(), tables[2].to_pylist()), (
            f"{c}\n{tables[0].to_pylist()}\n{tables[2].to_pylist()}"
        )
        assert same(tables[1].to_pylist(), tables[2].to_pylist()), f"snapshot {c}"
        if r.random() < 0.1:
            assert given[0].rows() == given[2].rows(), c
        if r.random() < 0.2:
            broken = plan.restore(broken.snapshot())
        if r.random() < 0.1 and not delay:
            moved = [s.advance(s.clock + 0).to_arrow().to_pylist() for s in (live, broken, by_list)]
            assert same(moved[0], moved[2]), c
        seen.update(_groups(plan, tables[0]))
    ends = [s.close().to_arrow() for s in (live, broken, by_list)]
    assert same(ends[0].to_pylist(), ends[2].to_pylist()), c
    assert same(ends[1].to_pylist(), ends[2].to_pylist()), c
    seen.update(_groups(plan, ends[0]))
    want = plan.run(table).to_arrow()
    assert sorted(map(str, seen)) == sorted(map(str, _groups(plan, want))), c
    assert all(same([seen[k]], [row]) for k, row in _groups(plan, want).items()), f"{c}\n{seen}\n{want.to_pylist()}"
    return totalled


def failed(stream: Any, batch: Any) -> None:
    """A push that fails after its events were taken in."""
    limits, stream.limits = stream.limits, qc.Limits(max_state_bytes=0)
    try:
        with pytest.raises(qc.LimitExceeded):
            stream.push(batch)
    finally:
        stream.limits = limits


def _groups(plan: qc.Plan, table: pa.Table) -> dict[Any, Any]:
    by = [f"{g.var}.{g.attr}" for g in plan.query.group_by]
    return {tuple(_value(row[n]) for n in by): row for row in table.to_pylist()}


def _value(v: Any) -> Any:
    return "NaN" if v != v else v + 0 if isinstance(v, float) else v


@pytest.mark.parametrize("first", range(0, 1500, STEP))
def test_streams_total_as_listed_ones_and_runs_do(first: int) -> None:
    live = sum(streamed(case(seed), Random(seed)) for seed in range(first, first + STEP))
    assert live > STEP * 0.3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200_000, 206_000, 500))
def test_streams_total_as_listed_ones_and_runs_do_at_length(first: int) -> None:
    for seed in range(first, first + 500):
        streamed(case(seed), Random(seed))
