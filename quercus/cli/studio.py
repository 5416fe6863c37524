"""Open a local page to write queries, see their plans and browse their matches over files.

quercus studio events.parquet
quercus studio bars.txt --columns type,ts,close --time-format '%Y%m%d%H%M'
"""

from __future__ import annotations

import argparse
from importlib import import_module

from quercus.cli import exits
from quercus.cli.events import add_dialect, files_of


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILES", nargs="*", help="files that the page may read")
    add_dialect(parser)
    parser.add_argument("--port", type=int, default=0, metavar="N", help="on the loopback address (default: free)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def run(args: argparse.Namespace) -> int:
    files = [files_of(args, [path]) for path in args.files]
    import_module("quercus.studio").serve(files, port=args.port, open_browser=not args.no_browser)
    return exits.OK
