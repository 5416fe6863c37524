from __future__ import annotations

from attrs import evolve

from quercus.compiler.homes import Home, rewrite_homes
from quercus.ir import expr as x
from quercus.ir import pattern as p


def prune_columns(q: p.Query) -> p.Query | None:
    """The plan reads only the columns that a test, an output or the key names.

    Whole events of the answer are fetched by row number, after matching.
    """
    named: set[x.Column] = set()

    def note(e: x.Expr) -> None:
        for n in x.walk(e):
            if isinstance(n, x.Column):
                named.add(n)
            elif isinstance(n, x.GroupCall) and n.attr is not None:
                named.add(x.Column(n.var, n.attr, n.type))

    def visit(where: tuple[x.Expr, ...], _: Home) -> tuple[x.Expr, ...]:
        for c in where:
            note(c)
        return where

    rewrite_homes(q, visit)
    for e in (
        *(o.value for o in q.returns if not isinstance(o.value, str)),
        *q.group_by,
        *(q.key.columns if q.key else ()),
    ):
        note(e)
    named |= {x.Column(a.var, a.attr, a.type) for a in q.aggregates if a.var is not None and a.attr is not None}
    unique = {(c.var, c.attr): c for c in sorted(named, key=lambda c: (c.var, c.attr, c.type))}
    reads = tuple(unique.values())
    return None if reads == q.reads else evolve(q, reads=reads)
