"""Sub-queries -> how the matcher comes by their results: afresh in each interval, or from a view (docs/nested.md).

A positive sub-query is a level of the search around it, which binds one of its results after the other. What it says
of its own variables, and equalities with the match around, are tested when a result is found; everything else when it
is bound. A negated one is a way to answer a negation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from quercus.backends.local.joins import Homes
from quercus.backends.local.specs import LevelSpec, SubSpec, WaySpec
from quercus.errors import LimitExceeded
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.exists import Tie, depends, is_counted, tie_of
from quercus.ir.flat import Flat, FlatNegation, FlatNest

if TYPE_CHECKING:
    from quercus.backends.local.program import Compiler
    from quercus.backends.local.specs import FlatSpec, Name, Program

VIEWS = ("aggressive", "passive", "balanced")
MOST_ENDS, MOST_TIES = 16, 8  # the kernel's room

Names = dict[str, "Name"]


def nests_of(f: Flat, order: list[str], first: frozenset[str]) -> list[FlatNest]:
    """The sub-queries of an alternative that are not bound event by event: something else is bound before them."""
    found = [n for n in f.nests if n.strategy != "rewrite" and not first & n.flat.variables and _fits(n.flat)]
    covered = {v for n in found for v in n.flat.variables}
    return found if any(v not in covered for v in order) else found[:-1]


def _fits(f: Flat) -> bool:
    return not any(b.kleene for b in f.buffers) and len(_lasts(f)) <= MOST_ENDS


def add_levels(
    c: Compiler, spec: FlatSpec, f: Flat, names: Names, outer: Names, nests: list[FlatNest]
) -> tuple[Homes, Flat]:
    """A level for each sub-query, after all others; and what is left for the alternative around to say."""
    bound = [v for v in names if names[v].slots and not any(v in n.flat.variables for n in nests)]
    free = {v: names[v] for v in bound} | outer
    said: list[x.Expr] = []
    for n in nests:
        own = n.flat.variables
        ties = _ties(c, [e for e in f.predicates if e not in n.flat.predicates], own, free)
        said += [*n.flat.predicates, *(e for e, _ in ties)]
        slots = [s for b in n.flat.buffers for s in names[b.var].slots]
        level = LevelSpec(slots[-1], -1, slots=tuple(slots), sub=len(c.program.subs))
        one = n.flat.buffers[0].var
        for other in bound:
            if (other, one) in f.before and not any((other, o) in f.before and (o, one) in f.before for o in bound):
                level.after.extend(names[other].slots)
            elif (one, other) in f.before and not any((one, o) in f.before and (o, other) in f.before for o in bound):
                level.before.extend(names[other].slots)
        sub = SubSpec(n.strategy, -1, n.strategy == "iterative", slots, source=n.source)
        c.program.subs.append(sub)
        sub.loose = any((o, one) not in f.before and (one, o) not in f.before for o in bound)
        sub.distinct = [s for b in n.flat.buffers for pair in _apart(c, f, b, bound, names) for s in pair]
        inner = evolve(n.flat, predicates=(*n.flat.predicates, *(e for e, _ in ties)))
        _collect(c, sub, inner, outer | names, [k for _, k in ties])
        level.early = spec.root and n.strategy == "balanced" and n is nests[0]
        spec.levels.append(level)
        bound.extend(b.var for b in n.flat.buffers)
    windows = [w for n in nests for w in n.flat.windows]
    negations = [g for n in nests for g in n.flat.negations]
    rest = evolve(
        f,
        predicates=tuple(e for e in f.predicates if e not in said),
        windows=tuple(w for w in f.windows if w not in windows),
        negations=tuple(g for g in f.negations if g not in negations),
    )
    return Homes(spec), rest


def lower(c: Compiler, body: Flat, seen: Names, g: FlatNegation, *, barred: bool) -> WaySpec:
    """The way of a negated body by its view. `barred`: there are events that it may not use.

    What depends on more than its own events and equal values is asked of each result that is kept.
    """
    own = body.variables
    number = c.flat(body, seen, root=False)
    if len(_lasts(body)) > MOST_ENDS or any(is_counted(b) for b in body.buffers):
        return WaySpec("search", number)
    plain = {v: n for v, n in seen.items() if n.set is None and len(n.slots) == 1}
    ties = _ties(c, list(body.predicates), own, plain)
    inside = [e for e in body.predicates if _of(e) <= own or any(e is k for k, _ in ties)]
    inner = [n for n in body.negations if depends(n, own) is None]
    names = {b.var: c.bound_name(b) for b in body.buffers}
    sub = SubSpec(g.strategy, number, False, [s for b in body.buffers for s in names[b.var].slots], source=g.source)
    c.program.subs.append(sub)
    kept = evolve(body, predicates=tuple(inside), tests=(), negations=tuple(inner))
    made = len(c.program.subs) - 1
    _collect(c, sub, kept, seen, [k for _, k in ties])
    beside = evolve(
        body,
        predicates=tuple(e for e in body.predicates if not any(e is k for k in inside)),
        negations=tuple(n for n in body.negations if not any(n is k for k in inner)),
    )
    sub.preds, sub.negations = c.conditions(beside, names, seen)
    sub.flags = g.strategy == "passive" and not (sub.preds or sub.negations or barred)
    if g.strategy == "balanced" and not (sub.preds or sub.negations or barred):
        sub.sparse, sub.slots = True, []
    return WaySpec("view", number, sub=made)


def too_much(program: Program, sub: SubSpec, most: int) -> LimitExceeded:
    """What to say when views have no room."""
    spec = program.flats[sub.flat]
    return LimitExceeded(
        f"the view of the sub-query of ({', '.join(b.var for b, _ in spec.leaves)}) holds too many results: more than "
        f"{most:,} bytes; tighten WITHIN, compile with nested='iterative', or raise Limits(max_state_bytes=)",
        limit="max_state_bytes",
        value=most,
    )


def _of(e: x.Expr) -> frozenset[str]:
    return frozenset(x.variables(e))


def _collect(c: Compiler, sub: SubSpec, f: Flat, seen: Names, ties: list[Tie]) -> None:
    """The alternatives that find results: the whole one, and with a view one for each event that can be last."""
    sub.kept = f
    if sub.collects:
        sub.flat = c.flat(f, seen, root=False)
        sub.end_slots.append(_slots_of(c, sub.flat, f))
        return
    for b in _lasts(f):
        number = c.flat(f, seen, root=False, first=b.var)
        sub.ends.append(number)
        sub.end_slots.append(_slots_of(c, number, f))
        sub.lasts.append(c.buffer_of(b))
    if sub.flat < 0:
        sub.flat = sub.ends[0]
    sub.firsts = sorted({c.buffer_of(b) for b in f.buffers if not any((o, b.var) in f.before for o in f.variables)})
    for k in ties:
        (name,) = x.variables(k.outer)
        sub.tied.append(k.outer)
        sub.ties.append((seen[name].slots[0], c.code.column(k.outer, seen[name])))


def _slots_of(c: Compiler, number: int, f: Flat) -> list[int]:
    names = {b.var: n for b, n in c.program.flats[number].leaves}
    return [s for b in f.buffers for s in names[b.var].slots]


def _lasts(f: Flat) -> list[t.Buffer]:
    return [b for b in f.buffers if not any((b.var, o) in f.before for o in f.variables)]


def _ties(c: Compiler, where: list[x.Expr], own: frozenset[str], free: Names) -> list[tuple[x.Expr, Tie]]:
    """Equalities with single events of the match around, that a key has not said."""
    found = []
    for e in where:
        ties = tie_of(e, own)
        if len(ties) == 1 and x.variables(ties[0].outer) <= set(free) and not c.holds(e):
            (name,) = x.variables(ties[0].outer)
            if free[name].set is None:
                found.append((e, ties[0]))
    return found[:MOST_TIES]


def _apart(c: Compiler, f: Flat, b: t.Buffer, others: list[str], names: Names) -> list[tuple[int, int]]:
    """Slots of others that might hold the same event."""
    types = {k.var: set(k.accepts) for k in f.buffers}
    return [
        (own, s)
        for o in others
        if (o, b.var) not in f.before and (b.var, o) not in f.before and types[o] & types[b.var]
        for own in names[b.var].slots
        for s in names[o].slots
    ]
