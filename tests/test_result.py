"""Matches: what they hand out, against the reference's RETURN and AGG over random streams and by hand."""

from __future__ import annotations

import doctest
import json
import math
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from random import Random

import numpy as np
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from quercus import result as result_module
from quercus.backends.local import segments
from quercus.backends.local.aggregate import exact
from quercus.backends.local.events import load
from quercus.backends.local.segments import exact_sums, fold
from quercus.backends.local.values import Values, from_arrow
from quercus.compiler.bind import bind
from quercus.compiler.parse import parse_query
from quercus.errors import DataError, LimitExceeded
from quercus.ir import pattern as p
from quercus.result import Bound, Matches
from quercus.schema import Schema
from tests import reference
from tests.reference_scalar import fold as reference_fold

SCHEMA = Schema({"id": "int64", "v": "int64", "f": "float64", "s": "string", "b": "bool"})
Row = dict[str, object]


def bound_by(query: p.Query, rows: list[Row], events: list[Row]) -> list[Bound]:
    """The reference's matches in the form that an engine hands them over."""

    def place(row: int) -> tuple[object, int]:
        return events[row]["ts"], row

    found = []
    for leaf in query.variables:
        cells = [row.get(leaf.var) for row in rows]
        if isinstance(leaf, p.Leaf):
            found.append(Bound(leaf.var, False, np.array([-1 if c is None else c for c in cells], np.int64)))
            continue
        sets = [sorted(c or [], key=place) for c in cells]  # type: ignore[call-overload]
        offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        absent = np.array([c is None for c in cells], bool)
        elements = np.array([e for s in sets for e in s], np.int64)
        found.append(Bound.listed(leaf.var, elements, offsets, absent if absent.any() else None))
    return found


def matches(text: str, events: list[Row], schema: Schema = SCHEMA) -> Matches:
    query = bind(parse_query(text), schema)
    return Matches(load(events, schema).table, schema, query, bound_by(query, reference.matches(text, events), events))


def alike(a: object, b: object) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return (a is None) == (b is None) and isinstance(a, bool) == isinstance(b, bool) and a == b


VALUES: dict[str, list[object]] = {
    "id": [1, 2, None],
    "v": [0, 1, -7, 2**62, 2**63 - 1, -(2**63), None],
    "f": [0.1, 0.2, -0.0, 1e300, math.inf, math.nan, None],
    "s": ["x", "Y", "é", "\uffff", "\U0001f600", "", None],
    "b": [True, False, None],
}


def stream(random: Random) -> list[Row]:
    tame = random.random() < 0.5  # extremes make most sums null or NaN
    return [
        {
            "ts": random.randrange(8),
            "type": random.choice("AABBBCCD"),
            **{n: random.choice([*v[:3], None] if tame else v) for n, v in VALUES.items()},
        }
        for _ in range(random.randrange(3, 9))
    ]


PATTERNS = [
    "SEQ(A a, B+ b, C c)",
    "SEQ(A a, B* b, C c)",
    "SEQ(A a, B[2] b)",
    "SEQ(A a, OR(B+ b, C c))",
    "OR(A a, SEQ(B+ b, C c))",
    "OR(SEQ(A a, B* b), C c)",
]
# `c` may be missing from a pattern: then so are the columns that name it
OUTPUTS = {
    "ab": [
        "a.v",
        "a.s",
        "a.ts",
        "a.type",
        "a.v + 1",
        "a.f / a.v",
        "a.id is null",
        "b.v",
        "b.v - a.v",
        "b.f * sum(b.f)",
        "upper(b.s)",
        "a.v > 0 and b.b",
        "count(b)",
        "sum(b.v)",
        "sum(b.f)",
        "avg(b.v)",
        "avg(b.f)",
        "min(b.v)",
        "max(b.f)",
        "min(b.s)",
        "max(b.s)",
        "max(b.b)",
        "first(b).s",
        "last(b).v",
        "last(b).ts - first(b).ts",
        "null",
        "3",
    ],
    "c": ["c.v * 2", "c.b", "c.f"],
}
AGGREGATES = {
    "ab": ["COUNT(*)", "COUNT(a)", "COUNT(b)"]
    + [f"{f}({v}.{x})" for f in ("SUM", "AVG") for v in "ab" for x in "vf"]
    + [f"{f}({v}.{x})" for f in ("MIN", "MAX") for v in "ab" for x in ("v", "f", "s", "ts", "type", "b")],
    "c": ["COUNT(c)", "SUM(c.v)", "AVG(c.f)", "MAX(c.s)"],
}
GROUPS = {"ab": ["a.id", "a", "a.s", "a.b"], "c": ["c.id", "c.s"]}


