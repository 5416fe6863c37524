"""Reports as a person sees them: in a real browser, from a file, without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

import quercus as qc
from quercus.result import Matches
from tests.browser.webdriver import Browser
from tests.test_report import EVIL, SCHEMA, hostile, stream

QUERY = "PATTERN SEQ(A a, !(C c), B+ b, [id]) WITHIN 1 min"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return (
        qc.compile(QUERY, SCHEMA).report(stream(), tmp_path_factory.mktemp("report") / "r.html", title="Rooms").as_uri()
    )


def found() -> Matches:
    return qc.compile(QUERY, SCHEMA).run(stream())


def test_everything_is_there(browser: Browser, page: str) -> None:
    browser.open(page)
    assert browser.text("h1") == "Rooms"
    assert browser.text(".figure b") == str(len(found()))
    assert browser.text("#text") == QUERY
    assert browser.count("#text .t-keyword") == 3
    assert browser.count("#tree .node") >= 4
    assert "matches" in browser.text("#tree .node .foot.actual")
    assert browser.count("#facts tr") > 4
    assert browser.count("#alternatives .chosen") == 1
    assert browser.count("#types tbody tr") == 4
    assert browser.count("#group-table tbody tr") > 3
    assert browser.count("#trace li") > 2
    assert browser.count("#warnings:not([hidden])") == 0
    assert browser.run("return performance.getEntriesByType('resource').length") == 0


def test_the_tree_moves_and_tells(browser: Browser, page: str) -> None:
    browser.open(page)
    transform = "document.querySelector('#tree .scene').getAttribute('transform')"
    before = browser.run(f"return {transform}")
    browser.click("#tools button[aria-label='Zoom in']")
    zoomed = browser.run(f"return {transform}")
    assert zoomed != before
    browser.drag("#tree", 60, 30)
    assert browser.run(f"return {transform}") != zoomed
    browser.click("#tools button:last-child")
    assert browser.run(f"return {transform}") == before
    browser.type("#tree", "+")
    assert browser.run(f"return {transform}") == zoomed
    browser.run("document.querySelector('#tree .node.leaf').focus()")
    told = browser.text("#node")
    assert "expected" in told
    assert "rows" in told
    assert browser.count("#tree .node.on") == 1


def test_the_timeline_filters_moves_and_tells(browser: Browser, page: str) -> None:
    browser.open(page)
    whole, events = found(), stream()
    ids = events["id"].to_pylist()
    status = "document.querySelector('#timeline [role=status]').innerText"
    assert browser.run(f"return {status}") == f"{len(whole)} of {len(whole)} matches shown."
    browser.type("#timeline input[type=search]", "a.id=3")
    some = sum(ids[m["a"]] == 3 for m in whole.rows())
    assert 0 < some < len(whole)
    browser.wait(f"{status} === arguments[0]", f"{some} of {len(whole)} matches shown.")
    browser.type("#timeline input[type=search]", " ts>400")
    late = sum(ids[m["a"]] == 3 and max(events["ts"][r].as_py() for r in (m["a"], *m["b"])) > 400 for m in whole.rows())
    browser.wait(f"{status} === arguments[0]", f"{late} of {len(whole)} matches shown.")
    clear = (
        "const s = document.querySelector('#timeline [type=search]'); s.value = ''; s.dispatchEvent(new Event('input'))"
    )
    browser.run(clear)
    ticks = "[...document.querySelectorAll('#timeline .axis text')].map((t) => t.textContent).join()"
    before = browser.run(f"return {ticks}")
    browser.click("#timeline button[aria-label='Zoom in']")
    browser.click("#timeline button[aria-label='Zoom in']")
    zoomed = browser.run(f"return {ticks}")
    assert zoomed != before
    browser.drag("#timeline .frame", 150, 0)
    assert browser.run(f"return {ticks}") != zoomed
    browser.click("#timeline label input[type=checkbox]")
    assert not browser.run(f"return {status}").startswith(f"{len(whole)} of")
    browser.click("#timeline label input[type=checkbox]")
    browser.type("#timeline .frame", "0\ue015")  # fit, and one down
    assert browser.run(f"return {ticks}") == before
    assert "Match #" in browser.text("#timeline .detail")
    assert browser.count("#timeline .match.on") == 1
    assert browser.text("#timeline .detail tbody tr").split()[:2] == ["a", "A"]


@pytest.mark.parametrize("width", [390, 720])
def test_it_fits_on_a_phone(browser: Browser, page: str, width: int) -> None:
    browser.size(width, 800)
    browser.open(page)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.count("#timeline .mark") > 0


@pytest.mark.parametrize("width", [500, 1200])
def test_long_names_stay_on_the_page(browser: Browser, tmp_path: Path, width: int) -> None:
    first, second, name = "First" * 9, "Second" * 9, "of_what_was_measured_in_the_field"
    plan = qc.compile(f"PATTERN SEQ({first} a_{name}, {second} b_{name}, {first} c_{name}) WITHIN 10", qc.Schema({}))
    events = [{"ts": i, "type": (first, second)[i % 2]} for i in range(9)]
    browser.size(width, 900)
    browser.open(plan.report(events, tmp_path / "r.html").as_uri())
    assert browser.run("return document.documentElement.scrollWidth") <= width
    frame = "document.querySelector('#tree').getBoundingClientRect()"
    nodes = "[...document.querySelectorAll('#tree .node')].map((n) => n.getBoundingClientRect().right)"
    assert browser.run(f"return Math.max(...{nodes}) - {frame}.right") <= 0
    for table in ("#alternatives", "#types"):
        box = f"document.querySelector('{table} .scroll')"
        assert browser.run(f"return {box}.scrollWidth - {box}.clientWidth") <= 1
    browser.size(1280, 900)


def test_it_is_dark_where_the_system_is(browser: Browser, page: str) -> None:
    browser.open(page)
    light = browser.run("return getComputedStyle(document.body).backgroundColor")
    browser.theme("dark")
    assert browser.run("return getComputedStyle(document.body).backgroundColor") != light
    fill = "getComputedStyle(document.querySelector('#tree .leaf rect')).fill"
    dark = browser.run(f"return {fill}")
    browser.theme("light")
    assert browser.run(f"return {fill}") != dark


def test_hostile_data_stays_text(browser: Browser, tmp_path: Path) -> None:
    plan, events = hostile()
    browser.open(plan.report(events, tmp_path / "r.html", title=EVIL).as_uri())
    browser.run("document.querySelector('#tree .node').focus()")
    browser.run("document.querySelector('#timeline .match').dispatchEvent(new Event('click'))")
    assert browser.count("img") == 0
    assert browser.run("return window.hit") is None
    assert browser.text("h1") == EVIL
    assert EVIL in browser.text("#timeline .detail")
    assert EVIL in browser.text("#types")
    browser.open(plan.run(events).timeline(by=EVIL).save(tmp_path / "t.html").as_uri())
    assert browser.count("#timeline .mark") == 2
    assert browser.run("return [window.hit, document.images.length]") == [None, 0]


def test_the_policy_stops_other_scripts(browser: Browser, page: str) -> None:
    """A tag that got in all the same would not run: this one is put there by the test."""
    browser.open(page)
    browser.run("const s = document.createElement('script'); s.textContent = 'window.hit = 1'; document.body.append(s)")
    assert browser.run("return window.hit") is None
    assert any("Content Security Policy" in e for e in browser.errors())
