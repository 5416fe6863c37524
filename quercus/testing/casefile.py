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

The keys of a case, each at most once except `match` and `row`:

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

A case must say what it expects: matches, rows, or an error alone.

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
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from quercus.errors import QuercusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Match = dict[str, int | list[int]]
Row = dict[str, Any]

ONCE = (
    "case", "why", "query", "events", "types", "attributes", "ties", "unit", "key", "hierarchy",
    "matches", "returns", "rows", "error",
)  # fmt: skip
MANY = ("match", "row")
EXPECTATIONS = ("match", "matches", "returns", "row", "rows", "error")
UNITS = ("s", "ms", "us", "ns")
ATTRIBUTE_TYPES = ("int64", "float64", "bool", "string", "timestamp")

_STRING = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
_NAME = rf"(?:{_STRING}|\w+)"
_LABEL = re.compile(rf"(?:(?P<name>{_NAME})@(?P<at>\d+)|(?P<letters>[^\W\d_]+)(?P<time>\d+))(?:\#\d+)?", re.ASCII)
_NUMBER = re.compile(r"-?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+|\d+)")
_WORD = re.compile(r"-?[A-Za-z]+")
_WORDS: dict[str, Any] = {
    "null": None, "true": True, "false": False, "nan": math.nan, "inf": math.inf, "-inf": -math.inf,
}  # fmt: skip


class CaseError(QuercusError):
    """A `.case` file that cannot be read: says the file, the line and what is wrong there."""

    def __init__(self, path: Path | str, line: int, message: str) -> None:
        self.path, self.line, self.message = Path(path), line, message
        super().__init__(f"{path}:{line}: {message}")


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


@frozen
class Actual:
    """What an engine answered; None where it was not asked."""

    matches: list[Match] | None = None
    rows: list[Row] | None = None
    error: str | None = None


# Reading --------------------------------------------------------------------------------------------------------------


@frozen
class Entry:
    """`key: value` with the lines it covers, [line, end), counted from 1."""

    key: str
    value: str
    line: int
    end: int


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
        with path.open(encoding="utf-8", newline="") as file:
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
            raise CaseError(path, number, f"unknown key '{key}'; the keys are {', '.join(ONCE[:10] + EXPECTATIONS)}")
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
        key=tuple(_names(path, single["key"])) if "key" in single else (),
        hierarchy=_hierarchy(path, single.get("hierarchy")),
    )
    labels, events, attributes = _stream(path, single)
    if "events" not in single and "error" not in single:
        raise fail("case", f"case {head.value!r} has no 'events:' line")
    for name in options.key:
        if name not in attributes:
            raise fail("key", f"no event has the attribute {name!r}")
    matches = _matches(path, entries, labels)
    columns, rows = _rows(path, entries)
    error = text("error") or None
    if "error" in single and not re.fullmatch(r"E\d{3}", text("error")):
        raise fail("error", f"an error is a code such as E104, not {text('error')!r}")
    if error is not None and (matches is not None or rows is not None):
        raise fail("error", "a query that must be refused has no matches and no rows")
    if error is None and matches is None and rows is None:
        raise fail("case", f"case {head.value!r} expects nothing: write match, matches: none, row, rows: none or error")
    return Case(
        name=head.value, why=" ".join(text("why").split()), query=text("query"), events=events, labels=labels,
        options=options, attributes=attributes, matches=matches, columns=columns, rows=rows, error=error,
        path=path, line=head.line,
    )  # fmt: skip


def _names(path: Path, entry: Entry) -> list[str]:
    names = [name.strip() for name in entry.value.split(",")]
    if not all(names):
        raise CaseError(path, entry.line, f"'{entry.key}:' is a list of names with commas between them")
    if len(set(names)) < len(names):
        raise CaseError(path, entry.line, f"a name stands twice in '{entry.key}:'")
    return names


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


class _Scanner:
    """A cursor over the value of one entry, with errors at the right line."""

    def __init__(self, path: Path, entry: Entry) -> None:
        self.path, self.entry, self.text, self.at = path, entry, entry.value, 0

    def fail(self, message: str) -> CaseError:
        return CaseError(self.path, self.entry.line + self.text.count("\n", 0, self.at), message)

    def blanks(self) -> bool:
        """Skip blanks; is there more?"""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at < len(self.text)

    def take(self, pattern: str | re.Pattern[str]) -> re.Match[str] | None:
        found = re.compile(pattern).match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def need(self, pattern: str | re.Pattern[str], what: str) -> re.Match[str]:
        found = self.take(pattern)
        if found is None:
            raise self.fail(f"expected {what}, found {self.rest()}")
        return found

    def rest(self) -> str:
        return repr(self.text[self.at :].split("\n")[0][:30]) if self.at < len(self.text) else "the end"

    def value(self) -> Any:
        self.blanks()
        if self.take(r"\["):
            items = []
            while not self.take(r"\s*\]"):
                items.append(self.value())
                self.take(r"\s*,")
            return items
        if string := self.take(_STRING):
            return _unquote(string[0])
        if number := self.take(_NUMBER):
            return float(number[0]) if re.search(r"[.eE]", number[0]) else int(number[0])
        if word := self.take(_WORD):
            if word[0] in _WORDS:
                return _WORDS[word[0]]
            self.at = word.start()
        raise self.fail(f"expected a value (3, 1.5, 'x', true, null), found {self.rest()}")


