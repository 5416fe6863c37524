"""The report: one file, complete, bounded, and with no value that could become markup."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus import report
from quercus.backends.local.analyze import run_and_analyze
from quercus.backends.local.events import load
from quercus.ir.analysis import places
from quercus.report.gather import gathered
from quercus.report.sample import first_matches
from quercus.show import found as shows
from quercus.show.tree import MOST_NODES, cards, drawn, picture
from quercus.show.values import embedded, plain, values
from tests import generate
from tests.test_engine import table

EVIL = '</script><img src=x onerror="window.hit=1">'
SCHEMA = qc.Schema({"id": "int64", "room": "string"}, time_unit="s")
QUERY = "PATTERN SEQ(A a, !(C c), B+ b, [id]) WITHIN 1 min"


def stream(n: int = 400, seed: int = 1) -> pa.Table:
    made = np.random.Generator(np.random.PCG64(seed))
    return pa.table(
        {
            "ts": np.cumsum(made.integers(1, 5, n)),
            "type": made.choice(["A", "B", "C", "D"], n),
            "id": made.integers(0, 9, n),
            "room": made.choice(["lab", "ward"], n),
        }
    )


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text of each script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("/" + tag, {}))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] == "script" and self.scripts:
            self.scripts[-1] += data


def data_of(page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Elements(page).scripts[0])
    return found


@pytest.fixture(scope="module")
def page() -> str:
    return report.html(qc.compile(QUERY, SCHEMA), stream(), title="Rooms")


def test_it_holds_what_the_run_found(page: str) -> None:
    plan, events = qc.compile(QUERY, SCHEMA), stream()
    found, data = plan.run(events), data_of(page)
    assert data["summary"]["matches"] == str(len(found)) != "0"
    assert shown_rows(data["matches"]) == found.rows()
    rows = data["matches"]["events"]["row"]
    times = [int(data["matches"]["clock"]["base"]) + at for at in data["matches"]["events"]["at"]]
    assert times == events["ts"].take(pa.array(rows)).to_pylist()
    assert data["query"] == QUERY
    assert {t["type"]: t["events"] for t in data["statistics"]["types"]} == {
        k: events["type"].to_pylist().count(k) for k in "ABCD"
    }
    by_id = {row[0]: row[1] for row in data["groups"]["rows"]}
    ids = events["id"].to_pylist()
    assert by_id == {i: n for i in range(9) if (n := sum(ids[m["a"]] == i for m in found.rows()))}


def test_every_node_shows_what_it_did(page: str) -> None:
    ran, analysis = run_and_analyze(qc.compile(QUERY, SCHEMA), stream())
    nodes = data_of(page)["nodes"]
    assert len(nodes) == len(list(places(ran.tree.root))) > 4
    assert nodes["root"]["actual"][0] == f"matches {analysis.matches:,}"
    drawn_nodes = {a["data-node"] for tag, a in Elements(page).found if tag == "g" and "data-node" in a}
    assert drawn_nodes == set(nodes)
    assert all(n["actual"] for n in nodes.values())


def test_the_rules_tell_what_they_changed(page: str) -> None:
    rules = {r["rule"]: r for r in data_of(page)["rules"]}
    assert "partition_key" in rules
    assert rules["equality_closure"]["before"] != rules["equality_closure"]["after"]
    assert all(r["before"] or r["after"] or r["finding"] for r in rules.values())


def test_it_needs_nothing_else(page: str) -> None:
    elements = Elements(page)
    for tag, attributes in elements.found:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not {"src", "href", "action", "srcset"} & attributes.keys() or (attributes["href"] or "").startswith("#")
        assert not [a for a in attributes if a.startswith("on")]
    assert not re.search(r"@import|url\(", "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL)))


def test_the_policy_names_the_only_script(page: str) -> None:
    elements = Elements(page)
    data, code = elements.scripts
    json.loads(data)
    policy = next(a["content"] for tag, a in elements.found if tag == "meta" and a.get("http-equiv"))
    digest = b64encode(sha256(code.encode()).digest()).decode()
    assert policy is not None
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")


def hostile() -> tuple[qc.Plan, pa.Table]:
    """Types, values, names of columns and of outputs that would all be markup."""
    quoted = EVIL.replace('"', '""')
    schema = qc.Schema({EVIL: "string", "id": "int64"}, time_unit="s")
    query = f'PATTERN SEQ("{quoted}" a, B b, a."{quoted}" = b."{quoted}") WITHIN 1 min -- {EVIL}'
    events = pa.table({"ts": [1, 2, 3], "type": [EVIL, "B", "B"], EVIL: [EVIL, EVIL, "x"], "id": [1, 1, 1]})
    return qc.compile(query, schema), events


@pytest.mark.parametrize("kind", ["report", "timeline", "svg", "notebook", "tree"])
def test_no_value_becomes_markup(kind: str) -> None:
    plan, events = hostile()
    found = plan.run(events)
    assert len(found) == 1
    page = {
        "report": lambda: report.html(plan, events, title=EVIL),
        "timeline": lambda: found.timeline(by=EVIL).html(),
        "svg": lambda: found.timeline(by=EVIL).svg(),
        "notebook": lambda: found._repr_html_(),
        "tree": lambda: picture(plan),
    }[kind]()
    elements = Elements(page)
    assert "img" not in {tag for tag, _ in elements.found}
    assert not [a for _, attributes in elements.found for a in attributes if a == "onerror"]
    assert len(elements.scripts) == (2 if kind in ("report", "timeline") else 0)
    assert "onerror" in page  # it is there, as text


def test_markup_would_be_noticed() -> None:
    assert "img" in {tag for tag, _ in Elements(f"<p>{EVIL}</p>").found}


@pytest.mark.parametrize("text", [EVIL, "<!--", "]]>", "\u2028\u2029", "\x00\x1f", "é→🌳", "\ud800"])
def test_embedded_data_reads_back(text: str) -> None:
    made = embedded({"v": text})
    assert json.loads(made) == {"v": text}
    assert not set("<>&\u2028\u2029") & set(made)
    made.encode()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2**53, 2**53),
        (2**53 + 1, str(2**53 + 1)),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (None, None),
        (True, True),
    ],
)
def test_numbers_that_a_script_cannot_hold_are_text(value: object, shown: object) -> None:
    assert plain(value) == shown


@pytest.mark.parametrize("odd", ["\x00", "\x1b[31m", "\ud800", "\uffff", "]]>", "a\tb"])
def test_pictures_are_xml_whatever_is_in_them(odd: str, tmp_path: Path) -> None:
    written = odd if odd != "\ud800" else "half of a character is refused in a query, not in a title"
    plan = qc.compile(f"PATTERN SEQ(A a, B b, a.room <> '{written}') WITHIN 1 min -- {written}", SCHEMA)
    ElementTree.fromstring(picture(plan))
    ElementTree.fromstring(plan.run(stream()).timeline().svg())
    plan.report(stream(), tmp_path / "r.html", title=odd)


def test_values_inside_of_others() -> None:
    """As Arrow itself gives them, nanoseconds aside; also of slices and with nulls."""
    at = pa.array([1_714_521_600_000_000_001, None, 0], pa.timestamp("ns"))
    structs = pa.StructArray.from_arrays([pa.array([1, 2, None]), at], ["x", "at"], mask=pa.array([False, True, False]))
    shown = ["2024-05-01 00:00:00.000000001", "1970-01-01 00:00:00"]
    assert values(structs) == [{"x": 1, "at": shown[0]}, None, {"x": None, "at": shown[1]}]
    lists = pa.array([[1, 2], None, [], [3]])
    assert values(lists) == lists.to_pylist()
    assert values(lists.slice(1)) == [None, [], [3]]
    assert values(structs.slice(2)) == [{"x": None, "at": shown[1]}]
    nested = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3]), structs)
    assert values(nested) == [[{"x": 1, "at": shown[0]}], [], [None, {"x": None, "at": shown[1]}]]
    assert values(pa.chunked_array([nested, nested.slice(1)])) == values(nested) + values(nested)[1:]


def test_long_values_are_cut() -> None:
    assert len(plain("x" * 10_000)) < 400
    assert len(plain(list(range(10_000)))) == 51


def test_it_is_bounded() -> None:
    events = pa.table({"ts": range(6_000), "type": ["A", "B"] * 3_000, "id": [1] * 6_000, "room": ["x" * 900] * 6_000})
    page = report.html(qc.compile("PATTERN SEQ(A a, B b) WITHIN 30 s", SCHEMA), events)
    data = data_of(page)
    assert (
        len(data["matches"]["matches"])
        == shows.MOST_MATCHES
        < data["matches"]["total"]
        == int(data["summary"]["matches"])
    )
    assert len(page) < 3_000_000


def test_large_sets_are_cut_and_say_so() -> None:
    n = 1_000
    events = {"ts": list(range(n)), "type": ["A"] + ["B"] * (n - 1), "id": [1] * n, "room": ["x"] * n}
    found = qc.compile("PATTERN SEQ(A a, B+ b) WITHIN 1 hour", SCHEMA).run(events)
    data = shows.shown(found.answer)
    assert len(data["matches"][0][1]) == shows.MOST_ELEMENTS
    assert data["cut"] == n - 1 - shows.MOST_ELEMENTS
    rows = data["events"]["row"]
    assert (rows[data["matches"][0][1][0]], rows[data["matches"][0][1][-1]]) == (1, n - 1)


def test_a_run_that_is_stopped_still_gives_a_report() -> None:
    plan, events = qc.compile("PATTERN SEQ(A a, B b, C c) WITHIN 1 min", SCHEMA), stream(1_000)
    data = data_of(report.html(plan, events, limits=qc.Limits(max_matches=3_000)))
    assert data["summary"]["matches"] is None
    assert "stopped" in data["warnings"][-1]
    assert data["matches"]["sampled"]
    everything = {tuple(m.values()) for m in plan.run(events).rows()}
    rows = data["matches"]["events"]["row"]
    some = [tuple(rows[e] for e in m) for m in data["matches"]["matches"]]
    assert len(some) == shows.MOST_MATCHES
    assert set(some) <= everything


@pytest.mark.parametrize("sort", [True, False])
def test_sampled_matches_are_matches(sort: bool) -> None:
    """Also where a later event forbids them, and where the input is out of order."""
    plan = qc.compile("PATTERN SEQ(A a, B b, !C c, [id]) WITHIN 20 s", SCHEMA)
    events = stream(600)
    if not sort:
        events = events.take(pa.array(np.random.Generator(np.random.PCG64(5)).permutation(600)))
    found = plan.run(events).rows()
    some = first_matches(plan, load(events, SCHEMA)).rows()
    assert len(some) == len(found) > 10
    assert sorted(map(str, some)) == sorted(map(str, found))


def test_aggregates_are_shown_as_groups() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 1 min AGG COUNT(*) AS n GROUPBY a.id", SCHEMA)
    data = data_of(report.html(plan, stream()))
    assert data["groups"]["columns"] == ["a.id", "n"]
    assert sorted(data["groups"]["rows"]) == sorted([r["a.id"], int(r["n"])] for r in plan.run(stream()))
    assert sum(n for _, n in data["groups"]["rows"]) == int(data["summary"]["matches"])


def test_it_tells_why_there_is_no_match() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 10 s", SCHEMA)
    near = {"ts": [1, 20], "type": ["A", "B"], "id": [1, 1], "room": ["x", "x"]}
    assert "WITHIN 19 s" in data_of(report.html(plan, near))["why"]
    assert data_of(report.html(plan, stream()))["why"] is None


@pytest.mark.parametrize("events", [[], {"ts": [], "type": [], "id": [], "room": []}])
def test_no_events(events: object) -> None:
    data = data_of(report.html(qc.compile(QUERY, SCHEMA), events))
    assert data["summary"]["matches"] == "0"
    assert data["statistics"]["types"] == []


def test_it_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    plan = qc.compile(QUERY, SCHEMA)
    path = plan.report(stream(), tmp_path / "r.html", title="A <title> {{tree}}")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert "<title>A &lt;title&gt; {{tree}}</title>" in path.read_text(encoding="utf-8")
    with pytest.raises(qc.DataError, match="cannot write"):
        plan.report(stream(), tmp_path / "no" / "r.html")


def test_files_are_named(tmp_path: Path) -> None:
    pa.parquet = pytest.importorskip("pyarrow.parquet")
    pa.parquet.write_table(stream(), tmp_path / "rooms.parquet")
    data = data_of(report.html(qc.compile(QUERY, SCHEMA), tmp_path / "rooms.parquet"))
    assert data["events"] == "400 events from rooms.parquet"
    assert str(tmp_path) not in json.dumps(data)
    four = qc.Files(*[tmp_path / "rooms.parquet"] * 4)
    named = data_of(report.html(qc.compile(QUERY, SCHEMA), four))["events"]
    assert named == "1,600 events from rooms.parquet, rooms.parquet, rooms.parquet and 1 more"


def test_it_needs_no_graphviz() -> None:
    code = (
        "import sys; sys.modules['graphviz'] = sys.modules['pygraphviz'] = None\n"
        "import quercus as qc; from quercus import report\n"
        "plan = qc.compile('PATTERN SEQ(A a, B b) WITHIN 3', qc.Schema({}))\n"
        "print(report.html(plan, [{'ts': 1, 'type': 'A'}, {'ts': 2, 'type': 'B'}]).count('data-node'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 3


# ---- the tree


def overlaps(svg: str) -> list[tuple[int, int]]:
    boxes = [tuple(map(float, b)) for b in re.findall(r'<rect x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"', svg)]
    return [
        (i, j)
        for i, (x, y, w, h) in enumerate(boxes)
        for j, (u, v, s, r) in enumerate(boxes)
        if i < j and x < u + s and u < x + w and y < v + r and v < y + h
    ]


@pytest.mark.parametrize("shape", ["left", "right", "bushy", "inner", "stack"])
@pytest.mark.parametrize(
    "query",
    [
        QUERY,
        "PATTERN SEQ(A a, !SEQ(B b, C c, b.id = a.id), OR(SEQ(D d, A e), B+ f), C[2] g, a.id = g.id) WITHIN 1 min",
        "PATTERN AND(A a, B b, C c, D d, a.id + b.id > c.id * 1000000, c.room = 'the name of a long room') WITHIN 9 s",
    ],
)
def test_nodes_do_not_overlap(query: str, shape: str) -> None:
    svg = picture(qc.compile(query, SCHEMA, shape=shape))
    assert svg.count('class="node ') >= 4
    assert overlaps(svg) == []
    width, height = map(float, re.findall(r'viewBox="0 0 (\S+) (\S+)"', svg)[0])
    for x, y, w, h in re.findall(r'<rect x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"', svg):
        assert 0 <= float(x) <= float(x) + float(w) <= width
        assert 0 <= float(y) <= float(y) + float(h) <= height


def test_overlaps_would_be_noticed() -> None:
    assert overlaps('<rect x="0" y="0" width="9" height="9"<rect x="5" y="5" width="9" height="9"') == [(0, 1)]


def test_a_tree_of_very_many_nodes_is_cut() -> None:
    root = cards(qc.compile("PATTERN AND(A+ a, B b, C c, D d, A e) WITHIN 9 s", SCHEMA))  # 120 orders
    svg = drawn(root)
    assert svg.count('class="node ') <= MOST_NODES + 100
    assert "96 more" in svg


# ---- whatever the query


def shown_rows(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The matches of a page as `rows()` has them."""
    rows, names = data["events"]["row"], [v["name"] for v in data["variables"]]
    return [
        {
            n: [rows[e] for e in b] if isinstance(b, list) else rows[b]
            for n, b in zip(names, m, strict=True)
            if b is not None
        }
        for m in data["matches"]
    ]


@pytest.mark.parametrize("first", range(900_000, 900_200, 50))
def test_random_queries_are_reported_as_they_run(first: int) -> None:
    shapes, seen = ("auto", "left", "right", "stack"), 0
    for i, (sample, _) in enumerate(generate.valid(range(first, first + 50))):
        plan = qc.compile(sample.query, sample.schema(), shape=shapes[i % 4])
        found = plan.run(table(sample.events))
        made = gathered(plan, table(sample.events))
        assert shown_rows(made.data["matches"]) == found.rows(), sample
        json.loads(embedded(made.data))
        ElementTree.fromstring(made.tree)
        assert overlaps(made.tree) == []
        assert set(made.data["nodes"]) == {".".join(map(str, path)) or "root" for path, _ in places(plan.tree.root)}
        ElementTree.fromstring(found.timeline().svg())
        seen += bool(found)
    assert seen > 5
