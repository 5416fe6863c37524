"""Hospital hygiene: a surgical tool went back into use without being sharpened, disinfected and checked.

Run it with `make demo`, with `quercus demo`, or with `python examples/hospital.py`. The story is told in
`quercus/cli/hospital.py`, so that it is there wherever the package is installed.
"""

from __future__ import annotations

from pathlib import Path

from quercus.cli.hospital import QUERY, SCHEMA, stream, tell

__all__ = ["QUERY", "SCHEMA", "stream"]

if __name__ == "__main__":
    tell(str(Path(__file__).resolve().parent.parent / "build" / "plan.svg"))
