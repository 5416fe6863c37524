"""Matches over time as a picture: `result.timeline()`. A row a match, a mark an event, a band a set of events."""

from __future__ import annotations

import datetime
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quercus.errors import DataError
from quercus.ir import text
from quercus.ir.pattern import TimeUnit, Window
from quercus.show import found as shows
from quercus.show.assets import read, script
from quercus.show.measure import cut, width_of
from quercus.show.values import markup

if TYPE_CHECKING:
    from quercus.result import Matches

MOST_ROWS = 60
WIDTH, GUTTER, ROW, TOP, EDGE = 900.0, 130.0, 22.0, 62.0, 16.0
SIZE = 11.0
COLOURS = ("#3f71a3", "#b5781f", "#3f8140", "#85519f", "#bd3f39", "#2f7f7b", "#8a6236", "#6b6e7a")
SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
ROUND = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)
STYLE = "".join(
    f".qc-timeline {rule}"  # a style is that of the whole page, and there may be other pictures in it
    for rule in (
        "text{font:11px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',Arial,sans-serif;fill:#23241f}",
        ".soft{fill:#66685f}",
        ".tick{text-anchor:middle;fill:#66685f}",
        ".grid{stroke:#e0ded6}",
        ".span{stroke:#8d8b80;stroke-width:1.6}",
    )
)


class Timeline:
    """The first matches of a result over time. Shows itself in notebooks; `save` writes .svg, or .html to zoom in.

    >>> import quercus as qc
    >>> plan = qc.compile("PATTERN SEQ(A a, B+ b) WITHIN 3", qc.Schema({}))
    >>> picture = plan.run({"ts": [1, 2, 3], "type": ["A", "B", "B"]}).timeline()
    >>> picture
    <Timeline: 1 of 1 match>
    >>> picture.svg()[:4]
    '<svg'
    """

    def __init__(self, found: Matches, *, by: str | None = None, aligned: bool = False) -> None:
        """`by`: the attribute that rows are grouped and named by; default: the key of the query, if it has one.

        `aligned`: the picture has each match from its own first event on.
        """
        self.aligned = aligned
        self.data = shows.shown(found.answer)
        self.by = self.data["key"] if by is None else by
        if self.by is not None and self.by not in self.data["attributes"]:
            if by is not None:
                raise DataError(f"no attribute '{by}' to group matches by", column=by)
            self.by = None
        self.data["key"] = self.by

    def __repr__(self) -> str:
        shown, total = len(self._order()), self.data["total"]
        return f"<Timeline: {shown:,} of {total:,} {'match' if total == 1 else 'matches'}>"

    def svg(self) -> str:
        """The picture, of at most 60 matches."""
        return _Drawing(self.data, self._order(), self.by, self.aligned).svg

    def save(self, path: str | Path) -> Path:
        """Write the picture into an .svg file, or a page to zoom, filter and look at matches into an .html file."""
        path = Path(path)
        kind = path.suffix.casefold()
        if kind not in (".svg", ".html"):
            raise DataError(f"cannot draw '{path.name}': the name must end in .svg or .html")
        try:
            path.write_text(self.svg() if kind == ".svg" else self.html(), encoding="utf-8")
        except OSError as e:
            raise DataError(f"cannot write '{path}': {e.strerror}") from None
        return path

    def html(self) -> str:
        """A page of one file, of at most 2,000 matches, with their values."""
        from quercus.show.page import document

        style = "".join(read("show", f"{name}.css") for name in ("base", "timeline", "alone"))
        names = ("dom", "clock", "filter", "dragged", "timeline", "alone")
        code = script(*(("show", f"{name}.js") for name in names))
        body = '<main class="alone"><h1>{{title}}</h1><div id="timeline"></div></main>\n'
        return document("Matches over time", style, code, body, self.data)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg()}</div>'

    def _order(self) -> list[int]:
        """The matches that are drawn, those of one group together, in the order of the first of each."""
        places: dict[object, list[int]] = {}
        for i in range(len(self.data["matches"])):
            places.setdefault(self._group(i), []).append(i)
        return [i for members in places.values() for i in members][:MOST_ROWS]

    def _group(self, i: int) -> object:
        return group_of(self.data, i, self.by)


