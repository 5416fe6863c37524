from __future__ import annotations

from quercus.compiler.marks import add_mark
from quercus.ir import pattern as p


def mark_delayed(q: p.Query) -> p.Query | None:
    """SEQ(a, !b, AND(c, d)) -> the same, delayed.

    The scope ends at an adjacent sub-query: it is known only when that one is bound ('delayed constraint', NEEL 3.5).
    """
    return add_mark(q, "delayed", lambda placed: placed.beside_composite)
