"""The reader of `.case` files, its comparators and its writer. Every comparator has a test in which it must fail."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import pytest

from quercus.testing import Actual, Case, CaseError, Options, compare, compare_rows, read, run_case, update

EXAMPLE = """\
# a comment
case: first
why: somewhere,
  over two lines
query: PATTERN SEQ(G, A,
    !D, T)
  WITHIN 100
attributes: v=string
events: g1 a5{id=3, room='it''s', v=null, w=1} a6{w=1.5}
  t9 d10 t15 a6#2

# before the matches
match: G=g1 A=a5 T=t9
# between them
match: G=g1 A=a6 T=t9

case: kleene
query: PATTERN Google; 147073+ WITHIN 5
types: g=Google
events: g1 147073@2 147073@3
match: Google=g1 147073={147073@3 147073@2}
# the last line of the file
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "example.case"
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
    return path


def one(folder: Path, text: str) -> Case:
    [case] = read(write(folder, text))
    return case


def minimal(folder: Path, extra: str, events: str = "a1 b2 b3") -> Case:
    return one(folder, f"case: x\nquery: PATTERN A; B+ WITHIN 5\nevents: {events}\n{extra}\n")


# Reading --------------------------------------------------------------------------------------------------------------


def test_reads_the_example(tmp_path: Path) -> None:
    first, second = read(write(tmp_path, EXAMPLE))
    assert (first.name, first.why, first.line) == ("first", "somewhere, over two lines", 2)
    assert first.query == "PATTERN SEQ(G, A,\n!D, T)\nWITHIN 100"
    assert first.labels == ("g1", "a5", "a6", "t9", "d10", "t15", "a6#2")
    assert first.events[1] == {"type": "A", "ts": 5, "id": 3, "room": "it's", "v": None, "w": 1.0}
    assert first.events[6] == {"type": "A", "ts": 6, "id": None, "room": None, "v": None, "w": None}
    assert first.matches == [{"G": 0, "A": 1, "T": 3}, {"G": 0, "A": 2, "T": 3}]
    assert [e["type"] for e in second.events] == ["Google", "147073", "147073"]
    assert second.matches == [{"Google": 0, "147073": [1, 2]}]


def test_attributes_are_inferred_or_given(tmp_path: Path) -> None:
    case = minimal(
        tmp_path, "attributes: x=float64, z=string\nmatches: none", "a1{i=1, f=1, b=true, s='', x=1} b2{f=.5}"
    )
    assert case.attributes == {"i": "int64", "f": "float64", "b": "bool", "s": "string", "x": "float64", "z": "string"}
    assert [type(case.events[0][n]) for n in "ifbsx"] == [int, float, bool, str, float]


@pytest.mark.parametrize(
    ("token", "event"),
    [
        ("sharpen3", {"type": "Sharpen", "ts": 3}),
        ("MSFT3", {"type": "MSFT", "ts": 3}),
        ("m3", {"type": "Microsoft", "ts": 3}),
        ("m@3", {"type": "m", "ts": 3}),
        ("t147073@12", {"type": "t147073", "ts": 12}),
        ("147073@12#2", {"type": "147073", "ts": 12}),
        ("'Bus station'@0", {"type": "Bus station", "ts": 0}),
        ('"it""s"@0', {"type": 'it"s', "ts": 0}),
        ("a1{}", {"type": "A", "ts": 1}),
        ("a1{ v = -3 , w='a, b}' }", {"type": "A", "ts": 1, "v": -3, "w": "a, b}"}),
        ("a1{v=-1.5e3}", {"type": "A", "ts": 1, "v": -1500.0}),
        ("a1{v=-inf}", {"type": "A", "ts": 1, "v": -math.inf}),
    ],
)
def test_event_tokens(tmp_path: Path, token: str, event: dict[str, object]) -> None:
    case = minimal(tmp_path, "types: m=Microsoft\nmatches: none", token)
    assert case.events == [event]


def test_nan(tmp_path: Path) -> None:
    assert math.isnan(minimal(tmp_path, "matches: none", "a1{v=nan}").events[0]["v"])


