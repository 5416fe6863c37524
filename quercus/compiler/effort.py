"""What an arrangement of an operator's components costs: composites per window, candidates, nanoseconds.

It follows the kernels step by step. A stack of plain events runs along pointers (`chain`), or else searches the range
of each component. A join takes whole ranges where nothing tests them. Kleene sets are completed on whole composites,
in every shape, and `[n]` sets are bound event by event.
"""

from __future__ import annotations

from copy import copy
from math import exp, log2, prod

from attrs import frozen

from quercus.compiler import cost, sifting
from quercus.compiler.constants import Constants
from quercus.compiler.sifting import Trial
from quercus.ir import expr as x
from quercus.ir import tree as t


@frozen
class Component:
    """A built component: its tree, expected rows, and the variables it binds."""

    node: t.Node
    rows: float
    variables: frozenset[str]
    shape: str
    unions: frozenset[int] = frozenset()  # whose choice of branch its composites remember

    @property
    def kleene(self) -> bool:
        return isinstance(self.node, t.Buffer) and self.node.kleene

    @property
    def counted(self) -> int:
        """n of `[n]`; 0: not such a set."""
        return self.node.most or 0 if isinstance(self.node, t.Buffer) and self.node.kleene else 0


TOO_MUCH = 1e3  # nanoseconds a byte that a tree had better not hold

