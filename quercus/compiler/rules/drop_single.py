from __future__ import annotations

from attrs import evolve

from quercus.ir import expr as x
from quercus.ir import pattern as p


def drop_single(q: p.Query) -> p.Query | None:
    """SEQ(a) -> a, AND(a) -> a, OR(a) -> a.

    An operator of one component without a window is transparent. What stood in an OR's only branch is always tested:
    its conjuncts go to the home around it.
    """
    pattern, hoisted = _drop(q.pattern)
    return None if pattern == q.pattern else evolve(q, pattern=pattern, where=q.where + hoisted)


def _drop(e: p.Pattern) -> tuple[p.Pattern, tuple[x.Expr, ...]]:
    """The pattern, and the conjuncts that now belong to the home around it."""
    match e:
        case p.Not():
            body, up = _drop(e.body)
            return evolve(e, body=body, where=e.where + up), ()
        case p.Or():
            branches = []
            for b in e.branches:
                body, up = _drop(b.body)
                branches.append(evolve(b, body=body, where=b.where + up))
            if len(branches) == 1 and e.window is None:
                return branches[0].body, branches[0].where
            return evolve(e, branches=tuple(branches)), ()
        case p.Seq() | p.And():
            dropped = [_drop(c) for c in e.parts]
            up = tuple(c for _, cs in dropped for c in cs)
            new = evolve(e, parts=tuple(c for c, _ in dropped))
            return (new.parts[0] if p.is_transparent(new) else new), up
        case _:
            return e, ()
