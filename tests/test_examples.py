"""The examples find what was hidden in their streams, and each says so when it is run."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

import quercus as qc
from examples import cart, deploy, evacuation, fraud, logins, music, pictures, rooms, scopes, trades
from quercus.compiler.render import RenderError
from tests.test_readme import ROOT

EXAMPLES = sorted(p for p in (ROOT / "examples").glob("*.py") if p.stem not in {"pictures", "scopes", "spark_stream"})


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_runs_from_any_folder(path: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, path], capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout


def test_every_example_is_listed() -> None:
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| \[`(\w+\.py)`\]", text, re.MULTILINE)) == {
        p.name for p in (ROOT / "examples").glob("*.py")
    }


def test_the_picture_of_scopes_is_the_drawn_one() -> None:
    assert scopes.FILE.read_text(encoding="utf-8") == scopes.picture()


def words(svg: str) -> list[str]:
    """What is written in a picture. Where it stands differs with the version of Graphviz."""
    return sorted(word for part in re.findall(r"<text[^>]*>([^<]*)<", svg) for word in part.split())


@pytest.mark.parametrize("name", pictures.EXAMPLES)
def test_pictures_of_examples_are_the_drawn_ones(name: str) -> None:
    kept = (pictures.FOLDER / f"example-{name}.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(kept)
    try:
        drawn = pictures.EXAMPLES[name]()
    except RenderError as e:
        pytest.skip(str(e))
    assert words(drawn) == words(kept), "run: python examples/pictures.py"
    if 'class="graph"' not in kept:  # not by Graphviz
        assert drawn == kept, "run: python examples/pictures.py"
    for document, folder in (("docs/use-cases.md", "images"), ("examples/README.md", "../docs/images")):
        assert f"]({folder}/example-{name}.svg)" in (ROOT / document).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", pictures.plans())
def test_pictures_of_plans_are_the_drawn_ones(name: str, tmp_path: Path) -> None:
    try:
        drawn = pictures.plans()[name].render(tmp_path / "plan.svg").read_text(encoding="utf-8")
    except RenderError as e:
        pytest.skip(str(e))
    kept = (pictures.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert words(drawn) == words(kept), "run: python examples/pictures.py"


def test_a_picture_of_something_else_is_noticed() -> None:
    assert words("<svg><text>cost: 460</text></svg>") != words("<svg><text>cost: 462</text></svg>")
    assert words('<svg><text x="1">a b</text></svg>') == words('<svg><text x="2">a b</text></svg>')


@pytest.mark.parametrize("row", scopes.ROWS[:5], ids=lambda row: row.pattern)
def test_negations_look_where_the_picture_says(row: scopes.Row) -> None:
    """A C at each time in turn: it undoes the match exactly inside the scope."""
    plan = qc.compile(f"PATTERN {row.pattern} WITHIN {scopes.WINDOW}", qc.Schema({}))
    for time in range(14):
        events = [{"ts": t, "type": name} for t, name in {**row.match}.items()]
        found = plan.run([*events, {"ts": time, "type": "C"}])
        inside = row.since < time < row.until or (time, True) in zip((row.since, row.until), row.closed, strict=True)
        assert (len(found) == 0) == inside, time


def test_guessed_passwords() -> None:
    found = qc.compile(logins.QUERY, logins.SCHEMA).run(logins.stream()).to_arrow().to_pylist()
    assert {m["user"]: m["failures"] for m in found} == logins.BROKEN_INTO
    assert len(found) == len(logins.BROKEN_INTO)


def test_stolen_cards() -> None:
    found = qc.compile(fraud.QUERY, fraud.SCHEMA).run(fraud.stream()).to_arrow().to_pylist()
    assert sorted((m["card"], m["charges"]) for m in found) == sorted(fraud.STOLEN.items())


def test_carts_are_decided_by_the_clock() -> None:
    found = {}
    with qc.compile(cart.QUERY, cart.SCHEMA).stream() as carts:
        for event in cart.stream():
            found |= {m["session"]: cart.clock(event["ts"]) for m in carts.push([event]).to_arrow().to_pylist()}
    assert found == {"bob": "19:40", "dan": "20:05", "eve": "20:30"}
    assert len(carts.final) == 0


def test_releases_taken_back() -> None:
    found = qc.compile(deploy.QUERY, deploy.SCHEMA).run(deploy.stream()).to_arrow().to_pylist()
    assert {(m["service"], m["release"]) for m in found} == deploy.BAD
    assert all(m["errors"] == 40 for m in found)


def test_journeys_at_every_level() -> None:
    events = evacuation.stream(60)
    cube = qc.cube({"states": evacuation.STATES}, evacuation.SCHEMA)
    seen: dict[int, list[str]] = {}
    for event in events.to_pylist():
        seen.setdefault(event["person"], []).append(event["type"])
    stations = {s for city in evacuation.PLACES["TX"].values() for s in city}
    pairs = [
        (a, b) for types in seen.values() for a, b in combinations(types, 2) if a in stations and b not in stations
    ]
    levels = {row["TX"]: row["count"] for row in cube.table("states", events, 1).to_pylist()}
    assert levels["TX"] == len(pairs) == len(cube.run(events)["states"])
    assert levels["AShelter"] == sum(a == "AShelter" for a, _ in pairs)


def test_trades_at_every_level() -> None:
    events = trades.stream(6_000)
    rows = events.to_pylist()
    falls = [e for e in rows if e["change"] < -0.8]
    rises = [e for e in rows if e["change"] > 0.8]

    def pairs(before: set[str], after: set[str]) -> list[tuple[int, int]]:
        return [
            (a["ts"], b["ts"])
            for a in falls
            for b in rises
            if a["type"] in before and b["type"] in after and 0 < b["ts"] - a["ts"] <= 30
        ]

    def inside(pair: tuple[int, int], types: set[str]) -> int:
        return sum(pair[0] < e["ts"] < pair[1] and e["type"] in types for e in rows)

    near = pairs({"DELL"}, {"MSFT"})
    expected = {
        "sectors": len(pairs(set(trades.SECTORS["Computer"]), set(trades.SECTORS["Software"]))),
        "tickers": len(near),
        "unless": sum(not inside(p, set(trades.SECTORS["Internet"])) for p in near),
        "through": sum(inside(p, {"YHOO"}) for p in near),
    }
    assert all(expected.values())
    found = qc.cube(trades.QUERIES, trades.SCHEMA).run(events)
    assert {name: len(found[name]) for name in trades.QUERIES} == expected


def test_ratings_are_all_those_between() -> None:
    events = music.stream(20_000)
    rows = events.to_pylist()
    found = qc.compile(music.QUERY, music.SCHEMA).run(events)
    assert len(found) > 20
    for match in found.rows():
        first, last = match["a"], match["c"]
        assert last - first < 600
        heard = [
            n for n in range(first + 1, last) if rows[n]["type"] == "56437" and rows[n]["stars"] >= rows[first]["stars"]
        ]
        assert match["b"] == heard


def test_ways_home() -> None:
    events = rooms.stream(10, 12)
    walks: dict[str, list[tuple[int, str]]] = {}
    for event in events.to_pylist():
        walks.setdefault(event["Person"], []).append((event["ts"], event["Location"]))
    expected = []
    for person, walk in walks.items():
        left = None
        for n, (at, place) in enumerate(walk):
            if place == "Lab":
                left = n
            elif place == "Home" and left is not None:
                if n - left + 1 > 4:
                    expected.append((at, person, n - left - 1))
                left = None
    found = qc.continuous(rooms.QUERY, {"At": rooms.AT}).run({"At": events})
    assert sorted((w["ts"], w["Person"], w["stops"]) for w in found) == sorted(expected)
    assert expected
