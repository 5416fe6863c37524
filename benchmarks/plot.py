"""Bar charts as SVG, by hand: a group for each row, a bar for each column."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10
from pathlib import Path

COLORS = ("#8c8c8c", "#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756")
OWN = {"iterative": 0, "aggressive": 1, "passive": 2, "balanced": 3, "rewrite": 4, "index": 4, "auto": 5}
HEIGHT, BAR, GAP, LEFT, TOP = 220, 16, 28, 60, 54


def bars(path: Path, title: str, unit: str, across: str, rows: dict[str, dict[str, float]], *, log: bool) -> None:
    """Write a chart of rows (groups, named by `across`) and columns (bars), on a logarithmic scale if asked."""
    columns = list(next(iter(rows.values())))
    values = [v for r in rows.values() for v in r.values() if v > 0]
    low, high = (floor(log10(min(values))), ceil(log10(max(values)))) if log else (0, _round(max(values)))
    high = high if high > low else low + 1
    color = {c: COLORS[OWN.get(c, j) % len(COLORS)] for j, c in enumerate(columns)}

    def y(v: float) -> float:
        part = ((log10(v) if v > 0 else low) - low) / (high - low) if log else v / high
        return TOP + HEIGHT * (1 - part)

    group = len(columns) * BAR + GAP
    legend = sum(30 + 6.6 * len(c) for c in columns)
    width = round(max(LEFT + len(rows) * group + 20, LEFT + legend, 420))
    first = LEFT + 12 + (width - LEFT - 22 - len(rows) * group) / 2
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + 76}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="100%" height="100%" fill="white"/><text x="12" y="20" font-size="14">{escape(title)}</text>',
        f'<text x="12" y="38" fill="#555">{escape(unit)}{", logarithmic" if log else ""}</text>',
    ]
    ticks = [10.0**k for k in range(int(low), int(high) + 1)] if log else [high * k / 4 for k in range(5)]
    for tick in ticks:
        out.append(f'<line x1="{LEFT}" x2="{width - 10}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for i, (name, row) in enumerate(rows.items()):
        x = first + GAP / 2 + i * group
        for j, c in enumerate(columns):
            top = y(row[c])
            out.append(
                f'<rect x="{x + j * BAR:.1f}" y="{top:.1f}" width="{BAR - 2}" height="{TOP + HEIGHT - top:.1f}" '
                f'fill="{color[c]}"><title>{escape(c)}: {row[c]:.3g}</title></rect>'
            )
        middle = x + len(columns) * BAR / 2
        out.append(f'<text x="{middle}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{escape(name)}</text>')
    middle = LEFT + (width - LEFT - 10) / 2
    out.append(f'<text x="{middle}" y="{TOP + HEIGHT + 34}" text-anchor="middle" fill="#555">{escape(across)}</text>')
    x = float(LEFT)
    for c in columns:
        out.append(f'<rect x="{x:.1f}" y="{TOP + HEIGHT + 50}" width="10" height="10" fill="{color[c]}"/>')
        out.append(f'<text x="{x + 14:.1f}" y="{TOP + HEIGHT + 59}">{escape(c)}</text>')
        x += 30 + 6.6 * len(c)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*out, "</svg>"]) + "\n", encoding="utf-8")


def _round(v: float) -> float:
    """The next round number."""
    unit = 10.0 ** floor(log10(v))
    return next(k * unit for k in (1, 2, 4, 6, 8, 10) if k * unit >= v)
