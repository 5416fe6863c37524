"""How sub-queries are answered: which strategies fit them, and which is chosen (docs/nested.md).

A negated one gets its strategy where it is planned; the positive ones theirs when the whole tree is there, from the
root down: a sub-query inside another one depends on how that one is answered. With `auto`, a query is planned twice:
with its sub-queries bound with the match around, and with each of them apart by its cheapest strategy.
"""

from __future__ import annotations

from math import prod
from typing import Any, cast

from attrs import evolve

from quercus.compiler import view_cost
from quercus.compiler.cost import Model
from quercus.compiler.effort import Effort
from quercus.compiler.structure import Component
from quercus.errors import LimitExceeded
from quercus.ir import exists
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.flat import Flat, flatten_body
from quercus.ir.tree import Strategy

PRICED = "priced"  # asks for the cheapest strategy that keeps a sub-query apart
STRATEGIES = ("iterative", "aggressive", "passive", "balanced", "index", "rewrite")
APART = ("iterative", "aggressive", "passive", "balanced", PRICED)  # those that keep a sub-query apart
FLATTENING = ("flatten_seq", "flatten_and")  # the rules that leave no sub-query where order alone says the same

JOINED = "a join keeps its composites"
SETS = "its sets are completed with the match around it"
ALONE = "nothing else is bound before it"
LAST = "its last event begins the search for what is around it"
EVENTS = "bound event by event with the match around it"


def choose_strategy(
    body: t.Node, where: tuple[x.Expr, ...], names: frozenset[str], around: exists.Around, asked: str
) -> tuple[Strategy, str]:
    """The strategy and why. `index` falls back where it does not fit; a leaf is one search unless `iterative` is asked.

    `where` ties the body to the match, whose variables are `names`.
    """
    try:
        bodies = flatten_body(body, where, names)
    except LimitExceeded:
        return "iterative", "its ORs can be taken in too many ways"
    obstacle = next((w.reason for b in bodies if (w := exists.way_of(b, around)).method == "search"), None)
    leaf = obstacle is None and isinstance(body, t.Buffer)
    if leaf and asked != "iterative":
        return "index", "a leaf: one search"
    if asked == "iterative":
        return "iterative", "asked for"
    if asked in APART and asked != PRICED:
        return _view(bodies, cast("Any", asked))
    if obstacle is None:
        return "index", "existence alone decides"
    return "iterative", obstacle


def _view(bodies: tuple[Flat, ...], asked: Strategy) -> tuple[Strategy, str]:
    """A view, where results can be found from their last event on."""
    if any(exists.is_counted(b) for f in bodies for b in f.buffers):
        return "iterative", exists.COUNTED
    return asked, "asked for"


# Positive sub-queries -------------------------------------------------------------------------------------------------


def settle(n: t.Node, asked: str, model: Model) -> t.Node:
    """The tree with a strategy for each positive sub-query."""
    return _settle(n, asked, None, model, joined=False)


def _settle(n: t.Node, asked: str, around: Strategy | None, model: Model, *, joined: bool) -> t.Node:
    """`around`: how the sub-query that this is the root of is answered. `joined`: an operator above is a join."""
    match n:
        case t.Stack():
            return _priced(_stack(n, asked, around, model, joined=joined), model)
        case t.Join():
            return evolve(
                n,
                left=_component(n.left, asked, around, model, JOINED, joined=True),
                right=_component(n.right, asked, around, model, JOINED, joined=True),
            )
        case t.Union():
            return evolve(n, branches=tuple(_settle(b, asked, around, model, joined=joined) for b in n.branches))
        case t.Reject():
            source = _settle(n.source, asked, around, model, joined=joined)
            return evolve(n, source=source, negation=_negation(n.negation, asked, n.source.estimate.rows, model))
        case t.Test() | t.Combine():
            return evolve(n, source=_settle(n.source, asked, around, model, joined=joined))
        case t.Nest():
            return _component(n, asked, around, model, None, joined=joined)
        case _:
            return n


def _stack(n: t.Stack, asked: str, around: Strategy | None, model: Model, *, joined: bool) -> t.Stack:
    last = n.steps[-1] if n.op == "SEQ" and around in ("aggressive", "passive", "balanced") else None
    alone = all(isinstance(s.component, t.Nest) or _is_set(s.component) for s in n.steps)
    outer = None if alone or joined else _outer(n, model)
    steps = []
    for s in n.steps:
        reason = JOINED if joined else LAST if s is last else ALONE if alone and s is n.steps[-1] else None
        steps.append(
            evolve(
                s,
                component=_component(s.component, asked, around, model, reason, outer, joined=joined),
                negations=tuple(_negation(g, asked, 2 * n.estimate.rows, model) for g in s.negations),
            )
        )
    return evolve(n, steps=tuple(steps))


