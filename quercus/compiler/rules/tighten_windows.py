from __future__ import annotations

from attrs import evolve

from quercus.ir import pattern as p


def tighten_windows(q: p.Query) -> p.Query | None:
    """SEQ(a, SEQ(b, c) WITHIN 2 h, d) WITHIN 1 h -> SEQ(a, SEQ(b, c), d) WITHIN 1 h.

    What an operator binds lies inside what the operator around it binds, and a negated match inside a scope no longer
    than the query's window: so an inner window at least as long as the one around it, of the same kind, says nothing
    (NEEL, Fig. 3, passes the outer bounds down). An operator of one component keeps it: without a window it would
    become transparent.
    """
    pattern = _tighten(q.pattern, {q.window.kind: q.window}, q.window)
    return None if pattern == q.pattern else evolve(q, pattern=pattern)


def _tighten(e: p.Pattern, around: dict[str, p.Window], whole: p.Window) -> p.Pattern:
    if isinstance(e, p.Not):
        around = {whole.kind: whole}  # an operator's window narrows what it binds, not where its negations look
    if isinstance(e, p.Seq | p.And | p.Or) and e.window is not None:
        outer = around.get(e.window.kind)
        if outer is None or e.window.size < outer.size:
            around = around | {e.window.kind: e.window}
        elif len(p.parts(e)) > 1:
            e = evolve(e, window=None)
    return p.with_parts(e, tuple(_tighten(c, around, whole) for c in p.parts(e)))
