"""Tests of queries as text: a `.case` file holds queries, small streams and every match they must give.

`read` reads a file, `compare` and `compare_rows` say how an answer differs from what a case expects, `update` writes
answers back, `run_case` runs a case on the engine. The format is described in `quercus.testing.casefile`.
"""

from quercus.testing.casefile import Actual, Case, Options, read
from quercus.testing.compare import compare, compare_rows
from quercus.testing.run import run_case
from quercus.testing.scanner import CaseError
from quercus.testing.update import update

__all__ = ["Actual", "Case", "CaseError", "Options", "compare", "compare_rows", "read", "run_case", "update"]
