"""Did anything get slower? `python -m benchmarks.compare SAVED [NEW]`, or `make bench-compare SAVED=folder`.

Both are folders of results (benchmarks/results by default for NEW). Only ratios are compared, since times of two runs
on two days say little: each is over a peer or a floor of its own run. One that is worse by more than `--slack` ends it
with status 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from attrs import frozen

from benchmarks.record import RESULTS, Ratio, ratios, read

SLACK = 0.2


@frozen
class Change:
    name: str
    before: Ratio
    after: Ratio

    @property
    def factor(self) -> float:
        """How much better it became; below 1 is worse."""
        better, worse = (self.before, self.after) if self.after.less else (self.after, self.before)
        return better.value / worse.value if worse.value else float("inf")


def changes(saved: Path, new: Path) -> list[Change]:
    """Of all ratios that both have."""
    found = []
    for path in sorted(saved.glob("*.json")):
        before, after = read(path.stem, saved), read(path.stem, new)
        if before is None or after is None:
            continue
        was, now = ratios(before), ratios(after)
        found += [Change(f"{path.stem}: {name}", was[name], now[name]) for name in was if name in now]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("saved", type=Path)
    parser.add_argument("new", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--slack", type=float, default=SLACK, help="how much worse is still noise (default 0.2)")
    asked = parser.parse_args()
    found = changes(asked.saved, asked.new)
    if not found:
        sys.exit(f"no results in common in {asked.saved} and {asked.new}")
    width = max(len(c.name) for c in found)
    worse = []
    for c in sorted(found, key=lambda c: c.factor):
        bad = c.factor < 1 / (1 + asked.slack)
        worse += [c] if bad else []
        print(
            f"{c.name:{width}} {c.before.value:10.2f} {c.after.value:10.2f}  {c.factor:5.2f}x {'WORSE' if bad else ''}"
        )
    print(f"{len(found)} ratios, {len(worse)} worse by more than {asked.slack:.0%}")
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
