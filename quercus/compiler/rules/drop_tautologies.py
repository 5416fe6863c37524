from __future__ import annotations

from quercus.compiler.homes import rewrite_homes
from quercus.ir import expr as x
from quercus.ir import pattern as p


def drop_tautologies(q: p.Query) -> p.Query | None:
    """true -> nothing;

    a.x is null or a.x is not null -> nothing.  (a.x = a.x stays: it is unknown when a.x is null.)
    """
    return rewrite_homes(q, lambda where, home: tuple(c for c in where if not _always_true(c)))


def _always_true(e: x.Expr) -> bool:
    if e == x.TRUE:
        return True
    if isinstance(e, x.Logic) and e.op == "or":
        nulls = [i for i in e.items if isinstance(i, x.IsNull)]
        return any(a.value == b.value and a.negated != b.negated for a in nulls for b in nulls)
    return False
