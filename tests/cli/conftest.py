"""Fixtures of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from quercus.cli import main
from tests.cli.helpers import Run, save


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process: its exit code, and what it printed."""

    def ran(*args: object) -> tuple[int, str, str]:
        code = main([str(a) for a in args])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return ran


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return save(tmp_path / "events.csv")
