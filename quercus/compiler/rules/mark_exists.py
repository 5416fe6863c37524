from __future__ import annotations

from quercus.compiler.marks import add_mark
from quercus.ir import pattern as p


def mark_exists(q: p.Query) -> p.Query | None:
    """!N -> !N, existence only.  One match of N in the scope decides, so no list of them is ever needed."""
    return add_mark(q, "exists", lambda _: True)
