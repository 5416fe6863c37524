"""Given events against the requirements of a query, one by one: what they make of each."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from attrs import frozen

from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.why.columns import Choice, masks
from quercus.why.places import Binding, Places
from quercus.why.readings import part_at
from quercus.why.requirements import Requirement, window_of
from quercus.why.words import duration, shown


@frozen
class Found:
    """How a requirement fails: in words; how far off, 0 to 1 and beyond as far as that can be told; the rows."""

    said: str
    far: float = 1.0
    size: int = 0  # of a window: the least that would do
    row: int = -1  # of a condition on each element: the element that is least off
    gap: float = 0.0  # of a comparison of numbers: by how much it is off


def failure(places: Places, q: p.Query, r: Requirement, bound: Binding) -> Found | None:
    """How the bound events fail a requirement, other than a negation; None where they do not, or it is not tested."""
    match r.kind:
        case "condition" | "group":
            return _condition(places, q, q.where[r.number], bound)
        case "window":
            rows = [row for v in r.variables for row in bound.get(v, ())]
            window = window_of(q, r)
            size = places.size(rows, window)
            if size <= window.size:
                return None
            unit = window.unit if window.kind == "time" else None
            said = duration(size, unit) if window.kind == "time" else f"{size} events"
            return Found(f"takes {said}", (size - window.size) / max(window.size, 1), size, gap=float(size))
        case "order" | "ties":
            return _order(places, part_at(q.pattern, r.path), bound, q.window)
        case "key":
            return _key(places, q, bound)
        case "count":
            return _count(part_at(q.pattern, r.path), bound)
        case "negation" | "type":
            return None


def _order(places: Places, e: p.Pattern, bound: Binding, window: p.Window) -> Found | None:
    """Whether the components of a SEQ stand one before the next."""
    present = []
    for c in p.parts(e):
        rows = [(row, leaf.var) for leaf in p.leaves(c) for row in bound.get(leaf.var, ())]
        if rows:
            rows.sort(key=lambda one: places.position(one[0]))
            present.append((rows[0], rows[-1]))
    for (_, (one, var)), ((other, name), _) in pairwise(present):
        if not places.before(one, other):
            first, second = places.said(var, one), places.said(name, other)
            if places.ts(one) == places.ts(other):
                return Found(f"{first} and {second} have the same time", 0.01)
            far = (places.ts(one) - places.ts(other)) / max(window.size, 1) if window.kind == "time" else 1.0
            return Found(f"{second} came {places.gap(one, other)} before {first}", max(far, 0.0))
    return None


def _key(places: Places, q: p.Query, bound: Binding) -> Found | None:
    for attr in q.partition_by:
        seen = [(places.said(v, row), places.value(row, attr)) for v, rows in bound.items() for row in rows]
        for who, found in seen:
            if found is None or found != found:
                return Found(f"{text.name(attr)} of {who} is null")
            first, other = seen[0]
            if found != other:
                return Found(f"{text.name(attr)} is {shown(other)} of {first} and {shown(found)} of {who}")
    return None


def _count(e: p.Pattern, bound: Binding) -> Found | None:
    assert isinstance(e, p.Kleene)
    there = len(bound.get(e.var, ()))
    if e.var not in bound or there == e.most:
        return None
    return Found(f"{there} of {e.least}", abs(e.least - there) / max(e.least, 1))


# Conditions -----------------------------------------------------------------------------------------------------------


def _condition(places: Places, q: p.Query, c: x.Expr, bound: Binding) -> Found | None:
    if isinstance(c, x.Same):
        return _same(places, c, bound)
    each = element_of(c, q)
    if any(v not in bound for v in x.variables(c)) or (each is not None and not bound[each]):
        return None
    choice = choice_of(places, c, bound, each)
    is_true, unknown = masks(choice.values(c))
    failing = [int(i) for i in np.flatnonzero(~is_true)]
    if not failing:
        return None
    far = {i: _far(choice, c, i) for i in failing}
    i = min(failing, key=far.__getitem__)
    said = text.scalar(choice.substituted(c, i), places.schema.timestamp_unit)
    gap = None if isinstance(c, x.Compare) and c.op in ("=", "<>") else choice.off(c, i)
    if gap and isinstance(c, x.Compare) and "timestamp" in (c.left.type, c.right.type):
        said += f", off by {duration(int(abs(gap)), places.schema.timestamp_unit)}"
    else:
        said += " is unknown" if unknown[i] else f", off by {shown(abs(gap))}" if gap else ""
    apart = math.inf if gap is None else float(abs(gap))
    if each is None:
        return Found(said, far[i], gap=apart)
    row = int(choice.rows[each][i])
    if choice.n > 1:
        said += f" at {places.said(each, row)}; {len(failing)} of {choice.n} elements fail"
    return Found(said, far[i], row=row, gap=apart)


def element_of(c: x.Expr, q: p.Query) -> str | None:
    """The Kleene variable that a condition names element by element."""
    kleene = p.kleene_variables(q.pattern)
    return next((n.var for n in x.walk(c) if isinstance(n, x.Column) and n.var in kleene), None)


def choice_of(places: Places, c: x.Expr, bound: Binding, each: str | None) -> Choice:
    """What a condition is evaluated on: the bound events, once for every element of `each`."""
    n = len(bound[each]) if each is not None else 1
    names = {m.var for m in x.walk(c) if isinstance(m, x.Column)}
    rows = {v: np.array(bound[v], np.int64) if v == each else np.full(n, bound[v][0], np.int64) for v in names}
    grouped = {m.var for m in x.walk(c) if isinstance(m, x.GroupCall)}
    sets = {v: np.array(sorted(bound[v], key=places.position), np.int64) for v in grouped}
    return Choice(places.stream, rows, sets, n)


def _far(choice: Choice, c: x.Expr, i: int) -> float:
    """How far a comparison of numbers is off, as a part of what is compared; others are simply off."""
    gap = choice.off(c, i)
    if gap is None or not isinstance(c, x.Compare) or c.op in ("=", "<>"):
        return 1.0
    return abs(gap) / max(abs(choice.value(c.left, i)), abs(choice.value(c.right, i)), 1e-9)  # type: ignore[no-any-return]


def _same(places: Places, c: x.Same, bound: Binding) -> Found | None:
    seen = [(col.var, row, places.value(row, col.attr)) for col in c.columns for row in bound.get(col.var, ())]
    for i, (v, row, found) in enumerate(seen):
        for w, other, beside in seen[:i]:
            if found is None or beside is None or found != beside:
                return Found(f"{shown(beside)} of {places.said(w, other)} and {shown(found)} of {places.said(v, row)}")
    return None
