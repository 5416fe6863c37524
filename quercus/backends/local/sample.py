"""Conditions tried on some events of the leaf buffers: what a run can know of its data for little."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quercus.backends.local.buffers import spec_of
from quercus.backends.local.events import Events
from quercus.backends.local.expressions import true_mask
from quercus.backends.local.specs import BufferData, BufferSpec, Index
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.flat import is_local

SAMPLE = 256  # pairs that a condition is tried on, at most
VALUES = 256  # events of each side whose values are counted for an equality, at most
STARTS = 128  # events of a leaf whose later partners are counted, at most
NEAR = 1.25  # an order that departs from chance by less is chance


def conditions(root: t.Node) -> list[x.Expr]:
    """The conditions between two components that can be tried event by event."""
    found: list[x.Expr] = []
    for n in t.positive(root):
        if isinstance(n, t.Join):
            found += [c.expr for c in (*n.equal, *n.where)]
        elif isinstance(n, t.Stack):
            found += [c.expr for s in n.steps for c in (*s.equal, *s.where)]
    return [e for e in found if len(x.variables(e)) == 2 and is_local(e)]


class Sample:
    """Some events of a stream."""

    def __init__(
        self, tree: t.Tree, stream: Events, wanted: list[BufferSpec], data: list[BufferData], windows: float
    ) -> None:
        self.window, self.stream, self.windows = tree.window, stream, windows
        place = {spec: i for i, spec in enumerate(wanted)}
        self.buffers: dict[str, BufferData] = {}
        for n in t.positive(tree.root):
            if isinstance(n, t.Buffer) and n.var not in self.buffers:
                self.buffers[n.var] = data[place[spec_of(n, tree)]]
        self.timed = tree.window.kind == "time" and all(b.codes is None and b.starts is None for b in data)

    def selectivities(self, tried: list[x.Expr]) -> dict[x.Expr, float]:
        """The part of pairs that pass, of each condition on two variables that have events."""
        found: dict[x.Expr, float] = {}
        for e in tried:
            if all(v in self.buffers and len(self.buffers[v].row) for v in x.variables(e)):
                found[e] = self._equality(e) if x.is_equality(e) else self._pairs(e)
        return found

    def _equality(self, e: x.Expr) -> float:
        """Over all pairs of some events of each side, by counting values."""
        assert isinstance(e, x.Compare)
        sides = []
        for side in (e.left, e.right):
            assert isinstance(side, x.Column)
            sides.append(self.stream.values(side.attr, _some(self.buffers[side.var].row, VALUES)))
        a, b = sides
        if a.kind == "string":
            counts = {v["values"]: v["counts"] for v in a.data.value_counts().to_pylist()}
            others = b.data.value_counts().to_pylist()
            pairs = sum(counts.get(v["values"], 0) * v["counts"] for v in others if v["values"] is not None)
        else:
            left, right = (v.data if v.valid is None else v.data[v.valid] for v in sides)
            right = np.sort(right)
            pairs = int((right.searchsorted(left, "right") - right.searchsorted(left, "left")).sum())
        return float(max(pairs, 0.5) / max(len(a) * len(b), 1))

    def _pairs(self, e: x.Expr) -> float:
        """On pairs that are near each other in time: about a window apart at most."""
        first, second = sorted(x.variables(e))
        a, b = self.buffers[first], self.buffers[second]
        rows_a, many = _some(a.row, SAMPLE), len(b.row)
        if self.timed:
            reach = 2.0 * many / self.windows
            places = b.ts.searchsorted(self.stream.ts[rows_a]) + ((_even(len(rows_a)) - 0.5) * reach).astype(np.int64)
            np.minimum(np.maximum(places, 0, out=places), many - 1, out=places)
        else:
            places = (_even(len(rows_a)) * many).astype(np.int64)
        rows = {first: rows_a, second: b.row[places]}
        good = true_mask(e, lambda k: self.stream.values(k.attr, rows[k.var]), len(rows_a))
        return (float(np.count_nonzero(good)) + 0.25) / (len(good) + 0.5)

    def orders(self) -> dict[tuple[str, str], float]:
        """Of neighbours: ordered pairs within a window, against those that chance would give."""
        size, last = self.window.size, len(self.stream) - 1
        if not self.timed or last < 0 or int(self.stream.ts[last]) > _MOST - size:
            return {}
        found = {}
        for first, second in pairwise(self.buffers):
            a, b = self.buffers[first].ts, self.buffers[second].ts
            some = _some(a, STARTS)
            expected = len(some) * len(b) / self.windows
            pairs = int((b.searchsorted(some + size, "right") - b.searchsorted(some, "right")).sum())
            factor = pairs / expected if expected else 1.0
            if not 1 / NEAR < factor < NEAR:
                found[first, second] = factor
        return found


_MOST = 2**63 - 1


@cache
def _even(n: int) -> NDArray[np.float64]:
    """Numbers from 0 up to 1 that are evenly spread, and in no order; `n` is SAMPLE at most."""
    found: NDArray[np.float64] = np.modf(np.arange(1, n + 1) * 0.6180339887498949)[0]
    return found


def _some(rows: Index, n: int) -> Index:
    """Some of the rows, evenly spread: n at most."""
    return rows[:: -(-len(rows) // n)] if len(rows) > n else rows
