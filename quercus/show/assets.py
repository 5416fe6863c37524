"""The style sheets and scripts of pages: files of the package, read once."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class|let)\b)", re.MULTILINE)
_IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE | re.DOTALL)


@cache
def read(part: str, name: str) -> str:
    """A file of `quercus/<part>/static`."""
    return files(f"quercus.{part}").joinpath("static", name).read_text(encoding="utf-8")


@cache
def script(*names: tuple[str, str]) -> str:
    """Modules as one script, for a page that is a single file: each after those it imports from."""
    bodies = [_EXPORT.sub("", _IMPORT.sub("", read(part, name))) for part, name in names]
    return "(() => {\n'use strict';\n" + "\n".join(bodies) + "})();\n"
