from __future__ import annotations

from typing import Any, cast

from attrs import evolve

from quercus.compiler.homes import rewrite_homes
from quercus.ir import expr as x
from quercus.ir import pattern as p

FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def normal_comparison(q: p.Query) -> p.Query | None:
    """3 < a.x -> a.x > 3; b.x > a.x -> a.x < b.x; not (a.x < 3) -> a.x >= 3; not (c or d) -> not c and not d.

    Constants stand right, variables in the order of the text, `not` at the leaves: so that equal conditions look
    equal. All hold in three-valued logic; a comparison of floats keeps its `not`, since NaN makes both a comparison
    and its reverse false.
    """
    order = {leaf.var: i for i, leaf in enumerate(p.leaves(q.pattern, negated=True))}
    return rewrite_homes(q, lambda where, _: tuple(_normal(c, order) for c in where))


def _normal(e: x.Expr, order: dict[str, int]) -> x.Expr:
    if isinstance(e, x.NotTrue):
        inside = _negated(e.value)
        if inside is not None:
            return _normal(inside, order)
    e = x.with_children(e, tuple(_normal(c, order) for c in x.children(e)))
    if isinstance(e, x.Compare) and _rank(e.left, order) > _rank(e.right, order):
        return evolve(e, op=cast("Any", FLIPPED[e.op]), left=e.right, right=e.left)
    return e


def _rank(e: x.Expr, order: dict[str, int]) -> tuple[bool, int]:
    """Constants last; otherwise by the first variable in the text."""
    named = x.variables(e)
    return (not named, min((order[v] for v in named), default=0))


def _negated(e: x.Expr) -> x.Expr | None:
    """What `not e` is without the `not`, or None."""
    match e:
        case x.NotTrue():
            return e.value
        case x.Compare() if "float64" not in (e.left.type, e.right.type):
            return evolve(e, op=cast("Any", NEGATED[e.op]))
        case x.InSet() | x.IsNull():
            return evolve(e, negated=not e.negated)
        case x.Logic():
            return x.Logic("or" if e.op == "and" else "and", tuple(x.NotTrue(i) for i in e.items), span=e.span)
        case _:
            return None
