"""When a match of a stream is decided: no later event can violate it or enlarge a set of it (docs/semantics.md, 3).

A stream keeps no partial matches. Each match is looked for at the moment of its release, from the event that fixes that
moment: its last event where nothing can change it afterwards, the first event of a window where it waits for the end
of that window. So a search starts from few events, its pivots, and finds whole matches among those that are still kept.

What a match waits for is a set of *holds*: negations that reach to the end of the match or of the window, and sets that
can grow. A hold on a set ends with any window around the set, so there can be several windows to start from. Then each
match is asked whether its moment has come in this push, and which start is the first to find it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from attrs import frozen

from quercus.ir import tree as t
from quercus.ir.flat import Flat, FlatNegation

Mode = Literal["last", "delayed", "first"]
Ending = Literal["last", "delayed", "exact", "any"]


@frozen
class Variant:
    """One way to look for an alternative's matches: from the pivot, which is the last or the first of its rivals.

    `last`: from events that are new. `delayed`: from those, and once more when the clock is past them. `first`: from
    events that begin a window, when it is over. A pivot can be a set: it stands for its last or its first element.
    """

    mode: Mode
    pivot: str
    rivals: tuple[str, ...] = ()
    chain: bool = True
    asks: bool = False  # each match, whether its moment has come
    sets: tuple[str, ...] = ()  # that can grow while a match waits
    window: int = -1  # of the alternative's windows: the one that `first` waits for
    exact: tuple[str, ...] = ()  # one of these begins a match that fills the window to the last moment
    ending: Ending | None = None  # the search from the last event that comes before this one
    earlier: tuple[int, ...] = ()  # the windows whose searches come before this one
    order: tuple[str, ...] = ()  # in which the other components are bound; none: as in a stack
    reaches_back: bool = False  # what its sets could have been depends on events before the match's start


def variants(f: Flat, *, count: bool, strict: bool) -> tuple[Variant, ...]:
    """How to look for the matches of an alternative; `count` says the query's window counts events."""
    holds = _holds(f)
    ends = not count and any(_right(g, f) == "end" for g in f.negations)
    lasts = [b.var for b in _fixed(f) if not any((b.var, o.var) in f.before for o in _fixed(f))]
    if not holds:
        mode: Mode = "delayed" if ends else "last"
        return tuple(Variant(mode, v, _others(v, lasts), asks=ends) for v in lasts)
    sets = tuple(_growing(f))
    query = len(f.windows) - 1
    waits = _waits(f) and (not strict or count or not any(f.windows[i][1].kind == "count" for h in holds for i in h))
    found: list[Variant] = []
    ending: Ending | None = None
    if not waits or (strict and not count):
        ending = "exact" if waits else "delayed" if ends else "last"
        exact = tuple(_firsts(f, query)) if waits else ()
        mode = "delayed" if ending == "delayed" else "last"
        can_end = [v for v in lasts if not any((v, s.var) in f.before and s.least for s in _sets(f))]
        alone = exact == tuple(can_end) == tuple(lasts[:1])
        if not alone or any(_binds_several(f, v) for v in can_end):  # one event fills no window
            found += [Variant(mode, v, _others(v, lasts), not waits, True, sets, exact=exact) for v in can_end]
        if ending == "delayed" and any(f.windows[i][1].kind == "count" for h in holds for i in h):
            ending = "any"  # a window of events can be over while the clock is still at the end of the match
            found += [Variant(mode, s, tuple(lasts), False, True, sets) for s in sets]
    ending = ending if found else None
    windows = [query] if waits else sorted({i for h in holds for i in h})
    begins = not {s.var for s in _sets(f)}.isdisjoint(_firsts(f, query))
    for n, w in enumerate(windows):
        firsts = _firsts(f, w)
        asks = not waits or ending is not None or begins
        for v in firsts:
            found.append(
                Variant(
                    *("first", v, _others(v, firsts), False, asks, sets, w),
                    ending=ending,
                    earlier=tuple(windows[:n]),
                    reaches_back=begins or not waits,
                )
            )
    return tuple(found)


def looks_back(f: Flat) -> bool:
    """Whether a match is asked about events from before its start, up to a window before its end."""
    return any(g.scope.left == "window" or any(looks_back(b) for b in g.bodies) for g in f.negations)


def _sets(f: Flat) -> list[t.Buffer]:
    return [b for b in f.buffers if b.kleene and b.most is None]


def _fixed(f: Flat) -> list[t.Buffer]:
    return [b for b in f.buffers if not b.kleene or b.most is not None]


def _binds_several(f: Flat, var: str) -> bool:
    """Whether it is a set of two events or more, `B[n]`."""
    return any(b.var == var and b.kleene and b.most is not None and b.most > 1 for b in f.buffers)


def _growing(f: Flat) -> list[str]:
    """Sets with nothing after them that is always there."""
    there = [b.var for b in f.buffers if b not in _sets(f) or b.least]
    return [s.var for s in _sets(f) if not any((s.var, v) in f.before for v in there)]


def _holds(f: Flat) -> list[set[int]]:
    """What matches may wait for, but for their own end: for each hold, the windows that end it."""
    found = [{len(f.windows) - 1} for g in f.negations if _right(g, f) == "window"]
    return found + [{i for i, (covered, _) in enumerate(f.windows) if s in covered} for s in _growing(f)]


def _waits(f: Flat) -> bool:
    """Whether a hold lasts as long as the query's window, unless strict order leaves no time before its end."""
    if any(
        _right(g, f) == "window" and not any(v in f.variables for k in g.scope.before for v in k) for g in f.negations
    ):
        return True
    alone = [s for s in _growing(f) if not any((s, o.var) in f.before for o in _sets(f))]
    return any(sum(s in covered for covered, _ in f.windows) == 1 for s in alone)


def _firsts(f: Flat, window: int) -> list[str]:
    """The components of a window of which any can have its first event; sets before them may be empty."""
    covered, _ = f.windows[window]
    there = [b.var for b in f.buffers if b.var in covered and (b not in _sets(f) or b.least)]
    return [b.var for b in f.buffers if b.var in covered and not any((v, b.var) in f.before for v in there)]


def _others(v: str, rivals: list[str]) -> tuple[str, ...]:
    return tuple(o for o in rivals if o != v)


def _right(g: FlatNegation, f: Flat) -> str | None:
    """What bounds a negation's scope on the right, where no neighbour does that is always there."""
    there = {b.var for b in f.buffers if b not in _sets(f) or b.least}
    return None if any(v in there for group in g.scope.before for v in group) else g.scope.right


def all_variants(flats: tuple[Flat, ...], *, count: bool, strict: bool) -> Iterator[tuple[Flat, Variant]]:
    for f in flats:
        for v in variants(f, count=count, strict=strict):
            yield f, v
