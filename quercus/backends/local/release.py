"""When a match of a stream is decided: no later event can violate it or enlarge a set of it (docs/semantics.md, 3).

A stream keeps no partial matches. Each match is looked for once, at the moment of its release, from the event that
fixes that moment: its last event where nothing can change it afterwards, its first where it waits for the end of the
window. So a search starts from few events, its pivots, and finds whole matches among those that are still kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from attrs import frozen

from quercus.backends.local.flat import Flat, FlatNegation
from quercus.ir import tree as t

Mode = Literal["last", "delayed", "first", "filter"]


@frozen
class Variant:
    """One way to look for an alternative's matches: from the pivot, which is the last or the first of its rivals.

    `last`: from events that are new. `delayed`: from those and from events whose time is not over, each match being
    asked whether its moment has come. `first`: from events whose window is over. `filter`: from all, each being asked.
    """

    mode: Mode
    pivot: str | None = None
    rivals: tuple[str, ...] = ()
    chain: bool = True
    sets: tuple[str, ...] = ()  # that can grow while a match waits

    @property
    def asks(self) -> bool:
        return self.mode in ("delayed", "filter")


def variants(f: Flat, *, count: bool) -> tuple[Variant, ...]:
    """How to look for the matches of an alternative; `count` says the query's window counts events."""
    open_ = [b.var for b in f.buffers if _is_set(b) and not any((b.var, o.var) in f.before for o in _fixed(f))]
    rights = {_right(g, f) for g in f.negations}
    if open_ or "window" in rights:
        inner = all(any(v in covered for covered, _ in f.windows[:-1]) for v in open_)  # the last is the query's
        first = [b for b in f.buffers if not any((o, b.var) in f.before for o in f.variables)]
        if (inner and "window" not in rights) or any(_is_set(b) for b in first):
            return (Variant("filter", sets=tuple(open_)),)
        return tuple(Variant("first", b.var, _others(b, first)) for b in first)
    last = [b for b in _fixed(f) if not any((b.var, o.var) in f.before for o in _fixed(f))]
    mode: Mode = "delayed" if "end" in rights and not count else "last"
    return tuple(Variant(mode, b.var, _others(b, last)) for b in last)


def looks_back(f: Flat) -> bool:
    """Whether a match is asked about events from before its start, up to a window before its end."""
    return any(g.scope.left == "window" or any(looks_back(b) for b in g.bodies) for g in f.negations)


def _is_set(b: t.Buffer) -> bool:
    return b.kleene and b.most is None


def _fixed(f: Flat) -> list[t.Buffer]:
    return [b for b in f.buffers if not _is_set(b)]


def _others(b: t.Buffer, rivals: list[t.Buffer]) -> tuple[str, ...]:
    return tuple(o.var for o in rivals if o.var != b.var)


def _right(g: FlatNegation, f: Flat) -> str | None:
    """What bounds a negation's scope on the right, when no neighbour can: one that may be empty is asked each time."""
    return None if any(v in f.variables for group in g.scope.before for v in group) else g.scope.right


def all_variants(flats: tuple[Flat, ...], *, count: bool) -> Iterator[tuple[Flat, Variant]]:
    for f in flats:
        for v in variants(f, count=count):
            yield f, v
