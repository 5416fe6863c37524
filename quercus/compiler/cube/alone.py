"""What a query costs by itself: the planner's model of a stack that runs along pointers, for sequences only.

It is asked for every query and every delta of a cube, with numbers that a run has just counted; so what does not depend
on numbers is prepared once. The planner's own model (`compiler.effort`) has more to choose from, and takes longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import Protocol

from attrs import frozen

from quercus.compiler.constants import CALIBRATED, Constants
from quercus.compiler.cube.conditions import Known
from quercus.compiler.cube.constants import CALIBRATED as CUBE
from quercus.compiler.cube.constants import CLEARLY, COUNTED, CubeConstants
from quercus.compiler.cube.rates import Rates
from quercus.compiler.cube.sequences import conditions, gaps
from quercus.compiler.cube.sizes import Barred, Size, Sizer
from quercus.compiler.cube.steps import Extent
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.pattern import Window
from quercus.ir.workload import Sequence
from quercus.plan import Plan

Types = tuple[str, ...]


class Alone(Protocol):
    """Rows of a query in the stretch, and nanoseconds to find them."""

    def rows(self, rates: Rates) -> float: ...

    def cost(self, rates: Rates) -> float: ...

    def is_barren(self, rates: Rates) -> bool:
        """Whether a component has no event, so that nothing has to be done."""
        ...

    def is_totalled(self, rates: Rates) -> bool:
        """Whether it is answered by running totals, and lists no matches that others could be computed from."""
        ...

    def is_counted(self, rates: Rates) -> bool:
        """Whether to count its matches by running totals takes next to nothing beside listing them."""
        ...


@frozen(eq=False)
class Level:
    """A component that is bound: what there is when it is, of how many candidates, and what each costs."""

    after: Size
    kept: float  # the part of candidates that the tests let pass
    each: float  # nanoseconds a candidate
    found: float  # nanoseconds for each that passes


@frozen(eq=False)
class Stacked:
    """A sequence bound component by component: the last, the first, then the rest."""

    levels: tuple[Level, ...]
    parts: tuple[Types, ...]
    leaves: tuple[tuple[Types, float], ...]  # nanoseconds an event
    whole: Size
    start: float
    write: float  # nanoseconds a result

    def rows(self, rates: Rates) -> float:
        return self.whole.rows(rates)

    def is_barren(self, rates: Rates) -> bool:
        return self.whole.is_barren(rates)

    def is_totalled(self, rates: Rates) -> bool:
        return False

    def is_counted(self, rates: Rates) -> bool:
        return self.running(rates) <= COUNTED * self.cost(rates)

    def running(self, rates: Rates) -> float:
        """By running totals: each event costs some steps for each component, however many matches it ends."""
        each = CALIBRATED.leaf + CUBE.total * len(self.whole.leaves)
        return CUBE.start + sum(rates.events(types) for types in self.parts) * each

    def cost(self, rates: Rates) -> float:
        if self.is_barren(rates):
            return 0.0
        work = self.start + sum([rates.events(types) * each for types, each in self.leaves])
        for level in self.levels:
            rows = level.after.rows(rates)
            work += rows / level.kept * level.each + rows * level.found
        return work + self.whole.rows(rates) * self.write


@frozen(eq=False)
class Totalled:
    """A sequence with AGG, totalled event by event, or, where matches are few, over the list of them."""

    listed: Stacked

    def rows(self, rates: Rates) -> float:
        return self.listed.rows(rates)

    def is_barren(self, rates: Rates) -> bool:
        return self.listed.is_barren(rates)

    def is_totalled(self, rates: Rates) -> bool:
        return not self.is_barren(rates) and self.listed.running(rates) <= CLEARLY * self.listed.cost(rates)

    def is_counted(self, rates: Rates) -> bool:
        return False

    def cost(self, rates: Rates) -> float:
        return self.listed.running(rates) if self.is_totalled(rates) else self.listed.cost(rates)


@frozen(eq=False)
class Planned:
    """A query that is no sequence: the planner's own estimate, of the statistics that it had."""

    tree: t.Tree
    window: Window
    totalled: bool

    def rows(self, rates: Rates) -> float:
        return self.tree.root.estimate.rows / rates.reach(self.window, ())

    def is_barren(self, rates: Rates) -> bool:
        return False

    def is_totalled(self, rates: Rates) -> bool:
        return self.totalled

    def is_counted(self, rates: Rates) -> bool:
        return False

    def cost(self, rates: Rates) -> float:
        return CUBE.start + (self.tree.cost - self.tree.routing) / rates.reach(self.window, ())


def is_totalled(plan: Plan) -> bool:
    """Whether a query can be answered by running totals."""
    return plan.tree.aggregation is not None and plan.tree.aggregation.strategy == "running"


def alone(plan: Plan, sequence: Sequence | str, sizer: Sizer, users: Mapping[Types, int]) -> Alone:
    """What a query costs alone. `users`: how many queries of the cube read the events of some types, which are brought
    together once for all of them.
    """
    if isinstance(sequence, str):
        return Planned(plan.tree, plan.query.window, is_totalled(plan))
    listed = stacked(Extent(sequence), sizer, users=users)
    return Totalled(listed) if is_totalled(plan) else listed


