"""What views hold, in plain Python: the results of a stretch, found by trying all events of a stream's twin.

A stretch is told as ``match.StreamMatcher.view`` tells it: (row of the segment's first event, values of the match that
choose the part, whether it is a flag of a result, from, to, records).
"""

from __future__ import annotations

import struct
from typing import Any

from quercus.kernels.reference_code import Event, Value
from quercus.kernels.reference_match import spread
from quercus.kernels.reference_stream import StreamMatcher

Record = tuple[int, ...]  # the positions of its end, its start and its events


def records_of(twin: StreamMatcher, number: int, stretch: Any) -> list[Record]:
    """What the stretch of a view must hold. Of flags: the results that there are, none or some."""
    sub = twin.program.subs[number]
    row, values, _, lo, hi, _ = stretch
    results = sorted(r for r in _results(twin, sub, _segment_of(twin, row), values) if lo <= r[1] and r[0] <= hi)
    return _latest(results) if sub.sparse else results


def _segment_of(twin: StreamMatcher, row: int) -> int:
    return next(k for k, s in twin.segments.items() if row in {e.row for b in s.events for e in b[:1]})


def _results(twin: StreamMatcher, sub: Any, segment: int, values: list[int]) -> set[Record]:
    """All results among the events that are kept, for some values of the match around."""
    program = twin.program
    twin.inside = twin.segments[segment].events
    around: dict[int, Event] = {}
    for (slot, column), v in zip(sub.ties, values, strict=True):
        known = around[slot].values if slot in around else {}
        around[slot] = Event(-1, 0, -1, -1, {**known, column: _value(v, program.columns[column].expr.type)})
    found = set()
    for end, slots in zip(sub.ends, sub.end_slots, strict=True):
        body = program.flats[end]
        for bound in twin.bindings(body, around, {}, lambda e: True, None):
            own = [bound[s] for s in slots]
            fits = spread([e.pos if program.count_window else e.ts for e in own]) <= program.window_size
            if fits and twin.finished(body, bound, {}, None):
                at = [e.pos for e in own]
                found.add((max(at), min(at), *(at if sub.slots else ())))
    return found


def _value(bits: int, kind: str) -> Value:
    return float(struct.unpack("d", struct.pack("q", bits))[0]) if kind == "float64" else bits


def _latest(results: list[Record]) -> list[Record]:
    """Of each end the latest start, where none that ended before starts as late."""
    kept: list[Record] = []
    for end, start in results:
        if kept and kept[-1][0] == end:
            if kept[-1][1] < start:
                kept[-1] = (end, start)
        elif not kept or kept[-1][1] < start:
            kept.append((end, start))
    return kept