def group_of(data: dict[str, Any], i: int, by: str | None) -> object:
    """What the first event of a match has for that attribute."""
    if by is None:
        return None
    first = next(iter(_events(data["matches"][i])), None)
    return None if first is None else data["events"]["values"][data["attributes"].index(by)][first]


def _events(match: list[Any]) -> list[int]:
    return [e for bound in match for e in (bound if isinstance(bound, list) else [bound]) if e is not None]


class _Drawing:
    def __init__(self, data: dict[str, Any], order: list[int], by: str | None, aligned: bool) -> None:
        self.data, self.order, self.by, self.aligned = data, order, by, aligned
        times = [t for i in order for t in self.times(i).values()]
        self.low: int = min(times, default=0)
        self.high: int = max(times, default=1)
        if self.low == self.high:
            self.low, self.high = self.low - 1, self.high + 1
        self.height = TOP + ROW * max(len(order), 1) + 10
        self.parts: list[str] = []
        self.axis()
        self.legend()
        for row, i in enumerate(order):
            self.match(i, TOP + ROW * row + ROW / 2, named=self.label(i, order[row - 1] if row else None))
        if not order:
            self.parts.append(f'<text class="soft" x="8" y="{TOP + 15}">no matches</text>')

    @property
    def svg(self) -> str:
        total, shown = self.data["total"], len(self.order)
        note = f"The first {shown:,} of {total:,} matches" if total > shown else f"{total:,} matches"
        more = f'<text class="soft" x="{WIDTH - 8}" y="18" text-anchor="end">{note}</text>' if total > shown else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="qc-timeline" role="img" aria-label="{note} over time" '
            f'viewBox="0 0 {WIDTH:.0f} {self.height:.0f}" width="{WIDTH:.0f}" height="{self.height:.0f}">'
            f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(self.parts)}{more}</svg>'
        )

    def times(self, i: int) -> dict[int, int]:
        """When the events of a match were: in the stream, or since its first one."""
        at: list[int] = self.data["events"]["at"]
        events = _events(self.data["matches"][i])
        since = min((at[e] for e in events), default=0) if self.aligned else 0
        return {e: at[e] - since for e in events}

    def x(self, at: float) -> float:
        return GUTTER + EDGE + (at - self.low) / (self.high - self.low) * (WIDTH - GUTTER - 2 * EDGE)

    def axis(self) -> None:
        clock = self.data["clock"]
        base, second = int(clock["base"]), SECOND[clock["unit"]] if clock["stamps"] or self.aligned else None
        base = 0 if self.aligned else base
        step = round_step((self.high - self.low) / 7, second)
        at = -(-(base + self.low) // step) * step - base
        while at <= self.high:
            x = self.x(at)
            label = lasted(at, clock["unit"]) if self.aligned else tick(base + at, step, second)
            self.parts.append(
                f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{self.height - 6:.0f}"/>'
            )
            x = min(x, WIDTH - 4 - width_of(label, SIZE) / 2)
            self.parts.append(f'<text class="tick" x="{x:.1f}" y="{TOP - 10}">{markup(label)}</text>')
            at += step

    def legend(self) -> None:
        x = 8.0
        for v, one in enumerate(self.data["variables"]):
            name, kind = one["name"], one["type"] + one["sign"]
            said = cut(kind if one["name"] == one["type"] else f"{kind} {name}", 180, SIZE)
            if x + 30 + width_of(said, SIZE) > WIDTH - 180:
                self.parts.append(f'<text class="soft" x="{x:.1f}" y="18">...</text>')
                break
            self.parts.append(mark(v, x + 6, 14) + f'<text x="{x + 16:.1f}" y="18">{markup(said)}</text>')
            x += 34 + width_of(said, SIZE) * 1.08

    def label(self, i: int, before: int | None) -> str:
        if self.by is None:
            return f"#{i + 1}"
        group = group_of(self.data, i, self.by)
        if before is not None and group_of(self.data, before, self.by) == group:
            return ""
        return f"{self.by} {'null' if group is None else group}"

    def match(self, i: int, y: float, named: str) -> None:
        match = self.data["matches"][i]
        place = {e: self.x(t) for e, t in self.times(i).items()}
        row = [f"<g><title>{markup(self.told(i))}</title>"]
        row.append(f'<text x="8" y="{y + 4:.1f}">{markup(cut(named, GUTTER - 16, SIZE))}</text>')
        if place:
            row.append(
                f'<line class="span" x1="{min(place.values()):.1f}" x2="{max(place.values()):.1f}" '
                f'y1="{y:.1f}" y2="{y:.1f}"/>'
            )
        for v, bound in enumerate(match):
            some = bound if isinstance(bound, list) else [] if bound is None else [bound]
            if isinstance(bound, list) and len(some) > 1:
                left, right = place[some[0]], place[some[-1]]
                row.append(
                    f'<rect x="{left - 6:.1f}" y="{y - 7:.1f}" width="{right - left + 12:.1f}" height="14" rx="7" '
                    f'fill="{COLOURS[v % len(COLOURS)]}" opacity=".25"/>'
                )
            row += [mark(v, place[e], y) for e in some]
        self.parts.append("".join([*row, "</g>"]))

    def told(self, i: int) -> str:
        rows = self.data["events"]["row"]
        pairs = zip(self.data["variables"], self.data["matches"][i], strict=True)
        bound = {v["name"]: [rows[e] for e in b] if isinstance(b, list) else rows[b] for v, b in pairs if b is not None}
        return f"match #{i + 1}: " + ", ".join(f"{name} row {where}" for name, where in bound.items())


def mark(v: int, x: float, y: float) -> str:
    """The sign of a variable: a shape and a colour."""
    shapes = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"',
        f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" rx="1.5"',
        f'<path d="M{x:.1f} {y - 6:.1f}l6 11h-12z"',
        f'<path d="M{x:.1f} {y - 6.5:.1f}l6.5 6.5l-6.5 6.5l-6.5 -6.5z"',
    )
    return f'{shapes[(v + v // len(COLOURS)) % 4]} fill="{COLOURS[v % len(COLOURS)]}" stroke="#fff"/>'


def round_step(least: float, second: int | None) -> int:
    """The next round distance of ticks; of dates in seconds, minutes and hours."""
    if second is not None and least > second / 2:
        for n in ROUND:
            if n * second >= least:
                return n * second
    power = 10 ** floor(log10(max(least, 1)))
    return max(1, int(next(m * power for m in (1, 2, 5, 10) if m * power >= least)))


def lasted(time: int, unit: TimeUnit) -> str:
    """A stretch of time on the axis: `90 s`, `2 min`."""
    return text.window(Window("time", time, unit)) if time else "0"


def tick(at: int, step: int, second: int | None) -> str:
    """A time on the axis, as short as the distance of ticks allows."""
    if second is None:
        return f"{at:,}"
    try:
        moment = datetime.datetime.fromtimestamp(at // second, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return f"{at:,}"
    if step >= 86400 * second or (step >= 60 * second and moment.hour == moment.minute == 0):
        return moment.strftime("%Y-%m-%d")
    if step >= 60 * second:
        return moment.strftime("%H:%M")
    if step >= second:
        return moment.strftime("%H:%M:%S")
    part = f"{at % second:0{len(str(second)) - 1}}".rstrip("0")
    return moment.strftime("%S") + (f".{part}" if part else "")
