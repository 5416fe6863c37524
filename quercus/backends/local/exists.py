"""Bodies of negations -> how the matcher answers them: see quercus/ir/exists.py for the methods.

What the plan says is done: an index where it says `index`, a search match by match everywhere else.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from attrs import evolve

from quercus.backends.local.code import as_float
from quercus.backends.local.specs import PAID, EndSpec, JumpSpec, NegationSpec, Program, WaySpec
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.exists import Around, Method, Tie, Way, way_of
from quercus.ir.flat import Flat

BUILD = PAID  # when indexes that must be built are; tests build at once

if TYPE_CHECKING:
    from quercus.backends.local.program import Compiler
    from quercus.backends.local.specs import Name


def lower(c: Compiler, body: Flat, seen: dict[str, Name], strategy: t.Strategy, barred: set[int]) -> WaySpec:
    """The way of one body. `barred` are the buffers of events that it may not use."""
    sets = frozenset(v for v, n in seen.items() if n.set is not None)
    types = frozenset(name for b in barred for name in c.program.buffers[b].accepts)
    way = way_of(body, Around(sets, barred=types, holds=c.holds)) if strategy == "index" else Way("search", "asked for")
    if way.method == "search":
        return WaySpec("search", c.flat(body, seen, root=False))
    body = evolve(body, nests=())
    if way.method == "latest":
        return _latest(c, body, way, seen)
    free = evolve(body, predicates=())
    jumps = [jump for b in body.buffers for jump in [_jump(c, b, way.ties, seen)] for _ in range(_slots(b))]
    return WaySpec(way.method, c.flat(free, seen, root=False), jumps)


def _latest(c: Compiler, body: Flat, way: Way, seen: dict[str, Name]) -> WaySpec:
    """Beside the body as it is, one alternative for each variable that can be last: it is bound first."""
    alone = evolve(body, predicates=way.predicates)
    ends = []
    for var in way.ends:
        first: dict[x.Expr, Tie] = {}
        for k in way.ties:
            if k.var == var:
                first.setdefault(k.outer, k)
        (leaf,) = (b for b in body.buffers if b.var == var)
        number = c.flat(alone, seen, root=False, first=var)
        ends.append(EndSpec(number, _jump(c, leaf, tuple(first.values()), seen), _steps(c, alone, number, seen)))
    return WaySpec("latest", c.flat(body, seen, root=False), ends=ends)


def _steps(c: Compiler, body: Flat, number: int, seen: dict[str, Name]) -> list[tuple[int, list[int]]]:
    """A SEQ of three leaves and more: each with its conditions with the next; none, if there are other conditions."""
    own = [b.var for b in body.buffers]
    ordered = all((a, b) in body.before for i, a in enumerate(own) for b in own[i + 1 :])
    wide = any(len(covered) > 1 for covered, _ in body.windows)
    if len(own) < 3 or not ordered or wide or body.negations or body.tests or any(b.kleene for b in body.buffers):
        return []
    between = {frozenset(pair): i for i, pair in enumerate(pairwise(own))}
    wanted = [e for e in body.predicates if not c.holds(e)]
    if any(isinstance(e, x.Same) or x.has_group_call(e) or frozenset(x.variables(e)) not in between for e in wanted):
        return []
    names = {b.var: n for b, n in c.program.flats[number].leaves}
    steps: list[tuple[int, list[int]]] = [(names[v].slots[0], []) for v in own]
    for e in wanted:
        steps[between[frozenset(x.variables(e))]][1].append(c.code.predicate(e, seen | names, {}, over=-1))
    return steps


def _slots(b: t.Buffer) -> int:
    return b.most if b.kleene and b.most is not None else 1


def _jump(c: Compiler, b: t.Buffer, ties: tuple[Tie, ...], seen: dict[str, Name]) -> JumpSpec:
    """The key of a leaf: the columns that are tied to the match, sorted so that equal keys share one index."""
    buffer = c.buffer_of(b)
    found = set()
    for k in ties:
        if k.var != b.var:
            continue
        wide = "float64" in (k.own.type, k.outer.type)
        own, outer = (as_float(k.own), as_float(k.outer)) if wide else (k.own, k.outer)
        (name,) = x.variables(k.outer)
        n = seen[name]
        found.add((c.code.column_of(own, buffer), n.slots[0], c.code.column(outer, n), wide))
    if not found:
        return JumpSpec()
    listed = sorted(found)
    key = (buffer, tuple(col for col, *_ in listed))
    if key not in c.program.keys:
        c.program.keys.append(key)
    return JumpSpec(c.program.keys.index(key), listed)


# Limits of chains -----------------------------------------------------------------------------------------------------


def limited(g: NegationSpec, slots: list[int], *methods: Method) -> int | None:
    """The component of a chain whose event alone decides where the first match of a negation after it ends.

    Then it also decides which events of the next component can follow.
    """
    if g.left or g.right or g.exclude_slots or g.exclude_sets:
        return None
    for i, (a, b) in enumerate(pairwise(slots)):
        if g.after == [([a], [])] and g.before == [([b], [])]:
            keys = [*(j for w in g.ways for j in w.jumps), *(e.jump for w in g.ways for e in w.ends)]
            tied = {slot for key in keys for _, slot, _, _ in key.ties}
            return i if all(w.method in methods for w in g.ways) and tied <= {a} else None
    return None


def negated_sequence(program: Program, g: NegationSpec) -> list[int] | None:
    """The buffers of one SEQ of leaves without conditions: pointers from each to the next say where it ends."""
    if len(g.ways) != 1 or any(j.ties for j in g.ways[0].jumps):
        return None
    levels = program.flats[g.ways[0].flat].levels
    ordered = all(len(level.after) == k and level.previous < 0 for k, level in enumerate(levels))
    return [program.slots[level.slot] for level in levels] if ordered else None
