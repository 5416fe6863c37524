"""Run .case files: queries, small streams, and what must and must not match.

  quercus test cases/
  quercus test cases/fraud.case --verbose

Each case runs as a whole and event by event. The format is described in docs/testing.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from quercus.cli import exits
from quercus.cli.terminal import counted, plain
from quercus.errors import DataError
from quercus.testing import Case, CaseError, read, run_case


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATHS", nargs="+", help=".case files, or folders with some")
    parser.add_argument("-v", "--verbose", action="store_true", help="the name of every case")
    parser.add_argument("-k", metavar="WORD", help="only cases with this in their name")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace) -> int:
    began = time.monotonic()
    results: list[dict[str, Any]] = []
    broken: list[str] = []
    for path in _files(args.paths):
        try:
            cases = read(path)
        except CaseError as e:
            broken.append(str(e))
            continue
        for case in cases:
            if args.k is None or args.k.casefold() in case.name.casefold():
                results.append(_result(case, run_case(case)))
                if not args.json:
                    _tell(results[-1], verbose=args.verbose)
    if not results and not broken:  # what tests nothing must not pass
        named = "" if args.k is None else f" with {args.k!r} in its name"
        raise DataError(f"no case{named} in {', '.join(args.paths)}")
    failed = [r for r in results if not r["passed"]]
    if args.json:
        print(json.dumps({"cases": results, "errors": broken}, indent=2))
    else:
        _summary(results, failed, broken, time.monotonic() - began)
    return exits.FOUND if failed or broken else exits.OK


def _files(paths: list[str]) -> list[Path]:
    found: list[Path] = []
    for given in map(Path, paths):
        if given.is_dir():
            found += sorted(path for path in given.rglob("*.case") if path.is_file())
        elif given.exists():
            found.append(given)
        else:
            raise DataError(f"no file at '{given}'")
    if not found:
        raise DataError(f"no .case file in {', '.join(paths)}")
    return list(dict.fromkeys(found))


def _result(case: Case, differences: list[str]) -> dict[str, Any]:
    return {
        "file": str(case.path),
        "line": case.line,
        "name": case.name,
        "passed": not differences,
        "differences": differences,
    }


def _tell(result: dict[str, Any], *, verbose: bool) -> None:
    if verbose:
        print(plain(f"{'passed' if result['passed'] else 'FAILED'}  {result['file']}: {result['name']}"))
    else:
        sys.stdout.write("." if result["passed"] else "F")
        sys.stdout.flush()


def _summary(results: list[dict[str, Any]], failed: list[dict[str, Any]], broken: list[str], seconds: float) -> None:
    if results:
        print()
    for r in failed:
        print(plain(f"\n{r['file']}:{r['line']}: {r['name']}"))
        print(plain("\n".join(r["differences"])))
    for text in broken:
        print(plain(f"\n{text}"))
    unread = f", {counted(len(broken), 'file')} unreadable" if broken else ""
    print(f"\n{len(results) - len(failed)} passed, {len(failed)} failed{unread} in {seconds:.1f} s")