def test_options(tmp_path: Path) -> None:
    case = minimal(
        tmp_path,
        'ties: arrival\nunit: s\nkey: id, room\nhierarchy: {"TX":\n  {"Dallas": ["D"]}}\nmatches: none',
        "a1{id=1, room='x'}",
    )
    assert case.options == Options("arrival", "s", ("id", "room"), {"TX": {"Dallas": ["D"]}})
    assert minimal(tmp_path, "matches: none").options == Options()


@pytest.mark.parametrize("line", ["matches: none", "match: none"])
def test_no_match_is_said(tmp_path: Path, line: str) -> None:
    assert minimal(tmp_path, line).matches == []


def test_rows(tmp_path: Path) -> None:
    case = minimal(tmp_path, "returns: a.id, n\nrow: 'x', [1, 2]\nrow: null, 1.5")
    assert (case.columns, case.matches) == (("a.id", "n"), None)
    assert case.rows == [{"a.id": "x", "n": [1, 2]}, {"a.id": None, "n": 1.5}]
    assert minimal(tmp_path, "returns: n\nrows: none").rows == []


def test_an_error_needs_no_events(tmp_path: Path) -> None:
    assert one(tmp_path, "case: x\nquery: PATTERN\nerror: E001\n").error == "E001"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("query: x\n", 1, "before the first 'case:'"),
        ("case:\n", 1, "needs a name"),
        ("  case: x\n", 1, "continues the line above"),
        ("case: x\nnonsense\n", 2, "expected 'key: value', found 'nonsense'"),
        ("case: x\nevent: a1\n", 2, "unknown key 'event'"),
        ("case: x\nquery: q\nquery: q\n", 3, "'query:' stands at line 2 of this case already"),
        ("case: x\nquery: q\nevents: a1\nmatches: none\ncase: x\n", 5, "a case named 'x' stands at line 1 already"),
        ("case: x\nevents: a1\nmatches: none\n", 1, "has no query"),
        ("case: x\nquery: q\nmatches: none\n", 1, "has no 'events:' line"),
        ("case: x\nquery: q\nevents: a1\n", 1, "expects nothing"),
        ("case: x\nquery: q\nevents: a1\nmatches: 2\n", 4, "can only be none"),
        ("case: x\nquery: q\nevents: a1\nmatches: none\nmatch: A=a1\n", 4, "expects no match, and also a match"),
        ("case: x\nquery: q\nevents: a1\nmatch: A=a2\n", 4, "no event is labelled a2"),
        ("case: x\nquery: q\nevents: a1\nmatch: A={a1 a1}\n", 4, "stands twice in the set of A"),
        ("case: x\nquery: q\nevents: a1\nmatch: A=a1 A=a1\n", 4, "the variable A stands twice"),
        ("case: x\nquery: q\nevents: a1\nmatch: A=a1\nmatch: A=a1\n", 5, "this match stands at line 4 already"),
        ("case: x\nquery: q\nevents: a1\nmatch:\n", 4, "an empty match"),
        ("case: x\nquery: q\nevents: a1\nmatch: A={a1\n", 4, "expected the label of an event, found the end"),
        ("case: x\nquery: q\nevents: a1\nmatch: A=a1,B=a1\n", 4, "expected a blank, found ',B=a1'"),
        (
            "case: x\nquery: q\nevents: a1\n  b2 a1\nmatches: none\n",
            4,
            "two events are labelled a1; write the second one a1#2",
        ),
        ("case: x\nquery: q\nevents: a1\n  b2 t_1\nmatches: none\n", 4, "expected an event such as"),
        ("case: x\nquery: q\nevents: a1 {v=1}\nmatches: none\n", 3, "expected an event such as"),
        ("case: x\nquery: q\nevents: a1{v=1}b2\nmatches: none\n", 3, "expected a blank after the event a1"),
        ("case: x\nquery: q\nevents: a1{v=1\nmatches: none\n", 3, "',' or '}' in the event a1, found the end"),
        ("case: x\nquery: q\nevents: a1{v=x}\nmatches: none\n", 3, "expected a value"),
        ("case: x\nquery: q\nevents: a1{v=1, v=2}\nmatches: none\n", 3, "'v' of a1 stands twice"),
        ("case: x\nquery: q\nevents: a1{ts=1}\nmatches: none\n", 3, "'ts' of a1 is the event's own"),
        ("case: x\nquery: q\nevents: a1{v=[1]}\nmatches: none\n", 3, "is a list"),
        ("case: x\nquery: q\nevents: a1{v=1} a2{v='x'}\nmatches: none\n", 3, "'v' has values of several types"),
        ("case: x\nquery: q\nevents: a1{v=null}\nmatches: none\n", 3, "'v' has only null values: give 'attributes: v="),
        ("case: x\nquery: q\nevents: a1\nattributes: v=int\nmatches: none\n", 4, "'v' has no type 'int'"),
        ("case: x\nquery: q\nevents: a1\nties: random\nmatches: none\n", 4, "'ties:' is one of strict, arrival"),
        ("case: x\nquery: q\nevents: a1\nunit: min\nmatches: none\n", 4, "'unit:' is one of s, ms, us, ns"),
        ("case: x\nquery: q\nevents: a1\nkey: id\nmatches: none\n", 4, "no event has the attribute 'id'"),
        ("case: x\nquery: q\nevents: a1\nkey: id,\nmatches: none\n", 4, "list of names"),
        ("case: x\nquery: q\nevents: a1\nhierarchy:\n  {x\nmatches: none\n", 4, "'hierarchy:' is not JSON"),
        ("case: x\nquery: q\nevents: a1\nhierarchy: []\nmatches: none\n", 4, "is a JSON object"),
        ("case: x\nquery: q\nevents: a1\nrow: 1\n", 4, "needs a 'returns:' line"),
        ("case: x\nquery: q\nevents: a1\nreturns: n, n\nrow: 1, 2\n", 4, "a name stands twice"),
        ("case: x\nquery: q\nevents: a1\nreturns: n\nrow: 1, 2\n", 5, "2 values for 1 columns"),
        ("case: x\nquery: q\nevents: a1\nreturns: n\nrows: 0\n", 5, "can only be none"),
        ("case: x\nquery: q\nevents: a1\nreturns: n\nrow: 1\nrows: none\n", 6, "expects no row, and also a row"),
        ("case: x\nquery: q\nevents: a1\nerror: E1\n", 4, "an error is a code such as E104"),
        ("case: x\nquery: q\nevents: a1\nerror: E104\nmatches: none\n", 4, "no matches and no rows"),
    ],
)
def test_problems_have_a_file_and_a_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(CaseError) as caught:
        read(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "x.case"
    path.write_bytes(b"case: \xff\n")
    with pytest.raises(CaseError, match="not UTF-8"):
        read(path)


# Comparing ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return minimal(tmp_path, "match: A=a1 B={b2 b3}\nmatch: A=a4 B={}", "a1 b2 b3 a4")


GOOD = [{"A": 3, "B": []}, {"A": 0, "B": [2, 1]}]


def test_equal_answers_compare_equal_in_any_order(case: Case) -> None:
    assert compare(case, GOOD) is None
    assert compare(case, [{"B": (1, 2), "A": 0}, GOOD[0]]) is None


@pytest.mark.parametrize(
    ("actual", "report"),
    [
        (GOOD[:1], ["missing     A=a1 B={b2 b3}"]),
        ([], ["missing     A=a1 B={b2 b3}", "missing     A=a4 B={}"]),
        ([*GOOD, {"A": 0, "B": [1]}], ["unexpected  A=a1 B={b2}"]),
        ([GOOD[0], {"A": 0, "B": [1]}], ["missing     A=a1 B={b2 b3}", "unexpected  A=a1 B={b2}"]),
        ([GOOD[0], {"A": 0, "C": [1, 2]}], ["missing     A=a1 B={b2 b3}", "unexpected  A=a1 C={b2 b3}"]),
        ([GOOD[1], {"A": 3}], ["missing     A=a4 B={}", "unexpected  A=a4"]),
        ([*GOOD, GOOD[0]], ["2 times     A=a4 B={}"]),
        ([*GOOD, {"A": 9, "B": []}], ["unexpected  A=<row 9> B={}"]),
    ],
    ids=[
        "missing",
        "all missing",
        "extra",
        "wrong set",
        "wrong variable",
        "absent is not empty",
        "twice",
        "no such row",
    ],
)
def test_the_comparator_fails(case: Case, actual: list[dict[str, object]], report: list[str]) -> None:
    difference = compare(case, actual)
    assert difference is not None
    assert difference.splitlines() == [f"{case.path}:{case.line}: x", *("  " + line for line in report)]


def test_a_set_of_one_is_not_one_event(tmp_path: Path) -> None:
    case = minimal(tmp_path, "match: A=a1 B={b2}")
    assert compare(case, [{"A": 0, "B": [1]}]) is None
    assert compare(case, [{"A": 0, "B": 1}]) is not None


def test_a_case_without_matches_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no expected matches"):
        compare(minimal(tmp_path, "returns: n\nrow: 1"), [])
    with pytest.raises(ValueError, match="no expected rows"):
        compare_rows(minimal(tmp_path, "matches: none"), [])


@pytest.mark.parametrize(
    ("actual", "equal"),
    [
        ([{"n": 1, "m": 0.1}, {"n": 2, "m": None}, {"n": 2, "m": None}], True),
        ([{"m": None, "n": 2}, {"m": None, "n": Decimal(2)}, {"m": 0.30000000000000004 - 0.2, "n": 1}], True),
        ([{"n": 1, "m": 0.1}, {"n": 2, "m": None}], False),
        ([{"n": 1, "m": 0.1}, {"n": 1, "m": 0.1}, {"n": 2, "m": None}], False),
        ([{"n": 1, "m": 0.1}, {"n": 2.0, "m": None}, {"n": 2, "m": None}], False),
        ([{"n": 1, "m": 0.1001}, {"n": 2, "m": None}, {"n": 2, "m": None}], False),
        ([{"n": 1, "x": 0.1}, {"n": 2, "m": None}, {"n": 2, "m": None}], False),
        ([{"n": True, "m": 0.1}, {"n": 2, "m": None}, {"n": 2, "m": None}], False),
    ],
)
def test_rows_are_a_bag(tmp_path: Path, actual: list[dict[str, object]], equal: bool) -> None:
    case = minimal(tmp_path, "returns: n, m\nrow: 2, null\nrow: 1, 0.1\nrow: 2, null")
    assert (compare_rows(case, actual) is None) == equal


def test_rows_are_reported(tmp_path: Path) -> None:
    case = minimal(tmp_path, "returns: n, m\nrow: 1, 'x'")
    difference = compare_rows(case, [{"n": 1, "m": None}])
    assert difference is not None
    assert difference.splitlines()[1:] == ["  missing     n=1, m='x'", "  unexpected  n=1, m=null"]


# Updating -------------------------------------------------------------------------------------------------------------


def test_updating_with_what_is_expected_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, EXAMPLE)
    assert update(path, {c.name: c.matches or [] for c in read(path)}) == []
    assert path.read_text() == EXAMPLE


