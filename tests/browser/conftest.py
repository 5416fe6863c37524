"""One Chromium for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.webdriver import Browser, missing


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if reason := missing():
        pytest.skip(reason)
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    try:
        yield browser
    finally:
        browser.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The same for every test, at a desk by day; a page that logs an error fails its test."""
    chromium.size(1280, 900)
    chromium.theme("light")
    chromium.errors()
    yield chromium
    assert chromium.errors() == []
    chromium.open("about:blank")
