"""The studio as a person uses it: typing, choosing, running, looking, in a real browser."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import pytest

from quercus.studio.server import Studio
from tests.browser.webdriver import Browser
from tests.test_report import EVIL
from tests.test_studio import rows

GOOD = "PATTERN SEQ(Wash w, Operate+ o, [id]) WITHIN 10 min"


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    folder = tmp_path_factory.mktemp("studio")
    for name, events in (
        ("tools.csv", rows()),
        ("odd.csv", [{"ts": i, "type": EVIL if i % 2 else "B", EVIL: EVIL} for i in range(9)]),
    ):
        with (folder / name).open("w", newline="") as out:
            written = csv.DictWriter(out, list(events[0]))
            written.writeheader()
            written.writerows(events)
    with Studio([folder / "tools.csv", folder / "odd.csv"]) as made:
        yield made


@pytest.fixture
def page(browser: Browser, studio: Studio) -> Browser:
    browser.open(studio.url)
    browser.wait("document.getElementById('status').innerText === 'no errors' && document.querySelector('#tree svg')")
    return browser


def write(page: Browser, text: str) -> None:
    """Keys into an empty editor."""
    page.run("const t = document.getElementById('text'); t.value = ''; t.dispatchEvent(new Event('input')); t.focus()")
    page.type("#text", text)


def checked(page: Browser, text: str) -> None:
    page.run(
        "const t = document.getElementById('text'); t.value = arguments[0]; t.dispatchEvent(new Event('input'))", text
    )
    page.wait("document.getElementById('status').innerText === 'no errors'")


def test_it_opens_by_the_address_for_once(browser: Browser, studio: Studio) -> None:
    browser.open(studio.once())
    assert browser.run("return location.href") == studio.url
    browser.wait("document.querySelector('#tree svg')")


def test_errors_are_shown_where_they_are(page: Browser) -> None:
    write(page, "PATTERN SEQ(Wash w, Operate o)\nWHERE o.rom = 'r1' WITHIN 1 min")
    page.wait("document.querySelector('#under .wrong')?.textContent === 'rom'")
    said = page.text("#problem")
    assert "line 2, column 9" in said
    assert "did you mean 'room'?" in said
    assert page.text("#status") == "error E104"
    assert page.count("#tree.stale") == 1
    checked(page, GOOD)
    assert page.count("#problem[hidden]") == 1
    assert page.count("#tree.stale") == 0


def test_suggestions_are_taken(page: Browser) -> None:
    write(page, "PATTERN SEQ(Wash w, Oper")
    page.wait("document.querySelector('#suggestions li')?.innerText.startsWith('Operate')")
    page.type("#text", "\ue004")  # Tab
    assert page.run("return document.getElementById('text').value") == "PATTERN SEQ(Wash w, Operate"
    page.type("#text", " o, o.")
    page.wait("[...document.querySelectorAll('#suggestions li')].some((l) => l.innerText.startsWith('room'))")
    page.type("#text", "\ue015\ue007")  # one down, Enter
    assert page.run("return document.getElementById('text').value").endswith("o.room")
    assert page.count("#suggestions[hidden]") == 1


def test_the_tree_changes_its_shape(page: Browser) -> None:
    checked(page, "PATTERN SEQ(Wash w, Operate o, Rest r) WITHIN 1 min")
    page.click("[data-shape=stack]")
    page.wait("document.getElementById('cost').innerText.startsWith('stack')")
    assert page.count("#tree .node.join") == 0
    for shape in ("left", "right"):
        page.click(f"[data-shape={shape}]")
        page.wait("document.getElementById('cost').innerText.startsWith(arguments[0])", shape)
        assert page.count("#tree .node.join") == 2
        page.wait(
            "document.querySelector(`[data-shape=${arguments[0]}]`).getAttribute('aria-checked') === 'true'", shape
        )
    page.run("document.querySelector('#tree .node.join').focus()")
    assert "expected" in page.text("#node")


def test_a_run_is_browsed(page: Browser, studio: Studio) -> None:
    checked(page, GOOD)
    page.click("#run")
    page.wait("/\\d+ matches in 300 events/.test(document.getElementById('found').innerText)")
    assert page.count("#table tbody tr") == 20
    first = page.text("#table tbody tr")
    page.click("#table button[aria-label='Next page']")
    page.wait("document.querySelector('#table tbody tr').innerText !== arguments[0]", first)
    assert page.text("#table [role=status]").startswith("21\u201340 of ")
    assert "rows" in page.text("#tree .node.leaf")  # what it did, not what was expected
    page.click("#tab-timeline")
    assert page.count("#timeline .match") > 3
    assert page.count("#timeline .run") > 0
    links = page.run("return [...document.querySelectorAll('#downloads a')].map((a) => a.href)")
    assert len(links) == 3
    assert all(link.startswith(studio.url + "download/") for link in links)
    csv_text = page.run(
        "const r = new XMLHttpRequest(); r.open('GET', arguments[0], false); r.send(); return r.responseText", links[0]
    )
    assert len(csv_text.splitlines()) > 40


def test_a_run_is_cancelled(page: Browser) -> None:
    checked(
        page,
        "PATTERN SEQ(Wash a, Operate b, Wash c, Operate d, Wash e, a.id + c.id > b.id * d.id * e.id + 99) WITHIN 9 h",
    )
    page.click("#run")
    page.wait(
        "!document.getElementById('cancel').hidden && /^Running, /.test(document.getElementById('found').innerText)"
    )
    page.click("#cancel")
    page.wait("document.getElementById('found').innerText === 'Cancelled.'")
    assert page.count("#run:disabled") == 0


def test_odd_names_stay_text(page: Browser) -> None:
    page.run("const f = document.getElementById('file'); f.value = '1'; f.dispatchEvent(new Event('change'))")
    page.wait("[...document.getElementById('time').options].length === 3")
    quoted = EVIL.replace('"', '""')
    checked(page, f'PATTERN SEQ("{quoted}" a, B b) WITHIN 2 s')
    page.click("#run")
    page.wait("document.querySelector('#table tbody tr')")
    assert EVIL in page.text("#table")
    assert "onerror" in page.text("#tree")
    page.click("#tab-timeline")
    assert page.run("return [window.hit, document.images.length]") == [None, 0]


def test_it_fits_on_a_phone(page: Browser) -> None:
    page.size(390, 800)
    assert page.run("return document.documentElement.scrollWidth") <= 390
