"""Moving about in a cube: E-Cube's four operations, from one query to the text of another.

Positions are the paper's: counted from 1, over all components, negated ones too; `!D` is a negated D.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from attrs import evolve

from quercus.compiler.cube.conditions import renamed
from quercus.compiler.cube.sequences import accepted
from quercus.errors import QueryError, nearest
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.plan import Plan
from quercus.schema import Schema

Operation = Literal["pattern_drill_down", "pattern_roll_up", "concept_drill_down", "concept_roll_up"]
Place = tuple[str, int]  # a type, with ! before it if negated, and its position
Change = tuple[str, str, int]  # from one type to another, at a position


def operated(plan: Plan, operation: Operation, changes: Iterable[Place] | Iterable[Change]) -> str:
    """The text of the query that an operation makes of another: as it was written, flattened, but not rewritten.

    >>> import quercus as qc
    >>> schema = qc.Schema({}, hierarchy={"TX": ["Dallas", "Austin"], "OK": ["Tulsa"]})
    >>> plan = qc.compile("PATTERN SEQ(Dallas, Tulsa) WITHIN 2 h", schema)
    >>> print(operated(plan, "concept_roll_up", [("Dallas", "TX", 1)]))
    PATTERN SEQ(TX, Tulsa)
    WITHIN 2 h
    """
    listed = _checked(operation, changes)
    q = plan.bound
    parts = components(q.pattern)
    if operation == "pattern_drill_down":
        made = _inserted(q, parts, listed, plan.schema)
    elif operation == "pattern_roll_up":
        made = _left_out(q, parts, listed)
    else:
        made = _retyped(q, parts, listed, plan.schema, down=operation == "concept_drill_down")
    return text.query(made, plan.schema.timestamp_unit)


def _checked(operation: str, changes: object) -> list[tuple[str, ...]]:
    """The arguments as the paper has them: pairs for patterns, triples for concepts."""
    wanted = 3 if operation.startswith("concept") else 2
    shape = "(from, to, position)" if wanted == 3 else "(type, position)"
    given = [changes] if isinstance(changes, tuple) and changes and isinstance(changes[0], str) else changes
    listed = list(given) if isinstance(given, list | tuple) else None
    if not listed or any(
        not isinstance(c, tuple | list)
        or len(c) != wanted
        or not all(isinstance(name, str) for name in c[:-1])
        or not isinstance(c[-1], int)
        or isinstance(c[-1], bool)
        for c in listed
    ):
        raise QueryError("E801", f"{operation} takes a list of {shape}", hint=f"give one or more {shape}")
    return [tuple(c) for c in listed]


def components(e: p.Pattern) -> list[p.Pattern]:
    """The components that positions count: of a SEQ, those of the SEQs in it as well."""
    e = p.unwrapped(e)
    if not isinstance(e, p.Seq):
        if isinstance(e, p.Leaf | p.Kleene):
            return [e]
        raise QueryError("E801", "this query is no SEQ of events: there are no positions in it")
    if e.window is not None:
        raise QueryError("E801", "a window stands inside the pattern: there are no positions in it")
    found: list[p.Pattern] = []
    for c in e.parts:
        inner = p.unwrapped(c)
        found += components(inner) if isinstance(inner, p.Seq) and inner.window is None else [inner]
    return found


def _at(parts: list[p.Pattern], position: int, name: str) -> p.Leaf | p.Kleene:
    """The leaf at a position, which must be of this type."""
    if not 1 <= position <= len(parts):
        raise QueryError("E802", f"no position {position}: there are {len(parts)}, from 1 on")
    here = parts[position - 1]
    leaf = here.body if isinstance(here, p.Not) else here
    if not isinstance(leaf, p.Leaf | p.Kleene):
        raise QueryError("E801", f"at position {position} stands no single event", hint=text.pattern(here))
    negated, bare = _sign(name)
    type_ = leaf.leaf.type if isinstance(leaf, p.Kleene) else leaf.type
    if bare != type_ or (negated and not isinstance(here, p.Not)):
        shown = ("!" if isinstance(here, p.Not) else "") + type_
        raise QueryError("E802", f"at position {position} stands {shown}, not {name}", hint=f"give {shown!r}")
    return leaf


def _sign(name: str) -> tuple[bool, str]:
    bare = name.strip()
    return (True, bare[1:].strip()) if bare.startswith("!") else (False, bare)


# Patterns -------------------------------------------------------------------------------------------------------------


def _inserted(q: p.Query, parts: list[p.Pattern], places: list[tuple[str, ...]], schema: Schema) -> p.Query:
    """Components at positions that they have in the new pattern. What all others agree on, they agree on too."""
    made, agreed = list(parts), _agreed(q, parts)
    more: tuple[x.Expr, ...] = ()
    taken = {leaf.var for leaf in p.leaves(q.pattern, negated=True)}
    for name, position in sorted(places, key=lambda place: int(place[1])):
        at = int(position)
        negated, bare = _sign(name)
        _known(bare, schema)
        if not 1 <= at <= len(made) + 1:
            raise QueryError("E802", f"no position {at} for {name}: there are 1 to {len(made) + 1}")
        var, n = bare, 1
        while var in taken:
            var, n = f"{bare}_{n}", n + 1
        taken.add(var)
        leaf = p.Leaf(var, bare)
        tied = tuple(x.Compare("=", c, x.Column(var, c.attr, c.type)) for c in agreed if _has(bare, c, schema))
        made.insert(at - 1, p.Not(leaf, tied) if negated else leaf)
        more += () if negated else tied
    return _over(evolve(q, where=(*q.where, *more)), made)


def _agreed(q: p.Query, parts: list[p.Pattern]) -> list[x.Column]:
    """The attributes on which all components agree, of the first positive one: what `[id]` says of a pattern."""
    first = next(iter(p.leaves(p.Seq(tuple(parts)))))
    negated = [e for c in p.walk(q.pattern) if isinstance(c, p.Not) for e in c.where]
    tied = [e for e in (*q.where, *negated) if x.is_equality(e)]
    found: dict[str, x.Column] = {}
    for e in tied:
        assert isinstance(e, x.Compare)
        for side in (e.left, e.right):
            if isinstance(side, x.Column) and side.var == first.var:
                found[side.attr] = side
    return [c for c in found.values() if _reached(c, tied) >= {leaf.var for leaf in p.leaves(q.pattern, negated=True)}]


def _reached(start: x.Column, tied: list[x.Expr]) -> set[str]:
    """The variables whose attribute of that name equals this one's."""
    reached, grew = {start.var}, True
    while grew:
        grew = False
        for e in tied:
            assert isinstance(e, x.Compare)
            assert isinstance(e.left, x.Column)
            assert isinstance(e.right, x.Column)
            named = e.left.attr == e.right.attr == start.attr
            if named and (e.left.var in reached) is not (e.right.var in reached):
                reached |= {e.left.var, e.right.var}
                grew = True
    return reached


