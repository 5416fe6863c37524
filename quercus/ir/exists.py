"""How one body of a negation is answered: by an index, where nothing but the scope's ends and a key decides.

- `next`: a leaf; is there an event in the scope? One search. `key`: the same among the events of a key.
- `jumps`: leaves that nothing but order ties together. The first event of each in turn, inside the scope: whatever else
  matches ends no earlier. Each leaf may have a key.
- `latest`: any other body. For each event that can be its last, the latest start of a match that ends there or before,
  key by key.
- `search`: match by match, inside the scope.

A key comes from equalities with variables of the match around the negation. The planner asks before anything runs, and
the engine for each alternative that it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from attrs import field, frozen

from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.flat import Flat, FlatNegation

Method = Literal["next", "key", "jumps", "latest", "search"]


@frozen
class Tie:
    """`own = outer`: an expression over one variable of the body, and one over one variable of the match."""

    own: x.Expr
    outer: x.Expr

    @property
    def var(self) -> str:
        (v,) = x.variables(self.own)
        return v

    @property
    def equality(self) -> x.Compare:
        return x.Compare("=", self.own, self.outer)

    @property
    def plain(self) -> bool:
        """Whether values compare without a conversion, so that what equals one value is equal."""
        return self.own.type == self.outer.type


@frozen
class Way:
    """The method for one body, and what it needs. `reason` says why it is a search."""

    method: Method
    reason: str = ""
    ties: tuple[Tie, ...] = ()
    predicates: tuple[x.Expr, ...] = ()  # of `latest`: what the body's own variables must meet
    ends: tuple[str, ...] = ()  # of `latest`: who can be a match's last event


@frozen
class Around:
    """What is known of the match around a body. `holds` says which equalities need no test."""

    sets: frozenset[str] = frozenset()  # variables that stand for several events
    absent: frozenset[str] = frozenset()  # variables that some matches do not bind
    barred: frozenset[str] = frozenset()  # types of events that the body may not use
    holds: Callable[[x.Expr], bool] = field(default=lambda _: False, eq=False)


BORDER = "a negation inside it looks to the border of the scope"
NAMES = "a negation inside it names the match"
CONDITION = "a condition that is no equality ties it to the match"
BARRED = "it stands in an AND, whose events it may not use"
COUNTED = "a set of n inside it is bound event by event"
UNTIED = "its last event is not tied to the match as the others are"
WHOLE = "a test on whole sets"


def way_of(body: Flat, around: Around) -> Way:
    """The best method for a body."""
    reason = _depends(body)
    if reason is not None:
        return Way("search", reason)
    own = body.variables
    ties: list[Tie] = []
    inner: list[x.Expr] = []
    for e in body.predicates:
        found = _same_ties(e, own, around.sets) if isinstance(e, x.Same) else _tie(e, own, around.sets)
        if found is None:
            return Way("search", CONDITION)
        ties += found
        inner += [] if found or _says_nothing(e, body) else [e]
    ties, implied = _closed(ties, inner)
    left = [e for e in inner if e not in implied and not around.holds(e)]
    if not left and _is_free(body):
        tested = tuple(k for k in ties if not around.holds(k.equality))
        if len(body.buffers) > 1 or is_counted(body.buffers[0]):
            return Way("jumps", ties=tested)
        return Way("key" if tested else "next", ties=tested)
    return _latest(body, ties, inner, around)


def _latest(body: Flat, ties: list[Tie], inner: list[x.Expr], around: Around) -> Way:
    classes: dict[x.Expr, list[Tie]] = {}
    for k in ties:
        classes.setdefault(k.outer, []).append(k)
    kept = [c for c in classes.values() if not all(around.holds(k.equality) for k in c)]
    ends = tuple(b.var for b in body.buffers if not any((b.var, v) in body.before for v in body.variables))
    if any(is_counted(b) for b in body.buffers):
        return Way("search", COUNTED)
    if around.barred & {name for b in body.buffers for name in b.accepts}:
        return Way("search", BARRED)
    for c in kept:
        if not all(k.plain for k in c):
            return Way("search", CONDITION)
        if not set(ends) <= {k.var for k in c} or x.variables(c[0].outer) & around.absent:
            return Way("search", UNTIED)
    agree = [x.Compare("=", c[0].own, k.own) for c in classes.values() for k in c[1:]]
    return Way(
        "latest",
        ties=tuple(k for c in kept for k in c),
        predicates=tuple(dict.fromkeys((*inner, *agree))),
        ends=ends,
    )


def _depends(body: Flat) -> str | None:
    """Why what is inside a body depends on more than the scope and a key."""
    if body.tests:
        return WHOLE
    return next((reason for g in body.negations if (reason := depends(g, body.variables))), None)


def depends(g: FlatNegation, own: frozenset[str]) -> str | None:
    """Why a negation inside a body depends on more than the body's own variables."""
    if g.scope.left or g.scope.right or any(not set(k) <= own for k in (*g.scope.after, *g.scope.before)):
        return BORDER
    return None if _names(g) <= own else NAMES


