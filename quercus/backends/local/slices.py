"""Slices of an alternative's work: whole keys where there is a key, times where there is none.

Buffers are shared, so that a slice needs no copy of what lies a window before it. What a match binds first (the owner's
event) decides in which slice it is found: so a key that holds much of the stream can be cut inside, by time.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from attrs import frozen

from quercus.backends.local.specs import Index

_HOT = 4  # a key of more than a slice's fourth is cut inside


@frozen(eq=False)
class Slice:
    """The owner's events from first to last (-1: all) in some keys; `share` is its part of all events."""

    segments: Index  # of its keys
    keys: tuple[int, int]
    first: int
    last: int
    share: float


def whole(segments: Index) -> Slice:
    return Slice(segments, (0, segments.shape[1] - 1), 0, -1, 1.0)


def cut(segments: Index, owner: int, shares: list[float]) -> list[Slice]:
    """Slices in order that hold about these parts of the events; `owner` is a buffer, or -1: then keys stay whole.

    >>> two_keys = np.array([[0, 6, 8], [0, 2, 4]])
    >>> [(s.first, s.last, s.segments.tolist()) for s in cut(two_keys, 0, [0.5, 0.5])]
    [(0, 4, [[0, 6], [0, 2]]), (4, 8, [[0, 6, 8], [0, 2, 4]])]
    >>> [s.segments.tolist() for s in cut(two_keys, -1, [0.9, 0.1])]
    [[[0, 6, 8], [0, 2, 4]]]
    """
    events = segments.sum(axis=0)  # before each key
    all_, total = int(events[-1]), sum(shares)
    marks = [all_ * upto / total for upto in accumulate(shares[:-1])]
    keys = np.minimum(np.searchsorted(events, marks, side="right") - 1, segments.shape[1] - 2).tolist()
    borders = [(0, 0)]
    for mark, key, share in zip(marks, keys, shares, strict=False):
        inside = (mark - int(events[key]), int(events[key + 1] - events[key]))
        borders.append(max(borders[-1], _border(segments, owner, key, inside, all_ * share / total)))
    borders.append((segments.shape[1] - 1, int(segments[owner, -1]) if owner >= 0 else 0))
    found = []
    for (key, first), (stop, last), share in zip(borders, borders[1:], shares, strict=False):
        if (key, first) < (stop, last):
            cuts = owner >= 0 and int(segments[owner, stop]) < last  # the key that is cut goes into both
            found.append(_slice(segments, (key, stop + cuts), first, last if owner >= 0 else -1, share / total))
    return found


def merged(segments: Index, slices: list[Slice]) -> Slice:
    """Neighbouring slices as one."""
    keys = slices[0].keys[0], slices[-1].keys[1]
    return _slice(segments, keys, slices[0].first, slices[-1].last, sum(s.share for s in slices))


def _slice(segments: Index, keys: tuple[int, int], first: int, last: int, share: float) -> Slice:
    return Slice(np.ascontiguousarray(segments[:, keys[0] : keys[1] + 1]), keys, first, last, share)


def _border(segments: Index, owner: int, key: int, inside: tuple[float, int], most: float) -> tuple[int, int]:
    """The key that begins near a mark, so far `inside` of so many events, and its first event of the owner; or where it
    is cut.
    """
    at, size = inside
    if owner < 0 or size * _HOT <= most:
        key += int(2 * at > size)
        return key, int(segments[owner, key]) if owner >= 0 else 0
    first, last = int(segments[owner, key]), int(segments[owner, key + 1])
    return key, first + int((last - first) * at / size)
