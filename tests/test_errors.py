"""Every way a query or a schema can be wrong: the code, the place, the hint, and a caret under the right text."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import pytest

import quercus as qc
from quercus.compiler.reading import MAX_DEPTH, MAX_TEXT
from quercus.errors import CODES, nearest

SCHEMA = qc.Schema(
    {
        "Trade": {"id": "int64", "price": "float64", "symbol": "string", "open": "bool", "at": "timestamp[ms]"},
        "Quote": {"id": "int64", "bid": "float64", "symbol": "string", "name": "string"},
        **{letter: {"id": "int64", "x": "int64", "s": "string"} for letter in "ABCDEFGHIJKLMN"},
    }
)

# Codes that other layers raise: plan documents (tests/test_roundtrip.py), options of compile() (tests/test_plans.py),
# what a backend cannot do, and continuous queries (tests/continuous/test_errors.py).
OF_CUBES = {"E801", "E802", "E803", "E804"}
CONTINUOUS = {"E108", "E109", "E403", "E901", "E902", "E903", "E904", "E905", "E906"}
ELSEWHERE = {"E701", "E702", "E703"} | OF_CUBES | CONTINUOUS


class Wrong(NamedTuple):
    """`marked` is the text that the caret stands under (its beginning, at most one line); None: no place."""

    code: str
    query: str
    marked: str | None
    hint: str | None  # a part of it


TABLE = [
    # the text
    Wrong("E001", "SEQ(A, B) WITHIN 5", "SEQ", "put PATTERN before"),
    Wrong("E001", "PATERN SEQ(A, B) WITHIN 5", "PATERN", "did you mean 'PATTERN'?"),
    Wrong("E001", "PATTERN A, B WITHIN 5", ",", "write SEQ(A, B) or A ; B"),
    Wrong("E001", "PATTERN SEQ(A, ) WITHIN 5", ")", "something is missing"),
    Wrong("E001", "PATTERN A ; WITHIN 5", "WITHIN", None),
    Wrong("E001", "PATTERN A ;", "", "something is missing"),
    Wrong("E001", "PATTERN (A, B) WITHIN 5", "(A, B)", "write SEQ(A, B) or A ; B"),
    Wrong("E001", "PATTERN A; B+ between; C WITHIN 5", "between", "choose another name"),
    Wrong("E001", "PATTERN SEQ(A in, B b) WITHIN 5", "in", "choose another name"),
    Wrong("E001", "PATTERN +A WITHIN 5", "+", "Kleene signs follow the type"),
    Wrong("E001", "PATTERN SEQ(A '', B) WITHIN 5", "''", "give it a name"),
    Wrong("E001", "PATTERN SEQ(A a, B) WITHIN 5 RETURN a.id AS ''", "''", "give it a name"),
    Wrong("E001", "PATTERN A ; B WHER A.x = 1 WITHIN 5", "A.x", None),
    Wrong("E001", "PATTERN A ; B WITHIN 5 parsecs", "parsecs", "did you mean 'sec'"),
    Wrong("E001", "PATTERN A ; B WITHIN 5 qux", "qux", "units:"),
    Wrong("E001", "PATTERN A ; B WITHIN 5 minuts", "minuts", "did you mean 'minutes'"),
    Wrong("E001", "PATTERN SEQ A, B WITHIN 5", "A", "SEQ(...)"),
    Wrong("E001", "PATTERN A ; where WITHIN 5", "where", "needs quotes"),
    Wrong("E002", "PATTERN SEQ(A, B WITHIN 5", "(", "add the missing ')'"),
    Wrong("E002", "PATTERN SEQ(A, (B, C) WITHIN 5", "(A", "add the missing ')'"),
    Wrong("E002", "PATTERN SEQ(A, B)) WITHIN 5", ") W", "remove it"),
    Wrong("E002", "PATTERN SEQ(A, B[2) WITHIN 5", "[2", "this wants a ']'"),
    Wrong("E003", "PATTERN SEQ(A a, B b, a.s = 'x) WITHIN 5", "'x", "add the missing '"),
    Wrong("E003", 'PATTERN SEQ(A a, B b, a.s = "x\n") WITHIN 5', '"x', 'add the missing "'),
    Wrong("E004", "", "", "PATTERN SEQ(A a, B b)"),
    Wrong("E004", "  \n -- nothing\n", "", "PATTERN SEQ(A a, B b)"),
    Wrong("E005", "PATTERN A WITHIN 5" + " " * MAX_TEXT, "", "to here"),
    Wrong(
        "E006", "PATTERN " + "(" * (MAX_DEPTH + 1) + "A" + ")" * (MAX_DEPTH + 1) + " WITHIN 5", "(A", "split the query"
    ),
    Wrong("E006", "PATTERN " + "SEQ(A, " * 40 + "A" + ")" * 40 + " WITHIN 5", "(", "split the query"),
    Wrong("E006", "PATTERN A a WHERE " + "not " * 400 + "a.x = 1 WITHIN 5", "", "split it"),
    Wrong("E007", "PATTERN A WITHIN 5 WITHIN 6 WITHIN 7", "WITHIN", "each clause stands once"),
    Wrong("E007", "PATTERN A a WHERE a.x = 1 WHERE a.x = 2 WITHIN 5", "WHERE a.x = 2", "each clause stands once"),
    Wrong("E007", "PATTERN A ; PATTERN B WITHIN 5", "PATTERN B", "nest patterns"),
    Wrong("E008", "PATTERN SEQ(A a, B b, a.x = $3) WITHIN 5", "$", "plain numbers"),
    Wrong("E008", "PATTERN A → B WITHIN 5", "→", "A ; B"),
    Wrong("E008", "PATTERN A ; B? WITHIN 5", "?", "B* may be empty"),
    Wrong("E008", "PATTERN A ; B{3} WITHIN 5", "{", "B[3]"),
    Wrong("E008", "PATTERN A ; B \x00 WITHIN 5", "\x00", None),
    Wrong("E009", "PATTERN SEQ(A a, B b, a.x = 9223372036854775808) WITHIN 5", "9223372036854775808", "decimal point"),
    Wrong("E009", "PATTERN SEQ(A a, B b, a.x = 1e999) WITHIN 5", "1e999", None),
    Wrong("E009", "PATTERN A ; B WITHIN 99999999999999999999", "99999999999999999999", None),
    # names
    Wrong("E101", "PATTERN SEQ(Trade t, Quot q) WITHIN 5", "Quot q", "did you mean 'Quote'?"),
    Wrong("E101", "PATTERN SEQ(Trade t, !SEQ(Zebra z, A a), B b) WITHIN 5", "Zebra z", "known types: "),
    Wrong("E102", "PATTERN SEQ(Trade trade, A a, trad.id = 3) WITHIN 5", "trad.id", "did you mean 'trade'?"),
    Wrong("E102", "PATTERN SEQ(Trade t, A a)\nWHERE zz.id = 3 WITHIN 5", "zz.id", "variables: t, a"),
    Wrong("E103", "PATTERN SEQ(A a, B a) WITHIN 5", "B a", "another name"),
    Wrong("E103", "PATTERN SEQ(A a, OR(B b, C b)) WITHIN 5", "C b", "the same type in each"),
    Wrong("E103", "PATTERN SEQ(A a, OR(B b, B+ b)) WITHIN 5", "B+ b", "the same type in each"),
    Wrong("E104", "PATTERN SEQ(Trade t, A a, t.pice > 3) WITHIN 5", "pice", "did you mean 'price'?"),
    Wrong("E104", "PATTERN SEQ(Trade t, A a)\nWHERE a.price > 3 WITHIN 5", "price", "attributes: id, x, s, ts, type"),
    Wrong("E104", "PATTERN SEQ(Trade t, A a, [price]) WITHIN 5", "price", "attributes: "),
    Wrong("E105", "PATTERN SEQ(A a, !B b, C c, b.id = a.id) WITHIN 5", "b.id", "or into WHERE"),
    Wrong("E105", "PATTERN SEQ(A a, !SEQ(B b, !C c, c.x = 1), D d) WITHIN 5", "c.x", "put the condition inside"),
    Wrong("E106", "PATTERN SEQ(A a, B b, abbs(a.x) = 1) WITHIN 5", "abbs(a.x)", "did you mean 'abs'?"),
    Wrong("E106", "PATTERN SEQ(A a, B b, sqrt(a.x) = 1) WITHIN 5", "sqrt(a.x)", "functions: "),
    Wrong("E107", "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.x AS n, b.x AS n", "b.x AS n", "name them with AS"),
    Wrong("E107", "PATTERN SEQ(A a, B b) WITHIN 5 AGG COUNT(*), COUNT(*)", "COUNT(*)", "name them with AS"),
    # types
    Wrong("E201", "PATTERN SEQ(A a, B b, a.s > 3) WITHIN 5", "a.s > 3", "both sides need one type"),
    Wrong("E201", "PATTERN SEQ(A a, B b, a.s * 2 = 4) WITHIN 5", "a.s", "arithmetic takes numbers"),
    Wrong("E201", "PATTERN SEQ(A a, B b, -a.s = 4) WITHIN 5", "a.s", "arithmetic takes numbers"),
    Wrong("E201", "PATTERN SEQ(A a, B b, a.x in (1, 'two')) WITHIN 5", "'two'", "both sides need one type"),
    Wrong("E201", "PATTERN SEQ(Trade t, A a, t.open < true) WITHIN 5", "t.open < true", "use = or <>"),
    Wrong("E201", "PATTERN SEQ(Trade t, A a, t.at > 'yesterday') WITHIN 5", "'yesterday'", "2026-"),
    Wrong("E201", "PATTERN SEQ(A+ a, B b) WHERE sum(a.s) > 1 WITHIN 5", "a.s", "takes numbers"),
    Wrong("E201", "PATTERN SEQ(A a, B b) WITHIN 5 AGG SUM(a.s)", "a.s", "it takes numbers"),
    Wrong("E202", "PATTERN SEQ(A a, B b, a.x) WITHIN 5", "a.x", "compare it"),
    Wrong("E202", "PATTERN SEQ(A a, B b, a.x = 1 or a.s) WITHIN 5", "a.s", "compare it"),
    Wrong("E202", "PATTERN SEQ(A a, B b) WHERE 3 WITHIN 5", "3", "compare it"),
    Wrong("E203", "PATTERN SEQ(A a, B b, abs(a.x, b.x) = 1) WITHIN 5", "abs(a.x, b.x)", None),
    Wrong("E203", "PATTERN SEQ(A a, B b, lower(a.x) = 'x') WITHIN 5", "lower(a.x)", "it takes string"),
    Wrong("E203", "PATTERN SEQ(A+ a, B b) WHERE sum(a) > 1 WITHIN 5", "sum(a)", None),
    Wrong("E203", "PATTERN SEQ(A a, B b) WITHIN 5 AGG SUM(*)", "SUM(*)", "SUM(v.attribute)"),
    # the shape of the pattern
    Wrong("E301", "PATTERN !A WITHIN 5", "!A", "SEQ(A, !B)"),
    Wrong("E301", "PATTERN OR(A, !B) WITHIN 5", "!B", "SEQ(A, !B)"),
    Wrong("E301", "PATTERN SEQ(A, !!B, C) WITHIN 5", "!B, C", "drop both"),
    Wrong("E302", "PATTERN SEQ(!A, !B) WITHIN 5", "SEQ(!A, !B)", "a positive component"),
    Wrong("E302", "PATTERN SEQ(A, AND(!B)) WITHIN 5", "AND(!B)", "a positive component"),
    Wrong("E302", "PATTERN SEQ() WITHIN 5", "SEQ()", "at least one event type"),
    Wrong("E302", "PATTERN () WITHIN 5", "()", "at least one event type"),
    Wrong("E302", "PATTERN SEQ(1 = 1) WITHIN 5", "SEQ(1 = 1)", "at least one event type"),
    Wrong("E303", "PATTERN A* WITHIN 5", "A*", "B+ instead of B*"),
    Wrong("E303", "PATTERN SEQ(A*, !B) WITHIN 5", "SEQ(A*, !B)", "B+ instead of B*"),
    Wrong("E303", "PATTERN OR(A, B*) WITHIN 5", "B*", "B+ instead of B*"),
    Wrong("E304", "PATTERN SEQ(A, !SEQ(B, C*), D) WITHIN 5", "C*", "always there"),
    Wrong("E304", "PATTERN AND(A+, !B, C) WITHIN 5", "!B", "a SEQ around"),
    Wrong("E304", "PATTERN AND(OR(A+), !B, C) WITHIN 5", "!B", "a SEQ around"),
    Wrong("E304", "PATTERN SEQ(A, !(B+ b, count(b) > 1), C) WITHIN 5", "b)", "no set to test"),
    Wrong("E304", "PATTERN (A ; B)+ WITHIN 5", "(A ; B)+", "A+ a, A* a or A[3] a"),
    Wrong("E304", "PATTERN SEQ(A, B)+ WITHIN 5", "+ W", "A+ a, A* a or A[3] a"),
    Wrong("E304", "PATTERN A a+ WITHIN 5", "A a+", "A+ a, A* a or A[3] a"),
    Wrong("E305", "PATTERN A ; B[0] WITHIN 5", "0", "!B"),
    Wrong("E306", "PATTERN AND(A+, B, C, D, E, F, G) WITHIN 5", "AND(A+", "use fewer"),
    Wrong("E306", "PATTERN SEQ(AND(A+, B, C, D, E), AND(F+, G, H, I, J)) WITHIN 5", "AND(F+", "use fewer"),
    Wrong("E307", "PATTERN A a = 3 WITHIN 5", "A a = 3", "after WHERE"),
    Wrong("E307", "PATTERN 1 = 1 WITHIN 5", "1 = 1", "after WHERE"),
    Wrong("E307", "PATTERN A ; a.x = 1 WITHIN 5", "a.x = 1", "after WHERE"),
    Wrong("E307", "PATTERN SEQ(A a, B b) WHERE SEQ(A, B) WITHIN 5", "SEQ(A, B)", "variable.attribute"),
    Wrong("E307", "PATTERN SEQ(A a, B b) WHERE a = 3 WITHIN 5", "a", "write a.attribute"),
    Wrong("E308", "PATTERN A[101] ; B[100] b WITHIN 5", "B[100] b", "smaller sets"),
    Wrong("E309", "PATTERN SEQ(" + ", ".join(["A"] * 101) + ") WITHIN 5", "A)", "split the query"),
    # windows
    Wrong("E401", "PATTERN SEQ(A, B)", "", "end it with WITHIN"),
    Wrong("E401", "PATTERN SEQ(A, SEQ(B, C) WITHIN 3)", "", "end it with WITHIN"),
    Wrong("E402", "PATTERN SEQ(A, B) WITHIN 0", "0", "above zero"),
    Wrong("E402", "PATTERN SEQ(A, SEQ(B, C) WITHIN 0 s) WITHIN 5", "0", "above zero"),
    Wrong("E402", "PATTERN SEQ(A, B) WITHIN 1.5 EVENTS", "1.5", "whole number"),
    Wrong("E402", "PATTERN SEQ(A, B) WITHIN 3 us", "WITHIN 3 us", "counted in ms"),
    Wrong("E402", "PATTERN SEQ(A, B) WITHIN 9223372036854775807 weeks", "WITHIN 9223372036854775807 weeks", "shorter"),
    # predicates
    Wrong("E501", "PATTERN A+ a; B+ b WHERE a.x = b.x WITHIN 5", "a.x = b.x", "max(a.x) < min(b.x)"),
    Wrong("E501", "PATTERN A+ a; B* b WHERE a.x > sum(b.x) WITHIN 5", "a.x > sum(b.x)", "compare group functions"),
    Wrong("E501", "PATTERN A+ a; B+ b WITHIN 5 RETURN a.x + b.x", "a.x + b.x", "columns of their own"),
    Wrong("E502", "PATTERN SEQ(A a, B b) WHERE sum(a.x) > 3 WITHIN 5", "a.x", "make it A+ a"),
    Wrong("E502", "PATTERN SEQ(A a, B b) WHERE count(b) > 3 WITHIN 5", "b)", "make it B+ b"),
    Wrong("E503", "PATTERN SEQ(A, !B b, !C c, D) WHERE b.x = c.x WITHIN 5", "b.x = c.x", "a condition of its own"),
    Wrong("E504", "PATTERN SEQ(A a, B b, [id] or a.x = 1) WITHIN 5", "[id]", "SEQ(A a, B b, [id])"),
    # output
    Wrong("E601", "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.x AGG COUNT(*)", "a.x", "ask two queries"),
    Wrong("E601", "PATTERN SEQ(A a, B b) WITHIN 5 GROUPBY a.x", "a.x", "AGG COUNT(*)"),
    Wrong("E602", "PATTERN SEQ(A a, B+ b) WITHIN 5 AGG COUNT(*) GROUPBY b.x", "b.x", "binds one event"),
    Wrong("E602", "PATTERN SEQ(A a, B b) WITHIN 5 AGG COUNT(*) GROUPBY a.x + 1", "a.x + 1", "GROUPBY a.id"),
    Wrong("E603", "PATTERN SEQ(A a, !B b) WITHIN 5 RETURN b.x", "b.x", "a positive variable"),
    Wrong("E603", "PATTERN SEQ(A a, !B b) WITHIN 5 AGG COUNT(b)", "COUNT(b)", "a positive variable"),
]


def refused(query: str, schema: qc.Schema = SCHEMA) -> qc.QueryError:
    with pytest.raises(qc.QueryError) as caught:
        qc.compile(query, schema)
    return caught.value


@pytest.mark.parametrize("wrong", TABLE, ids=lambda w: f"{w.code} {w.query[:60]}".encode("ascii", "replace").decode())
def test_error(wrong: Wrong) -> None:
    e = refused(wrong.query)
    assert e.code == wrong.code, str(e)
    assert (wrong.hint or "") in (e.hint or ""), str(e)
    assert str(e).startswith(f"error[{wrong.code}]: {e.message}")
    if wrong.marked is None:
        assert (e.line, e.column) == (None, None)
        assert e.hint is None or str(e).endswith(f"\n  hint: {e.hint}")
        return
    assert e.line is not None
    assert e.column is not None
    line = wrong.query.split("\n")[e.line - 1]
    assert line[e.column - 1 :].startswith(wrong.marked), str(e)
    assert wrong.code != "E401" or e.column == len(line) + 1, str(e)
    check_caret(e, line)


def check_caret(e: qc.QueryError, line: str) -> None:
    """The line is shown, cut where it is long, and the caret stands under the place."""
    _, shown, caret = str(e).split("\n")
    assert e.column is not None
    begin = len(caret) - len(caret.lstrip())
    width = len(caret.strip().split(" ")[0])
    assert set(caret.strip().split("  ")[0]) == {"^"}
    marked = shown[begin : begin + width]
    assert marked.rstrip(".") in line
    assert line[e.column - 1 : e.column - 1 + width].replace("\t", " ") == marked
    assert len(shown) < 300
    if e.hint:
        assert caret.endswith(f"  {e.hint}")


def test_every_code_is_in_the_table() -> None:
    assert {w.code for w in TABLE} | ELSEWHERE == CODES.keys()
    assert not {w.code for w in TABLE} & ELSEWHERE


def test_codes_are_grouped_and_described() -> None:
    assert all(code[0] == "E" and len(code) == 4 and code[1:].isdigit() for code in CODES)
    assert list(CODES) == sorted(CODES)
    assert len(set(CODES.values())) == len(CODES)


def test_lines_and_columns_count_from_one() -> None:
    e = refused("PATTERN SEQ(A a,\n  B b,\n\tZebra z) WITHIN 5")
    assert (e.line, e.column) == (3, 2)
    assert str(e).split("\n")[1:] == ["  3 |  Zebra z) WITHIN 5", "       ^^^^^^^  known types: A, B, C, D, E, F, G, H"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends(newline: str) -> None:
    e = refused(newline.join(["PATTERN SEQ(A a, B b)", "WHERE a.y = 1", "WITHIN 5"]))
    assert (e.code, e.line, e.column) == ("E104", 2, 9)


def test_a_long_line_is_cut_around_the_place() -> None:
    query = "PATTERN SEQ(" + ", ".join(f"A a{i}" for i in range(60)) + ", Zebra z, " + ", ".join("ABCDE") + ") WITHIN 5"
    shown = str(refused(query)).split("\n")
    assert len(shown[1]) < 200
    assert shown[1].index("Zebra z") == shown[2].index("^^^^^^^")


@pytest.mark.parametrize("text", [None, 3, b"PATTERN A WITHIN 5", ["PATTERN A WITHIN 5"]])
def test_what_is_no_text(text: Any) -> None:
    assert refused(text).code == "E001"


def test_half_a_character_is_refused_and_can_be_printed() -> None:
    for query in ("PATTERN A a WHERE a.s = '\ud800' WITHIN 5", "PATTERN '\udfff' x WITHIN 5"):
        with pytest.raises(qc.QueryError) as caught:
            qc.compile(query, qc.Schema({"s": "string"}))
        assert caught.value.code == "E008"
        assert str(caught.value).encode("utf-8")


def test_the_limit_of_the_text_is_a_limit() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 5"
    assert qc.compile(query + " " * (MAX_TEXT - len(query)), SCHEMA).tree is not None
    assert refused(query + " " * (MAX_TEXT - len(query) + 1)).code == "E005"


def test_the_limit_of_nesting_is_a_limit() -> None:
    assert qc.compile("PATTERN " + "(" * MAX_DEPTH + "A" + ")" * MAX_DEPTH + " WITHIN 5", SCHEMA).tree is not None


def test_the_limit_of_counts_is_a_limit() -> None:
    assert qc.compile("PATTERN A[100] ; B[100] WITHIN 5", SCHEMA).warnings


def test_nearest_names() -> None:
    assert nearest("PRICE", ["price", "size"]) == "did you mean 'price'?"
    assert nearest("prize", ["price", "prizes", "zebra"]) == "did you mean 'prizes' or 'price'?"
    assert nearest("x", ["price"]) is None


# Schemas --------------------------------------------------------------------------------------------------------------

SCHEMAS: list[tuple[dict[str, Any], str]] = [
    ({"attributes": {"id": "int65"}}, "attribute 'id' has the unknown type 'int65': did you mean 'int64'"),
    ({"attributes": {"id": "blob"}}, "types: int64 float64 bool string timestamp"),
    ({"attributes": {"id": None}}, "unknown type"),
    ({"attributes": {"A": {"id": "int65"}}}, "int65"),
    ({"attributes": {}, "time_unit": "minutes"}, "time_unit 'minutes' is none of: s ms us ns"),
    ({"attributes": {}, "ties": "any"}, "ties 'any' is none of: strict arrival"),
    ({"attributes": {"id": "int64"}, "key": "room"}, "the key 'room' is no attribute"),
    ({"attributes": {"A": {"id": "int64"}, "B": {"x": "int64"}}, "key": ["id"]}, "the key 'id' is no attribute of"),
    ({"attributes": {"ts": "int64"}, "time": "when"}, "would hide v.ts"),
    ({"attributes": {"type": "string"}, "type": "kind"}, "would hide v.type"),
    ({"attributes": {}, "hierarchy": {"X": "A"}}, "under 'X' stands 'A'"),
    ({"attributes": {}, "hierarchy": {"X": 3}}, "under 'X' stands 3"),
    ({"attributes": {}, "hierarchy": {"X": ["A"], "Y": ["A"]}}, "'A' stands under both 'X' and 'Y'"),
    ({"attributes": {}, "hierarchy": {"X": ["Y"], "Y": ["X"]}}, "stands below itself"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), SCHEMAS, ids=[m for _, m in SCHEMAS])
def test_a_bad_schema(options: dict[str, Any], message: str) -> None:
    with pytest.raises(qc.DataError) as caught:
        qc.Schema(**options)
    assert message in str(caught.value)
    if "attribute" in message or "hide" in message:
        assert caught.value.column in ("id", "room", "ts", "type")


def test_what_a_schema_knows() -> None:
    schema = qc.Schema({"A": {"id": "int64", "x": "int64"}, "B": {"id": "int64"}}, hierarchy={"X": ["A", "B"]})
    assert schema.attributes("X") == {"id": "int64"}
    assert schema.accepts("X") == ("X", "A", "B")
    e = refused("PATTERN SEQ(X a, A b, a.x = 1) WITHIN 5", schema)
    assert (e.code, e.column) == ("E104", 25)


@pytest.mark.parametrize(
    "given",
    [
        {"max_matches": -1},
        {"max_matches": "5"},
        {"max_seconds": "x"},
        {"max_seconds": -1.0},
        {"max_seconds": float("nan")},
        {"max_state_bytes": 1.5},
        {"max_matches": None},
    ],
)
def test_limits_are_numbers(given: dict[str, Any]) -> None:
    with pytest.raises(qc.DataError, match="from 0 up"):
        qc.Limits(**given)


@pytest.mark.parametrize("given", [3, {"max_matches": 3}, "3"])
def test_limits_that_are_none(given: Any) -> None:
    query, events = "PATTERN SEQ(A a, B b) WITHIN 9", {"ts": [1, 2], "type": ["A", "B"]}
    plan, cube = qc.compile(query, qc.Schema({})), qc.cube({"q": query}, qc.Schema({}))
    for f in (plan.run, plan.why, cube.run, partial(cube.table, "q")):
        with pytest.raises(qc.DataError, match=r"give a quercus\.Limits"):
            f(events, limits=given)
    for stream in (plan.stream, cube.stream):
        with pytest.raises(qc.DataError, match=r"give a quercus\.Limits"):
            stream(limits=given)


@pytest.mark.parametrize(
    "test", ["not same(a.n, b.n)", "same(a.n, b.n) or a.n = 7", "same(a.n, b.n) = true", "same(a.n, b.n) is null"]
)
def test_same_inside_a_larger_condition(test: str) -> None:
    schema = qc.Schema({"n": "int64"})
    events = {"ts": [1, 2, 3, 4], "type": list("ABBB"), "n": [1, 1, 2, None]}
    spelled = test.replace("same(a.n, b.n)", "(a.n = b.n)")
    found, expected = (
        qc.compile(f"PATTERN SEQ(A a, B b) WHERE {t} WITHIN 9", schema).run(events) for t in (test, spelled)
    )
    assert found.rows() == expected.rows() != []
    with pytest.raises(qc.QueryError, match="E504"):
        qc.compile(f"PATTERN SEQ(A a, B+ b) WHERE {test} WITHIN 9", schema)


def test_strings_that_are_names_of_variables() -> None:
    schema, events = qc.Schema({}), {"ts": [1], "type": ["A"]}
    assert list(qc.compile("PATTERN A a WITHIN 9 RETURN 'a' AS k", schema).run(events).to_arrow().to_pylist()) == [
        {"k": "a"}
    ]
    named = qc.compile('PATTERN A+ "in" WITHIN 9 RETURN "in", count("in") AS n', schema).run(events)
    assert named.to_arrow().to_pylist() == [{"in": [{"ts": 1, "type": "A"}], "n": 1}]
