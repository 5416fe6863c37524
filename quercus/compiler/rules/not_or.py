from __future__ import annotations

from attrs import evolve

from quercus.compiler.homes import inner_conjuncts
from quercus.ir import expr as x
from quercus.ir import pattern as p


def not_or(e: p.Pattern) -> p.Pattern | None:
    """SEQ(a, !OR(b, c), d) -> SEQ(a, !b, !c, d), and the same in an AND.

    The OR has a match in the scope when a branch has one, and adjacent negations share one scope and do not see each
    other. A conjunct that names a variable of another branch was never tested on this one. Branches that share a name
    are left alone, and so are those whose inner conditions name each other.
    """
    if not isinstance(e, p.Seq | p.And):
        return None
    new: list[p.Pattern] = []
    for c in e.parts:
        new.extend(_split(c) if isinstance(c, p.Not) else (c,))
    return evolve(e, parts=tuple(new)) if len(new) != len(e.parts) else None


def _split(n: p.Not) -> tuple[p.Not, ...]:
    if not isinstance(n.body, p.Or) or n.body.window is not None:
        return (n,)
    own = [p.all_variables(b.body) for b in n.body.branches]
    everything = frozenset().union(*own)
    if sum(len(o) for o in own) != len(everything):
        return (n,)
    apart: list[p.Not] = []
    for b, mine in zip(n.body.branches, own, strict=True):
        others = everything - mine
        if any(x.variables(c) & others for c in inner_conjuncts(b.body)):
            return (n,)
        left = (x.without_variables(c, others) for c in (*b.where, *n.where))
        apart.append(evolve(n, body=b.body, where=tuple(c for c in left if c is not None), span=b.span))
    return tuple(apart)
