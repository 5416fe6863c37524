"""Random queries with sub-queries, positive and negated, on several levels, and streams in which they overlap."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from tests import reference
from tests.generate import Sample

TYPES = "ABCD"


class Nesting:
    """One query being drawn."""

    def __init__(self, seed: int) -> None:
        self.r, self.seed, self.count = Random(seed), seed, 0

    def sample(self, size: int) -> Sample:
        """The query of a seed, with a stream of so many events."""
        r = self.r
        outer: list[str] = []
        pattern = self.operator(r.choice(("SEQ", "SEQ", "SEQ", "AND")), 1, outer, [])
        where = f" WHERE {self.tie(outer, outer)}" if len(outer) > 1 and r.random() < 0.2 else ""
        window = f"{r.randint(5, 12)}{r.choice(('', '', '', ' EVENTS'))}"
        query = f"PATTERN {pattern}{where} WITHIN {window}"
        options = reference.Options(ties=r.choice(("strict", "strict", "arrival")), time_unit="s", hierarchy={})
        return Sample(self.seed, query, self.events(size), options)

    def events(self, size: int) -> list[dict[str, object]]:
        r, ts, rows = self.r, 0, []
        nulls = r.choice((0.0, 0.0, 0.1))
        for _ in range(size):
            values: dict[str, object] = {"id": r.randint(0, 1), "v": r.randint(0, 4), "f": 0.5, "s": "p", "b": True}
            rows.append(
                {"type": r.choice(TYPES), "ts": ts} | {k: None if r.random() < nulls else v for k, v in values.items()}
            )
            ts += r.choice((0, 1, 1, 1, 2))
        return rows

    def leaf(self, names: list[str]) -> str:
        self.count += 1
        names.append(f"x{self.count}")
        return f"{self.r.choice(TYPES)} x{self.count}"

    def operator(self, kind: str, depth: int, own: list[str], around: list[str]) -> str:
        """An operator with some leaves and, above the last level, sub-queries; `own` gets its positive variables."""
        r = self.r
        parts = [self.leaf(own) for _ in range(r.choice((1, 2, 2)) if depth > 1 else r.choice((1, 2, 2, 3)))]
        inner: list[str] = []
        subs = 1 if depth == 1 else r.random() < 0.35
        if depth == 1 and r.random() < 0.25:
            subs = 2
        for _ in range(subs if depth < 4 else 0):
            negated = r.random() < 0.4
            names: list[str] = []
            seen = around + own + inner
            text = self.operator(r.choice(("SEQ", "SEQ", "AND", "OR")), depth + 1, names, seen)
            parts.insert(r.randint(0, len(parts)), ("!" if negated else "") + text)
            inner += [] if negated or "OR(" in text else names
        own += inner
        if kind == "OR":
            parts = [k for k in parts if not k.startswith("!")]
            return f"OR({', '.join(parts)})"
        if depth > 1:
            if len(own) == 1 and len(parts) == 1:
                parts.append(self.leaf(own))
            if r.random() < 0.4:
                parts.append(self.tie(own, own))
            if around and r.random() < 0.5:
                parts.append(self.tie(own, around))
        window = f" WITHIN {r.randint(2, 5)}" if depth > 1 and r.random() < 0.25 else ""
        return f"{kind}({', '.join(parts)}){window}"

    def tie(self, left: list[str], right: list[str]) -> str:
        x, y = self.r.choice(left), self.r.choice(right)
        if x == y:
            return f"{x}.v > 0"
        return self.r.choice((f"{x}.id = {y}.id", f"{x}.id = {y}.id", f"{x}.v <= {y}.v", f"{x}.v <> {y}.v"))


def trades(size: int, seed: int = 1) -> pa.Table:
    """A stream of five types, one event at a time, with few different values."""
    r = Random(seed)
    return pa.table(
        {
            "ts": pa.array(range(size), pa.int64()),
            "type": [r.choice("ABCDE") for _ in range(size)],
            "id": pa.array([r.randint(0, 3) for _ in range(size)], pa.int64()),
            "v": pa.array([r.randint(0, 9) for _ in range(size)], pa.int64()),
            "f": [r.choice((0.0, -0.0, 1.5)) for _ in range(size)],
            "s": [r.choice(("p", "q", "é", "")) for _ in range(size)],
        }
    )
