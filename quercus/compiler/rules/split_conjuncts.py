from __future__ import annotations

from quercus.compiler.homes import Home, rewrite_homes
from quercus.ir import expr as x
from quercus.ir import pattern as p


def split_conjuncts(q: p.Query) -> p.Query | None:
    """(c and d) -> c, d, where no variable of either can be absent.

    A conjunction is true when its parts are. With an absent variable in d the whole conjunct was not tested, c
    neither. A conjunct with a group function stays whole: its parts would be tested at different times, on elements
    or on the set.
    """
    return rewrite_homes(q, _split)


def _split(where: tuple[x.Expr, ...], home: Home) -> tuple[x.Expr, ...]:
    new: list[x.Expr] = []
    for c in where:
        if isinstance(c, x.Logic) and c.op == "and" and home.always(c) and not x.has_group_call(c):
            new.extend(_split(c.items, home))
        else:
            new.append(c)
    return tuple(new)
