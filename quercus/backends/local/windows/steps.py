"""The tuples that matter to a pattern window, and what the kernel is told of each."""

from __future__ import annotations

from functools import reduce

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from quercus.backends.local.specs import Index
from quercus.backends.local.values import Mask
from quercus.backends.local.windows.columns import Columns
from quercus.backends.local.windows.plan import Sight, WindowPlan
from quercus.ir import expr as x
from quercus.kernels import windows


@frozen(eq=False)
class Steps:
    """Tuples by position; the others let every window go on, and none takes them in."""

    at: Index
    flags: NDArray[np.uint16]
    loose: bool  # windows open that have no key
    spread: bool  # tuples touch windows of other keys too, or such without a key


@frozen(eq=False)
class Groups:
    """The groups of windows that steps are about."""

    codes: Index  # of the group that a tuple touches
    homes: Index  # ... that a window opened by it stands in
    count: int


def groups_of(p: WindowPlan, c: Columns, s: Steps) -> Groups:
    codes, homes = c.groups(p.keys, s.at, (s.flags & windows.STARTS).astype(np.bool_))
    return Groups(codes, homes, max(1, c.keys.size(p.keys)))


def steps_of(p: WindowPlan, c: Columns, *, lean: bool, live: bool = False, loose: bool = False) -> Steps:
    """`lean`: what windows that are alike take in matters only for what they are shown of the same time.

    `live`: windows may be open already; `loose`: also such that have no key.
    """
    start = c.mask(p.start)
    own = p.own
    end, stay, take = c.mask(own.may_end), c.mask(own.must_stay), c.mask(own.may_take)
    matters = start | end | ~stay
    if own.may_take != x.FALSE and not (lean and p.alike):
        matters |= take
    elif own.may_take != x.FALSE:
        if len(c.ends()):
            ts = c.events.ts
            matters[:-1] |= take[:-1] & (ts[1:] == ts[:-1])
        if live:
            matters[-1:] |= take[-1:]  # more tuples of this time may come
    absent = c.missing(tuple(k.here for k in p.keys))
    homeless = c.missing(tuple(k.first for k in p.keys))
    loose = bool(p.keys) and (loose or (homeless is not None and bool((homeless & start).any())))
    to_all = _disturbs(p.foreign, c)
    to_loose = None
    if loose or absent is not None:
        to_loose = _either(to_all, _disturbs(p.missing, c))
        if absent is not None:
            to_all = _either(_both(to_all, ~absent), _both(to_loose, absent))
        if loose:
            matters = matters if to_loose is None else matters | to_loose
    matters = matters if to_all is None else matters | to_all
    first = 0 if live else int(start.argmax()) if start.any() else len(start)
    at = np.flatnonzero(matters[first:]) + first
    flags = np.zeros(len(at), np.uint16)
    sights = (
        *((windows.STARTS, start), (windows.MAY_END, end), (windows.STAYS, stay), (windows.MAY_TAKE, take)),
        *(
            (windows.ENDS, _same(end, own.may_end, own.must_end, c)),
            (windows.TAKES, _same(take, own.may_take, own.must_take, c)),
        ),
        (windows.MAY_STAY, _same(stay, own.must_stay, own.may_stay, c)),
        *((windows.TO_ALL, to_all), (windows.TO_LOOSE, to_loose if loose else None)),
    )
    for bit, mask in sights:
        if mask is not None:
            flags |= mask[at].astype(np.uint16) * np.uint16(bit)
    spread = bool((flags & (windows.TO_ALL | windows.TO_LOOSE)).any())
    return Steps(at, flags, loose, spread)


def _same(known: Mask, told: x.Expr, other: x.Expr, c: Columns) -> Mask:
    return known if told == other else c.mask(other)


def _disturbs(sights: tuple[Sight, ...], c: Columns) -> Mask | None:
    """Where a tuple may do something to a window of which it is known only that a key's comparison says this."""
    parts = [c.mask(s.may_end) | ~c.mask(s.must_stay) | c.mask(s.may_take) for s in sights if not s.neutral]
    found = reduce(np.logical_or, parts) if parts else None
    return found if found is not None and found.any() else None


def _either(a: Mask | None, b: Mask | None) -> Mask | None:
    return b if a is None else a if b is None else a | b


def _both(a: Mask | None, b: Mask) -> Mask | None:
    return None if a is None else a & b
