"""How a negated sub-query is answered: which strategies fit it, and which is chosen."""

from __future__ import annotations

from typing import Any, cast

from quercus.compiler.scope import Placed, inner_negations
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir.tree import Strategy

STRATEGIES = ("iterative", "aggressive", "passive", "balanced", "index")


def choose_strategy(n: p.Not, placed: Placed, asked: str) -> tuple[Strategy, str]:
    """The strategy and why. A leaf is one search whatever was asked; `index` falls back where it does not fit."""
    obstacle = index_obstacle(n, placed)
    if isinstance(n.body, p.Leaf) and obstacle is None:
        return "index", "a leaf: one search"
    if asked in ("auto", "index"):
        return ("index", "existence alone decides") if obstacle is None else ("iterative", obstacle)
    return cast("Any", asked), "asked for"


def positive_strategy(asked: str) -> tuple[Strategy, str]:
    """How the results of a positive sub-query are come by: they are needed one by one, so that no index can answer."""
    if asked in ("auto", "index"):
        return "iterative", "bound with the match around it, inside its neighbours"
    return cast("Any", asked), "asked for"


def index_obstacle(n: p.Not, placed: Placed) -> str | None:
    """Why an existence index cannot answer, or None:

    its answer may depend on nothing but the scope's two ends and a key.
    """
    for inner in inner_negations(placed):
        if inner.in_and:
            return "a negation inside it stands in an AND: its scope is the outer one"
        own = p.all_variables(n.body)
        outside = (
            inner.scope.left
            or inner.scope.right
            or any(not set(g) <= own for g in (*inner.scope.after, *inner.scope.before))
        )
        if outside:
            return "a negation inside it looks to the border of the scope"
    if placed.in_and:
        return "it stands in an AND, whose events it may not use"
    if any(not x.is_equality(c) for c in n.where if x.variables(c) - p.all_variables(n.body)):
        return "a condition that is no equality ties it to the match"
    return None
