"""What reuse costs: the paper's equations 4 to 11, over the actions that the engine has.

Equation 4 (join with one more component) is `Insert`, 5 and 7 (what is barred) `Forbid`, 6 (concepts read again)
`Retype`, 9 (reuse and delta) `Project` and `Add`, 10 the deltas of `Add`; 8 and 11, the cheapest query between, is the
least of several ways. A source without results costs nothing to reuse.
"""

from __future__ import annotations

from math import inf
from typing import assert_never

from attrs import evolve, frozen

from quercus.compiler.cube.alone import Stacked, stacked
from quercus.compiler.cube.constants import CALIBRATED, FEW, LISTED, CubeConstants
from quercus.compiler.cube.rates import Rates
from quercus.compiler.cube.reuse import Way
from quercus.compiler.cube.sizes import Size, Sizer
from quercus.compiler.cube.steps import DeltaSteps, Step
from quercus.ir.workload import Add, Forbid, Insert, Keep, Narrow, Project, Rename, Retype


@frozen(eq=False)
class PricedStep:
    """An action with the sizes that its cost depends on; no size: as many results as before."""

    after: Size | None
    grows: bool  # or never has more results than before
    act: float  # nanoseconds at all
    each: float  # ... a result before it
    found: float  # ... a result after it
    searched: float  # ... a result before it, where there are few
    table: float  # ... an event of the stream, where there are many
    deltas: tuple[PricedDelta, ...]

    def cost(self, before: float, rates: Rates) -> tuple[float, float]:
        """Nanoseconds, and the results after it."""
        if not before and not self.deltas:
            return 0.0, 0.0
        if self.adds_nothing(rates):
            return self.act + sum(d.cost(rates) for d in self.deltas), before
        rows = before if self.after is None else self.after.rows(rates)
        if not self.grows:
            rows = min(rows, before)
        few = before * FEW < rates.total
        work = self.act + before * (self.each + (self.searched if few else 0.0)) + rows * self.found
        work += 0.0 if few else rates.total * self.table
        for d in self.deltas:
            work += d.cost(rates)
        return work, rows

    def adds_nothing(self, rates: Rates) -> bool:
        """Whether deltas have no events to be made of: then results stay as they are."""
        return bool(self.deltas) and not any(d.alone.rows(rates) for d in self.deltas)


@frozen(eq=False)
class PricedDelta:
    alone: Stacked
    steps: tuple[PricedStep, ...]

    def cost(self, rates: Rates) -> float:
        return self.alone.cost(rates) + _followed(self.steps, self.alone.rows(rates), rates)[0]


@frozen(eq=False)
class PricedWay:
    """A way from a source, and what it takes beside the source's own cost."""

    way: Way
    steps: tuple[PricedStep, ...]
    write: float  # nanoseconds a result, in the end

    def cost(self, source: float, rates: Rates, most: float = inf) -> float:
        """Nanoseconds; infinitely many, if they would be more than `most`."""
        work, rows = _followed(self.steps, source, rates, most)
        if not all(step.adds_nothing(rates) for step in self.steps):  # else they are the source's own
            work += rows * self.write
        return work if work <= most else inf


def _followed(steps: tuple[PricedStep, ...], rows: float, rates: Rates, most: float = inf) -> tuple[float, float]:
    work = 0.0
    for step in steps:
        more, rows = step.cost(rows, rates)
        work += more
        if work > most:
            return inf, rows
    return work, rows


def priced(way: Way, columns: int, sizer: Sizer, c: CubeConstants = CALIBRATED) -> PricedWay:
    """A way with all that its cost depends on but the numbers of events. Without columns results are only counted."""
    steps, last = _steps(way.steps, sizer, c), _last_insert(way)
    if last is not None and not columns:  # ranges say how many they are
        steps = (*steps[:-1], evolve(steps[-1], each=c.insert, found=0.0))
    return PricedWay(way, steps, columns * LISTED * (c.write if last is not None and _is_last(last) else c.gather))


def _last_insert(way: Way) -> Step | None:
    """The last step, if it leaves ranges of events that nobody has listed yet. At the end of a match, these are then
    listed event by event, in the order of the answer: as the engine writes what it finds.
    """
    last = next((s for s in reversed(way.steps) if not isinstance(s.action, Rename)), None)
    return last if last is not None and isinstance(last.action, Insert) and not last.action.where else None


def _steps(steps: tuple[Step, ...], sizer: Sizer, c: CubeConstants) -> tuple[PricedStep, ...]:
    return tuple(_step(s, sizer, c) for s in steps if not isinstance(s.action, Rename))


def _step(step: Step, sizer: Sizer, c: CubeConstants) -> PricedStep:
    size = None if step.after is None else sizer.size(step.after)
    each, found = _unit(step, c)
    looks = isinstance(step.action, Insert | Forbid | Narrow)
    deltas = tuple(_delta(d, sizer, c) for d in step.deltas)
    grows = isinstance(step.action, Insert | Add)
    search, table = (c.search, c.table) if looks else (0.0, 0.0)
    return PricedStep(size, grows, c.act, each, found, search, table, deltas)


def _delta(d: DeltaSteps, sizer: Sizer, c: CubeConstants) -> PricedDelta:
    return PricedDelta(stacked(d.alone, sizer, c), _steps(d.steps, sizer, c))


def ends_later(way: Way) -> bool:
    """Whether a component is inserted at the end, for which the source is put into another order."""
    return any(_is_last(step) for step in way.steps)


def _is_last(step: Step) -> bool:
    if not isinstance(step.action, Insert) or step.after is None:
        return False
    return step.action.place == len(step.after.sequence.positive) - 1


def _unit(step: Step, c: CubeConstants) -> tuple[float, float]:
    """Nanoseconds for each result before an action, and for each after it."""
    match step.action:
        case Rename():
            return 0.0, 0.0
        case Retype():
            return c.retype, 0.0
        case Narrow():
            return c.narrow, 0.0
        case Forbid(part=part):
            return (c.tied if part.ties else c.forbid), 0.0
        case Keep(where=where):
            return c.keep * len(where), 0.0
        case Insert(where=where):
            last = _is_last(step)
            found = c.result + c.trying * len(where)
            return (c.insert + c.reorder, found + c.behind) if last else (c.insert, found)
        case Project():
            return c.project, 0.0
        case Add():
            return 0.0, c.merge
        case _:
            assert_never(step.action)
