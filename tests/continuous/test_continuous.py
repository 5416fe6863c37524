"""`quercus.continuous` from outside: times, names, aggregates one by one, patterns and WITH, results, limits."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import quercus as qc
from quercus.backends.local.continuous import direct, duck
from quercus.backends.local.continuous import run as whole_run
from quercus.kernels import windows
from tests import reference_windows
from tests.interrupts import interrupted

S = qc.Schema({"k": "string", "v": "int64", "x": "float64"}, type=None, time_unit="s")


def rows(text: str, schemas: dict[str, qc.Schema] | None = None, **streams: Any) -> list[tuple[object, ...]]:
    found = qc.continuous(text, schemas or {"S": S}).run(streams)
    return [tuple(row.values()) for row in found]


def stream(*tuples: tuple[object, ...]) -> dict[str, list[object]]:
    """(ts, v), with k and x null."""
    return {
        "ts": [t[0] for t in tuples],
        "v": [t[1] for t in tuples],
        "k": [t[2] if len(t) > 2 else None for t in tuples],
        "x": [t[3] if len(t) > 3 else None for t in tuples],
    }


# Windows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "gone"),
    [
        ("[Now]", [(2, 1), (4, 2), (5, 3)]),
        ("[Range 2]", [(4, 1), (6, 2), (7, 3)]),
        ("[Range 2 s]", [(4, 1), (6, 2), (7, 3)]),
        ("[Rows 1]", [(3, 1), (4, 2)]),
        ("[Rows 2]", [(4, 1)]),
        ("[Unbounded]", []),
        ("[Range Unbounded]", []),
    ],
)
def test_when_tuples_leave_a_window(window: str, gone: list[tuple[int, int]]) -> None:
    assert rows(f"DSTREAM(SELECT v FROM S{window})", S=stream((1, 1), (3, 2), (4, 3))) == gone


def test_a_tuple_that_another_of_its_time_drives_out_was_never_there() -> None:
    given = stream((1, 1), (1, 2), (2, 3))
    assert rows("ISTREAM(SELECT v FROM S[Rows 1])", S=given) == [(1, 2), (2, 3)]
    assert rows("DSTREAM(SELECT v FROM S[Rows 1])", S=given) == [(2, 2)]


def test_the_last_tuples_of_each_part() -> None:
    given = stream((1, 1, "a"), (2, 2, "b"), (3, 3, "a"), (4, 4, None), (5, 5, None))
    assert rows("DSTREAM(SELECT v FROM S[Partition By k Rows 1])", S=given) == [(3, 1), (5, 4)]


def test_nulls_nans_and_zeros_are_parts_of_their_own() -> None:
    given = stream((1, 1, None, math.nan), (2, 2, None, 0.0), (3, 3, None, math.nan), (4, 4, None, -0.0), (5, 5))
    assert rows("DSTREAM(SELECT v FROM S[Partition By x Rows 1])", S=given) == [(3, 1), (4, 2)]


def test_equal_rows_are_one_to_istream_while_one_stays() -> None:
    """At 3 the first tuple goes as an equal one comes: nothing changes."""
    given = stream((1, 7), (3, 7), (6, 7))
    assert rows("ISTREAM(SELECT v FROM S[Range 1])", S=given) == [(1, 7), (6, 7)]
    assert rows("DSTREAM(SELECT v FROM S[Range 1])", S=given) == [(5, 7), (8, 7)]
    assert rows("RSTREAM(SELECT v FROM S[Range 1])", S=given) == [(1, 7), (3, 7), (6, 7)]


def test_rows_of_different_windows_are_different_rows() -> None:
    query = "(SELECT v FROM S[Pattern By (TRUE; TRUE; FALSE; FALSE)])"
    given = stream((1, 7), (2, 7), (3, 7))
    assert rows(f"ISTREAM{query}", S=given) == [(2, 7), (2, 7), (3, 7), (3, 7)]
    assert rows(f"DSTREAM{query}", S=given) == [(3, 7), (3, 7), (4, 7), (4, 7)]


def test_times_at_the_end_of_all_time() -> None:
    late = 2**63 - 2
    given = stream((late - 1, 1), (late, 2))
    assert rows("DSTREAM(SELECT v FROM S[Range 5])", S=given) == []
    assert rows("ISTREAM(SELECT v FROM S[Range 5])", S=given) == [(late - 1, 1), (late, 2)]


# Aggregates -----------------------------------------------------------------------------------------------------------


def test_an_aggregate_of_nothing_is_a_row_from_the_first_instant_on() -> None:
    given = stream((1, 5), (3, 6))
    assert rows("ISTREAM(SELECT COUNT(*), SUM(v) FROM S[Range 3] WHERE v > 5)", S=given) == [
        (1, 0, None),
        (3, 1, 6),
        (7, 0, None),
    ]
    assert rows("ISTREAM(SELECT v, COUNT(*) FROM S[Range 3] WHERE v > 5 GROUP BY v)", S=given) == [(3, 6, 1)]
    assert rows("ISTREAM(SELECT COUNT(*) FROM S[Now])", S=stream()) == []


def test_an_aggregate_of_a_window_of_which_nothing_is_left() -> None:
    """As in SQL; but FIRST and LAST are of a tuple, and without one there is no row."""
    window = "S[Pattern By (TRUE; TRUE; FALSE; FALSE)]"
    given = stream((1, 1), (2, 2))
    assert rows(f"ISTREAM(SELECT COUNT(*), MAX(v) FROM {window} WHERE v > 5)", S=given) == [(2, 0, None)]
    assert rows(f"ISTREAM(SELECT NUM() FROM {window} WHERE v > 5)", S=given) == [(2, 2)]
    assert rows(f"ISTREAM(SELECT LAST(v) FROM {window} WHERE v > 5)", S=given) == []
    assert rows(f"ISTREAM(SELECT LAST(v), COUNT(*) FROM {window} WHERE v > 1)", S=given) == [(2, 2, 1)]


def test_first_and_last_are_nulls_where_their_tuples_have_nulls() -> None:
    window = "S[Pattern By (v = 1; v = 3; TRUE; TRUE)]"
    given = stream((1, 1, None), (2, 2, "b"), (3, 3, None))
    assert rows(f"ISTREAM(SELECT FIRST(k), LAST(k), MIN(k) FROM {window})", S=given) == [(3, None, None, "b")]
    assert rows(f"ISTREAM(SELECT FIRST(k), LAST(v) FROM {window})", S=given) == [(3, None, 3)]
    assert rows(f"ISTREAM(SELECT FIRST(k, v), LAST(k, v) FROM {window})", S=given) == [(3, None, 1, None, 3)]


def test_counts_of_a_window() -> None:
    """ITER counts what was looked at and let in or not, NUM the tuples of the window, the last one too."""
    window = "S[Pattern By (v = 1; v = 9; TRUE; v > 5)]"
    given = stream((1, 1), (2, 2), (3, 7), (4, 3), (5, 9))
    assert rows(f"ISTREAM(SELECT ITER(), NUM() FROM {window})", S=given) == [(5, 4, 3)]
    assert rows(f"ISTREAM(SELECT v, NUM() FROM {window})", S=given) == [(5, 1, 3), (5, 7, 3), (5, 9, 3)]
    assert rows(f"ISTREAM(SELECT v, ITER(w) FROM {window} AS w WHERE v > 5)", S=given) == [(5, 7, 4), (5, 9, 4)]
    assert rows(f"ISTREAM(SELECT COUNT(*) FROM {window} HAVING NUM() > 3)", S=given) == []


def test_whole_sums_are_exact_or_null() -> None:
    given = stream((1, 2**62), (1, 2**62 - 1))
    assert rows("ISTREAM(SELECT SUM(v) FROM S[Now] HAVING COUNT(*) > 0)", S=given) == [(1, 2**63 - 1)]
    given = stream((1, 2**62), (1, 2**62))
    assert rows("ISTREAM(SELECT SUM(v), AVG(v) FROM S[Now] HAVING COUNT(*) > 0)", S=given) == [(1, None, 2.0**62)]


def test_a_nan_among_the_values() -> None:
    given = stream((1, 1, None, math.nan), (1, 2, None, 1.0))
    [(_, least, most, total)] = rows("ISTREAM(SELECT MIN(x), MAX(x), SUM(x) FROM S[Now] HAVING COUNT(*) > 0)", S=given)
    assert math.isnan(least) and math.isnan(most) and math.isnan(total)  # type: ignore[arg-type]  # noqa: PT018
    assert rows("ISTREAM(SELECT COUNT(DISTINCT x) FROM S[Now] HAVING COUNT(*) > 0)", S=given) == [(1, 2)]


def test_floats_are_added_in_the_order_of_the_rows() -> None:
    values = [1e16, 1.0, -1e16, 1.0]
    given = stream(*((1, i, None, x) for i, x in enumerate(values)))
    assert rows("ISTREAM(SELECT SUM(x) FROM S[Now] HAVING COUNT(*) > 0)", S=given) == [(1, sum(values))]


# Names and times ------------------------------------------------------------------------------------------------------


def test_odd_names_and_values_are_only_names_and_values() -> None:
    odd = "a b'; DROP TABLE s0_0; --"
    schema = qc.Schema({odd: "string", "select": "int64"}, time="when \"'", type=None)
    quoted = '"' + odd + '"'
    select = f'SELECT S.{quoted} AS {quoted}, x."select"'
    query = f"ISTREAM({select} FROM {quoted}[Rows 5] AS x, {quoted}[Now] AS S WHERE x.{quoted} = 'x''; DROP')"
    given = {"when \"'": [1], odd: ["x'; DROP"], "select": [3]}
    assert qc.continuous(query, {odd: schema}).run({odd: given}).to_arrow().to_pylist() == [
        {"ts": 1, odd: "x'; DROP", "select": 3}
    ]


def test_timestamps_go_in_and_out() -> None:
    schema = qc.Schema({"at": "timestamp[ms]", "seen": "timestamp", "k": "string"}, time="at", type=None)
    moments = [datetime(2026, 11, 17, 9, 0), datetime(2026, 11, 17, 9, 30)]
    given = {"at": moments, "seen": moments[::-1], "k": ["a", "b"]}
    query = (
        "ISTREAM(SELECT k, seen, Timestamp, at - seen AS gap FROM S[Range 10 min] WHERE Timestamp > '2026-11-17T09:10')"
    )
    found = qc.continuous(query, {"S": schema}).run({"S": given}).to_arrow()
    assert found.schema.field("ts").type == pa.timestamp("ms")
    assert found.to_pylist() == [
        {"ts": moments[1], "k": "b", "seen": moments[0], "Timestamp": moments[1], "gap": 1_800_000}
    ]
    assert qc.continuous("DSTREAM(SELECT k FROM S[Range 10 min])", {"S": schema}).run({"S": given}).to_arrow()[
        "ts"
    ].to_pylist()[0] == datetime(2026, 11, 17, 9, 10, 0, 1000)


def test_a_type_column_is_read_where_it_is_named() -> None:
    schema = qc.Schema({"v": "int64"}, type="kind")
    given = {"ts": [1, 2], "kind": ["A", "B"], "v": [1, 2]}
    assert rows("ISTREAM(SELECT v FROM S[Now] WHERE kind = 'B')", {"S": schema}, S=given) == [(2, 2)]
    assert rows("ISTREAM(SELECT type, v FROM S[Now])", {"S": schema}, S=given) == [(1, "A", 1), (2, "B", 2)]
    assert rows("ISTREAM(SELECT * FROM S[Now])", {"S": schema}, S={"ts": [1], "v": [1]}) == [(1, 1)]
    window = "S[Pattern By (kind = 'A'; kind = 'B'; TRUE; FALSE)]"
    assert rows(f"ISTREAM(SELECT LAST(v) FROM {window})", {"S": schema}, S=given) == [(2, 2)]


def test_streams_come_as_events_do(tmp_path: Path) -> None:
    table = pa.table({"ts": [2, 1], "v": [2, 1], "k": ["b", "a"], "x": [0.5, None]})
    pa.parquet.write_table(table, tmp_path / "s.parquet")
    for given in (table, str(tmp_path / "s.parquet"), table.to_pylist(), table.to_pydict(), table.to_pandas()):
        assert rows("ISTREAM(SELECT v FROM S[Now])", S=given) == [(1, 1), (2, 2)]


# Composition ----------------------------------------------------------------------------------------------------------

AT = qc.Schema({"Person": "string", "Location": "string"}, type=None, time_unit="s")
ALARM = qc.Schema({"Person": "string", "level": "int64"}, type=None, time_unit="s")
WALKS = {
    "ts": [1, 2, 3, 5, 9],
    "Person": ["Tom", "Ann", "Tom", "Ann", "Tom"],
    "Location": ["Lab", "Lab", "Home", "Home", "Lab"],
}
ALARMS = {"ts": [4, 6, 60], "Person": ["Tom", "Tom", "Ann"], "level": [1, 2, 3]}
TRIP = """WITH Trip AS (ISTREAM(
  SELECT FIRST(Person) AS Person, LAST(Timestamp) - FIRST(Timestamp) AS took
  FROM At[Pattern By (Location = 'Lab'; Person = FIRST(Person) AND Location = 'Home'; TRUE; FALSE)]))
