"""The commands together."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any, NoReturn

from quercus.cli import exits

# Each command is a module of this package with add(parser) and run(args); its docstring is its help.
COMMANDS = {
    "run": ("run", "find all matches of a query in events"),
    "explain": ("explain", "show how a query is read, rewritten and planned"),
    "plan": ("plan", "draw the plan of a query"),
    "check": ("check", "say what a query asks of these events in vain"),
    "cube": ("cube", "answer many queries of a file together"),
    "report": ("report", "write a report of a query over events: one HTML file"),
    "studio": ("studio", "a local page to write queries and browse matches"),
    "test": ("cases", "run .case files: queries with what must and must not match"),
    "demo": ("demo", "a worked example: query, stream, plan, matches"),
    "bench": ("bench", "how fast it is on this machine"),
    "version": ("version", "the version, and what is installed beside it"),
    "completion": ("completion", "print a completion script for bash, zsh or fish"),
}


class Parser(argparse.ArgumentParser):
    """Its usage errors are one line and a way on."""

    def error(self, message: str) -> NoReturn:
        raise exits.UsageError(f"{message}\nTry '{self.prog} --help'.")


class Command(Parser):
    """The parser of one command: options may stand between what is named."""

    _inside = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._inside:
            return super().parse_known_args(args, namespace)
        self._inside = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._inside = False


def made(only: str | None = None) -> argparse.ArgumentParser:
    """The parser. Importing a command takes time: with `only`, one is imported, and of others there is but the name."""
    codes = "\n".join(f"  {code:>3}  {what}" for code, what in exits.CODES.items())
    parser = Parser(
        prog="quercus",
        description="Patterns over streams of events.",
        epilog=f"exit codes:\n{codes}\n\nquercus COMMAND --help says more of each command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"quercus {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="command", parser_class=Command)
    for name, (where, about) in COMMANDS.items():
        sub = commands.add_parser(name, help=about, formatter_class=argparse.RawDescriptionHelpFormatter)
        if only is None or name == only:
            module = import_module(f"quercus.cli.{where}")
            sub.description = module.__doc__
            module.add(sub)
            sub.set_defaults(run=module.run)
    return parser


def _version() -> str:
    from quercus import __version__

    return __version__
