"""Marking negations by where they stand."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from quercus.compiler.scope import Placed, inner_negations, negations
from quercus.ir import pattern as p


def add_mark(q: p.Query, mark: p.NotMark, applies: Callable[[Placed], bool]) -> p.Query | None:
    """The query with the mark on every negation it applies to, or None when they all had it."""
    chosen: set[tuple[int, ...]] = set()
    todo = list(negations(q.pattern))
    while todo:
        placed = todo.pop()
        todo.extend(inner_negations(placed))
        if applies(placed) and mark not in placed.negation.marks:
            chosen.add(placed.path)
    return evolve(q, pattern=_marked(q.pattern, (), chosen, mark)) if chosen else None


def _marked(e: p.Pattern, path: tuple[int, ...], chosen: set[tuple[int, ...]], mark: p.NotMark) -> p.Pattern:
    new = p.with_parts(e, tuple(_marked(c, (*path, i), chosen, mark) for i, c in enumerate(p.parts(e))))
    if isinstance(new, p.Not) and path in chosen:
        return evolve(new, marks=tuple(sorted({*new.marks, mark})))
    return new
