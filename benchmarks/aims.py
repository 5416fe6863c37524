"""Which aims are met: `python -m benchmarks.aims [folder]`. Every ratio of the last results that has one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.record import RESULTS, Ratio, ratios, read


def aims(folder: Path) -> Iterator[tuple[str, Ratio]]:
    """The ratios of all results in a folder of which something is asked."""
    for path in sorted(folder.glob("*.json")):
        document = read(path.stem, folder)
        for name, ratio in ratios(document or {"ratios": {}}).items():
            if ratio.asked is not None:
                yield f"{path.stem}: {name}", ratio


def told(found: list[tuple[str, Ratio]]) -> str:
    """The missed ones line by line, and how many are met."""
    missed = [(name, r) for name, r in found if not r.met]
    lines = [
        f"MISSED  {name}: {r.value:,.4g}, asked: at {'most' if r.less else 'least'} {r.asked:,g}" for name, r in missed
    ]
    return "\n".join([*lines, f"{len(found) - len(missed)} of {len(found)} aims met, {len(missed)} missed"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=RESULTS)
    print(told(list(aims(parser.parse_args().folder))))


if __name__ == "__main__":
    main()
