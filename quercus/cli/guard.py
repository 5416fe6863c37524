"""What goes wrong, as a message on stderr and an exit code; never a traceback."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from quercus.cli import exits
from quercus.cli.terminal import plain
from quercus.errors import DataError, LimitExceeded, NotInstalled, QuercusError, QueryError


def guarded(argv: Sequence[str] | None) -> int:
    """Run a command line under guard; the exit code."""
    from quercus.cli.parser import made

    try:
        with _terminable():
            given = sys.argv[1:] if argv is None else list(argv)
            args = made(given[0] if given else "").parse_args(given)
            code: int = args.run(args)
            sys.stdout.flush()
            return code
    except SystemExit as e:  # argparse, which has said what is wrong
        return e.code if isinstance(e.code, int) else exits.USAGE
    except KeyboardInterrupt:
        _say("interrupted")
        return exits.INTERRUPTED
    except exits.Terminated:
        return exits.TERMINATED
    except BrokenPipeError:
        # Python flushes standard output when it ends: there must be something to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.PIPE
    except (QuercusError, OSError, MemoryError, ImportError, RecursionError) as e:
        return told(e)
    except Exception as e:
        if os.environ.get("QUERCUS_DEBUG"):
            raise
        _say(f"quercus: an error in Quercus itself: {type(e).__name__}: {e}")
        _say("QUERCUS_DEBUG=1 shows where; please report it")
        return exits.INTERNAL


def told(e: BaseException) -> int:
    """Say what went wrong; the exit code."""
    match e:
        case exits.UsageError():
            _say(f"quercus: {e}")
            return exits.USAGE
        case QueryError():
            _say(str(e))
            return exits.QUERY
        case LimitExceeded():
            _say(f"quercus: {in_options(str(e))}")
            return exits.LIMIT
        case NotInstalled() | ImportError():
            _say(f"quercus: {e}")
            return exits.MISSING
        case MemoryError():
            _say("quercus: out of memory: bound it with --max-matches or --max-state")
            return exits.LIMIT
        case DataError() | OSError():
            _say(f"quercus: {in_options(str(e))}")
            return exits.DATA
        case _:
            _say(f"quercus: {e}")
            return exits.MISSING if type(e).__name__ == "RenderError" else exits.DATA


def in_options(text: str) -> str:
    """Limits and the like under the names that they have here, and no names of files that only we know."""
    text = re.sub(r"'[^']*\bquercus-\w+\.(?:events|lines)'", "the input", text)
    for name, option in (
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
def _terminable() -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does: files that are half written go."""

    def stop(number: int, frame: Any) -> NoReturn:
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
