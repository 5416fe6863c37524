"""What an arrangement of an operator's components costs: composites per window, candidates, nanoseconds.

It follows the kernels step by step. A stack of plain events runs along pointers (`chain`), or else searches the range
of each component. A join takes whole ranges where nothing tests them. Kleene sets are completed on whole composites,
in every shape, and `[n]` sets are bound event by event.
"""

from __future__ import annotations

from itertools import pairwise
from math import exp, log2, prod

from quercus.compiler import cost, sifting
from quercus.compiler.constants import Constants
from quercus.compiler.structure import Component, Structure, Tested
from quercus.ir import expr as x
from quercus.ir import tree as t

TOO_MUCH = 1e3  # nanoseconds a byte that a tree had better not hold
TREES = 1.15  # times what the steps of a join take each by itself: what trees of random queries took beside stacks


class Effort:
    """Estimates for one operator. Components are numbered, and sets of them are masks."""

    def __init__(
        self,
        op: str,
        components: list[Component],
        predicates: list[Tested],
        negations: list[tuple[t.Negation, int]],
        model: cost.Model,
        key: frozenset[x.Expr],
        *,
        whole: bool,
        reach: float = 1.0,
        same_key: float = 1.0,
    ) -> None:
        """`whole`: its matches are those of the query. `reach`: its own window, as a part of the query's.

        `same_key`: the part of pairs that are of one declared key, of which each match is.
        """
        self.s = Structure(
            op, components, predicates, negations, key, whole=whole, reach=reach, same_key=same_key < 1.0
        )
        self._take(components, predicates, model, same_key)

    def renewed(self, model: cost.Model) -> Effort:
        """The same components, which are leaves, under another model."""
        components = [
            Component(c.node, model.counted(leaf, rest), c.variables, c.shape, c.unions)
            for c, (leaf, rest) in zip(self.components, self.s.leaves(), strict=True)
        ]
        again = Effort.__new__(Effort)
        again.s = self.s
        predicates = [(c, needs, model.selectivity(c.expr)) for c, needs, _ in self.predicates]
        again._take(components, predicates, model, self.same_key)
        return again

    def _take(self, components: list[Component], predicates: list[Tested], model: cost.Model, same_key: float) -> None:
        """Whatever depends on numbers."""
        self.op, self.n, self.full = self.s.op, self.s.n, self.s.full
        self.components, self.predicates, self.model, self.c = components, predicates, model, model.constants
        self.same_key = same_key
        self.each = [c.rows for c in components]
        self.most = max(self.each, default=1.0)
        self.passing = [k for _, _, k in predicates]  # of each condition
        self.kept = [self.passing[k.predicate] for k in self.s.tests]  # ... of those that are tested
        self.equal = [min((self.passing[i] for i in k.predicates), default=same_key) for k in self.s.classes]
        self.factors = self._factors()
        self._rows: dict[int, float] = {}
        self._after_join: dict[int, float] = {}
        self._joins: dict[tuple[int, int], float] = {}
        self._stack: float | None = None

    def _factors(self) -> dict[tuple[int, int], float]:
        """Of pairs of components of a SEQ: how their order departs from chance, where that is known."""
        if self.op != "SEQ" or not self.model.knows_order:
            return {}
        names = [next(iter(c.variables)) if len(c.variables) == 1 else None for c in self.components]
        found = {}
        for i, a in enumerate(names):
            for j in range(i + 1, self.n):
                b = names[j]
                if a is not None and b is not None:
                    factor = self.model.order(a, b)
                    if factor != 1.0:
                        found[i, j] = factor
        return found

    # composites

    def rows(self, mask: int) -> float:
        """Expected composites over these components: a Kleene set joins as one."""
        known = self._rows.get(mask)
        if known is None:
            made = self.s.composite(mask)
            known = made.arranged
            for i in made.parts:
                known *= self.each[i]
            if self.factors:
                known *= prod(self.factors.get(pair, 1.0) for pair in pairwise(made.parts))
            for k in made.others:
                known *= self.passing[k]
            for k, times in made.classes:
                known *= self.equal[k] ** times
            self._rows[mask] = known
        return known

    def elements(self, i: int) -> float:
        """Elements of a set beside one composite: what m events leave of a window, or of a gap, is 1/m of it."""
        found = self.each[i] * self.s.reach / max(self.s.plain.bit_count(), 1)
        for k, kept in zip(self.s.classes, self.equal, strict=True):
            if k.key and k.joined >> i & 1 and k.joined & ~(1 << i):
                found *= kept
        return found

    def kept_of(self, i: int) -> float:
        """The part of a set's elements that pass the conditions on them."""
        part = 1.0
        for k, kept in zip(self.s.tests, self.kept, strict=True):
            if k.needs >> i & 1 and k.needs & ~(1 << i):
                part *= kept
        return part

    def matches(self) -> float:
        """Expected matches, before negations and tests of whole sets."""
        found = self.rows(self.s.plain or self.full)
        for i in self.s.open:
            node = self.components[i].node
            if isinstance(node, t.Buffer) and node.least and self.s.plain:
                found *= 1 - exp(-min(self.elements(i) * self.kept_of(i), 50.0))
        slots = max(self.s.plain.bit_count(), 1)
        for i in self.s.counted:
            for taken in range(self.s.most[i]):
                found *= self.each[i] * self.kept_of(i) * self.s.ordered(slots, taken)
                slots += 1
        return found

    # joins

    def join_cost(self, left: int, right: int) -> float:
        """Candidates looked at, composites built; at the root of a match, what completes it."""
        known = self._joins.get((left, right))
        if known is None:
            known = self._joins[left, right] = self._joined(left, right)
        return known

    def _joined(self, left: int, right: int) -> float:
        a, b = left & self.s.plain, right & self.s.plain
        if not a or not b:
            return TREES * self._after(left | right) if left | right == self.full else 0.0
        return TREES * (self._pairs(a, b) + self._after(left | right))

    def _pairs(self, left: int, right: int) -> float:
        """The candidates of a join."""
        c, both, ordered = self.c, left | right, self.op == "SEQ"
        met = self.s.meeting(left, right)
        rows_left, rows_right = self.rows(left), self.rows(right)
        work = (rows_right if ordered else rows_left + rows_right) * c.drive
        refused = met.refused * self.rows(both) if met.refused else 0.0
        candidates = self._candidates(left, right, rows_left * rows_right)
        if met.hashed:
            work += (rows_left + rows_right) * c.hash
        crossing = [self.kept[k] for k in met.crossing]
        if ordered and not crossing and not refused and (both != self.s.plain or not self.s.kleene):
            return work + candidates * c.take
        each = (self._chase(left, right) if met.hashed else c.meet) + (c.test * _tried(crossing) if crossing else 0.0)
        if met.hashed or not crossing:
            return work + candidates * each + refused
        sieved, sieved_right = ([self.kept[k] for k in sieves] for sieves in (met.sieved, met.sieved_right))
        if ordered:
            return work + self._met(rows_right, candidates, sieved, each) + refused
        work += self._met(rows_right, candidates / 2, sieved, each)
        return work + self._met(rows_left, candidates / 2, sieved_right, each) + refused

    def _candidates(self, left: int, right: int, pairs: float) -> float:
        """Pairs whose ends lie in one window, and that agree where they are hashed.

        Of ordered ones a composite of m finds its partner in what its own length leaves of the window: 1/m of it.
        """
        met = self.s.meeting(left, right)
        found = pairs * self.s.reach * (1 / right.bit_count() if self.op == "SEQ" else 2.0)
        if self.factors and self.op == "SEQ":
            found *= self.factors.get(met.ordered_by, 1.0)
        return found * min([self.equal[k] for k in met.classes]) if met.classes else found

    def _chase(self, left: int, right: int) -> float:
        """What a candidate costs that a hash leads to: near, or in an internal buffer that no cache holds."""
        looked = (left,) if self.op == "SEQ" else (left, right)
        far = any(k & k - 1 and self.model.held(self.rows(k), self.most) > cost.CACHE_BYTES for k in looked)
        return self.c.chase + (self.c.far if far else 0.0)

    def _met(self, ranges: float, candidates: float, sieved: list[float], each: float) -> float:
        """Candidates of one side, which the other looks through: sifted, if it is a leaf."""
        part = sifting.share(candidates / ranges) if sieved and ranges > 0 else 0.0
        if not part:
            return candidates * each
        work = sifting.sifted(self.c, ranges * part, candidates * part, sieved)
        return work + candidates * (1 - part + part * prod(sieved)) * each

    def _after(self, mask: int) -> float:
        """What the composites of a join cost when they are there: kept, or completed to matches."""
        known = self._after_join.get(mask)
        if known is None:
            if mask & self.s.plain == self.s.plain and self.s.whole:
                known = self._at_root() if mask == self.full else 0.0
            else:
                rows = self.rows(mask)
                held = self.model.held(rows, self.most)
                known = rows * (self.c.build + (self.c.spill if held > cost.CACHE_BYTES else 0.0))
                if held > self.model.most_bytes and self.model.known:
                    known += TOO_MUCH * held
            self._after_join[mask] = known
        return known

    def _at_root(self) -> float:
        """From the composites of a tree to matches in order."""
        c, plain = self.c, self.s.plain
        rows, slots = self.rows(plain or self.full), max(plain.bit_count(), 1)
        passing = sum([k for i, k in enumerate(self.each) if plain >> i & 1])
        work = rows * slots * c.bind + passing * c.advance + self.groups() * c.grove
        if self.s.kleene:
            return work + self.levels(self.s.counted, plain) + self._sets() + self.matches() * c.sort
        work += rows * slots * c.emit
        if self.op != "SEQ":
            return work + rows * c.sort
        return work + rows * c.order * log2(2 + rows / max(self.each[-1], 1e-9))

    def groups(self) -> float:
        """Parts of the buffers that are matched each by itself, one for each key; so many for one window."""
        keys = [1 / max(kept, 1e-9) for k, kept in zip(self.s.classes, self.equal, strict=True) if k.key]
        return max(keys, default=0.0) / self.model.windows

    def held_bytes(self, mask: int) -> float:
        """What the internal buffer over these components holds at most."""
        if mask & self.s.plain == self.s.plain or (mask & self.s.plain).bit_count() < 2:
            return 0.0
        return self.model.held(self.rows(mask), self.most)

    def least_cost(self, mask: int) -> float:
        """What any join costs that gives these components: each composite was a candidate, and is kept or a match."""
        each = min(self.c.take, self.c.meet) if self.op == "SEQ" else self.c.meet
        return TREES * ((self.rows(mask) * each if mask & self.s.plain == mask else 0.0) + self._after(mask))

    def refusing(self, left: int, right: int) -> float:
        """What the negations cost that are tested at a join."""
        each = self.s.refused(left, right)
        return each * self.rows((left | right) & self.s.plain) if each else 0.0

    # the stack

    def stack_cost(self) -> float:
        """Components bound one by one: a SEQ's last, its first, then the rest.

        What is bound is not kept, and not hashed on: equalities spare candidates only where they are a key.
        """
        if self._stack is None:
            self._stack = self._one_by_one()
        return self._stack

    def _one_by_one(self) -> float:
        c, s = self.c, self.s
        fixed = [i for i in range(self.n) if i not in s.open]
        if self.op == "SEQ" and len(fixed) > 1 and not s.trail:
            fixed = [fixed[-1], *fixed[:-1]]
        work = self.levels(fixed, 0) + self.groups() * c.segment
        if s.chain or s.trail:
            work += sum([self.each[i] for i in fixed]) * c.point * 2
            work += sum([self._pointed(g, needs) for g, needs in s.negations if s.is_pointer(g, needs)])
        if s.kleene:
            work += self._sets()
        if (s.kleene or not s.chain) and not s.trail:
            in_order = self.op == "SEQ" and self.n - 1 not in s.open and not s.counted
            work += self.matches() * (c.check if in_order else c.sort)
        return work

    def levels(self, order: list[int], bound: int) -> float:
        """Binding components one after the other, beside those that are bound already."""
        c, s, work = self.c, self.s, 0.0
        chain, trail = (s.chain or s.trail) and not bound, s.trail and not bound
        ranges = s.whole and not s.open and not bound
        whole_ranges = ranges and not s.counted and not (chain and s.limited)
        counted = any(s.most[i] for i in order)
        rows = self.rows(bound) if bound else 1.0
        step = c.follow if chain else c.look
        spared_by: list[tuple[float, int]] = []
        for at in s.places(order, bound):
            i = at.component
            sieved = [self.kept[k] for k in at.sieved]
            if at.said is not None:  # what passes, if values are even
                near, far, needs = at.said
                sieved.append(min(1.0, 2 * self.kept[near] * self.kept[far]))
                spared_by.append((sieved[-1], needs))
            spared = min([self.equal[k] for k in at.spared_by], default=1.0)
            passing = prod([self.kept[k] for k in at.tests])
            free = not at.tests and not at.refused
            for slots, ordered in at.slots:
                candidates = rows * self.each[i] * ordered * spared
                part = sifting.share(candidates / rows) if sieved and slots and rows > 0 else 0.0
                work += sifting.sifted(c, rows * part, candidates * part, sieved) if part else 0.0
                single, looked = candidates * (1 - part), candidates * part * prod(sieved)
                if i in s.nested:
                    work += rows * _events(s.nested[i], s.ordered(slots), c)
                elif trail or not slots:
                    work += candidates * (c.open if chain else c.look)
                elif at.last and free and whole_ranges:
                    work += candidates * c.pair * (slots + 1) / 2 + (0.0 if chain else rows * c.enter)
                elif at.opens:
                    work += candidates * c.open
                else:
                    work += (single + looked) * step + (0.0 if chain else rows * c.enter)
                    if at.last and ranges:
                        work += candidates * passing * c.emit * (slots + 1)
                if at.tests:
                    tried, rest = 0.0, 1.0
                    for k in at.tests:
                        tried, rest = tried + rest, rest * self.kept[k]
                    work += (single * tried + looked * (len(at.tests) - len(at.sieved))) * c.test
                work += candidates * passing * at.refused
                rows = candidates * passing
            if not counted:
                rows = self.rows(at.after)
            for part, needs in spared_by:
                if needs & at.after != needs:
                    rows *= part
        return work

    def _pointed(self, g: t.Negation, needs: int) -> float:
        """What it costs to find what can follow each event before a negation, or to test what few pairs there are."""
        low = (needs & -needs).bit_length() - 1
        before = self.each[low]
        if _is_unconditional(g.body):
            return before * self.c.point
        pairs = self.rows((4 << low) - 1 & self.full | 1 << self.n - 1)  # the last is bound first
        return min(before, pairs) * g.estimate.cost

    def refused_in_stack(self, g: t.Negation, needs: int, bound: int) -> float:
        """What a negation costs that is tested when so many components are bound."""
        if self.s.chain and self.s.is_pointer(g, needs):
            return self._pointed(g, needs)
        return g.estimate.cost * max(self.rows(bound), 1.0)

    # sets

    def _sets(self) -> float:
        """Kleene sets, completed on whole composites: a range of elements for each, or those of a trail."""
        c, rows = self.c, self.rows(self.s.plain or self.full)
        if self.s.trail:
            return rows * (c.trail + self.elements(self.n - 1) * c.emit)
        work, total = 0.0, 0.0
        for i in self.s.open:
            found, kept = self.elements(i), self.kept_of(i)
            before = i < self.n - 1
            work += c.complete + found * kept * (c.left if before else c.right)
            if kept < 1.0:
                work += found * (c.try_ + c.test)
            total += found * kept
        if len(self.s.open) > 1:
            work += total * total * c.clique
        written = self.matches() * (c.finish + self.s.plain.bit_count() * c.emit)
        return rows * work + written


def _is_unconditional(body: t.Node) -> bool:
    """Whether nothing but order ties the leaves of a body to each other."""
    for n in t.positive(body):
        if isinstance(n, t.Join) and (n.equal or n.where):
            return False
        if isinstance(n, t.Stack) and any(s.equal or s.where or s.negations for s in n.steps):
            return False
        if not isinstance(n, t.Buffer | t.Join | t.Stack | t.Nest):
            return False
    return True


def _events(rows: list[float], part: float, c: Constants) -> float:
    """Binding the events of a sub-query one by one, in a part of a window."""
    return len(rows) * c.enter + bound_one_by_one(rows, part) * c.look


def bound_one_by_one(rows: list[float], part: float) -> float:
    """Events looked at to bind leaves one after the other, in a part of a window."""
    total, product = 0.0, 1.0
    for k, r in enumerate(rows):
        product *= max(r * part, 0.01) / max(k, 1)
        total += product
    return total


def _tried(kept: list[float]) -> float:
    """How many of some tests are made on a candidate: the first that fails ends it."""
    tried, rest = 0.0, 1.0
    for part in sorted(kept):
        tried, rest = tried + rest, rest * part
    return tried