def test_update_keeps_comments_and_what_was_right(tmp_path: Path) -> None:
    path = write(tmp_path, EXAMPLE)
    first = {"G": 0, "A": 2, "T": 3}
    changed = update(path, {"first": [{"G": 0, "A": 6, "T": 5}, first], "kleene": []})
    assert changed == ["first", "kleene"]
    assert path.read_text() == EXAMPLE.replace("match: G=g1 A=a5 T=t9\n", "").replace(
        "match: G=g1 A=a6 T=t9\n", "match: G=g1 A=a6 T=t9\nmatch: G=g1 A=a6#2 T=t15\n"
    ).replace("match: Google=g1 147073={147073@3 147073@2}\n", "matches: none\n")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("before", "actual", "after"),
    [
        ("match: A=a1 B={b2}", Actual(matches=[]), "matches: none"),
        ("matches: none", Actual(matches=[{"A": 0, "B": [1, 2]}]), "match: A=a1 B={b2 b3}"),
        ("match: none", Actual(matches=[{"A": 0, "B": []}]), "match: A=a1 B={}"),
        (
            "match: A=a1\n  # kept\n  B={b2}\nmatch: A=a1 B={}",
            Actual(matches=[{"A": 0, "B": []}]),
            "  # kept\nmatch: A=a1 B={}",
        ),
        ("matches: none", Actual(error="E104"), "error: E104"),
        ("error: E104", Actual(error="E105"), "error: E105"),
        ("error: E104", Actual(matches=[{"A": 0}]), "match: A=a1"),
        ("returns: n\nrow: 1\nrow: 2", Actual(rows=[{"n": 2}, {"n": "it's"}]), 'returns: n\nrow: 2\nrow: "it\'s"'),
        ("returns: n\nrow: 1", Actual(rows=[]), "returns: n\nrows: none"),
        ("returns: n\nrows: none", Actual(rows=[{"n": None}]), "returns: n\nrow: null"),
        ("returns: n\nrow: 1", Actual(rows=[{"m": 1.0, "k": True}]), "returns: m, k\nrow: 1.0, true"),
        ("match: A=a1 B={}\nreturns: n\nrow: 1", Actual(rows=[{"n": 3}]), "match: A=a1 B={}\nreturns: n\nrow: 3"),
    ],
)
def test_update_rewrites(tmp_path: Path, before: str, actual: Actual, after: str, ending: str) -> None:
    head, tail = (
        "case: x\nquery: PATTERN A; B+ WITHIN 5\nevents: a1 b2 b3\n",
        "\n\ncase: y\nquery: q\nevents:\nmatches: none",
    )
    path = write(tmp_path, (head + before + tail).replace("\n", ending))
    assert update(path, {"x": actual}) == ["x"]
    with path.open(newline="") as file:
        assert file.read() == (head + after + tail).replace("\n", ending)
    case = read(path)[0]
    assert actual.matches is None or compare(case, actual.matches) is None
    assert actual.rows is None or compare_rows(case, actual.rows) is None
    assert update(path, {"x": actual}) == []


