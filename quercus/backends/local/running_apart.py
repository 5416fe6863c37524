"""GROUPBY of a component in the middle: a pass for each of its values, over the events that are near."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from quercus.backends.local.aggregate import group_codes
from quercus.backends.local.automaton import END, SET
from quercus.kernels import running

if TYPE_CHECKING:
    from quercus.backends.local.running import Alternative, Entries, Found

Index = NDArray[np.int64]
Binding = tuple[int, ...]  # the first row, then that of each variable; -1: none yet


def apart(alt: Alternative) -> list[Found]:
    """The groups of all values, with the order of those whose first matches end in the same event."""
    e, columns = alt.entries, alt.how.apart
    found = alt.role(columns[0].var)
    assert found is not None
    role = found[0]
    places = alt.places(e, role)
    codes = group_codes([alt.stream.values(g.attr, e.row[places]) for g in columns], len(places))
    code_of = np.full(len(e), -1, np.int64)
    code_of[places] = codes
    low, high = _reach(e)
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    made: list[tuple[int, Found]] = []
    bit = 1 << alt.bits[role]
    known = 0
    automaton = None
    for own in np.split(places[order], bounds) if len(codes) else []:
        code = int(code_of[own[0]])
        kept = _near(low[own], high[own] + 1)
        mask = np.where(code_of[kept] == code, e.mask[kept], e.mask[kept] & ~bit)
        kept, mask = kept[mask != 0], mask[mask != 0]
        some = e.some(kept, mask, alt.symbols_of(mask))
        if automaton is None or len(alt.symbols) > known:
            automaton, known = alt.automaton(), len(alt.symbols)
        for g in alt.found(some, automaton):
            values = (
                int(e.row[own[0]]) if c in columns else s for c, s in zip(alt.plan.query.group_by, g.shown, strict=True)
            )
            made.append((code, evolve(g, shown=tuple(values))))
    return _in_order(alt, made, code_of, low, role)


def _reach(e: Entries) -> tuple[Index, Index]:
    """Of each entry, the first and the last that are in a window with it."""
    from quercus.backends.local.running import backwards

    later = running.reach(backwards(e.mark), np.ascontiguousarray(-e.at[::-1]), e.window)
    return running.reach(e.mark, e.at, e.window), len(e) - 1 - later[::-1]


def _near(begin: Index, end: Index) -> Index:
    """All places in some ascending ranges."""
    new = np.flatnonzero(np.r_[True, begin[1:] > end[:-1]])
    starts, ends = begin[new], end[np.r_[new[1:] - 1, len(end) - 1]]
    sizes = ends - starts
    offsets = np.r_[0, np.cumsum(sizes)]
    return np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])


def _in_order(alt: Alternative, made: list[tuple[int, Found]], code_of: Index, low: Index, role: int) -> list[Found]:
    by_end: dict[int, list[tuple[int, Found]]] = {}
    for code, g in made:
        by_end.setdefault(g.order[0], []).append((code, g))
    found: list[Found] = []
    place = dict(zip(alt.entries.row.tolist(), range(len(alt.entries)), strict=True)) if len(by_end) < len(made) else {}
    for end, groups in by_end.items():
        if len(groups) == 1:
            found.append(groups[0][1])
            continue
        least = _least_bindings(alt, code_of, int(low[place[end]]), place[end], role)
        found += [evolve(g, order=(end, *least[code])) for code, g in groups]
    return found


def _least_bindings(alt: Alternative, code_of: Index, low: int, end: int, role: int) -> dict[int, Binding]:
    """For each value of the component, the first match in the order of the answer that ends in one event.

    All partial matches of a state go on alike, so that only the least of each state and value is kept.
    """
    e = alt.entries
    slot = {v.var: i + 1 for i, v in enumerate(alt.plan.query.variables)}
    old: dict[tuple[int, int], Binding] = {(0, -1): (-1,) * (len(slot) + 1)}
    fresh: dict[tuple[int, int], Binding] = {}
    ended: dict[int, Binding] = {}
    flags: dict[int, int] = {}
    first: dict[int, tuple[int, int]] = {}  # of a gap: the first element in this tie group, and its variable's slot
    for i in range(low, end + 1):
        if i > low and e.mark[i] & 1:
            old = _closed(alt, old, fresh, flags, first)
            fresh, flags, first = {}, {}, {}
        row, more = int(e.row[i]), []
        for number, (r, bit) in enumerate(zip(alt.states.roles, alt.bits, strict=True)):
            if not int(e.mask[i]) >> bit & 1:
                continue
            for source, target, _, inner in r.edges:
                if (target == END) != (i == end):
                    continue
                for (state, code), b in [*old.items(), *(fresh.items() if inner else ())]:
                    if state == source:
                        own = int(code_of[i]) if number == role else code
                        more.append(((target, own), _bound(b, slot[r.leaf.var], row)))
            for gap, flag, _ in r.stays:
                flags[gap] = flags.get(gap, 0) | flag
                if flag == SET and gap not in first:
                    first[gap] = (row, slot[r.leaf.var])
        for (target, code), b in more:
            if target == END:
                ended[code] = min(ended.get(code, b), b)
            else:
                fresh[target, code] = min(fresh.get((target, code), b), b)
    return ended


def _bound(b: Binding, slot: int, row: int) -> Binding:
    new = list(b)
    new[0] = row if new[0] < 0 else new[0]
    new[slot] = row if new[slot] < 0 else new[slot]
    return tuple(new)


def _closed(
    alt: Alternative,
    old: dict[tuple[int, int], Binding],
    fresh: dict[tuple[int, int], Binding],
    flags: dict[int, int],
    first: dict[int, tuple[int, int]],
) -> dict[tuple[int, int], Binding]:
    """After a tie group: what waited has moved in its gap, and what entered is there."""
    new = dict(fresh)
    for (state, code), b in old.items():
        to = state
        for gap, (begin, size, moves) in enumerate(alt.states.gaps):
            if begin <= state < begin + size and gap in flags:
                place = moves[flags[gap]][state - begin]
                to = begin + place if place >= 0 else END
                if gap in first and to != END:
                    b = _bound(b, first[gap][1], first[gap][0])
        if to != END:
            new[to, code] = min(new.get((to, code), b), b)
    return new
