"""Logical query -> physical tree: conjuncts and negations to their lowest nodes, a shape for every operator, by cost.

The recursion goes down with the conjuncts that a sub-pattern can test alone, and comes up with its tree and with what
it could not place: conjuncts and negations that need variables from outside. At the root everything has a place.
"""

from __future__ import annotations

from itertools import count
from math import exp
from typing import TYPE_CHECKING, assert_never

from attrs import evolve, frozen

from quercus.compiler import cost
from quercus.compiler.arrange import ANY, Arranged, Arranger, implied
from quercus.compiler.constants import CALIBRATED, Constants
from quercus.compiler.homes import inner_conjuncts, without_conditions
from quercus.compiler.nested import APART, choose_strategy, settle
from quercus.compiler.pipeline import bottom_up
from quercus.compiler.rules.and_kleene_orders import and_kleene_orders
from quercus.compiler.scope import Placed, inner_negations, negations
from quercus.compiler.structure import Component
from quercus.ir import exists, text
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import tree as t

if TYPE_CHECKING:
    from quercus.ir.observed import Observed
    from quercus.schema import Schema
    from quercus.stats import Stats


@frozen
class Pending:
    """A negation on its way up to a node that sees all it needs; `needs` None: the whole match."""

    negation: t.Negation
    needs: frozenset[str] | None
    combined: bool  # needs the final choice of an [n] set


@frozen
class Built:
    """A sub-pattern's tree, and what is still to be placed above it."""

    node: t.Node
    rows: float
    shape: str
    escaped: tuple[t.Predicate, ...] = ()
    pending: tuple[Pending, ...] = ()
    alternatives: tuple[tuple[str, float], ...] = ()
    chosen: str = ""
    arranged: Arranged | None = None


def plan_tree(
    q: p.Query,
    schema: Schema,
    stats: Stats | None,
    shape: str,
    nested: str,
    observed: Observed | None = None,
    constants: Constants = CALIBRATED,
) -> tuple[t.Tree, Built]:
    """The physical tree of a rewritten query, for one shape ('auto': each operator's cheapest).

    What a run has `observed` of its events goes before statistics. What an AND beside a Kleene component means is its
    orders: they are taken here, if the rule was left out.
    """
    q = evolve(q, pattern=bottom_up(q.pattern, and_kleene_orders))
    planner = _Planner(q, schema, stats, shape, nested, observed, constants)
    if q.empty is not None:
        built = Built(t.Empty(q.empty, t.Estimate()), 0.0, "stack")
    else:
        built = planner.root(q.pattern, q.where, (), postpone=())
        built = evolve(built, node=settle(built.node, nested, planner.model))
    purge = f"events older than {text.window(q.window)} before the newest"
    tree = t.Tree(
        root=built.node,
        window=q.window,
        shape="stack" if built.shape == ANY else built.shape,  # type: ignore[arg-type]
        purge=purge,
        partition_by=q.partition_by,
        key=q.key,
        reads=q.reads or (),
        returns=q.returns,
        aggregates=q.aggregates,
        group_by=q.group_by,
        routing=planner.routing(built.node),
        cost=t.total_cost(built.node) + planner.routing(built.node),
    )
    return tree, built


