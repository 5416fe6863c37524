"""Writing answers back into a `.case` file: the expectations change, comments and layout stay."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from quercus.testing.casefile import EXPECTATIONS, Actual, Case, blocks_of, case_of, lines_of
from quercus.testing.compare import match_text, plain, row_key, value_text
from quercus.testing.expectations import Match, Row, match_key
from quercus.testing.scanner import CaseError, Entry

if TYPE_CHECKING:
    from collections.abc import Mapping

# Updating -------------------------------------------------------------------------------------------------------------


def update(path: Path | str, actual: Mapping[str, Actual | list[Match]]) -> list[str]:
    """Rewrite what the named cases expect; returns the names of the cases that changed.

    A list stands for `Actual(matches=...)`. Comments, the order of the file, and every expectation that was right stay
    as they are; new ones follow the last one of the case.
    """
    path = Path(path)
    lines = lines_of(path)
    blocks = blocks_of(path, lines)
    cases = {entries[0].value: (case_of(path, entries), entries) for entries in blocks}
    for name in actual:
        if name not in cases:
            raise CaseError(path, 1, f"no case is named {name!r}")
    changed = []
    for name, (case, entries) in reversed(cases.items()):
        if name in actual:
            answer = actual[name]
            answer = answer if isinstance(answer, Actual) else Actual(matches=answer)
            if _rewrite(lines, case, entries, answer):
                changed.append(name)
    if changed:
        beside = path.with_name(path.name + ".new")
        with beside.open("w", encoding="utf-8", newline="") as file:
            file.write("".join(lines))
        os.replace(beside, path)
    return changed[::-1]


def _rewrite(lines: list[str], case: Case, entries: list[Entry], actual: Actual) -> bool:
    """Change the lines of one case in place, and nothing above it; did anything change?"""
    drop: list[Entry] = []
    add: list[tuple[Entry, str]] = []  # after which entry, what

    def of(*keys: str) -> list[Entry]:
        return [e for e in entries if e.key in keys]

    if actual.error is not None:
        drop += of("match", "matches", "returns", "row", "rows")
        if actual.error != case.error:
            drop += of("error")
            add.append(((of(*EXPECTATIONS) or entries)[-1], f"error: {actual.error}"))
    else:
        drop += of("error")
        if actual.matches is not None:
            wanted = {match_key(m): m for m in map(plain, actual.matches)}
            missing = dict(wanted)
            for entry, match in zip((e for e in of("match") if e.value != "none"), case.matches or (), strict=False):
                if missing.pop(match_key(match), None) is None:
                    drop.append(entry)
            if wanted:
                drop += [e for e in of("match", "matches") if e.value == "none"]
            texts = [f"match: {match_text(case, m)}" for m in missing.values()]
            if not wanted and case.matches != []:
                texts = ["matches: none"]
            after = (of("match", "matches") or [e for e in entries if e.key not in EXPECTATIONS])[-1]
            add += [(after, text) for text in texts]
        if actual.rows is not None:
            drop_rows, texts = _rewrite_rows(case, entries, actual.rows)
            drop += drop_rows
            after = (of("returns", "row", "rows") or entries)[-1]
            add += [(after, text) for text in texts]
    if not drop and not add:
        return False
    ending = "\r\n" if lines[case.line - 1].endswith("\r\n") else "\n"
    gone = {n for e in drop for n in range(e.line, e.end) if not lines[n - 1].strip().startswith("#")}
    last = entries[-1].end - 1
    region = []
    for number in range(case.line, last + 1):
        if number not in gone:
            line = lines[number - 1]
            region.append(line if line.endswith(("\n", "\r")) or number < len(lines) or not add else line + ending)
        region += [text + ending for entry, text in add if entry.end - 1 == number]
    lines[case.line - 1 : last] = region
    return True


def _rewrite_rows(case: Case, entries: list[Entry], rows: list[Row]) -> tuple[list[Entry], list[str]]:
    """Which entries go, and the text of those that come."""
    columns = tuple(rows[0]) if rows else case.columns
    if columns is None or case.columns is None or set(columns) != set(case.columns):
        drop = [e for e in entries if e.key in ("returns", "row", "rows")]
        new = [f"returns: {', '.join(columns)}"] if columns else []
        missing = list(rows)
    else:
        drop, new, missing, columns = [], [], list(rows), case.columns
        for entry, row in zip((e for e in entries if e.key == "row"), case.rows or (), strict=False):
            same = next((r for r in missing if row_key(r) == row_key(row)), None)
            if same is None:
                drop.append(entry)
            else:
                missing.remove(same)
        if rows:
            drop += [e for e in entries if e.key == "rows"]
    new += ["row: " + ", ".join(value_text(row[c]) for c in columns or ()) for row in missing]
    if not rows and case.rows != []:
        new.append("rows: none")
    return drop, new
