"""Hierarchical instance stacks (E-Cube, section 3): an event is stored once, at its finest type; concepts are codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quercus.backends.local.events import Events
from quercus.kernels import memory, reuse

Index = NDArray[np.int64]
Small = NDArray[np.int32]


def preorder(hierarchy: Mapping[str, tuple[str, ...]], others: Iterable[str] = ()) -> dict[str, int]:
    """A code for each name of a forest, so that those of a concept and of all below it are a range; then for others.

    >>> preorder({"TX": ("Dallas", "Austin"), "Dallas": ("Bus",)}, ["Bus", "Tulsa"])
    {'TX': 0, 'Dallas': 1, 'Bus': 2, 'Austin': 3, 'Tulsa': 4}
    """
    below = {c for names in hierarchy.values() for c in names}

    def walk(name: str) -> Iterator[str]:
        yield name
        for c in hierarchy.get(name, ()):
            yield from walk(c)

    names = [n for root in hierarchy if root not in below for n in walk(root)]
    return {n: i for i, n in enumerate(dict.fromkeys([*names, *others]))}


class Stacks:
    """The events of a stream by their finest types, routed once for whoever reads them, at whatever level.

    >>> from quercus.backends.local.events import load
    >>> from quercus.schema import Schema
    >>> schema = Schema({}, hierarchy={"TX": ["Dallas", "Austin"]})
    >>> stream = load({"ts": [1, 2, 3, 4], "type": ["Austin", "Tulsa", "Dallas", "TX"]}, schema)
    >>> stacks = Stacks(stream, [schema.accepts("TX"), ("Tulsa",)])
    >>> stacks.positions(schema.accepts("TX")).tolist(), stacks.ranges(("Austin", "Dallas"))
    ([0, 2, 3], [(1, 3)])
    """

    def __init__(self, stream: Events, requests: Iterable[tuple[str, ...]]) -> None:
        requests = list(dict.fromkeys(requests))
        names = list(dict.fromkeys(n for r in requests for n in r))
        self.stream = stream
        self.code = preorder(stream.schema.hierarchy, names)
        self.found = dict(zip(names, stream.route([(n,) for n in names]), strict=True))
        self._kinds: Small | None = None
        self._known: dict[tuple[str, ...], Index] = {}
        for r in requests:
            self.positions(r)

    @property
    def kinds(self) -> Small:
        """The code of each position's type; -1 where nobody asked for it."""
        if self._kinds is None:
            self._kinds = np.full(len(self.stream), -1, np.int32)
            for name, at in self.found.items():
                self._kinds[at] = self.code[name]
        return self._kinds

    def positions(self, accepts: tuple[str, ...]) -> Index:
        """The positions of the events of some types, ascending."""
        if accepts not in self._known:
            self._require(accepts)
            self._known[accepts] = self._positions(accepts)
            self.stream.keep_routed({accepts: self._known[accepts]})
        return self._known[accepts]

    def ranges(self, accepts: tuple[str, ...]) -> list[tuple[int, int]]:
        """The codes of some types, as ranges; a range may hold codes of types that were not asked for."""
        self._require(accepts)
        held = sorted(self.code[n] for n in self.found)
        rank = {c: i for i, c in enumerate(held)}
        codes = sorted(self.code[n] for n in accepts)
        if not codes:
            return []
        breaks = [i for i, (a, b) in enumerate(pairwise(codes), 1) if rank[b] != rank[a] + 1]
        return [(codes[i], codes[j - 1] + 1) for i, j in pairwise([0, *breaks, len(codes)])]

    def coded(self, accepts: tuple[str, ...]) -> tuple[Small, int, int]:
        """Codes by position, and the one range of those that are of some types."""
        ranges = self.ranges(accepts)
        if len(ranges) == 1:
            return self.kinds, *ranges[0]
        member = np.zeros(len(self.code) + 1, np.int32)  # the last: of no type that was asked for
        for low, high in ranges:
            member[low:high] = 1
        member[-1] = 0
        return member[self.kinds], 1, 2

    def _positions(self, accepts: tuple[str, ...]) -> Index:
        parts = [self.found[n] for n in dict.fromkeys(accepts) if len(self.found[n])]
        if len(parts) <= 1:
            return parts[0] if parts else np.empty(0, np.int64)
        at = memory.empty(sum(map(len, parts)))
        kinds, low, high = self.coded(accepts)
        count = reuse.of_kinds(kinds, low, high, at)
        assert count == len(at), (accepts, count)
        return at

    def _require(self, accepts: tuple[str, ...]) -> None:
        """Types that no query of the cube has: routed now."""
        missing = [n for n in dict.fromkeys(accepts) if n not in self.found]
        if not missing:
            return
        for n in missing:
            self.code.setdefault(n, len(self.code))
        self.found.update(zip(missing, self.stream.route([(n,) for n in missing]), strict=True))
        self._kinds = None