def _has(type_name: str, c: x.Column, schema: Schema) -> bool:
    return schema.attribute(type_name, c.attr) == c.type


def _left_out(q: p.Query, parts: list[p.Pattern], places: list[tuple[str, ...]]) -> p.Query:
    gone = {_at(parts, int(position), name).var: int(position) for name, position in places}
    if len(gone) < len(places):
        raise QueryError("E802", "a position stands twice")
    made = [c for i, c in enumerate(parts, 1) if i not in gone.values()]
    if not any(not isinstance(c, p.Not) for c in made):
        raise QueryError("E801", "no positive component is left", hint="leave one in")
    return _over(q, made, frozenset(gone))


def _over(q: p.Query, parts: list[p.Pattern], gone: frozenset[str] = frozenset()) -> p.Query:
    """The query over other components, without what names variables that are gone.

    An equality that leads through one is said of those that are left: so `[id]` keeps its meaning.
    """
    where = _without(q.where, gone, ())
    kept: list[p.Pattern] = []
    for c in parts:
        kept.append(evolve(c, where=_without(c.where, gone, q.where)) if isinstance(c, p.Not) else c)
    pattern: p.Pattern = p.Seq(tuple(kept))
    grouped = tuple(g for g in q.group_by if g.var not in gone)
    aggregates = tuple(a for a in q.aggregates if a.var not in gone)
    if q.aggregates and not aggregates:
        raise QueryError("E801", "nothing is left to aggregate: AGG names components that go")
    returns = tuple(
        o for o in q.returns if not ({o.value} if isinstance(o.value, str) else x.variables(o.value)) & gone
    )
    variables = tuple({leaf.var: leaf for leaf in p.leaves(pattern)}.values())
    return evolve(
        q,
        pattern=pattern,
        where=where,
        group_by=grouped,
        aggregates=aggregates,
        returns=returns,
        variables=variables,
    )


def _without(where: tuple[x.Expr, ...], gone: frozenset[str], outer: tuple[x.Expr, ...]) -> tuple[x.Expr, ...]:
    """Conjuncts without variables that are gone; equalities through them are said of what they were equal to."""
    if not gone:
        return where
    made = list(where)
    for var in sorted(gone):
        through = [_through(e, var) for e in made]
        own = [pair for pair in through if pair is not None]
        around = [pair for e in outer if (pair := _through(e, var)) is not None]
        made = [e for e in made if var not in x.variables(e)]
        for attr in dict.fromkeys(a for a, _ in own):
            first, *rest = [c for a, c in (*own, *around) if a == attr]
            made += [x.Compare("=", first, c) for c in rest if c.var != first.var]
        outer = _without(outer, frozenset({var}), ()) if outer else ()
    return tuple(e for e in dict.fromkeys(made) if not x.variables(e) & gone)


