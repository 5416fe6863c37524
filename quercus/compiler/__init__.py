"""Text -> typed logical IR -> physical tree."""

from __future__ import annotations

from collections.abc import Collection

from attrs import evolve

from quercus import plan as plans  # which imports parts of this package: by name, when all of it is there
from quercus.compiler.aggregates import totalled
from quercus.compiler.bind import bind
from quercus.compiler.nested import APART, FLATTENING, STRATEGIES
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
    if stats is not None and not isinstance(stats, Stats):
        raise QueryError("E702", f"the statistics are a {type(stats).__name__}", hint="give quercus.Stats, or None")
    if not isinstance(without, Collection):
        raise QueryError("E702", f"without is a {type(without).__name__}", hint="give names of rules")
    without = (without,) if isinstance(without, str) else tuple(str(n) for n in without)
    bound = bind(parse_query(text), schema)
    options = plans.Options(shape, nested, without, stats)
    left_out = _left_out(options)
    query, fired = rewrite(bound, without=left_out)
    tree, built = plan_tree(query, schema, stats, shape, nested)
    if "distribute_or" not in left_out:
        other = _distributed(query, schema, stats, shape, nested, left_out)
        if other is not None and other[1].cost < tree.cost:
            fired += (Fired("distribute_or", query, other[0]),)
            query, tree, built = other
    tree = totalled(tree, query, schema)
    said = warnings(query, schema)
    if query.empty is None and any(f.rule == "contradictions" for f in fired):
        said += ("a part can never match and was dropped: explain(verbose=True) shows it under 'contradictions'",)
    return plans.Plan(
        text, schema, bound, query, tree, fired, _alternatives(tree, built), said, options, built.arranged
    )


def plan_again(plan: plans.Plan, observed: Observed) -> plans.Plan:
    """The same query with other trees: what a run has seen of its events decides.

    Whether ORs are distributed is decided again as well.
    """
    q, asked = plan.query, plan.options
    if plan.fired and plan.fired[-1].rule == "distribute_or":
        q = plan.fired[-1].before
    tree, built = plan_tree(q, plan.schema, None, asked.shape, asked.nested, observed)
    fired = tuple(f for f in plan.fired if f.rule != "distribute_or")
    if "distribute_or" not in asked.without and any(isinstance(e, p.Or) for e in p.walk(q.pattern)):
        other = _distributed(q, plan.schema, None, asked.shape, asked.nested, _left_out(asked), observed)
        if other is not None and other[1].cost < tree.cost:
            fired += (Fired("distribute_or", q, other[0]),)
            q, tree, built = other
    tree = evolve(tree, aggregation=plan.tree.aggregation, also=plan.tree.also)
    return evolve(plan, query=q, tree=tree, fired=fired, considered=_alternatives(tree, built), arranged=built.arranged)


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
