"""Negations that exclude nothing in these events."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from quercus.ir import pattern as p
from quercus.ir import text
from quercus.lint.finding import Finding
from quercus.lint.look import Look


def idle(look: Look) -> Iterator[Finding]:
    """Each negation is left out in turn: do more matches come?"""
    nots = [n for n in p.walk(look.query.pattern) if isinstance(n, p.Not)]
    outer = [n for n in nots if all(look.count(k.type) for k in _leaves(n))]
    if not outer:
        return
    whole = look.total(look.query)
    if not whole:  # or nothing is known
        return
    for n in outer:
        without = _without(look.query.pattern, n, look.query.window)
        if without is None:
            continue
        more = look.total(evolve(look.query, pattern=without))
        if more == whole:
            message = f"!{text.pattern(n.body)} excludes nothing here: there are {whole:,} matches with and without it"
            yield look.finding("L501", "note", message, span=n.span)


def _leaves(n: p.Not) -> Iterator[p.Leaf]:
    for k in p.leaves(n.body, negated=True):
        yield k.leaf if isinstance(k, p.Kleene) else k


def _without(e: p.Pattern, gone: p.Not, window: p.Window, *, inner: bool = False) -> p.Pattern | None:
    """The pattern without a negation that no other one is around. A set that is left alone stays a part of its own."""
    if isinstance(e, p.Seq | p.And) and any(c is gone for c in e.parts):
        left = tuple(c for c in e.parts if c is not gone)
        alone = inner and len(left) == 1 and isinstance(p.unwrapped(left[0]), p.Kleene)
        return evolve(e, parts=left, window=e.window or (window if alone else None))
    if isinstance(e, p.Not):
        return None
    for i, c in enumerate(p.parts(e)):
        found = _without(c, gone, window, inner=True)
        if found is not None:
            return p.with_parts(e, (*p.parts(e)[:i], found, *p.parts(e)[i + 1 :]))
    return None
