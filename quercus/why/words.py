"""A Why as text: what a person reads."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quercus.ir import pattern as p
    from quercus.schema import Schema
    from quercus.why.data import Asked, Event, Failure, Funnel, Miss, Obstacle, Why

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
SHOWN = 4  # events of a set
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def moment(ts: int, schema: Schema) -> str:
    """A time as the data has it."""
    if not schema.time_is_timestamp:
        return str(ts)
    per = _PER_SECOND[schema.time_unit]
    seconds, rest = divmod(ts, per)
    fraction = f".{rest:0{len(str(per)) - 1}d}".rstrip("0") if rest else ""
    return str(np.datetime64(seconds, "s")).replace("T", " ") + fraction  # of any year


def duration(size: int, unit: p.TimeUnit | None) -> str:
    """`10 min 4 s`: every unit that is needed, and as such no text of a query."""
    if unit is None:
        return str(size)
    per = _PER_SECOND[unit]
    seconds, rest = divmod(abs(size), per)
    said = []
    for name, length in _UNITS:
        count, seconds = divmod(seconds, length)
        if count:
            said.append(f"{count} {name}")
    if rest:
        said += [f"{n} {name}" for name, n in zip(("ms", "us", "ns"), _thousands(rest, per), strict=True) if n]
    return " ".join(said) or f"0 {unit}"


def _thousands(part: int, per: int) -> tuple[int, int, int]:
    """A part of a second in milliseconds, microseconds and nanoseconds."""
    ns = part * (10**9 // per)
    return ns // 10**6, ns // 10**3 % 10**3, ns % 10**3


def shown(value: object) -> str:
    """A value in a comparison."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "'" + value + "'" if isinstance(value, str) else str(value)


def listed(events: Iterable[Event]) -> str:
    """Events one after the other; of a set no more than a few."""
    said = []
    for _, same in groupby(events, key=lambda e: e.var):
        own = list(same)
        if len(own) == 1:
            said.append(str(own[0]))
        else:
            rows = ", ".join(str(e.row) for e in own[:SHOWN]) + (", ..." if len(own) > SHOWN else "")
            said.append(f"{own[0].var} rows {rows} ({len(own)} events) at {own[0].time} to {own[-1].time}")
    return "; ".join(said)


def told(why: Why) -> str:
    return "\n".join(_lines(why)).rstrip()


def _lines(why: Why) -> Iterator[str]:
    yield matches_told(why)
    if why.impossible is not None:
        yield ""
        yield f"no event can ever match: {why.impossible}"
    if why.asked is not None:
        yield ""
        yield from _asked(why.asked)
    for funnel in why.funnels:
        yield ""
        yield from _funnel(funnel)
    if why.obstacles:
        yield ""
        yield "what stopped them, each alone"
        for obstacle in why.obstacles:
            yield from _obstacle(obstacle)
    if why.misses:
        yield ""
        yield "nearest misses"
        for number, miss in enumerate(why.misses, 1):
            yield from _miss(number, miss)
    if why.notes:
        yield ""
        yield from (f"note: {note}" for note in why.notes)


def matches_told(why: Why) -> str:
    """How many matches there are, and events."""
    if why.matches.n is None:
        found = "matches not counted"
    else:
        found = f"{why.matches} match{'' if why.matches.n == 1 and why.matches.exact else 'es'}"
    return f"{found} in {why.events:,} event{'' if why.events == 1 else 's'}"


def _funnel(funnel: Funnel) -> Iterator[str]:
    yield "events" if funnel.reading is None else f"events, where the match binds {funnel.reading}"
    names = [("!" if c.negated else "") + c.var for c in funnel.components]
    types = [c.type for c in funnel.components]
    wide, far = max(map(len, names), default=0), max(map(len, types), default=0)
    for name, c in zip(names, funnel.components, strict=True):
        hint = f"  {c.hint}" if c.hint else ""
        yield f"  {name:{wide}}  {c.type:{far}}  {c.events:>9,}{hint}"
        for passed in c.conditions:
            unknown = f", unknown of {passed.unknown:,}" if passed.unknown else ""
            yield f"  {'':{wide}}  {'':{far}}  {passed.passed:>9,}  {passed.condition}{unknown}"
    if funnel.stages:
        yield "partial matches"
        heads = [", ".join(s.variables) for s in funnel.stages]
        wide = max(map(len, heads))
        counts = [str(s.count) for s in funnel.stages]
        far = max(map(len, counts))
        before = None
        for head, count, stage in zip(heads, counts, funnel.stages, strict=True):
            yield f"  {head if head != before else '':{wide}}  {count:>{far}}  {stage.what}"
            before = head
    if funnel.stopped is not None:
        yield f"  nothing is left at {funnel.stopped}"


def _obstacle(obstacle: Obstacle) -> Iterator[str]:
    yield f"  {obstacle.what}: {obstacle.stopped}"
    for example in obstacle.examples:
        yield f"      {example}"


def _miss(number: int, miss: Miss) -> Iterator[str]:
    yield f"  {number}. {listed(miss.events)}"
    yield from _failures(miss.failures)


def _failures(failures: tuple[Failure, ...]) -> Iterator[str]:
    for f in failures:
        yield f"     {f.what}: {f.found}" if f.found else f"     {f.what}"
        if f.change:
            yield f"       -> {f.change}"


def _asked(asked: Asked) -> Iterator[str]:
    yield "asked for " + listed(asked.events)
    if asked.is_match:
        yield "  this is a match"
    elif not asked.failures:
        yield "  these fail nothing by themselves" if asked.missing else "  this is no match"
    else:
        yield f"  no match: {len(asked.failures)} requirement{'' if len(asked.failures) == 1 else 's'} not met"
    yield from _failures(asked.failures)
    yield from (f"     not tested: {u}" for u in asked.untested)
