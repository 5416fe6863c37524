"""How a negated sub-query is answered: which strategies fit it, and which is chosen."""

from __future__ import annotations

from typing import Any, cast

from quercus.errors import LimitExceeded
from quercus.ir import exists
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.flat import flatten_body
from quercus.ir.tree import Strategy

STRATEGIES = ("iterative", "aggressive", "passive", "balanced", "index")


def choose_strategy(
    body: t.Node, where: tuple[x.Expr, ...], names: frozenset[str], around: exists.Around, asked: str
) -> tuple[Strategy, str]:
    """The strategy and why. `index` falls back where it does not fit; a leaf is one search unless `iterative` is asked.

    `where` ties the body to the match, whose variables are `names`.
    """
    try:
        ways = [exists.way_of(f, around) for f in flatten_body(body, where, names)]
    except LimitExceeded:
        ways = [exists.Way("search", "its ORs can be taken in too many ways")]
    obstacle = next((w.reason for w in ways if w.method == "search"), None)
    leaf = obstacle is None and isinstance(body, t.Buffer)
    if leaf and asked != "iterative":
        return "index", "a leaf: one search"
    if asked in ("auto", "index"):
        return ("index", "existence alone decides") if obstacle is None else ("iterative", obstacle)
    return cast("Any", asked), "asked for"


def positive_strategy(asked: str) -> tuple[Strategy, str]:
    """How the results of a positive sub-query are come by: they are needed one by one, so that no index can answer."""
    if asked in ("auto", "index"):
        return "iterative", "bound with the match around it, inside its neighbours"
    return cast("Any", asked), "asked for"
