"""The `.case` format: queries, streams and every expected match, as text that reads like a table.

    # a comment: a line that begins with '#', anywhere
    case: SEQ with negation keeps the early T
    why: E-Cube, Example 1
    query: PATTERN SEQ(G, A, !D, T) WITHIN 100
    events: g1 a5 a6 t9 d10 t15
    match: G=g1 A=a5 T=t9
    match: G=g1 A=a6 T=t9

A file is a list of cases; each begins with `case:` and has `key: value` lines. A line that begins with a blank goes on
with the value above it. Blank lines mean nothing. There are no comments at the end of a line.

The keys of a case, each at most once except `match`, `row`, `must match` and `must not match`:

    case        its name, unique in the file
    why         where the expectation comes from
    query       the text of the query
    events      the stream, in input order (may be empty)
    types       what labels stand for: g=Google m=Microsoft 'x y'='X Y'
    attributes  the types of attributes: id=int64, price=float64 (also bool, string, timestamp); the rest is inferred
    ties        strict (the default) or arrival
    unit        the unit of the times: s ms us ns; the default is ms
    key         attributes that split the stream: id, room
    hierarchy   concepts, as JSON: {"TX": {"Dallas": ["DBusStation"]}}
    match       one expected match: G=g1 B={b2 b3} C={}; a variable of an OR branch not taken is left out
    matches     `none`, when nothing matches
    returns     the names of the output columns of RETURN or AGG: id, total
    row         one expected output row: 3, 'x'
    rows        `none`, when no row comes out
    error       the code with which the query must be refused: E104
    must match      bindings that some match has: G=g1 T=t9; variables that are left out may be bound to anything
    must not match  bindings that no match has
    live        the case as a live stream, and what it gives when: a1 c6 c7:a1 @9 end:a8+b9
    delay       how late events may come in it: 2, or 5 s

A case must say what it expects: matches, rows, some matches, a live stream, or an error alone. `match` lines are *all*
matches; `must match` and `must not match` are about some.

`live` has every event once, in the order in which they come, and between them `@7`, which tells the stream that its
clock stands at 7, and at last `end`. `c7:a1+b2` says that the push of c7 gives the match of a1 and b2; several matches
stand between slashes. Where nothing is said, nothing may come, so that `live` says of every match when it is given.

An event is `label{attributes}` with no blank between the two.

    label      := (letters time | name '@' time) ['#' number]
    name       := letters, digits and '_', or a quoted string
    attributes := '{' [attr '=' value {',' attr '=' value}] '}'
    value      := integer | float | nan | inf | -inf | true | false | null | string | '[' values ']' (in rows only)

`g1` is an event at time 1 whose type is what `types` says of `g`, else the letters with the first one upper-cased:
`sharpen3` is a Sharpen. `name@time` takes the type exactly as written, for names that are not plain letters:
`147073@12`, `t147073@12`, `'Bus station'@3`. Several events of one type at one time: `a1 a1#2 a1#3`. Strings stand in
'..' or ".."; a quote inside is doubled. An attribute that an event leaves out is null.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from quercus.testing.expectations import Match, Row, Step, matches_of, rows_of, some_of, steps_of
from quercus.testing.scanner import LABEL, NAME, CaseError, Entry, Scanner, names_in, unquote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ONCE = (
    "case", "why", "query", "events", "types", "attributes", "ties", "unit", "key", "hierarchy",
    "delay", "matches", "returns", "rows", "error", "live",
)  # fmt: skip
MANY = ("match", "row", "must match", "must not match")
EXPECTATIONS = ("match", "matches", "returns", "row", "rows", "error")
SOME = ("must match", "must not match", "live")
UNITS = ("s", "ms", "us", "ns")
ATTRIBUTE_TYPES = ("int64", "float64", "bool", "string", "timestamp")


@frozen
class Options:
    """How the stream of a case is to be read."""

    ties: str = "strict"
    time_unit: str = "ms"
    key: tuple[str, ...] = ()
    hierarchy: Mapping[str, Any] = field(factory=dict)


@frozen
class Case:
    """One case. `matches`, `rows` and `error` are None where the case does not speak of them."""

    name: str
    why: str
    query: str
    events: list[Row]
    labels: tuple[str, ...]
    options: Options
    attributes: Mapping[str, str]
    matches: list[Match] | None
    columns: tuple[str, ...] | None
    rows: list[Row] | None
    error: str | None
    path: Path
    line: int
    must: tuple[Match, ...] = ()
    must_not: tuple[Match, ...] = ()
    live: tuple[Step, ...] | None = None
    delay: str | int | None = None


@frozen
class Actual:
    """What an engine answered; None where it was not asked."""

    matches: list[Match] | None = None
    rows: list[Row] | None = None
    error: str | None = None


# Reading --------------------------------------------------------------------------------------------------------------


def read(path: Path | str) -> list[Case]:
    """The cases of a file, in its order.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.case"
    ...     _ = file.write_text("case: one\\nquery: PATTERN A; B WITHIN 5\\nevents: a1 b2{id=3}\\nmatch: A=a1 B=b2\\n")
    ...     [case] = read(file)
    >>> case.matches, case.events[1]
    ([{'A': 0, 'B': 1}], {'type': 'B', 'ts': 2, 'id': 3})
    """
    path = Path(path)
    return [case_of(path, entries) for entries in blocks_of(path, lines_of(path))]


def lines_of(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read().splitlines(keepends=True)
    except UnicodeDecodeError as e:
        raise CaseError(path, 1, f"the file is not UTF-8: {e.reason}") from None


def blocks_of(path: Path, lines: Sequence[str]) -> list[list[Entry]]:
    """The entries of each case; checks keys and names but no values."""
    blocks: list[list[Entry]] = []
    names: dict[str, int] = {}
    for entry in _entries(path, lines):
        if entry.key == "case":
            if not entry.value:
                raise CaseError(path, entry.line, "a case needs a name")
            if entry.value in names:
                raise CaseError(
                    path, entry.line, f"a case named {entry.value!r} stands at line {names[entry.value]} already"
                )
            names[entry.value] = entry.line
            blocks.append([entry])
            continue
        if not blocks:
            raise CaseError(path, entry.line, f"'{entry.key}:' before the first 'case:'")
        earlier = next((e for e in blocks[-1] if e.key == entry.key), None)
        if earlier is not None and entry.key not in MANY:
            raise CaseError(path, entry.line, f"'{entry.key}:' stands at line {earlier.line} of this case already")
        blocks[-1].append(entry)
    return blocks


def _entries(path: Path, lines: Sequence[str]) -> Iterator[Entry]:
    open_entry: Entry | None = None
    for number, raw in enumerate(lines, 1):
        text = raw.strip()
        if not text or text.startswith("#"):
            continue
        if raw[0].isspace():
            if open_entry is None:
                raise CaseError(path, number, "an indented line continues the line above, and there is none")
            value = f"{open_entry.value}\n{text}" if open_entry.value else text
            open_entry = evolve(open_entry, value=value, end=number + 1)
            continue
        if open_entry is not None:
            yield open_entry
        key, colon, value = text.partition(":")
        key = key.strip()
        if not colon:
            raise CaseError(path, number, f"expected 'key: value', found {text[:40]!r}")
        if key not in ONCE + MANY:
            raise CaseError(
                path, number, f"unknown key '{key}'; the keys are {', '.join(ONCE[:11] + EXPECTATIONS + SOME)}"
            )
        open_entry = Entry(key, value.strip(), number, number + 1)
    if open_entry is not None:
        yield open_entry


def case_of(path: Path, entries: list[Entry]) -> Case:
    single = {e.key: e for e in entries if e.key not in MANY}
    head = entries[0]

    def text(key: str, default: str = "") -> str:
        return single[key].value if key in single else default

    def fail(key: str, message: str) -> CaseError:
        return CaseError(path, single.get(key, head).line, message)

    def one_of(key: str, allowed: Sequence[str], default: str) -> str:
        if text(key, default) not in allowed:
            raise fail(key, f"'{key}:' is one of {', '.join(allowed)}, not {text(key)!r}")
        return text(key, default)

    if not text("query"):
        raise fail("query", f"case {head.value!r} has no query")
    options = Options(
        ties=one_of("ties", ("strict", "arrival"), "strict"),
        time_unit=one_of("unit", UNITS, "ms"),
        key=tuple(names_in(path, single["key"])) if "key" in single else (),
        hierarchy=_hierarchy(path, single.get("hierarchy")),
    )
    labels, events, attributes = _stream(path, single)
    if "events" not in single and "error" not in single:
        raise fail("case", f"case {head.value!r} has no 'events:' line")
    for name in options.key:
        if name not in attributes:
            raise fail("key", f"no event has the attribute {name!r}")
    matches = matches_of(path, entries, labels)
    columns, rows = rows_of(path, entries)
    error = text("error") or None
    if "error" in single and not re.fullmatch(r"E\d{3}", text("error")):
        raise fail("error", f"an error is a code such as E104, not {text('error')!r}")
    must, must_not = (some_of(path, entries, key, labels) for key in ("must match", "must not match"))
    live = steps_of(path, single["live"], labels) if "live" in single else None
    if "delay" in single and live is None:
        raise fail("delay", "'delay:' is for a 'live:' line, and there is none")
    some = bool(must or must_not) or live is not None
    if error is not None and (matches is not None or rows is not None or some):
        raise fail("error", "a query that must be refused has no matches and no rows")
    if error is None and matches is None and rows is None and not some:
        raise fail("case", f"case {head.value!r} expects nothing: write match, matches: none, row, rows: none or error")
    return Case(
        name=head.value, why=" ".join(text("why").split()), query=text("query"), events=events, labels=labels,
        options=options, attributes=attributes, matches=matches, columns=columns, rows=rows, error=error,
        path=path, line=head.line, must=must, must_not=must_not, live=live, delay=_delay(text("delay")),
    )  # fmt: skip


def _delay(text: str) -> str | int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,19}", text) else text or None


def _hierarchy(path: Path, entry: Entry | None) -> Mapping[str, Any]:
    if entry is None:
        return {}
    try:
        tree = json.loads(entry.value)
    except json.JSONDecodeError as e:
        raise CaseError(path, entry.line + e.lineno - 1, f"'hierarchy:' is not JSON: {e.msg}") from None
    if not isinstance(tree, dict):
        raise CaseError(path, entry.line, "'hierarchy:' is a JSON object {concept: [finer types]}")
    return tree


# Streams --------------------------------------------------------------------------------------------------------------


def _pairs(path: Path, entry: Entry) -> Iterator[tuple[str, str]]:
    """`a=b c=d`, with or without commas."""
    scan = Scanner(path, entry)
    names: set[str] = set()
    while scan.blanks():
        name = unquote(scan.need(NAME, "a name")[0])
        if name in names:
            raise scan.fail(f"{name!r} stands twice")
        names.add(name)
        scan.need(r"\s*=\s*", "'='")
        yield name, unquote(scan.need(NAME, "a name")[0])
        scan.take(r"\s*,")


def _stream(path: Path, single: Mapping[str, Entry]) -> tuple[tuple[str, ...], list[Row], dict[str, str]]:
    types = dict(_pairs(path, single["types"])) if "types" in single else {}
    declared = dict(_pairs(path, single["attributes"])) if "attributes" in single else {}
    for name, kind in declared.items():
        if kind not in ATTRIBUTE_TYPES:
            line = single["attributes"].line
            raise CaseError(path, line, f"{name!r} has no type {kind!r}; the types are {', '.join(ATTRIBUTE_TYPES)}")
    labels: list[str] = []
    events: list[Row] = []
    if "events" in single:
        scan = Scanner(path, single["events"])
        while scan.blanks():
            label, event = _event(scan, types)
            if label in labels:
                raise scan.fail(f"two events are labelled {label}; write the second one {label.split('#')[0]}#2")
            labels.append(label)
            events.append(event)
    kinds = {name: declared.get(name) or _infer(path, single, name, events) for name in _attribute_names(events)}
    kinds.update({name: kind for name, kind in declared.items() if name not in kinds})
    for event in events:
        for name, kind in kinds.items():
            value = event.get(name)
            event[name] = float(value) if kind == "float64" and type(value) is int else value
    return tuple(labels), events, kinds


def _event(scan: Scanner, types: Mapping[str, str]) -> tuple[str, Row]:
    found = scan.need(LABEL, "an event such as a1, a1#2, MSFT@1 or b2{id=3}")
    if found["name"] is not None:
        kind, time = unquote(found["name"]), found["at"]
    else:
        letters, time = found["letters"], found["time"]
        kind = types.get(letters, letters[0].upper() + letters[1:])
    event: Row = {"type": kind, "ts": scan.whole(time)}
    if scan.take(r"\{"):
        while not scan.take(r"\s*\}"):
            name = scan.need(r"\s*(\w+)\s*=", f"'attribute=value' or '}}' in the event {found[0]}")[1]
            if name in event:
                why = "is the event's own" if name in ("type", "ts") else "stands twice"
                raise scan.fail(f"the attribute {name!r} of {found[0]} {why}")
            event[name] = scan.value()
            if isinstance(event[name], list):
                raise scan.fail(f"the attribute {name!r} of {found[0]} is a list")
            if not scan.take(r"\s*,"):
                scan.need(r"\s*(?=\})", f"',' or '}}' in the event {found[0]}")
    if scan.at < len(scan.text) and not scan.text[scan.at].isspace():
        raise scan.fail(f"expected a blank after the event {found[0]}, found {scan.rest()}")
    return found[0], event


def _attribute_names(events: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for event in events for name in event if name not in ("type", "ts")))


def _infer(path: Path, single: Mapping[str, Entry], name: str, events: Iterable[Row]) -> str:
    kinds = {type(event[name]) for event in events if event.get(name) is not None}
    for python, kind in ((bool, "bool"), (int, "int64"), (str, "string")):
        if kinds == {python}:
            return kind
    if kinds and kinds <= {int, float}:
        return "float64"
    problem = "values of several types" if kinds else "only null values"
    raise CaseError(path, single["events"].line, f"the attribute {name!r} has {problem}: give 'attributes: {name}=...'")
