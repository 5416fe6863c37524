"""What a case expects: matches, rows, and what a live stream gives when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from quercus.testing.scanner import LABEL, NAME, CaseError, Entry, Scanner, names_in, unquote

Match = dict[str, int | list[int]]
Row = dict[str, Any]


@frozen
class Step:
    """A step of a live stream: an event (its row), a clock, or the end; and the matches that it must give, as rows."""

    word: str
    row: int | None
    clock: int | None
    gives: tuple[tuple[int, ...], ...]


def matches_of(path: Path, entries: Iterable[Entry], labels: Sequence[str]) -> list[Match] | None:
    found: list[Match] = []
    seen: dict[tuple[Any, ...], int] = {}
    none: Entry | None = None
    for entry in entries:
        if entry.key == "matches" and entry.value != "none":
            raise CaseError(path, entry.line, "'matches:' can only be none; write one 'match:' line for each match")
        if entry.key == "matches" or (entry.key == "match" and entry.value == "none"):
            none = entry
        elif entry.key == "match":
            match = _match(Scanner(path, entry), labels)
            key = match_key(match)
            if key in seen:
                raise CaseError(path, entry.line, f"this match stands at line {seen[key]} already")
            seen[key] = entry.line
            found.append(match)
    if none is not None and found:
        raise CaseError(path, none.line, "the case expects no match, and also a match")
    return found if found or none is not None else None


def _match(scan: Scanner, labels: Sequence[str]) -> Match:
    def row() -> int:
        label = scan.need(LABEL, "the label of an event")[0]
        if label not in labels:
            raise scan.fail(f"no event is labelled {label}")
        return labels.index(label)

    match: Match = {}
    while scan.blanks():
        var = unquote(scan.need(NAME, "a variable")[0])
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


def rows_of(path: Path, entries: Iterable[Entry]) -> tuple[tuple[str, ...] | None, list[Row] | None]:
    columns: tuple[str, ...] | None = None
    rows: list[Row] = []
    none: Entry | None = None
    for entry in entries:
        if entry.key == "returns":
            columns = tuple(names_in(path, entry))
        elif entry.key == "rows":
            if entry.value != "none":
                raise CaseError(path, entry.line, "'rows:' can only be none; write one 'row:' line for each row")
            none = entry
        elif entry.key == "row":
            if columns is None:
                raise CaseError(path, entry.line, "'row:' needs a 'returns:' line above it that names the columns")
            scan = Scanner(path, entry)
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


def some_of(path: Path, entries: Iterable[Entry], key: str, labels: Sequence[str]) -> tuple[Match, ...]:
    """The bindings of all `must match` or `must not match` lines."""
    return tuple(_match(Scanner(path, e), labels) for e in entries if e.key == key)


def steps_of(path: Path, entry: Entry, labels: Sequence[str]) -> tuple[Step, ...]:
    """`a1 c6 c7:a1 @9 end:a2+b3/a4+b5`: what is pushed, and what must come out then."""
    scan = Scanner(path, entry)
    steps: list[Step] = []

    def label() -> int:
        found = scan.need(LABEL, "the label of an event")[0]
        if found not in labels:
            raise scan.fail(f"no event is labelled {found}")
        return labels.index(found)

    while scan.blanks():
        if steps and steps[-1].word == "end":
            raise scan.fail("nothing comes after the end")
        start, row, clock = scan.at, None, None
        if moment := scan.take(r"@(-?\d+)"):
            clock = scan.whole(moment[1])
        elif not scan.take(r"end(?=[\s:]|$)"):
            row = label()
        word = scan.text[start : scan.at]
        gives: list[tuple[int, ...]] = []
        if scan.take(":"):
            while True:
                rows = [label()]
                while scan.take(r"\+"):
                    rows.append(label())
                gives.append(tuple(sorted(rows)))
                if not scan.take("/"):
                    break
        if scan.at < len(scan.text) and not scan.text[scan.at].isspace():
            raise scan.fail(f"expected a blank, found {scan.rest()}")
        steps.append(Step(word, row, clock, tuple(sorted(gives))))
    pushed = [s.row for s in steps if s.row is not None]
    if sorted(pushed) != list(range(len(labels))):
        odd = next((n for i, n in enumerate(labels) if pushed.count(i) != 1), "?")
        raise CaseError(path, entry.line, f"'live:' has every event once: {odd} is missing, or stands twice")
    return tuple(steps)


def match_key(match: Match) -> tuple[Any, ...]:
    return tuple(sorted((var, tuple(sorted(b)) if isinstance(b, list) else b) for var, b in match.items()))
