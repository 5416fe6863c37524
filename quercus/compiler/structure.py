"""An operator's components and conditions as far as no number matters: found once, however often it is judged.

Components are numbered, and sets of them are masks. Conditions, classes of equal columns and negations go by their
places in lists, so that `effort.Effort` only has to look up what each of them lets through.
"""

from __future__ import annotations

from attrs import frozen

from quercus.compiler import cost, sifting
from quercus.compiler.sifting import Sieve
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.observed import Leaf

Tested = tuple[t.Predicate, int, float]  # with the components that it needs, and its selectivity


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


@frozen(eq=False)
class Trial:
    """A condition between components: those that it needs, and for which it is a sieve."""

    predicate: int
    needs: int
    sieves: dict[int, Sieve]


@frozen(eq=False)
class Class:
    """Columns that equalities make equal, and the components that they are of."""

    joined: int
    predicates: tuple[int, ...]
    key: bool  # whether the key says the same, so that nothing is tested


@frozen(eq=False)
class Composite:
    """What makes up the composites over some components."""

    parts: tuple[int, ...]
    arranged: float
    others: tuple[int, ...]  # conditions that are no equalities
    classes: tuple[tuple[int, int], ...]  # and how many equalities of each


@frozen(eq=False)
class Meeting:
    """What two sides of a join have to do with each other."""

    crossing: tuple[int, ...]  # trials
    sieved: tuple[int, ...]  # ... that sift the left side, if it is a leaf
    sieved_right: tuple[int, ...]
    classes: tuple[int, ...]
    hashed: bool
    refused: float  # what negations cost, for one composite
    ordered_by: tuple[int, int]  # the last component on the left, the first on the right


@frozen(eq=False)
class Place:
    """A component in its turn, where they are bound one after the other."""

    component: int
    after: int
    last: bool
    tests: tuple[int, ...]  # trials
    sieved: tuple[int, ...]  # ... that sift it
    said: tuple[int, int, int] | None  # two trials that sift it together, and from which components on they do so alone
    spared_by: tuple[int, ...]  # classes that are keys
    refused: float
    slots: tuple[tuple[int, float], ...]  # for each event: those bound before, and the part of candidates that fit
    opens: bool  # what comes last goes out as a range, beside each of these


