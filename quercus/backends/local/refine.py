"""Planning again from the data: once events are routed, their numbers are known, and conditions can be tried on some.

A plan that was compiled without statistics rests on defaults. Before it runs, the leaf buffers say how many events each
leaf has, and so about how long the plan may take. If that is worth it, conditions are tried on a sample of pairs, and
the operator is arranged again. That takes about half a millisecond in a plan's first run, when all code is cold.

What was found is remembered with the plan. A plan that runs a second time over about as many events is likely to run
again, so that it is looked at more closely then; from the third time on nothing is looked at.
"""

from __future__ import annotations

from math import prod
from typing import assert_never

import numpy as np
from attrs import evolve, frozen

from quercus.backends.base import Limits
from quercus.backends.local.buffers import spec_of
from quercus.backends.local.events import Events
from quercus.backends.local.sample import Sample, conditions
from quercus.backends.local.specs import BufferData, BufferSpec
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.observed import Observed
from quercus.plan import Plan

LEAST = 2e6  # nanoseconds that a plan may take, at a glance, from which a look costs little beside it
WHOLE = 5e6  # ... where the whole query must be planned again
ORDERED = 5e6  # ... that it takes, as far as is known then, from which the order of events is looked at too
GAIN = 2e5  # nanoseconds that another plan must be expected to save
PART = 0.1  # ... and this part of what the plan takes: costs are not known more exactly
AGAIN = 0.05  # of all these, when the plan runs for the second time
ALIKE = 1.25  # times as many events of each leaf, or as few, are as many as before
EACH = 6.0  # of them for a candidate of a stack
MOST_BYTES = float(1 << 30)  # what a tree may be expected to hold


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
    if not _is_open(plan.tree.root):
        return None
    windows = _windows(plan, stream)
    sizes = {spec: len(b.row) for spec, b in zip(wanted, data, strict=True)}
    keys = _keys(data)
    if _expected(plan.tree, sizes, windows, keys) < eager * (LEAST if plan.arranged is not None else WHOLE):
        return None
    allowed = MOST_BYTES if limits.max_state_bytes is None else min(MOST_BYTES, limits.max_state_bytes / 4)
    leaves = {(spec.accepts, spec.local): n / windows for spec, n in sizes.items()}
    declared = keys if plan.tree.partition_by else 1.0
    observed = Observed(leaves, len(stream) / windows, {}, {}, windows, declared, allowed)
    arranged = plan.arranged
    sample = Sample(plan.tree, stream, wanted, data, windows)
    observed = evolve(observed, selectivity=sample.selectivities(conditions(plan.tree.root)))
    said = f"{sum(sizes.values()):,} events in {len(sizes)} buffers"
    said += f", {len(observed.selectivity)} conditions tried on samples" if observed.selectivity else ""
    best = None
    if arranged is not None:
        arranged = arranged.renewed(observed)
        takes = arranged.cost(arranged.tree) * windows
        if takes >= eager * ORDERED:
            observed = evolve(observed, order=sample.orders())
            arranged = arranged.renewed(observed) if observed.order else arranged
            takes = arranged.cost(arranged.tree) * windows
        best = arranged.below((takes - max(eager * GAIN, PART * takes)) / windows)
        if best is None:
            kept = shown and arranged.alone and not arranged.arranger.negations
            return Again(plan.planned_again(observed, arranged) if kept else plan, f"{said}: the same")
        if shown and arranged.arranger.negations:
            best = None  # what is expected of negated bodies is shown as well
    else:
        observed = evolve(observed, order=sample.orders())
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


def _keys(data: list[BufferData]) -> float:
    """How many keys the buffers are parted by, from what is at hand."""
    starts = [len(b.starts) - 1 for b in data if b.starts is not None]
    codes = [len(np.unique(b.codes[:: -(-len(b.codes) // 256) or 1])) for b in data[:1] if b.codes is not None]
    return float(max([*starts, *codes, 1]))