def test_update_at_the_end_of_a_file_without_a_last_newline(tmp_path: Path) -> None:
    path = write(tmp_path, "case: x\nquery: q\nevents: a1 a2\nmatch: A=a1")
    update(path, {"x": [{"A": 0}, {"A": 1}]})
    assert path.read_text() == "case: x\nquery: q\nevents: a1 a2\nmatch: A=a1\nmatch: A=a2\n"


def test_update_of_an_unknown_case(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="no case is named 'z'"):
        update(write(tmp_path, EXAMPLE), {"z": []})


CASE = "case: x\nquery: PATTERN SEQ(A a, B+ b) WITHIN 9\nevents: a1 b2\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("must not match: b=b2", "'b' is a set of events: write b={...}"),
        ("must not match: a={a1}", "'a' is one event: write a=... without braces"),
        ('hierarchy: {"X": 5}\nmatch: a=a1 b={b2}', "DataError: hierarchy"),
    ],
)
def test_what_would_pass_or_end_for_nothing(tmp_path: Path, line: str, said: str) -> None:
    (case,) = read(write(tmp_path, f"{CASE}{line}\n"))
    assert said in "\n".join(run_case(case))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{CASE}attributes: v=int64 v=string\nmatch: a=a1 b={{b2}}\n", "'v' stands twice"),
        (CASE.replace("a1", "a" + "1" * 5000) + "matches: none\n", "is no number of 64 bits"),
        (f"{CASE}live: a1 b2 @{'9' * 5000} end\n", "is no number of 64 bits"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CaseError, match=said):
        read(write(tmp_path, text))


def test_a_mark_at_the_beginning_is_no_text(tmp_path: Path) -> None:
    (case,) = read(write(tmp_path, f"\ufeff{CASE}match: a=a1 b={{b2}}\ndelay: ²\nlive: a1 b2 end:a1+b2\n"))
    assert "max_delay='²'" in "\n".join(run_case(case))
