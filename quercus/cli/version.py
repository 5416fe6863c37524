"""The version, and of what it stands on."""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import PackageNotFoundError, version

from quercus import __version__
from quercus.cli import exits

BESIDE = ("pyarrow", "numpy", "duckdb", "polars", "pandas", "pyspark", "pygraphviz")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace) -> int:
    found = {"quercus": __version__, "python": platform.python_version(), **{n: _version(n) for n in BESIDE}}
    if args.json:
        print(json.dumps(found))
    else:
        print(f"quercus {__version__}")
        print("\n".join(f"  {name:<12}{v or 'not installed'}" for name, v in list(found.items())[1:]))
    return exits.OK


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
