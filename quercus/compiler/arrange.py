"""The components of one operator -> a tree of joins or a stack: which shape, what each node tests, what it costs."""

from __future__ import annotations

from typing import Literal

from attrs import evolve, frozen

from quercus.compiler import cost, shapes
from quercus.compiler.effort import Effort
from quercus.compiler.structure import Component
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import tree as t
from quercus.ir.observed import Observed

Op = Literal["SEQ", "AND"]
SIGN = {"SEQ": ";", "AND": " & "}
ANY = "any"  # a leaf has every shape


@frozen
class Arrangement:
    """`alternatives` are the shapes considered, as text, with their costs; `chosen` is the text of this one."""

    node: t.Node
    rows: float
    shape: str
    alternatives: tuple[tuple[str, float], ...]
    chosen: str = ""
    arranged: Arranged | None = None


@frozen(eq=False)
class Arranged:
    """An operator over leaves as it was arranged: a tree, or None for the stack. It can be judged again."""

    arranger: Arranger
    tree: shapes.Tree | None
    alone: bool = False  # whether nothing stands above it

    def renewed(self, observed: Observed) -> Arranged:
        """The same arrangement, judged by what a run has seen."""
        return Arranged(self.arranger.renewed(observed), self.tree, self.alone)

    def cost(self, tree: shapes.Tree | None) -> float:
        """Nanoseconds for one window length."""
        effort = self.arranger.effort
        return effort.stack_cost() if tree is None else shapes.cost(tree, effort.join_cost)

    def below(self, limit: float) -> Arranged | None:
        """The cheapest arrangement, if it costs less than a limit."""
        effort = self.arranger.effort
        stack = self.cost(None)
        tree = shapes.below(effort.op, effort.n, effort.join_cost, effort.least_cost, min(stack, limit))
        return Arranged(self.arranger, tree, self.alone) if tree is not None or stack < limit else None

    def built(self) -> Arrangement:
        """The arrangement with its nodes, whose leaves say what was seen of them."""
        a = self.arranger.with_estimates()
        if self.tree is None:
            return a.stack(a.effort.stack_cost(), ())
        return a.join_tree(self.tree, shapes.name_of(self.tree, a.n) or "mixed", ())