def tie_of(e: x.Expr, own: frozenset[str]) -> list[Tie]:
    """What a conjunct ties to single events of the match, if that is all it says."""
    return _tie(e, own, frozenset()) or []


def _names(g: FlatNegation) -> set[str]:
    """The variables from outside that a negation names, at any depth."""
    named = set(g.excludes)
    for body in g.bodies:
        inside = {v for e in (*body.predicates, *body.tests) for v in x.variables(e)}
        for inner in body.negations:
            inside |= _names(inner) | {v for k in (*inner.scope.after, *inner.scope.before) for v in k}
        named |= inside - body.variables
    return named


def _tie(e: x.Expr, own: frozenset[str], sets: frozenset[str]) -> list[Tie] | None:
    """What a conjunct ties: nothing, if it names the body's variables alone. None: it ties otherwise."""
    named = x.variables(e)
    if named <= own:
        return []
    if not isinstance(e, x.Compare) or e.op != "=" or x.has_group_call(e) or named & sets - own:
        return None
    left, right = x.variables(e.left), x.variables(e.right)
    if len(left) != 1 or len(right) != 1 or bool(left & own) == bool(right & own):
        return None
    return [Tie(e.left, e.right) if left & own else Tie(e.right, e.left)]


def _same_ties(e: x.Same, own: frozenset[str], sets: frozenset[str]) -> list[Tie] | None:
    mine = [c for c in e.columns if c.var in own]
    others = [c for c in e.columns if c.var not in own]
    if others and (any(c.var in sets for c in others) or len({c.type for c in e.columns}) > 1):
        return None
    return [Tie(a, b) for a in mine for b in others]


def _says_nothing(e: x.Expr, body: Flat) -> bool:
    """Agreement of one event with itself, or of the match's variables among themselves."""
    if not isinstance(e, x.Same):
        return False
    counted = {b.var for b in body.buffers if is_counted(b)}
    mine = [c.var for c in e.columns if c.var in body.variables]
    return not mine or (len(e.columns) == 1 and mine[0] not in counted)


def _closed(ties: Iterable[Tie], inner: list[x.Expr]) -> tuple[list[Tie], list[x.Expr]]:
    """What equalities of the body's own variables add to the ties, and which of them the ties then say."""
    found = dict.fromkeys(ties)
    pairs = [
        (e, (e.left, e.right))
        for e in inner
        if isinstance(e, x.Compare) and e.op == "=" and not x.has_group_call(e)
        if len(x.variables(e.left)) == len(x.variables(e.right)) == 1 and e.left.type == e.right.type
    ]
    before = -1
    while before != len(found):
        before = len(found)
        for _, (a, b) in pairs:
            for k in [k for k in found if k.plain]:
                if k.own in (a, b):
                    found[Tie(b if k.own == a else a, k.outer)] = None
    tied = {k.own for k in found if k.plain}
    return list(found), [e for e, (a, b) in pairs if a in tied and b in tied]


def _is_free(body: Flat) -> bool:
    """Whether nothing but order ties the leaves together: then the first event of each, in turn, is the best choice."""
    if body.negations:
        return False
    counted = {b.var for b in body.buffers if is_counted(b)}
    if any(len(covered) > 1 or covered & counted for covered, _ in body.windows):
        return False
    for i, a in enumerate(body.buffers):
        for b in body.buffers[i + 1 :]:
            apart = (
                (a.var, b.var) in body.before or (b.var, a.var) in body.before or not set(a.accepts) & set(b.accepts)
            )
            if not apart:
                return False
    return True


def is_counted(b: t.Buffer) -> bool:
    """Whether a leaf stands for a set of n events."""
    return b.kleene and b.most is not None
