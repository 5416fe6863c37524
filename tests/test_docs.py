"""What the documents say beside code: `case` blocks are right, tables complete, and links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

import quercus as qc
from quercus.compiler.rules import RULES
from quercus.compiler.scalars import UNITS
from quercus.errors import CODES
from quercus.testing import Case, compare, compare_rows, read
from tests import reference
from tests.test_cases import reference_matches, reference_rows, schema_of
from tests.test_readme import DOCUMENTS, ROOT, blocks
from tests.test_release import released

LANGUAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
STREAMS = (ROOT / "docs" / "streams.md").read_text(encoding="utf-8")
MOMENTS = re.findall(r"^\| `([^`]+)` \| .+ \| `([^`]+)` \|$", STREAMS, re.MULTILINE)


def examples() -> list[object]:
    """The `case` blocks of all documents: a case each, without its name."""
    return [
        pytest.param(block.body, id=f"{path.name}:{block.line}")
        for path in DOCUMENTS
        for block in blocks(path.read_text(encoding="utf-8"))
        if block.kind == "case"
    ]


def case_of(body: str, folder: Path) -> Case:
    path = folder / "example.case"
    path.write_text(f"case: an example\nwhy: a document shows it\n{body}", encoding="utf-8")
    [case] = read(path)
    return case


@pytest.mark.parametrize("body", examples())
def test_an_example_answers_as_shown(body: str, tmp_path: Path) -> None:
    case = case_of(body, tmp_path)
    if case.error is not None:
        with pytest.raises(qc.QueryError) as caught:
            qc.compile(case.query, schema_of(case))
        assert caught.value.code == case.error
        return
    qc.compile(case.query, schema_of(case))
    if case.matches is not None:
        assert compare(case, reference_matches(case)) is None
    if case.rows is not None:
        assert compare_rows(case, reference_rows(case)) is None


def test_a_wrong_example_is_found(tmp_path: Path) -> None:
    case = case_of("query: PATTERN SEQ(A, B) WITHIN 5\nevents: a1 b2\nmatches: none\n", tmp_path)
    assert compare(case, reference.matches(case.query, case.events)) is not None


def test_the_table_of_error_codes_is_complete() -> None:
    table = dict(re.findall(r"^\| (E\d{3}) \| (.+?) \|", LANGUAGE, re.MULTILINE))
    assert table == CODES


def test_an_example_of_an_error_is_one() -> None:
    schema = qc.Schema({"n": "int64", "s": "string"}, types=["Wash", *"ABCDEFG"])
    found = re.findall(r"^\| (E\d{3}) \| .+? \| `(.+)` \|$", LANGUAGE, re.MULTILINE)
    assert len(found) > 30
    for code, query in found:
        with pytest.raises(qc.QueryError) as caught:
            qc.compile(query, schema)
        assert caught.value.code == code, query


def test_the_truth_table_is_the_engines() -> None:
    """Each cell: what passes, and what passes when it is negated; what does neither is unknown."""
    words = {"true": 1, "false": 0, "unknown": None}
    lines = re.findall(r"^\| (true|unknown|false) \|(.+)\|$", LANGUAGE, re.MULTILINE)
    assert len(lines) == 9
    schema = qc.Schema({"x": "int64", "y": "int64"})

    def value(condition: str, event: dict[str, object]) -> str:
        passes = [
            len(qc.compile(f"PATTERN A a WHERE {c} WITHIN 1", schema).run([event]))
            for c in (condition, f"not ({condition})")
        ]
        return {(1, 0): "true", (0, 1): "false", (0, 0): "unknown"}[tuple(passes)]

    for x, rest in lines:
        y, *cells = [cell.strip() for cell in rest.split("|")]
        event = {"ts": 1, "type": "A", "x": words[x], "y": words[y]}
        for condition, cell in zip(("a.x = 1 and a.y = 1", "a.x = 1 or a.y = 1", "not (a.x = 1)"), cells, strict=True):
            assert value(condition, event) == cell, (x, y, condition)


def test_there_is_a_table_of_moments() -> None:
    assert len(MOMENTS) > 12


@pytest.mark.parametrize(("pattern", "line"), MOMENTS)
def test_a_match_comes_when_the_table_says(pattern: str, line: str) -> None:
    released(qc.compile(f"PATTERN {pattern}", qc.Schema({"id": "int64"})).stream(), line)


def test_every_unit_is_listed() -> None:
    section = LANGUAGE.partition("## Units")[2].partition("## ")[0]
    rows = [re.findall(r"`([^`]+)`", line) for line in section.splitlines() if line.startswith("| `")]
    listed = {word for row in rows for word in row}
    for word in listed:
        qc.compile(f"PATTERN A WITHIN 5 {word}", qc.Schema({}, time_unit="ns"))
    assert set(UNITS) - listed <= {"\u03bcs"}  # case folding makes this Greek letter of the micro sign


def test_every_rule_is_listed() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [rule.name for rule in RULES]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = [t for t in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in t]
    for target in targets:
        file, _, anchor = target.partition("#")
        found = (path.parent / file) if file else path
        assert found.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in heads}, target


def test_every_module_is_listed() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("## Where each file is")[2].partition("\n## ")[0]
    listed: set[str] = set()
    for cell in re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE):
        folder = ""  # a name without one is beside the name before it
        for name in re.findall(r"`([^`]+)`", cell):
            folder = name.rpartition("/")[0] if "/" in name else folder
            listed.add(name if "/" in name else f"{folder}/{name}")
    package = ROOT / "quercus"
    own = [p for p in package.rglob("*") if p.suffix in (".py", ".pyx", ".pxd", ".pxi", ".h", ".lark")]
    files = {str(p.relative_to(ROOT)) for p in own if p.stat().st_size and not p.name.startswith("__")}
    missing = {f for f in files if not any(fnmatch(f, f"{n}*" if n.endswith("/") else n) for n in listed)}
    assert not missing


def test_the_live_example_holds_back_and_goes_on() -> None:
    done = subprocess.run([sys.executable, ROOT / "examples" / "live.py"], capture_output=True, check=True)
    assert done.stdout.decode().splitlines()[1:] == [
        "08:40: where is tool 9, washed at 08:05?",
        "held back until the end: where is tool 7, washed at 08:45?",
    ]


def test_the_demo_runs_without_a_terminal() -> None:
    done = subprocess.run([sys.executable, ROOT / "examples" / "hospital.py"], capture_output=True, check=True)
    shown = done.stdout.decode()
    assert "2 warnings" in shown
    assert "\033" not in shown
