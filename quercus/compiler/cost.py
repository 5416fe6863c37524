"""The first cost model: expected composites per window length, and work in units of one routed event.

Rows follow the usual independence assumptions: m ordered events of a window number r1*...*rm/(m-1)!, unordered ones m
times the product, each conjunct keeps its selectivity. A Kleene component joins as one set per partner.
"""

from __future__ import annotations

from math import comb, factorial, log2

from attrs import frozen

from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.stats import Stats

DEFAULT_PER_WINDOW = 50.0  # events of each type in a time window, when nothing is known
DEFAULT_TYPES = 20.0  # types that share a count window, when nothing is known
DEFAULT_DISTINCT = 50.0

BUILD = 2.0  # writing a composite into an internal buffer
COMPARE = 1.0  # looking at a candidate
HASH = 3.0  # a composite by its key: hashed once, or looked for
EMIT = 4.0  # a composite of a tree's root: its events followed down the links, and put in order
KLEENE_LEFT, KLEENE_RIGHT = 0.5, 1.0  # per element looked at: FAEM's Algorithm 1 is cheaper than its Algorithm 2
PROBE = 2.0  # one existence test by index


@frozen
class Model:
    """Estimates for one query's window from statistics, or from defaults."""

    window: p.Window
    stats: Stats | None

    def events(self, accepts: tuple[str, ...]) -> float:
        """Expected events of these types in one window."""
        if self.stats is None or not self.stats.rates:
            known = DEFAULT_PER_WINDOW if self.window.kind == "time" else self.window.size / DEFAULT_TYPES
            return max(known, 0.01) * (1 if len(accepts) == 1 else len(accepts) - 1)
        rate = sum(self.stats.rates.get(a, 0.0) for a in accepts)
        if self.window.kind == "time":
            return rate * self.window.size
        return self.window.size * rate / max(self.stats.total_rate(), 1e-300)

    def selectivity(self, e: x.Expr) -> float:
        """The part of candidates that pass a conjunct."""
        if self.stats is not None:
            given = self.stats.selectivity.get(text.scalar(e))
            if given is not None:
                return given
        match e:
            case x.Compare(op="="):
                return 1.0 / max(self._distinct(e.left), self._distinct(e.right))
            case x.Compare(op="<>"):
                return 1.0 - 1.0 / max(self._distinct(e.left), self._distinct(e.right))
            case x.Compare():
                return 1 / 3
            case x.InSet():
                part = min(1.0, len(e.items) / self._distinct(e.value))
                return 1.0 - part if e.negated else part
            case x.IsNull():
                return 0.95 if e.negated else 0.05
            case x.NotTrue():
                return 1.0 - self.selectivity(e.value)
            case x.Logic(op="and"):
                return _product(self.selectivity(i) for i in e.items)
            case x.Logic():
                return 1.0 - _product(1.0 - self.selectivity(i) for i in e.items)
            case x.Same():
                return 1.0 / self._distinct(e.columns[0])
            case _:
                return 0.5

    def _distinct(self, e: x.Expr) -> float:
        if isinstance(e, x.Column):
            known = self.stats.distinct.get(e.attr) if self.stats is not None else None
            return float(known or (2 if e.type == "bool" else DEFAULT_DISTINCT))
        return 1.0 if isinstance(e, x.Const) else 10.0


def _product(values: object) -> float:
    result = 1.0
    for v in values:  # type: ignore[attr-defined]
        result *= v
    return result


def arrangements(op: str, m: int) -> float:
    """How many of the products of m events of a window are matches of the operator."""
    if m <= 1:
        return 1.0
    return 1.0 / factorial(m - 1) if op == "SEQ" else float(m)


def probe(rows: float, inner: float) -> float:
    """Existence tests by index: one search each, the index built once."""
    return rows * PROBE * log2(2 + inner) + inner


def combinations(elements: float, n: int) -> float:
    return float(comb(min(max(int(elements), n), 200), n))
