from __future__ import annotations

from attrs import evolve

from quercus.ir import pattern as p


def flatten_or(e: p.Pattern) -> p.Pattern | None:
    """OR(a, OR(b, c)) -> OR(a, b, c).

    Exactly one branch is bound either way. Conjuncts of the outer branch go into each inner one: there, those that
    name a variable of another branch are not tested, as before.
    """
    if not isinstance(e, p.Or) or not any(_inner(b) for b in e.branches):
        return None
    flat: list[p.Branch] = []
    for b in e.branches:
        inner = _inner(b)
        flat.extend((evolve(i, where=i.where + b.where) for i in inner.branches) if inner else (b,))
    return evolve(e, branches=tuple(flat))


def _inner(b: p.Branch) -> p.Or | None:
    return b.body if isinstance(b.body, p.Or) and b.body.window is None else None
