"""What the searches of a stream cost, by the order in which they bind components.

A stream keeps no composites: every match is searched depth first, from a pivot that is its last event, or its first.
So what counts is how many candidates each level is expected to look at. Of m events beside the pivot, those in order
are a part of 1/m! in a SEQ, all in an AND; each condition is tested as soon as its components are bound.
"""

from __future__ import annotations

from math import exp, factorial, lgamma, log, prod

from quercus.compiler.cost import Model
from quercus.compiler.structure import classes
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.flat import Flat

EXACT = 7  # components up to which all orders are compared; beyond, the cheapest next one is taken
HUGE = 100.0  # the logarithm of more than anyone can count

Order = tuple[str, ...]


class Search:
    """One search: an alternative of a query, and the pivot that it starts from. Sets of components are masks."""

    def __init__(self, f: Flat, pivot: str, model: Model, *, key: frozenset[x.Expr], keys: float, size: int) -> None:
        """`key`: columns of the key, of which there are `keys` in a window; `size` of the query's window."""
        single = [b for b in f.buffers if (not b.kleene or b.most is not None) and b.var != pivot]
        self.names = [b.var for b in single]
        self.n, self.c = len(single), model.constants
        self.full = (1 << self.n) - 1
        self.bit = {name: 1 << i for i, name in enumerate(self.names)} | {pivot: 1 << self.n}
        here = {b.var: model.leaf(b.accepts, (c.expr for c in b.where))[1] for b in f.buffers}
        self.rows = [_taken(here[b.var] / keys, b.most or 1) for b in single]
        self.pivots = here[pivot]
        self.events = sum(here.values())
        self.open = len(f.buffers) > self.n + 1
        self.before = [
            sum(self.bit[a] for a, b in f.before if b == name and a in self.names and b in self.names)
            for name in self.names
        ]
        self.windows = [
            (sum(self.bit.get(v, 0) for v in covered), min(w.size / max(size, 1), 1.0))
            for covered, w in f.windows[:-1]
            if w.kind == f.windows[-1][1].kind
        ]
        tested = [
            (t.Predicate(e), sum(self.bit[v] for v in x.variables(e)), model.selectivity(e))
            for e in f.predicates
            if x.variables(e) <= set(self.bit)
        ]
        found = [(columns, mask, kept) for columns, mask, kept in classes(tested) if not columns <= key]
        same = [k for k in tested if isinstance(k[0].expr, x.Same) and not set(k[0].expr.columns) <= key]
        self.classes = [(mask, kept) for _, mask, kept in found] + [(mask, kept) for _, mask, kept in same]
        self.conditions = [
            (k.expr, mask, kept)
            for k, mask, kept in tested
            if not isinstance(k.expr, x.Same) and not (x.is_equality(k.expr) and _columns(k.expr) <= key)
        ]
        self.others = [(mask, kept) for e, mask, kept in self.conditions if not x.is_equality(e)]
        self._bound: dict[int, float] = {}
        self._ways: dict[int, int] = {0: 1}

    # how many

    def bound(self, mask: int) -> float:
        """Expected bindings of these components beside one pivot."""
        known = self._bound.get(mask)
        if known is None:
            whole = mask | 1 << self.n
            known = self._placed(mask)
            known *= prod(kept for needs, kept in self.others if needs & whole == needs)
            known *= prod(kept ** max((joined & whole).bit_count() - 1, 0) for joined, kept in self.classes)
            self._bound[mask] = known
        return known

    def _placed(self, mask: int) -> float:
        """... that are in order and in their windows, whatever the conditions say."""
        whole = mask | 1 << self.n
        found = prod(self.rows[i] for i in range(self.n) if mask >> i & 1)
        found *= self._orders(mask) / factorial(mask.bit_count())
        return found * prod(part ** max((inside & whole).bit_count() - 1, 0) for inside, part in self.windows)

    def _orders(self, mask: int) -> int:
        """In how many orders these components can come."""
        known = self._ways.get(mask)
        if known is None:
            firsts = [i for i in range(self.n) if mask >> i & 1 and not self.before[i] & mask]
            known = self._ways[mask] = sum(self._orders(mask & ~(1 << i)) for i in firsts)
        return known

    def tests(self, mask: int, i: int) -> list[tuple[x.Expr, float]]:
        """The conditions that are tested when a component is bound beside others, with their selectivities."""
        before = mask | 1 << self.n
        after = before | 1 << i
        return [(e, kept) for e, needs, kept in self.conditions if needs & after == needs and needs & before != needs]

    def _level(self, mask: int, i: int, following: int | None = None) -> float:
        """What binding one more component costs, beside one pivot; `following`: along pointers, to that one."""
        c, tests = self.c, self.tests(mask, i)
        after = mask | 1 << i
        rows = self.bound(mask)
        placed = self._placed(mask)
        candidates = rows * self._placed(after) / placed if placed > 0 else 0.0
        work = rows * (c.enter if following is None else 0.0)
        if following is not None and following >= 0:  # without one of the next component, nobody looks further
            candidates *= min(1.0, self.rows[following] / (mask.bit_count() + 1))
        if after == self.full and not tests and not self.open:
            return work + candidates * c.pair
        tried, rest = 0.0, 1.0
        for _, kept in tests:
            tried, rest = tried + rest, rest * kept
        return work + candidates * ((c.look if following is None else c.follow) + tried * c.test)

    # what it costs

    def cost(self, order: Order, *, in_order: bool = False, chain: bool = False) -> float:
        """Nanoseconds for one window length. `in_order`: matches need not be sorted.

        `chain`: the search runs along pointers, which are made for all events.
        """
        mask, work, places = 0, self.c.open if chain else self.c.look, [self.names.index(name) for name in order]
        for i, following in zip(places, [*places[1:], -1], strict=False):
            work += self._level(mask, i, following if chain else None)
            mask |= 1 << i
        work += 0.0 if in_order else self.bound(self.full) * self.c.sort
        return self.pivots * work + (self.events * self.c.point * 2 if chain else 0.0)

    def best(self) -> Order:
        """The cheapest order of binding."""
        if self.n > EXACT:
            return self._greedy()
        least: dict[int, tuple[float, Order]] = {0: (0.0, ())}
        for mask in range(1, self.full + 1):
            ways = []
            for i in range(self.n):
                if mask >> i & 1:
                    work, order = least[mask & ~(1 << i)]
                    ways.append((work + self._level(mask & ~(1 << i), i), (*order, self.names[i])))
            least[mask] = min(ways)
        return least[self.full][1]

    def _greedy(self) -> Order:
        mask, order = 0, []
        while mask != self.full:
            left = [i for i in range(self.n) if not mask >> i & 1]
            i = min(left, key=lambda i: (self.bound(mask | 1 << i), self._level(mask, i), i))
            order.append(self.names[i])
            mask |= 1 << i
        return tuple(order)


def _taken(rows: float, most: int) -> float:
    """In how many ways so many events of one kind are taken."""
    return exp(min(most * log(rows) - lgamma(most + 1), HUGE)) if rows > 0 else 0.0


def _columns(e: x.Expr) -> set[x.Expr]:
    assert isinstance(e, x.Compare)
    return {e.left, e.right}
