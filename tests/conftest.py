"""What all tests share: the `--update` option."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", default=False, help="rewrite expectations that differ, then review the diff"
    )


@pytest.fixture
def updating(request: pytest.FixtureRequest) -> bool:
    """Is this run meant to rewrite expectations rather than to check them?"""
    return bool(request.config.getoption("--update"))