Tested = tuple[t.Predicate, int, float]  # with the components that it needs, and its selectivity


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
        self.reach, self.same_key, self.op, self.negations, self.whole = reach, same_key, op, negations, whole
        self.n = len(components)
        self.full = (1 << self.n) - 1
        self.kleene = sum(1 << i for i, c in enumerate(components) if c.kleene)
        self.plain = self.full & ~self.kleene
        self.counted = [i for i, c in enumerate(components) if c.counted]
        self.open = [i for i, c in enumerate(components) if c.kleene and not c.counted]
        self.nested = {
            i: [k.estimate.rows for k in t.positive(c.node) if isinstance(k, t.Buffer)]
            for i, c in enumerate(components)
            if isinstance(c.node, t.Nest)
        }
        found = classes(predicates)
        self._equal = [
            (joined, columns <= key, [i for i, k in enumerate(predicates) if _in_class(k[0], columns)])
            for columns, joined, _ in found
        ]
        self.keyed = {c for columns, _, _ in found if columns <= key for c in columns}
        self._others = [i for i, (c, _, _) in enumerate(predicates) if not x.is_equality(c.expr) or c.when]
        leaves = sifting.single_leaves(c.node for c in components) if predicates else {}
        self._sieves = [None if self._holds(c) else sifting.sieves_of(c.expr, leaves) for c, _, _ in predicates]
        self._take(components, predicates, model)

    def renewed(self, model: cost.Model) -> Effort:
        """The same components, which are leaves, under another model."""
        components = []
        for c in self.components:
            assert isinstance(c.node, t.Buffer)
            rows = model.leaf(c.node.accepts, (k.expr for k in c.node.where))[1]
            components.append(Component(c.node, rows, c.variables, c.shape, c.unions))
        again = copy(self)
        again._take(components, [(c, needs, model.selectivity(c.expr)) for c, needs, _ in self.predicates], model)
        return again

    def _take(self, components: list[Component], predicates: list[Tested], model: cost.Model) -> None:
        """Whatever depends on numbers."""
        self.components, self.predicates, self.model, self.c = components, predicates, model, model.constants
        self.most = max((c.rows for c in components), default=1.0)
        kept = [k for _, _, k in predicates]
        equal = [(joined, holds, min(kept[i] for i in of)) for joined, holds, of in self._equal]
        self.classes = [(joined, k) for joined, _, k in equal]
        self.segments = [(joined, k) for joined, holds, k in equal if holds]
        if self.same_key < 1.0:
            self.classes.append((self.full, self.same_key))
            self.segments.append((self.full, self.same_key))
        self.others = [(predicates[i][1], kept[i]) for i in self._others]
        self.tests = [
            Trial(needs, k, sieves)
            for (_, needs, k), sieves in zip(predicates, self._sieves, strict=True)
            if sieves is not None
        ]
        self.tested = bool(self.tests or self.classes or self.negations or self.kleene)
        self.factors = self._factors()
        self._rows: dict[int, float] = {}
        self._kept: dict[int, float] = {}

    def _holds(self, c: t.Predicate) -> bool:
        """Whether an equality is what the key says, so that it needs no test."""
        return isinstance(c.expr, x.Compare) and x.is_equality(c.expr) and not c.when and c.expr.left in self.keyed

    def _factors(self) -> dict[tuple[int, int], float]:
        """Of pairs of components of a SEQ: how their order departs from chance, where that is known."""
        if self.op != "SEQ" or not self.model.known:
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
            chosen = mask & self.plain or mask
            known, m, before = 1.0, 0, -1
            for i in range(self.n):
                if chosen >> i & 1:
                    known *= self.components[i].rows * self.factors.get((before, i), 1.0)
                    m, before = m + 1, i
            known *= cost.arrangements(self.op, m) * self.reach ** max(m - 1, 0)
            for needs, kept in self.others:
                if needs & mask == needs and not needs & self.kleene:
                    known *= kept
            for joined, kept in self.classes:
                known *= kept ** max(0, (joined & chosen).bit_count() - 1)
            self._rows[mask] = known
        return known

    def elements(self, i: int) -> float:
        """Elements of a set beside one composite: what m events leave of a window, or of a gap, is 1/m of it."""
        found = self.components[i].rows * self.reach / max(self.plain.bit_count(), 1)
        for joined, kept in self.segments:
            if joined >> i & 1 and joined & ~(1 << i):
                found *= kept
        return found

    def kept(self, i: int) -> float:
        """The part of a set's elements that pass the conditions on them."""
        part = 1.0
        for k in self.tests:
            if k.needs >> i & 1 and k.needs & ~(1 << i):
                part *= k.kept
        return part

    def matches(self) -> float:
        """Expected matches, before negations and tests of whole sets."""
        found = self.rows(self.plain or self.full)
        for i in self.open:
            node = self.components[i].node
            if isinstance(node, t.Buffer) and node.least and self.plain:
                found *= 1 - exp(-min(self.elements(i) * self.kept(i), 50.0))
        slots = max(self.plain.bit_count(), 1)
        for i in self.counted:
            for taken in range(self.components[i].counted):
                found *= self.components[i].rows * self.kept(i) * self._ordered(slots, taken)
                slots += 1
        return found

    def _ordered(self, slots: int, taken: int = 0) -> float:
        """The part of candidates for one more event that fit beside so many, of which some are of its own set."""
        if slots == 0:
            return 1.0
        part = cost.arrangements(self.op, slots + 1) / cost.arrangements(self.op, slots)
        return part * self.reach / (taken + 1 if self.op == "AND" else 1)

    # joins

    def join_cost(self, left: int, right: int) -> float:
        """Candidates looked at, composites built; at the root of a match, what completes it."""
        a, b = left & self.plain, right & self.plain
        if not a or not b:
            return self._after(left | right) if left | right == self.full else 0.0
        if self.tested:
            return self._pairs(a, b) + self._after(left | right)
        rows_left, rows_right = self.rows(a), self.rows(b)
        if self.op == "SEQ":
            work = self.candidates(a, b, []) * self.c.take + rows_right * self.c.drive
        else:
            work = 2.0 * self.reach * rows_left * rows_right * self.c.meet + (rows_left + rows_right) * self.c.drive
        return work + self._after(left | right)

    def _pairs(self, left: int, right: int) -> float:
        """The candidates of a join, where there may be conditions, negations and sets."""
        c, both = self.c, left | right
        crossing = [k for k in self.tests if k.needs & both == k.needs and k.needs & left and k.needs & right]
        ordered = self.op == "SEQ"
        work = (self.rows(right) if ordered else self.rows(left) + self.rows(right)) * c.drive
        refused = self.refusing(left, right)
        candidates = self.candidates(left, right, self.classes)
        hashed = any(k not in self.segments and k[0] & left and k[0] & right for k in self.classes)
        if hashed:
            work += (self.rows(left) + self.rows(right)) * c.hash
        if ordered and not crossing and not refused and (both != self.plain or not self.kleene):
            return work + candidates * c.take
        each = (self._chase(left, right) if hashed else c.meet) + (c.test * _tried(crossing) if crossing else 0.0)
        if hashed or not crossing:
            return work + candidates * each + refused
        if ordered:
            return work + self._met(left, right, candidates, crossing, each) + refused
        work += self._met(left, right, candidates / 2, crossing, each)
        return work + self._met(right, left, candidates / 2, crossing, each) + refused

    def _chase(self, left: int, right: int) -> float:
        """What a candidate costs that a hash leads to: near, or in an internal buffer that no cache holds."""
        looked = (left,) if self.op == "SEQ" else (left, right)
        far = any(k & k - 1 and self.model.held(self.rows(k), self.most) > cost.CACHE_BYTES for k in looked)
        return self.c.chase + (self.c.far if far else 0.0)

    def _met(self, of: int, by: int, candidates: float, crossing: list[Trial], each: float) -> float:
        """Candidates of one side, which the other looks through: sifted, if it is a leaf."""
        i = of.bit_length() - 1
        kept = [k.kept for k in crossing if i in k.sieves] if of == 1 << i else []
        ranges = self.rows(by)
        part = sifting.share(candidates / ranges) if kept and ranges > 0 else 0.0
        if not part:
            return candidates * each
        work = sifting.sifted(self.c, ranges * part, candidates * part, kept)
        return work + candidates * (1 - part + part * prod(kept)) * each

    def _after(self, mask: int) -> float:
        """What the composites of a join cost when they are there: kept, or completed to matches."""
        known = self._kept.get(mask)
        if known is None:
            if mask & self.plain == self.plain and self.whole:
                known = self._at_root() if mask == self.full else 0.0
            else:
                rows = self.rows(mask)
                held = self.model.held(rows, self.most)
                known = rows * (self.c.build + (self.c.spill if held > cost.CACHE_BYTES else 0.0))
                if held > self.model.most_bytes and self.model.known:
                    known += TOO_MUCH * held
            self._kept[mask] = known
        return known

    def candidates(self, left: int, right: int, over: list[tuple[int, float]]) -> float:
        """Pairs whose ends lie in one window.

        Of ordered ones a composite of m finds its partner in what its own length leaves of the window: 1/m of it.
        """
        candidates = self.rows(left) * self.rows(right)
        candidates *= 1 / max((right & self.plain).bit_count(), 1) if self.op == "SEQ" else 2.0
        candidates *= self.reach
        if self.op == "SEQ" and self.factors:
            last, first = left.bit_length() - 1, (right & -right).bit_length() - 1
            candidates *= self.factors.get((last, first), 1.0)
        return candidates * min((kept for joined, kept in over if joined & left and joined & right), default=1.0)

    def _at_root(self) -> float:
        """From the composites of a tree to matches in order."""
        c = self.c
        if not self.whole:
            return 0.0
        rows, slots = self.rows(self.plain or self.full), max(self.plain.bit_count(), 1)
        passing = sum(k.rows for k in self.components if not k.kleene)
        work = rows * slots * c.bind + passing * c.advance + self.groups() * c.grove
        if self.kleene:
            return work + self.levels(self.counted, self.plain) + self._sets() + self.matches() * c.sort
        work += rows * slots * c.emit
        if self.op != "SEQ":
            return work + rows * c.sort
        last = self.components[self.n - 1].rows
        return work + rows * c.order * log2(2 + rows / max(last, 1e-9))

    def groups(self) -> float:
        """Parts of the buffers that are matched each by itself, one for each key; so many for one window."""
        return max((1 / max(kept, 1e-9) for _, kept in self.segments), default=0.0) / self.model.windows

    def held_bytes(self, mask: int) -> float:
        """What the internal buffer over these components holds at most."""
        if mask & self.plain == self.plain or (mask & self.plain).bit_count() < 2:
            return 0.0
        return self.model.held(self.rows(mask), self.most)

    def least_cost(self, mask: int) -> float:
        """What any join costs that gives these components: each composite was a candidate, and is kept or a match."""
        each = min(self.c.take, self.c.meet) if self.op == "SEQ" else self.c.meet
        return (self.rows(mask) * each if mask & self.plain == mask else 0.0) + self._after(mask)

    def refusing(self, left: int, right: int) -> float:
        """What the negations cost that are tested at a join."""
        both = (left | right) & self.plain
        here = [g.estimate.cost for g, needs in self.negations if needs and _meets(needs, both, left, right)]
        return sum(here) * self.rows(both) if here else 0.0

    # the stack

    @property
    def chain(self) -> bool:
        """Whether a stack runs along pointers: a SEQ of single events."""
        plain = [c for i, c in enumerate(self.components) if self.plain >> i & 1]
        leaves = all(isinstance(c.node, t.Buffer) for c in plain)
        return self.op == "SEQ" and self.whole and len(plain) >= 2 and leaves and not self.counted

    @property
    def trail(self) -> bool:
        """Whether the only set ends a SEQ, and nothing tests anything: its matches come in order."""
        return (
            self.op == "SEQ"
            and self.whole
            and self.open == [self.n - 1]
            and not self.counted
            and not self.tests
            and all(isinstance(c.node, t.Buffer) for c in self.components)
        )

    def stack_cost(self) -> float:
        """Components bound one by one: a SEQ's last, its first, then the rest.

        What is bound is not kept, and not hashed on: equalities spare candidates only where they are a key.
        """
        c = self.c
        fixed = [i for i in range(self.n) if i not in self.open]
        if self.op == "SEQ" and len(fixed) > 1 and not self.trail:
            fixed = [fixed[-1], *fixed[:-1]]
        work = self.levels(fixed, 0) + self.groups() * c.segment
        if self.chain or self.trail:
            work += sum(self.components[i].rows for i in fixed) * c.point * 2
            work += sum(self._pointed(g, needs) for g, needs in self.negations if self._is_pointer(g, needs))
        if self.kleene:
            work += self._sets()
        found = self.matches()
        if self.kleene or not self.chain:
            in_order = self.trail or (self.op == "SEQ" and self.n - 1 not in self.open and not self.counted)
            work += 0.0 if self.trail else found * (c.check if in_order else c.sort)
        return work

    def levels(self, order: list[int], bound: int) -> float:
        """Binding components one after the other, beside those that are bound already."""
        c, work = self.c, 0.0
        chain, trail = (self.chain or self.trail) and not bound, self.trail and not bound
        rows, slots = self.rows(bound) if bound else 1.0, bound.bit_count()
        ranges = self.whole and not self.open and not bound
        spared_by: list[tuple[float, int]] = []
        for place, i in enumerate(order):
            last = place == len(order) - 1
            after = bound | 1 << i
            tests = [k for k in self.tests if k.needs & after == k.needs and k.needs >> i & 1]
            said = sifting.implied(i, bound, self.tests) if bound and len(self.tests) > 1 else None
            spared_by = [*spared_by, said] if said is not None else spared_by
            refused = self._refused_at(i, after, chain=chain)
            spared = min((k for joined, k in self.segments if joined & bound and joined >> i & 1), default=1.0)
            for taken in range(self.components[i].counted or 1):
                candidates = rows * self.components[i].rows * self._ordered(slots, taken) * spared
                kept = [k.kept for k in tests if i in k.sieves] + ([said[0]] if said is not None else [])
                free = not tests and not refused
                part = sifting.share(candidates / rows) if kept and slots and rows > 0 else 0.0
                work += sifting.sifted(c, rows * part, candidates * part, kept) if part else 0.0
                single, looked = candidates * (1 - part), candidates * part * prod(kept)
                if i in self.nested:
                    work += rows * _events(self.nested[i], self._ordered(slots), c)
                elif trail or (not slots and not bound):
                    work += candidates * (c.look if not chain else c.open)
                elif last and free and ranges and not self.counted and not (chain and self.limited):
                    work += candidates * c.pair * (slots + 1) / 2 + (0.0 if chain else rows * c.enter)
                elif chain and free and ranges and place == len(order) - 2 and self._is_free(order[-1], after):
                    work += candidates * c.open
                else:
                    work += (single + looked) * (c.follow if chain else c.look) + (0.0 if chain else rows * c.enter)
                    if last and ranges:
                        work += candidates * prod(k.kept for k in tests) * c.emit * (slots + 1)
                tried, rest = 0.0, 1.0
                for k in tests:
                    tried, rest = tried + rest, rest * k.kept
                work += (single * tried + looked * sum(i not in k.sieves for k in tests)) * c.test
                work += candidates * rest * refused
                slots += 1
                rows = candidates * rest
            bound = after
            if not any(self.components[j].counted for j in order):
                rows = self.rows(bound)
            rows *= prod(k for k, needs in spared_by if needs & bound != needs)
        return work

    def _is_free(self, i: int, bound: int) -> bool:
        """Whether binding a component last tests nothing."""
        after = bound | 1 << i
        tested = any(k.needs & after == k.needs and k.needs >> i & 1 for k in self.tests)
        return not tested and not self.limited and self._refused_at(i, after, chain=True) == 0.0

    def _refused_at(self, i: int, after: int, *, chain: bool) -> float:
        """What the negations cost, for one candidate, that are tested when a component is bound.

        In a chain those between neighbours are pointers, which cost hardly more than the neighbours' own.
        """
        here = [(g, needs) for g, needs in self.negations if needs & after == needs and needs >> i & 1]
        return sum(g.estimate.cost for g, needs in here if not (chain and self._is_pointer(g, needs)))

    @property
    def limited(self) -> bool:
        """Whether a negation stands before the last component of a chain: then no range goes out as a whole."""
        return any(needs == 3 << (self.n - 2) and self._is_pointer(g, needs) for g, needs in self.negations)

    def _is_pointer(self, g: t.Negation, needs: int) -> bool:
        """Whether the event before a negation alone decides which events can follow it."""
        low = (needs & -needs).bit_length() - 1
        if g.strategy != "index" or needs != 3 << low or needs & self.kleene:
            return False
        tied = frozenset().union(*(x.variables(e) for e in g.where)) - set(t.variables(g.body))
        return tied <= self.components[low].variables

    def _pointed(self, g: t.Negation, needs: int) -> float:
        """What it costs to find what can follow each event before a negation, or to test what few pairs there are."""
        low = (needs & -needs).bit_length() - 1
        before = self.components[low].rows
        if _is_unconditional(g.body):
            return before * self.c.point
        pairs = self.rows((4 << low) - 1 & self.full | 1 << self.n - 1)  # the last is bound first
        return min(before, pairs) * g.estimate.cost

    def refused_in_stack(self, g: t.Negation, needs: int, bound: int) -> float:
        """What a negation costs that is tested when so many components are bound."""
        if self.chain and self._is_pointer(g, needs):
            return self._pointed(g, needs)
        return g.estimate.cost * max(self.rows(bound), 1.0)

    # sets

    def _sets(self) -> float:
        """Kleene sets, completed on whole composites: a range of elements for each, or those of a trail."""
        c, rows = self.c, self.rows(self.plain or self.full)
        if self.trail:
            return rows * (c.trail + self.elements(self.n - 1) * c.emit)
        work, total = 0.0, 0.0
        for i in self.open:
            found, kept = self.elements(i), self.kept(i)
            before = i < self.n - 1
            work += c.complete + found * kept * (c.left if before else c.right)
            if kept < 1.0:
                work += found * (c.try_ + c.test)
            total += found * kept
        if len(self.open) > 1:
            work += total * total * c.clique
        written = self.matches() * (c.finish + self.plain.bit_count() * c.emit)
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


