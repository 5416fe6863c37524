"""The documents keep their word: every python block runs, and prints what the text block after it shows.

The blocks of a document share one namespace, in order; `shell` blocks are run by bash, with our `quercus`.
A text block right after either is what that one prints, for shells also on stderr;
`pytest tests/test_readme.py --update` writes it again. Milliseconds at the end of a line are not compared.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from attrs import frozen

ROOT = Path(__file__).resolve().parent.parent
ALL = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])
OF_SPARK = [path for path in ALL if path.name.startswith("spark")]  # run by tests/spark/test_documents.py
DOCUMENTS = [path for path in ALL if path not in OF_SPARK]
FENCE = re.compile(r"^```(?P<kind>[a-z]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@frozen
class Block:
    kind: str
    body: str
    line: int  # of the opening fence, from 1
    start: int  # of the body, in characters
    end: int


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a document."""
    return [
        Block(m["kind"], m["body"], text.count("\n", 0, m.start()) + 1, m.start("body"), m.end("body"))
        for m in FENCE.finditer(text)
    ]


def outputs(path: Path, text: str) -> list[tuple[Block, str]]:
    """Each text block that shows an output, with what the python block before it prints."""
    found: list[tuple[Block, str]] = []
    names: dict[str, object] = {"__name__": "__document__"}
    for block, after in pairwise([*blocks(text), None]):
        if block is None or block.kind not in ("python", "shell"):
            continue
        if block.kind == "shell":
            said = in_shell(block.body)
        else:
            printed = io.StringIO()
            code = compile("\n" * block.line + block.body, str(path), "exec")  # the padding keeps the document's lines
            with contextlib.redirect_stdout(printed):
                exec(code, names)
            said = printed.getvalue()
        if after is not None and after.kind == "text":
            found.append((after, said))
        else:
            assert not said, f"{path.name}:{block.line}: prints, and no text block shows what"
    return found


def in_shell(script: str) -> str:
    """What a shell prints; a command that fails is shown as well as one that does not."""
    quercus = f'quercus() {{ {shlex.quote(sys.executable)} -m quercus "$@"; }}\n'
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "TZ": "UTC"}
    both = subprocess.STDOUT
    done = subprocess.run(["bash", "-c", quercus + script], stdout=subprocess.PIPE, stderr=both, env=env, timeout=100)
    return done.stdout.decode()


def plain(text: str) -> str:
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def timeless(text: str) -> str:
    return re.sub(r"\d+\.\d ms$", "_ ms", text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_blocks_print_what_is_shown(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updating: bool
) -> None:
    monkeypatch.chdir(tmp_path)  # what they write goes nowhere
    check(path, updating)


def check(path: Path, updating: bool) -> None:
    """Run a document, and compare what it prints with what it shows; or write that into it."""
    text = path.read_text(encoding="utf-8")
    found = outputs(path, text)
    if updating:
        for block, printed in reversed(found):
            text = text[: block.start] + plain(printed) + text[block.end :]
        path.write_text(text, encoding="utf-8")
    else:
        for block, printed in found:
            assert timeless(plain(printed)) == timeless(block.body), f"{path.name}:{block.line}"


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_text_block_is_an_output(path: Path) -> None:
    """`text` is kept for what a block of code before it prints; anything else shown is no claim that is checked."""
    kinds = [block.kind for block in blocks(path.read_text(encoding="utf-8"))]
    assert all(before in ("python", "shell") for before, kind in pairwise(["", *kinds]) if kind == "text")


def test_a_wrong_output_is_found(tmp_path: Path) -> None:
    shown = "```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n\n```text\n3\n```\n"
    [(block, printed)] = outputs(tmp_path / "x.md", shown)
    assert (block.body, printed) == ("3\n", "2\n")


def test_a_shell_is_run() -> None:
    assert in_shell("quercus version | head -1; quercus frobnicate").startswith("quercus ")
    assert "invalid choice" in in_shell("quercus frobnicate")


def test_only_times_are_not_compared() -> None:
    assert timeless("rows 3, 0.1 ms\nload  12.5 ms\n") == timeless("rows 3, 7.0 ms\nload  0.0 ms\n")
    assert timeless("rows 3, 0.1 ms\n") != timeless("rows 4, 0.1 ms\n")
    assert timeless("within 0.1 ms of it\n") != timeless("within 0.2 ms of it\n")


def test_the_readme_is_one_of_them() -> None:
    assert {"README.md", "semantics.md", "language.md"} <= {path.name for path in DOCUMENTS}
