"""The order of groups that were totalled without listing: that of their first matches."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from attrs import evolve

from quercus.backends.local.automaton import END, SET
from quercus.kernels import running

if TYPE_CHECKING:
    from quercus.backends.local.running import Alternative, Found

Binding = tuple[int, ...]  # the row that was bound first, then that of each variable; -1: none yet
Codes = tuple[int, ...]  # of the components that are looked at apart; -1: not bound yet
Partial = dict[tuple[int, Codes], Binding]


def in_order(found: list[Found]) -> list[Found]:
    """By the end of first matches; where that is one event, by their starts and all other events."""
    known: Known = {}
    ordered: list[Found] = []
    for _, same in groupby(sorted(found, key=lambda g: g.end), key=lambda g: g.end):
        groups = list(same)
        if len(groups) > 1:
            starts = {int(g.alternative.entries.row[g.place]) for g in groups if g.alternative.how.backwards}
            if len(starts) == len(groups):
                groups.sort(key=lambda g: int(g.alternative.entries.row[g.place]))
            else:
                groups.sort(key=lambda g: first_match(g, known))
        ordered += groups
    return [_zero_shown(g, known) for g in ordered]


Known = dict[tuple[int, int], dict[Codes, Binding]]


def first_match(g: Found, known: Known) -> tuple[int, ...]:
    """The first match of a group: its end, its start, and what each variable is bound to."""
    at = id(g.alternative), g.place
    if at not in known:
        known[at] = _least_bindings(g.alternative, g.place)
    first, *bound = known[at][g.codes]
    last = int(g.alternative.entries.row[g.place])
    return (first, last, *bound) if g.alternative.how.backwards else (last, first, *bound)


def _zero_shown(g: Found, known: Known) -> Found:
    """0.0 and -0.0 are one group, which shows what its first match has."""
    alt = g.alternative
    for i, c in enumerate(alt.columns):
        if (
            c in alt.how.apart
            and c.type == "float64"
            and alt.stream.values(c.attr, alt.rows_of(g.shown[i])).data[0] == 0
        ):
            slot = 2 + [v.var for v in alt.plan.query.variables].index(c.var)
            shown = list(g.shown)
            shown[i] = first_match(g, known)[slot]
            g = evolve(g, shown=tuple(shown))
    return g


def _least_bindings(alt: Alternative, place: int) -> dict[Codes, Binding]:
    """For all values of components, the first match in the order of the answer that is totalled at one entry.

    All partial matches of a state go on alike, so that only the least of each state and its values is kept.
    """
    e, end = alt.whole, alt.place_in_whole(place)
    low = int(e.reach[end]) if e.reach is not None else int(running.reach(e.mark, e.at, e.window)[end])
    slot = {v.var: i + 1 for i, v in enumerate(alt.plan.query.variables)}
    apart = {role: n for n, role in enumerate(alt.apart_roles)}
    old: Partial = {(0, (-1,) * len(apart)): (-1,) * (len(slot) + 1)}
    fresh: Partial = {}
    ended: dict[Codes, Binding] = {}
    flags: dict[int, int] = {}
    seen: dict[int, list[int]] = {}  # of a gap: elements of this tie group, and before them their variable's slot
    for i in range(low, end + 1):
        if i > low and e.mark[i] & 1:
            old = _closed(alt, old, fresh, flags, seen)
            fresh, flags, seen = {}, {}, {}
        row, more = int(e.row[i]), []
        mask = int(e.mask[i])
        if mask >> alt.killer & 1:
            old = {k: b for k, b in old.items() if not alt.unbegun(k[0])}
            continue
        for number, (r, bit) in enumerate(zip(alt.states.roles, alt.bits, strict=True)):
            if not mask >> bit & 1:
                continue
            for source, target, _, inner in r.edges:
                if (target == END) != (i == end):
                    continue
                for (state, codes), b in [*old.items(), *(fresh.items() if inner else ())]:
                    if state == source:
                        own = codes
                        if number in apart:
                            code = int(alt.code_of[apart[number]][e.place(i)])
                            own = (*codes[: apart[number]], code, *codes[apart[number] + 1 :])
                        more.append(((target, own), _bound(alt, b, slot[r.leaf.var], row)))
            for gap, flag, _ in r.stays:
                flags[gap] = flags.get(gap, 0) | flag
                if flag == SET:
                    seen.setdefault(gap, [slot[r.leaf.var]]).append(row)
        for (target, codes), b in more:
            if target == END:
                ended[codes] = min(ended.get(codes, b), b)
            else:
                fresh[target, codes] = min(fresh.get((target, codes), b), b)
    return ended


def _bound(alt: Alternative, b: Binding, slot: int, row: int) -> Binding:
    """With one more event. Of a set the first element counts, which is read last where a stream is read backwards."""
    new = list(b)
    new[0] = row if new[0] < 0 else new[0]
    new[slot] = row if new[slot] < 0 or alt.how.backwards else new[slot]
    return tuple(new)


def _closed(
    alt: Alternative, old: Partial, fresh: Partial, flags: dict[int, int], seen: dict[int, list[int]]
) -> Partial:
    """After a tie group: what waited has moved in its gap, and what entered is there."""
    new = dict(fresh)
    for (state, codes), b in old.items():
        to = state
        for gap, (begin, size, moves) in enumerate(alt.states.gaps):
            if begin <= state < begin + size and gap in flags:
                place = moves[flags[gap]][state - begin]
                to = begin + place if place >= 0 else END
                if gap in seen and to != END:
                    slot, *rows = seen[gap]
                    for row in rows:
                        b = _bound(alt, b, slot, row)
        if to != END:
            new[to, codes] = min(new.get((to, codes), b), b)
    return new
