from __future__ import annotations

from quercus.compiler.homes import Home, rewrite_homes
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir.evaluate import constant


def fold_constants(q: p.Query) -> p.Query | None:
    """a.x < 2 + 3 -> a.x < 5; true and c -> c; false or c -> c; c and false -> false.

    Values by the language's own arithmetic. A conjunct must keep its variables, where one of them can be absent:
    without the name it would be tested on matches that it was not tested on before.
    """
    return rewrite_homes(q, _fold_home)


def _fold_home(where: tuple[x.Expr, ...], home: Home) -> tuple[x.Expr, ...]:
    return tuple(_kept(c, fold(c), home) for c in where)


def _kept(before: x.Expr, after: x.Expr, home: Home) -> x.Expr:
    lost = x.variables(before) - x.variables(after)
    return before if lost & home.absent and after != x.TRUE else after


def fold(e: x.Expr) -> x.Expr:
    """The expression with every part over constants replaced by its value."""
    if isinstance(e, x.Const | x.Column | x.GroupCall | x.Same):
        return e
    e = x.with_children(e, tuple(fold(c) for c in x.children(e)))
    known = constant(e)
    if known is not None:
        return known
    if isinstance(e, x.Logic):
        decisive = x.Const(e.op == "or", "bool")
        if decisive in e.items:
            return decisive
        rest = tuple(i for i in e.items if i != x.Const(e.op == "and", "bool"))
        return rest[0] if len(rest) == 1 else x.Logic(e.op, rest, span=e.span)
    return e
