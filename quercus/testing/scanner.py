"""The text of a `.case` file piece by piece: entries, labels, names and values, with errors at the right line."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from attrs import frozen

from quercus.errors import QuercusError

STRING = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
NAME = rf"(?:{STRING}|\w+)"
LABEL = re.compile(rf"(?:(?P<name>{NAME})@(?P<at>\d+)|(?P<letters>[^\W\d_]+)(?P<time>\d+))(?:\#\d+)?", re.ASCII)
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
class Entry:
    """`key: value` with the lines it covers, [line, end), counted from 1."""

    key: str
    value: str
    line: int
    end: int


class Scanner:
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

    def whole(self, text: str) -> int:
        """A number of 64 bits."""
        if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
            raise self.fail(f"{text[:30]} is no number of 64 bits")
        return int(text)

    def value(self) -> Any:
        self.blanks()
        if self.take(r"\["):
            items = []
            while not self.take(r"\s*\]"):
                items.append(self.value())
                self.take(r"\s*,")
            return items
        if string := self.take(STRING):
            return unquote(string[0])
        if number := self.take(_NUMBER):
            return float(number[0]) if re.search(r"[.eE]", number[0]) else self.whole(number[0])
        if word := self.take(_WORD):
            if word[0] in _WORDS:
                return _WORDS[word[0]]
            self.at = word.start()
        raise self.fail(f"expected a value (3, 1.5, 'x', true, null), found {self.rest()}")


def unquote(text: str) -> str:
    if text[:1] in ("'", '"'):
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def names_in(path: Path, entry: Entry) -> list[str]:
    """Names with commas between them."""
    names = [name.strip() for name in entry.value.split(",")]
    if not all(names):
        raise CaseError(path, entry.line, f"'{entry.key}:' is a list of names with commas between them")
    if len(set(names)) < len(names):
        raise CaseError(path, entry.line, f"a name stands twice in '{entry.key}:'")
    return names
