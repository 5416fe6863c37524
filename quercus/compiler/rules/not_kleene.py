from __future__ import annotations

from attrs import evolve

from quercus.ir import pattern as p


def not_kleene(e: p.Pattern) -> p.Pattern | None:
    """!A+ -> !A, and the same anywhere inside a negation; !A[1] -> !A.

    Inside a negation `A+` binds one A: one is enough to violate. Not directly under an AND, whose orders come first
    (two events of one time are in no order, but an AND of single events needs none).
    """
    if not isinstance(e, p.Not):
        return None
    body = _single(e.body, under_and=False)
    return None if body == e.body else evolve(e, body=body)


def _single(e: p.Pattern, *, under_and: bool) -> p.Pattern:
    if isinstance(e, p.Kleene):
        return e.leaf if e.least == 1 and e.most in (None, 1) and not under_and else e
    beside = (isinstance(e, p.And) and len(e.parts) > 1) or (under_and and p.is_transparent(e))
    return p.with_parts(e, tuple(_single(c, under_and=beside) for c in p.parts(e)))
