"""Runs the rewrite rules, keeps their trace, and checks the query after each."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast

from attrs import evolve, frozen

from quercus.compiler.rules import BY_NAME, RULES, Rule
from quercus.errors import QueryError, nearest
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text

MAX_ROUNDS = 20


@frozen
class Fired:
    """A rule that changed the query, with the query before and after."""

    rule: str
    before: p.Query
    after: p.Query


def rewrite(q: p.Query, *, without: Collection[str] = ()) -> tuple[p.Query, tuple[Fired, ...]]:
    """Apply every rule until nothing changes, then note the findings. `without` names rules to leave out."""
    for name in without:
        if name not in BY_NAME:
            raise QueryError("E702", f"no rule '{name}'", hint=nearest(name, BY_NAME) or "rules: " + ", ".join(BY_NAME))
    trace: list[Fired] = []
    active = [r for r in RULES if r.name not in without]
    for _ in range(MAX_ROUNDS):
        before = q
        for rule in active:
            if rule.kind == "rewrite":
                q = apply(rule, q, trace)
        if q == before:
            break
    else:
        raise AssertionError(f"the rules do not come to rest: {trace[-1].rule}")
    for rule in active:
        if rule.kind == "finding":
            q = apply(rule, q, trace)
    return q, tuple(trace)


def apply(rule: Rule, q: p.Query, trace: list[Fired] | None = None) -> p.Query:
    """One rule on the whole query, at every node from the leaves up; the culprit is named if it breaks the query."""
    if q.empty is not None:
        return q
    if rule.on == "query":
        new = cast("Callable[[p.Query], p.Query | None]", rule.apply)(q)
    else:
        pattern = bottom_up(q.pattern, cast("Any", rule.apply))
        new = None if pattern == q.pattern else evolve(q, pattern=pattern)
    if new is None or new == q:
        return q
    check_invariants(new, rule.name)
    if trace is not None:
        trace.append(Fired(rule.name, q, new))
    return new


def bottom_up(e: p.Pattern, rule: Callable[[p.Pattern], p.Pattern | None]) -> p.Pattern:
    """A rule on every node, from the leaves up, as often as it changes something."""
    e = p.with_parts(e, tuple(bottom_up(c, rule) for c in p.parts(e)))
    while (new := rule(e)) is not None:
        e = p.with_parts(new, tuple(bottom_up(c, rule) for c in p.parts(new)))
    return e


def check_invariants(q: p.Query, culprit: str) -> None:
    """What must hold of every query:

    each conjunct sees its variables, nothing is empty, negations stand where they may.
    """
    positive = p.positive_variables(q.pattern)

    def visible(where: tuple[x.Expr, ...], names: frozenset[str]) -> None:
        for c in where:
            assert x.variables(c) <= names, f"{culprit}: {text.scalar(c)} names what it cannot see"

    def visit(e: p.Pattern, names: frozenset[str]) -> None:
        match e:
            case p.Seq() | p.And():
                assert any(not isinstance(c, p.Not) for c in e.parts), (
                    f"{culprit}: an operator with no positive component"
                )
            case p.Or():
                assert e.branches, f"{culprit}: an OR with no branch"
                for b in e.branches:
                    assert not isinstance(b.body, p.Not), f"{culprit}: a negation directly in an OR"
                    visible(b.where, names)
            case p.Not():
                assert not isinstance(e.body, p.Not), f"{culprit}: a negation of a negation"
                names |= p.positive_variables(e.body)
                visible(e.where, names)
        for c in p.parts(e):
            visit(c, names)

    assert not isinstance(q.pattern, p.Not), f"{culprit}: a negation alone"
    if q.empty is None:
        visible(q.where, positive)
        visit(q.pattern, positive)
