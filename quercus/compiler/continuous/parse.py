"""The text of a continuous query -> its surface syntax, and syntax errors told in its own words.

>>> parse_continuous("ISTREAM(SELECT * FROM S[Now])").stream.kind
'istream'
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from quercus.compiler.continuous.shape import NOT_HERE, Shaper
from quercus.compiler.continuous.syntax import ContinuousText, WindowedType
from quercus.compiler.reading import Language, check_text, read
from quercus.errors import QueryError, nearest
from quercus.ir.span import Span

if TYPE_CHECKING:
    from lark import Token

_SKIPPED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|--[^\n]*")
_ISLAND = re.compile(r"\(\s*(?=pattern\b)", re.IGNORECASE)
_PARTITION = re.compile(r"\[\s*partition\s+by\b[^\]]*\Z", re.IGNORECASE)
_WINDOW = re.compile(r"\[\s*pattern\s+by\b", re.IGNORECASE)
_NAME = re.compile(r"(?:[^\W\d]\w*|'[^'\n]*'|\"[^\"\n]*\")\s*\Z")
_FROM = "ISTREAM(SELECT*FROM "  # shorter than what comes before any pattern window in a pattern


def parse_continuous(text: str) -> ContinuousText:
    """Parse a query, or raise `QueryError` with the place. No other exception escapes, whatever the text."""
    check_text(text, CONTINUOUS)
    islands, rest = {}, text
    for start, end in _islands(text):
        pattern = _blank(text[:start]) + text[start:end] + _blank(text[end:])
        windows = list(_windows(pattern))
        for first, last in windows:
            pattern = pattern[:first] + _blank(text[first:last]) + pattern[last:]
        islands[start] = pattern, tuple(_windowed(text, *window) for window in windows)
        word = start + len("PATTERN")
        rest = rest[:word] + _blank(text[word:end]) + rest[end:]
    try:
        tree = read(rest, CONTINUOUS)
    except QueryError as e:  # shown as it was written
        raise QueryError(e.code, e.message, text=text, span=e.span, hint=e.hint) from None
    return Shaper(text, islands).query(tree)


def _windows(pattern: str) -> Iterator[tuple[int, int]]:
    """Where pattern windows stand in a pattern, with their brackets."""
    plain = _plain(pattern)
    at = 0
    while found := _WINDOW.search(plain, at):
        depth, at = 1, found.end()
        while depth:  # brackets fit
            depth += {"[": 1, "]": -1}.get(plain[at], 0)
            at += 1
        yield found.start(), at


def _windowed(text: str, start: int, end: int) -> WindowedType:
    """A pattern window in the place of an event type, read as if it stood in FROM, where it stands."""
    name = _NAME.search(text, 0, start)
    if name is None:
        hint = "write At[Pattern By (...)] w, with the stream before the window"
        raise QueryError("E403", "a window of no stream", text=text, span=Span(start, start + 1), hint=hint)
    begin = _FROM + _blank(text[len(_FROM) : name.start()]) + text[name.start() : end] + ")"
    try:
        [source] = Shaper(text, {}).query(read(begin, CONTINUOUS)).stream.relation.sources  # type: ignore[union-attr]
    except QueryError as e:
        raise QueryError(e.code, e.message, text=text, span=e.span, hint=e.hint) from None
    return WindowedType(source.stream, source.window)  # type: ignore[arg-type]


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _plain(text: str) -> str:
    """The text without strings and comments."""
    return _SKIPPED.sub(lambda m: " " * len(m[0]), text)


def _islands(text: str) -> Iterator[tuple[int, int]]:
    """Where patterns stand: from the word PATTERN to the parenthesis that closes the one before it."""
    plain = _plain(text)
    at = 0
    while found := _ISLAND.search(plain, at):
        depth, end = 1, found.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(plain[end], 0)
            end += 1
        yield found.end(), end - 1
        at = end


# Errors ---------------------------------------------------------------------------------------------------------------

_NAMES = {
    "IDENT": "a name",
    "INT": "a number",
    "FLOAT": "a number",
    "STRING": "a string",
    "COMPARE": "a comparison",
    "GROUP_BY": "GROUP BY",
    "LPAR": "'('",
    "RPAR": "')'",
    "RSQB": "']'",
    "COMMA": "','",
    "SEMI": "';'",
    "$END": "the end",
}
_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "UNION", "JOIN", "DISTINCT")
_STREAMS = ("ISTREAM", "RSTREAM", "DSTREAM")
_WINDOWS = "[Pattern By (...)], [Range 2 min], [Rows 3], [Now], [Unbounded], [Partition By a Rows 3]"
_WORDS = ["Pattern By", "Range", "Rows", "Now", "Unbounded", "Partition By"]
_OTHERS = {
    "&&": "write AND",
    "||": "write OR",
    "=>": "at least is written >=",
    "=<": "at most is written <=",
    "=!": "unequal is written <> or !=",
    "//": "comments begin with --",
    "/*": "comments begin with --",
}


def _bad_token(text: str, token: Token, expected: set[str]) -> QueryError:
    """A syntax error told in the language's own words."""
    kind, value = token.type, str(token)
    at_end = kind == "$END"
    start = len(text.rstrip()) if at_end else int(token.start_pos or 0)
    span = Span(start, start + 1 if at_end else start + len(value))

    def error(message: str, hint: str | None, code: str = "E001") -> QueryError:
        return QueryError(code, message, text=text, span=span, hint=hint)

    if "ISTREAM" in expected:
        if at_end:
            return error("the query is empty", "write for example: ISTREAM(SELECT * FROM S[Now])", "E004")
        where = "a query begins with" if "WITH" in expected else "here stands"
        hint = nearest(value, _STREAMS) if kind == "IDENT" else None
        return error(f"{where} ISTREAM, RSTREAM or DSTREAM", hint or "write ISTREAM(SELECT ... FROM ...)")
    if expected == {"RSQB"} and text[:start].rstrip().endswith("["):
        return error(f"no window '{value}'", nearest(value, _WORDS) or f"windows: {_WINDOWS}", "E403")
    if "RANGE" in expected:
        return error("a stream in FROM needs a window", f"write one of {_WINDOWS}", "E403")
    if kind in ("LPAR", "DOTNAME") and _PARTITION.search(text[:start]):
        return error("a partition is by attributes", "write their names alone: [Partition By a, b Rows 3]", "E403")
    if _PARTITION.search(text[:start]):
        return error("a partition without Rows", "write [Partition By a, b Rows 3]", "E403")
    found = "the query ends" if at_end else f"'{value}' stands"
    if kind == "LSQB":
        return error("a window where none may stand", "windows follow the streams in FROM", "E403")
    meant = NOT_HERE.get(value.casefold()) if kind == "IDENT" else None
    meant = meant or _meant(text, start)
    if meant is not None:
        return error("the query ends too early" if at_end else f"'{value}' is not expected here", meant)
    if "SELECT" in expected and kind != "SELECT":
        return error(f"{found} where SELECT should be", "write ISTREAM(SELECT ... FROM ...)")
    if {"IDENT", "INT", "LPAR"} <= expected:
        if kind == "SELECT":
            return error("a SELECT inside a SELECT", "name it with WITH, and use the name in FROM")
        quotes = "" if at_end or not value.isidentifier() else f'; a column of that name is written x."{value}"'
        return error(f"{found} where an operand should be", f"something is missing before this{quotes}")
    if kind == "IDENT" and "WHERE" in expected:
        hint = nearest(value, _CLAUSES) or "sources are separated by commas, and named with AS"
        return error(f"'{value}' is not expected here", hint)
    if kind == "IDENT" and "FROM" in expected:
        hint = nearest(value, _CLAUSES) or "columns are separated by commas, and named with AS"
        return error(f"'{value}' is not expected here", hint)
    if kind == "SEMI":
        return error("';' stands outside a pattern window", "a query has no ';' at its end")
    if kind == "PATTERN":
        return error("PATTERN is not expected here", "a pattern stands in FROM, in parentheses")
    wanted = sorted({_NAMES.get(e, e) for e in expected})
    hint = "expected " + " or ".join(wanted) if len(wanted) <= 5 else None
    return error("the query ends too early" if at_end else f"'{value}' is not expected here", hint)


def _meant(text: str, start: int) -> str | None:
    """A hint for signs of other languages, and for a misspelt clause just before the place."""
    for pair in (text[max(0, start - 1) : start + 1], text[start : start + 2]):
        if pair in _OTHERS:
            return _OTHERS[pair]
    before = re.search(r"([^\W\d]\w*)\s*$", text[:start])
    if before is not None and before[1].casefold() in NOT_HERE:
        return NOT_HERE[before[1].casefold()]
    if before is None or len(before[1]) < 3 or before[1].upper() in {*_CLAUSES, "BY", "ALL"}:
        return None
    close = get_close_matches(before[1].upper(), _CLAUSES, n=1, cutoff=0.75)
    return f"did you mean {close[0]} instead of '{before[1]}'?" if close else None


CONTINUOUS = Language(
    Path(__file__).with_name("grammar.lark"),
    _bad_token,
    {
        "$": "write amounts as plain numbers",
        "#": "comments begin with --",
        "^": "powers are not supported",
        "!": "write NOT, or <> between two values",
        "&": "write AND",
        "|": "write OR",
        ".": "attributes are written stream.attribute",
        "`": 'names with spaces are written in quotes, after a dot: x."a name"',
        "?": "there are no parameters",
    },
)