"""


def test_the_matches_of_a_pattern_are_a_stream() -> None:
    """Of a type column: of the only stream that has one, or of the one that is named."""
    schema = qc.Schema({"id": "int64"}, time_unit="s")
    given = {"ts": [1, 2, 5, 9], "type": ["A", "B", "A", "B"], "id": [1, 1, 2, 2]}
    pattern = "(PATTERN SEQ(A a, B b, [id]) WITHIN 5 s RETURN a.id AS id, b.ts - a.ts AS gap)"
    expected = [(2, 1, 1), (9, 2, 4)]
    assert rows(f"ISTREAM(SELECT id, gap FROM {pattern} [Range 5 min])", {"S": schema}, S=given) == expected
    assert (
        rows(f"ISTREAM(SELECT m.* FROM {pattern} OVER S [Now] AS m)", {"S": schema, "T": schema}, S=given) == expected
    )
    assert rows("ISTREAM(SELECT * FROM (PATTERN SEQ(A a, B b, [id]) WITHIN 2 s)[Now])", {"S": schema}, S=given) == [
        (2, 1, 1, 1, 2)
    ]


def test_streams_are_event_types_of_a_pattern() -> None:
    query = """ISTREAM(SELECT * FROM (PATTERN SEQ(At w, Alarm a, [Person]) WITHIN 3 s
                                      RETURN w.Person AS who, w.Location AS place, a.level AS level)[Now])"""
    found = rows(query, {"At": AT, "Alarm": ALARM}, At=WALKS, Alarm=ALARMS)
    assert found == [(4, "Tom", "Lab", 1), (4, "Tom", "Home", 1), (6, "Tom", "Home", 2)]


def test_a_pattern_window_is_an_event_type_of_a_pattern() -> None:
    """A trip is at its end: Tom's at 3, Ann's at 5."""
    query = (
        TRIP
        + """ISTREAM(SELECT * FROM (PATTERN SEQ(Trip t, !At x, Alarm a, t.Person = a.Person) WITHIN 1 h
                                      RETURN t.Person AS who, t.took AS took, a.level AS level)[Now])"""
    )
    found = rows(query, {"At": AT, "Alarm": ALARM}, At=WALKS, Alarm=ALARMS)
    assert found == [(4, "Tom", 2, 1)]


def test_a_pattern_window_stands_where_an_event_type_stands() -> None:
    """What the query of WITH above says, without a name of its own; and its counts and its first tuple."""
    window = "At[Pattern By (Location = 'Lab'; Person = FIRST(Person) AND Location = 'Home'; TRUE; FALSE)]"
    query = f"""ISTREAM(SELECT * FROM (PATTERN SEQ({window} t, !At x, Alarm a, t.Person = a.Person) WITHIN 1 h
                RETURN t.Person AS who, t.ts - t.first_ts AS took, a.level AS level, t.num AS num,
                       t.first_Location AS place)[Now])"""
    streams = {"At": AT, "Alarm": ALARM}
    assert rows(query, streams, At=WALKS, Alarm=ALARMS) == [(4, "Tom", 2, 1, 2, "Lab")]
    compiled = qc.continuous(query, streams)
    assert [name for name, _ in compiled.query.named] == ["At_1"]
    live = compiled.stream()
    found = [*live.push({"At": WALKS, "Alarm": ALARMS}), *live.close()]
    assert [tuple(r.values()) for r in found] == [(4, "Tom", 2, 1, 2, "Lab")]
    assert "pattern 1: PATTERN SEQ(At_1 t" in compiled.explain()
    assert "At_1" in compiled.graph().source


def test_pattern_windows_in_patterns_are_told_apart() -> None:
    """Two over one stream beside the stream itself; without RETURN an event has all that a window has."""
    start, end = "v = 1; v = 2; TRUE; TRUE", "v = 2; v = 3; TRUE; TRUE"
    s = qc.Schema({"v": "int64"}, type=None, time_unit="s")
    given = {"ts": [1, 2, 3, 4], "v": [1, 2, 3, 4]}
    query = (
        f"ISTREAM(SELECT * FROM (PATTERN SEQ(S[Pattern By ({start})] a, S[pattern by ({end})] b, S c) WITHIN 9)[Now])"
    )
    compiled = qc.continuous(query, {"S": s})
    assert [name for name, _ in compiled.query.named] == ["S_1", "S_2"]
    assert compiled.query.query.columns[:5] == (
        *(("a_v", "int64"), ("a_first_v", "int64"), ("a_first_ts", "int64"), ("a_iter", "int64"), ("a_num", "int64")),
    )
    [row] = compiled.run({"S": given})
    assert (row["ts"], row["a_ts"], row["a_v"], row["a_first_v"], row["b_first_ts"], row["b_num"], row["c_v"]) == (
        *(4, 2, 2, 1, 2, 2, 4),
    )
    assert compiled.explain().count("S: 2 pattern windows in one pass, with tuples kept once") == 1


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("AND({0} a, {0} b) WITHIN 9", []),
        ("AND({0} a, {1} b) WITHIN 9", []),
        ("AND({0} a, !{0} b) WITHIN 9", [(4, 2)]),
        ("AND({0}, {0}) WITHIN 9 RETURN S_1_1.v AS x", []),
        ("AND({0} a, S b) WITHIN 1 RETURN a.v AS x, b.v AS y", [(4, 2, 1), (4, 2, 2)]),
    ],
)
def test_equal_pattern_windows_in_a_pattern_are_one_event_type(pattern: str, expected: list[Any]) -> None:
    """What closes is one event: a match binds it once, and another one with it is no other."""
    ways = "S[Pattern By (v = 1; v = 2; TRUE; FALSE)]", "S[ pattern by (S.v = 1 ;(v) = 2;true;false) ]"
    text = pattern.format(*ways)
    text += "" if "RETURN" in text else " RETURN a.v AS x"
    compiled = qc.continuous(f"ISTREAM(SELECT * FROM (PATTERN {text})[Now])", {"S": S})
    assert [name for name, _ in compiled.query.named] == ["S_1"]
    assert sorted(tuple(row.values()) for row in compiled.run({"S": stream((3, 1), (4, 2))})) == expected


def test_pattern_windows_of_a_query_run_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever query, SELECT or source they stand in; equal ones once."""
    passes: list[int] = []
    together = windows.together

    def note(given: list[windows.Pass], *more: int) -> int:
        passes.append(len(given))
        return together(given, *more)

    monkeypatch.setattr(windows, "together", note)
    home = "At[Pattern By (Location = 'Lab'; Person = FIRST(Person) AND Location = 'Home'; TRUE; FALSE)]"
    next_ = "At[Pattern By (Location = 'Lab'; Person = FIRST(Person); TRUE; FALSE)]"
    query = (
        TRIP + f"ISTREAM(SELECT a.Person FROM {home} AS a, {next_} AS b WHERE a.Person = b.Person "
        f"UNION SELECT Person FROM {next_} UNION SELECT Person FROM Trip[Now])"
    )
    compiled = qc.continuous(query, {"At": AT})
    found = compiled.run({"At": WALKS})
    assert passes == [2]
    assert list(found) == list(compiled.run_with(reference_windows.closed_windows, {"At": WALKS}))


