"""On a real terminal: tables, progress, colours; and none of it in a pipe."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from quercus.cli import progress
from quercus.cli.terminal import cell, table
from tests.cli.helpers import ENVIRONMENT, QUERY, save


def on_terminal(*args: str, code: str = "", **environment: str) -> tuple[int, str]:
    """Run `quercus ARGS` with a terminal as its standard output and error; what it showed."""
    main, other = pty.openpty()
    program = f"{code}\nimport sys\nfrom quercus.cli import main\nsys.exit(main(sys.argv[1:]))"
    env = {**ENVIRONMENT, "TERM": "xterm", **environment}
    command = [sys.executable, "-c", program, *args]
    with subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env=env) as process:
        os.close(other)
        shown = b""
        while True:
            try:
                part = os.read(main, 65_536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
    os.close(main)
    return process.returncode, shown.decode().replace("\r\n", "\n")


def test_a_table(tmp_path: Path) -> None:
    path = str(save(tmp_path / "events.csv"))
    code, shown = on_terminal("run", QUERY, path, NO_COLOR="1")
    assert code == 0
    assert shown.splitlines() == ["#  w       o", "1  2 id=9  3 id=9", "2  1 id=7  4 id=7", "2 matches"]
    assert "\033[1m#" in on_terminal("run", QUERY, path)[1]
    limited = on_terminal("run", QUERY, path, "--limit", "1", NO_COLOR="1")[1]
    assert "2 matches (the first 1 are shown" in limited
    grouped = on_terminal("run", QUERY + " AGG COUNT(*) AS n GROUPBY w.id", path, NO_COLOR="1")[1]
    assert grouped.splitlines() == ["w.id  n", "   9  1", "   7  1", "2 groups"]
    assert on_terminal("run", QUERY, path, "--json")[1].startswith('{"w"')


SLOW = """
import quercus.cli.progress as p
from quercus.backends.local import files
p.FIRST = p.EVERY = 0
files._BLOCK = 500
"""


def test_progress(tmp_path: Path) -> None:
    path = save(tmp_path / "events.csv", [{"ts": i, "type": "Wash", "id": 1} for i in range(2_000)])
    args = ("run", QUERY, str(path), "-o", str(tmp_path / "out.csv"))
    code, shown = on_terminal(*args, code=SLOW)
    assert code == 0
    assert "\r\033[K[" in shown
    assert "events  0 matches" in shown
    assert " left" in shown
    assert shown.endswith(f"\r\033[K0 matches in {tmp_path / 'out.csv'}\n")  # and it is gone again
    assert "\033[K" not in on_terminal(*args, "--quiet", code=SLOW)[1]


def test_a_long_row_is_cut_to_the_terminal() -> None:
    rows = [{"a": "x" * 200, "b": 1}]
    assert max(map(len, table(rows, width=50).splitlines())) <= 50
    assert "…" in table(rows, width=50)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "true"),
        (1.5, "1.5"),
        ({"ts": 3, "type": "A", "id": 7, "x": None}, "3 id=7"),
        ([{"ts": 3, "type": "A"}, {"ts": 9, "type": "A"}], "2: 3 .. 9"),
        ([], "[]"),
        ([1, 2], "[1, 2]"),
    ],
)
def test_cells(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_events_cannot_steer_the_terminal(tmp_path: Path) -> None:
    assert cell("\033[2Jgone\a") == r"\x1b[2Jgone\x07"
    assert cell("Zürich, 東京") == "Zürich, 東京"
    path = save(tmp_path / "events.jsonl", [{"ts": 1, "type": "A", "x": "\033[31mred"}])
    assert "\033[31m" not in on_terminal("run", "PATTERN A a WITHIN 5", str(path))[1]
    assert "\033[31m" not in on_terminal("run", "PATTERN A a WITHIN 5", "no\033[31m.csv")[1]


def test_a_bar_says_how_long_it_takes() -> None:
    assert progress.line(1000, 0, 0.25, 10.0).endswith("100/s  30 s left")
    assert progress.line(1000, 0, 1.0, 10.0).endswith("100/s")
