"""Who plans the queries of a live cube, again and again: by what is seen of it, and when queries come and go."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from quercus.compiler.cube.order import ordering, prices
from quercus.compiler.cube.rates import Rates
from quercus.compiler.cube.workload import Workload
from quercus.ir.workload import Ordering, Strategy
from quercus.plan import Plan
from quercus.stats import Stats

Counts = Mapping[tuple[str, ...], int]


@frozen(eq=False)
class Planning:
    """The queries of a cube, the strategy, and how more of them are compiled."""

    workload: Workload
    share: Strategy
    stats: Stats | None
    compiled: Callable[[str, str], Plan]

    def of(self, plans: Mapping[str, Plan]) -> Planning:
        """The same for other queries."""
        if dict(plans) == dict(self.workload.plans):
            return self
        return Planning(Workload(dict(plans), self.stats), self.share, self.stats, self.compiled)

    def expected(self) -> Ordering:
        """The ordering before any event is seen."""
        windows = (plan.query.window for plan in self.workload.plans.values())
        return self._ordering(Rates.expected(self.stats, windows))

    def order(self, counts: Counts, events: int, span: float) -> Ordering:
        """The ordering by what was counted in a stretch of the stream."""
        return self._ordering(self._rates(counts, events, span))

    def cost(self, given: Ordering, counts: Counts, events: int, span: float) -> float:
        """What an ordering costs by what was counted."""
        found = prices(self.workload, self._rates(counts, events, span), live=True)
        return sum(found.alone[c.name] if c.source is None else found.reuse[c.source, c.name][0] for c in given.cuboids)

    def _ordering(self, rates: Rates) -> Ordering:
        found = prices(self.workload, rates, useful=self.share == "chase", live=True)
        return ordering(self.workload, self.share, rates, found)

    def _rates(self, counts: Counts, events: int, span: float) -> Rates:
        return Rates.of_run(counts, events, span, self.stats.distinct if self.stats is not None else None)
