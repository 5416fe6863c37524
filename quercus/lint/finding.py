"""A finding: what, where, how bad, and what to do about it."""

from __future__ import annotations

from typing import Any, Literal

from attrs import field, frozen

from quercus.errors import caret, place
from quercus.ir.span import Span

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

CODES = {
    "L001": "what the compiler warns of",
    "L101": "a type that never occurs",
    "L201": "an attribute that is always null",
    "L301": "a condition that never holds",
    "L302": "a condition that always holds",
    "L401": "a window without effect",
    "L402": "two events that never stand together in the window",
    "L501": "a negation that nothing can violate",
    "L601": "more matches than the limit",
    "L602": "very large sets",
    "L701": "no match at all",
}


@frozen
class Finding:
    """One finding. `str()` shows the line with a caret, as errors do.

    `severity`: error, if nothing can match because of it; warning, if something is asked in vain; note otherwise.
    """

    code: str
    severity: Severity
    message: str
    hint: str | None = None
    text: str = field(default="", repr=False)
    span: Span | None = field(default=None, repr=False)

    @property
    def line(self) -> int | None:
        return None if self.span is None else place(self.text, self.span)[0]

    @property
    def column(self) -> int | None:
        return None if self.span is None else place(self.text, self.span)[1]

    def order(self) -> tuple[int, int, str]:
        """Where it stands in a list: the bad ones first, then by the text."""
        return SEVERITIES.index(self.severity), -1 if self.span is None else self.span.start, self.code

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for machines."""
        names = ("code", "severity", "message", "hint", "line", "column")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        out = [f"{self.severity}[{self.code}]: {self.message}"]
        if self.span is not None:
            out += caret(self.text, self.span, self.hint)
        elif self.hint:
            out.append(f"  hint: {self.hint}")
        return "\n".join(out)
