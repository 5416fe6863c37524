"""Every way a continuous query can be wrong: the code, the place, the hint, and a caret under the right text."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import quercus as qc
from quercus.compiler.reading import MAX_DEPTH, MAX_TEXT
from tests.test_errors import CONTINUOUS

AT = qc.Schema({"Person": "string", "Location": "string", "n": "int64"}, time_unit="s")
SCHEMAS = {
    "At": AT,
    "Room": qc.Schema({"Room": "string", "State": "string", "n": "int64"}, type=None, time_unit="s"),
    "Flat": qc.Schema({"n": "string"}, type=None, time_unit="s"),
    "Fast": qc.Schema({"x": "int64"}, type=None, time_unit="ms"),
    "Moments": qc.Schema({"ts": "timestamp[s]", "at": "timestamp", "ok": "bool"}, type=None),
    "Keyed": qc.Schema({"id": "int64"}, key="id", time_unit="s"),
}


class Wrong(NamedTuple):
    """`marked` is the text that the caret stands under (its beginning)."""

    code: str
    query: str
    marked: str
    hint: str | None  # a part of it


def window(start: str = "TRUE", termination: str = "TRUE", iteration: str = "TRUE", chosen: str = "TRUE") -> str:
    return f"ISTREAM(SELECT Person FROM At[Pattern By ({start}; {termination}; {iteration}; {chosen})])"


TABLE = [
    # pattern windows in patterns
    *(
        Wrong(code, f"ISTREAM(SELECT * FROM (PATTERN SEQ({pattern}) WITHIN 5 s RETURN w.n AS n)[Now])", marked, hint)
        for code, pattern, marked, hint in (
            ("E901", "At[Pattern By (LAST(n) = 1; TRUE; TRUE; TRUE)] w, Room r", "LAST(n)", "no last tuple"),
            ("E403", "At[Pattern By (TRUE; TRUE; TRUE)] w, Room r", "[Pattern By", "start; termination"),
            ("E403", "[Pattern By (TRUE; TRUE; TRUE; TRUE)] w, Room r", "[Pattern By", "with the stream before"),
            ("E403", "At w[Pattern By (TRUE; TRUE; TRUE; TRUE)], Room r", "[Pattern By", "after an event type"),
            ("E104", "At[Pattern By (m = 1; TRUE; TRUE; TRUE)] w, Room r", "m = 1", "attributes: "),
            ("E109", "Rom[Pattern By (TRUE; TRUE; TRUE; TRUE)] w, Room r", "Rom[", "did you mean 'Room'"),
            ("E104", "At[Pattern By (TRUE; TRUE; TRUE; TRUE)] w, w.m = 1, Room r", "m = 1", None),
        )
    ),
    Wrong(
        "E906",
        "ISTREAM(SELECT * FROM (PATTERN SEQ(At[Pattern By (TRUE; TRUE; TRUE; TRUE)] w, Room r)) OVER At [Now])",
        "[Pattern By",
        "leave OVER out",
    ),
    *(
        Wrong("E403", f"ISTREAM(SELECT * FROM (PATTERN SEQ(At{w} w, Room r) WITHIN 5 s)[Now])", w[1:4], "in FROM")
        for w in ("[Now]", "[ROWS 3]", "[Range 5 s]", "[Unbounded]", "[Partition By n Rows 2]")
    ),
    # the text
    Wrong("E001", "SELECT * FROM At[Now]", "SELECT", "write ISTREAM(SELECT"),
    Wrong("E001", "ISTREM(SELECT * FROM At[Now])", "ISTREM", "did you mean 'ISTREAM'"),
    Wrong("E001", "ISTREAM(FROM At[Now])", "FROM", "write ISTREAM(SELECT"),
    Wrong("E001", "ISTREAM(SELECT Person AS '' FROM At[Now])", "''", "give it a name"),
    Wrong("E001", "ISTREAM(SELECT Person FROM At[Now] AS '')", "''", "give it a name"),
    Wrong("E001", "ISTREAM(SELECT Person FROM At[Now] WHER n = 1)", "n", "did you mean WHERE instead of 'WHER'"),
    Wrong("E001", "ISTREAM(SELECT Person n FROM At[Now])", "n", "separated by commas"),
    Wrong("E001", "ISTREAM(SELECT Person FROM At[Now] Room[Now])", "[Now])", None),
    Wrong("E001", "ISTREAM(SELECT Person, FROM At[Now])", "FROM", "something is missing"),
    Wrong("E001", "ISTREAM(SELECT Person FROM At[Now] ORDER BY n)", "BY", "no ORDER BY"),
    Wrong("E001", "ISTREAM(SELECT Person FROM At[Now] LEFT JOIN Room[Now] ON TRUE)", "LEFT", "only inner joins"),
    Wrong("E001", "ISTREAM(SELECT Person FROM At[Now] a LIMIT 3)", "LIMIT", "no LIMIT"),
    Wrong("E001", "ISTREAM(SELECT Person FROM At[Now] a LEFT JOIN Room[Now] ON TRUE)", "LEFT", "only inner joins"),
    Wrong("E001", "ISTREAM(SELECT n FROM (SELECT n FROM At[Now])[Now])", "SELECT n FROM At", None),
    Wrong("E001", "ISTREAM(SELECT n = (SELECT n FROM At[Now]) FROM At[Now])", "SELECT n FROM At", "WITH"),
    Wrong("E008", "ISTREAM(SELECT n FROM At[Now] WHERE n = 1 && n = 2)", "&& n", "write AND"),
    Wrong("E001", "ISTREAM(SELECT n FROM At[Now]);", ";", "no ';' at its end"),
    Wrong("E001", "ISTREAM(SELECT n FROM At[Range 2 parsecs])", "parsecs", "did you mean 'sec'"),
    Wrong("E001", "ISTREAM(SELECT n FROM At[Partition By n Row 2])", "Row", "did you mean 'Rows'"),
    Wrong("E403", "ISTREAM(SELECT n FROM At[Partition By At.n Rows 2])", ".n", "names alone"),
    Wrong("E403", "ISTREAM(SELECT n FROM At[Partition By abs(n) Rows 2])", "(n)", "names alone"),
    Wrong("E403", "ISTREAM(SELECT n FROM At[Partition By n])", "])", "write [Partition By a, b Rows 3]"),
    Wrong("E002", "ISTREAM(SELECT n FROM At[Now]", "(SELECT", "add the missing ')'"),
    Wrong("E002", "ISTREAM(SELECT n FROM At[Now)", "[Now", "this wants a ']'"),
    Wrong("E003", "ISTREAM(SELECT n FROM At[Now] WHERE Person = 'Tom)", "'Tom", "add the missing '"),
    Wrong("E004", "  -- nothing", "", "ISTREAM(SELECT * FROM S[Now])"),
    Wrong("E005", "ISTREAM(SELECT * FROM At[Now])" + " " * MAX_TEXT, "", "to here"),
    Wrong("E006", f"ISTREAM(SELECT {'(' * MAX_DEPTH}n{')' * MAX_DEPTH} FROM At[Now])", "(n", "split the query"),
    Wrong("E007", "ISTREAM(SELECT n FROM At[Now] WHERE n = 1 WHERE n = 2)", "WHERE n = 2", "each clause stands once"),
    Wrong("E008", "ISTREAM(SELECT n FROM At[Now] WHERE !n)", "!", "write NOT"),
    Wrong("E009", "ISTREAM(SELECT 9223372036854775808 FROM At[Now])", "9223372036854775808", "decimal point"),
    # names
    Wrong("E102", "ISTREAM(SELECT A.n FROM At[Now])", "A.n", "did you mean 'At'"),
    Wrong("E102", "ISTREAM(SELECT At.n FROM At[Now] AS a)", "At.n", "did you mean 'a'"),
    Wrong("E102", window(termination="Room.State = 'x'"), "Room.State", "join in WHERE"),
    Wrong("E103", "ISTREAM(SELECT 1 FROM At[Now], At[Rows 2])", "At[Rows 2]", "with AS"),
    Wrong("E103", "WITH At AS (ISTREAM(SELECT n FROM At[Now])) ISTREAM(SELECT n FROM At[Now])", "At AS", "another"),
    Wrong("E104", "ISTREAM(SELECT Persn FROM At[Now])", "Persn", "did you mean 'Person'"),
    Wrong("E104", "ISTREAM(SELECT person FROM At[Now])", "person", "did you mean 'Person'"),
    Wrong("E104", "ISTREAM(SELECT At.Stat FROM At[Now])", "At.Stat", "attributes: Person, Location, n, Timestamp"),
    Wrong("E104", "ISTREAM(SELECT At FROM At[Now])", "At FROM", "write At.attribute"),
    Wrong("E104", window(termination="Locaton = 'Lab'"), "Locaton", "did you mean 'Location'"),
    Wrong("E104", window(termination="ITER > 2"), "ITER > 2", "write ITER()"),
    Wrong("E104", window(termination="n = Prev"), "Prev", "write PREV(a)"),
    Wrong("E104", "ISTREAM(SELECT NUM FROM At[Pattern By (TRUE; TRUE; TRUE; TRUE)])", "NUM FROM", "write NUM()"),
    Wrong("E104", "ISTREAM(SELECT n FROM At[Partition By Persn Rows 2])", "Persn", "did you mean 'Person'"),
    Wrong("E104", "ISTREAM(SELECT type FROM Room[Now])", "type", "attributes: "),
    Wrong("E106", "ISTREAM(SELECT frist(n) FROM At[Now])", "frist(n)", "did you mean 'first'"),
    Wrong("E107", "ISTREAM(SELECT n, Person AS n FROM At[Now])", "Person AS n", "name them with AS"),
    Wrong("E107", "ISTREAM(SELECT n AS ts FROM At[Now])", "n AS ts", "the output's own time"),
    Wrong("E108", "ISTREAM(SELECT n FROM At[Now], Room[Now])", "n FROM", "write At.n or Room.n"),
    Wrong("E108", "ISTREAM(SELECT Timestamp FROM At[Now], Room[Now])", "Timestamp", "At.Timestamp or Room.Timestamp"),
    Wrong("E109", "ISTREAM(SELECT n FROM Att[Now])", "Att", "did you mean 'At'"),
    Wrong("E109", "WITH Q AS (ISTREAM(SELECT n FROM Q[Now])) ISTREAM(SELECT n FROM Q[Now])", "Q[Now]", "before it"),
    Wrong("E109", "ISTREAM(SELECT 1 FROM (PATTERN SEQ(At a, Ro b) WITHIN 5)[Now])", "Ro b", "'Room'"),
    Wrong("E109", "ISTREAM(SELECT 1 FROM (PATTERN SEQ(At a, At b) WITHIN 5) OVER Rom [Now])", "Rom", "'Room'"),
    # types
    Wrong("E201", "ISTREAM(SELECT n FROM At[Now] WHERE Person > 3)", "Person > 3", "both sides need one type"),
    Wrong("E201", "ISTREAM(SELECT SUM(Person) FROM At[Now])", "Person", "it takes numbers"),
    Wrong("E201", "ISTREAM(SELECT MIN(ok) FROM Moments[Now])", "ok", "no order"),
    Wrong("E201", window(start="n + Person > 1"), "Person", "arithmetic takes numbers"),
    Wrong("E202", "ISTREAM(SELECT n FROM At[Now] WHERE n)", "n)", "compare it"),
    Wrong("E202", window(chosen="n + 1"), "n + 1", "compare it"),
    Wrong("E203", window(termination="FIRST(n, Person) = 1"), "FIRST(n, Person)", "write FIRST(a)"),
    Wrong("E203", window(termination="FIRST(n + 1) = 1"), "FIRST(n + 1)", "write FIRST(a)"),
    Wrong("E203", window(termination="NUM(n) = 1"), "NUM(n)", "write NUM()"),
    Wrong("E203", "ISTREAM(SELECT FIRST(n, Person) = 1 FROM At[Now])", "FIRST(n, Person)", "stands alone in SELECT"),
    Wrong("E203", "ISTREAM(SELECT FIRST(n, Person) AS x FROM At[Now])", "FIRST(n, Person) AS x", "FIRST(a) AS x"),
    Wrong("E203", "ISTREAM(SELECT FIRST(n + 1) FROM At[Now])", "FIRST(n + 1)", "write FIRST(a)"),
    Wrong("E203", "ISTREAM(SELECT SUM(*) FROM At[Now])", "SUM(*)", "SUM(attribute)"),
    Wrong("E203", "ISTREAM(SELECT abs(DISTINCT n) FROM At[Now])", "abs(DISTINCT n)", "for aggregates"),
    # windows
    Wrong("E309", f"ISTREAM({' UNION '.join(['SELECT n FROM At[Now]'] * 65)})", "SELECT n FROM At[Now])", "WITH"),
    Wrong("E309", f"ISTREAM(SELECT 1 FROM {', '.join(f'At[Now] a{i}' for i in range(17))})", "At[Now] a16", "WITH"),
    Wrong("E402", "ISTREAM(SELECT n FROM At[Range 0 s])", "0", "above zero"),
    Wrong("E402", "ISTREAM(SELECT n FROM At[Range 5 events])", "[Range 5 events", "[Rows 5]"),
    Wrong("E402", "ISTREAM(SELECT n FROM At[Range 5 ms])", "[Range 5 ms", "counted in s"),
    Wrong("E402", "ISTREAM(SELECT n FROM At[Rows 0])", "0", "above 0"),
    Wrong("E403", "ISTREAM(SELECT n FROM At)", ")", "[Unbounded]"),
    Wrong("E403", "ISTREAM(SELECT n FROM At WHERE n = 1)", "WHERE", "[Range 2 min]"),
    Wrong("E403", "ISTREAM(SELECT n FROM At[Rnge 2 min])", "Rnge", "did you mean 'Range'"),
    Wrong("E403", "ISTREAM(SELECT n FROM At[])", "[]", "[Now]"),
    Wrong("E403", "ISTREAM(SELECT n FROM At[Pattern By (TRUE; TRUE; TRUE)])", "[Pattern By", "start; termination"),
    Wrong("E403", "ISTREAM(SELECT n FROM (PATTERN SEQ(At a, At b) WITHIN 5))", ")", "[Unbounded]"),
    Wrong("E403", "ISTREAM(SELECT id FROM Keyed[Rows 3])", "[Rows 3]", "[Partition By id Rows n]"),
    # sequence functions
    Wrong("E901", window(start="PREV(n) = 1"), "PREV(n)", "no previous one"),
    Wrong("E901", window(start="ITER() = 1"), "ITER()", "no window is open yet"),
    Wrong("E901", window(start="NUM() = 1"), "NUM()", "no window is open yet"),
    Wrong("E901", window(start="LAST(n) = 1"), "LAST(n)", "PREV(a)"),
    Wrong("E901", window(termination="LAST(n) = 1"), "LAST(n)", "PREV(a)"),
    Wrong("E901", window(chosen="n = 1 OR LAST(n) = 1"), "LAST(n)", "PREV(a)"),
    Wrong("E901", "ISTREAM(SELECT PREV(n) FROM At[Pattern By (TRUE; TRUE; TRUE; TRUE)])", "PREV(n)", "FIRST(a)"),
    Wrong("E901", "ISTREAM(SELECT n FROM At[Now] WHERE FIRST(n) = 1)", "FIRST(n)", "HAVING"),
    Wrong("E901", "ISTREAM(SELECT n FROM At[Now] GROUP BY LAST(n))", "LAST(n)", "HAVING"),
    Wrong("E901", "ISTREAM(SELECT NUM() FROM At[Now])", "NUM()", "COUNT(*)"),
    Wrong("E901", "ISTREAM(SELECT NUM(At) FROM At[Now])", "NUM(At)", "counts one"),
    # groups
    Wrong("E902", "ISTREAM(SELECT Person, COUNT(*) FROM At[Now])", "Person", "GROUP BY, or write FIRST(Person)"),
    Wrong("E902", "ISTREAM(SELECT COUNT(*) FROM At[Now] GROUP BY Person HAVING n > 1)", "n > 1", "GROUP BY"),
    Wrong("E902", "ISTREAM(SELECT n + 1 FROM At[Now] GROUP BY n + 2)", "n + 1", "GROUP BY"),
    Wrong("E902", "ISTREAM(SELECT * FROM At[Now] GROUP BY n)", "*", "GROUP BY"),
    Wrong("E903", "ISTREAM(SELECT n FROM At[Now] WHERE COUNT(*) > 1)", "COUNT(*)", "use HAVING"),
    Wrong("E903", "ISTREAM(SELECT SUM(COUNT(*)) FROM At[Now])", "COUNT(*)", "WITH"),
    Wrong("E903", "ISTREAM(SELECT SUM(FIRST(n)) FROM At[Now])", "FIRST(n)", "whole relation"),
    Wrong("E903", window(termination="COUNT(*) > 1"), "COUNT(*)", "NUM()"),
    # several streams
    Wrong("E904", "ISTREAM(SELECT 1 FROM At[Now], Fast[Now])", "Fast", "one time unit"),
    Wrong("E904", "ISTREAM(SELECT 1 FROM At[Now], Moments[Now])", "Moments", "one time unit"),
    Wrong("E905", "ISTREAM(SELECT n FROM At[Now] UNION SELECT n, State FROM Room[Now])", "UNION", "as many"),
    Wrong("E905", "ISTREAM(SELECT n FROM At[Now] UNION SELECT State FROM Room[Now])", "UNION", "one type"),
    # patterns
    Wrong("E104", "ISTREAM(SELECT 1 FROM (PATTERN SEQ(At a, Room b, a.x = b.n)\nWITHIN 5)[Now])", "x", "attributes: "),
    Wrong("E401", "ISTREAM(SELECT 1 FROM (PATTERN SEQ(At a, Room b))[Now])", "))[Now]"[1:], "WITHIN"),
    Wrong("E001", "ISTREAM(SELECT 1 FROM (PATTERN SEQ(At a, ) WITHIN 5)[Now])", ") WITHIN", "missing"),
    Wrong("E906", "ISTREAM(SELECT 1 FROM (PATTERN SEQ(At, Room) WITHIN 5 AGG COUNT(*))[Now])", "COUNT(*)", "RETURN"),
    Wrong("E906", "ISTREAM(SELECT 1 FROM (PATTERN SEQ(At a, Room+ b) WITHIN 5)[Now])", "Room+ b", "RETURN"),
    Wrong("E906", "ISTREAM(SELECT 1 FROM (PATTERN SEQ(At a, Room b) WITHIN 5 RETURN a)[Now])", "a)[Now]", "a.x"),
    Wrong("E906", "ISTREAM(SELECT 1 FROM (PATTERN SEQ(At a, Flat b) WITHIN 5)[Now])", "PATTERN", None),
    Wrong("E906", "ISTREAM(SELECT 1 FROM (PATTERN SEQ(A a, B b) WITHIN 5) OVER Room [Now])", "Room", "leave OVER out"),
    Wrong("E107", "ISTREAM(SELECT 1 FROM (PATTERN SEQ(At a, Room b) WITHIN 5 RETURN a.n AS ts)[Now])", "a.n AS", "own"),
]  # fmt: skip


def refused(query: Any, schemas: Any = SCHEMAS) -> qc.QueryError:
    with pytest.raises(qc.QueryError) as caught:
        qc.continuous(query, schemas)
    return caught.value


@pytest.mark.parametrize("wrong", TABLE, ids=[f"{w.code}: {w.query[:60]}" for w in TABLE])
def test_a_wrong_query(wrong: Wrong) -> None:
    e = refused(wrong.query)
    assert e.code == wrong.code, str(e)
    assert e.span is not None
    assert wrong.query[e.span.start :].startswith(wrong.marked), (wrong.query[e.span.start :], str(e))
    assert wrong.hint is None or wrong.hint in (e.hint or ""), str(e)
    shown = str(e).split("\n")
    line = wrong.query.split("\n")[(e.line or 1) - 1]
    if len(line) < 110:
        assert shown[1].endswith(line.replace("\t", " ")) or "..." in shown[1]
    assert "^" in shown[2]


def test_every_code_of_continuous_queries_is_in_the_table() -> None:
    assert {w.code for w in TABLE} >= CONTINUOUS


@pytest.mark.parametrize("text", [None, 3, b"ISTREAM", ["ISTREAM"]])
def test_what_is_no_text(text: Any) -> None:
    assert refused(text).code == "E001"


@pytest.mark.parametrize("schemas", [None, [AT], {"At": {"Person": "string"}}])
def test_what_are_no_schemas(schemas: Any) -> None:
    assert refused("ISTREAM(SELECT * FROM At[Now])", schemas).code == "E702"


def test_an_error_in_a_pattern_shows_the_whole_line() -> None:
    query = "ISTREAM(SELECT 1 FROM\n  (PATTERN SEQ(At a, Room b, a.Persn = 'Tom') WITHIN 5)[Now])"
    assert str(refused(query)).split("\n") == [
        "error[E104]: no attribute 'Persn' in event type 'At'",
        "  2 |   (PATTERN SEQ(At a, Room b, a.Persn = 'Tom') WITHIN 5)[Now])",
        "                                     ^^^^^  did you mean 'Person'?",
    ]


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ({}, "the stream 'At' is missing"),
        ({"At": [], "Att": []}, "no stream 'Att': did you mean 'At'"),
        ([], "streams are given as {name: events}"),
        ({"At": {"ts": [1], "Person": ["x"]}}, "no column 'n'"),
        ({"At": {"ts": [1], "n": ["x"]}}, "column 'n'"),
    ],
)
def test_streams_that_do_not_fit(streams: Any, message: str) -> None:
    with pytest.raises(qc.DataError) as caught:
        qc.continuous("ISTREAM(SELECT n FROM At[Now])", SCHEMAS).run(streams)
    assert message in str(caught.value)
