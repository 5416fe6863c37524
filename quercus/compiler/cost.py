"""The cost model: expected composites per window length, and nanoseconds on the calibrated machine.

Rows follow the usual independence assumptions: m ordered events of a window number r1*...*rm/(m-1)!, unordered ones m
times the product, each conjunct keeps its selectivity. A Kleene component joins as one set per partner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import comb, factorial, log2, prod

from attrs import field, frozen

from quercus.compiler.constants import CALIBRATED, Constants
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.ir.flat import is_local
from quercus.ir.observed import Leaf, Observed
from quercus.stats import Stats

DEFAULT_PER_WINDOW = 20.0  # events of each type in a time window, when nothing is known
DEFAULT_TYPES = 20.0  # types that share a count window, when nothing is known
DEFAULT_DISTINCT = 50.0
DEFAULT_WINDOWS = 10.0  # that a stream is long
COMPOSITE_BYTES = 32  # of an internal buffer: two links, first and last time
CACHE_BYTES = 1 << 20  # what an internal buffer may hold before its composites come from afar
MOST_BYTES = float(1 << 32)  # no tree is chosen that would hold more
ROUND = 4_096.0  # events of a leaf in one round of a tree


@frozen
class Model:
    """Estimates for one query's window: from what a run observed, from statistics, or from defaults."""

    window: p.Window
    stats: Stats | None
    types: Mapping[str, tuple[str, ...]] = field(factory=dict)  # of each variable
    observed: Observed | None = None
    constants: Constants = CALIBRATED

    def seen(self, observed: Observed) -> Model:
        """The same with what a run has seen."""
        return Model(self.window, self.stats, self.types, observed, self.constants)

    @property
    def known(self) -> bool:
        """Whether anything is known of the stream."""
        return self.observed is not None or (self.stats is not None and bool(self.stats.rates))

    def events(self, accepts: tuple[str, ...]) -> float:
        """Expected events of these types in one window."""
        if self.stats is None or not self.stats.rates:
            known = DEFAULT_PER_WINDOW if self.window.kind == "time" else self.window.size / DEFAULT_TYPES
            return max(known, 0.01) * (1 if len(accepts) == 1 else len(accepts) - 1)
        rate = sum(self.stats.rates.get(a, 0.0) for a in accepts)
        if self.window.kind == "time":
            return rate * self.window.size
        return self.window.size * rate / max(self.stats.total_rate(), 1e-300)

    def all_events(self) -> float | None:
        """Expected events of all types in one window; None: not known."""
        if self.observed is not None:
            return self.observed.events
        if self.window.kind == "count":
            return float(self.window.size)
        if self.stats is None or not self.stats.rates:
            return None
        return self.stats.total_rate() * self.window.size

    def leaf(self, accepts: tuple[str, ...], where: Iterable[x.Expr]) -> tuple[float, float]:
        """Expected events of a leaf in one window, and those that pass the conditions on it alone."""
        tests = tuple(where)
        if self.observed is not None:
            leaf, rest = counted_leaf(accepts, tests)
            rows = self.observed.leaves.get(leaf)
            if rows is not None:
                return rows, rows * prod(self.selectivity(c) for c in rest)
        events = self.events(accepts)
        return events, events * prod(self.selectivity(c) for c in tests)

    def counted(self, leaf: Leaf, rest: tuple[x.Expr, ...]) -> float:
        """Expected events of a leaf that pass all conditions on it: those that a run has tried, and the rest."""
        rows = None if self.observed is None else self.observed.leaves.get(leaf)
        if rows is None:
            return self.leaf(leaf[0], (*leaf[1], *rest))[1]
        return rows * prod([self.selectivity(c) for c in rest])

    @property
    def knows_order(self) -> bool:
        """Whether anything is known of the order of events."""
        return bool(self.observed.order if self.observed is not None else self.stats is not None and self.stats.order)

    def order(self, first: str, second: str) -> float:
        """How many times as many pairs of two variables are in order as chance would give."""
        if self.observed is not None:
            return self.observed.order.get((first, second), 1.0)
        if self.stats is None or not self.stats.order:
            return 1.0
        pairs = [f"{a};{b}" for a in self.types.get(first, ()) for b in self.types.get(second, ())]
        found = [self.stats.order[k] for k in pairs if k in self.stats.order]
        return sum(found) / len(found) if found else 1.0

    def same_key(self, partition_by: tuple[str, ...]) -> float:
        """The part of pairs of events that are of one declared key; windows of events count each key by itself."""
        if not partition_by or self.window.kind == "count":
            return 1.0
        if self.observed is not None:
            return 1.0 / max(self.observed.keys, 1.0)
        distinct = self.stats.distinct if self.stats is not None else {}
        return 1.0 / max(prod(float(distinct.get(k) or DEFAULT_DISTINCT) for k in partition_by), 1.0)

    @property
    def windows(self) -> float:
        """How many windows long the stream is."""
        return DEFAULT_WINDOWS if self.observed is None else self.observed.windows

    @property
    def most_bytes(self) -> float:
        """What internal buffers may be expected to hold."""
        return MOST_BYTES if self.observed is None else self.observed.most_bytes

    def selectivity(self, e: x.Expr) -> float:
        """The part of candidates that pass a conjunct."""
        if self.observed is not None and e in self.observed.selectivity:
            return self.observed.selectivity[e]
        if self.stats is not None:
            given = self.stats.selectivity.get(text.scalar(e))
            if given is not None:
                return given
            if isinstance(e, x.Compare) and self.stats.attributes:
                from quercus.compiler import selectivity as values  # needs numpy, which import quercus does without

                found = values.compared(e, self.stats, self.types)
                if found is not None:
                    return found
        match e:
            case x.Compare(op="="):
                return 1.0 / max(self._distinct(e.left), self._distinct(e.right))
            case x.Compare(op="<>"):
                return 1.0 - 1.0 / max(self._distinct(e.left), self._distinct(e.right))
            case x.Compare():
                return 1 / 3
            case x.InSet():
                return self._in_set(e)
            case x.IsNull():
                nulls = self._nulls(e.value)
                return 1.0 - nulls if e.negated else nulls
            case x.NotTrue():
                return 1.0 - self.selectivity(e.value)
            case x.Logic(op="and"):
                return prod(self.selectivity(i) for i in e.items)
            case x.Logic():
                return 1.0 - prod(1.0 - self.selectivity(i) for i in e.items)
            case x.Same():
                return 1.0 / self._distinct(e.columns[0])
            case _:
                return 0.5

    def _in_set(self, e: x.InSet) -> float:
        part = min(1.0, len(e.items) / self._distinct(e.value))
        if self.stats is not None and self.stats.attributes:
            part = min(1.0, sum(self.selectivity(x.Compare("=", e.value, c)) for c in e.items))
        return 1.0 - part if e.negated else part

    def _nulls(self, e: x.Expr) -> float:
        if self.stats is not None and self.stats.attributes and isinstance(e, x.Column):
            from quercus.compiler import selectivity as values

            found = values.known(e, self.stats, self.types)
            if found:
                return sum(w * a.nulls for w, a in found)
        return 0.05

    def _distinct(self, e: x.Expr) -> float:
        if isinstance(e, x.Column):
            known = self.stats.distinct.get(e.attr) if self.stats is not None else None
            return float(known or (2 if e.type == "bool" else DEFAULT_DISTINCT))
        return 1.0 if isinstance(e, x.Const) else 10.0

    # what single steps cost

    def routing(self, events: float) -> float:
        """Looking at the types of all events; `events` are those that the query names."""
        everything = self.all_events()
        return self.constants.route * max(events, everything or 0.0)

    def buffer(self, events: float, tests: int) -> float:
        """A leaf's events, fetched and tested."""
        return events * (self.constants.leaf + tests * self.constants.filter)

    def probe(self, inner: float, leaves: int) -> float:
        """One existence test by index: a search in each leaf."""
        return leaves * self.constants.probe * (1 + 0.1 * log2(2 + inner))

    def searched(self, inner: float, leaves: int) -> float:
        """One existence test by search: until the first match, or through all candidates."""
        return leaves * self.constants.enter + min(inner, 10.0) * self.constants.look

    def held(self, rows: float, most: float) -> float:
        """Bytes of an internal buffer: a window of composites and a round; `most` is the fullest leaf's window."""
        return rows * (1.0 + min(ROUND / max(most, 1.0), 1e6)) * COMPOSITE_BYTES


def counted_leaf(accepts: tuple[str, ...], where: tuple[x.Expr, ...]) -> tuple[Leaf, tuple[x.Expr, ...]]:
    """A leaf as a run counts it, and the conditions that a run cannot try event by event."""
    local = tuple(c for c in where if is_local(c))
    return (accepts, local), tuple(c for c in where if c not in local) if len(local) < len(where) else ()


def arrangements(op: str, m: int) -> float:
    """How many of the products of m events of a window are matches of the operator."""
    if m <= 1:
        return 1.0
    return 1.0 / factorial(min(m, 171) - 1) if op == "SEQ" else float(m)  # no float holds more


def combinations(elements: float, n: int) -> float:
    return float(comb(min(max(int(elements), n), 200), n))