class Arranger:
    """Arranges the components of one operator: `choose` decides a shape and builds it."""

    def __init__(
        self,
        op: Op,
        components: list[Component],
        predicates: list[t.Predicate],
        negations: list[tuple[t.Negation, frozenset[str]]],
        window: p.Window | None,
        model: cost.Model,
        absent: frozenset[str],
        key: frozenset[x.Expr] = frozenset(),
        *,
        whole: bool = True,
        partition_by: tuple[str, ...] = (),
    ) -> None:
        self.op, self.components, self.window, self.model, self.absent = op, components, window, model, absent
        self.n = len(components)
        self.predicates = [(c, self._mask(x.variables(c.expr), c.when), model.selectivity(c.expr)) for c in predicates]
        self.negations = [(g, self._mask(needs, g.when)) for g, needs in negations]
        reach = 1.0
        if window is not None and window.kind == model.window.kind:
            reach = min(1.0, window.size / max(model.window.size, 1))
        same = model.same_key(partition_by)
        self.effort = Effort(
            op, components, self.predicates, self.negations, model, key, whole=whole, reach=reach, same_key=same
        )
        self.rows, self.join_cost = self.effort.rows, self.effort.join_cost

    def _mask(self, names: frozenset[str], when: t.When) -> int:
        """The components that must be bound before something can be tested."""
        taken = {union for union, _ in when}
        return sum(1 << i for i, c in enumerate(self.components) if names & c.variables or taken & c.unions)

    def renewed(self, observed: Observed) -> Arranger:
        """The same operator over leaves, by what a run has seen of them."""
        again = self._copy()
        again._take(self.effort.renewed(evolve(self.model, observed=observed)))
        return again

    def with_estimates(self) -> Arranger:
        """Leaves that show what is expected of them."""
        again, found = self._copy(), []
        for c in self.components:
            assert isinstance(c.node, t.Buffer)
            where = c.node.where
            events = self.model.leaf(c.node.accepts, (k.expr for k in where))[0]
            shown = t.Estimate(c.rows, self.model.buffer(events, len(where)))
            found.append(evolve(c, node=evolve(c.node, estimate=shown)))
        again.components = found
        return again

    def _copy(self) -> Arranger:
        again = Arranger.__new__(Arranger)
        again.__dict__.update(self.__dict__)
        return again

    def _take(self, effort: Effort) -> None:
        self.effort, self.model = effort, effort.model
        self.components, self.predicates = effort.components, effort.predicates
        self.rows, self.join_cost = effort.rows, effort.join_cost

    # choosing

    def choose(self, shape: str, *, listing: bool = True) -> Arrangement:
        """The cheapest arrangement, or one that was asked for; with `listing`, also what it was chosen from."""
        if self.n == 1:
            return self.single()
        stack = self.effort.stack_cost()
        if shape in ("auto", "stack"):
            tree = shapes.cheapest(self.op, self.n, self.join_cost, self.effort.least_cost)
        else:
            tree = shapes.named(shape, self.n)
        listed = self.listed(tree, stack) if listing else ()
        if shape == "stack" or (shape == "auto" and stack <= shapes.cost(tree, self.join_cost)):
            return self.stack(stack, listed)
        name = shape if shape != "auto" else shapes.name_of(tree, self.n) or "mixed"
        return self.join_tree(tree, name, listed)

    def listed(self, best: shapes.Tree, stack: float) -> tuple[tuple[str, float], ...]:
        """Every shape considered, cheapest first."""
        trees = [shapes.named(s, self.n) for s in ("left", "right", "bushy", "inner")]
        if self.n <= shapes.MAX_LISTED[self.op]:
            trees = list(shapes.every(self.op, self.n))
        found = {self.text(tr): shapes.cost(tr, self.join_cost) for tr in (*trees, best)}
        found[self.stack_text()] = stack
        return tuple(sorted(found.items(), key=lambda item: (item[1], item[0])))

    def text(self, tree: shapes.Tree) -> str:
        if isinstance(tree, int):
            return _label(self.components[tree])
        parts = [self.text(c) if isinstance(c, int) else f"({self.text(c)})" for c in tree]
        return SIGN[self.op].join(parts)

    def stack_text(self) -> str:
        return "stack[" + ", ".join(_label(c) for c in self.components) + "]"

    # building

    def single(self) -> Arrangement:
        c = self.components[0]
        node = c.node
        checks = tuple(k for k, _, _ in self.predicates)
        if self.window is not None or checks:
            node = t.Stack(self.op, (t.Step(node, (), checks, ()),), self.window, t.Estimate(c.rows, c.rows))
        node, rows = self._reject(node, c.rows, 1, (0, 0))
        return Arrangement(node, rows, c.shape, ())

    def join_tree(self, tree: shapes.Tree, name: str, listed: tuple[tuple[str, float], ...]) -> Arrangement:
        node = self._make(tree)[0]
        if self.window is not None:
            node = _with_window(node, self.window)
        return Arrangement(node, node.estimate.rows, self._named(name), listed, self.text(tree), self._kept(tree))

    def _make(self, tree: shapes.Tree) -> tuple[t.Node, tuple[x.Expr, ...]]:
        """A subtree's node and the equalities it enforces."""
        if isinstance(tree, int):
            return self.components[tree].node, ()
        (left, known_left), (right, known_right) = self._make(tree[0]), self._make(tree[1])
        lm, rm = shapes.mask(tree[0]), shapes.mask(tree[1])
        alone = {m for m, side in ((lm, tree[0]), (rm, tree[1])) if isinstance(side, int)}
        ready = [
            c
            for c, needs, _ in self.predicates
            if (needs & lm and needs & rm and needs & (lm | rm) == needs) or needs in alone
        ]
        equal, where, known = self._needed(ready, known_left + known_right)
        sides = [isinstance(k, t.Buffer) and k.kleene for k in (left, right)]
        rows = self.rows(lm | rm)
        node: t.Node = t.Join(
            self.op,
            left,
            right,
            "both" if all(sides) else "left" if sides[0] else "right" if sides[1] else None,
            tuple(equal),
            tuple(where),
            t.Cursor(next=True, previous=self.op == "SEQ"),
            None,
            t.Estimate(rows, self.join_cost(lm, rm) - self.effort.refusing(lm, rm)),
        )
        node, _ = self._reject(node, rows, lm | rm, (lm, rm))
        return node, known

    def _needed(
        self, ready: list[t.Predicate], known: tuple[x.Expr, ...]
    ) -> tuple[list[t.Predicate], list[t.Predicate], tuple[x.Expr, ...]]:
        """Equalities to hash on and other tests; an equality that others imply is not tested again."""
        equal: list[t.Predicate] = []
        where: list[t.Predicate] = []
        for c in ready:
            if not x.is_equality(c.expr) or c.when:
                where.append(c)
            elif not implied(c.expr, known, self.absent):
                # an absent variable has nothing to hash
                (where if x.variables(c.expr) & self.absent else equal).append(c)
                known = (*known, c.expr)
        return equal, where, known

    def _reject(self, node: t.Node, rows: float, whole: int, below: tuple[int, int]) -> tuple[t.Node, float]:
        """The negations whose neighbours meet at this node."""
        for g, needs in self.negations:
            if needs & whole == needs and not any(b and needs & b == needs for b in below):
                work = evolve(g.estimate, cost=g.estimate.cost * max(rows, 1.0))
                rows *= g.estimate.rows
                node = t.Reject(node, evolve(g, estimate=work), t.Estimate(rows, 0.0))
        return node, rows

    def stack(self, total: float, listed: tuple[tuple[str, float], ...]) -> Arrangement:
        steps: list[t.Step] = []
        known: tuple[x.Expr, ...] = ()
        for i in range(self.n - 1, -1, -1):
            ready = [c for c, needs, _ in self.predicates if needs and needs & -needs == 1 << i]
            equal, where, known = self._needed(ready, known)
            bound = (1 << self.n) - (1 << i)
            here = tuple(
                evolve(g, estimate=evolve(g.estimate, cost=self.effort.refused_in_stack(g, needs, bound)))
                for g, needs in self.negations
                if needs & -needs == 1 << i
            )
            steps.append(t.Step(self.components[i].node, tuple(equal), tuple(where), here))
        rows = self.rows((1 << self.n) - 1)
        refused = sum(g.estimate.cost for s in steps for g in s.negations)
        for g, _ in self.negations:
            rows *= g.estimate.rows
        node = t.Stack(self.op, tuple(reversed(steps)), self.window, t.Estimate(rows, max(0.0, total - refused)))
        return Arrangement(node, rows, self._named("stack"), listed, self.stack_text(), self._kept(None))

    def _kept(self, tree: shapes.Tree | None) -> Arranged | None:
        """What it takes to judge this again; None: there are sub-queries in it, which would have to be judged first."""
        leaves = all(isinstance(c.node, t.Buffer) for c in self.components)
        return Arranged(self, tree) if leaves else None

    def _named(self, shape: str) -> str:
        return shape if {c.shape for c in self.components} <= {shape, ANY} else "mixed"


def _label(c: Component) -> str:
    names = t.variables(c.node)
    return names[0] if len(names) == 1 else "{" + " ".join(names) + "}"


def _with_window(node: t.Node, window: p.Window) -> t.Node:
    """An inner window belongs to the join that completes its operator, below the negations that filter it."""
    if isinstance(node, t.Reject):
        return evolve(node, source=_with_window(node.source, window))
    assert isinstance(node, t.Join)
    return evolve(node, window=window)


def implied(e: x.Expr, known: tuple[x.Expr, ...], absent: frozenset[str]) -> bool:
    """Whether equalities already enforced lead from one side to the other through what is always there.

    The equality is only tested when its own variables are there, so that the first and the last step may start from
    them.
    """
    assert isinstance(e, x.Compare)
    away = absent - x.variables(e)
    pairs = [(k.left, k.right) for k in known if isinstance(k, x.Compare) and not (away and x.variables(k) & away)]
    reached, grew = {e.left}, True
    while grew and e.right not in reached:
        grew = False
        for a, b in pairs:
            if (a in reached) is not (b in reached):
                reached |= {a, b}
                grew = True
    return e.right in reached