def _meets(needs: int, both: int, left: int, right: int) -> bool:
    """Whether what is needed comes together at a join, and not below it."""
    return needs & both == needs and needs & left != needs and needs & right != needs


def _tried(tests: list[Trial]) -> float:
    """How many of some tests are made on a candidate: the first that fails ends it."""
    tried, rest = 0.0, 1.0
    for k in sorted(tests, key=lambda k: k.kept):
        tried, rest = tried + rest, rest * k.kept
    return tried


def _in_class(c: t.Predicate, columns: set[x.Expr]) -> bool:
    if not x.is_equality(c.expr) or c.when:
        return False
    assert isinstance(c.expr, x.Compare)
    return c.expr.left in columns


def classes(predicates: list[Tested]) -> list[tuple[set[x.Expr], int, float]]:
    """Equalities that hang together count once per component joined: (columns, components, selectivity of one)."""
    groups: list[tuple[set[x.Expr], int, float]] = []
    for c, needs, kept in predicates:
        if not x.is_equality(c.expr) or c.when:
            continue
        assert isinstance(c.expr, x.Compare)
        columns, mask, least = {c.expr.left, c.expr.right}, needs, kept
        apart = []
        for g in groups:
            if g[0] & columns:
                columns, mask, least = columns | g[0], mask | g[1], min(least, g[2])
            else:
                apart.append(g)
        groups = [*apart, (columns, mask, least)]
    return groups
