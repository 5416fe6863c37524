"""What goes wrong, as a message on stderr and an exit code; never a traceback."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import Any, NoReturn

from quercus.cli import exits
from quercus.cli.terminal import plain
from quercus.errors import DataError, LimitExceeded, NotInstalled, QuercusError, QueryError


def guarded(argv: Sequence[str] | None) -> int:
    """Run a command line under guard; the exit code."""
    from quercus.cli.parser import made

    given = sys.argv[1:] if argv is None else list(argv)
    as_json = _wants_json(given)
    terminated: list[int] = []
    try:
        with _terminable(terminated):
            args = made(given[0] if given else "").parse_args(given)
            as_json = getattr(args, "json", as_json)
            code: int = args.run(args)
            sys.stdout.flush()
            return code
    except SystemExit as e:  # argparse, which has shown its help or the version
        return e.code if isinstance(e.code, int) else exits.USAGE
    except KeyboardInterrupt:
        if terminated:  # by a library that makes no difference between signals
            return exits.TERMINATED
        _say("interrupted")
        return exits.INTERRUPTED
    except exits.Terminated:
        return exits.TERMINATED
    except BrokenPipeError:
        # Python flushes standard output when it ends: there must be something to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.PIPE
    except (QuercusError, OSError, MemoryError, ImportError, RecursionError) as e:
        code, said = told(e)
        _say(_document(e, code, said) if as_json else said)
        return code
    except Exception as e:
        if os.environ.get("QUERCUS_DEBUG"):
            raise
        _say(f"quercus: an error in Quercus itself: {type(e).__name__}: {e}")
        _say("QUERCUS_DEBUG=1 shows where; please report it")
        return exits.INTERNAL


def _wants_json(given: Sequence[str]) -> bool:
    """Whether JSON is asked for, as far as that can be seen where the rest may be wrong; argparse knows `--js` too."""
    options = takewhile(lambda word: word != "--", given)
    return any(word.startswith("--j") and "--json".startswith(word) for word in options)


def told(e: BaseException) -> tuple[int, str]:
    """The exit code of what went wrong, and what to say."""
    match e:
        case exits.UsageError():
            return exits.USAGE, f"quercus: {e}"
        case QueryError():
            return exits.QUERY, str(e)
        case LimitExceeded():
            return exits.LIMIT, f"quercus: {in_options(str(e))}"
        case NotInstalled() | ImportError():
            return exits.MISSING, f"quercus: {e}"
        case MemoryError():
            return exits.LIMIT, "quercus: out of memory: bound it with --max-matches or --max-state"
        case DataError() | OSError():
            return exits.DATA, f"quercus: {in_options(str(e))}"
        case _:
            return exits.MISSING if type(e).__name__ == "RenderError" else exits.DATA, f"quercus: {e}"


def _document(e: BaseException, code: int, said: str) -> str:
    """The same as one line of JSON, with what is known of the place."""
    found: dict[str, object] = {"exit": code, "message": said.removeprefix("quercus: ")}
    match e:
        case QueryError():
            found |= {"message": e.message, "code": e.code, "line": e.line, "column": e.column, "hint": e.hint}
        case LimitExceeded():
            found |= {"limit": e.limit, "value": e.value}
        case DataError():
            found |= {"column": e.column, "row": e.row}
    return json.dumps({"error": {k: v for k, v in found.items() if v is not None}}, ensure_ascii=False)


def in_options(text: str) -> str:
    """Limits and the like under the names that they have here, and no names of files that only we know."""
    text = re.sub(r"'[^']*\bquercus-\w+\.(?:events|lines)'", "the input", text)
    text = re.sub(r"(is no ISO 8601 time)( in \w+)?", r"\1: --time-format reads times of another form", text)
    for name, option in (
        ("Files(time_format='unix')", "--time-format unix"),
        ("name its format", "name its format: --format csv, for example"),
        ("Limits(max_matches=)", "--max-matches"),
        ("Limits(max_seconds=)", "--max-seconds"),
        ("Limits(max_state_bytes=)", "--max-state"),
        ('Schema(ties="arrival")', "--ties arrival"),
        ("late='drop'", "--late drop"),
        ("a longer max_delay", "a longer --max-delay"),
    ):
        text = text.replace(name, option)
    return text


def _say(text: str) -> None:
    with suppress(OSError):  # nobody listens
        print(plain(text), file=sys.stderr, flush=True)


@contextmanager
def _terminable(came: list[int]) -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does: files that are half written go."""

    def stop(number: int, frame: Any) -> NoReturn:
        came.append(number)
        raise exits.Terminated

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread: whoever called main() sees to signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
