"""What a query leaves unbounded, or asks for in vain: said at compile time, with the part's name."""

from __future__ import annotations

from collections.abc import Iterator

from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.schema import Schema

MANY = 20


def warnings(q: p.Query, schema: Schema) -> tuple[str, ...]:
    """Warnings about a rewritten query, each naming its part."""
    if q.empty is not None:
        return (f"no match is possible: {q.empty}",)
    return (*_kleene_pairs(q, schema), *_large_counts(q), *_loose_components(q), *_null_comparisons(q))


def _kleene_pairs(q: p.Query, schema: Schema) -> Iterator[str]:
    """Two sets that may take the same events, in no order: every division of the events between them is maximal."""
    found = {k.var: k for k in p.leaves(q.pattern)}.values()
    open_ = [k for k in found if isinstance(k, p.Kleene) and k.most is None]
    for i, a in enumerate(open_):
        for b in open_[i + 1 :]:
            shared = set(schema.accepts(a.leaf.type)) & set(schema.accepts(b.leaf.type))
            if a.var != b.var and shared and not _ordered(q.pattern, a.var, b.var):
                yield (
                    f"'{a.var}' and '{b.var}' are sets of {sorted(shared)[0]} in no order: "
                    "maximal matches can be exponentially many (limits apply)"
                )


def _ordered(e: p.Pattern, a: str, b: str) -> bool:
    """Whether the lowest operator over both variables puts them in order (or in different branches)."""
    for c in p.parts(e):
        if {a, b} <= p.positive_variables(c):
            return _ordered(c, a, b)
    return isinstance(e, p.Seq | p.Or)


def _large_counts(q: p.Query) -> Iterator[str]:
    for k in {k.var: k for k in p.leaves(q.pattern)}.values():
        if isinstance(k, p.Kleene) and k.most is not None and k.most > MANY:
            yield (
                f"'{k.var}' takes every choice of {k.most} events: "
                f"the number of matches grows as m choose {k.most} (limits apply)"
            )


def _loose_components(q: p.Query) -> Iterator[str]:
    """Components of an AND that nothing ties to the rest multiply."""
    if q.key is not None or q.partition_by or q.aggregates:
        return
    for e in p.walk(q.pattern):
        if isinstance(e, p.And) and len([c for c in e.parts if not isinstance(c, p.Not)]) > 3 and not q.where:
            yield (
                f"no condition ties the {len(e.parts)} components of {text.pattern(e)[:60]} together: "
                "matches are all combinations in the window"
            )


def _null_comparisons(q: p.Query) -> Iterator[str]:
    for c in q.where:
        for e in x.walk(c):
            if isinstance(e, x.Compare) and any(isinstance(s, x.Const) and s.value is None for s in (e.left, e.right)):
                yield f"{text.scalar(e)} is never true: write 'is null'"
