"""Planning again from the data: once events are routed, their numbers are known, and conditions can be tried on some.

A plan that was compiled without statistics rests on defaults. Before it runs, the leaf buffers say how many events each
leaf has, and a sample of pairs says what passes a condition. If the run will take long enough to be worth it, every
operator is arranged again.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import assert_never

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from quercus.backends.base import Limits
from quercus.backends.local.buffers import spec_of
from quercus.backends.local.events import Events
from quercus.backends.local.expressions import evaluate, true_mask
from quercus.backends.local.specs import BufferData, BufferSpec
from quercus.collect import later_pairs
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.flat import is_local
from quercus.ir.observed import Observed
from quercus.plan import Plan

LEAST = 4e5  # nanoseconds that a plan may take, at a glance, from which it is worth a closer look
WORTH = 1.5e6  # nanoseconds that a plan is expected to take, from which looking at samples costs little beside it
GAIN = 5e5  # nanoseconds that another plan must be expected to save
EACH = 6.0  # of them for a candidate of a stack
SAMPLE = 512  # pairs that a condition is tried on
VALUES = 2_048  # events of each side whose values are counted for an equality
NEAR = 1.25  # an order that departs from chance by less is chance
MOST_BYTES = float(1 << 30)  # what a tree may be expected to hold

Index = NDArray[np.int64]


@frozen
class Again:
    """A plan made from the data, or one that the data confirm, and what that rests on."""

    plan: Plan
    note: str


def refined(
    plan: Plan, stream: Events, wanted: list[BufferSpec], data: list[BufferData], limits: Limits
) -> Again | None:
    """The plan for these events; None: it was not left to the planner, or there is too little to gain."""
    if plan.options.shape != "auto" or plan.options.stats is not None:
        return None
    windows = _windows(plan, stream)
    sizes = {spec: len(b.row) for spec, b in zip(wanted, data, strict=True)}
    keys = _keys(data)
    if not _is_open(plan.tree.root) or _expected(plan.tree, sizes, windows, keys) < (
        LEAST if plan.arranged is not None else WORTH
    ):
        return None
    allowed = MOST_BYTES if limits.max_state_bytes is None else min(MOST_BYTES, limits.max_state_bytes / 4)
    leaves = {(spec.accepts, spec.local): n / windows for spec, n in sizes.items()}
    declared = keys if plan.tree.partition_by else 1.0
    counted = Observed(leaves, len(stream) / windows, {}, {}, windows, declared, allowed)
    if plan.expected(counted) * windows < WORTH:
        return None
    sample = Sample(plan, stream, wanted, data, windows)
    observed = evolve(counted, selectivity=sample.selectivities(), order=sample.orders())
    tried = len(observed.selectivity)
    said = f"{sum(sizes.values()):,} events in {len(sizes)} buffers"
    said += f", {tried} conditions tried on samples" if tried else ""
    if plan.gain(observed) * windows < GAIN:
        return Again(plan, f"{said}: the same")
    again = plan.planned_again(observed)
    same = "the same" if again.tree.shape == plan.tree.shape else f"{again.tree.shape} instead of {plan.tree.shape}"
    return Again(again, f"{said}: {same}")


def _is_open(root: t.Node) -> bool:
    """Whether a stack could be worse than a tree: one along pointers that nothing tests never is."""
    if not isinstance(root, t.Stack) or root.op != "SEQ":
        return True
    return any(
        s.equal or s.where or not isinstance(s.component, t.Buffer) or (s.component.kleene and s.component.most)
        for s in root.steps
    )


def _expected(tree: t.Tree, sizes: dict[BufferSpec, int], windows: float, keys: float) -> float:
    """About how long a plan takes: its estimates, with as many events as there are instead of those it was made for."""

    def of(n: t.Node) -> tuple[float, float]:
        """How many times as many rows as a node was planned for, and the nanoseconds of all below it."""
        match n:
            case t.Buffer():
                if n.kleene and n.most is None:
                    return 1.0, 0.0
                rows = sizes.get(spec_of(n, tree), 0) / windows
                return (rows / max(n.estimate.rows, 1e-9)) ** (n.most or 1), 0.0
            case t.Union():
                parts = [of(b) for b in n.branches]
                return max((times for times, _ in parts), default=0.0), sum(cost for _, cost in parts)
            case t.Empty():
                return 0.0, 0.0
            case t.Join():
                below: tuple[t.Node, ...] = (n.left, n.right)
            case t.Stack():
                parts = [of(s.component) for s in n.steps]
                return prod(times for times, _ in parts), _bound(n, [times for times, _ in parts], keys)
            case t.Reject() | t.Test() | t.Combine() | t.Nest():
                below = (n.source,)
            case _:
                assert_never(n)
        parts = [of(c) for c in below]
        times = min(prod(times for times, _ in parts), 1e100)
        own = n.estimate.cost + (n.negation.estimate.cost if isinstance(n, t.Reject) else 0.0)
        return times, times * own + sum(cost for _, cost in parts)

    return of(tree.root)[1] * windows


def _bound(n: t.Stack, times: list[float], keys: float) -> float:
    """About how long it takes to bind the components of a stack one by one: the last, the first, then the rest.

    Where there are keys, only those of one key meet.
    """
    order = [len(times) - 1, *range(len(times) - 1)] if n.op == "SEQ" else list(range(len(times)))
    conditions = [c.expr for s in n.steps for c in (*s.equal, *s.where)]
    seen: set[str] = set()
    total, rows, place = 0.0, 1.0, 0
    for i in order:
        c = n.steps[i].component
        if isinstance(c, t.Buffer) and c.kleene and c.most is None:
            continue
        place += 1
        rows *= times[i] * max(c.estimate.rows, 1e-9)
        rows /= (max(place - 1, 1) if n.op == "SEQ" else 1) * (keys if place > 1 else 1.0)
        total += min(rows, 1e100)
        before, seen = seen, seen | set(t.variables(c))
        for e in conditions:
            if x.variables(e) <= seen and not x.variables(e) <= before:
                rows *= 0.1 if x.is_equality(e) else 0.5
    return total * EACH


def _windows(plan: Plan, stream: Events) -> float:
    """How many windows long a stream is, at least one."""
    w = plan.tree.window
    if not len(stream):
        return 1.0
    span = len(stream) if w.kind == "count" else int(stream.ts[-1]) - int(stream.ts[0])
    return max(1.0, span / max(w.size, 1))


class Sample:
    """Conditions tried on some events of the leaf buffers."""

    def __init__(
        self, plan: Plan, stream: Events, wanted: list[BufferSpec], data: list[BufferData], windows: float
    ) -> None:
        self.plan, self.stream, self.windows = plan, stream, windows
        place = {spec: i for i, spec in enumerate(wanted)}
        self.buffers: dict[str, BufferData] = {}
        for n in t.positive(plan.tree.root):
            if isinstance(n, t.Buffer):
                self.buffers.setdefault(n.var, data[place[spec_of(n, plan.tree)]])
        self.random = np.random.Generator(np.random.PCG64(1))
        self.keyed = any(b.codes is not None or b.starts is not None for b in data)

    def selectivities(self) -> dict[x.Expr, float]:
        """The part of pairs that pass, of each condition on two variables."""
        found: dict[x.Expr, float] = {}
        for n in t.positive(self.plan.tree.root):
            if isinstance(n, t.Join):
                here = (*n.equal, *n.where)
            elif isinstance(n, t.Stack):
                here = tuple(c for s in n.steps for c in (*s.equal, *s.where))
            else:
                continue
            for c in here:
                names = x.variables(c.expr)
                there = all(v in self.buffers and len(self.buffers[v].row) for v in names)
                if len(names) == 2 and there and is_local(c.expr):
                    found[c.expr] = self._equality(c.expr) if x.is_equality(c.expr) else self._pairs(c.expr)
        return found

    def _equality(self, e: x.Expr) -> float:
        """Over all pairs of some events of each side, by counting values."""
        assert isinstance(e, x.Compare)
        sides = []
        for side in (e.left, e.right):
            assert isinstance(side, x.Column)
            rows = _some(self.buffers[side.var].row, VALUES)
            values = evaluate(side, lambda k, rows=rows: self.stream.values(k.attr, rows), len(rows))  # type: ignore[misc]
            there = np.ones(len(rows), bool) if values.valid is None else values.valid
            found = values.data.dictionary_encode() if values.kind == "string" else values.data
            sides.append((found, there, len(rows), values.kind == "string"))
        (a, valid_a, n, text), (b, valid_b, m, _) = sides
        if text:
            counts = {v["values"]: v["counts"] for v in a.cast(a.type.value_type).value_counts().to_pylist()}
            others = b.cast(b.type.value_type).value_counts().to_pylist()
            pairs = sum(counts.get(v["values"], 0) * v["counts"] for v in others if v["values"] is not None)
        else:
            left, count = np.unique(a[valid_a], return_counts=True)
            right, other = np.unique(b[valid_b], return_counts=True)
            _, at, to = np.intersect1d(left, right, assume_unique=True, return_indices=True)
            pairs = int(count[at] @ other[to])
        return float(max(pairs, 0.5) / max(n * m, 1))

    def _pairs(self, e: x.Expr) -> float:
        """On pairs that are near each other in time."""
        first, second = sorted(x.variables(e))
        a, b = self.buffers[first], self.buffers[second]
        rows_a = _some(a.row, SAMPLE)
        if self.keyed or self.plan.tree.window.kind == "count":
            places = self.random.integers(0, len(b.row), len(rows_a))
        else:
            ts, size = self.stream.ts[rows_a], self.plan.tree.window.size
            low, high = np.searchsorted(b.ts, ts - size), np.searchsorted(b.ts, ts + size, "right")
            near = low < high
            if not near.any():
                return 0.5
            rows_a, low, high = rows_a[near], low[near], high[near]
            places = low + (self.random.random(len(low)) * (high - low)).astype(np.int64)
        rows = {first: rows_a, second: b.row[places]}
        good = true_mask(e, lambda k: self.stream.values(k.attr, rows[k.var]), len(rows_a))
        return (float(good.sum()) + 0.25) / (len(good) + 0.5)

    def orders(self) -> dict[tuple[str, str], float]:
        """Of neighbours: ordered pairs within a window, against those that chance would give."""
        if self.keyed or self.plan.tree.window.kind == "count":
            return {}
        found, names = {}, list(self.buffers)
        for first, second in pairwise(names):
            a, b = self.buffers[first].ts, self.buffers[second].ts
            expected = len(a) * len(b) / self.windows
            factor = later_pairs(a, b, self.plan.tree.window.size, 200) / expected if expected else 1.0
            if not 1 / NEAR < factor < NEAR:
                found[first, second] = factor
        return found


def _keys(data: list[BufferData]) -> float:
    """How many keys the buffers are parted by, from what is at hand."""
    starts = [len(b.starts) - 1 for b in data if b.starts is not None]
    codes = [len(np.unique(_some(b.codes, 256))) for b in data[:1] if b.codes is not None]
    return float(max([*starts, *codes, 1]))


def _some(rows: Index, n: int) -> Index:
    """Some of the rows, evenly spread."""
    return rows if len(rows) <= n else rows[np.linspace(0, len(rows) - 1, n).astype(np.int64)]
