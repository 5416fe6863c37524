"""How far partial matches got: events of each type, what conditions left of them, and growing beginnings of the pattern
under one requirement after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc
from attrs import evolve

from quercus.backends.local.values import Mask
from quercus.errors import nearest
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.why.columns import masks, truth
from quercus.why.data import Component, Funnel, Passed, Stage
from quercus.why.engine import Engine
from quercus.why.readings import Reading, beginning, positive, replaced, restricted
from quercus.why.requirements import LONGEST, named, negation_text


def funnel(engine: Engine, reading: Reading) -> Funnel:
    """The stages of one reading, up to the first of which nothing is left."""
    q = reading.query
    components = tuple(_components(engine, q))
    empty = next((c for c in components if not c.left and not c.negated and not _optional(q, c.var)), None)
    stages: list[Stage] = []
    stopped = None
    for variables, what, variant in _stages(engine, q):
        if empty is not None and empty.var in variables:
            break
        count = engine.count(variant)
        stages.append(Stage(variables, what, count, engine.text(variant)))
        if count.n == 0 and count.exact:
            stopped = f"{', '.join(variables)}: {what}"
            break
    if empty is not None and stopped is None:
        last = next((c.condition for c in empty.conditions if not c.passed), "") if empty.events else "no event"
        stopped = f"{empty.var}: {last}"
    return Funnel(reading.taken, components, tuple(stages), stopped)


# Events ---------------------------------------------------------------------------------------------------------------


def _components(engine: Engine, q: p.Query) -> Iterator[Component]:
    own = {leaf.var for leaf in p.leaves(q.pattern)}
    inner = [c for e in p.walk(q.pattern) if isinstance(e, p.Not) for c in e.where]
    for leaf in p.leaves(q.pattern, negated=True):
        kind = leaf.leaf.type if isinstance(leaf, p.Kleene) else leaf.type
        (at,) = engine.stream.route([engine.schema.accepts(kind)])
        rows = engine.stream.input_rows(at)
        left: Mask = np.ones(len(rows), bool)
        passed = []
        for attr in q.partition_by:
            valid = engine.stream.column(attr).take(rows).valid
            if valid is not None:
                left = left & valid
                passed.append(Passed(f"{leaf.var}.{attr} is not null", int(left.sum()), 0))
        for c in q.where if leaf.var in own else inner:
            if x.variables(c) == {leaf.var} and not x.has_group_call(c):
                is_true, unknown = masks(truth(c, engine.stream, {leaf.var: rows}, len(rows)))
                here = int((unknown & left).sum())
                left = left & is_true
                passed.append(Passed(engine.said(c), int(left.sum()), here))
        hint = None if len(rows) else _alike(engine, kind)
        sign = leaf.sign if isinstance(leaf, p.Kleene) else ""
        yield Component(leaf.var, kind + sign, leaf.var not in own, len(rows), tuple(passed), hint)


def _optional(q: p.Query, var: str) -> bool:
    return any(isinstance(e, p.Kleene) and not e.least and e.var == var for e in p.leaves(q.pattern))


def _alike(engine: Engine, kind: str) -> str | None:
    """The types of the data that look like one that it does not have; else what there is."""
    there = types_of(engine)
    if not there:
        return "there are no events"
    return nearest(kind, there) or f"types there are: {', '.join(there[:8])}{', ...' if len(there) > 8 else ''}"


def types_of(engine: Engine) -> list[str]:
    """The types of the events, in alphabetical order, and the concepts above them."""
    found = pc.unique(engine.stream.table.column(engine.schema.type)).to_pylist()
    there = {str(t) for t in found if t is not None}
    concepts = {c for c in engine.schema.hierarchy if there & set(engine.schema.accepts(c))}
    return sorted(there | concepts)


# Beginnings -----------------------------------------------------------------------------------------------------------


def _stages(engine: Engine, q: p.Query) -> Iterator[tuple[tuple[str, ...], str, p.Query]]:
    """The variants in order, each with one more requirement than the one before, unless it has one more variable."""
    leaves = list(p.leaves(q.pattern))
    tests = [c for c in q.where if not x.has_group_call(c)]
    groups = tuple(c for c in q.where if x.has_group_call(c))
    plain = evolve(q, where=tuple(tests))
    seen: frozenset[str] = frozenset()
    done: list[x.Expr] = []
    for k in range(1, len(leaves) + 1):
        begun = beginning(q, k)
        if begun is None or p.can_be_empty(begun):
            continue
        variables = tuple(dict.fromkeys(leaf.var for leaf in leaves[:k]))
        known = frozenset(variables)
        here = [c for c in tests if x.variables(c) <= known and c not in done]
        local = [c for c in here if len(x.variables(c)) <= 1 or not (x.variables(c) - {leaves[k - 1].var})]
        joins = [c for c in here if c not in local]
        base = restricted(plain, begun)
        base = evolve(base, where=(*done, *local))
        if len(known) > 1 or isinstance(leaves[0], p.Kleene):
            yield from _placed(engine, base, seen, len(known))
            for i, c in enumerate(joins):
                yield variables, engine.said(c), evolve(base, where=(*done, *local, *joins[: i + 1]))
        done += here
        seen = known
    variables = tuple(dict.fromkeys(leaf.var for leaf in leaves))
    bare = evolve(q, pattern=beginning(q, len(leaves)) or q.pattern, where=tuple(tests))
    for i, c in enumerate(groups):
        yield variables, engine.said(c), evolve(bare, where=(*tests, *groups[: i + 1]))
    negations = [(path, e) for path, e in positive(q.pattern) if isinstance(e, p.Not)]
    for i, (_, e) in enumerate(negations):
        pattern = q.pattern
        for path, _ in reversed(negations[i + 1 :]):
            pattern = replaced(pattern, path, None)
        yield variables, negation_text(e), evolve(q, pattern=pattern)


def _placed(
    engine: Engine, q: p.Query, before: frozenset[str], count: int
) -> Iterator[tuple[tuple[str, ...], str, p.Query]]:
    """One more variable: in order and within the window. Where that leaves nothing, in order alone comes first."""
    variables = tuple(v.var for v in q.variables)
    wide = _without_windows(q.pattern)
    ordered = any(isinstance(e, p.Seq) and len(e.parts) > 1 for e in p.walk(q.pattern))
    together = "in order" if ordered else "together" if count > 1 else "events"
    if q.partition_by:
        together += f", of one {', '.join(q.partition_by)}"
    within = f"within {text.window(q.window)}"
    bounded = evolve(q, pattern=wide)
    if before and not engine.count(bounded, most=1).some:
        yield variables, together, _apart(bounded)
        yield variables, within, bounded
    else:
        yield variables, f"{together}, {within}", bounded
    if wide is not q.pattern:
        own = [e for e in p.walk(q.pattern) if isinstance(e, p.Seq | p.And | p.Or) and e.window is not None]
        sizes = ", ".join(f"{named(e)} within {text.window(e.window)}" for e in own if e.window is not None)
        yield variables, sizes, q


def _apart(q: p.Query) -> p.Query:
    """The last variable any time from the others, which stay in the window, where the pattern is a sequence."""
    longest = evolve(q.window, size=LONGEST)
    e = q.pattern
    if isinstance(e, p.Seq) and len(e.parts) > 1 and isinstance(e.parts[-1], p.Leaf) and e.window is None:
        first = p.Seq(e.parts[:-1], q.window)
        e = p.Seq((first, e.parts[-1]), span=e.span)
    return evolve(q, pattern=e, window=longest)


def _without_windows(e: p.Pattern) -> p.Pattern:
    e = p.with_parts(e, tuple(_without_windows(c) for c in p.parts(e)))
    if isinstance(e, p.Seq | p.And | p.Or) and e.window is not None and len(p.parts(e)) > 1:
        return evolve(e, window=None)
    return e
