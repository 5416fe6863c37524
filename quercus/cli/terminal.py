"""What a terminal shows: tables that fit, numbers people can read, and when there is one at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, TextIO

WIDEST = 60  # of a cell


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def has_color(stream: TextIO) -> bool:
    return is_terminal(stream) and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def bold(text: str, stream: TextIO | None = None) -> str:
    return f"\033[1m{text}\033[0m" if has_color(stream or sys.stdout) else text


def columns_of(stream: TextIO | None = None) -> int:
    """How wide lines may be; without a terminal as wide as they like."""
    return shutil.get_terminal_size((100, 24)).columns if is_terminal(stream or sys.stdout) else 10_000


def counted(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def plain(text: str) -> str:
    """Text without what a terminal would obey: an event must not move the cursor, nor a file's name."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def cell(value: Any) -> str:
    """A value as a reader would write it."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.6g}" if abs(value) < 1e15 else repr(value)
        case Decimal():
            return str(int(value)) if value == value.to_integral_value() else str(value)
        case datetime():
            return moment(value)
        case dict():
            return event(value)
        case list():
            return elements(value)
        case _:
            return plain(str(value))


def moment(value: datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if "." in text else text


def event(value: Mapping[str, Any]) -> str:
    """A bound event: its time, then its attributes; its type is known by the variable."""
    if "ts" not in value:
        return ", ".join(f"{plain(k)}={cell(v)}" for k, v in value.items())
    rest = " ".join(f"{plain(k)}={cell(v)}" for k, v in value.items() if k not in ("ts", "type") and v is not None)
    return f"{cell(value['ts'])} {rest}".rstrip()


def elements(values: Sequence[Any]) -> str:
    """A set of events: how many, and from when to when."""
    if values and isinstance(values[0], dict) and "ts" in values[0]:
        first, last = cell(values[0]["ts"]), cell(values[-1]["ts"])
        return f"{len(values)}: {first}" + (f" .. {last}" if len(values) > 1 else "")
    shown = ", ".join(cell(v) for v in values[:5])
    return f"[{shown}{', ...' if len(values) > 5 else ''}]"


def table(rows: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None, width: int | None = None) -> str:
    """Rows under their names, cut to the width of the terminal; numbers to the right."""
    names = list(names if names is not None else rows[0] if rows else [])
    cells = [[cell(row.get(n)) for n in names] for row in rows]
    right = [all(isinstance(r.get(n), int | float | Decimal | None) for r in rows) for n in names]
    wide = [max([len(n), *(len(c[i]) for c in cells)]) for i, n in enumerate(names)]
    room = (width or columns_of()) - 2 * max(0, len(names) - 1)
    while sum(wide) > room and max(wide) > 8:
        wide[wide.index(max(wide))] -= 1
    head = "  ".join(_fit(plain(n), w, to_right=r) for n, w, r in zip(names, wide, right, strict=True)).rstrip()
    lines = ["  ".join(_fit(c, w, to_right=r) for c, w, r in zip(row, wide, right, strict=True)) for row in cells]
    return "\n".join([bold(head), *(line.rstrip() for line in lines)])


def _fit(text: str, width: int, *, to_right: bool) -> str:
    text = text.replace("\n", " ")
    if len(text) > width:
        text = text[: width - 1] + "…"
    return text.rjust(width) if to_right else text.ljust(width)