def _unquote(text: str) -> str:
    if text[:1] in ("'", '"'):
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def _pairs(path: Path, entry: Entry) -> Iterator[tuple[str, str]]:
    """`a=b c=d`, with or without commas."""
    scan = _Scanner(path, entry)
    while scan.blanks():
        name = _unquote(scan.need(_NAME, "a name")[0])
        scan.need(r"\s*=\s*", "'='")
        yield name, _unquote(scan.need(_NAME, "a name")[0])
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
        scan = _Scanner(path, single["events"])
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


def _event(scan: _Scanner, types: Mapping[str, str]) -> tuple[str, Row]:
    found = scan.need(_LABEL, "an event such as a1, a1#2, MSFT@1 or b2{id=3}")
    if found["name"] is not None:
        kind, time = _unquote(found["name"]), found["at"]
    else:
        letters, time = found["letters"], found["time"]
        kind = types.get(letters, letters[0].upper() + letters[1:])
    event: Row = {"type": kind, "ts": int(time)}
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


# Expectations ---------------------------------------------------------------------------------------------------------


def _matches(path: Path, entries: Iterable[Entry], labels: Sequence[str]) -> list[Match] | None:
    found: list[Match] = []
    seen: dict[tuple[Any, ...], int] = {}
    none: Entry | None = None
    for entry in entries:
        if entry.key == "matches" and entry.value != "none":
            raise CaseError(path, entry.line, "'matches:' can only be none; write one 'match:' line for each match")
        if entry.key == "matches" or (entry.key == "match" and entry.value == "none"):
            none = entry
        elif entry.key == "match":
            match = _match(_Scanner(path, entry), labels)
            key = match_key(match)
            if key in seen:
                raise CaseError(path, entry.line, f"this match stands at line {seen[key]} already")
            seen[key] = entry.line
            found.append(match)
    if none is not None and found:
        raise CaseError(path, none.line, "the case expects no match, and also a match")
    return found if found or none is not None else None


def _match(scan: _Scanner, labels: Sequence[str]) -> Match:
    def row() -> int:
        label = scan.need(_LABEL, "the label of an event")[0]
        if label not in labels:
            raise scan.fail(f"no event is labelled {label}")
        return labels.index(label)

    match: Match = {}
    while scan.blanks():
        var = _unquote(scan.need(_NAME, "a variable")[0])
        scan.need("=", "'='")
        if var in match:
            raise scan.fail(f"the variable {var} stands twice in one match")
        if scan.take(r"\{"):
            rows = []
            while not scan.take(r"\s*\}"):
                scan.blanks()
                rows.append(row())
            if len(set(rows)) < len(rows):
                raise scan.fail(f"an event stands twice in the set of {var}")
            match[var] = sorted(rows)
        else:
            match[var] = row()
        if scan.at < len(scan.text) and not scan.text[scan.at].isspace():
            raise scan.fail(f"expected a blank, found {scan.rest()}")
    if not match:
        raise scan.fail("an empty match; write 'matches: none' when nothing matches")
    return match


def _rows(path: Path, entries: Iterable[Entry]) -> tuple[tuple[str, ...] | None, list[Row] | None]:
    columns: tuple[str, ...] | None = None
    rows: list[Row] = []
    none: Entry | None = None
    for entry in entries:
        if entry.key == "returns":
            columns = tuple(_names(path, entry))
        elif entry.key == "rows":
            if entry.value != "none":
                raise CaseError(path, entry.line, "'rows:' can only be none; write one 'row:' line for each row")
            none = entry
        elif entry.key == "row":
            if columns is None:
                raise CaseError(path, entry.line, "'row:' needs a 'returns:' line above it that names the columns")
            scan = _Scanner(path, entry)
            values = []
            while scan.blanks():
                values.append(scan.value())
                if not scan.take(r"\s*,"):
                    scan.need(r"\s*$", "','")
            if len(values) != len(columns):
                raise CaseError(path, entry.line, f"{len(values)} values for {len(columns)} columns")
            rows.append(dict(zip(columns, values, strict=True)))
    if none is not None and rows:
        raise CaseError(path, none.line, "the case expects no row, and also a row")
    return columns, rows if rows or none is not None else None


def match_key(match: Match) -> tuple[Any, ...]:
    return tuple(sorted((var, tuple(sorted(b)) if isinstance(b, list) else b) for var, b in match.items()))
