from __future__ import annotations

from itertools import product

from attrs import evolve

from quercus.ir import pattern as p

MAX_BRANCHES = 32


def distribute_or(e: p.Pattern) -> p.Pattern | None:
    """SEQ(a, OR(b, c), d) -> OR(SEQ(a, b, d), SEQ(a, c, d)), and the same for AND where no branch is a bare Kleene.

    Exactly one branch is bound either way, and a negation sees the same neighbours. Under an AND a bare Kleene branch
    would become a direct component, whose order counts. Windows stay: an OR's own on each branch. Whether it pays is
    for the planner to say.
    """
    if not isinstance(e, p.Seq | p.And) or not any(isinstance(c, p.Or) for c in e.parts):
        return None
    choices = [c.branches if isinstance(c, p.Or) else (p.Branch(c),) for c in e.parts]
    count = 1
    for c in choices:
        count *= len(c)
    if count > MAX_BRANCHES:
        return None
    if isinstance(e, p.And) and (p.has_direct_kleene(e) or any(_bare_kleene(c) for c in e.parts)):
        return None
    branches = []
    for chosen in product(*choices):
        parts = tuple(_windowed(b.body, c) for b, c in zip(chosen, e.parts, strict=True))
        where = tuple(w for b in chosen for w in b.where)
        branches.append(p.Branch(evolve(e, parts=parts), where, span=e.span))
    return p.Or(tuple(branches), span=e.span)


def _bare_kleene(c: p.Pattern) -> bool:
    return (
        isinstance(c, p.Or) and c.window is None and any(isinstance(p.unwrapped(b.body), p.Kleene) for b in c.branches)
    )


def _windowed(body: p.Pattern, source: p.Pattern) -> p.Pattern:
    if isinstance(source, p.Or) and source.window is not None:
        return p.Seq((body,), source.window, span=source.span)
    return body