@pytest.mark.parametrize("kind", ["ISTREAM", "DSTREAM", "RSTREAM"])
@pytest.mark.parametrize(
    "selected",
    [
        "FIRST(v) AS a, NULL AS n, 1 AS k, 'x' AS s",
        "FIRST(b) AS b, LAST(ts) - FIRST(ts) AS d, FIRST(ts) AS t",
        "FIRST(v) + NUM() AS q, ITER() * 2 AS i, FIRST(x) / 0 AS z, LAST(v) = 2 AS e, UPPER(LAST(s)) AS s",
        "NUM() AS n",
    ],
)
def test_what_needs_no_sql_is_what_sql_gives(selected: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = qc.Schema({"v": "int64", "b": "bool", "x": "float64", "s": "string", "ts": "timestamp[s]"}, type=None)
    given = {
        "ts": [datetime(2026, 1, 1, 0, 0, i) for i in range(4)],
        "v": [1, 2, None, 2],
        "b": [True, False, None, True],
        "x": [1.5, None, 2.5, 0.0],
        "s": ["a", "ß", None, "c"],
    }
    query = qc.continuous(f"{kind}(SELECT {selected} FROM S[Pattern By (TRUE; v = 2; TRUE; TRUE)])", {"S": schema})
    assert direct.is_direct(query.query.query)
    live = query.stream()
    pushed = [*live.push({"S": given}), *live.close()]
    found = query.run({"S": given}).to_arrow()
    monkeypatch.setattr(whole_run, "is_direct", lambda _: False)
    wanted = query.run({"S": given}).to_arrow()
    assert found.equals(wanted)
    assert len(wanted) == 3
    assert repr(pushed) == repr(wanted.to_pylist())


def test_ties_by_arrival() -> None:
    """A window looks at tuples that came later, also at its own time."""
    text = "ISTREAM(SELECT FIRST(v) AS a, LAST(v) AS b FROM S[Pattern By (v = 1; v = 2; TRUE; FALSE)])"
    given = {"ts": [1, 1, 2], "v": [1, 2, 2]}
    for ties, expected in (("strict", [(2, 1, 2)]), ("arrival", [(1, 1, 2)])):
        s = qc.Schema({"v": "int64"}, type=None, ties=ties)  # type: ignore[arg-type]
        assert rows(text, {"S": s}, S=given) == expected
        live = qc.continuous(text, {"S": s}).stream()
        pushed = [*live.push({"S": {"ts": [1], "v": [1]}}), *live.push({"S": {"ts": [1, 2], "v": [2, 2]}})]
        assert [tuple(r.values()) for r in (*pushed, *live.close())] == expected


def test_a_query_of_with_is_a_stream() -> None:
    query = TRIP + "ISTREAM(SELECT COUNT(*) AS n, SUM(took) AS total FROM Trip[Range 1 min])"
    assert rows(query, {"At": AT}, At=WALKS) == [(3, 1, 2), (5, 2, 5), (64, 1, 3), (66, 0, None)]


def test_a_match_stands_at_the_time_of_its_last_event() -> None:
    """Also where it is decided only later."""
    schema = qc.Schema({}, time_unit="s")
    given = {"ts": [1, 2, 9], "type": ["A", "B", "C"]}
    assert rows("ISTREAM(SELECT n FROM (PATTERN SEQ(A a, B+ b, !C) WITHIN 5 s RETURN count(b) AS n)[Now])",
                {"S": schema}, S=given) == [(2, 1)]  # fmt: skip


# Results --------------------------------------------------------------------------------------------------------------


def test_what_a_result_can_become(tmp_path: Path) -> None:
    query = qc.continuous("ISTREAM(SELECT v FROM S[Now])", {"S": S})
    found = query.run({"S": stream((1, 5), (2, None))})
    assert len(found) == 2
    assert list(found) == [{"ts": 1, "v": 5}, {"ts": 2, "v": None}]
    assert repr(found) == "<Tuples: 2 tuples of (ts, v)>"
    assert "<td>5</td>" in found._repr_html_()
    assert found.to_pandas()["ts"].tolist() == [1, 2]
    assert found.to_polars()["v"].to_list() == [5, None]
    assert pa.table(found).equals(found.to_arrow())
    found.write(tmp_path / "out.parquet")
    assert pa.parquet.read_table(tmp_path / "out.parquet").equals(found.to_arrow())
    again = qc.continuous("ISTREAM(SELECT COUNT(*) FROM Q[Unbounded])", {"Q": query.schema}).run({"Q": found})
    assert [row["count"] for row in again] == [1, 2]


def test_it_can_be_explained_and_drawn(tmp_path: Path) -> None:
    query = qc.continuous(TRIP + "RSTREAM(SELECT * FROM Trip[Rows 3])", {"At": AT})
    shown = query.explain()
    assert shown.splitlines()[0] == "query Trip"
    assert "[Pattern By]: start Location = 'Lab'; termination (Person = FIRST(Person)) and (Location = 'Home')" in shown
    assert "\nwindows\n  At: open windows are kept by Person; a tuple touches those of its own, all at once" in shown
    assert query.graph().source.count("shape=") == 9
    assert query.render(tmp_path / "q.dot").read_text() == query.graph().source
    assert "text/plain" in query._repr_mimebundle_()


def test_explain_says_what_a_tuple_touches() -> None:
    """Window by window; nothing where there is none."""
    query = "ISTREAM(SELECT NUM() FROM S[Pattern By (TRUE; v = FIRST(v); TRUE; {0})] UNION SELECT v FROM S[Now])"
    every = "S: a tuple that differs in v can close, drop or enlarge a window: a tuple touches all, one by one"
    assert qc.continuous(query.format("TRUE"), {"S": S}).explain().endswith(f"\n\nwindows\n  {every}")
    assert "windows" not in qc.continuous("ISTREAM(SELECT v FROM S[Now])", {"S": S}).explain()


# Limits ---------------------------------------------------------------------------------------------------------------


def test_limits() -> None:
    query = qc.continuous("RSTREAM(SELECT a.v AS p, b.v AS q FROM S[Unbounded] AS a, S[Unbounded] AS b)", {"S": S})
    given = {"S": stream(*((i, i) for i in range(60)))}
    with pytest.raises(qc.LimitExceeded) as caught:
        query.run(given, limits=qc.Limits(max_matches=1000))
    assert (caught.value.limit, caught.value.value) == ("max_matches", 1000)
    given = {"S": stream(*((i, i) for i in range(3000)))}
    with pytest.raises(qc.LimitExceeded) as caught:
        query.run(given, limits=qc.Limits(max_seconds=0.2))
    assert caught.value.limit == "max_seconds"
    with pytest.raises(qc.LimitExceeded) as caught:
        query.run(given, limits=qc.Limits(max_state_bytes=20_000_000))
    assert caught.value.limit == "max_state_bytes"


def test_without_duckdb_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    duck._database.cache_clear()
    with pytest.raises(qc.QuercusError, match=r"pip install 'quercus\[sql\]'"):
        qc.continuous("ISTREAM(SELECT v FROM S[Now])", {"S": S}).run({"S": stream((1, 1))})


def test_an_old_duckdb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    monkeypatch.setattr(duckdb, "__version__", "1.4.4")
    with pytest.raises(qc.QuercusError, match=r"DuckDB 2\.0 .* \(here is 1\.4\.4\)"):
        qc.continuous("ISTREAM(SELECT v FROM S[Now])", {"S": S}).run({"S": stream((1, 1))})


def test_duckdb_is_imported_when_it_is_needed() -> None:
    code = "import sys, quercus as qc; qc.continuous('ISTREAM(SELECT v FROM S[Now])', {'S': qc.Schema({'v': 'int64'})})"
    subprocess.run([sys.executable, "-c", code + "; assert 'duckdb' not in sys.modules"], check=True)


@pytest.mark.parametrize("seed", range(6))
def test_threads_change_nothing(seed: int) -> None:
    random = Random(seed)
    tuples = [(i // 3, random.randrange(5), random.choice("abc"), random.random()) for i in range(3000)]
    query = qc.continuous(
        "ISTREAM(SELECT k, SUM(x) AS s, MIN(v) AS m, LAST(x) AS e FROM S[Range 9] GROUP BY k UNION ALL "
        "SELECT FIRST(k), SUM(x), NUM(), LAST(x) FROM S[Pattern By (v = 1; v = 2; v <> 1; TRUE)])",
        {"S": S},
    )
    one, two = (query.run({"S": stream(*tuples)}, threads=n).to_arrow() for n in (1, 2))
    assert one.num_rows > 1000
    assert one.equals(two)


def test_a_backend_that_cannot_says_so() -> None:
    query = qc.continuous("ISTREAM(SELECT v FROM S[Now])", {"S": S})
    assert len(query.run({"S": stream((1, 1))}, "local")) == 1
    with pytest.raises(qc.QueryError, match="E703"):
        query.run({"S": stream((1, 1))}, backend="other")


def test_nulls_of_no_type() -> None:
    given = stream((1, 1), (1, None))
    query = "ISTREAM(SELECT NULL AS a, SUM(NULL) AS b, COUNT(NULL) AS c, COUNT(*) AS d FROM S[Now] GROUP BY NULL)"
    assert rows(query, S=given) == [(1, None, None, 0, 2)]
    assert rows("ISTREAM(SELECT NULL AS a FROM S[Now] WHERE NULL)", S=given) == []
    assert rows("ISTREAM(SELECT v FROM S[Now] UNION SELECT NULL FROM S[Now])", S=given) == [(1, 1), (1, None)]
    assert rows("ISTREAM(SELECT NUM() FROM S[Pattern By (TRUE; NULL; TRUE; TRUE)])", S=given) == []


def test_threads_are_checked() -> None:
    with pytest.raises(qc.DataError):
        qc.continuous("ISTREAM(SELECT v FROM S[Now])", {"S": S}).run({"S": stream((1, 1))}, threads=0)


@pytest.mark.parametrize("limits", [qc.Limits(), qc.Limits(max_seconds=600)])
def test_ctrl_c_stops_the_relational_part(limits: qc.Limits) -> None:
    schema = qc.Schema({"v": "float64"}, type=None, time_unit="s")
    rows = {"ts": list(range(30_000)), "v": [float(i) for i in range(30_000)]}
    query = "ISTREAM(SELECT A.v AS x, B.v AS y FROM A[Unbounded], B[Unbounded] WHERE A.v * B.v > 899910000000)"
    continuous = qc.continuous(query, {"A": schema, "B": schema})
    with interrupted(1.0):
        continuous.run({"A": rows, "B": rows}, limits=limits)
