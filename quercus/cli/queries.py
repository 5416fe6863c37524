"""QUERY: a file, text, or standard input, never guessed wrongly."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from quercus.cli.exits import UsageError
from quercus.errors import DataError

HELP = "the query: a file that exists, @FILE, text (it has blanks), or - for standard input"
_CONTINUOUS = re.compile(r"(?:\s|--[^\n]*\n)*(?:ISTREAM|RSTREAM|DSTREAM|WITH|SELECT)\b", re.IGNORECASE)


def add_query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help=HELP)


def query_text(given: str) -> str:
    """The text of a query.

    A file that exists wins. What has a blank is text, since every query has one; what has none was meant as a file.
    """
    if given == "-":
        return sys.stdin.read().removeprefix("\ufeff")
    if given.startswith("@"):
        return _file(Path(given[1:]))
    if not given.strip():
        raise UsageError("the query is empty: give its text, or a file that has it")
    if is_file(given):
        return _file(Path(given))
    if not re.search(r"\s", given.strip()):
        raise UsageError(f"no file '{given}', and no query either: one looks like 'PATTERN SEQ(A a, B b) WITHIN 5 min'")
    return given


def is_file(given: str) -> bool:
    try:
        return Path(given).is_file()
    except (OSError, ValueError):  # too long for a name, or with a null in it
        return False


def _file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as e:
        raise DataError(f"'{path}' cannot be read: {e.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"'{path}' is not text in UTF-8: is it a query?") from None


def is_continuous(text: str) -> bool:
    """Whether a query is a continuous one, and no pattern."""
    return _CONTINUOUS.match(text) is not None
