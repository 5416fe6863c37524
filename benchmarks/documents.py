"""Tables of the documents, written from the results: `python -m benchmarks.documents [--check]`.

A table stands between `<!-- figures: name -->` and `<!-- end of figures -->`. What a name stands for is a function in
`benchmarks/tables`, from the results of one benchmark to Markdown; where there are none yet, what stands there stays.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from benchmarks.tables import TABLES

ROOT = Path(__file__).parents[1]
PLACE = re.compile(r"(<!-- figures: ([\w-]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def written(text: str) -> str:
    """A document with all its tables made from the results as they are now."""

    def table(place: re.Match[str]) -> str:
        made = TABLES[place[2]]()
        return place[0] if made is None else f"{place[1]}{made.strip()}\n{place[3]}"

    return PLACE.sub(table, text)


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def write(*, check: bool = False) -> list[str]:
    """Write all tables again; the names of the documents that are not as they were. `check`: only look."""
    changed = []
    for path in documents():
        text = path.read_text(encoding="utf-8")
        new = written(text)
        if new != text:
            changed.append(path.name)
            if not check:
                path.write_text(new, encoding="utf-8")
    return changed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a table is not as it would be")
    asked = parser.parse_args()
    stale = write(check=asked.check)
    print(", ".join(stale) or "nothing to change")
    sys.exit(1 if asked.check and stale else 0)


if __name__ == "__main__":
    main()
