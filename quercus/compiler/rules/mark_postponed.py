from __future__ import annotations

from quercus.compiler.marks import add_mark
from quercus.ir import pattern as p


def mark_postponed(q: p.Query) -> p.Query | None:
    """SEQ(a, !b) -> the same, postponed.  The scope reaches past the match's last event: results wait (NEEL, 3.3)."""
    return add_mark(q, "postponed", lambda placed: placed.scope.right is not None)
