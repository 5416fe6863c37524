"""Exit codes, and errors that are about the command line itself."""

from __future__ import annotations

from quercus.errors import QuercusError

OK = 0
FOUND = 1
USAGE = 2
QUERY = 3
DATA = 4
LIMIT = 5
MISSING = 6
INTERNAL = 70
INTERRUPTED = 130
PIPE = 141
TERMINATED = 143

CODES = {
    OK: "done",
    FOUND: "`check` found something, a case of `test` failed, `run --fail-on-match` matched",
    USAGE: "the command line is wrong",
    QUERY: "the query is wrong",
    DATA: "the events, the schema or a file are wrong",
    LIMIT: "a limit was reached",
    MISSING: "a program or package that is needed is not installed",
    INTERNAL: "an error in Quercus itself",
    INTERRUPTED: "interrupted (Ctrl-C)",
    PIPE: "nobody reads the output any more",
    TERMINATED: "terminated (SIGTERM)",
}


class UsageError(QuercusError):
    """A command line that cannot be meant."""


class Terminated(BaseException):
    """SIGTERM came."""
