"""Values as a page can take them: JSON that no number is lost in, and that no page is too small for."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape
from typing import Any

import pyarrow as pa

from quercus.backends.local.records import values

MOST_TEXT = 300  # characters of one value
MOST_ITEMS = 50  # of one list
EXACT = 2**53  # up to here a script's numbers are exact

_INVALID = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPECIAL = re.compile(r"[<>&\u2028\u2029\ud800-\udfff]")

Plain = Any  # None, bool, int, float, str, or lists and dicts of these


def plain(value: object) -> Plain:
    """A value as JSON has it. What a script could not hold exactly is text."""
    match value:
        case None | bool():
            return value
        case int():
            return value if -EXACT <= value <= EXACT else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return short(value)
        case Decimal():
            whole = value == value.to_integral_value() and abs(value) <= EXACT
            return int(value) if whole else str(value)
        case datetime.datetime():
            return moment(value)
        case dict():
            return {short(str(k)): plain(v) for k, v in value.items()}
        case list() | tuple():
            more = [f"... {len(value) - MOST_ITEMS:,} more"] if len(value) > MOST_ITEMS else []
            return [plain(v) for v in value[:MOST_ITEMS]] + more
    return short(str(value))


def short(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}… ({len(text) - MOST_TEXT:,} more)"


def moment(at: datetime.datetime) -> str:
    """A time without what is zero in it."""
    if at.tzinfo is not None:
        at = at.astimezone(datetime.UTC).replace(tzinfo=None)
    shown = at.isoformat(" ")
    return shown.removesuffix("000") if "." in shown else shown


def columns(table: pa.Table) -> list[list[Plain]]:
    """The columns of a table, value by value."""
    return [[plain(v) for v in values(c)] for c in table.columns]


def rows(table: pa.Table, most: int | None = None) -> dict[str, Any]:
    """A table for a page: the names of its columns, and its first rows."""
    head = table if most is None else table.slice(0, most)
    listed: Iterable[Sequence[Plain]] = zip(*columns(head), strict=True) if head.num_columns else ()
    return {"columns": [short(n) for n in table.column_names], "rows": [list(r) for r in listed], "total": len(table)}


def markup(text: str) -> str:
    """Text that can stand in HTML, in XML and in an attribute; what XML cannot hold is shown as a replacement."""
    return escape(_INVALID.sub("\ufffd", text))


def embedded(data: object) -> str:
    """JSON that can stand in a <script>: no text in it can end the element, or begin a comment."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return _SPECIAL.sub(lambda m: f"\\u{ord(m[0]):04x}", text)
