from __future__ import annotations

from quercus.compiler.homes import Home, rewrite_homes
from quercus.ir import expr as x
from quercus.ir import pattern as p


def drop_repeated(q: p.Query) -> p.Query | None:
    """c, c -> c; and c inside an OR branch or a negation -> nothing, where the same c stands around it.

    Wherever the inner one is tested its variables are there, so the outer one was tested too, and was true.
    """
    return rewrite_homes(q, _once)


def _once(where: tuple[x.Expr, ...], home: Home) -> tuple[x.Expr, ...]:
    around = frozenset(home.outer)
    return tuple(c for c in dict.fromkeys(where) if c not in around)
