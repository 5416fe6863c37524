"""What one requirement alone stopped: how many matches there would be more without it, and the nearest of them."""

from __future__ import annotations

from attrs import evolve

from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.why.changes import INCLUSIVE
from quercus.why.data import Count
from quercus.why.readings import part_at, positive
from quercus.why.requirements import Requirement, window_of, with_condition, with_count, with_window
from quercus.why.space import LISTED, Candidate, Space

STEPS = 40  # sizes of a window, or of what is added to a comparison, that are tried


def alone(space: Space, r: Requirement) -> tuple[Count, list[Candidate]]:
    """How many matches there are more without a requirement, and some of them, nearest first."""
    count, found = (
        _window(space, r) if r.kind == "window" else _fewer(space, r) if r.kind == "count" else _other(space, r)
    )
    return count, sorted(found, key=lambda c: (c.found[0].gap, c.far))


def _other(space: Space, r: Requirement) -> tuple[Count, list[Candidate]]:
    count = space.count_without((r,))
    if count.n == 0 and count.exact:
        return count, []
    shown = space.some_without((r,))
    found = space.misses(shown.rows, (r,))
    if not shown.whole and r.kind in ("condition", "group"):
        found = _closer(space, r, found)
    return _more(space, count, _beside(space, r), len(found), shown.whole), found


def _beside(space: Space, r: Requirement) -> Count:
    """What there is with a requirement: the matches; beside the order of a SEQ, also without its negations."""
    if r.kind != "order" or not any(isinstance(c, p.Not) for c in p.parts(part_at(space.q.pattern, r.path))):
        return space.base
    return space.count_without(n for n in space.requirements if n.kind == "negation" and n.path[:-1] == r.path)


def _more(space: Space, count: Count, base: Count, found: int, whole: bool) -> Count:
    """Without sets that grow, what a variant finds and the query does not is the difference of their numbers."""
    if base.n == 0 and base.exact:
        return count
    if space.growing or count.n is None or base.n is None or not base.exact:
        return Count(found if found or whole else None, whole)
    return Count(max(count.n - base.n, 0), count.exact)


def _closer(space: Space, r: Requirement, found: list[Candidate]) -> list[Candidate]:
    """The nearest of more than are listed: with comparisons that allow for less and less."""
    c = space.q.where[r.number]
    if not isinstance(c, x.Compare) or c.op in ("=", "<>") or {c.left.type, c.right.type} - {"int64", "float64"}:
        return found
    sign: x.ArithmeticOp = "-" if c.op in (">", ">=") else "+"
    kind: x.Type = "int64" if c.left.type == c.right.type == "int64" else "float64"
    least, first = 0.0, found
    for _ in range(STEPS):
        best = min((m.found[0].gap for m in found), default=0.0)
        tried = (least + best) / 2 if kind == "float64" else int((least + best) // 2)
        if not found or tried <= least or space.engine.late:
            break
        right = x.Arithmetic(sign, c.right, x.Const(tried, kind), kind)
        loose = evolve(c, op=INCLUSIVE.get(c.op, c.op), right=right)  # true up to that gap
        shown = space.engine.some(with_condition(space.pinned, r, loose), LISTED)
        nearer = space.misses(shown.rows, (r,))
        found = nearer or found
        if nearer and shown.whole:
            break
        least = least if nearer else float(tried)
    return list({tuple(sorted(m.bound.items())): m for m in (*first, *found)}.values())


def _window(space: Space, r: Requirement) -> tuple[Count, list[Candidate]]:
    """Windows step by step longer, until one lets a match through; then the least of these."""
    window = window_of(space.q, r)
    size, longest = window.size, space.engine.extent(window)
    count = space.engine.count(with_window(space.pinned, r, None))
    reaching = any(_reaches_out(e) for _, e in positive(space.q.pattern))
    if size >= longest or (not reaching and not _more(space, count, space.base, 1, True).some):
        return Count(0), []
    low = size
    found: list[Candidate] = []
    whole = True
    for _ in range(STEPS):
        size = min(size * 2, longest)
        shown = space.engine.some(with_window(space.pinned, r, size), LISTED)
        found, whole = space.misses(shown.rows, (r,)), shown.whole
        enough = 1 if reaching else max(space.limit, 1)
        if len(found) >= enough or not whole or size >= longest or space.engine.late:
            break
        low = low if found else size
    for _ in range(STEPS):
        size = (low + min((c.found[0].size for c in found), default=low)) // 2
        if whole or size <= low or space.engine.late:
            break
        shown = space.engine.some(with_window(space.pinned, r, size), LISTED)
        less = space.misses(shown.rows, (r,))
        found = less or found
        whole = shown.whole and bool(less)
        low = low if less else size
    if reaching:
        return Count(len(found), not found), found
    return _more(space, count, space.base, len(found), whole), found


def _reaches_out(e: p.Pattern) -> bool:
    """Whether a negation lies between an event and the border of the window, so that a longer one may hold more."""
    if isinstance(e, p.And):
        return any(isinstance(c, p.Not) for c in e.parts)
    return isinstance(e, p.Seq) and (isinstance(e.parts[0], p.Not) or isinstance(e.parts[-1], p.Not))


def _fewer(space: Space, r: Requirement) -> tuple[Count, list[Candidate]]:
    """Fewer elements, until there are enough; of a query that has matches there is nothing to tell."""
    (kleene,) = (e for e in p.leaves(space.q.pattern) if e.var == r.variables[0])
    assert isinstance(kleene, p.Kleene)
    for n in range(kleene.least - 1, 0, -1) if space.none() else ():
        variant = with_count(space.pinned, r, n)
        found = space.misses(space.engine.some(variant, LISTED).rows, (r,))
        if found:
            return space.engine.count(variant), found
    return Count(0), []