def stacked(
    extent: Extent, sizer: Sizer, c: CubeConstants = CUBE, users: Mapping[Types, int] = MappingProxyType({})
) -> Stacked:
    """What a sequence costs, and with a run that is not to be, the query of a delta."""
    return _Prepared(extent, sizer, users).stacked(c)


class _Prepared:
    """Which steps a stack takes for a sequence, level by level: only the numbers are missing."""

    def __init__(self, extent: Extent, sizer: Sizer, users: Mapping[Types, int], c: Constants = CALIBRATED) -> None:
        self.extent, self.sizer, self.c = extent, sizer, c
        self.s = extent.sequence
        self.positive, self.between, self.asked = self.s.positive, gaps(self.s), conditions(self.s)
        self.n = len(self.positive)
        self.model = sizer.model(self.s.parts, self.s.window)
        keyed = _has_key(self.s)
        self.tests = [e for e in self.asked if len(x.variables(e)) > 1 and not (keyed and x.is_equality(e))]
        self.leaves = [
            (part.accepts, (c.leaf + c.filter * len(part.where)) / users.get(part.accepts, 1) + 2 * c.point)
            for part in self.s.parts
        ]
        self.limited = self.n > 1 and bool(self.between[self.n - 1])  # no range goes out as a whole

    def stacked(self, c: CubeConstants) -> Stacked:
        order = [self.n - 1, *range(self.n - 1)]
        levels, bound = [], set[int]()
        for place, i in enumerate(order):
            bound.add(i)
            levels.append(self.level(place, i, bound, order[-1], c))
        size = self.sizer.size(self.extent)
        parts = tuple(part.accepts for part in self.s.parts)
        return Stacked(tuple(levels), parts, tuple(self.leaves), size, c.start, self.n * c.write)

    def level(self, place: int, i: int, bound: set[int], last: int, own: CubeConstants) -> Level:
        c, names = self.c, {self.positive[j].var for j in bound}
        here = [e for e in self.tests if self.positive[i].var in x.variables(e) and x.variables(e) <= names]
        barred, refused = self.refused(i, bound)
        inside = Known().rest(e for e in self.asked if x.variables(e) <= names)
        size = Size(
            tuple(self.positive[j].accepts for j in sorted(bound)),
            prod(self.model.selectivity(e) for e in inside),
            self.s.window,
            self.s.partition_by,
            tuple(barred),
        )
        found = 0.0
        if place == 0:
            each = c.open
        elif place == self.n - 1 and self.is_free(i) and not refused and not self.limited:
            each = own.single if self.between[last] else c.pair * (place + 1) / 2
        elif place == self.n - 2 and self.is_free(i) and self.is_free(last) and not self.limited:
            each = c.open
        else:
            each = c.follow + c.test * len(here) if here else own.step
            found = c.emit * (place + 1) if place == self.n - 1 else 0.0
        kept = max(prod(self.model.selectivity(e) for e in here), 1e-9)
        return Level(size, kept, each + refused, found)

    def is_free(self, i: int) -> bool:
        return not any(self.positive[i].var in x.variables(e) for e in self.tests)

    def refused(self, i: int, bound: set[int]) -> tuple[list[tuple[Barred, ...]], float]:
        """What negations bar when so much is bound, and what those cost that are tested for each candidate.

        Between neighbours a negation is a pointer for each event of the first, unless values tie it to the match.
        """
        barred, refused, whole = [], 0.0, len(bound) == self.n
        for g, parts in enumerate(self.between):
            inner = 0 < g < self.n
            if not parts or not ({g - 1, g} <= bound if inner else whole):
                continue
            barred.append(tuple(self.sizer.barred(part, self.s, self.model) for part in parts))
            if inner and i not in (g - 1, g):
                continue  # it was tested before
            for part in parts:
                if inner and not part.ties:
                    self.leaves.append((self.positive[g - 1].accepts, self.c.point))
                else:
                    refused += self.c.probe
        run = self.extent.run
        if run is not None and whole:
            if 0 < run.gap < self.n and not run.asked:
                self.leaves.append((self.positive[run.gap - 1].accepts, self.c.point * len(run.parts)))
            else:
                refused += self.c.probe * len(run.parts)
        return barred, refused


def _has_key(s: Sequence) -> bool:
    """Whether all events of a match agree on an attribute each, so that keys are matched one by one."""
    positive = s.positive
    if len(positive) < 2:
        return False
    tied: dict[str, set[str]] = {}
    for e in conditions(s):
        if x.is_equality(e):
            one, other = sorted(x.variables(e))
            tied.setdefault(one, set()).add(other)
            tied.setdefault(other, set()).add(one)
    found, todo = {positive[0].var}, [positive[0].var]
    while todo:
        for v in tied.get(todo.pop(), ()):
            if v not in found:
                found.add(v)
                todo.append(v)
    return len(found) == len(positive)
