"""What reuse costs: the paper's equations 4 to 11, over the actions that the engine has.

Equation 4 (join with one more component) is `Insert`, 5 and 7 (what is barred) `Forbid`, 6 (concepts read again)
`Retype`, 9 (reuse and delta) `Project` and `Add`, 10 the deltas of `Add`; 8 and 11, the cheapest query between, is the
least of several ways. A source without results costs nothing to reuse.
"""

from __future__ import annotations

from math import inf
from typing import assert_never

from attrs import frozen

from quercus.compiler.cube.alone import Stacked, stacked
from quercus.compiler.cube.constants import CALIBRATED, CubeConstants
from quercus.compiler.cube.rates import Rates
from quercus.compiler.cube.reuse import Way
from quercus.compiler.cube.sizes import Size, Sizer
from quercus.compiler.cube.steps import DeltaSteps, Step
from quercus.ir.workload import Action, Add, Forbid, Insert, Keep, Narrow, Project, Rename, Retype


@frozen(eq=False)
class PricedStep:
    """An action with the sizes that its cost depends on; None: as many results as before."""

    action: Action
    after: Size | None
    each: float  # nanoseconds a result before it
    found: float  # nanoseconds a result after it
    deltas: tuple[PricedDelta, ...]

    def cost(self, before: float, rates: Rates) -> tuple[float, float]:
        """Nanoseconds, and the results after it."""
        rows = before if self.after is None else self.after.rows(rates)
        if not self.deltas:
            rows = min(rows, before) if not isinstance(self.action, Insert) else rows if before else 0.0
        work = before * self.each + rows * self.found + (CALIBRATED.act if before or self.deltas else 0.0)
        return work + sum(d.cost(rates) for d in self.deltas), rows


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
    columns: int  # of the query

    def cost(self, source: float, rates: Rates, most: float = inf, c: CubeConstants = CALIBRATED) -> float:
        """Nanoseconds; infinitely many, if they would be more than `most`."""
        work, rows = _followed(self.steps, source, rates, most)
        work += rows * self.columns * c.write
        return work if work <= most else inf


def _followed(steps: tuple[PricedStep, ...], rows: float, rates: Rates, most: float = inf) -> tuple[float, float]:
    work = 0.0
    for step in steps:
        more, rows = step.cost(rows, rates)
        work += more
        if work > most:
            return inf, rows
    return work, rows


def priced(way: Way, columns: int, sizer: Sizer) -> PricedWay:
    """A way with all that its cost depends on but the numbers of events."""
    return PricedWay(way, _steps(way.steps, sizer), columns)


def _steps(steps: tuple[Step, ...], sizer: Sizer) -> tuple[PricedStep, ...]:
    return tuple(_step(s, sizer) for s in steps)


def _step(step: Step, sizer: Sizer) -> PricedStep:
    size = None if step.after is None or isinstance(step.action, Rename) else sizer.size(step.after)
    each, found = _unit(step)
    return PricedStep(step.action, size, each, found, tuple(_delta(d, sizer) for d in step.deltas))


def _delta(d: DeltaSteps, sizer: Sizer) -> PricedDelta:
    return PricedDelta(stacked(d.alone, sizer), _steps(d.steps, sizer))


def _unit(step: Step, c: CubeConstants = CALIBRATED) -> tuple[float, float]:
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
        case Insert(where=where, place=place):
            last = step.after is not None and place == len(step.after.sequence.positive) - 1
            return c.insert + (c.reorder if last else 0.0), c.result + c.trying * len(where)
        case Project():
            return c.project, 0.0
        case Add():
            return 0.0, c.merge
        case _:
            assert_never(step.action)