def offered(choices: dict[str, list[str]], pattern: str) -> list[str]:
    return choices["ab"] + (choices["c"] if "C c" in pattern else [])


def named(items: list[str]) -> str:
    return ", ".join(f"{item} AS n{i}" for i, item in enumerate(items))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_return_agrees_with_the_reference(pattern: str) -> None:
    text = f"PATTERN {pattern} WITHIN 6 RETURN {named(offered(OUTPUTS, pattern))}"
    compared = 0
    for seed in range(25):
        events = stream(Random(f"{pattern} {seed}"))
        found = matches(text, events)
        want = reference.rows(text, events)
        got = [list(row.values()) for row in found.to_arrow().to_pylist()]
        assert len(found) == len(got) == len(want)
        absent_sets = [b.absent for b in found.bound if b.absent is not None]
        for number, (mine, theirs) in enumerate(zip(got, want, strict=True)):
            for output, x, y in zip(found.query.returns, mine, list(theirs), strict=True):
                if output.each and any(absent[number] for absent in absent_sets):
                    assert x is None  # where the reference computes with nulls
                else:
                    assert alike(x, y), f"seed {seed}, {output.name}: {x} instead of {y}"
                compared += 1
    assert compared > 200


@pytest.mark.parametrize("pattern", PATTERNS)
def test_aggregates_agree_with_the_reference(pattern: str) -> None:
    compared = 0
    for seed in range(40):
        random = Random(f"{pattern} {seed}")
        events = stream(random)
        groups = random.sample(offered(GROUPS, pattern), random.choice([0, 1, 1, 2]))
        by = f"GROUPBY {', '.join(groups)} " if groups else ""
        text = f"PATTERN {pattern} {by}AGG {named(offered(AGGREGATES, pattern))} WITHIN 6"
        found = matches(text, events)
        got, want = found.to_arrow().to_pylist(), reference.aggregate(text, events)
        assert len(found) == len(got) == len(want)
        assert reference.canonical(found.rows()) == reference.canonical(reference.matches(text, events))
        for mine, theirs in zip(got, want, strict=True):
            assert mine.keys() == theirs.keys()
            for name, value in mine.items():
                assert alike(value, theirs[name]), f"seed {seed}, {text}\n{name}: {value} instead of {theirs[name]}"
                compared += 1
    assert compared > 200


@pytest.mark.parametrize("pattern", PATTERNS)
def test_rows_and_default_columns_agree_with_the_reference(pattern: str) -> None:
    text = f"PATTERN {pattern} WITHIN 6"
    for seed in range(20):
        events = stream(Random(f"{pattern} {seed}"))
        found = matches(text, events)
        want = reference.matches(text, events)
        assert reference.canonical(found.rows()) == reference.canonical(want)
        assert list(found) == found.rows()
        for row, cells in zip(found.rows(), found.to_arrow().to_pylist(), strict=True):
            assert list(cells) == [v.var for v in found.query.variables]
            for name, cell in cells.items():
                at = row.get(name)
                expected = None if at is None else [events[i] for i in at] if isinstance(at, list) else events[at]
                assert str(cell) == str(expected)


def test_the_comparison_can_fail() -> None:
    assert not alike(None, 0)
    assert not alike(True, 1)
    assert not alike([1], [1, 2])
    assert not alike(math.nan, 0.0)


# By hand --------------------------------------------------------------------------------------------------------------

EVENTS: list[Row] = [
    {"ts": 1, "type": "A", "id": 7, "s": "<b>"},
    {"ts": 2, "type": "B", "id": 8, "f": math.nan},
    {"ts": 3, "type": "C", "id": 9},
]
KLEENE = "PATTERN SEQ(A a, OR(B+ b, C c)) WITHIN 10"


def test_types_of_the_default_columns() -> None:
    kinds = matches(KLEENE, EVENTS).to_arrow().schema
    event = pa.struct(
        {"ts": pa.int64(), "type": pa.string(), "id": pa.int64(), "v": pa.int64(), "f": pa.float64()}
        | {"s": pa.string(), "b": pa.bool_()}
    )
    assert kinds == pa.schema([("a", event), ("b", pa.list_(event)), ("c", event)])
    assert matches(KLEENE, []).to_arrow().schema == kinds


