"""`result.timeline()`: a row a match, in the order of groups, with ticks at round times."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import quercus as qc
from quercus.show.timeline import MOST_ROWS, Timeline, round_step, tick

SCHEMA = qc.Schema({"id": "int64"}, time_unit="s")
EVENTS = {"ts": [1, 2, 3, 4, 5, 6], "type": ["A", "A", "B", "B", "C", "B"], "id": [7, 8, 7, 8, 7, 7]}


def marks(svg: str) -> list[int]:
    """How many marks each row has."""
    tree = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    return [sum(1 for e in row if e.get("stroke") == "#fff") for row in tree.iter(f"{space}g")]


def test_a_row_a_match_and_a_mark_an_event() -> None:
    found = qc.compile("PATTERN SEQ(A a, B+ b, [id]) WITHIN 10 s", SCHEMA).run(EVENTS)
    assert found.rows() == [{"a": 1, "b": [3]}, {"a": 0, "b": [2, 5]}]
    picture = found.timeline()
    assert marks(picture.svg()) == [2, 3]
    assert repr(picture) == "<Timeline: 2 of 2 matches>"
    assert re.findall(r">(id \d)<", picture.svg()) == ["id 8", "id 7"]
    assert picture.svg().count('opacity=".25"') == 1  # the set of two
    assert picture._repr_svg_() in picture._repr_html_()


def test_marks_stand_in_the_order_of_time() -> None:
    svg = qc.compile("PATTERN SEQ(A a, B b, C c) WITHIN 10 s", SCHEMA).run(EVENTS).timeline().svg()
    row = svg.rpartition("<g>")[2]
    places = [
        float(x) for x in (re.search(p, row)[1] for p in (r'cx="([\d.]+)"', r'rect x="([\d.]+)"', r'd="M([\d.]+)'))
    ]  # type: ignore[index]
    assert places == sorted(places)


def test_without_a_key_matches_are_numbered() -> None:
    picture = qc.compile("PATTERN SEQ(A a, B b) WITHIN 10 s", SCHEMA).run(EVENTS).timeline()
    assert re.findall(r">(#\d)<", picture.svg()) == ["#1", "#2", "#3", "#4", "#5", "#6"]
    assert re.findall(
        r">(id \d)<", qc.compile("PATTERN SEQ(A a, B b) WITHIN 10 s", SCHEMA).run(EVENTS).timeline(by="id").svg()
    ) == ["id 7", "id 8"]


def test_an_unknown_attribute_is_an_error() -> None:
    found = qc.compile("PATTERN A WITHIN 1", SCHEMA).run(EVENTS)
    with pytest.raises(qc.DataError, match="no attribute 'room'"):
        found.timeline(by="room")


def test_variables_that_are_absent_have_no_mark() -> None:
    found = qc.compile("PATTERN SEQ(A a, OR(B b, C c), [id]) WITHIN 10 s", SCHEMA).run(EVENTS)
    assert marks(found.timeline().svg()) == [2] * len(found)


def test_nothing_to_show() -> None:
    svg = qc.compile("PATTERN SEQ(C c, A a) WITHIN 1 s", SCHEMA).run(EVENTS).timeline().svg()
    assert "no matches" in svg
    assert marks(svg) == []


def test_it_is_bounded() -> None:
    n = 3_000
    found = qc.compile("PATTERN A WITHIN 1", SCHEMA).run({"ts": list(range(n)), "type": ["A"] * n, "id": [1] * n})
    picture = found.timeline()
    assert len(marks(picture.svg())) == MOST_ROWS
    assert f"The first {MOST_ROWS} of 3,000 matches" in picture.svg()
    assert len(picture.data["matches"]) == 2_000


def test_matches_of_streams_and_aggregates_too() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 10 s AGG COUNT(*) AS n", SCHEMA)
    assert repr(plan.run(EVENTS).timeline()) == "<Timeline: 6 of 6 matches>"
    with qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 10 s", SCHEMA).stream() as s:
        assert len(s.push(EVENTS)) == 3
        new = s.push([{"ts": 7, "type": "B", "id": 8}])
    assert "a row 1, b row 6" in new.timeline().svg()  # rows of the whole stream


def test_it_is_saved(tmp_path: Path) -> None:
    picture = qc.compile("PATTERN A a WITHIN 1", SCHEMA).run(EVENTS).timeline()
    assert picture.save(tmp_path / "t.svg").read_text(encoding="utf-8") == picture.svg()
    assert picture.save(tmp_path / "t.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(qc.DataError, match=r"\.svg or \.html"):
        picture.save(tmp_path / "t.png")
    with pytest.raises(qc.DataError, match="cannot write"):
        picture.save(tmp_path / "no" / "t.svg")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_are_dates(unit: str) -> None:
    at = [datetime.datetime(2024, 5, 1, 8, minute) for minute in (0, 20, 40)]
    events = pa.table({"ts": pa.array(at, pa.timestamp(unit)), "type": ["A", "B", "B"], "id": [1, 1, 1]})
    schema = qc.Schema({"ts": f"timestamp[{unit}]", "id": "int64"})
    picture = qc.compile("PATTERN SEQ(A a, B b) WITHIN 1 hour", schema).run(events).timeline()
    assert isinstance(picture, Timeline)
    assert {"08:10", "08:20"} & set(re.findall(r'class="tick"[^>]*>([^<]+)<', picture.svg()))


@pytest.mark.parametrize(
    ("least", "second", "step"),
    [(0.3, None, 1), (3, None, 5), (70, None, 100), (40, 1, 60), (4_000_000, 1_000, 7_200_000), (3, 1_000, 5)],
)
def test_ticks_stand_at_round_places(least: float, second: int | None, step: int) -> None:
    assert round_step(least, second) == step


def test_ticks_are_as_short_as_they_can_be() -> None:
    noon = 1_714_564_800  # 2024-05-01 12:00
    assert tick(noon, 86_400, 1) == "2024-05-01"
    assert tick(noon, 3_600, 1) == "12:00"
    assert tick(noon + 5, 5, 1) == "12:00:05"
    assert tick((noon + 5) * 1_000 + 250, 50, 1_000) == "05.25"
    assert tick(12_345, 5, None) == "12,345"
    assert tick(2**62, 86_400, 1) == f"{2**62:,}"  # no date


def test_aligned_matches_begin_together() -> None:
    events = {"ts": [0, 300, 86_400, 86_520], "type": ["A", "B", "A", "B"], "id": [1, 1, 2, 2]}
    found = qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 10 min", SCHEMA).run(events)
    picture = found.timeline(aligned=True).svg()
    assert re.findall(r'class="tick"[^>]*>([^<]+)<', picture) == ["0", "1 min", "2 min", "3 min", "4 min", "5 min"]
    first, second = re.findall(r'class="span" x1="([\d.]+)" x2="([\d.]+)"', picture)
    assert first[0] == second[0]
    assert float(first[1]) > float(second[1])
    assert len(set(re.findall(r'class="span" x1="([\d.]+)"', found.timeline().svg()))) == 2


def test_no_style_is_that_of_other_pictures() -> None:
    svg = qc.compile("PATTERN A WITHIN 1", SCHEMA).run(EVENTS).timeline().svg()
    rules = re.search(r"<style>(.*?)</style>", svg)
    assert rules is not None
    assert all(rule.startswith(".qc-timeline ") for rule in re.findall(r"([^{}]+){", rules[1]))
    assert 'class="qc-timeline"' in svg
