"""GROUPBY of components that are not where a match is totalled: a pass for each of their values, over events nearby."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quercus.backends.local.aggregate import group_codes
from quercus.ir import expr as x
from quercus.kernels import running

if TYPE_CHECKING:
    from quercus.backends.local.running import Alternative, Entries, Found

Index = NDArray[np.int64]


def apart(alt: Alternative) -> list[Found]:
    """The groups of all values."""
    return _told(alt, alt.entries, (), {})


def codes_of(alt: Alternative) -> list[Index]:
    """Of each component that is looked at apart, the value of each entry as a number; -1: it is none of it."""
    e, found = alt.entries, []
    for var, role in zip(alt.apart_variables, alt.apart_roles, strict=True):
        places = alt.places(e, role)
        values = [alt.stream.values(g.attr, e.row[places]) for g in alt.how.apart if g.var == var]
        code_of = np.full(len(e), -1, np.int64)
        code_of[places] = group_codes(values, len(places))
        found.append(code_of)
    return found


def _told(alt: Alternative, e: Entries, codes: tuple[int, ...], rows: dict[x.Column, int]) -> list[Found]:
    """The groups of some entries, component by component."""
    level = len(codes)
    if level == len(alt.apart_roles):
        return alt.found(e, codes, rows)
    role = alt.apart_roles[level]
    bit = 1 << alt.bits[role]
    places = alt.places(e, role)
    if not len(places):
        return []
    own = alt.code_of[level][e.origin if len(e.origin) else slice(None)]
    order = places[np.argsort(own[places], kind="stable")]
    low, high = _reach(e)
    found: list[Found] = []
    for same in np.split(order, np.flatnonzero(np.diff(own[order])) + 1):
        code = int(own[same[0]])
        kept = _near(low[same], high[same] + 1)
        mask = np.where(own[kept] == code, e.mask[kept], e.mask[kept] & ~bit)
        kept, mask = kept[mask != 0], mask[mask != 0]
        alt.spend(len(kept))
        shown = {g: int(e.row[same[0]]) for g in alt.how.apart if g.var == alt.apart_variables[level]}
        found += _told(alt, e.some(kept, mask, alt.symbols_of(mask)), (*codes, code), rows | shown)
    return found


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
