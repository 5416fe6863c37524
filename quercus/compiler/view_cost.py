"""What sub-queries cost by each strategy (docs/nested.md), in nanoseconds of one window.

A negated one is searched for each match until its first result, or kept in a view. A positive one gives all its results
to each match around it: searched afresh, or from a view.
"""

from __future__ import annotations

from math import exp, factorial

from attrs import frozen

from quercus.compiler.constants import Constants
from quercus.compiler.effort import Effort, bound_one_by_one
from quercus.ir import tree as t

CANDIDATE = 6.0  # an event that is looked at, for a negation
RECORD = 10.0  # a result of a view that is looked at
STORE = 20.0  # ... that is kept
LOOKUP = 80.0  # an interval that a view is asked for
PART = 1 / 3  # of a window, that lies between two neighbours
ORDER = ("balanced", "passive", "aggressive", "iterative")  # what is taken where costs are the same

# Negated --------------------------------------------------------------------------------------------------------------


def searched(body: t.Node, asks: float) -> float:
    """A search for each match, until the first result."""
    rows = _leaves(body)
    found = body.estimate.rows * PART ** len(rows)
    each = bound_one_by_one(rows, PART) / max(1.0, found)
    return asks * CANDIDATE * max(each, len(rows))


def viewed(body: t.Node, asks: float) -> float:
    """All results once, and a lookup for each match."""
    rows = _leaves(body)
    found = body.estimate.rows * PART ** len(rows)
    return (
        bound_one_by_one(rows, 1.0) * CANDIDATE
        + body.estimate.rows * STORE
        + asks * (LOOKUP + min(found, 4.0) * RECORD)
    )


# Positive -------------------------------------------------------------------------------------------------------------


@frozen(eq=False)
class Outer:
    """An operator around sub-queries: its own components are bound first, then each sub-query's results."""

    effort: Effort  # of its own components alone

    @property
    def own(self) -> float:
        """Binding its own components one by one."""
        e = self.effort
        order = list(range(e.n))
        return e.levels([order[-1], *order[:-1]] if e.op == "SEQ" and e.n > 1 else order, 0)

    @property
    def asks(self) -> float:
        return self.effort.rows(self.effort.full)

    def found(self, body: t.Node) -> float:
        """Results of a sub-query that lie in one gap between own components; of an AND, all of them."""
        m, k = self.effort.n, len(_leaves(body))
        if self.effort.op != "SEQ":
            return body.estimate.rows
        return body.estimate.rows * (factorial(m - 1) * factorial(max(k - 1, 0)) / factorial(m + k - 1))

    def prices(self, body: t.Node, asks: float, c: Constants) -> dict[str, float]:
        """What each strategy costs that answers a sub-query so often, without what is made of its results."""
        rows, results = _leaves(body), body.estimate.rows
        gap = 1.0 / self.effort.n if self.effort.op == "SEQ" else 1.0
        looked = asks * (c.hit + results * gap * c.record)
        fill = bound_one_by_one(rows, 1.0) * c.look + results * c.view
        reached = 1.0 - exp(-min(asks, 50.0))  # of the stream, by any question
        return {
            "iterative": asks * (len(rows) * c.enter + bound_one_by_one(rows, gap) * c.look),
            "aggressive": fill + looked,
            "passive": reached * fill * 1.05 + looked * 1.05,
            "balanced": reached * fill + looked * 1.1,
        }


def cheapest(prices: dict[str, float]) -> str:
    return min(ORDER, key=lambda s: prices[s])


def _leaves(body: t.Node) -> list[float]:
    return [n.estimate.rows for n in t.positive(body) if isinstance(n, t.Buffer)]
