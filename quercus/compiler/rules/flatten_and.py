from __future__ import annotations

from attrs import evolve

from quercus.ir import pattern as p


def flatten_and(e: p.Pattern) -> p.Pattern | None:
    """AND(a, AND(b, c)) -> AND(a, b, c).

    Where neither AND has a direct Kleene, and the inner one holds no Kleene and no negation.
    Without them an AND only says that all occur. A negation beside an inner component excludes the events of its own
    siblings only, and a Kleene component is ordered against the components beside it: both would change with their
    surroundings.
    """
    if not isinstance(e, p.And) or p.has_direct_kleene(e):
        return None
    if not any(_plain(c) for c in e.parts):
        return None
    flat: list[p.Pattern] = []
    for c in e.parts:
        flat.extend(p.parts(c) if _plain(c) else (c,))
    return evolve(e, parts=tuple(flat))


def _plain(c: p.Pattern) -> bool:
    return isinstance(c, p.And) and c.window is None and not any(isinstance(n, p.Kleene | p.Not) for n in p.walk(c))
