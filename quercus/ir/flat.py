"""Physical tree -> flat alternatives: for each choice of OR branches, what a match binds and what must hold of it.

Inside one alternative nothing is optional: every leaf is bound, order is a set of pairs, windows are sets of
variables, and a conjunct that names an absent variable is gone. The kernel runs alternatives one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import assert_never

from attrs import evolve, field, frozen

from quercus.errors import LimitExceeded
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import tree as t

MAX_ALTERNATIVES = 5_000


@frozen
class FlatNegation:
    """A negation of an alternative: any match of any body inside the scope violates."""

    scope: t.Scope
    bodies: tuple[Flat, ...]
    excludes: tuple[str, ...]
    strategy: t.Strategy = "iterative"
    source: t.Negation | None = field(default=None, eq=False, repr=False)  # of the plan


@frozen
class FlatNest:
    """A positive sub-query of an alternative. What it says is also said in the alternative around it."""

    flat: Flat
    strategy: t.Strategy
    source: t.Nest | None = field(default=None, eq=False, repr=False)  # of the plan


@frozen
class Flat:
    """One alternative. `before` holds every ordered pair of variables, not only neighbours."""

    buffers: tuple[t.Buffer, ...] = ()
    before: frozenset[tuple[str, str]] = frozenset()
    windows: tuple[tuple[frozenset[str], p.Window], ...] = ()
    predicates: tuple[x.Expr, ...] = ()
    tests: tuple[x.Expr, ...] = ()
    negations: tuple[FlatNegation, ...] = ()
    choices: tuple[tuple[int, int], ...] = ()
    nests: tuple[FlatNest, ...] = ()

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(b.var for b in self.buffers)


def flatten(root: t.Node, window: p.Window) -> tuple[Flat, ...]:
    """The alternatives of a whole plan, the query's window included."""
    flats = _flatten(root, frozenset())
    return tuple(evolve(f, windows=(*f.windows, (f.variables, window))) for f in flats)


def _flatten(n: t.Node, outer: frozenset[str]) -> list[Flat]:
    match n:
        case t.Buffer():
            return [Flat((n,), predicates=tuple(c.expr for c in n.where if not is_local(c.expr)))]
        case t.Join():
            pairs = _product([_flatten(n.left, outer), _flatten(n.right, outer)], n.op)
            return [_restrict(f, outer, (*n.equal, *n.where), n.window) for f in pairs]
        case t.Stack():
            joined = _product([_flatten(s.component, outer) for s in n.steps], n.op)
            predicates = tuple(c for s in n.steps for c in (*s.equal, *s.where))
            flats = [_restrict(f, outer, predicates, n.window) for f in joined]
            return [_reject(f, g, outer) for f in flats for g in [tuple(g for s in n.steps for g in s.negations)]]
        case t.Union():
            branches = [(i, f) for i, b in enumerate(n.branches) for f in _flatten(b, outer)]
            return [_restrict(evolve(f, choices=(*f.choices, (n.number, i))), outer, (), n.window) for i, f in branches]
        case t.Reject():
            return [_reject(f, (n.negation,), outer) for f in _flatten(n.source, outer)]
        case t.Test():
            return [_test(f, _tested(f, n.where, outer)) for f in _flatten(n.source, outer)]
        case t.Combine():
            return _flatten(n.source, outer)
        case t.Nest():
            return [evolve(f, nests=(FlatNest(f, n.strategy, n),)) for f in _flatten(n.source, outer)]
        case t.Empty():
            return []
        case _:
            assert_never(n)


def is_local(e: x.Expr) -> bool:
    """Whether a leaf's own conjunct can be tested event by event."""
    return not isinstance(e, x.Same) and not x.has_group_call(e)


def _product(parts: list[list[Flat]], op: str) -> list[Flat]:
    count = 1
    for choices in parts:
        count *= len(choices)
    if count > MAX_ALTERNATIVES:
        raise LimitExceeded(
            f"the ORs of this query can be taken in {count:,} ways; the limit is {MAX_ALTERNATIVES:,}: split the query",
            limit="alternatives",
            value=count,
        )
    return [_join(chosen, op) for chosen in product(*parts)]


def _join(parts: Iterable[Flat], op: str) -> Flat:
    joined = Flat()
    for f in parts:
        ordered = {(a, b) for a in joined.variables for b in f.variables} if op == "SEQ" else set()
        joined = Flat(
            joined.buffers + f.buffers,
            joined.before | f.before | ordered,
            joined.windows + f.windows,
            joined.predicates + f.predicates,
            joined.tests + f.tests,
            joined.negations + f.negations,
            joined.choices + f.choices,
            joined.nests + f.nests,
        )
    return joined


def _taken(f: Flat, when: t.When) -> bool:
    return set(when) <= set(f.choices)


def _tested(f: Flat, predicates: Iterable[t.Predicate], outer: frozenset[str]) -> tuple[x.Expr, ...]:
    """The conjuncts tested in this alternative: their branch taken, their variables there."""
    present = f.variables | outer
    found: list[x.Expr] = []
    for c in predicates:
        if not _taken(f, c.when):
            continue
        if isinstance(c.expr, x.Same):
            found.append(evolve(c.expr, columns=tuple(k for k in c.expr.columns if k.var in present)))
        elif x.variables(c.expr) <= present:
            found.append(c.expr)
    return tuple(found)


def _test(f: Flat, tests: tuple[x.Expr, ...]) -> Flat:
    """Tests on whole matches; agreement is of pairs, and shapes the sets themselves."""
    pairs = tuple(c for c in tests if isinstance(c, x.Same))
    return evolve(f, predicates=f.predicates + pairs, tests=f.tests + tuple(c for c in tests if c not in pairs))


def _restrict(f: Flat, outer: frozenset[str], predicates: Iterable[t.Predicate], window: p.Window | None) -> Flat:
    windows = f.windows if window is None else (*f.windows, (f.variables, window))
    return evolve(f, windows=windows, predicates=f.predicates + _tested(f, predicates, outer))


def _reject(f: Flat, negations: Iterable[t.Negation], outer: frozenset[str]) -> Flat:
    added: list[FlatNegation] = []
    for g in negations:
        if not _taken(f, g.when):
            continue
        around = f.variables | outer
        bodies = flatten_body(g.body, g.where, around)
        excludes = tuple(v for v in g.excludes if v in around)
        added.append(FlatNegation(g.scope, bodies, excludes, g.strategy, g))
    return evolve(f, negations=f.negations + tuple(added))


def flatten_body(body: t.Node, where: tuple[x.Expr, ...], around: frozenset[str]) -> tuple[Flat, ...]:
    """The alternatives of a negated body, with what ties each to the variables around it."""
    tied = [t.Predicate(c) for c in where]
    return tuple(evolve(f, predicates=f.predicates + _tested(f, tied, around)) for f in _flatten(body, around))