def _through(e: x.Expr, var: str) -> tuple[str, x.Column] | None:
    """The attribute of a variable that an equality is about, and the column that it equals."""
    if not isinstance(e, x.Compare) or not x.is_equality(e) or var not in x.variables(e):
        return None
    assert isinstance(e.left, x.Column)
    assert isinstance(e.right, x.Column)
    return (e.left.attr, e.right) if e.left.var == var else (e.right.attr, e.left)


# Concepts -------------------------------------------------------------------------------------------------------------


def _retyped(
    q: p.Query, parts: list[p.Pattern], changes: list[tuple[str, ...]], schema: Schema, *, down: bool
) -> p.Query:
    new: dict[str, str] = {}
    for old, name, position in changes:
        leaf = _at(parts, int(position), old)
        negated, bare = _sign(name)
        if negated and not isinstance(parts[int(position) - 1], p.Not):
            raise QueryError("E803", f"{old} at position {position} is not negated", hint=f"give {bare!r}")
        if leaf.var in new:
            raise QueryError("E802", "a position stands twice")
        _known(bare, schema)
        below, above = (bare, _sign(old)[1]) if down else (_sign(old)[1], bare)
        if below == above or not set(accepted(below, schema)) < set(accepted(above, schema)):
            way = "below" if down else "above"
            raise QueryError("E803", f"{bare} is no concept {way} {_sign(old)[1]}", hint=_near(_sign(old)[1], schema))
        new[leaf.var] = bare
    unnamed = {var: name for var, name in new.items() if var == _type_of(q.pattern, var)}
    taken = {leaf.var for leaf in p.leaves(q.pattern, negated=True)} - unnamed.keys()
    names: dict[str, str] = {}
    for var, name in unnamed.items():  # called by its type: by the new one, then
        names[var] = name if name not in taken else var
        taken.add(names[var])
    made = _with_names(q, names)
    pattern = _with_types(made.pattern, {names.get(var, var): name for var, name in new.items()})
    variables = tuple({leaf.var: leaf for leaf in p.leaves(pattern)}.values())
    return evolve(made, pattern=pattern, variables=variables)


def _type_of(e: p.Pattern, var: str) -> str:
    leaf = next(leaf for leaf in p.leaves(e, negated=True) if leaf.var == var)
    return leaf.leaf.type if isinstance(leaf, p.Kleene) else leaf.type


def _with_names(q: p.Query, names: dict[str, str]) -> p.Query:
    """The query over variables of other names."""

    def of(e: p.Pattern) -> p.Pattern:
        e = p.with_parts(e, tuple(of(c) for c in p.parts(e)))
        match e:
            case p.Leaf():
                return evolve(e, var=names.get(e.var, e.var))
            case p.Kleene():
                return evolve(e, leaf=evolve(e.leaf, var=names.get(e.var, e.var)))
            case p.Not():
                return evolve(e, where=tuple(renamed(c, names) for c in e.where))
            case p.Or():
                branches = (evolve(b, where=tuple(renamed(c, names) for c in b.where)) for b in e.branches)
                return evolve(e, branches=tuple(branches))
            case _:
                return e

    def value(o: p.Output) -> x.Expr | str:
        return names.get(o.value, o.value) if isinstance(o.value, str) else renamed(o.value, names)

    return evolve(
        q,
        pattern=of(q.pattern),
        where=tuple(renamed(c, names) for c in q.where),
        group_by=tuple(evolve(g, var=names.get(g.var, g.var)) for g in q.group_by),
        aggregates=tuple(evolve(a, var=names.get(a.var or "", a.var)) for a in q.aggregates),
        returns=tuple(evolve(o, value=value(o)) for o in q.returns),
    )


def _with_types(e: p.Pattern, new: dict[str, str]) -> p.Pattern:
    match e:
        case p.Leaf():
            return evolve(e, type=new[e.var]) if e.var in new else e
        case p.Kleene():
            return evolve(e, leaf=evolve(e.leaf, type=new[e.var])) if e.var in new else e
        case _:
            return p.with_parts(e, tuple(_with_types(c, new) for c in p.parts(e)))


def _near(name: str, schema: Schema) -> str:
    above = [n for n, below in schema.hierarchy.items() if name in below]
    below = list(schema.hierarchy.get(name, ()))
    shown = [f"above it: {', '.join(above)}"] if above else []
    return "; ".join([*shown, *([f"below it: {', '.join(below)}"] if below else [])]) or "it is in no hierarchy"


def _known(name: str, schema: Schema) -> None:
    if not name or name.startswith("!"):
        raise QueryError("E801", f"{name!r} is no event type", hint="give a type, with one ! before it if negated")
    names = schema.type_names()
    if names is not None and name not in names:
        raise QueryError("E101", f"no event type '{name}'", hint=nearest(name, names))