def test_absent_is_null_and_empty_is_empty() -> None:
    found = matches("PATTERN SEQ(A a, OR(SEQ(B* b, C c), D d)) WITHIN 10", [*EVENTS[::2], {"ts": 4, "type": "D"}])
    assert found.rows() == [{"a": 0, "b": [], "c": 1}, {"a": 0, "d": 2}]
    assert found.to_arrow()["b"].to_pylist() == [[], None]
    assert [c is None for c in found.to_arrow()["d"].to_pylist()] == [True, False]


def test_attributes_are_those_of_the_variables_type() -> None:
    schema = Schema({"A": {"x": "int64"}, "B": {"y": "string"}}, time="when", type="what")
    query = bind(parse_query("PATTERN SEQ(A a, B b) WITHIN 5"), schema)
    table = load({"A": {"when": [1], "x": [5]}, "B": {"when": [2], "y": ["u"]}}, schema).table
    found = Matches(table, schema, query, [Bound("a", False, np.array([0])), Bound("b", False, np.array([1]))])
    assert found.to_arrow().to_pylist() == [
        {"a": {"ts": 1, "type": "A", "x": 5}, "b": {"ts": 2, "type": "B", "y": "u"}}
    ]


def test_whole_variables_can_be_returned() -> None:
    found = matches("PATTERN SEQ(A a, B+ b) WITHIN 10 RETURN b, a AS first, a.id", EVENTS)
    assert found.to_arrow().column_names == ["b", "first", "a_id"]
    assert found.to_arrow()["first"].to_pylist()[0]["s"] == "<b>"
    assert found.to_arrow()["b"].to_pylist()[0][0]["ts"] == 2


def test_timestamps_keep_their_unit_and_zone() -> None:
    schema = Schema({"ts": "timestamp[ms]", "at": "timestamp"})
    kind = pa.timestamp("ms", "Europe/Paris")
    table = pa.table({"ts": pa.array([1, 5], kind), "type": ["A", "B"], "at": pa.array([7, None], pa.timestamp("s"))})
    text = "PATTERN SEQ(A a, B b) WITHIN 1 s RETURN a.ts AS t, b.ts - a.ts AS d, a.at + 1 AS u, b.at AS n"
    query = bind(parse_query(text), schema)
    bound = [Bound("a", False, np.array([0])), Bound("b", False, np.array([1]))]
    found = Matches(load(table, schema).table, schema, query, bound).to_arrow()
    assert found.schema.types == [kind, pa.int64(), pa.timestamp("ms"), pa.timestamp("ms")]
    assert found["d"].to_pylist() == [4]
    assert found["u"].to_pylist() == [datetime(1970, 1, 1, 0, 0, 7, 1000)]
    assert found["n"].to_pylist() == [None]


def test_counts_and_integer_sums_are_exact_decimals() -> None:
    events = [{"ts": i, "type": "A", "v": 2**63 - 1} for i in range(5)]
    found = matches("PATTERN A a WITHIN 1 AGG COUNT(*), SUM(a.v), AVG(a.v)", events)
    assert found.to_arrow().schema.types == [pa.decimal128(38, 0), pa.decimal128(38, 0), pa.float64()]
    assert found.to_arrow().to_pylist() == [{"count": 5, "sum_a_v": Decimal(5 * (2**63 - 1)), "avg_a_v": 2.0**63}]


def test_totals_beyond_38_digits_are_refused() -> None:
    assert exact([10**38 - 1, None], "n").to_pylist() == [10**38 - 1, None]
    with pytest.raises(LimitExceeded, match="'n' has more than 38 digits"):
        exact([10**38], "n")


def test_an_aggregate_over_no_match_is_one_row() -> None:
    found = matches("PATTERN SEQ(C c, A a) AGG COUNT(*) AS n, SUM(a.v) AS t, MIN(a.s) AS m WITHIN 5", EVENTS)
    assert list(found) == [{"n": 0, "t": None, "m": None}]
    assert len(found) == 1
    assert found.rows() == []
    assert len(matches("PATTERN SEQ(C c, A a) GROUPBY a.id AGG COUNT(*) AS n WITHIN 5", EVENTS)) == 0


