from __future__ import annotations

from attrs import evolve, field, mutable

from quercus.compiler.circles import circle
from quercus.compiler.homes import Home, rewrite_homes
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text

Value = bool | int | float | str


def contradictions(q: p.Query) -> p.Query | None:
    """a.x > 5, a.x < 3 -> false.  In the query: an empty plan; an OR branch or a negation goes.

    Bounds, equalities, `in` lists and null tests of one attribute against constants, and comparisons that go round in
    a circle (a.x < b.x, b.x < a.x), for variables that are always there. A Kleene variable counts too where it needs an
    element, since no element could pass.
    """
    if q.empty is not None:
        return None
    found: list[str] = []
    new = rewrite_homes(q, lambda where, home: _false_if_impossible(where, home, found))
    q2 = new or q
    pattern = _without_impossible(q2.pattern)
    if pattern is None or x.FALSE in q2.where or any(_never(c) for c in q2.where):
        never = [text.scalar(c) for c in q2.where if _never(c)]
        return evolve(q, empty=(found or [f"{c} is never true" for c in never] or ["every branch is impossible"])[0])
    if pattern == q2.pattern:
        return new
    gone = p.all_variables(q.pattern) - p.all_variables(pattern)
    cleaned = evolve(q2, pattern=pattern)
    return rewrite_homes(cleaned, lambda where, _: _without(where, gone)) or cleaned


def _without(where: tuple[x.Expr, ...], gone: frozenset[str]) -> tuple[x.Expr, ...]:
    left = (x.without_variables(c, gone) for c in where)
    return tuple(c for c in left if c is not None)


def _never(c: x.Expr) -> bool:
    return isinstance(c, x.Const) and c.value is not True


def _without_impossible(e: p.Pattern) -> p.Pattern | None:
    """The pattern without branches and negations that can never match; None when nothing positive is left."""
    match e:
        case p.Leaf() | p.Kleene():
            return e
        case p.Not():
            body = _without_impossible(e.body)
            return None if body is None or any(_never(c) for c in e.where) else evolve(e, body=body)
        case p.Or():
            kept = [(b, _without_impossible(b.body)) for b in e.branches if not any(_never(c) for c in b.where)]
            branches = tuple(evolve(b, body=body) for b, body in kept if body is not None)
            if not branches:
                return None
            if len(branches) == 1 and e.window is None and isinstance(p.unwrapped(branches[0].body), p.Kleene):
                return e  # alone it would become transparent, and the set a direct component of what is around
            return evolve(e, branches=branches)
        case p.Seq() | p.And():
            parts = [(c, _without_impossible(c)) for c in e.parts]
            if any(new is None and not isinstance(c, p.Not) for c, new in parts):
                return None
            left = tuple(new for _, new in parts if new is not None)
            if len(left) == 1 < len(e.parts) and e.window is None and not isinstance(left[0], p.Leaf):
                return e  # alone it would become transparent, and stand directly in what is around
            return evolve(e, parts=left)


def _false_if_impossible(where: tuple[x.Expr, ...], home: Home, found: list[str]) -> tuple[x.Expr, ...]:
    ranges: dict[tuple[str, str], _Range] = {}
    for c in (*home.outer, *where):
        about = _about(c)
        if about is None or not home.always(c):
            continue
        column, test = about
        seen = ranges.setdefault((column.var, column.attr), _Range())
        seen.add(test)
        seen.tests[-1] = c  # as it was written
        if seen.impossible() and x.FALSE not in where:
            if home.kind == "query":
                found.append(" and ".join(text.scalar(t) for t in seen.tests) + " is never true")
            return (x.FALSE,)
    round_ = None if x.FALSE in where else circle((*home.outer, *where), home.always)
    if round_ is not None:
        if home.kind == "query":
            found.append(" and ".join(text.scalar(c) for c in round_) + " is never true")
        return (x.FALSE,)
    return where


def _about(c: x.Expr) -> tuple[x.Column, x.Compare | x.InSet | x.IsNull] | None:
    match c:
        case x.Compare(left=x.Column() as column, right=x.Const(value=value) as k) if value is not None:
            bound = _as_compared(k, column)
            return None if bound is None else (column, evolve(c, right=bound))
        case x.InSet(value=x.Column() as column, negated=False):
            items = [_as_compared(i, column) for i in c.items if i.value is not None]
            kept = tuple(i for i in items if i is not None)
            return (column, evolve(c, items=kept)) if len(kept) == len(items) else None
        case x.IsNull(value=x.Column() as column):
            return column, c
        case _:
            return None


def _as_compared(k: x.Const, column: x.Column) -> x.Const | None:
    """The constant as it meets the column, numbers of two kinds as floats; None where the column would be converted."""
    if k.type == column.type:
        return k
    if column.type == "float64" and isinstance(k.value, int):
        return x.Const(float(k.value), "float64", span=k.span)
    return None


@mutable
class _Range:
    """What the tests of one attribute leave possible."""

    low: Value | None = None
    low_open: bool = False
    high: Value | None = None
    high_open: bool = False
    allowed: set[Value] | None = None
    excluded: set[Value] = field(factory=set)
    null: bool | None = None
    tests: list[x.Expr] = field(factory=list)

    def add(self, c: x.Compare | x.InSet | x.IsNull) -> None:
        self.tests.append(c)
        if isinstance(c, x.IsNull):
            if self.null is c.negated:  # null and not null
                self.allowed = set()
            self.null = not c.negated
            return
        if self.null:
            self.allowed = set()  # a comparison of null is never true
            return
        self.null = False
        if isinstance(c, x.InSet):
            self._only({i.value for i in c.items if i.value is not None})
            return
        assert isinstance(c.right, x.Const)
        v = c.right.value
        assert v is not None
        match c.op:
            case "=":
                self._only({v})
            case "<>":
                self.excluded.add(v)
            case "<" | "<=":
                if self.high is None or (v, c.op == "<=") < (self.high, not self.high_open):
                    self.high, self.high_open = v, c.op == "<"
            case ">" | ">=":
                if self.low is None or (v, c.op == ">") > (self.low, self.low_open):
                    self.low, self.low_open = v, c.op == ">"

    def _only(self, values: set[Value]) -> None:
        self.allowed = values if self.allowed is None else self.allowed & values

    def _fits(self, v: Value) -> bool:
        if v in self.excluded:
            return False
        above = self.low is None or v > self.low or (v == self.low and not self.low_open)  # type: ignore[operator]
        below = self.high is None or v < self.high or (v == self.high and not self.high_open)  # type: ignore[operator]
        return above and below

    def impossible(self) -> bool:
        if self.allowed is not None:
            return not any(self._fits(v) for v in self.allowed)
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))  # type: ignore[operator]
