"""What a query without choices requires of a match, one by one, and the query without one of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from attrs import evolve, frozen

from quercus.compiler.homes import without_conditions
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.schema import Schema
from quercus.why.readings import apart, part_at, positive, replaced

Kind = Literal["condition", "group", "order", "window", "count", "negation", "key", "ties", "type"]

LONGEST = 2**61  # a window that holds any two times


@frozen
class Requirement:
    """`path` leads to the part of the pattern that it stands in; `number`, of a condition: its place there."""

    kind: Kind
    what: str
    variables: tuple[str, ...]
    path: tuple[int, ...] = ()
    number: int = -1
    instead: str = ""  # of a type that no event has: one that looks alike


def requirements(q: p.Query, schema: Schema) -> list[Requirement]:
    """All requirements but the types of events: what has to hold first comes first."""
    unit = schema.timestamp_unit
    everything = tuple(leaf.var for leaf in q.variables)
    found: list[Requirement] = []
    if q.partition_by:
        found.append(Requirement("key", "PARTITION BY " + ", ".join(map(text.name, q.partition_by)), everything))
    parts = list(positive(q.pattern))
    for path, e in parts:
        if isinstance(e, p.Seq) and sum(not isinstance(c, p.Not) for c in e.parts) > 1:
            what = "order of " + ", ".join(named(c) for c in e.parts if not isinstance(c, p.Not))
            found.append(Requirement("order", what, _variables(e), path))
    found.append(Requirement("window", f"WITHIN {text.window(q.window)}", everything))
    for path, e in parts:
        if isinstance(e, p.Seq | p.And | p.Or) and e.window is not None:
            what = f"{text.pattern(without_conditions(without_negations(e)), unit)}"
            found.append(Requirement("window", what, _variables(e), path, 0))
    for path, e in parts:
        if isinstance(e, p.Kleene) and (e.least > 1 or e.most is not None):
            found.append(Requirement("count", f"{text.type_name(e.leaf.type)}{e.sign} {e.var}", (e.var,), path))
    for grouped in (False, True):
        for i, c in enumerate(q.where):
            if x.has_group_call(c) == grouped and c != x.TRUE:
                kind: Kind = "group" if grouped else "condition"
                found.append(Requirement(kind, text.scalar(c, unit), tuple(sorted(x.variables(c))), (), i))
    for path, e in parts:
        if isinstance(e, p.Not):
            found.append(Requirement("negation", negation_text(e), _variables(e.body), path))
    if schema.ties == "strict" and any(isinstance(e, p.Seq) for _, e in parts):
        found.append(Requirement("ties", 'ties="strict"', everything))
    return found


def named(e: p.Pattern) -> str:
    match e:
        case p.Leaf() | p.Kleene():
            return e.var
        case _:
            return "(" + ", ".join(leaf.var for leaf in p.leaves(e)) + ")"


def negation_text(e: p.Not) -> str:
    """A negation as it is told: its conditions would hide it."""
    return text.pattern(without_conditions(e))


def without_negations(e: p.Pattern, window: p.Window | None = None) -> p.Pattern:
    """A pattern without what it negates; with the window of the query, sets stay in the parts that they stand in."""
    if isinstance(e, p.Seq | p.And):
        e = evolve(e, parts=tuple(c for c in e.parts if not isinstance(c, p.Not)))
    if isinstance(e, p.Not):
        return e
    parts = ((c, without_negations(c, window)) for c in p.parts(e))
    return p.with_parts(e, tuple(new if new == c or window is None else apart(new, window) for c, new in parts))


def without_all(q: p.Query, schema: Schema, dropped: Iterable[Requirement]) -> tuple[p.Query, Schema]:
    """The query without several requirements; those further on in the pattern first, so that paths stay right."""
    for r in sorted(dropped, key=lambda r: r.path, reverse=True):
        q, schema = without(q, schema, r)
    return q, schema


def without(q: p.Query, schema: Schema, r: Requirement) -> tuple[p.Query, Schema]:
    """The query that does not require this; the order of a SEQ goes with the negations in it."""
    match r.kind:
        case "type":
            return with_leaf(q, r, r.instead), schema
        case "condition" | "group":
            return with_condition(q, r, None), schema
        case "window":
            return with_window(q, r, None), schema
        case "key":
            return evolve(q, partition_by=()), Schema.from_dict({**schema.to_dict(), "key": []})
        case "ties":
            return q, Schema.from_dict({**schema.to_dict(), "ties": "arrival"})
        case "negation":
            pattern = replaced(q.pattern, r.path, None)
            if around := r.path[:-1]:
                pattern = replaced(pattern, around, apart(part_at(pattern, around), q.window))
            return evolve(q, pattern=pattern), schema
        case "count":
            return with_count(q, r, 1), schema
        case "order":
            e = part_at(q.pattern, r.path)
            assert isinstance(e, p.Seq)
            parts = tuple(c for c in e.parts if not isinstance(c, p.Not))
            return evolve(q, pattern=replaced(q.pattern, r.path, p.And(parts, e.window, span=e.span))), schema


def with_condition(q: p.Query, r: Requirement, new: x.Expr | None) -> p.Query:
    """The query with another condition in the place of one; None: with one that is always true."""
    return evolve(q, where=(*q.where[: r.number], x.TRUE if new is None else new, *q.where[r.number + 1 :]))


def window_of(q: p.Query, r: Requirement) -> p.Window:
    if r.number < 0:
        return q.window
    e = part_at(q.pattern, r.path)
    assert isinstance(e, p.Seq | p.And | p.Or)
    assert e.window is not None
    return e.window


def with_window(q: p.Query, r: Requirement, size: int | None) -> p.Query:
    """The query with a window of another size; None: one that holds everything."""
    window = evolve(window_of(q, r), size=LONGEST if size is None else size)
    if r.number < 0:
        return evolve(q, window=window)
    e = part_at(q.pattern, r.path)
    assert isinstance(e, p.Seq | p.And | p.Or)
    return evolve(q, pattern=replaced(q.pattern, r.path, evolve(e, window=window)))


def with_count(q: p.Query, r: Requirement, count: int) -> p.Query:
    e = part_at(q.pattern, r.path)
    assert isinstance(e, p.Kleene)
    return _with_leaf(q, r.path, evolve(e, least=count, most=count))


def with_leaf(q: p.Query, r: Requirement, kind: str) -> p.Query:
    """The query with another type of a leaf."""
    e = part_at(q.pattern, r.path)
    if isinstance(e, p.Kleene):
        return _with_leaf(q, r.path, evolve(e, leaf=evolve(e.leaf, type=kind)))
    assert isinstance(e, p.Leaf)
    return _with_leaf(q, r.path, evolve(e, type=kind))


def _with_leaf(q: p.Query, path: tuple[int, ...], new: p.Leaf | p.Kleene) -> p.Query:
    variables = tuple(new if v.var == new.var else v for v in q.variables)
    return evolve(q, pattern=replaced(q.pattern, path, new), variables=variables)


def _variables(e: p.Pattern) -> tuple[str, ...]:
    return tuple(dict.fromkeys(leaf.var for leaf in p.leaves(e)))
