"""Planning again from the data: once events are routed, their numbers are known, and conditions can be tried on some.

A plan that was compiled without statistics rests on defaults. Before it runs, the leaf buffers say how many events each
leaf has. If the run will take long enough to be worth it, every operator is arranged again; if it will take longer
still, a sample of pairs says before what passes a condition.

What was found is remembered with the plan. A plan that runs a second time over about as many events is likely to run
again, so that it is looked at more closely then; from the third time on nothing is looked at.
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

LEAST = 6e5  # nanoseconds that a plan may take, at a glance, from which it is worth a closer look
WORTH = 2.5e6  # nanoseconds that a plan is expected to take, from which looking for a better one costs little beside it
SAMPLED = 5e6  # ... from which looking at samples does
GAIN = 3e5  # nanoseconds that another plan must be expected to save
PART = 0.1  # ... and this part of what the plan takes: costs are not known more exactly
AGAIN = 0.05  # of all these, when the plan runs for the second time
ALIKE = 1.25  # times as many events of each leaf, or as few, are as many as before
EACH = 6.0  # of them for a candidate of a stack
SAMPLE = 512  # pairs that a condition is tried on
VALUES = 512  # events of each side whose values are counted for an equality
NEAR = 1.25  # an order that departs from chance by less is chance
MOST_BYTES = float(1 << 30)  # what a tree may be expected to hold

Index = NDArray[np.int64]


@frozen
class Again:
    """A plan made from the data, or one that the data confirm, and what that rests on."""

    plan: Plan
    note: str


@frozen
class Remembered:
    """What was planned for so many events of each leaf, after so many runs."""

    sizes: tuple[float, ...]
    limit: int | None
    runs: int
    again: Again | None

    def is_alike(self, sizes: tuple[float, ...], limit: int | None) -> bool:
        near = all(a <= ALIKE * b + 8 and b <= ALIKE * a + 8 for a, b in zip(self.sizes, sizes, strict=True))
        return near and self.limit == limit


def remembered(
    plan: Plan, stream: Events, wanted: list[BufferSpec], data: list[BufferData], limits: Limits
) -> Again | None:
    """The plan for these events, as `refined` gives it, or gave it for others like them."""
    if plan.options.shape != "auto" or plan.options.stats is not None:
        return None
    sizes = (_windows(plan, stream), *(float(len(b.row)) for b in data))
    before: Remembered | None = plan.made.get("refined")
    alike = before is not None and before.is_alike(sizes, limits.max_state_bytes)
    if alike and before is not None and before.runs > 1:
        return before.again
    runs, eager = (2, AGAIN) if alike else (1, 1.0)
    again = refined(plan, stream, wanted, data, limits, eager)
    plan.made["refined"] = Remembered(sizes, limits.max_state_bytes, runs, again)
    return again


def refined(
    plan: Plan,
    stream: Events,
    wanted: list[BufferSpec],
    data: list[BufferData],
    limits: Limits,
    eager: float = 1.0,
    *,
    shown: bool = False,
) -> Again | None:
    """The plan for these events; None: it was not left to the planner, or there is too little to gain.

    `eager`: as a part of what is usual, what a run must take to be worth a look. `shown`: a plan that stays as it is
    says what is expected by these events.
    """
    if plan.options.shape != "auto" or plan.options.stats is not None:
        return None
    windows = _windows(plan, stream)
    sizes = {spec: len(b.row) for spec, b in zip(wanted, data, strict=True)}
    keys = _keys(data)
    at_a_glance = _expected(plan.tree, sizes, windows, keys) if _is_open(plan.tree.root) else 0.0
    if at_a_glance < eager * (LEAST if plan.arranged is not None else SAMPLED):
        return None
    allowed = MOST_BYTES if limits.max_state_bytes is None else min(MOST_BYTES, limits.max_state_bytes / 4)
    leaves = {(spec.accepts, spec.local): n / windows for spec, n in sizes.items()}
    declared = keys if plan.tree.partition_by else 1.0
    observed = Observed(leaves, len(stream) / windows, {}, {}, windows, declared, allowed)
    said = f"{sum(sizes.values()):,} events in {len(sizes)} buffers"
    sample = Sample(plan, stream, wanted, data, windows)
    observed = evolve(observed, selectivity=sample.selectivities(equal=True))
    arranged = None if plan.arranged is None else plan.arranged.renewed(observed)
    takes = float("inf") if arranged is None else arranged.cost(arranged.tree) * windows
    if takes < eager * WORTH:
        return None
    if takes >= eager * SAMPLED:
        tried = {**observed.selectivity, **sample.selectivities(equal=False)}
        observed = evolve(observed, selectivity=tried, order=sample.orders())
        if arranged is not None:
            arranged = arranged.renewed(observed)
            takes = arranged.cost(arranged.tree) * windows
    said += f", {len(observed.selectivity)} conditions tried on samples" if observed.selectivity else ""
    best = None
    if arranged is not None:
        best, least = arranged.best()
        if takes - least * windows < max(eager * GAIN, PART * takes):
            kept = shown and isinstance(plan.tree.root, t.Stack | t.Join) and not arranged.arranger.negations
            return Again(plan.planned_again(observed, arranged) if kept else plan, f"{said}: the same")
    again = plan.planned_again(observed, best)
    same = "the same" if again.tree.shape == plan.tree.shape else f"{again.tree.shape} instead of {plan.tree.shape}"
    return Again(again, f"{said}: {same}")


def _is_open(root: t.Node) -> bool:
    """Whether a stack could be worse than a tree: one along pointers that nothing tests never is."""
    if not isinstance(root, t.Stack) or root.op != "SEQ":
        return True
    return any(
        s.equal or s.where or s.negations or not isinstance(s.component, t.Buffer) or s.component.most not in (None, 1)
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
        self.keyed = any(b.codes is not None or b.starts is not None for b in data)

    def selectivities(self, *, equal: bool) -> dict[x.Expr, float]:
        """The part of pairs that pass, of each condition on two variables: of equalities, or of the others."""
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
                if len(names) == 2 and there and is_local(c.expr) and x.is_equality(c.expr) is equal:
                    found[c.expr] = self._equality(c.expr) if equal else self._pairs(c.expr)
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
            left, right = a[valid_a], np.sort(b[valid_b])
            pairs = int((right.searchsorted(left, "right") - right.searchsorted(left, "left")).sum())
        return float(max(pairs, 0.5) / max(n * m, 1))

    def _pairs(self, e: x.Expr) -> float:
        """On pairs that are near each other in time."""
        first, second = sorted(x.variables(e))
        a, b = self.buffers[first], self.buffers[second]
        rows_a = _some(a.row, SAMPLE)
        if self.keyed or self.plan.tree.window.kind == "count":
            places = (_even(len(rows_a)) * len(b.row)).astype(np.int64)
        else:
            ts, size = self.stream.ts[rows_a], self.plan.tree.window.size
            low, high = np.searchsorted(b.ts, ts - size), np.searchsorted(b.ts, ts + size, "right")
            near = low < high
            if not near.any():
                return 0.5
            rows_a, low, high = rows_a[near], low[near], high[near]
            places = low + (_even(len(low)) * (high - low)).astype(np.int64)
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


def _even(n: int) -> NDArray[np.float64]:
    """Numbers from 0 up to 1 that are evenly spread, and in no order."""
    found: NDArray[np.float64] = np.modf(np.arange(1, n + 1) * 0.6180339887498949)[0]
    return found


def _keys(data: list[BufferData]) -> float:
    """How many keys the buffers are parted by, from what is at hand."""
    starts = [len(b.starts) - 1 for b in data if b.starts is not None]
    codes = [len(np.unique(_some(b.codes, 256))) for b in data[:1] if b.codes is not None]
    return float(max([*starts, *codes, 1]))


def _some(rows: Index, n: int) -> Index:
    """Some of the rows, evenly spread."""
    return rows if len(rows) <= n else rows[np.linspace(0, len(rows) - 1, n).astype(np.int64)]
