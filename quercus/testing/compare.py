"""How an answer differs from what a case expects, told in the labels of the case."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from quercus.testing.casefile import Case
from quercus.testing.expectations import Match, match_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Comparing ------------------------------------------------------------------------------------------------------------


def compare(case: Case, actual: Iterable[Mapping[str, Any]]) -> str | None:
    """None when `actual` is the set of matches that the case expects; else what is missing, unexpected or given twice.

    An answer is a set: the order of matches and of Kleene sets is free, but a match must not come twice.
    """
    if case.matches is None:
        raise ValueError(f"case {case.name!r} has no expected matches")
    expected = {match_key(m): m for m in case.matches}
    got = [plain(m) for m in actual]
    counts = Counter(match_key(m) for m in got)
    lines = [f"  missing     {match_text(case, m)}" for k, m in expected.items() if k not in counts]
    for key, match in {match_key(m): m for m in got}.items():
        if key not in expected:
            lines.append(f"  unexpected  {match_text(case, match)}")
        if counts[key] > 1:
            lines.append(f"  {counts[key]} times     {match_text(case, match)}")
    return _report(case, lines)


def compare_rows(case: Case, actual: Iterable[Mapping[str, Any]]) -> str | None:
    """None when `actual` has the rows that the case expects, in any order, equal rows counted; else the difference."""
    if case.rows is None:
        raise ValueError(f"case {case.name!r} has no expected rows")
    got = [dict(r) for r in actual]
    texts = {row_key(r): row_text(r) for r in [*case.rows, *got]}
    expected, counts = Counter(row_key(r) for r in case.rows), Counter(row_key(r) for r in got)
    lines = [f"  missing     {texts[key]}" for key in (expected - counts).elements()]
    lines += [f"  unexpected  {texts[key]}" for key in (counts - expected).elements()]
    return _report(case, lines)


def _report(case: Case, lines: list[str]) -> str | None:
    return "\n".join([f"{case.path}:{case.line}: {case.name}", *lines]) if lines else None


def plain(match: Mapping[str, Any]) -> Match:
    return {v: sorted(map(int, b)) if isinstance(b, (list, tuple, set)) else int(b) for v, b in match.items()}


def row_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted((name, _value_key(value)) for name, value in row.items()))


def _value_key(value: Any) -> tuple[str, str]:
    """Equal values have equal keys; 3 and 3.0 do not, and floats are compared to 12 digits."""
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)
    if isinstance(value, float):
        return "float", f"{value + 0.0:.12g}"
    if isinstance(value, (list, tuple)):
        return "list", repr([_value_key(v) for v in value])
    return type(value).__name__, repr(value)


def match_text(case: Case, match: Match) -> str:
    def label(row: int) -> str:
        return case.labels[row] if 0 <= row < len(case.labels) else f"<row {row}>"

    def bound(value: int | list[int]) -> str:
        return label(value) if isinstance(value, int) else "{" + " ".join(map(label, value)) + "}"

    return " ".join(f"{name_text(var)}={bound(value)}" for var, value in match.items())


def name_text(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else string_text(name)


def string_text(text: str) -> str:
    quote = '"' if "'" in text and '"' not in text else "'"
    return quote + text.replace(quote, quote * 2) + quote


def row_text(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value_text(value)}" for name, value in row.items())


def value_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, str):
        return string_text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value) if isinstance(value, float) else str(value)
