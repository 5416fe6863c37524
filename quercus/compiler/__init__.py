"""Text -> typed logical IR -> physical tree."""

from __future__ import annotations

from collections.abc import Collection

from attrs import evolve

from quercus import plan as plans  # which imports parts of this package: by name, when all of it is there
from quercus.compiler.aggregates import totalled
from quercus.compiler.arrange import Arranged
from quercus.compiler.bind import bind
from quercus.compiler.cost import DEFAULT_WINDOWS
from quercus.compiler.explain import APART as APART_BY
from quercus.compiler.explain import FAR
from quercus.compiler.nested import APART, FLATTENING, PRICED, STRATEGIES, settle
from quercus.compiler.parse import parse_query
from quercus.compiler.pipeline import Fired, apply, rewrite
from quercus.compiler.planner import Built, plan_tree
from quercus.compiler.rules import BY_NAME
from quercus.compiler.warn import warnings
from quercus.errors import QueryError, nearest
from quercus.ir import pattern as p
from quercus.ir import tree as t
from quercus.ir.observed import Observed
from quercus.schema import Schema
from quercus.stats import Stats

SURE = 0.25  # of the cost of binding sub-queries with the match around: both estimates may be wrong
SAVED = 5e6  # nanoseconds that must be saved: to keep a sub-query apart takes some time however few events there are
SHAPES = ("auto", "left", "right", "bushy", "inner", "stack")


def compile(
    text: str,
    schema: Schema,
    *,
    stats: Stats | None = None,
    shape: str = "auto",
    nested: str = "auto",
    without: Collection[str] = (),
) -> plans.Plan:
    """Compile a query to a plan, or raise `QueryError` with the place and what to do.

    `shape`: left, right, bushy, inner (trees), stack (automaton), or auto, by cost. `nested`: how nested sub-queries
    run: rewrite, index, iterative, aggressive, passive, balanced, or auto (docs/nested.md). `without` names rewrite
    rules to leave out.

    >>> import quercus as qc
    >>> plan = qc.compile("PATTERN SEQ(A a, B b, a.x = b.x) WITHIN 1 min", qc.Schema({"x": "int64"}))
    >>> plan.tree.shape
    'stack'
    """
    for asked, known, what in ((shape, SHAPES, "shape"), (nested, ("auto", *STRATEGIES), "nested")):
        if asked not in known:
            raise QueryError(
                "E702", f"no {what} '{asked}'", hint=nearest(str(asked), known) or "one of " + ", ".join(known)
            )
    if not isinstance(schema, Schema):
        raise QueryError("E702", f"the schema is a {type(schema).__name__}", hint="give a quercus.Schema")
    if not schema.type:
        raise QueryError("E702", "the schema has no type column", hint="a pattern tells events by it: Schema(type=...)")
    if stats is not None and not isinstance(stats, Stats):
        raise QueryError("E702", f"the statistics are a {type(stats).__name__}", hint="give quercus.Stats, or None")
    if not isinstance(without, Collection):
        raise QueryError("E702", f"without is a {type(without).__name__}", hint="give names of rules")
    without = (without,) if isinstance(without, str) else tuple(str(n) for n in without)
    return planned(text, bind(parse_query(text), schema), schema, plans.Options(shape, nested, without, stats))


def planned(text: str, bound: p.Query, schema: Schema, options: plans.Options) -> plans.Plan:
    """The plan of a query that is bound to its names; `text` is what it was read from."""
    stats, shape, nested = options.stats, options.shape, options.nested
    left_out = _left_out(options)
    query, fired = rewrite(bound, without=left_out)
    tree, built = plan_tree(query, schema, stats, shape, nested)
    if "distribute_or" not in left_out:
        other = _distributed(query, schema, stats, shape, nested, left_out)
        if other is not None and other[1].cost < tree.cost:
            fired += (Fired("distribute_or", query, other[0]),)
            query, tree, built = other
    tree = totalled(tree, query, schema)
    listed = _alternatives(tree, built)
    if _has_choice(bound, tree, options):
        apart = _apart(bound, schema, stats, options)
        taken = stats is not None and _is_cheaper(apart[1], tree)  # defaults say too little
        listed = _with_apart(listed, apart[1], taken=taken)
        if taken:
            query, tree, built, fired = apart
            tree = totalled(tree, query, schema)
        if apart[1].cost < FAR * tree.cost:  # what is better is for the data to say
            built = evolve(built, arranged=None)
    said = warnings(query, schema)
    if query.empty is None and any(f.rule == "contradictions" for f in fired):
        said += ("a part can never match and was dropped: explain(verbose=True) shows it under 'contradictions'",)
    return plans.Plan(text, schema, bound, query, tree, fired, listed, said, options, built.arranged)


