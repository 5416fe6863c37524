"""Pattern windows over a stream that is at hand as a whole: several of them in one pass."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import frozen

from quercus.backends.base import Limits
from quercus.backends.local.events import Events
from quercus.backends.local.joins import STATE_BYTES
from quercus.backends.local.pool import shared
from quercus.backends.local.specs import ColumnData, Index, Program
from quercus.backends.local.windows.closed import Closed, Counts, Found, of_events, offsets_of
from quercus.backends.local.windows.columns import Columns
from quercus.backends.local.windows.conditions import Key
from quercus.backends.local.windows.plan import WindowPlan, plan_of
from quercus.backends.local.windows.program import programs_of
from quercus.backends.local.windows.steps import Groups, Steps, groups_of, steps_of
from quercus.backends.local.windows.taken import Taken
from quercus.errors import LimitExceeded
from quercus.ir import expr as x
from quercus.ir.window import PatternWindow, conditions
from quercus.kernels import ranges, windows

WORTH = 2**16  # steps that make one more thread worth its start
_NONE = np.empty(0, np.int64)


def closed_windows(w: PatternWindow, events: Events, limits: Limits, threads: int = 1) -> Closed:
    """The windows that close, with positions in the stream."""
    return several([w], events, limits, threads)[0]


def several(ws: Sequence[PatternWindow], events: Events, limits: Limits, threads: int = 1) -> list[Closed]:
    """Several pattern windows over one stream, in one pass over its tuples: conditions that they have in common are
    looked at once, keys looked up once, columns loaded once. Each gives what it would give alone.
    """
    return _Run([plan_of(w) for w in ws], events, limits, threads).closed()


@frozen(eq=False)
class _One:
    """One of the windows: what it looks at, and where its tuples are kept."""

    plan: WindowPlan
    steps: Steps
    keeping: int

    @property
    def asking(self) -> bool:
        """Flags do not say all."""
        return self.steps.spread or not self.plan.alike

    @property
    def own(self) -> bool | None:
        return not self.steps.spread if self.asking else None


class _Run:
    def __init__(self, plans: list[WindowPlan], events: Events, limits: Limits, threads: int) -> None:
        self.columns = Columns(events, [e for p in plans for e in conditions(p.window)])
        self.limits, self.threads = limits, threads
        self.until = None if limits.max_seconds is None else time.monotonic() + limits.max_seconds
        self.ones = [self._one(p) for p in plans]

    def _one(self, p: WindowPlan) -> _One:
        steps = steps_of(p, self.columns, lean=p.ranged)
        if steps.loose and p.ranged and p.alike:  # these keep what they take in by themselves, and the others with them
            steps = steps_of(p, self.columns, lean=False)
        keeping = windows.BY_GROUP if p.ranged or p.alike else windows.BY_WINDOW
        if p.ranged and not steps.loose:
            keeping = windows.NOWHERE
        return _One(p, steps, keeping)

    def closed(self) -> list[Closed]:
        return [self._closed(one, found) for one, found in zip(self.ones, self._found(), strict=True)]

    def _closed(self, one: _One, found: Found) -> Closed:
        close, first, iter_, num, tuples = found
        counts: Counts = (lambda: iter_, lambda: num, lambda: tuples)
        if one.keeping == windows.NOWHERE:
            taken = Taken(one.plan, self.columns, close, first)
            counts = (taken.iter, taken.num, taken.tuples) if one.plan.alike else (*counts[:2], taken.tuples)
        return of_events(close, first, self.columns.events, counts)

    def _found(self) -> list[Found]:
        self._learn_keys()
        groups = [groups_of(one.plan, self.columns, one.steps) for one in self.ones]
        programs = programs_of([o.plan for o in self.ones], self.columns.events.schema, [o.own for o in self.ones])
        loaded = self.columns.filled(programs)
        parts = [self._parts(one) for one in self.ones]
        tasks: list[list[windows.Pass]] = [[] for _ in range(max(parts, default=1))]
        if len(self.ones) > 1 and self.threads > 1 and sum(len(o.steps.at) for o in self.ones) >= 2 * WORTH:
            tasks += [[] for _ in range(self.threads - len(tasks))]
        mine: list[list[windows.Windows | windows.Pairs]] = []
        for one, group, preds, count in zip(self.ones, groups, programs.preds, parts, strict=True):
            made = [self._pass(one, group, preds, programs.program, loaded, i, count) for i in range(count)]
            mine.append(made)
            for i, p in enumerate(made):  # one that is whole goes where least is
                task = tasks[i] if count > 1 else min(tasks, key=len)
                task.append(p)
        self._pass_over([t for t in tasks if t])
        return [self._merged(made) for made in mine]

    def _learn_keys(self) -> None:
        """Look keys that several windows have up once."""
        asked: dict[tuple[tuple[x.Expr, ...], tuple[Key, ...]], list[Index]] = {}
        for one in self.ones:
            keys = one.plan.keys
            for parts in {tuple(k.here for k in keys), tuple(k.first for k in keys)}:
                asked.setdefault((parts, keys), []).append(one.steps.at)
        for (parts, keys), at in asked.items():
            if len(at) > 1 and parts:
                self.columns.learn(parts, keys, at)

    def _parts(self, one: _One) -> int:
        """How many threads share the keys of a window."""
        if not one.plan.keys or one.plan.alike:
            return 1
        return max(1, min(self.threads, len(one.steps.at) // WORTH if WORTH else self.threads))

    def _pass(
        self,
        one: _One,
        groups: Groups,
        preds: tuple[tuple[int, int] | None, ...],
        program: Program,
        loaded: tuple[list[ColumnData], Index],
        part: int,
        parts: int,
    ) -> windows.Windows | windows.Pairs:
        s, ends = one.steps, self.columns.ends()
        left, state = _left(self.until), state_bytes(self.limits) // parts
        most = self.limits.max_matches
        if one.keeping == windows.NOWHERE and not one.asking and groups.homes is groups.codes and not len(ends):
            return windows.Pairs(s.at, groups.codes, s.flags, groups.count, most, left, state)
        columns, constants = loaded
        made = windows.Windows(program.code, preds, program.const_f, len(columns), one.plan.alike, one.keeping)
        made.load(len(self.columns), columns, constants)
        made.begin(
            *(s.at, groups.codes, groups.homes, s.flags, ends, 0, 0, groups.count, most, left, state, part, parts)
        )
        return made

    def _pass_over(self, tasks: list[list[windows.Pass]]) -> None:
        """One pass a thread."""
        passes = [p for task in tasks for p in task]
        state = state_bytes(self.limits) // len(tasks)

        def stop() -> None:
            for p in passes:
                p.cancel()

        def run(task: list[windows.Pass]) -> None:
            if windows.together(task, len(self.columns), state) != windows.OK:
                stop()

        shared([partial(run, task) for task in tasks], len(tasks), stop)
        told = [p.status for p in passes if p.status != windows.OK]
        check(min((t for t in told if t != windows.STOPPED), default=told[0] if told else windows.OK), self.limits)

    def _merged(self, passes: list[windows.Windows | windows.Pairs]) -> Found:
        if isinstance(passes[0], windows.Pairs):
            _, close, first = passes[0].finish()
            return close, first, _NONE, _NONE, _NONE
        answers = [p.finish() for p in passes]
        merged: Found = answers[0][1:]  # type: ignore[assignment]
        if len(answers) > 1:
            merged = tuple(np.concatenate([a[i] for a in answers]) for i in range(1, 6))  # type: ignore[assignment]
            if len(merged[0]) > self.limits.max_matches:
                check(windows.TOO_MANY, self.limits)
        if len(answers) > 1 or any(p.mixed for p in passes):  # type: ignore[union-attr]
            merged = ordered(merged)
        return merged


def _left(until: float | None) -> int:
    """Nanoseconds; -1: no limit."""
    return -1 if until is None else max(0, int((until - time.monotonic()) * 1e9))


def state_bytes(limits: Limits) -> int:
    return STATE_BYTES if limits.max_state_bytes is None else limits.max_state_bytes


def ordered(found: Found) -> Found:
    """By closing, then by opening."""
    close, first, iter_, num, tuples = found
    order = np.lexsort((first, close))
    if len(tuples):
        offsets = offsets_of(num)
        tuples = ranges.elements(tuples, offsets[:-1][order], offsets[1:][order])
    return close[order], first[order], iter_[order], num[order], tuples


def check(status: int, limits: Limits) -> None:
    """Raise what a run that could not go on has to say."""
    if status == windows.OK:
        return
    if status == windows.TOO_MANY:
        raise LimitExceeded(
            f"more closed windows than the limit of {limits.max_matches:,}: add conditions, "
            "or raise Limits(max_matches=)",
            limit="max_matches",
            value=limits.max_matches,
        )
    if status == windows.TOO_LONG:
        raise LimitExceeded(
            f"not done after {limits.max_seconds} s: raise Limits(max_seconds=)",
            limit="max_seconds",
            value=limits.max_seconds,
        )
    if status == windows.TOO_MUCH_STATE:
        most = state_bytes(limits)
        raise LimitExceeded(
            f"open windows and their tuples hold more than {most:,} bytes: let the iteration condition drop windows "
            "that cannot close, or raise Limits(max_state_bytes=)",
            limit="max_state_bytes",
            value=most,
        )
    if status == windows.NO_MEMORY:
        raise LimitExceeded("no memory left for open windows", limit="memory")
    raise KeyboardInterrupt
