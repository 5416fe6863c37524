"""Pattern windows over a stream that is at hand as a whole."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from quercus.backends.base import Limits
from quercus.backends.local.events import Events
from quercus.backends.local.joins import STATE_BYTES
from quercus.backends.local.pool import shared
from quercus.backends.local.specs import Index
from quercus.backends.local.windows.closed import Closed, Counts, Found, of_events, offsets_of
from quercus.backends.local.windows.columns import Columns
from quercus.backends.local.windows.plan import WindowPlan, plan_of
from quercus.backends.local.windows.program import NOTHING, programs_of
from quercus.backends.local.windows.steps import Steps, steps_of
from quercus.backends.local.windows.taken import Taken
from quercus.errors import LimitExceeded
from quercus.ir.window import PatternWindow
from quercus.kernels import ranges, windows

WORTH = 2**16  # steps that make one more thread worth its start


def closed_windows(w: PatternWindow, events: Events, limits: Limits, threads: int = 1) -> Closed:
    """The windows that close, with positions in the stream."""
    return several([w], events, limits, threads)[0]


def several(ws: Sequence[PatternWindow], events: Events, limits: Limits, threads: int = 1) -> list[Closed]:
    """Several pattern windows over one stream: what they read of it, and their keys, are computed once for all."""
    columns = Columns(
        events, [e for w in ws for e in (w.start, w.termination, w.iteration, w.filter)], shared=len(ws) > 1
    )
    until = None if limits.max_seconds is None else time.monotonic() + limits.max_seconds
    return [_run(plan_of(w), columns, limits, threads, until) for w in ws]


def _run(p: WindowPlan, columns: Columns, limits: Limits, threads: int, until: float | None) -> Closed:
    steps = steps_of(p, columns, lean=p.ranged)
    if steps.loose and p.ranged and p.alike:  # these keep what they take in by themselves, and the others with them
        steps = steps_of(p, columns, lean=False)
    keeping = windows.BY_GROUP if p.ranged or p.alike else windows.BY_WINDOW
    if p.ranged and not steps.loose:
        keeping = windows.NOWHERE
    found = _find(p, steps, columns, keeping, limits, threads, until)
    close, first, iter_, num, tuples = found
    counts: Counts = (lambda: iter_, lambda: num, lambda: tuples)
    if keeping == windows.NOWHERE:
        taken = Taken(p, columns, close, first)
        counts = (taken.iter, taken.num, taken.tuples) if p.alike else (*counts[:2], taken.tuples)
    return of_events(close, first, columns.events, counts)


def _find(
    p: WindowPlan, s: Steps, columns: Columns, keeping: int, limits: Limits, threads: int, until: float | None
) -> Found:
    asking = s.spread or not p.alike
    if keeping == windows.NOWHERE and not asking and s.homes is s.codes and not len(columns.ends()):
        return _pairs(s, limits, until)
    programs = programs_of(p, columns.events.schema, own=not s.spread) if asking else NOTHING
    loaded, constants = columns.filled(programs)
    parts = 1
    if p.keys and not p.alike:
        parts = max(1, min(threads, len(s.at) // WORTH if WORTH else threads))
    state = _state_bytes(limits) // parts
    kernels = [
        windows.Windows(programs.program.code, programs.preds, programs.program.const_f, len(loaded), p.alike, keeping)
        for _ in range(parts)
    ]
    for k in kernels:
        k.load(len(columns), loaded, constants)
    left, ends = _left(until), columns.ends()

    def stop() -> None:
        for k in kernels:
            k.cancel()

    def run(number: int) -> tuple[int, Index, Index, Index, Index, Index]:
        found = kernels[number].run(
            *(s.at, s.codes, s.homes, s.flags, ends, 0, 0, s.groups, limits.max_matches, left, state, number, parts)
        )
        if found[0] != windows.OK:
            stop()
        return found

    answers = shared([partial(run, i) for i in range(parts)], parts, stop)
    status = min((a[0] for a in answers if a[0] != windows.STOPPED), default=windows.STOPPED)
    check(windows.STOPPED if status == windows.OK and any(a[0] for a in answers) else status, limits)
    merged: Found = answers[0][1:]
    if parts > 1:
        merged = tuple(np.concatenate([a[i] for a in answers]) for i in range(1, 6))  # type: ignore[assignment]
        if len(merged[0]) > limits.max_matches:
            check(windows.TOO_MANY, limits)
    if parts > 1 or any(k.mixed for k in kernels):
        merged = ordered(merged)
    return merged


def _pairs(s: Steps, limits: Limits, until: float | None) -> Found:
    """Only the first and the last tuple of each window."""
    found = windows.pairs(s.at, s.codes, s.flags, s.groups, limits.max_matches, _left(until), _state_bytes(limits))
    check(found[0], limits)
    nothing = np.empty(0, np.int64)
    return found[1], found[2], nothing, nothing, nothing


def _left(until: float | None) -> int:
    """Nanoseconds; -1: no limit."""
    return -1 if until is None else max(0, int((until - time.monotonic()) * 1e9))


def _state_bytes(limits: Limits) -> int:
    return STATE_BYTES if limits.max_state_bytes is None else limits.max_state_bytes


def ordered(found: Found) -> Found:
    """By closing, then by opening."""
    close, first, iter_, num, tuples = found
    order = np.lexsort((first, close))
    if len(tuples):
        offsets = offsets_of(num)
        tuples = ranges.elements(tuples, offsets[:-1][order], offsets[1:][order])
    return close[order], first[order], iter_[order], num[order], tuples


def check(status: int, limits: Limits) -> None:
    """Raise what a run that could not go on has to say."""
    if status == windows.OK:
        return
    if status == windows.TOO_MANY:
        raise LimitExceeded(
            f"more closed windows than the limit of {limits.max_matches:,}: add conditions, "
            "or raise Limits(max_matches=)",
            limit="max_matches",
            value=limits.max_matches,
        )
    if status == windows.TOO_LONG:
        raise LimitExceeded(
            f"not done after {limits.max_seconds} s: raise Limits(max_seconds=)",
            limit="max_seconds",
            value=limits.max_seconds,
        )
    if status == windows.TOO_MUCH_STATE:
        most = _state_bytes(limits)
        raise LimitExceeded(
            f"open windows and their tuples hold more than {most:,} bytes: let the iteration condition drop windows "
            "that cannot close, or raise Limits(max_state_bytes=)",
            limit="max_state_bytes",
            value=most,
        )
    if status == windows.NO_MEMORY:
        raise LimitExceeded("no memory left for open windows", limit="memory")
    raise KeyboardInterrupt
