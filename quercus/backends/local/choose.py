"""Which order a stream's searches had better bind in, by what is known of its events."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from quercus.backends.local.orders import Orders, fixed, normal, stack_order, tree_order
from quercus.backends.local.release import Variant
from quercus.compiler.cost import DEFAULT_DISTINCT, Model
from quercus.compiler.stream_cost import Search
from quercus.ir.flat import Flat
from quercus.ir.observed import Leaf, Observed
from quercus.plan import Plan
from quercus.stats import Stats

Variants = list[tuple[Flat, Variant]]

MOST = 32  # searches that are planned
DENSE = 16  # a chain runs where no more than so many events come to a pivot
WORTH = 1.05  # a first plan leaves the stack only where it is expected to cost that much


@frozen
class Choice:
    """The orders to take, and what those in use and these are expected to cost in a window."""

    orders: Orders
    current: float
    cost: float

    @property
    def gain(self) -> float:
        return self.current / self.cost if self.cost > 0 else 1.0


def planned_orders(plan: Plan, variants: Variants) -> Orders:
    """What a plan says of its searches: its shape, or the cheapest order where that is left open."""
    if plan.options.shape != "auto":
        return tuple(tree_order(plan.tree.root, f, v) for f, v in variants)
    stack: Orders = ((),) * len(variants)
    if not is_known(plan) or len(variants) > MOST:
        return stack
    choice = choose(plan, variants, stack, planned_searches(plan, variants), {})
    return choice.orders if choice.gain > WORTH else stack


def can_switch(variants: Variants) -> bool:
    """Whether there is any other order: a pivot and one more component have none."""
    return len(variants) <= MOST and any(len(stack_order(f, v)) > 1 for f, v in variants)


def is_known(plan: Plan) -> bool:
    """Whether anything is known of the stream beforehand."""
    return plan.options.stats is not None and bool(plan.options.stats.rates)


def planned_model(plan: Plan) -> Model:
    return Model(plan.tree.window, plan.options.stats, {})


def planned_searches(plan: Plan, variants: Variants) -> list[Search]:
    model = planned_model(plan)
    keys, stats = 1 / model.same_key(plan.tree.partition_by), plan.options.stats or Stats()
    if plan.tree.key is not None and not plan.tree.partition_by:
        keys = max(float(stats.distinct.get(c.attr) or DEFAULT_DISTINCT) for c in plan.tree.key.columns)
    return _searches(plan, variants, plan.options.stats, None, keys)


def seen_searches(
    plan: Plan, variants: Variants, leaves: Mapping[Leaf, float], selectivity: Mapping[str, float], keys: float
) -> list[Search]:
    """By what was seen: events of each leaf in a window, and what conditions let pass."""
    known = plan.options.stats or Stats()
    stats = Stats(known.rates, known.distinct, {**known.selectivity, **selectivity}, known.total, known.attributes)
    return _searches(plan, variants, stats, Observed(leaves, 0.0, {}, {}), keys)


def _searches(
    plan: Plan, variants: Variants, stats: Stats | None, observed: Observed | None, keys: float
) -> list[Search]:
    tree = plan.tree
    key = frozenset(tree.key.columns if tree.key is not None else ())
    found = []
    for f, v in variants:
        model = Model(tree.window, stats, {b.var: b.accepts for b in f.buffers}, observed)
        found.append(Search(f, v.pivot, model, key=key, keys=max(keys, 1.0), size=tree.window.size))
    return found


def choose(
    plan: Plan, variants: Variants, orders: Orders, searches: list[Search], chained: Mapping[int, bool]
) -> Choice:
    """The cheapest order of each search; `chained`: whether it runs along pointers as a stack, where that was seen."""
    current, cost, taken = 0.0, 0.0, []
    for i, ((f, v), order, search) in enumerate(zip(variants, orders, searches, strict=True)):
        ordered = can_chain(f, v)
        chain = ordered and chained.get(i, search.pivots * DENSE >= search.events)
        stack = search.cost(stack_order(f, v), in_order=ordered and len(variants) == 1, chain=chain)
        now = search.cost(order) if order else stack
        best = search.best()
        least, chosen = min((now, order), (stack, ()), (search.cost(best), normal(f, v, best)), key=lambda k: k[0])
        current, cost = current + now, cost + least
        taken.append(chosen)
    base = max((s.events * s.c.leaf for s in searches), default=0.0)
    return Choice(tuple(taken), current + base, cost + base)


def can_chain(f: Flat, v: Variant) -> bool:
    """Whether a stack runs along pointers: a SEQ of single events in one window."""
    names = fixed(f)
    single = len(names) == len([b for b in f.buffers if not b.kleene]) and len(names) > 1
    ordered = all((a, b) in f.before for i, a in enumerate(names) for b in names[i + 1 :])
    return v.chain and not v.rivals and v.mode != "first" and single and ordered and len(f.windows) == 1
