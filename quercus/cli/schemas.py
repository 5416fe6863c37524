"""The schema: from a file, or read off the events, with guesses that are said."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from quercus.backends.local.dialect import Files
from quercus.backends.local.infer import first_rows, infer_columns, refuse_dates, unit_of
from quercus.cli.exits import UsageError
from quercus.compiler import compile
from quercus.compiler.scalars import unit_named
from quercus.errors import DataError, QueryError
from quercus.schema import Schema

TIMES = ("ts", "time", "timestamp", "event_time", "eventtime", "datetime", "date_time", "created_at", "date")
TYPES = ("type", "event_type", "eventtype", "event", "kind", "event_name", "activity", "action")

_WINDOW = re.compile(r"\b(within|range)\s+(\d[\d_.]*)\s*([^\W\d_]*)", re.I)


def add_schema(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the columns mean (guessed where not said)")
    group.add_argument("--schema", metavar="FILE", help="a schema as JSON, as Schema.to_dict() gives it")
    group.add_argument("--time", metavar="COLUMN", help="the column of times")
    group.add_argument("--type", metavar="COLUMN", help="the column of event types")
    group.add_argument("--time-unit", choices=("s", "ms", "us", "ns"), help="what integer times count")
    group.add_argument("--ties", choices=("strict", "arrival"), help="whether events of one time are in order")
    group.add_argument("--key", metavar="A,B", help="columns whose every value is a stream of its own")
    group.add_argument("--order", metavar="COLUMN", help="what breaks ties of time on Spark")
    group.add_argument("--hierarchy", metavar="JSON", help="concepts above types: a file, or JSON text")
    group.add_argument(
        "--attribute",
        metavar="NAME=TYPE",
        action="append",
        default=[],
        help="the type of a column (int64 float64 bool string timestamp), where the data misleads; repeatable",
    )


def schema_of(args: argparse.Namespace, files: Files | pa.Table, *queries: str, typed: bool = True) -> Schema:
    """The schema of the events that some queries ask."""
    if args.schema is not None:
        return schema_from_file(args)
    head = files if isinstance(files, pa.Table) else first_rows(files, args.time)
    names = head.column_names
    time = args.time or _guessed(names, TIMES, head.schema, "time")
    if time not in names:
        raise DataError(f"no time column '{time}': columns: {', '.join(names)}", column=time)
    if isinstance(files, Files) and files.time_format is not None:
        head = files.timed(head, time)
    type_ = args.type
    if typed and type_ is None:
        type_ = _guessed([n for n in names if n != time], TYPES, None, "type")
    attributes = infer_columns(files, time, type_ if typed else None)
    attributes = {n: k for n, k in attributes.items() if not _hides(n, time, type_)}
    hidden = [n for n in names if _hides(n, time, type_)]
    nulls = [f.name for f in head.schema if pa.types.is_null(f.type) and f.name in attributes]
    attributes.update(_declared(args.attribute))
    unit = args.time_unit or unit_of(head.column(time))
    counts = any(unit not in (None, "events") for _, _, unit in _windows(queries))
    if unit is None and counts:
        refuse_dates(head.column(time), time)
    if not args.quiet:
        said = unit or ("ms" if counts else None)
        _say_bare(queries, attributes.get(time))
        _say(args, time, type_ if typed else None, said, hidden, is_integer=time not in attributes)
    options = _options(args)

    def made(given: Mapping[str, str]) -> Schema:
        return Schema(given, time=time, type=type_ if typed else None, time_unit=unit or "ms", **options)

    return _fitting(
        attributes, [n for n in nulls if n not in _declared(args.attribute)], queries if typed else (), made
    )


def _fitting(
    attributes: Mapping[str, str], nulls: Sequence[str], queries: Sequence[str], made: Callable[[Any], Schema]
) -> Schema:
    """The schema, where columns without any value have the first type that the queries can do with."""
    for kind in ("int64", "string", "bool", "timestamp") if nulls and queries else ():
        schema = made({**attributes, **dict.fromkeys(nulls, kind)})
        with suppress(QueryError):
            for query in queries:
                compile(query, schema)
            return schema
    return made(attributes)


def _windows(queries: Iterable[str]) -> Iterator[tuple[str, str, str | None]]:
    """The windows of queries: the word before, the length, and the unit, if there is one."""
    for word, length, unit in (found.groups() for query in queries for found in _WINDOW.finditer(query)):
        yield word.casefold(), length, unit_named(unit)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "ties": args.ties or "strict",
        "key": [k.strip() for k in args.key.split(",")] if args.key else None,
        "order": args.order,
        "hierarchy": _hierarchy(args.hierarchy),
    }


def schema_from_file(args: argparse.Namespace) -> Schema:
    """What --schema says."""
    given = [n for n in ("time", "type", "time_unit", "ties", "key", "order", "hierarchy") if getattr(args, n)]
    if given or args.attribute:
        name = given[0].replace("_", "-") if given else "attribute"
        raise UsageError(f"--schema says all of it: leave out --{name}, or write it into the file")
    try:
        data = json.loads(Path(args.schema).read_text(encoding="utf-8"))
        if not isinstance(data, dict) or "attributes" not in data:
            raise DataError(f"'{args.schema}' is no schema: it is an object with 'attributes', 'time', 'type', ...")
        return Schema.from_dict(data)
    except OSError as e:
        raise DataError(f"'{args.schema}' cannot be read: {e.strerror}") from None
    except (ValueError, TypeError) as e:
        raise DataError(f"'{args.schema}' is no schema: {str(e).replace('Schema.__init__() ', '')}") from None


def _guessed(names: Iterable[str], known: tuple[str, ...], schema: pa.Schema | None, role: str) -> str:
    names = list(names)
    by_fold = {n.casefold().replace(" ", "_"): n for n in reversed(names)}
    found = next((by_fold[k] for k in known if k in by_fold), None)
    if found is None and schema is not None:  # the only column of moments
        moments = [f.name for f in schema if pa.types.is_timestamp(f.type) or pa.types.is_date(f.type)]
        found = moments[0] if len(moments) == 1 else None
    if found is None:
        raise DataError(
            f"which column is the {role}? None is called {', '.join(known[:4])}: "
            f"say which with --{role}; columns: {', '.join(names)}{_looks_like_data(names)}"
        )
    return found


def _looks_like_data(names: list[str]) -> str:
    if any(re.fullmatch(r"-?[\d.]+", n) for n in names):
        return "; if the file has no header, name its columns with --columns"
    return ""


def _hides(name: str, time: str, type_: str | None) -> bool:
    return (name == "ts" and time != "ts") or (name == "type" and type_ is not None and type_ != "type")


def _declared(given: list[str]) -> dict[str, str]:
    found = {}
    for item in given:
        name, equals, kind = item.partition("=")
        if not equals or not kind:
            raise UsageError(f"--attribute {item}: write NAME=TYPE, as in price=float64")
        found[name] = kind
    return found


def _hierarchy(given: str | None) -> Any:
    if given is None:
        return None
    text = given if given.lstrip().startswith("{") else Path(given).read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        raise DataError(f"--hierarchy is no JSON: {e}") from None


def _say_bare(queries: Iterable[str], kind: str | None) -> None:
    """What a window without a unit counts, where times are moments: hardly what was meant."""
    unit = re.fullmatch(r"timestamp\[(\w+)\]", kind or "")
    size = next((n for word, n, named in _windows(queries) if word == "within" and named is None), None)
    if unit and size:
        print(
            f"quercus: taken: WITHIN {size} {unit[1]}; another unit, as in WITHIN {size} min, is said", file=sys.stderr
        )


def _say(
    args: argparse.Namespace, time: str, type_: str | None, unit: str | None, hidden: list[str], *, is_integer: bool
) -> None:
    """What was guessed, unless it is what anyone would."""
    said = []
    if args.time is None and time != "ts":
        said.append(f"--time '{time}'")
    if args.type is None and type_ not in (None, "type"):
        said.append(f"--type '{type_}'")
    if is_integer and args.time_unit is None and unit is not None:
        said.append(f"--time-unit {unit}")
    if said:
        print(f"quercus: taken: {' '.join(said)}", file=sys.stderr)
    if hidden:
        print(f"quercus: left out: {', '.join(hidden)}: a name that means something else in queries", file=sys.stderr)
