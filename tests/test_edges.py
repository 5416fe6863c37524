"""Values at the edges of their types: totals that fit though the way there does not, NaNs with signs, far times."""

from __future__ import annotations

import json
from pathlib import Path
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


@pytest.mark.parametrize(("year", "seconds"), [("10000", 253_402_300_800), ("-249", -70_000_000_000)])
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_years_that_python_has_no_date_for(tmp_path: Path, year: str, seconds: int, unit: str) -> None:
    per = {"s": 1, "ms": 10**3, "us": 10**6}[unit]
    schema = qc.Schema({"ts": f"timestamp[{unit}]", "v": "float64"})
    ts = pa.array([seconds * per, (seconds + 1) * per, (seconds + 2) * per], pa.timestamp(unit))
    events = pa.table({"ts": ts, "type": list("ABC"), "v": [1.0, 2.0, 3.0]})
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 5 s", schema)
    found = plan.run(events)
    found.write(tmp_path / "out.jsonl")
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert row["a"]["ts"].lstrip("-0").startswith(year.lstrip("-"))
    assert year.lstrip("-") in found._repr_html_()
    plan.report(events, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size
    stopped = qc.compile("PATTERN SEQ(A a, B b, C c) WHERE c.v > b.v + 2 WITHIN 5 s", schema).why(events)
    assert f"a row 0 at {year}-" in str(stopped)


def test_encodings_that_arrow_does_not_undo() -> None:
    ends, values = pa.array([2, 5, 6], pa.int32()), pa.array(["x", "y", "x"]).dictionary_encode()
    runs = pa.RunEndEncodedArray.from_arrays(ends, values).slice(1, 4)
    found = qc.compile("PATTERN A a WITHIN 5 RETURN a.v AS v", qc.Schema({"v": "string"})).run(
        pa.table({"ts": [1, 2, 3, 4], "type": ["A"] * 4, "v": runs})
    )
    assert found.to_arrow().column("v").to_pylist() == ["x", "y", "y", "y"]
    far = pa.table({"ts": [1], "type": ["A"], "d": pa.array([2**30], pa.int32()).cast(pa.date32())})
    with pytest.raises(qc.DataError, match="column 'd', row 0: 1073741824 is out of"):
        qc.compile("PATTERN A a WITHIN 5", qc.Schema({"d": "timestamp[us]"})).run(far)