class _Planner:
    def __init__(
        self,
        q: p.Query,
        schema: Schema,
        stats: Stats | None,
        shape: str,
        nested: str,
        observed: Observed | None,
        constants: Constants,
    ) -> None:
        self.q, self.schema, self.shape, self.nested = q, schema, shape, nested
        self.kleene = p.kleene_variables(q.pattern)
        self.all = p.all_variables(q.pattern)
        self.counted = {k.var: k.most for k in p.walk(q.pattern) if isinstance(k, p.Kleene) and k.most is not None}
        # Of negated bodies too: what ties those to the match must not lean on a branch that was not taken.
        bodies = (n.body for n in p.walk(q.pattern) if isinstance(n, p.Not))
        self.absent = frozenset().union(p.can_be_absent(q.pattern), *(p.can_be_absent(b) for b in bodies))
        self.types: dict[str, frozenset[str]] = {}
        for leaf in p.leaves(q.pattern, negated=True):
            type_ = leaf.leaf.type if isinstance(leaf, p.Kleene) else leaf.type
            self.types[leaf.var] = self.types.get(leaf.var, frozenset()) | set(schema.accepts(type_))
        types = {v: tuple(sorted(names)) for v, names in self.types.items()}
        self.model = cost.Model(q.window, stats, types, observed, constants)
        self.unions = count(1)
        self.known = tuple(c for c in q.where if x.is_equality(c))  # what holds around the negation being placed
        self.placed: dict[tuple[int, ...], Placed] = {}
        todo = list(negations(q.pattern))
        while todo:
            placed = todo.pop()
            self.placed[placed.path] = placed
            todo.extend(inner_negations(placed))

    def routing(self, root: t.Node) -> float:
        """Looking at the types of all events, once."""
        leaves = {n.accepts: n.estimate.rows for n in t.walk(root) if isinstance(n, t.Buffer)}
        return self.model.routing(sum(leaves.values()))

    # roots: of the query, of a branch of a root OR, of a negated sub-pattern

    def root(
        self,
        e: p.Pattern,
        where: tuple[x.Expr, ...],
        path: tuple[int, ...],
        postpone: tuple[t.Predicate, ...],
        outer: frozenset[str] = frozenset(),
    ) -> Built:
        """A pattern whose match is whole: nothing escapes from here. `outer` are the variables around a negation."""
        own = p.positive_variables(e)
        seen = (x.without_variables(c, self.all - own - outer) for c in where)
        predicates = [t.Predicate(c) for c in seen if c is not None]
        tests = [c for c in predicates if x.has_group_call(c.expr) or not x.variables(c.expr) <= own]
        tested = tuple(c for c in predicates if c not in tests)
        built = self.build(e, tested, path, root_tests=tuple(tests), outer=outer)
        if isinstance(e, p.Or):
            tests = []  # its branches are roots of their own, and have taken them
        node, rows = built.node, built.rows
        early = [n for n in built.pending if not n.combined]
        late = [n for n in built.pending if n.combined]
        node, rows = self.reject(node, rows, early)
        counts = tuple((v, n) for v, n in self.counted.items() if v in own and not isinstance(e, p.Or))
        if counts:
            for var, n in counts:
                rows *= cost.combinations(self._elements(e, var), n)
            node = t.Combine(node, counts, t.Estimate(rows, 0.0))
        checks = (*tests, *built.escaped, *postpone)
        if checks:
            work = rows * len(checks) * self.model.constants.test
            for c in checks:
                rows *= self.model.selectivity(c.expr)
            node = t.Test(node, checks, t.Estimate(rows, work))
        node, rows = self.reject(node, rows, late)
        arranged = built.arranged
        if arranged is not None and node is built.node:
            arranged = evolve(arranged, alone=True)
        return evolve(built, node=node, rows=rows, escaped=(), pending=(), arranged=arranged)

    def reject(self, node: t.Node, rows: float, pending: list[Pending]) -> tuple[t.Node, float]:
        for n in pending:
            tested = evolve(n.negation.estimate, cost=n.negation.estimate.cost * max(rows, 1.0))
            rows *= n.negation.estimate.rows
            node = t.Reject(node, evolve(n.negation, estimate=tested), t.Estimate(rows, 0.0))
        return node, rows

    def _elements(self, e: p.Pattern, var: str) -> float:
        leaf = next(k for k in p.leaves(e) if k.var == var)
        assert isinstance(leaf, p.Kleene)
        return self.model.events(self.schema.accepts(leaf.leaf.type)) / 2

    # one case per kind of pattern

    def build(
        self,
        e: p.Pattern,
        predicates: tuple[t.Predicate, ...],
        path: tuple[int, ...],
        root_tests: tuple[t.Predicate, ...] | None = None,
        outer: frozenset[str] = frozenset(),
    ) -> Built:
        """`predicates` name only variables of `e`. `root_tests` is given when `e` is a root."""
        match e:
            case p.Leaf() | p.Kleene():
                return self.leaf(e, predicates, alone=root_tests is not None)
            case p.Seq() | p.And():
                return self.operator(e, predicates, path, whole=root_tests is not None)
            case p.Or():
                return self.union(e, predicates, path, root_tests, outer)
            case p.Not():
                raise AssertionError("a negation is built by the operator around it")
            case _:
                assert_never(e)

    def leaf(self, e: p.Leaf | p.Kleene, predicates: tuple[t.Predicate, ...], *, alone: bool) -> Built:
        leaf = e.leaf if isinstance(e, p.Kleene) else e
        kleene = isinstance(e, p.Kleene)
        least, most = (e.least, e.most) if isinstance(e, p.Kleene) else (1, 1)
        accepts = self.schema.accepts(leaf.type)
        events, rows = self.model.leaf(accepts, (c.expr for c in predicates))
        work = self.model.buffer(events, len(predicates))
        node: t.Node = t.Buffer(leaf.var, leaf.type, accepts, kleene, least, most, predicates, t.Estimate(rows, work))
        if alone and isinstance(e, p.Kleene):  # maximal sets within the window: a stack of one
            each = self.model.constants.complete + rows * self.model.constants.left
            node = t.Stack("SEQ", (t.Step(node, (), (), ()),), None, t.Estimate(rows, rows * each))
        return Built(node, rows, ANY)

    def operator(
        self, e: p.Seq | p.And, predicates: tuple[t.Predicate, ...], path: tuple[int, ...], *, whole: bool
    ) -> Built:
        own = p.positive_variables(e)
        components: list[Component] = []
        crossing, pending = list(predicates), []
        for i, c in enumerate(e.parts):
            if isinstance(c, p.Not):
                pending.append(self.negation((*path, i)))
                continue
            inside = p.positive_variables(c)
            mine = tuple(k for k in crossing if x.variables(k.expr) <= inside and not k.when)
            crossing = [k for k in crossing if k not in mine]
            built = self.build(c, mine, (*path, i))
            crossing.extend(built.escaped)
            pending.extend(built.pending)
            unions = frozenset(n.number for n in t.positive(built.node) if isinstance(n, t.Union))
            node = built.node
            if not isinstance(node, t.Buffer):
                node = t.Nest(node, "rewrite", "", t.Estimate(built.rows, 0.0))
            components.append(Component(node, built.rows, inside, built.shape, unions))
        here = [k for k in crossing if x.variables(k.expr) <= own and not x.has_group_call(k.expr)]
        local = [n for n in pending if n.needs is not None and n.needs <= own]
        arranger = Arranger(
            "SEQ" if isinstance(e, p.Seq) else "AND",
            components,
            here,
            [(n.negation, n.needs or frozenset()) for n in local],
            e.window,
            self.model,
            (self.absent - own) | p.can_be_absent(e),
            frozenset(self.q.key.columns if self.q.key is not None else ()),
            whole=whole,
            partition_by=self.q.partition_by,
        )
        apart = self.nested in APART and any(isinstance(c.node, t.Nest) for c in components)
        shape = "stack" if apart and self.shape == "auto" else self.shape
        arrangement = arranger.choose(shape, listing=path == () and self.model.observed is None)
        return Built(
            arrangement.node,
            arrangement.rows,
            arrangement.shape,
            tuple(k for k in crossing if k not in here),
            tuple(n for n in pending if n not in local),
            arrangement.alternatives,
            arrangement.chosen,
            arrangement.arranged,
        )

    def union(
        self,
        e: p.Or,
        predicates: tuple[t.Predicate, ...],
        path: tuple[int, ...],
        root_tests: tuple[t.Predicate, ...] | None,
        outer: frozenset[str],
    ) -> Built:
        number = next(self.unions)
        bound_here = p.positive_variables(e)
        branches, escaped, pending = [], [], []
        for i, b in enumerate(e.branches):
            own, when = p.positive_variables(b.body), ((number, i),)
            mine = self.inside(predicates, own, bound_here)
            if root_tests is not None:
                tests = tuple(
                    k for k in root_tests if x.variables(k.expr) <= own or not x.variables(k.expr) & bound_here
                )
                stands_here = self.inside(tuple(t.Predicate(c) for c in b.where), own, bound_here)
                here = tuple(k.expr for k in (*mine, *stands_here))
                built = self.root(b.body, here, (*path, i), tests, outer)
            else:
                stands = self.inside(tuple(t.Predicate(c) for c in b.where), own, bound_here)
                inside = [k for k in stands if x.variables(k.expr) <= own and not x.has_group_call(k.expr)]
                built = self.build(b.body, mine + tuple(inside), (*path, i))
                escaped += [
                    evolve(k, when=k.when + when) for k in (*(s for s in stands if s not in inside), *built.escaped)
                ]
                pending += [evolve(n, negation=evolve(n.negation, when=n.negation.when + when)) for n in built.pending]
            branches.append(built)
        rows = sum(b.rows for b in branches)
        bound = [v for b in branches for v in t.variables(b.node)]
        distinct = len(set(bound)) < len(bound)
        node = t.Union(number, tuple(b.node for b in branches), e.window, distinct, t.Estimate(rows, rows))
        shapes = {b.shape for b in branches} - {ANY}
        shape = ANY if not shapes else shapes.pop() if len(shapes) == 1 else "mixed"
        return Built(node, rows, shape, tuple(escaped), tuple(pending))

    def inside(
        self, predicates: tuple[t.Predicate, ...], own: frozenset[str], union: frozenset[str]
    ) -> tuple[t.Predicate, ...]:
        """The predicates of a union that one branch can test: not those that name another branch's variable."""
        found: list[t.Predicate] = []
        for k in predicates:
            e = x.without_variables(k.expr, union - own)
            alone = isinstance(e, x.Same) and len(e.columns) == 1 and e.columns[0].var not in self.kleene
            if e is not None and not alone:
                found.append(evolve(k, expr=e))
        return tuple(found)

    def negation(self, path: tuple[int, ...]) -> Pending:
        placed = self.placed[path]
        n, scope = placed.negation, placed.scope
        inside = p.positive_variables(n.body)
        local = tuple(c for c in n.where if x.variables(c) <= inside)
        known = self.known
        self.known = (*known, *(c for c in n.where if x.is_equality(c)))
        body = self.root(n.body, local, (*path, 0), (), self.all - inside)
        self.known = known
        excludes = placed.siblings if placed.in_and else ()
        bounds = {v for g in (*scope.after, *scope.before) for v in g} | set(excludes)
        correlated = self.correlated([c for c in n.where if c not in local], local, bounds | inside)
        needs = bounds | _outer_names(evolve(n, where=correlated))
        barred = frozenset().union(*(self.types[v] for v in excludes))
        around = exists.Around(self.kleene, self.absent, barred)
        strategy, reason = choose_strategy(body.node, correlated, self.all - inside, around, self.nested)
        work = self._tested_once(body, strategy)
        negation = t.Negation(
            body.node,
            scope,
            text.pattern(without_conditions(n.body)),
            correlated,
            (),
            excludes,
            strategy,
            reason,
            n.marks,
            t.Estimate(self._let_through(body.rows), work),
        )
        whole = scope.left is not None or scope.right is not None or bool(needs & self.kleene)
        return Pending(negation, None if whole else frozenset(needs), bool(needs & set(self.counted)))

    def _tested_once(self, body: Built, strategy: str) -> float:
        """What one test of a negation costs."""
        leaves = sum(isinstance(n, t.Buffer) for n in t.positive(body.node))
        if strategy == "index":
            return self.model.probe(body.rows, leaves)
        return self.model.searched(body.rows, leaves)

    def _let_through(self, inner: float) -> float:
        """The part of composites that a negation lets through: none of what it forbids falls into half a window."""
        return min(max(exp(-inner / 2), 0.05), 0.95) if self.model.known else 0.5

    def correlated(
        self, where: list[x.Expr], local: tuple[x.Expr, ...], near: set[str] | frozenset[str]
    ) -> tuple[x.Expr, ...]:
        """What ties a negation to the match, without equalities that the match's own imply:

        those with neighbours are kept.
        """
        known = (*self.known, *(c for c in local if x.is_equality(c)))
        kept: list[x.Expr] = []
        for c in sorted(where, key=lambda c: len(x.variables(c) - near)):
            if not x.is_equality(c):
                kept.append(c)
            elif not implied(c, known, self.absent):
                kept.append(c)
                known = (*known, c)
        return tuple(c for c in where if c in kept)


def _outer_names(n: p.Not) -> set[str]:
    """The match's variables that a negation's conjuncts name, at any depth."""
    own = p.all_variables(n.body)
    return {v for c in inner_conjuncts(n) for v in x.variables(c)} - own
