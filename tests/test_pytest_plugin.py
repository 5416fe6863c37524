"""The plugin: cases are tests where a project asks for it, and nowhere else. And `quercus test`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from quercus.cli import exits
from quercus.cli import main as quercus
from quercus.testing import CaseError, read, run_case

pytest_plugins = ["pytester"]

GOOD = """\
case: an unused tool
unit: s
query: PATTERN SEQ(Wash w, !Operate o, [id]) WITHIN 5
events: wash1{id=7} wash2{id=9} operate3{id=9} check7{id=1}
must match: w=wash1
must not match: w=wash2
live: wash1 wash2 operate3 @6 check7:wash1 end
"""
BAD = """
case: a wrong one
query: PATTERN SEQ(A a, B b) WITHIN 5
events: a1 b2
matches: none
"""


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    # The plugin may be installed by its entry point already: by that name it is left out, and loaded by its module.
    return pytester.runpytest_subprocess(
        "-p", "no:quercus", "-p", "quercus.pytest_plugin", "-p", "no:cacheprovider", *args
    )


def test_only_who_asks_gets_it(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("tools.case").write_text(GOOD)
    pytester.makepyfile("def test_mine(): pass")
    run(pytester).assert_outcomes(passed=1)
    run(pytester, "--quercus-cases").assert_outcomes(passed=2)
    pytester.makeini("[pytest]\nquercus_cases = true\n")
    run(pytester).assert_outcomes(passed=2)


def test_failures_say_what_was_expected(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("tools.case").write_text(GOOD + BAD)
    result = run(pytester, "--quercus-cases", "-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*tools.case::an unused tool PASSED*", "*unexpected  a=a1 b=b2*"])
    result.stdout.no_fnmatch_line("*plugin.py*")


def test_a_file_that_cannot_be_read(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("tools.case").write_text("nonsense")
    result = run(pytester, "--quercus-cases")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*tools.case:1: expected 'key: value'*"])


def test_it_is_found_by_its_entry_point(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pytester.mkdir("installed") / "a_name-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: a-name\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text("[pytest11]\nquercus = quercus.pytest_plugin\n")
    monkeypatch.setenv("PYTHONPATH", str(made.parent), prepend=os.pathsep)
    pytester.path.joinpath("tools.case").write_text(GOOD)
    result = pytester.runpytest_subprocess("-W", "error", "--quercus-cases", timeout=100)
    result.assert_outcomes(passed=1)


# The same from the command line ---------------------------------------------------------------------------------------


def case(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "one.case"
    path.write_text(text)
    [found] = read(path)
    return run_case(found)


HEAD = "case: one\nquery: PATTERN SEQ(A a, !B b) WITHIN 5\nevents: a1 a3 b4 c9\n"


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ("match: a=a1\nmatch: a=a3", "missing     a=a1"),
        ("must match: a=a3", "missing     a=a3"),
        ("must match: a=c9", "missing     a=c9"),
        ("live: a1:a1 a3 b4 c9 end", "at a1       expected a1, found nothing"),
        ("live: a1 a3 b4 c9:a1", "at c9       expected a1, found nothing"),
        ("error: E104", "is not refused"),
    ],
)
def test_a_wrong_expectation_fails(tmp_path: Path, expected: str, said: str) -> None:
    assert any(said in line for line in case(tmp_path, HEAD + expected)), case(tmp_path, HEAD + expected)


@pytest.mark.parametrize(
    "expected",
    [
        "matches: none",
        "must not match: a=a1\nmust not match: a=a3",
        "live: a1 a3 b4 c9 end",
        "live: a1 @2 a3 b4 @99 c9 end",
        "delay: 2\nlive: a1 b4 a3 c9 end",
    ],
)
def test_right_expectations_pass(tmp_path: Path, expected: str) -> None:
    if "@99" in expected:
        assert case(tmp_path, HEAD + expected)[0].startswith("OutOfOrder")
    else:
        assert case(tmp_path, HEAD + expected) == []


def test_some_of_a_match_is_enough(tmp_path: Path) -> None:
    text = "case: one\nquery: PATTERN SEQ(A a, B+ b) WITHIN 9\nevents: a1 b2 b3\n"
    assert case(tmp_path, text + "must match: b={b2 b3}") == []
    assert case(tmp_path, text + "must match: a=a1") == []
    assert case(tmp_path, text + "must not match: b={b2}") == []
    assert case(tmp_path, text + "must not match: a=a1 b={b2 b3}") != []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("live: a1 a3 b4", "every event once: c9"),
        ("live: a1 a3 b4 c9 end c9", "nothing comes after the end"),
        ("live: a1 a3 b4 d9", "no event is labelled d9"),
        ("live: a1 a3 b4 c9:", "the label of an event"),
        ("delay: 3\nmatches: none", "for a 'live:' line"),
        ("must match:", "empty match"),
        ("error: E104\nmust match: a=a1", "must be refused"),
    ],
)
def test_what_a_case_cannot_say(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(CaseError, match=said):
        case(tmp_path, HEAD + line)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tools.case").write_text(GOOD)
    assert quercus(["test", str(tmp_path)]) == exits.OK
    assert ".\n\n1 passed, 0 failed" in capsys.readouterr().out
    (tmp_path / "more.case").write_text(BAD)
    assert quercus(["test", str(tmp_path)]) == exits.FOUND
    out = capsys.readouterr().out
    assert "F.\n" in out
    assert "unexpected  a=a1 b=b2" in out
    assert "1 passed, 1 failed" in out
    assert quercus(["test", str(tmp_path), "-v", "-k", "unused"]) == exits.OK
    assert "passed  " in capsys.readouterr().out
    assert quercus(["test", str(tmp_path), "--json"]) == exits.FOUND
    assert [c["passed"] for c in json.loads(capsys.readouterr().out)["cases"]] == [False, True]
    (tmp_path / "broken.case").write_text("nonsense")
    assert quercus(["test", str(tmp_path)]) == exits.FOUND
    assert "1 file unreadable" in capsys.readouterr().out
    assert quercus(["test", str(tmp_path / "nowhere")]) == exits.DATA


def test_our_own_cases_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert quercus(["test", str(Path(__file__).parent / "cases")]) == exits.OK
