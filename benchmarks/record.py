"""Results as JSON: what was measured, on which machine, and the ratios that a later run is compared with.

They are kept in benchmarks/results and committed, so that every figure in the documents has its source.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from benchmarks import measure

RESULTS = Path(__file__).parent / "results"
IMAGES = Path(__file__).parents[1] / "docs" / "images"
VERSION = 1


@frozen
class Ratio:
    """Times of one thing over another's, from one run. `asked`: what it should be at least, or at most."""

    value: float
    asked: float | None = None
    less: bool = False  # whether less is better

    @property
    def met(self) -> bool | None:
        if self.asked is None:
            return None
        return self.value <= self.asked if self.less else self.value >= self.asked


def record(name: str, figures: Any, ratios: Mapping[str, Ratio], folder: Path | None = None) -> Path:
    """Write what one benchmark measured."""
    path = (folder or RESULTS) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "quercus_benchmark": VERSION,
        "name": name,
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": measure.machine(),
        "ratios": {of: {"value": r.value, "asked": r.asked, "less": r.less} for of, r in ratios.items()},
        "figures": figures,
    }
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


def options(parser: argparse.ArgumentParser) -> None:
    """What every benchmark takes: a quick run is to see that it works, and says nothing of speed."""
    parser.add_argument(
        "--quick", action="store_true", help="little of everything, once; nothing is kept without --out"
    )
    parser.add_argument("--out", type=Path, help="a folder for results and pictures, instead of where they are kept")


def keep(asked: argparse.Namespace, name: str, figures: Any, ratios: Mapping[str, Ratio]) -> None:
    """Write what was measured, unless it was a quick run."""
    if asked.out or not asked.quick:
        print(f"written: {record(name, figures, ratios, asked.out)}")


def images(asked: argparse.Namespace) -> Path | None:
    """The folder for pictures; None: they are not drawn."""
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
    return asked.out or (None if asked.quick else IMAGES)


def read(name: str, folder: Path | None = None) -> dict[str, Any] | None:
    """What was measured last, or None."""
    path = (folder or RESULTS) / f"{name}.json"
    if not path.exists():
        return None
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if document.get("quercus_benchmark") != VERSION:
        raise ValueError(f"{path} is no result of this version")
    return document


def ratios(document: Mapping[str, Any]) -> dict[str, Ratio]:
    return {name: Ratio(**r) for name, r in document["ratios"].items()}