def test_fold_over_random_sets() -> None:
    random = Random(7)
    for _ in range(150):
        kind = random.choice(["v", "f", "s", "b"])
        arrow = {"v": pa.int64(), "f": pa.float64(), "s": pa.string(), "b": pa.bool_()}[kind]
        held = random.choices(VALUES[kind], k=random.randrange(12))
        values = from_arrow(pa.array(held, arrow))
        drawn = [sorted(random.choices(range(len(held) + 1), k=2)) for _ in range(random.randrange(6))]
        sets = [held[a:b] for a, b in drawn]
        at = np.array([a for a, _ in drawn], np.int64), np.array([b for _, b in drawn], np.int64)
        for name in ("count", "min", "max", *(("sum", "avg") if kind in "vf" else ())):
            want = [reference_fold(name, s) for s in sets]  # type: ignore[arg-type]
            if kind == "v" and name == "sum":
                assert exact_sums(values, *at, np.arange(len(sets)), len(sets)) == want
                want = [w if w is not None and -(2**63) <= w < 2**63 else None for w in want]  # type: ignore[operator]
            got = fold(name, values, *at).to_arrow().to_pylist()  # type: ignore[arg-type]
            assert all(map(alike, got, want)), (name, sets, got, want)
        assert str(fold("first", values, *at).to_arrow().to_pylist()) == str([s[0] if s else None for s in sets])
        assert str(fold("last", values, *at).to_arrow().to_pylist()) == str([s[-1] if s else None for s in sets])


def test_means_of_large_integers_are_rounded_once() -> None:
    values = Values("int64", np.array([2**53 + 1, 2**53 + 2, 2**62 + 1]))
    got = fold("avg", values, np.array([0]), np.array([3])).data.tolist()
    assert got == [(2**53 + 1 + 2**53 + 2 + 2**62 + 1) / 3]


# Hand-outs ------------------------------------------------------------------------------------------------------------


def test_frames_and_streams() -> None:
    found = matches(KLEENE, EVENTS)
    assert found.to_polars()["a"].struct.field("id").to_list() == [7, 7]
    assert found.to_pandas()["a"][0]["id"] == 7
    assert str(pa.table(found).to_pylist()) == str(found.to_arrow().to_pylist())  # NaN is not equal to itself
    assert polars.DataFrame(found).shape == (2, 3)


def test_parquet_and_arrow_files(tmp_path: Path) -> None:
    found = matches(KLEENE, EVENTS)
    found.write(tmp_path / "out.parquet")
    found.write(str(tmp_path / "out.arrow"))
    for table in (pa.parquet.read_table(tmp_path / "out.parquet"), pa.feather.read_table(tmp_path / "out.arrow")):
        assert str(table.to_pylist()) == str(found.to_arrow().to_pylist())


def test_csv_files_are_flat(tmp_path: Path) -> None:
    matches(KLEENE, EVENTS).write(tmp_path / "out.csv")
    table = pa.csv.read_csv(tmp_path / "out.csv")
    assert table.column_names[:3] == ["a.ts", "a.type", "a.id"]
    [first, second] = table.to_pylist()
    assert (first["a.s"], first["c.ts"], second["c.ts"]) == ("<b>", None, 3)
    assert json.loads(first["b"]) == [{"ts": 2, "type": "B", "id": 8, "v": None, "f": None, "s": None, "b": None}]


def test_json_lines(tmp_path: Path) -> None:
    matches(f"{KLEENE} RETURN a.s AS s, b.f AS f, count(b) AS n", EVENTS).write(tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines == [{"s": "<b>", "f": [None], "n": 1}, {"s": "<b>", "f": None, "n": 0}]
    matches("PATTERN A a WITHIN 1 AGG COUNT(*) AS n", EVENTS).write(tmp_path / "agg.jsonl")
    assert json.loads((tmp_path / "agg.jsonl").read_text()) == {"n": 1}
    matches("PATTERN A a WITHIN 1 AGG COUNT(*) AS n", EVENTS).write(tmp_path / "agg.csv")
    assert (tmp_path / "agg.csv").read_text().split() == ['"n"', "1"]


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot write '\.xlsx' files"):
        matches(KLEENE, EVENTS).write(tmp_path / "out.xlsx")
    with pytest.raises(DataError, match="cannot be written"):
        matches(KLEENE, EVENTS).write(tmp_path / "nowhere" / "out.parquet")


def test_shown_in_short() -> None:
    found = matches(KLEENE, EVENTS)
    assert repr(found) == "<Matches: 2 matches of (a, b+, c)>"
    assert repr(matches("PATTERN A a WITHIN 1 AGG COUNT(*) AS n", EVENTS)) == "<Matches: 1 group>"
    page = found._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    many = matches("PATTERN A a WITHIN 1", [{"ts": i, "type": "A"} for i in range(50)])
    assert many._repr_html_().count("<tr>") == 11


@pytest.mark.parametrize("module", [result_module, segments], ids=lambda m: m.__name__)
def test_examples_in_the_docstrings_run(module: object) -> None:
    failed, attempted = doctest.testmod(module)  # type: ignore[arg-type]
    assert failed == 0
    assert attempted > 0
