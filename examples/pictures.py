"""Draws the pictures of README.md and docs/ again: `python examples/pictures.py [folder]`.

Needs something to draw with: Graphviz, or the extra `viz`. The pictures are small and committed.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for examples.hospital

import quercus as qc  # noqa: E402
from examples.hospital import QUERY, SCHEMA  # noqa: E402

STOCKS = qc.Schema({"price": "float64", "volume": "int64"}, time="ts", type="type", time_unit="s")


def plans() -> dict[str, qc.Plan]:
    """The plans that are drawn, by the name of their file."""
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


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    for name, plan in plans().items():
        print(plan.render(folder / f"{name}.svg"))


if __name__ == "__main__":
    main()
