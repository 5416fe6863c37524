"""Draws where negations look, for docs/language.md: `python examples/scopes.py [file.svg]`.

Each row is a pattern over the same stream: the events of a match, and the scope in which no C may stand.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

from attrs import frozen

FILE = Path(__file__).resolve().parent.parent / "docs" / "images" / "scopes.svg"
LEFT, TOP, ROW, STEP, WIDTH = 300, 58, 62, 40, 860
WINDOW = 6


@frozen
class Row:
    """A pattern, the events of a match by time, and from where to where the negation looks."""

    pattern: str
    match: dict[int, str]
    since: int
    until: int
    closed: tuple[bool, bool]  # whether the ends belong to it


ROWS = (
    Row("SEQ(A, !C, B)", {5: "A", 9: "B"}, 5, 9, (False, False)),
    Row("SEQ(A, B, !C)", {5: "A", 8: "B"}, 8, 5 + WINDOW, (False, True)),
    Row("SEQ(!C, A, B)", {5: "A", 8: "B"}, 8 - WINDOW, 5, (True, False)),
    Row("AND(A, B, !C)", {5: "B", 8: "A"}, 8 - WINDOW, 8, (True, True)),
    Row("SEQ(A, SEQ(B, !C), D)", {3: "A", 5: "B", 9: "D"}, 5, 9, (False, False)),
    Row("SEQ(A, !SEQ(C, !E), B)", {4: "A", 9: "B"}, 4, 9, (False, False)),
)


def picture() -> str:
    height = TOP + ROW * len(ROWS) + 6
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
        'font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="14" y="26" font-size="15">Where !C looks, WITHIN {WINDOW}</text>',
        '<text x="14" y="44" fill="#666" font-size="11">filled end: belongs to the scope; hollow end: does not</text>',
    ]
    for number, row in enumerate(ROWS):
        y = TOP + ROW * number + 34
        out.append(f'<text x="14" y="{y + 4}" font-family="monospace">{escape(row.pattern)}</text>')
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y}" y2="{y}" stroke="#bbb"/>')
        for time in range(14):
            out.append(f'<line x1="{x(time)}" x2="{x(time)}" y1="{y - 3}" y2="{y + 3}" stroke="#bbb"/>')
        a, b = x(row.since), x(row.until)
        out.append(f'<rect x="{a}" y="{y - 9}" width="{b - a}" height="18" fill="#f3c9b8" fill-opacity=".7"/>')
        for at, closed in ((a, row.closed[0]), (b, row.closed[1])):
            fill = "#c2410c" if closed else "white"
            out.append(f'<circle cx="{at}" cy="{y}" r="4" fill="{fill}" stroke="#c2410c" stroke-width="1.5"/>')
        for time, name in row.match.items():
            at = y - 17 if time in (row.since, row.until) else y
            out.append(f'<circle cx="{x(time)}" cy="{at}" r="9" fill="#3f6212"/>')
            style = 'fill="white" font-size="11" text-anchor="middle"'
            out.append(f'<text x="{x(time)}" y="{at + 4}" {style}>{name}</text>')
        first, last = min(row.match), max(row.match)
        reach = max(last, row.until) if row.closed[1] and row.until > last else last
        begin = min(first, row.since)
        out.append(f'<path d="M{x(begin)} {y + 14}v5H{x(reach)}v-5" fill="none" stroke="#777"/>')
    return "\n".join([*out, "</svg>"]) + "\n"


def x(time: int) -> int:
    return LEFT + 10 + STEP * time


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    path.write_text(picture(), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
