"""Everything Quercus raises on purpose. Nothing else should reach a caller.

A `QueryError` shows the line it is about, with a caret, and says what to do:

    error[E104]: no attribute 'pice' in event type 'Trade'
      2 | WHERE b.pice > a.price
                  ^^^^  did you mean 'price'?

Codes are stable: tools may match on them. `CODES` lists them all.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quercus.ir.span import Span

CODES = {
    # the text
    "E001": "the text does not follow the grammar",
    "E002": "a bracket is not closed, or closes nothing",
    "E003": "a string is not closed",
    "E004": "the query is empty",
    "E005": "the text is larger than the limit",
    "E006": "the nesting is deeper than the limit",
    "E007": "a clause stands twice",
    "E008": "a character that means nothing here",
    "E009": "a number out of range",
    # names
    "E101": "unknown event type",
    "E102": "unknown variable",
    "E103": "a variable is bound twice",
    "E104": "unknown attribute",
    "E105": "a variable that cannot be seen here",
    "E106": "unknown function",
    "E107": "an output name stands twice",
    "E108": "a name that several columns have",
    "E109": "unknown stream",
    # types
    "E201": "operand types do not fit",
    "E202": "a condition is not true or false",
    "E203": "wrong arguments of a function",
    # the shape of the pattern
    "E301": "a negation where none may stand",
    "E302": "an operator with no positive component",
    "E303": "a pattern that could bind no event at all",
    "E304": "Kleene is not allowed here",
    "E305": "a count of zero",
    "E306": "too many components beside a Kleene component in an AND",
    "E307": "a condition where an event pattern should stand, or the reverse",
    "E308": "[n] bounds whose product is beyond the limit",
    "E309": "too many components",
    # windows
    "E401": "no window",
    "E402": "a window of no length",
    "E403": "a stream without a window, or a window that does not exist",
    # predicates
    "E501": "two Kleene variables in one conjunct",
    "E502": "a group function of something that is no Kleene variable",
    "E503": "a conjunct over two negations that are not nested",
    "E504": "[attr] inside a larger condition",
    # output
    "E601": "RETURN beside AGG, or GROUPBY without AGG",
    "E602": "grouping by a Kleene variable",
    "E603": "an output over a negated variable",
    # plans
    "E701": "a plan document that cannot be read",
    "E702": "an option of compile() that does not exist",
    "E703": "a feature that the backend does not have",
    # cubes
    "E801": "an operation that a query does not allow",
    "E802": "a position at which something else stands",
    "E803": "a concept that is not above or below another",
    "E804": "a query of a cube that does not exist, or exists already",
    # continuous queries
    "E901": "a sequence function where it may not stand",
    "E902": "a column that is neither grouped nor aggregated",
    "E903": "an aggregate where none may stand",
    "E904": "streams whose times are counted differently",
    "E905": "the parts of a UNION do not fit",
    "E906": "a pattern that cannot be a stream",
}


class QuercusError(Exception):
    """The base of all errors of Quercus."""


class QueryError(QuercusError):
    """A problem in a query, with its place and what to do about it.

    >>> import quercus as qc
    >>> schema = qc.Schema({"price": "float64"}, time="ts", type="type")
    >>> try:
    ...     qc.compile("PATTERN SEQ(A a, B b, a.pice > 3) WITHIN 1 min", schema)
    ... except qc.QueryError as e:
    ...     print(e.code, e.line, e.column, e.hint)
    E104 1 25 did you mean 'price'?
    """

    code: str
    line: int | None
    column: int | None
    hint: str | None

    def __init__(
        self, code: str, message: str, *, text: str = "", span: Span | None = None, hint: str | None = None
    ) -> None:
        assert code in CODES, code
        self.code, self.message, self.hint, self.span = code, message, hint, span
        self.line = self.column = None
        super().__init__(self._render(text))

    def _render(self, text: str) -> str:
        out = [f"error[{self.code}]: {self.message}"]
        if self.span is not None:
            self.line, self.column = place(text, self.span)
            out.extend(caret(text, self.span, self.hint))
        elif self.hint:
            out.append(f"  hint: {self.hint}")
        return "\n".join(out)


def place(text: str, span: Span) -> tuple[int, int]:
    """Line and column at which a span begins, counted from 1."""
    start = min(span.start, len(text))
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def caret(text: str, span: Span, hint: str | None) -> list[str]:
    """The line that a span begins in, and a caret under it with the hint."""
    line, column = place(text, span)
    start = min(span.start, len(text))
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    return _caret(text[start - column + 1 : end], line, column - 1, span, end - start, hint)


def _caret(line: str, number: int, offset: int, span: Span, room: int, hint: str | None) -> list[str]:
    """The source line with a caret under the span; a long line is cut to what surrounds the place."""
    width = max(1, min(span.end - span.start, room, 60))
    cut = max(0, offset - 60)
    shown = line[cut : offset + width + 60].replace("\t", " ")
    lead = "..." if cut else ""
    tail = "..." if len(line) > offset + width + 60 else ""
    prefix = f"  {number} | "
    gap = " " * (len(prefix) + len(lead) + offset - cut)
    return [prefix + lead + shown + tail, gap + "^" * width + (f"  {hint}" if hint else "")]


class DataError(QuercusError):
    """Bad data or a bad schema: names the column and, where there is one, the row."""

    def __init__(self, message: str, *, column: str | None = None, row: int | None = None) -> None:
        self.column, self.row = column, row
        super().__init__(message)


class OutOfOrder(DataError):
    """An event that comes too late in a stream."""


class LimitExceeded(QuercusError):
    """A limit was reached: names what grew and what to do about it."""

    def __init__(self, message: str, *, limit: str, value: int | float | None = None) -> None:
        self.limit, self.value = limit, value
        super().__init__(message)


class NotInstalled(QuercusError):
    """Something outside the package is missing that a backend needs: says what, and the ways to get it."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A hint that names what the user may have meant, or None."""
    known = list(known)
    by_fold = {k.casefold(): k for k in known}
    close = [by_fold[m] for m in get_close_matches(name.casefold(), list(by_fold), n=3, cutoff=0.6)]
    if not close:
        return None
    return "did you mean " + " or ".join(repr(c) for c in close) + "?"
