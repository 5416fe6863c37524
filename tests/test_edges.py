"""Values at the edges of their types: totals that fit though the way there does not, NaNs with signs, far times."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import quercus as qc
from quercus.compiler.nested import STRATEGIES

NANS = np.array([0x7FF8 << 48, 0xFFF8 << 48], np.uint64).view(np.float64)  # the second is what inf - inf gives


@pytest.mark.parametrize("nested", ["auto", *STRATEGIES])
@pytest.mark.parametrize("body", ["OR(C c, C c)", "OR(C c, SEQ(C c, D d))", "OR(C c, AND(C c, D d))"])
def test_a_sub_query_of_one_event_ends(nested: Any, body: str) -> None:
    plan = qc.compile(f"PATTERN SEQ(A b, !{body}, B x) WITHIN 3", qc.Schema({}), nested=nested)
    found = plan.run({"ts": [1, 2, 3, 4, 5], "type": list("ACBAB")}, limits=qc.Limits(max_seconds=30))
    assert found.rows() == [{"b": 3, "x": 4}]


@pytest.mark.parametrize(
    ("values", "condition", "n"),
    [
        ([2**62, 2**62, -1], "sum(b.v) > 0", 1),
        ([2**62, 2**62, -1], "sum(b.v) is null", 0),
        ([2**62, 2**62], "sum(b.v) is null", 1),
        ([-(2**63), -1], "sum(b.v) is null", 1),
        ([2**62, 1, 1, -(2**62)], "avg(b.v) > 0", 1),
        ([2**53, 1, 1], "avg(b.v) > 3002399751580331", 1),
        ([2**63 - 1, -(2**63)], f"min(b.v) < -1, max(b.v) = {2**63 - 1}", 1),
    ],
)
def test_only_the_total_must_fit(values: list[int], condition: str, n: int) -> None:
    plan = qc.compile(f"PATTERN B+ b WHERE {condition} WITHIN 99", qc.Schema({"v": "int64"}))
    events = {"ts": list(range(len(values))), "type": ["B"] * len(values), "v": values}
    assert sum(m["b"] == list(range(len(values))) for m in plan.run(events).rows()) == n
    with plan.stream() as stream:
        stream.push(events)
    whole = sum(len(m["b"]) == len(values) for m in stream.final.rows())
    assert whole == n


def test_all_nans_are_one_group() -> None:
    schema = qc.Schema({"f": "float64"})
    events = pa.table({"ts": [1, 2, 3], "type": ["A", "A", "B"], "f": np.append(NANS, 1.0)})
    for pattern in ("SEQ(A a, B b)", "SEQ(A a, B b) WHERE a.ts <> b.ts + 7"):
        plan = qc.compile(f"PATTERN {pattern} WITHIN 9 AGG COUNT(*) AS n GROUPBY a.f", schema)
        assert [int(row["n"]) for row in plan.run(events)] == [2]
        assert [int(row["n"]) for row in plan.stream().push(events)] == [2]


def test_categories_of_polars_are_strings() -> None:
    frame = pl.DataFrame({"ts": [1, 2, 3], "type": ["A", "B", "A"], "s": ["x", "y", None]})
    for kind in (pl.Categorical(), pl.Enum(["A", "B", "x", "y"])):
        given = frame.with_columns(pl.col("type").cast(kind), pl.col("s").cast(kind))
        assert qc.compile("PATTERN A a WHERE a.s = 'x' WITHIN 9", qc.Schema.infer(given)).run(given).rows() == [
            {"a": 0}
        ]


def test_windows_and_times_as_far_as_they_go() -> None:
    text = f"PATTERN AND(AND(C* a, D b) WITHIN 6 EVENTS, C c) PARTITION BY k WITHIN {2**62}"
    plan = qc.compile(text, qc.Schema({"k": "int64"}))
    assert plan.stream().push([{"ts": 1, "type": "C", "k": 1}]).rows() == []
    far = {"ts": [-(2**63) + 1, 2**63 - 2], "type": ["A", "B"]}
    short = qc.compile("PATTERN SEQ(A a, B b) WITHIN 5", qc.Schema({}))
    assert [f.code for f in short.check(far)] == ["L402"]
