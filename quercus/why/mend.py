"""A miss with the smallest changes that let it through: each is tried on the engine before it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.schema import Schema
from quercus.why.changes import loosened
from quercus.why.check import Found, choice_of, element_of
from quercus.why.data import Failure, Miss
from quercus.why.engine import Match
from quercus.why.places import Binding, binding_of
from quercus.why.requirements import Requirement, window_of, with_condition, with_count, with_window, without
from quercus.why.words import duration

if TYPE_CHECKING:
    from quercus.why.space import Space


def mended(space: Space, bound: Binding, fails: list[tuple[Requirement, Found]]) -> Miss | None:
    """The miss, or None where no change of what fails makes it a match."""
    for smallest in (True, False):
        q, schema, said = space.q, space.engine.schema, {}
        for r, found in sorted(fails, key=lambda f: f[0].path, reverse=True):
            q, schema, said[r] = _changed(space, q, schema, r, found, bound, smallest=smallest)
        match = _found(space, q, schema, bound)
        if match is not None:
            failures = tuple(Failure(r.kind, r.what, space.said(r, f, bound), said[r]) for r, f in fails)
            before, after = space.engine.schema.to_dict(), schema.to_dict()
            options = {name: after[name] for name in ("ties", "key") if after[name] != before[name]}
            return Miss(match, space.places.events(match), failures, space.engine.text(q), options)
    return None


def _found(space: Space, q: p.Query, schema: Schema, bound: Binding) -> Match | None:
    """The match of the changed query that has the same fixed events."""
    fixed = {v: rows[0] if len(rows) == 1 else list(rows) for v, rows in bound.items() if v not in space.growing}
    listed = space.engine.some(space.engine.pinned(q, fixed), 20, schema=schema).rows
    same = [m for m in listed if all(set(binding_of(m).get(v, ())) == set(bound[v]) for v in fixed)]
    exact = [m for m in same if {v: set(r) for v, r in binding_of(m).items()} == {v: set(r) for v, r in bound.items()}]
    return next(iter([*exact, *same]), None)


def changed_to(space: Space, r: Requirement, found: Found, bound: Binding) -> str:
    """The smallest change of one requirement, in words."""
    return _changed(space, space.q, space.engine.schema, r, found, bound)[2]


def _changed(
    space: Space, q: p.Query, schema: Schema, r: Requirement, found: Found, bound: Binding, *, smallest: bool = True
) -> tuple[p.Query, Schema, str]:
    """The query with the smallest change of one requirement, and that change in words."""
    match r.kind:
        case "condition" | "group" if smallest:
            c = q.where[r.number]
            each = element_of(c, q)
            tied = isinstance(c, x.Same)  # of keys there is nothing to loosen
            if not tied and all(v in bound for v in x.variables(c)) and (each is None or bound[each]):
                i = bound[each].index(found.row) if each is not None and found.row >= 0 else 0
                new = loosened(c, choice_of(space.places, c, bound, each), i)
                if new is not None:
                    return with_condition(q, r, new), schema, space.engine.said(new)
        case "window" if found.size:
            wider = with_window(q, r, found.size)
            window = window_of(wider, r)
            told, plain = text.window(window), duration(window.size, window.unit)
            spelled = "" if window.kind == "count" or told == plain else f" ({plain})"
            return wider, schema, f"WITHIN {told}{spelled}"
        case "count":
            have = len(bound[r.variables[0]])
            return with_count(q, r, max(have, 1)), schema, f"[{have}] instead"
    dropped, schema = without(q, schema, r)
    said = {
        "ties": 'Schema(ties="arrival")',
        "key": "Schema(key=None)" if space.engine.schema.key else "without it",
        "order": "AND instead of SEQ: any order",
        "type": f"{r.instead} instead of it",
        "window": "a longer window",
    }
    return dropped, schema, said.get(r.kind, "without it")
