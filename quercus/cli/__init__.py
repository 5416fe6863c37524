"""The command line: `quercus run QUERY EVENTS`, and what else there is to do with a query and a file.

One file a command; `parser.py` puts them together, `guard.py` turns what goes wrong into a message and an exit code.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code."""
    from quercus.cli.guard import guarded

    return guarded(argv)
