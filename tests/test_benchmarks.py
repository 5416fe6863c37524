"""What benchmarks wrote is what the documents show, and a run that got worse is noticed. No time is measured here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import documents, record
from benchmarks.compare import changes
from benchmarks.record import Ratio
from tests.test_readme import ROOT


def saved(folder: Path, **ratios: Ratio) -> Path:
    record.record("engine", {}, ratios, folder)
    return folder


@pytest.mark.parametrize("path", documents.documents(), ids=lambda p: p.name)
def test_tables_are_those_of_the_results(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert documents.written(text) == text, "run: python -m benchmarks.documents"


def test_a_table_that_was_changed_by_hand_is_noticed() -> None:
    text = "<!-- figures: engine -->\n| W1 | 0.1 |\n<!-- end of figures -->\n"
    if record.read("engine") is None:
        assert documents.written(text) == text
    else:
        assert documents.written(text) != text


def test_every_result_is_read_back() -> None:
    for path in record.RESULTS.glob("*.json"):
        found = record.read(path.stem)
        assert found is not None
        assert record.ratios(found)


@pytest.mark.parametrize(
    ("before", "after", "worse"),
    [
        (Ratio(10), Ratio(9), False),
        (Ratio(10), Ratio(7), True),
        (Ratio(10), Ratio(30), False),
        (Ratio(1.5, less=True), Ratio(1.4, less=True), False),
        (Ratio(1.5, less=True), Ratio(2.5, less=True), True),
    ],
)
def test_what_got_worse_is_found(before: Ratio, after: Ratio, worse: bool, tmp_path: Path) -> None:
    old, new = saved(tmp_path / "old", W1=before), saved(tmp_path / "new", W1=after)
    [change] = changes(old, new)
    assert (change.factor < 1 / 1.2) == worse
    command = [sys.executable, "-m", "benchmarks.compare", str(old), str(new)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == int(worse), done.stderr
    assert ("WORSE" in done.stdout) == worse


def test_nothing_in_common_is_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.compare", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no results in common" in done.stderr


def test_asked_and_met() -> None:
    assert Ratio(5, 4).met
    assert not Ratio(3, 4).met
    assert Ratio(1.1, 1.3, less=True).met
    assert Ratio(3).met is None