def plan_again(plan: plans.Plan, observed: Observed, best: Arranged | None = None) -> plans.Plan:
    """The same query with other trees: what a run has seen of its events decides.

    Whether ORs are distributed is decided again as well. Where the root is an operator over leaves, its `best`
    arrangement is all there is to decide.
    """
    q, asked, fired = plan.query, plan.options, plan.fired
    if best is not None and best.alone:
        arrangement, model = best.built(), best.arranger.model
        root = settle(arrangement.node, asked.nested, model) if best.arranger.negations else arrangement.node
        routing = model.routing(sum(c.rows for c in best.arranger.components))
        tree = evolve(
            plan.tree,
            root=root,
            shape=arrangement.shape,  # type: ignore[arg-type]
            routing=routing,
            cost=t.total_cost(root) + routing,
        )
        only = (plans.Alternative(arrangement.chosen, tree.cost, True),)
        return evolve(plan, tree=tree, considered=only, arranged=arrangement.arranged)
    choice = plan.arranged is None and _has_choice(plan.bound, plan.tree, asked)
    if choice:
        q, fired = rewrite(plan.bound, without=_left_out(asked))
    elif fired and fired[-1].rule == "distribute_or":
        q = fired[-1].before
    tree, built = plan_tree(q, plan.schema, None, asked.shape, asked.nested, observed)
    fired = tuple(f for f in fired if f.rule != "distribute_or")
    if "distribute_or" not in asked.without and any(isinstance(e, p.Or) for e in p.walk(q.pattern)):
        other = _distributed(q, plan.schema, None, asked.shape, asked.nested, _left_out(asked), observed)
        if other is not None and other[1].cost < tree.cost:
            fired += (Fired("distribute_or", q, other[0]),)
            q, tree, built = other
    listed, arranged = _alternatives(tree, built), built.arranged
    if choice:
        apart = _apart(plan.bound, plan.schema, None, asked, observed)
        taken = _is_cheaper(apart[1], tree, observed)
        listed, arranged = _with_apart(listed, apart[1], taken=taken), None
        if taken:
            q, tree, built, fired = apart
    tree = evolve(tree, aggregation=plan.tree.aggregation, also=plan.tree.also)
    return evolve(plan, query=q, tree=tree, fired=fired, considered=listed, arranged=arranged)


def _has_choice(bound: p.Query, tree: t.Tree, options: plans.Options) -> bool:
    """Whether sub-queries could be kept apart from the match around: not where totals go along without listing."""
    if options.nested != "auto" or options.shape != "auto" or bound.empty is not None:
        return False
    running = tree.aggregation is not None and tree.aggregation.strategy == "running"
    return not running and p.has_sub_query(bound.pattern)


def _apart(
    bound: p.Query, schema: Schema, stats: Stats | None, options: plans.Options, observed: Observed | None = None
) -> tuple[p.Query, t.Tree, Built, tuple[Fired, ...]]:
    """The same query with its sub-queries kept apart, each by its cheapest strategy: for the cost to decide."""
    query, fired = rewrite(bound, without=(*options.without, *FLATTENING))
    return query, *plan_tree(query, schema, stats, options.shape, PRICED, observed), fired


def _with_apart(listed: tuple[plans.Alternative, ...], apart: t.Tree, *, taken: bool) -> tuple[plans.Alternative, ...]:
    """The alternatives with one more, if there is one: sub-queries apart."""
    ways = _strategies(apart)
    if not ways:
        return listed
    leaves = sum(n.estimate.cost for n in t.positive(apart.root) if isinstance(n, t.Buffer))
    one = plans.Alternative(APART_BY + ", ".join(ways), apart.cost - apart.routing - leaves, taken)
    others = (evolve(a, chosen=a.chosen and not taken) for a in listed)
    return tuple(sorted((one, *others), key=lambda a: a.cost))


def _is_cheaper(apart: t.Tree, tree: t.Tree, observed: Observed | None = None) -> bool:
    windows = DEFAULT_WINDOWS if observed is None else observed.windows
    saved = (tree.cost - apart.cost) * windows
    return bool(_strategies(apart)) and apart.cost < SURE * tree.cost and saved > SAVED


def _strategies(apart: t.Tree) -> list[str]:
    nests = [n for n in t.positive(apart.root) if isinstance(n, t.Nest) and n.strategy != "rewrite"]
    return list(dict.fromkeys(n.strategy for n in nests))


def _left_out(options: plans.Options) -> tuple[str, ...]:
    """The rules that are not applied: those named, and those that a strategy cannot do with."""
    return (*options.without, *(FLATTENING if options.nested in APART else ()))


def _distributed(
    q: p.Query,
    schema: Schema,
    stats: Stats | None,
    shape: str,
    nested: str,
    without: Collection[str],
    observed: Observed | None = None,
) -> tuple[p.Query, t.Tree, Built] | None:
    """The same query with its ORs distributed, where that changes it: for the cost to decide."""
    spread = apply(BY_NAME["distribute_or"], q)
    if spread is q:
        return None
    again, _ = rewrite(evolve(spread, key=None, reads=None), without=without)
    return again, *plan_tree(again, schema, stats, shape, nested, observed)


def _alternatives(tree: t.Tree, built: Built) -> tuple[plans.Alternative, ...]:
    if not built.alternatives:
        return (plans.Alternative(built.chosen or tree.shape, tree.cost, True),)
    return tuple(plans.Alternative(s, c, s == built.chosen) for s, c in built.alternatives)
