"""Results that a reused query does not have, as queries of their own."""

from __future__ import annotations

from attrs import frozen

from quercus.compiler.cube.sequences import accepted, asked_of, conditions, gaps
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir.workload import Part, Sequence
from quercus.schema import Schema

Overrides = tuple[tuple[str, tuple[str, ...]], ...]


@frozen
class Run:
    """Components that stand together in a gap, negated ones among them, and what is asked of them."""

    gap: int
    parts: tuple[Part, ...]
    asked: tuple[x.Expr, ...]


def delta_query(s: Sequence, schema: Schema, without: Run | None = None) -> tuple[p.Query, Overrides]:
    """The query of a sequence, bound to its names, and the types that its variables take where no name says it.

    With a run that is not to be: its components, one after the other, negated as one in their gap.
    """
    parts: list[p.Pattern] = []
    for i, between in enumerate(gaps(s)):
        parts += [_negated(c) for c in between]
        if without is not None and without.gap == i:
            parts.append(_composite(without))
        if i < len(s.positive):
            parts.append(p.Leaf(s.positive[i].var, s.positive[i].type))
    every = (*s.parts, *(without.parts if without is not None else ()))
    others = tuple((c.var, c.accepts) for c in every if c.accepts != accepted(c.type, schema))
    variables = tuple(p.Leaf(c.var, c.type) for c in s.positive)
    query = p.Query(p.Seq(tuple(parts)), conditions(s), s.window, s.partition_by, variables=variables)
    return query, others


def _negated(c: Part) -> p.Not:
    return p.Not(p.Leaf(c.var, c.type), asked_of(c))


def _composite(run: Run) -> p.Not:
    """`!X`, or `!SEQ(X, !M, Y)`: scopes inside end where the whole one's does, as they did in the query."""
    if len(run.parts) == 1:
        return p.Not(p.Leaf(run.parts[0].var, run.parts[0].type), run.asked)
    inner = tuple(_negated(c) if c.negated else p.Leaf(c.var, c.type) for c in run.parts)
    return p.Not(p.Seq(inner), run.asked)
