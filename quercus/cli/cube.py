"""Answer many queries together: a file of named queries over the same events.

  quercus cube queries.toml events.parquet
  quercus cube queries.toml events.parquet --graph cube.svg

FILE is TOML or JSON: a table of names and queries, or one called 'queries' beside a 'hierarchy'. Any other file is
text: 'name: PATTERN ...' a query, whose further lines begin with a blank.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quercus.backends.local.write import write_table
from quercus.cli import exits
from quercus.cli.compiled import add_limits, add_quiet, limits_of, note
from quercus.cli.events import add_events, files_of
from quercus.cli.schemas import add_schema, schema_of
from quercus.cli.terminal import counted, table
from quercus.compiler.cube.order import STRATEGIES
from quercus.cubes import cube
from quercus.errors import DataError


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="named queries: TOML, JSON, or text with 'name: query'")
    add_events(parser)
    parser.add_argument("-o", "--output", metavar="FOLDER", help="the matches of each query: FOLDER/name.parquet")
    parser.add_argument("--share", choices=STRATEGIES, default="chase", help="how results are shared (default: chase)")
    parser.add_argument("--graph", metavar="FILE", help="draw what was computed from what: .svg .png .pdf .dot")
    parser.add_argument("--explain", action="store_true", help="say what was computed from what, and what it cost")
    parser.add_argument("--json", action="store_true", help="one JSON document: names and counts")
    add_schema(parser)
    add_limits(parser)
    parser.add_argument("--threads", type=int, metavar="N", help="threads (default: 1)")
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    if args.output == "-":
        raise exits.UsageError("a cube has several answers: name a folder for them")
    queries, hierarchy = read_queries(Path(args.file))
    if hierarchy and args.hierarchy is None and args.schema is None:
        args.hierarchy = json.dumps(hierarchy)
    files = files_of(args, args.events)
    made = cube(queries, schema_of(args, files, *queries.values()), share=args.share)
    result = made.run(files, threads=args.threads, limits=limits_of(args))
    counts = {name: len(result[name]) for name in made.names}
    if args.output is not None:
        folder = Path(args.output)
        folder.mkdir(parents=True, exist_ok=True)
        for name in made.names:
            write_table(result[name].to_arrow(), folder / f"{name}.parquet")
        note(args, f"{counted(len(counts), 'file')} in {folder}")
    if args.json:
        print(json.dumps(counts))
    elif args.explain:
        print(made.explain())
    else:
        rows = [{"query": n, "matches": c, "computed": _way(made.cuboid(n))} for n, c in counts.items()]
        print(table(rows))
    if args.graph is not None:
        note(args, str(made.render(args.graph)))
    return exits.OK


def _way(cuboid: Any) -> str:
    source = getattr(cuboid, "source", None)
    return "alone" if source is None else f"from {source}"


def read_queries(path: Path) -> tuple[dict[str, str], Any]:
    """The queries of a file by name, and its hierarchy, if it has one."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as e:
        raise DataError(f"'{path}' cannot be read: {e.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"'{path}' is not text in UTF-8") from None
    try:
        match path.suffix.lower():
            case ".toml":
                data: Any = tomllib.loads(text)
            case ".json":
                data = json.loads(text)
            case _:
                data = _from_text(path, text)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as e:
        raise DataError(f"'{path}' cannot be read: {e}") from None
    queries = data.get("queries", data) if isinstance(data, Mapping) else None
    if not isinstance(queries, Mapping) or not queries or not all(isinstance(q, str) for q in queries.values()):
        raise DataError(f"'{path}' has no queries: write a name and a text for each")
    hierarchy = data.get("hierarchy") if "queries" in data else None
    return dict(queries), hierarchy


def _from_text(path: Path, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0].isspace():
            if name is None:
                raise DataError(f"{path}:{number}: an indented line goes on with a query, and there is none")
            found[name] += "\n" + line
            continue
        name, colon, query = (part.strip() for part in line.partition(":"))
        if not colon or not name or name in found:
            raise DataError(f"{path}:{number}: write 'name: PATTERN ...', each name once")
        found[name] = query
    return found
