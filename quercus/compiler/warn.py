"""What a query leaves unbounded, or asks for in vain: said at compile time, with the part's name."""

from __future__ import annotations

from collections.abc import Iterator

from quercus.compiler.homes import inner_conjuncts
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.schema import Schema

MANY = 20


def warnings(q: p.Query, schema: Schema) -> tuple[str, ...]:
    """Warnings about a rewritten query, each naming its part."""
    if q.empty is not None:
        return (f"no match is possible: {q.empty}",)
    return (
        *_too_few_places(q),
        *_kleene_pairs(q, schema),
        *_large_counts(q),
        *_loose_components(q),
        *_null_comparisons(q),
    )


def _too_few_places(q: p.Query) -> Iterator[str]:
    """A count window that cannot hold what the pattern needs."""
    needs = _least_events(q.pattern)
    if q.window.kind == "count" and needs > q.window.size:
        yield f"no match is possible: the pattern needs {needs} events, WITHIN {text.window(q.window)} holds fewer"


def _least_events(e: p.Pattern) -> int:
    match e:
        case p.Leaf():
            return 1
        case p.Kleene():
            return e.least
        case p.Not():
            return 0
        case p.Or():
            return min(_least_events(b.body) for b in e.branches)
        case p.Seq() | p.And():
            return sum(_least_events(c) for c in e.parts)


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
    if q.key is not None or q.partition_by:
        return
    for e in p.walk(q.pattern):
        if not isinstance(e, p.And):
            continue
        groups = [p.positive_variables(c) for c in e.parts if not isinstance(c, p.Not)]
        for c in q.where:
            tied = [g for g in groups if g & x.variables(c)]
            if len(tied) > 1:
                groups = [g for g in groups if g not in tied] + [frozenset().union(*tied)]
        if len(groups) > 3:
            yield (
                f"no condition ties {len(groups)} parts of {text.pattern(e)[:60]} together: "
                "matches are all their combinations in the window"
            )


def _null_comparisons(q: p.Query) -> Iterator[str]:
    for c in (*q.where, *inner_conjuncts(q.pattern)):
        for e in x.walk(c):
            if isinstance(e, x.Compare) and any(isinstance(s, x.Const) and s.value is None for s in (e.left, e.right)):
                yield f"{text.scalar(e)} is never true: write 'is null'"
