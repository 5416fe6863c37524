"""Draws the pictures of README.md, docs/ and these examples again: `python examples/pictures.py [folder]`.

Needs something to draw with: Graphviz, or the extra `viz`. The pictures are small and committed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa
from attrs import evolve

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT))  # for examples.hospital

import quercus as qc  # noqa: E402
from examples import cart, deploy, evacuation, fraud, logins, music, rooms, trades  # noqa: E402
from examples.hospital import QUERY, SCHEMA, stream  # noqa: E402
from quercus.backends.local.analyze import run_and_analyze  # noqa: E402
from quercus.compiler.render import svg_of  # noqa: E402
from quercus.show.tree import picture  # noqa: E402

STOCKS = qc.Schema({"price": "float64", "volume": "int64"}, time="ts", type="type", time_unit="s")
WIDTH, MARGIN, LINE = 928.0, 14.0, 17.0  # pixels
SHOWN = 12  # matches
STYLE = "text.query{font:13px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#23241f}"


def plans() -> dict[str, qc.Plan]:
    """The plans that are drawn by themselves, by the name of their file."""
    return {
        "hospital": qc.compile(QUERY, SCHEMA),
        "kleene": qc.compile(
            "PATTERN Google g; Microsoft+ m; Dell d WHERE m.price > g.price and count(m) >= 2 WITHIN 5 min",
            STOCKS,
            shape="left",
        ),
        "branches": qc.compile(
            "PATTERN SEQ(Google g, OR(AND(Dell d, Intel i), Oracle o), Microsoft m, g.price < m.price) WITHIN 5 min",
            STOCKS,
            shape="right",
        ),
    }


# ---- the examples: what was asked, how it was answered, what was found


def matched(query: str, schema: qc.Schema, events: Any, *, by: str | None = None, aligned: bool = False) -> str:
    """The query, its plan with what each node did, and the matches over time."""
    plan, analysis = run_and_analyze(qc.compile(query, schema), events)
    nodes = {path: evolve(actual, seconds=None) for path, actual in analysis.nodes.items()}  # the same at every run
    tree = picture(plan, evolve(analysis, nodes=nodes))
    return together(query, tree, plan.run(events).head(SHOWN).timeline(by=by, aligned=aligned).svg())


def at_the_clock(schema: qc.Schema, events: list[dict[str, Any]]) -> dict[str, Any]:
    """Seconds since midnight as times of a day, so that the axis has them."""
    table = pa.Table.from_pylist(events)
    times = table["ts"].cast(pa.timestamp("s"))
    attributes = {"ts": "timestamp[s]", **(schema.common or {})}
    return {"schema": qc.Schema(attributes), "events": table.set_column(0, "ts", times)}


def shared(cube: qc.Cube, events: Any, name: str, by: str | None = None) -> str:
    """The cube with what it found, and the matches of one query over time."""
    found = cube.run(events)[name].head(SHOWN)
    return together("", svg_of(cube.graph()), found.timeline(by=by, aligned=True).svg())


def ways_home() -> str:
    return together(rooms.QUERY, svg_of(qc.continuous(rooms.QUERY, {"At": rooms.AT}).graph()))


EXAMPLES: dict[str, Callable[[], str]] = {
    "hospital": lambda: matched(QUERY, **at_the_clock(SCHEMA, stream())),
    "trades": lambda: shared(qc.cube(trades.QUERIES, trades.SCHEMA), trades.stream(), "through"),
    "evacuation": lambda: shared(evacuation.journeys(), evacuation.stream(), "by Austin", "person"),
    "music": lambda: matched(music.QUERY, music.SCHEMA, music.stream(), aligned=True),
    "rooms": ways_home,
    "fraud": lambda: matched(fraud.QUERY, fraud.SCHEMA, fraud.stream(), aligned=True),
    "logins": lambda: matched(logins.QUERY, logins.SCHEMA, logins.stream(), aligned=True),
    "cart": lambda: matched(cart.QUERY, **at_the_clock(cart.SCHEMA, cart.stream()), by="session"),
    "deploy": lambda: matched(deploy.QUERY, deploy.SCHEMA, deploy.stream(), aligned=True),
}


def together(query: str, *parts: str) -> str:
    """A query and pictures below each other, as one picture."""
    out, y, width = [], MARGIN, WIDTH
    for line in query.strip().splitlines():
        y += LINE
        out.append(f'<text x="{MARGIN}" y="{y:.0f}" class="query" xml:space="preserve">{escape(line)}</text>')
    sizes = [sized(part) for part in parts]
    width = max(WIDTH, *(w + 2 * MARGIN for w, _ in sizes))
    for part, (w, h) in zip(parts, sizes, strict=True):
        y += MARGIN if y > MARGIN else 0
        out.append(re.sub("<svg ", f'<svg x="{(width - w) / 2:.0f}" y="{y:.0f}" ', part[part.index("<svg") :], count=1))
        y += h
    height = y + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}"><rect width="100%" height="100%" fill="#fff"/>{"".join(out)}'
        f"<style>{STYLE}</style></svg>\n"
    )


def sized(svg: str) -> tuple[float, float]:
    """Width and height in pixels; Graphviz gives points."""
    found = re.search(r'<svg\b[^>]*?\bwidth="([\d.]+)(pt)?"[^>]*?\bheight="([\d.]+)(pt)?"', svg)
    assert found is not None, svg[:300]
    scale = 4 / 3 if found[2] else 1.0
    return float(found[1]) * scale, float(found[3]) * scale


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, plan in plans().items():
        print(plan.render(folder / f"{name}.svg"))
    for name, draw in EXAMPLES.items():
        path = folder / f"example-{name}.svg"
        path.write_text(draw(), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
