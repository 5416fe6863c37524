"""What all tests share: the `--update` option."""

from __future__ import annotations

import pytest
from hypothesis import settings


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", default=False, help="rewrite expectations that differ, then review the diff"
    )


@pytest.fixture
def updating(request: pytest.FixtureRequest) -> bool:
    """Is this run meant to rewrite expectations rather than to check them?"""
    return bool(request.config.getoption("--update"))


# How long an example takes says more about the machine than about the code.
settings.register_profile("quercus", deadline=None)
settings.load_profile("quercus")
