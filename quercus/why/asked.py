"""Why are *these* events no match? Given rows against every requirement of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from attrs import evolve

from quercus.errors import DataError, nearest
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.why.check import Found, failure
from quercus.why.data import Asked, Count, Failure
from quercus.why.engine import Engine, Rows
from quercus.why.mend import changed_to, mended
from quercus.why.negations import verdict
from quercus.why.places import Binding, Places, binding_of
from quercus.why.readings import Reading, positive
from quercus.why.requirements import named, requirements, without_negations
from quercus.why.space import Space


def asked(engine: Engine, q: p.Query, found: Sequence[Reading], rows: Rows) -> Asked:
    """The reading that the given variables belong to, and what they fail of it: of several, the one with the least."""
    given = given_rows(engine, q, rows)
    fitting = [r for r in found if set(given) <= {v.var for v in r.query.variables}]
    if not fitting:
        raise DataError(f"rows: no match binds {', '.join(given)} at once: they stand in different branches of an OR")
    answers = [_of(engine, r.query, given) for r in fitting]
    return min(answers, key=lambda a: (not a.is_match, len(a.missing), len(a.failures)))


def given_rows(engine: Engine, q: p.Query, rows: object) -> Binding:
    """The rows that were asked for, checked."""
    known = {v.var: v for v in q.variables}
    if not isinstance(rows, Mapping):
        raise DataError(f"rows is a {type(rows).__name__}: give {{variable: row}}, as rows() of a result has it")
    found: dict[str, tuple[int, ...]] = {}
    for var, at in rows.items():
        if var not in known:
            hint = nearest(str(var), known) or "variables: " + ", ".join(known)
            raise DataError(f"rows: no variable '{var}' in the match; {hint}")
        many = isinstance(at, Sequence) and not isinstance(at, str)
        if many != isinstance(known[var], p.Kleene):
            raise DataError(f"rows: '{var}' takes {'a list of rows' if not many else 'one row'}")
        found[var] = tuple(at) if many else (at,)
        for row in found[var]:
            if type(row) is not int or not 0 <= row < len(engine.stream):
                raise DataError(f"rows: {row!r} of '{var}' is no row of the {len(engine.stream)} events")
    return found


def _of(engine: Engine, q: p.Query, bound: Binding) -> Asked:
    places = Places(engine.stream, engine.schema, q.partition_by)
    optional = {e.var for e in p.leaves(q.pattern) if isinstance(e, p.Kleene) and not e.least}
    missing = tuple(v.var for v in q.variables if not bound.get(v.var) and v.var not in optional)
    rows = {v: list(at) if _is_set(q, v) else at[0] for v, at in bound.items()}
    events = places.events(bound)
    if not missing and _is_match(engine, q, bound):
        return Asked(rows, events, True, (), (), ())
    shapeless = [*_types(places, engine, q, bound), *_twice(places, bound), *_mixed(places, q, bound)]
    everything = requirements(q, engine.schema)
    direct = [r for r in everything if r.kind not in ("ties", "negation")]
    fails = [(r, f) for r in direct if (f := failure(places, q, r, bound)) is not None]
    placed = not missing and not shapeless and all(r.kind != "order" for r, _ in fails)
    untested: list[str] = []
    for r in everything:
        if r.kind == "negation":
            kept = verdict(engine, places, q, r, bound) if placed else None
            if kept is None:
                untested.append(f"{r.what}: its scope is not known")
            elif not kept:
                fails.append((r, Found("violated")))
    space = Space(engine, q, q, {}, Count(0), 1)
    miss = mended(space, bound, fails) if fails and not missing and not shapeless else None
    if miss is not None and miss.rows == rows:
        return Asked(rows, events, False, (), miss.failures, tuple(untested), miss.query, miss.schema)
    failures = [
        *shapeless,
        *(Failure(r.kind, r.what, space.said(r, f, bound), changed_to(space, r, f, bound)) for r, f in fails),
    ]
    if not missing and not failures:
        failures += _larger(engine, places, q, bound)
    return Asked(rows, events, False, missing, tuple(failures), tuple(untested))


def _is_set(q: p.Query, var: str) -> bool:
    return any(isinstance(v, p.Kleene) and v.var == var for v in q.variables)


def _is_match(engine: Engine, q: p.Query, bound: Binding) -> bool:
    """Whether the engine gives them, sets as large as they may be."""
    fixed = {v: list(at) for v, at in bound.items() if v not in _growing(q)}
    wanted = {v: set(at) for v, at in bound.items() if at}
    found = engine.some(engine.pinned(q, fixed), 100_000).rows
    return any({v: set(at) for v, at in binding_of(m).items() if at} == wanted for m in found)


def _growing(q: p.Query) -> set[str]:
    return {e.var for e in p.leaves(q.pattern) if isinstance(e, p.Kleene) and e.most is None}


def _types(places: Places, engine: Engine, q: p.Query, bound: Binding) -> list[Failure]:
    found = []
    for leaf in p.leaves(q.pattern):
        kind = leaf.leaf.type if isinstance(leaf, p.Kleene) else leaf.type
        for row in bound.get(leaf.var, ()):
            own = places.type_of(row)
            if own not in engine.schema.accepts(kind):
                what = f"type {text.type_name(kind)} of {leaf.var}"
                found.append(Failure("type", what, f"{places.said(leaf.var, row)} has type {own}", ""))
    return found


def _twice(places: Places, bound: Binding) -> list[Failure]:
    owners: dict[int, str] = {}
    found = []
    for v, at in bound.items():
        for row in at:
            if row in owners:
                said = f"row {row} stands for {owners[row]} and for {v}"
                found.append(Failure("bound twice", "no event is bound twice", said, ""))
            owners[row] = v
    return found


def _mixed(places: Places, q: p.Query, bound: Binding) -> list[Failure]:
    """A set directly in an AND stands before or after each other component: none is among its elements."""
    found = []
    for _, e in positive(q.pattern):
        if isinstance(e, p.And) and p.has_direct_kleene(e):
            whole = [(c, [r for leaf in p.leaves(c) for r in bound.get(leaf.var, ())]) for c in e.parts]
            ends = sorted(((places.ends(rows), c) for c, rows in whole if rows), key=lambda w: places.position(w[0][0]))
            for ((_, last), c), ((first, _), d) in pairwise(ends):
                if not places.before(last, first):
                    said = f"{named(d)} begins at row {first}, not after {named(c)} ends at row {last}"
                    found.append(Failure("order", "a set beside others stands before or after each", said, ""))
    return found


def _larger(engine: Engine, places: Places, q: p.Query, bound: Binding) -> list[Failure]:
    """Sets that are not as large as they may be: then a larger one is tested in their place."""
    growing = _growing(q)
    fixed = {v: list(at) for v, at in bound.items() if v not in growing}
    for m in engine.some(engine.pinned(_candidates(q), fixed), 10_000).rows:
        rows = binding_of(m)
        more = {v: set(rows.get(v, ())) - set(bound.get(v, ())) for v in growing}
        if all(set(bound.get(v, ())) <= set(rows.get(v, ())) for v in rows) and any(more.values()):
            said = "; ".join(str(places.event(v, r)) for v, at in more.items() for r in sorted(at))
            return [Failure("larger set", "sets are as large as they may be", f"there is also {said}", "")]
    return []


def _candidates(q: p.Query) -> p.Query:
    """The query without what is tested on whole sets only."""
    where = tuple(c for c in q.where if not x.has_group_call(c))
    return evolve(q, pattern=without_negations(q.pattern, q.window), where=where)
