"""Query text -> surface syntax (`compiler/syntax.py`).

>>> from quercus.compiler.parse import parse_query
>>> parse_query("PATTERN A a; B+ WITHIN 5 EVENTS").pattern.kind
'SEQ'
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from quercus.compiler.reading import Language, read
from quercus.compiler.shape import shape_query
from quercus.compiler.syntax import QueryText
from quercus.errors import QueryError, nearest
from quercus.ir.span import Span

if TYPE_CHECKING:
    from lark import Token

_KEYWORDS = {"PATTERN", "WHERE", "BY", "AGG", "WITHIN", "RETURN", "AS", "GROUPBY", "SEQ", "AND", "OR", "NOT"}
_CLAUSES = ("PATTERN", "WHERE", "PARTITION BY", "GROUPBY", "AGG", "WITHIN", "RETURN")


def parse_query(text: str) -> QueryText:
    """Parse a query, or raise `QueryError` with the place. No other exception escapes, whatever the text."""
    return shape_query(read(text, PATTERNS), text)


_NAMES = {
    "IDENT": "a name",
    "INT": "a number",
    "FLOAT": "a number",
    "STRING": "a string",
    "COMPARE": "a comparison",
    "DOTNAME": "'.attribute'",
    "PARTITION_BY": "PARTITION BY",
    "GROUP_BY": "GROUPBY",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "COMMA": "','",
    "SEMI": "';'",
    "BAR": "'|'",
    "AMP": "'&'",
    "BANG": "'!'",
    "$END": "the end",
}
_OPERAND = {"IDENT", "SEQ", "LPAR"}


_RESERVED = re.compile(r"[\s(,;&|!]\w+(?:[+*]|\[\d+\])?\s+(between|in|is|null|true|false)\s*$", re.IGNORECASE)
_OTHERS = {
    "&&": "AND is written & or and",
    "||": "OR is written | or or",
    "->": "a sequence is written A ; B or SEQ(A, B)",
    "=>": "at least is written >=",
    "=<": "at most is written <=",
    "=!": "unequal is written <> or !=",
    "//": "comments begin with --",
    "/*": "comments begin with --",
}


def _meant(text: str, start: int) -> str | None:
    """A hint for signs of other languages, and for a misspelt clause just before the place."""
    for pair in (text[max(0, start - 1) : start + 1], text[start : start + 2]):
        if pair in _OTHERS:
            return _OTHERS[pair]
    before = re.search(r"([^\W\d]\w*)\s*$", text[:start])
    if before is None or len(before[1]) < 3 or before[1].upper() in _KEYWORDS:
        return None
    close = get_close_matches(before[1].upper(), [c for c in _CLAUSES if c != "PATTERN"], n=1, cutoff=0.75)
    return f"did you mean {close[0]} instead of '{before[1]}'?" if close else None


def _bad_token(text: str, token: Token, expected: set[str]) -> QueryError:
    """A syntax error told in the language's own words."""
    kind, value = token.type, str(token)
    at_end = kind == "$END"
    start = len(text.rstrip()) if at_end else int(token.start_pos or 0)
    span = Span(start, start + 1 if at_end else start + len(value))

    def error(message: str, hint: str | None, code: str = "E001") -> QueryError:
        return QueryError(code, message, text=text, span=span, hint=hint)

    if "PATTERN" in expected:
        if at_end:
            return error("the query is empty", "write for example: PATTERN SEQ(A a, B b) WITHIN 10 min", "E004")
        return error("a query begins with PATTERN", nearest(value, ["PATTERN"]) or "put PATTERN before the pattern")
    reserved = _RESERVED.search(text[:start])
    if reserved is not None and not re.search(r"\bwhere\b", text[:start], re.IGNORECASE):
        span = Span(*reserved.span(1))
        return error(f"'{reserved[1]}' is a keyword and cannot be a name", "choose another name for the variable")
    meant = _meant(text, start)
    if meant is not None:
        return error(f"'{value}' is not expected here" if not at_end else "the query ends too early", meant)
    found = "the query ends" if at_end else f"'{value}' stands"
    operand = expected >= _OPERAND
    if operand:
        if kind in {"SEMI", "COMMA", "RPAR", "BAR", "AMP"} or at_end:
            return error(f"{found} where an operand should be", "something is missing before this")
        if kind in {"PLUS", "STAR", "COMPARE", "SLASH", "PERCENT"}:
            return error(f"{found} where an operand should be", "Kleene signs follow the type: A+ a, A* a, A[3] a")
        if kind == "PATTERN":
            return error("PATTERN stands twice", "nest patterns with SEQ(...), AND(...), OR(...)", "E007")
        return error(
            f"{found} where an operand should be",
            f'something is missing before this; as a name it needs quotes, "{value}"',
        )
    if kind in {"PLUS", "STAR", "LSQB"} and text[:start].rstrip().endswith(")"):
        return error("Kleene stands on an event type only", "write A+ a, A* a or A[3] a", "E304")
    if kind == "COMMA":
        return error("a comma outside any operator", "write SEQ(A, B) or A ; B")
    if expected == {"LPAR"}:
        return error(f"{found} where '(' should be", "operators are written SEQ(...), AND(...), OR(...)")
    if kind == "SEMI" and not text[start + 1 :].strip():
        return error("';' is not expected here", "it joins components: a query ends without it")
    if kind == "IDENT" and value.lower() in ("like", "similar", "regexp", "matches"):
        return error(f"'{value}' is not expected here", "there are no patterns of text: compare with =, <, in (...)")
    if kind == "IDENT" and "WHERE" in expected:
        return error(
            f"'{value}' is not expected here",
            nearest(value, _CLAUSES)
            or "components are joined by ; & | or stand in SEQ(...), outputs are named with AS",
        )
    if kind == "COMPARE" and "COMPARE" not in expected:
        return error(
            f"'{value}' is not expected here", "conditions stand inside SEQ(...), AND(...), OR(...) or after WHERE"
        )
    wanted = sorted({_NAMES.get(e, e) for e in expected})
    hint = "expected " + " or ".join(wanted) if len(wanted) <= 5 else None
    return error("the query ends too early" if at_end else f"'{value}' is not expected here", hint)


PATTERNS = Language(
    Path(__file__).with_name("grammar.lark"),
    _bad_token,
    {
        "$": "write amounts as plain numbers",
        "{": "counts are written B[3]",
        "^": "powers are not supported",
        "#": "comments begin with --",
        "→": "sequence is written A ; B or SEQ(A, B)",
        "?": "an optional element is not in the language; B* may be empty",
        ".": "attributes are written variable.attribute, and numbers begin with a digit: 0.5",
    },
)