class Structure:
    """One operator."""

    def __init__(
        self,
        op: str,
        components: list[Component],
        predicates: list[Tested],
        negations: list[tuple[t.Negation, int]],
        key: frozenset[x.Expr],
        *,
        whole: bool,
        reach: float,
        same_key: bool,
    ) -> None:
        self.op, self.negations, self.whole, self.reach = op, negations, whole, reach
        self.nodes = [c.node for c in components]
        self.variables = [c.variables for c in components]
        self.n = len(components)
        self.full = (1 << self.n) - 1
        self.kleene = sum(1 << i for i, c in enumerate(components) if c.kleene)
        self.plain = self.full & ~self.kleene
        self.most = [c.counted for c in components]
        self.counted = [i for i, c in enumerate(components) if c.counted]
        self.open = [i for i, c in enumerate(components) if c.kleene and not c.counted]
        self.nested = {
            i: [k.estimate.rows for k in t.positive(c.node) if isinstance(k, t.Buffer)]
            for i, c in enumerate(components)
            if isinstance(c.node, t.Nest)
        }
        found = classes(predicates)
        self.classes = [
            Class(joined, tuple(i for i, k in enumerate(predicates) if _in_class(k[0], columns)), columns <= key)
            for columns, joined, _ in found
        ]
        if same_key:
            self.classes.append(Class(self.full, (), True))
        keyed = {c for columns, _, _ in found if columns <= key for c in columns}
        self.others = [(i, n) for i, (c, n, _) in enumerate(predicates) if not x.is_equality(c.expr) or c.when]
        leaves = sifting.single_leaves(self.nodes) if predicates else {}
        self.tests = [
            Trial(i, needs, sifting.sieves_of(c.expr, leaves))
            for i, (c, needs, _) in enumerate(predicates)
            if not _holds(c, keyed)
        ]
        self.tested = bool(self.tests or self.classes or negations or self.kleene)
        plain = [n for i, n in enumerate(self.nodes) if self.plain >> i & 1]
        leaf = all(isinstance(n, t.Buffer) for n in plain)
        #: Whether a stack runs along pointers: a SEQ of single events.
        self.chain = op == "SEQ" and whole and len(plain) >= 2 and leaf and not self.counted
        #: Whether the only set ends a SEQ, and nothing tests anything: its matches come in order.
        self.trail = (
            op == "SEQ"
            and whole
            and self.open == [self.n - 1]
            and not (self.counted or self.tests)
            and all(isinstance(n, t.Buffer) for n in self.nodes)
        )
        self._leaves: list[tuple[Leaf, tuple[x.Expr, ...]]] | None = None
        self._composites: dict[int, Composite] = {}
        self._meetings: dict[tuple[int, int], Meeting] = {}
        self._places: dict[tuple[int, ...], tuple[Place, ...]] = {}

    def leaves(self) -> list[tuple[Leaf, tuple[x.Expr, ...]]]:
        """Of components that are leaves: what a run has counted of them, and conditions that it has not tried."""
        if self._leaves is None:
            self._leaves = [
                cost.counted_leaf(n.accepts, tuple(c.expr for c in n.where))
                for n in self.nodes
                if isinstance(n, t.Buffer)
            ]
        return self._leaves

    def composite(self, mask: int) -> Composite:
        found = self._composites.get(mask)
        if found is None:
            chosen = mask & self.plain or mask
            parts = tuple(i for i in range(self.n) if chosen >> i & 1)
            arranged = cost.arrangements(self.op, len(parts)) * self.reach ** max(len(parts) - 1, 0)
            others = tuple(i for i, needs in self.others if needs & mask == needs and not needs & self.kleene)
            equal = ((k, (c.joined & chosen).bit_count() - 1) for k, c in enumerate(self.classes))
            found = Composite(parts, arranged, others, tuple((k, times) for k, times in equal if times > 0))
            self._composites[mask] = found
        return found

    def meeting(self, left: int, right: int) -> Meeting:
        """The components of a join that are no sets."""
        found = self._meetings.get((left, right))
        if found is None:
            both = left | right
            crossing = tuple(
                i for i, k in enumerate(self.tests) if k.needs & both == k.needs and k.needs & left and k.needs & right
            )
            joined = tuple(k for k, c in enumerate(self.classes) if c.joined & left and c.joined & right)
            found = self._meetings[left, right] = Meeting(
                crossing,
                self._sieves_of(left, crossing),
                self._sieves_of(right, crossing),
                joined,
                any(not self.classes[k].key for k in joined),
                self.refused(left, right),
                (left.bit_length() - 1, (right & -right).bit_length() - 1),
            )
        return found

    def _sieves_of(self, side: int, crossing: tuple[int, ...]) -> tuple[int, ...]:
        i = side.bit_length() - 1
        return tuple(k for k in crossing if i in self.tests[k].sieves) if side == 1 << i else ()

    def refused(self, left: int, right: int) -> float:
        """What the negations cost, for one composite, that are tested at a join."""
        both = (left | right) & self.plain
        return sum(g.estimate.cost for g, needs in self.negations if needs and _meets(needs, both, left, right))

    def places(self, order: list[int], bound: int) -> tuple[Place, ...]:
        """Components that are bound in this order, beside those that are bound already."""
        found = self._places.get((bound, *order))
        if found is None:
            found = self._places[bound, *order] = tuple(self._each_place(order, bound))
        return found

    def _each_place(self, order: list[int], bound: int) -> list[Place]:
        chain = (self.chain or self.trail) and not bound
        ranges = self.whole and not self.open and not bound
        made: list[Place] = []
        slots = bound.bit_count()
        for place, i in enumerate(order):
            after = bound | 1 << i
            tests = tuple(n for n, k in enumerate(self.tests) if k.needs & after == k.needs and k.needs >> i & 1)
            refused = self._refused_at(i, after, chain=chain)
            events = range(self.most[i] or 1)
            before_last = place == len(order) - 2 and chain and ranges and not tests and not refused
            made.append(
                Place(
                    i,
                    after,
                    place == len(order) - 1,
                    tests,
                    tuple(k for k in tests if i in self.tests[k].sieves),
                    self._said(i, bound) if bound else None,
                    tuple(k for k, c in enumerate(self.classes) if c.key and c.joined & bound and c.joined >> i & 1),
                    refused,
                    tuple((slots + taken, self.ordered(slots + taken, taken)) for taken in events),
                    before_last and self._is_free(order[-1], after),
                )
            )
            bound, slots = after, slots + len(events)
        return made

    def _said(self, i: int, bound: int) -> tuple[int, int, int] | None:
        found = sifting.implied(i, bound, [k.sieves for k in self.tests])
        return None if found is None else (*found, self.tests[found[0]].needs | self.tests[found[1]].needs)

    def ordered(self, slots: int, taken: int = 0) -> float:
        """The part of candidates for one more event that fit beside so many, of which some are of its own set."""
        if slots == 0:
            return 1.0
        part = cost.arrangements(self.op, slots + 1) / cost.arrangements(self.op, slots)
        return part * self.reach / (taken + 1 if self.op == "AND" else 1)

    def _is_free(self, i: int, bound: int) -> bool:
        """Whether binding a component last tests nothing."""
        after = bound | 1 << i
        tested = any(k.needs & after == k.needs and k.needs >> i & 1 for k in self.tests)
        return not tested and not self.limited and self._refused_at(i, after, chain=True) == 0.0

    # negations

    def _refused_at(self, i: int, after: int, *, chain: bool) -> float:
        """What the negations cost, for one candidate, that are tested when a component is bound.

        In a chain those between neighbours are pointers, which cost hardly more than the neighbours' own.
        """
        here = [(g, needs) for g, needs in self.negations if needs & after == needs and needs >> i & 1]
        return sum(g.estimate.cost for g, needs in here if not (chain and self.is_pointer(g, needs)))

    @property
    def limited(self) -> bool:
        """Whether a negation stands before the last component of a chain: then no range goes out as a whole."""
        return any(needs == 3 << (self.n - 2) and self.is_pointer(g, needs) for g, needs in self.negations)

    def is_pointer(self, g: t.Negation, needs: int) -> bool:
        """Whether the event before a negation alone decides which events can follow it."""
        low = (needs & -needs).bit_length() - 1
        if g.strategy != "index" or needs != 3 << low or needs & self.kleene:
            return False
        tied = frozenset().union(*(x.variables(e) for e in g.where)) - set(t.variables(g.body))
        return tied <= self.variables[low]


def _holds(c: t.Predicate, keyed: set[x.Expr]) -> bool:
    """Whether an equality is what the key says, so that it needs no test."""
    return isinstance(c.expr, x.Compare) and x.is_equality(c.expr) and not c.when and c.expr.left in keyed


def _meets(needs: int, both: int, left: int, right: int) -> bool:
    """Whether what is needed comes together at a join, and not below it."""
    return needs & both == needs and needs & left != needs and needs & right != needs


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