def _outer(n: t.Stack, model: Model) -> view_cost.Outer | None:
    """What is around the sub-queries of a stack: its own single events, bound first."""
    own = [s.component for s in n.steps if isinstance(s.component, t.Buffer) and not s.component.kleene]
    if not own or not any(isinstance(s.component, t.Nest) for s in n.steps):
        return None
    components = [Component(c, c.estimate.rows, frozenset([c.var]), "any") for c in own]
    bit = {c.var: 1 << i for i, c in enumerate(own)}
    conditions = [c for s in n.steps for c in (*s.equal, *s.where) if x.variables(c.expr) <= bit.keys()]
    tested = [(c, sum(bit[v] for v in x.variables(c.expr)), model.selectivity(c.expr)) for c in conditions]
    reach = 1.0
    if n.window is not None and n.window.kind == model.window.kind:
        reach = min(1.0, n.window.size / max(model.window.size, 1))
    return view_cost.Outer(Effort(n.op, components, tested, [], model, frozenset(), whole=False, reach=reach))


def _priced(n: t.Stack, model: Model) -> t.Stack:
    """A stack around sub-queries that are kept apart costs its own search, and what is made of the matches."""
    nests = [s.component for s in n.steps if isinstance(s.component, t.Nest)]
    outer = _outer(n, model) if nests and all(k.strategy != "rewrite" for k in nests) else None
    if outer is None:
        return n
    matches = outer.asks * prod(outer.found(k.source) for k in nests)
    own = {v for s in n.steps if not isinstance(s.component, t.Nest) for v in t.variables(s.component)}
    for c in (c.expr for s in n.steps for c in (*s.equal, *s.where)):
        matches *= 1.0 if x.variables(c) <= own else model.selectivity(c)
    return evolve(n, estimate=t.Estimate(matches, outer.own + matches * model.constants.sort))


def _negation(g: t.Negation, asked: str, asks: float, model: Model) -> t.Negation:
    """A negation of an operator that asks so often; where no index fits, and none was asked for, by cost."""
    if asked in ("auto", "rewrite", PRICED) and g.strategy == "iterative" and _can_be_viewed(g.body):
        search, view = view_cost.searched(g.body, asks), view_cost.viewed(g.body, asks)
        if view < search:
            g = evolve(g, strategy="balanced", reason=f"{g.reason}; a view costs less than to search each time")
    flat = g.strategy == "index"  # its leaves are searched one by one
    return evolve(g, body=_settle(g.body, "rewrite" if flat else asked, g.strategy, model, joined=False))


def _can_be_viewed(body: t.Node) -> bool:
    leaves = [n for n in t.positive(body) if isinstance(n, t.Buffer)]
    unions = any(isinstance(n, t.Union) for n in t.positive(body))
    return len(leaves) > 1 and not unions and not any(exists.is_counted(b) for b in leaves)


def _is_set(n: t.Node) -> bool:
    return isinstance(n, t.Buffer) and n.kleene and n.most is None


def _component(
    n: t.Node,
    asked: str,
    around: Strategy | None,
    model: Model,
    reason: str | None,
    outer: view_cost.Outer | None = None,
    *,
    joined: bool,
) -> t.Node:
    """A component of an operator; with a reason, a sub-query is bound with the match around it."""
    if not isinstance(n, t.Nest):
        return _settle(n, asked, around, model, joined=joined)
    if reason is None and any(isinstance(b, t.Buffer) and b.kleene for b in t.positive(n.source)):
        reason = SETS
    prices = outer.prices(n.source, outer.asks, model.constants) if outer is not None and reason is None else {}
    strategy, why = ("rewrite", reason) if reason is not None else positive_strategy(asked, prices)
    inside = around if strategy == "rewrite" else strategy
    source = _settle(n.source, asked, cast("Any", inside), model, joined=joined)
    if strategy in prices or not joined:  # its results are not joined but searched, which the stack around has counted
        source = _without_cost(source)
    shown = evolve(n.estimate, cost=prices.get(strategy, n.estimate.cost))
    return evolve(n, source=source, strategy=cast("Any", strategy), reason=why, estimate=shown)


def _without_cost(n: t.Node) -> t.Node:
    """Operators that are not run as they stand; leaves are."""
    match n:
        case t.Join():
            n = evolve(n, left=_without_cost(n.left), right=_without_cost(n.right))
        case t.Stack():
            n = evolve(n, steps=tuple(evolve(s, component=_without_cost(s.component)) for s in n.steps))
        case t.Reject() | t.Test() | t.Combine():
            n = evolve(n, source=_without_cost(n.source))
        case _:
            return n
    return evolve(n, estimate=evolve(n.estimate, cost=0.0))


def positive_strategy(asked: str, prices: dict[str, float]) -> tuple[Strategy, str]:
    """How the results of a positive sub-query are come by: they are needed one by one, so that no index can answer."""
    if asked == PRICED:
        best = view_cost.cheapest(prices) if prices else "balanced"
        return cast("Any", best), "the cheapest"
    if asked in ("auto", "index"):
        return "rewrite", EVENTS
    return cast("Any", asked), "asked for"
