from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from attrs import evolve, frozen

from quercus.ir import expr as x
from quercus.ir import pattern as p

MAX_ALTERNATIVES = 64


def partition_key(q: p.Query) -> p.Query | None:
    """SEQ(A a, !(B b, b.id = a.id), C c), a.id = c.id -> the same, with the key a.id = b.id = c.id.

    When in every choice of OR branches all positive variables and all negated ones agree on one attribute each,
    events of different values never meet: each value can be matched alone. Agreement never passes through a variable
    that can be empty. Positions are not counted per key: that is what a declared key does.
    """
    if q.key is not None:
        return None
    found = _found(q, frozenset())
    return None if found is None else evolve(q, key=found)


def more_keys(q: p.Query) -> tuple[p.KeyClass, ...]:
    """Further attributes on which all agree, beside the key: `[id], [room]` has one."""
    found: list[p.KeyClass] = []
    if q.key is not None and not q.partition_by:
        known = frozenset(q.key.columns)
        while (more := _found(q, known)) is not None and len(more.columns) == len(q.key.columns):
            found.append(more)
            known |= frozenset(more.columns)
    return tuple(found)


def _found(q: p.Query, known: frozenset[x.Column]) -> p.KeyClass | None:
    mapping: dict[str, x.Column] = {}
    for i, (alternative, where) in enumerate(_alternatives(q.pattern, q.where)):
        if i >= MAX_ALTERNATIVES or not _extend(mapping, alternative, where, known, single=bool(q.aggregates)):
            return None
    if len(mapping) < 2 or len({c.type for c in mapping.values()}) > 1:
        return None
    return p.KeyClass(tuple(mapping.values()))


@frozen
class _Alternative:
    """One choice of OR branches: what it binds, what may be empty in it, its negations, and which of it are sets."""

    present: tuple[str, ...]
    empty: frozenset[str] = frozenset()
    nots: tuple[p.Not, ...] = ()
    sets: frozenset[str] = frozenset()


def _alternatives(e: p.Pattern, where: tuple[x.Expr, ...]) -> Iterator[tuple[_Alternative, tuple[x.Expr, ...]]]:
    match e:
        case p.Leaf():
            yield _Alternative((e.var,)), where
        case p.Kleene():
            own = frozenset({e.var})
            yield _Alternative((e.var,), frozenset() if e.least else own, sets=own), where
        case p.Not():
            yield _Alternative((), nots=(e,)), where
        case p.Or():
            for b in e.branches:
                yield from _alternatives(b.body, where + b.where)
        case p.Seq() | p.And():
            yield from _product(e.parts, where)


def _product(
    parts: tuple[p.Pattern, ...], where: tuple[x.Expr, ...]
) -> Iterator[tuple[_Alternative, tuple[x.Expr, ...]]]:
    if not parts:
        yield _Alternative(()), where
        return
    for first, so_far in _alternatives(parts[0], where):
        for rest, full in _product(parts[1:], so_far):
            yield (
                _Alternative(
                    first.present + rest.present,
                    first.empty | rest.empty,
                    first.nots + rest.nots,
                    first.sets | rest.sets,
                ),
                full,
            )


def _extend(
    mapping: dict[str, x.Column],
    alternative: _Alternative,
    where: tuple[x.Expr, ...],
    known: frozenset[x.Column],
    *,
    single: bool,
) -> bool:
    """Find an attribute on which this alternative agrees, in keeping with those before it and not one of the `known`.

    With `single`, also where one event agrees with negated ones alone. A set alone has nobody to agree with: its
    elements agree with each other only where [attr] says so.
    """
    edges = _edges(where, frozenset(alternative.present))
    always = next((v for v in alternative.present if v not in alternative.empty), None)
    starts = [c for c in edges if c.var == always]
    if len(alternative.present) == 1 and always in alternative.sets:
        agreeing = {k for c in where if isinstance(c, x.Same) for k in c.columns}
        starts = [c for c in starts if c in agreeing]
    elif single and len(alternative.present) == 1:
        for n in alternative.nots:
            own = _edges(where + n.where, p.all_variables(n.body) | frozenset(alternative.present))
            starts += [c for c in own if c.var == always and c not in starts]
    for start in [c for c in starts if c not in known]:
        found = _class(start, edges, alternative.empty)
        agreed = all(mapping.get(v, found.get(v)) == found.get(v) for v in alternative.present) and all(
            v in found for v in alternative.present
        )
        if agreed and all(_negation_agrees(n, found, where, alternative.empty) for n in alternative.nots):
            mapping.update({v: c for v, c in found.items() if v in alternative.present or v not in mapping})
            return True
    return False


def _negation_agrees(n: p.Not, found: dict[str, x.Column], where: tuple[x.Expr, ...], empty: frozenset[str]) -> bool:
    """Every event that could violate agrees with the match; adds the negation's columns to the class."""
    for inner, inside in _alternatives(n.body, where + n.where):
        seen = frozenset(found) | frozenset(inner.present)
        edges = _edges(inside, seen)
        joined: dict[str, x.Column] = {}
        for column in found.values():
            if column.var not in empty:  # what names an empty set is not tested, and ties nothing
                joined |= _class(column, edges, empty | inner.empty)
        if not all(v in joined and found.get(v, joined[v]) == joined[v] for v in inner.present):
            return False
        found |= {v: joined[v] for v in inner.present}
        if not all(_negation_agrees(m, found, inside, empty | inner.empty) for m in inner.nots):
            return False
    return True


def _edges(where: tuple[x.Expr, ...], present: frozenset[str]) -> dict[x.Column, list[x.Column]]:
    """Who must equal whom, among the variables that are there."""
    edges: dict[x.Column, list[x.Column]] = defaultdict(list)
    for c in where:
        if isinstance(c, x.Same):
            columns = [k for k in c.columns if k.var in present]
        elif x.is_equality(c) and x.variables(c) <= present:
            assert isinstance(c, x.Compare)
            columns = [k for k in (c.left, c.right) if isinstance(k, x.Column)]
        else:
            continue
        if len({k.type for k in columns}) == 1:
            for a in columns:
                edges[a].extend(b for b in columns if b is not a)
    return edges


def _class(start: x.Column, edges: dict[x.Column, list[x.Column]], empty: frozenset[str]) -> dict[str, x.Column]:
    found, todo = {start.var: start}, [start]
    while todo:
        at = todo.pop()
        if at.var in empty:
            continue
        for n in edges.get(at, ()):
            if n.var not in found:
                found[n.var] = n
                todo.append(n)
    return found
