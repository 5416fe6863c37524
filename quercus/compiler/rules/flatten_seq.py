from __future__ import annotations

from attrs import evolve

from quercus.ir import pattern as p


def flatten_seq(e: p.Pattern) -> p.Pattern | None:
    """SEQ(a, SEQ(b, c), d) -> SEQ(a, b, c, d).

    Order is associative. A negation at the inner border has the gap to the inner SEQ's neighbour as its scope, which
    is the gap between the same events afterwards. An inner window keeps its SEQ.
    """
    if not isinstance(e, p.Seq) or not any(isinstance(c, p.Seq) and c.window is None for c in e.parts):
        return None
    flat: list[p.Pattern] = []
    for c in e.parts:
        flat.extend(c.parts if isinstance(c, p.Seq) and c.window is None else (c,))
    return evolve(e, parts=tuple(flat))
