"""From text to a tree, for the languages that are read here: brackets, depth, the grammar's own files, and signs that
mean nothing.

Each language has a grammar of its own, put before `terminals.lark`, which they share, and says a syntax error in its
own words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from attrs import frozen

from quercus.errors import QueryError
from quercus.ir.span import Span

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

MAX_TEXT = 65_536
MAX_DEPTH = 32
MAX_TREE_DEPTH = 5 * MAX_DEPTH
TERMINALS = Path(__file__).with_name("terminals.lark")
_SURROGATE = re.compile("[\ud800-\udfff]")


@frozen
class Language:
    """A grammar, how a token is told that does not fit, and what to say of characters that mean nothing."""

    grammar: Path
    bad_token: Callable[[str, Token, set[str]], QueryError]
    hints: Mapping[str, str | None]


def read(text: str, language: Language) -> Tree[Token]:
    """The parse tree of a text, or `QueryError` with the place. No other exception escapes, whatever the text."""
    check_text(text, language)
    tree = _parse(text, language)
    _check_depth(tree, text)
    return tree


def check_text(text: str, language: Language) -> None:
    """Whether it is text, not too long, and its brackets fit."""
    if not isinstance(text, str):
        raise QueryError("E001", f"a query is text, not {type(text).__name__}")
    if len(text) > MAX_TEXT:
        message = f"the query has {len(text):,} characters; the limit is {MAX_TEXT:,}"
        raise QueryError("E005", message, text=text, span=Span(MAX_TEXT, len(text)), hint="the text may go on to here")
    half = _SURROGATE.search(text)
    if half is not None:
        shown = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)  # an error that cannot be printed is none
        hint = "the text was read in a wrong encoding"
        raise QueryError(
            "E008", f"half of a character, U+{ord(half[0]):04X}", text=shown, span=Span(*half.span()), hint=hint
        )
    _check_brackets(text, language)


@lru_cache(maxsize=4)
def _parser(grammar: Path) -> Lark:
    from lark import Lark  # only the first compile pays for it

    whole = grammar.read_text(encoding="utf-8") + TERMINALS.read_text(encoding="utf-8")
    return Lark(whole, parser="lalr", lexer="basic", propagate_positions=True, maybe_placeholders=False)


def _parse(text: str, language: Language) -> Tree[Token]:
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    try:
        return _parser(language.grammar).parse(text)
    except UnexpectedCharacters as e:
        raise _bad_character(text, cast("int", e.pos_in_stream), language) from None
    except UnexpectedToken as e:
        raise language.bad_token(text, e.token, e.accepts or e.expected) from None


def _check_brackets(text: str, language: Language) -> None:
    """Brackets match and nest within the limit: said here, where the bracket at fault is known."""
    closes = {"(": ")", "[": "]"}
    open_: list[int] = []
    i, n = 0, len(text)
    while i < n:
        c = text[i]
        if c in "'\"":
            end, newline = text.find(c, i + 1), text.find("\n", i + 1)
            if end < 0 or 0 <= newline < end:
                raise _bad_character(text, i, language)
            i = end
        elif c == "-" and text.startswith("--", i):
            end = text.find("\n", i)
            i = n if end < 0 else end
        elif c in closes:
            open_.append(i)
            if len(open_) > MAX_DEPTH:
                raise QueryError(
                    "E006",
                    f"brackets nest deeper than {MAX_DEPTH} levels",
                    text=text,
                    span=Span(i, i + 1),
                    hint="split the query, or drop brackets that change nothing",
                )
        elif c in ")]":
            if not open_:
                raise QueryError(
                    "E002", f"'{c}' closes nothing", text=text, span=Span(i, i + 1), hint="remove it, or open it before"
                )
            begin = open_.pop()
            if closes[text[begin]] != c:
                raise QueryError(
                    "E002",
                    f"'{text[begin]}' is closed by '{c}'",
                    text=text,
                    span=Span(begin, begin + 1),
                    hint=f"this wants a '{closes[text[begin]]}'",
                )
        i += 1
    if open_:
        begin = open_[-1]
        raise QueryError(
            "E002",
            f"'{text[begin]}' is not closed",
            text=text,
            span=Span(begin, begin + 1),
            hint=f"add the missing '{closes[text[begin]]}'",
        )


def _check_depth(tree: Tree[Token], text: str) -> None:
    """Bound every later recursion: `!!!!a` and `1+1+1+...` nest without brackets."""
    level: list[Tree[Token]] = [tree]
    for _ in range(MAX_TREE_DEPTH):
        level = [c for t in level for c in t.children if not isinstance(c, str)]
        if not level:
            return
    raise QueryError(
        "E006",
        f"the expression nests deeper than {MAX_TREE_DEPTH} levels",
        text=text,
        span=Span(level[0].meta.start_pos, level[0].meta.start_pos + 1) if not level[0].meta.empty else None,
        hint="split it into several conjuncts or components",
    )


def _bad_character(text: str, at: int, language: Language) -> QueryError:
    c = text[at]
    if c in "'\"":
        return QueryError(
            "E003",
            "the string is not closed on its line",
            text=text,
            span=Span(at, at + 1),
            hint=f"add the missing {c}",
        )
    return QueryError(
        "E008", f"the character {c!r} means nothing here", text=text, span=Span(at, at + 1), hint=language.hints.get(c)
    )
