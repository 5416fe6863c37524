"""A line on stderr that says how far a run has come; silent without a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from quercus.cli.terminal import columns_of, is_terminal

FIRST = 0.3  # seconds before anything is shown
EVERY = 0.1
BAR = 20


class Bar:
    """Told how far a run over files has come: events, matches, the part that is read."""

    def __init__(self, *, quiet: bool) -> None:
        self.shows = not quiet and is_terminal(sys.stderr)
        self.began = time.monotonic()
        self._next = self.began + FIRST
        self._drawn = False

    def __call__(self, rows: int, matches: int, part: float) -> None:
        now = time.monotonic()
        if self.shows and now >= self._next:
            self._next = now + EVERY
            self._draw(line(rows, matches, part, now - self.began))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._drawn:
            self._draw("")

    def _draw(self, text: str) -> None:
        try:
            sys.stderr.write(f"\r\033[K{text[: columns_of(sys.stderr) - 1]}")
            sys.stderr.flush()
        except OSError:
            self.shows = False
        self._drawn = bool(text)


def line(rows: int, matches: int, part: float, seconds: float) -> str:
    """
    >>> line(2_500_000, 1234, 0.5, 2.0)
    '[##########----------]  50%  2.5M events  1.2k matches  1.2M/s  2 s left'
    """
    full = round(BAR * min(1.0, part))
    left = f"  {_seconds(seconds * (1 - part) / part)} left" if 0 < part < 1 else ""
    rate = short(rows / max(seconds, 1e-9))
    bar = "#" * full + "-" * (BAR - full)
    return f"[{bar}] {part:>4.0%}  {short(rows)} events  {short(matches)} matches  {rate}/s{left}"


def short(n: float) -> str:
    """
    >>> short(950), short(1234), short(2_500_000)
    ('950', '1.2k', '2.5M')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size:
            return f"{n / size:.1f}{letter}"
    return f"{n:.0f}"


def _seconds(s: float) -> str:
    return f"{s:.0f} s" if s < 100 else f"{s / 60:.0f} min" if s < 6000 else f"{s / 3600:.1f} h"
