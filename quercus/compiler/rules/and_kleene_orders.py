from __future__ import annotations

from itertools import permutations

from quercus.ir import pattern as p


def and_kleene_orders(e: p.Pattern) -> p.Pattern | None:
    """AND(A+ a, B b) -> OR(SEQ(A+ a, B b), SEQ(B b, A+ a)).

    The definition of a Kleene component directly under AND (FAEM, Fig. 2): the union over the orders of the
    components, each order with its own maximal sets. Both branches bind the same variables, so equal matches are one
    match.
    """
    if not isinstance(e, p.And) or len(e.parts) < 2 or not p.has_direct_kleene(e):
        return None
    orders = tuple(p.Branch(p.Seq(order, span=e.span), span=e.span) for order in permutations(e.parts))
    return p.Or(orders, e.window, span=e.span)
