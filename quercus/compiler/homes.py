"""Walking a query's conjuncts with what is known where they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, assert_never

from attrs import evolve, frozen

from quercus.ir import expr as x
from quercus.ir import pattern as p


@frozen
class Home:
    """A place where conjuncts act.

    `absent` are the variables that may be absent or empty although this home is tested: no rewrite may pass through
    them. `outer` are the conjuncts of the homes around it: true, when their variables are there. `body` is what the
    home covers.
    """

    kind: Literal["query", "branch", "not"]
    body: p.Pattern
    absent: frozenset[str]
    outer: tuple[x.Expr, ...]

    def always(self, e: x.Expr) -> bool:
        """Whether every variable of the expression is there whenever this home is tested."""
        return not (x.variables(e) & self.absent)


def inner_conjuncts(e: p.Pattern) -> Iterator[x.Expr]:
    """The conjuncts that stand in branches and negations under a pattern."""
    for n in p.walk(e):
        match n:
            case p.Or():
                for b in n.branches:
                    yield from b.where
            case p.Not():
                yield from n.where


def without_conditions(e: p.Pattern) -> p.Pattern:
    """The bare pattern, to be shown where its conditions are told apart."""
    e = p.with_parts(e, tuple(without_conditions(c) for c in p.parts(e)))
    match e:
        case p.Or():
            return evolve(e, branches=tuple(evolve(b, where=()) for b in e.branches))
        case p.Not():
            return evolve(e, where=())
        case _:
            return e


Rewrite = Callable[[tuple[x.Expr, ...], Home], tuple[x.Expr, ...]]


def rewrite_homes(q: p.Query, rewrite: Rewrite) -> p.Query | None:
    """Rewrite the conjuncts of every home, outermost first; None when nothing changed."""
    root = Home("query", q.pattern, p.can_be_absent(q.pattern), ())
    where = rewrite(q.where, root)
    pattern = _within(q.pattern, rewrite, evolve(root, outer=where))
    if where == q.where and pattern == q.pattern:
        return None
    return evolve(q, where=where, pattern=pattern)


def _within(e: p.Pattern, rewrite: Rewrite, around: Home) -> p.Pattern:
    match e:
        case p.Leaf() | p.Kleene():
            return e
        case p.Seq() | p.And():
            return p.with_parts(e, tuple(_within(c, rewrite, around) for c in e.parts))
        case p.Or():
            branches = []
            for b in e.branches:
                where, inner = _enter("branch", b.body, b.where, rewrite, around)
                body = _within(b.body, rewrite, inner)
                same = where == b.where and body is b.body
                branches.append(b if same else evolve(b, where=where, body=body))
            return e if p.same_objects(e.branches, tuple(branches)) else evolve(e, branches=tuple(branches))
        case p.Not():
            where, inner = _enter("not", e.body, e.where, rewrite, around)
            body = _within(e.body, rewrite, inner)
            return e if where == e.where and body is e.body else evolve(e, where=where, body=body)
        case _:
            assert_never(e)


def _enter(
    kind: Literal["branch", "not"], body: p.Pattern, where: tuple[x.Expr, ...], rewrite: Rewrite, around: Home
) -> tuple[tuple[x.Expr, ...], Home]:
    absent = (around.absent - p.positive_variables(body)) | p.can_be_absent(body)
    home = Home(kind, body, absent, around.outer)
    new = rewrite(where, home)
    return new, evolve(home, outer=(*around.outer, *new))
