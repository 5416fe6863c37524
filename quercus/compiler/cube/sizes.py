"""How many results a sequence has, from how many events there are: prepared once, asked often.

Events come independently of each other. So m ordered ones of a window that is a part f of the stretch are all
combinations times f^(m-1) (m - (m-1) f) / m!; and of the window, each gap between two, as well as what is left of it,
is distributed like every other, so that a negation with k events in a window lets 1F1(1; m; -k) of them through.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, factorial, prod

from attrs import astuple, frozen

from quercus.compiler.cost import Model
from quercus.compiler.cube.conditions import Known
from quercus.compiler.cube.deltas import Run
from quercus.compiler.cube.rates import Rates
from quercus.compiler.cube.sequences import asked_of, conditions, gaps
from quercus.compiler.cube.steps import Extent
from quercus.ir import expr as x
from quercus.ir.pattern import Window
from quercus.ir.workload import Part, Sequence
from quercus.stats import Stats

Types = tuple[str, ...]
Barred = tuple[tuple[Types, float], ...]  # events that must come one after the other in a gap, and the part that passes


_MOST = 1e250  # results; beyond, costs would be no numbers


@frozen(eq=False)
class Size:
    """Results of ordered events: all combinations, the part of them that conditions let pass, and what is barred."""

    leaves: tuple[Types, ...]
    kept: float
    window: Window
    partition_by: tuple[str, ...]
    barred: tuple[tuple[Barred, ...], ...]  # in one gap each
    run: Barred | None = None  # what must stand beside, once or more; or must not
    there: bool = True

    def rows(self, rates: Rates) -> float:
        """So many of them. Many ways lead by the same results, so that each is asked for often, and known once."""
        known = rates.sizes.get(self)
        if known is None:
            known = rates.sizes[self] = self._rows(rates)
        return known

    def is_barren(self, rates: Rates) -> bool:
        """Whether one of the components has no event at all."""
        return not all(rates.events(leaf) for leaf in self.leaves)

    def _rows(self, rates: Rates) -> float:
        found = min(self.kept * prod([rates.events(leaf) for leaf in self.leaves]), _MOST)
        if not found:
            return 0.0
        m, reach = len(self.leaves), rates.reach(self.window, self.partition_by)
        found *= reach ** (m - 1) * (m - (m - 1) * reach) / factorial(m)
        if self.partition_by:
            found /= rates.keys(self.partition_by) ** (m - 1)
        for gap in self.barred:
            found *= passing(sum(self._often(b, rates, reach) for b in gap), m)
        if self.run is not None:
            without = passing(self._often(self.run, rates, reach), m)
            found *= 1 - without if self.there else without
        return min(found, _MOST)

    def _often(self, barred: Barred, rates: Rates, reach: float) -> float:
        """How often events come one after the other in a window: those that take the longest to wait for decide."""
        found = 0.0
        for types, kept in barred:
            n = rates.events(types) * kept * reach
            if self.partition_by:
                n /= rates.keys(self.partition_by)
            if n <= 0:
                return 0.0
            found += 1 / n
        return 1 / found


def passing(often: float, m: int) -> float:
    """The part of the gaps beside m events that hold none of so many in a window: 1F1(1; m; -often)."""
    if often <= 0:
        return 1.0
    if often < m + 8:
        term = total = 1.0
        for k in range(60):
            term *= -often / (m + k)
            total += term
            if abs(term) < 1e-12:
                break
        return min(max(total, 0.0), 1.0)
    found = exp(-often)
    for k in range(2, m + 1):
        found = (k - 1) / often * (1 - found)
    return found


class Sizer:
    """Prepares sizes: selectivities are asked for once, and what is as large is one size."""

    def __init__(self, stats: Stats | None) -> None:
        self.stats = stats
        self._made: dict[tuple[object, ...], Size] = {}

    def model(self, parts: Iterable[Part], window: Window) -> Model:
        return Model(window, self.stats, {c.var: c.accepts for c in parts})

    def size(self, extent: Extent) -> Size:
        s, run = extent.sequence, extent.run
        model = self.model((*s.parts, *(run.parts if run is not None else ())), s.window)
        kept = prod(model.selectivity(c) for c in Known().rest(conditions(s)))
        made = Size(
            tuple(c.accepts for c in s.positive),
            kept,
            s.window,
            s.partition_by,
            tuple(tuple(self.barred(c, s, model) for c in g) for g in gaps(s) if g),
            self._of_run(run, s, model) if run is not None else None,
            extent.there,
        )
        return self._made.setdefault(astuple(made, recurse=False), made)

    def barred(self, part: Part, s: Sequence, model: Model) -> Barred:
        asked = Known(conditions(s)).rest(asked_of(part))
        return ((part.accepts, prod(model.selectivity(c) for c in asked)),)

    def _of_run(self, run: Run, s: Sequence, model: Model) -> Barred:
        """Components of a run, each with what ties it to those before it and to the match."""
        known, left = Known(conditions(s)), list(run.asked)
        found, seen = [], {c.var for c in s.positive}
        for c in run.parts:
            if c.negated:
                continue
            seen.add(c.var)
            here = [e for e in left if x.variables(e) <= seen]
            left = [e for e in left if e not in here]
            found.append((c.accepts, prod(model.selectivity(e) for e in known.rest(here))))
        return tuple(found)
