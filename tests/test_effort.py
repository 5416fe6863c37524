"""What compiling and importing take, counted rather than timed: times are in benchmarks/bench_compile.py."""

from __future__ import annotations

import cProfile
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import quercus as qc
from benchmarks.bench_compile import AND_OF_TWELVE, LOOSE, SCHEMA, TEN

PACKAGE = Path(qc.__file__).parent
# What an import can begin with; a package comes before its own modules whatever is asked for.
FIRST = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in (*PACKAGE.glob("*.py"), *PACKAGE.glob("**/__init__.py"))
)


def calls(run: Callable[[], object]) -> int:
    """How many calls of functions a run makes once everything is warm: the same count every time."""
    run()
    profile = cProfile.Profile()
    profile.runcall(run)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize(
    ("query", "limit"), [(TEN, 180_000), (AND_OF_TWELVE, 100_000), (LOOSE, 30_000)], ids=["ten", "and", "loose"]
)
def test_compiling_takes_few_steps(query: str, limit: int) -> None:
    assert calls(lambda: qc.compile(query, SCHEMA)) < limit


def test_import_is_light() -> None:
    heavy = ("pyspark", "pandas", "polars", "pyarrow", "pygraphviz", "lark")
    code = f"import sys, quercus; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_any_module_can_be_imported_first() -> None:
    code = (
        "import os, sys, attrs, lark, numpy, pyarrow, pyarrow.compute\n"
        "for name in sys.argv[1:]:\n"
        "    if os.fork() == 0:\n"
        "        __import__(name)\n"
        "        os._exit(0)\n"
        "    if os.wait()[1]:\n"
        "        sys.exit(f'{name} cannot be imported first')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *FIRST], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
