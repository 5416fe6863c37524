"""The cheapest way to come by everything: a minimum-cost arborescence, as Gabow, Galil, Spencer and Tarjan grow one.

A path grows backwards along the cheapest edge into its last vertex. Where it runs into itself, the cycle becomes one
vertex, whose edges cost what they do beyond the edge that they would replace; then the path grows on. In the end the
cycles are opened again, the last one first, each at the edge that enters it. Edges into a vertex are a heap with a sum
that is still to be taken off them all; of two heaps the smaller goes into the larger one.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

Edge = tuple[int, int, float]  # from, to, cost


def arborescence(vertices: int, root: int, edges: Iterable[Edge]) -> dict[int, int] | None:
    """For each vertex but the root, the number of the edge that leads to it, at the least cost of all together.

    None: a vertex cannot be reached. Of equal costs the edge that is named first counts.

    >>> arborescence(3, 0, [(0, 1, 5.0), (0, 2, 5.0), (1, 2, 1.0), (2, 1, 1.0)])
    {1: 0, 2: 2}
    """
    listed = list(edges)
    heaps = [_Heap() for _ in range(vertices)]
    for number, (start, end, cost) in enumerate(listed):
        if end != root and start != end:
            heaps[end].items.append((cost, number))
    for heap in heaps:
        heapify(heap.items)
    groups = _Groups(vertices)
    seen = [-1] * vertices
    seen[root] = vertices
    chosen: dict[int, int] = {}
    cycles: list[tuple[int, int, list[int]]] = []
    for first in range(vertices):
        at, path, taken = groups.find(first), [], []
        while seen[at] < 0:
            cheapest = heaps[at].pop(at, listed, groups)
            if cheapest is None:
                return None
            path.append(at)
            taken.append(cheapest)
            seen[at] = first
            at = groups.find(listed[cheapest][0])
            if seen[at] == first:
                moment, whole, cut = groups.moment(), at, path.index(at)
                heap = heaps[at]
                for member in path[cut + 1 :]:
                    whole = groups.join(whole, member)
                    heap = heap.merged(heaps[member])
                heaps[whole], seen[whole] = heap, -1
                cycles.append((whole, moment, taken[cut:]))
                del path[cut:], taken[cut:]
                at = whole
        for number in taken:
            chosen[groups.find(listed[number][1])] = number
    for whole, moment, around in reversed(cycles):
        entering = chosen.pop(whole)
        groups.roll_back(moment)
        for number in around:
            chosen[groups.find(listed[number][1])] = number
        chosen[groups.find(listed[entering][1])] = entering
    return {v: chosen[v] for v in range(vertices) if v != root}


class _Heap:
    """Edges by cost, cheapest first; `off` is still to be taken off each."""

    __slots__ = ("items", "off")

    def __init__(self) -> None:
        self.items: list[tuple[float, int]] = []
        self.off = 0.0

    def pop(self, at: int, edges: list[Edge], groups: _Groups) -> int | None:
        """The cheapest edge from outside; its cost comes off all others."""
        while self.items:
            cost, number = heappop(self.items)
            if groups.find(edges[number][0]) != at:
                self.off = cost
                return number
        return None

    def merged(self, other: _Heap) -> _Heap:
        large, small = (self, other) if len(self.items) >= len(other.items) else (other, self)
        shift = large.off - small.off
        for cost, number in small.items:
            heappush(large.items, (cost + shift, number))
        return large


class _Groups:
    """Vertices that are one for the time being: joined by size, and taken apart again in the reverse order."""

    def __init__(self, n: int) -> None:
        self._above = list(range(n))
        self._size = [1] * n
        self._joined: list[tuple[int, int]] = []

    def find(self, v: int) -> int:
        above = self._above
        while above[v] != v:
            v = above[v]
        return v

    def moment(self) -> int:
        return len(self._joined)

    def join(self, a: int, b: int) -> int:
        a, b = self.find(a), self.find(b)
        if self._size[a] < self._size[b]:
            a, b = b, a
        self._above[b] = a
        self._size[a] += self._size[b]
        self._joined.append((a, b))
        return a

    def roll_back(self, moment: int) -> None:
        while len(self._joined) > moment:
            a, b = self._joined.pop()
            self._above[b] = b
            self._size[a] -= self._size[b]
