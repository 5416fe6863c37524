"""The queries that speed is measured on, with what they must find."""

from __future__ import annotations

from attrs import frozen

import quercus as qc

SCHEMA = qc.Schema({"id": "int64", "value": "float64"}, time_unit="ms")


@frozen
class Workload:
    name: str
    what: str
    query: str
    stream: str
    count: int
    target: float | None  # times as fast as the better peer

    def compile(self) -> qc.Plan:
        return qc.compile(self.query, SCHEMA)


_SEQ = "SEQ(T0 a, T1 b, T2 c"
_SAME = "a.id = b.id = c.id"
_RISING = "a.value < b.value < c.value"
_MUSIC = "t147073 a; t56437 b; t189820 c; t531386"

_LISTED = (
    Workload("W1", "SEQ of 3, all combinations", f"PATTERN {_SEQ}) WITHIN 100 ms", "u1m", 621_741, 5),
    Workload("W2", "equal ids", f"PATTERN {_SEQ}, {_SAME}) WITHIN 2000 ms", "u1m", 25_176, 6),
    Workload("W3", "negated leaf", "PATTERN SEQ(T0 a, !T3 x, T1 b, T2 c) WITHIN 100 ms", "u1m", 200_731, 3),
    Workload("W4", "music", f"PATTERN {_MUSIC} d WITHIN 5000 EVENTS", "music1m", 77_578, 2.5),
    Workload("W5", "music, Kleene", f"PATTERN {_MUSIC}+ d WITHIN 5000 EVENTS", "music1m", 27_499, 6),
    Workload("W7", "W2, rising values", f"PATTERN {_SEQ}, {_SAME}, {_RISING}) WITHIN 2000 ms", "u1m", 4_202, 6),
)
WORKLOADS = {w.name: w for w in _LISTED}

# Counting without listing: benchmarks/aggregates.py.
COUNTED = Workload("W6", "count only", f"PATTERN {_SEQ}) AGG COUNT(*) AS n WITHIN 2000 ms", "u1m", 252_017_033, None)
