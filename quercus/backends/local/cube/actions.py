"""Actions over held results: what makes those of one query from those of another (E-Cube, sections 5.1 to 5.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import assert_never

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from quercus.backends.local.cube.held import Column, Held, Merged, Small, projected, small
from quercus.backends.local.cube.inserted import Edge, Inserted
from quercus.backends.local.cube.lanes import Bound, Lane, Lanes
from quercus.backends.local.expressions import true_mask
from quercus.backends.local.values import Mask
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import workload as w
from quercus.kernels import reuse

Index = NDArray[np.int64]
Equal = frozenset[tuple[str, frozenset[str]]]  # (attribute, two variables that agree on it)
_PAIRS = 1 << 20  # of a match and an event that are looked at together


@frozen(eq=False)
class Results:
    """Held matches with the names of their components, and what is known to be equal in all of them."""

    held: Held
    names: tuple[str, ...]
    equal: Equal = frozenset()

    def place(self, var: str) -> int:
        return self.names.index(var)

    def agree(self, attr: str, first: str) -> set[str]:
        """The variables that agree with one on an attribute."""
        found, todo = {first}, [first]
        while todo:
            v = todo.pop()
            for a, pair in self.equal:
                if a == attr and v in pair:
                    todo.extend(pair - found)
                    found |= pair
        return found


def equalities(where: Iterable[x.Expr]) -> Equal:
    """The equalities between two variables on one attribute."""
    return frozenset(
        (e.left.attr, frozenset((e.left.var, e.right.var)))
        for e in where
        if x.is_equality(e)
        and isinstance(e, x.Compare)
        and isinstance(e.left, x.Column)
        and isinstance(e.right, x.Column)
        and e.left.attr == e.right.attr
    )


class Worker:
    """Runs the actions of one query. `deltas` runs a query of its own; `spent` is told of all that comes out."""

    def __init__(self, lanes: Lanes, deltas: Callable[[w.Delta], Results], spent: Callable[[Held], None]) -> None:
        self.lanes, self.stream, self.deltas, self.spent = lanes, lanes.stream, deltas, spent

    def run(self, r: Results, actions: Iterable[w.Action]) -> Results:
        """The results after all actions, one after the other."""
        for action in actions:
            r = self.apply(r, action)
            self.spent(r.held)
        return r

    def apply(self, r: Results, action: w.Action) -> Results:
        match action:
            case w.Rename():
                return self.rename(r, dict(action.names))
            case w.Retype():
                return self.retype(r, r.place(action.var), action.accepts)
            case w.Insert():
                return self.insert(r, action)
            case w.Forbid():
                return self.forbid(r, action)
            case w.Narrow():
                return self.narrow(r, action.window)
            case w.Keep():
                return self.meet(r, action.where)
            case w.Project():
                return self.project(r, action.variables)
            case w.Add():
                return self.add(r, action)
            case _:
                assert_never(action)

    def rename(self, r: Results, names: dict[str, str]) -> Results:
        equal = frozenset((a, frozenset(names.get(v, v) for v in pair)) for a, pair in r.equal)
        return Results(r.held, tuple(names.get(v, v) for v in r.names), equal)

    def retype(self, r: Results, place: int, accepts: tuple[str, ...]) -> Results:
        """Matches whose event is of some types: its code lies in their range."""
        kinds, low, high = self.lanes.stacks.coded(accepts)
        first = (
            0 if r.held.lexical else len(r.names) - 1
        )  # what matches are ordered by, unless their source is filtered
        kept = reuse.kept_runs if place == first and not isinstance(r.held, Inserted) else reuse.kept_of_kinds

        def test(columns: list[Column]) -> Small:
            return _kept(len(columns[0]), lambda out: kept(kinds, low, high, columns[0], out))

        return evolve(r, held=r.held.keep([place], test))

    def insert(self, r: Results, a: w.Insert) -> Results:
        low, high = _around(r, a)
        attrs, rest = self._keys(r, a.part.var, a.where, {low[0], high[0]})
        lane = self.lanes.lane(a.part.accepts, _named_alike(a.part), attrs)
        source = r.held.in_any_order() if a.place == len(r.names) else r.held
        edges = (Edge("low", r.place(low[0]), low[1]), Edge("high", r.place(high[0]), high[1]))
        held = Inserted(source, a.place, lane, edges)
        names = (*r.names[: a.place], a.part.var, *r.names[a.place :])
        found = Results(held, names, r.equal | equalities(a.where))
        return self.meet(found, rest)

    def forbid(self, r: Results, a: w.Forbid) -> Results:
        low = (a.after, Bound("after")) if a.after is not None else (r.names[-1], Bound("back", a.window))
        high = (a.before, Bound("upto")) if a.before is not None else (r.names[0], Bound("reach", a.window))
        attrs, rest = self._keys(r, a.part.var, a.part.ties, {low[0], high[0]})
        lane = self.lanes.lane(a.part.accepts, _named_alike(a.part), attrs)
        if not rest and (held := _clipped(r, low, high, lane)) is not None:
            return evolve(r, held=held)
        named = {v for e in rest for v in x.variables(e)} - {a.part.var}
        names = list(dict.fromkeys((low[0], high[0], *sorted(named))))

        def test(columns: list[Column]) -> Small:
            at = dict(zip(names, columns, strict=True))
            ends = lane.ends(low[1], at[low[0]], high[1], at[high[0]])
            if rest:
                return self._untied(at, ends, lane, a.part.var, rest)
            return _kept(len(columns[0]), lambda out: reuse.kept_empty(*ends, out))

        return evolve(r, held=r.held.keep([r.place(v) for v in names], test))

    def narrow(self, r: Results, window: p.Window) -> Results:
        held = r.held
        if isinstance(held, Inserted) and held.place in (0, held.width - 1):
            if held.is_last:
                return evolve(r, held=held.clipped(lambda at: Edge("high", at, Bound("reach", window)), 0))
            return evolve(r, held=held.clipped(lambda at: Edge("low", at, Bound("back", window)), held.width - 1))
        bound = self.lanes.bound(Bound("reach", window))

        def test(columns: list[Column]) -> Small:
            return _kept(len(columns[0]), lambda out: reuse.kept_before(bound, columns[0], columns[-1], out))

        places = [0] if len(r.names) == 1 else [0, len(r.names) - 1]
        return evolve(r, held=r.held.keep(places, test))

    def meet(self, r: Results, where: tuple[x.Expr, ...]) -> Results:
        """The matches that meet conditions, one after the other."""
        for e in where:
            names = [v for v in r.names if v in x.variables(e)]
            if not names:  # a constant
                names = [r.names[0]]

            def test(columns: list[Column], names: list[str] = names, e: x.Expr = e) -> Small:
                at = dict(zip(names, columns, strict=True))
                return np.flatnonzero(self._true(e, at, len(columns[0]))).astype(np.int32)

            r = evolve(r, held=r.held.keep([r.place(v) for v in names], test))
        return evolve(r, equal=r.equal | equalities(where))

    def project(self, r: Results, variables: tuple[str, ...]) -> Results:
        equal = frozenset((a, pair) for a, pair in r.equal if pair <= set(variables))
        return Results(projected(r.held, [r.place(v) for v in variables]), variables, equal)

    def add(self, r: Results, a: w.Add) -> Results:
        parts, equal = [r.held], r.equal
        for d in a.deltas:
            found = self.run(self.deltas(d), d.actions)
            if set(found.names) != set(r.names):
                raise AssertionError(f"a delta binds {found.names}, not {r.names}")
            if found.names != r.names:
                raise AssertionError(f"a delta binds {found.names} in another order than {r.names}")
            parts.append(found.held)
            equal &= found.equal
        parts = [part for part in parts if len(part)] or [r.held]
        return Results(Merged(parts) if len(parts) > 1 else parts[0], r.names, equal)

    def _true(self, e: x.Expr, at: Mapping[str, Column], n: int) -> Mask:
        """Where a condition is true of the events at some positions."""
        return true_mask(e, lambda k: self.stream.values(k.attr, at[k.var].astype(np.int64, copy=False)), n)

    def _keys(
        self, r: Results, var: str, where: tuple[x.Expr, ...], ends: set[str]
    ) -> tuple[tuple[str, ...], tuple[x.Expr, ...]]:
        """The attributes on which a new variable agrees with both ends of its range; the conditions that are left.

        An equality goes where it says no more than that: its other variable agrees with the ends in all matches.
        """
        tied = equalities(where)
        attrs: list[str] = []
        for attr in dict.fromkeys(a for a, pair in tied if var in pair):
            others = {v for a, pair in tied if a == attr and var in pair for v in pair - {var}}
            if any(ends <= r.agree(attr, v) for v in others):
                attrs.append(attr)
        rest = []
        for e in where:
            found = equalities([e])
            if found:
                ((attr, pair),) = found
                near = r.agree(attr, next(iter(ends)))
                if attr in attrs and var in pair and pair - {var} <= near:
                    continue
            rest.append(e)
        return tuple(sorted(attrs)), tuple(rest)

    def _untied(
        self,
        at: dict[str, Column],
        ends: tuple[Small, Column, Small, Column],
        lane: Lane,
        var: str,
        ties: tuple[x.Expr, ...],
    ) -> Small:
        """The matches for which no event between the ends meets all ties: each of these events is looked at."""
        n = len(ends[1])
        lo, hi = small(n), small(n)
        reuse.spans(*ends, lo, hi)
        sums = np.cumsum(hi - lo, dtype=np.int64)
        violated = np.zeros(n, bool)
        first = 0
        while first < n:
            before = int(sums[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(sums, before + _PAIRS, "right")))
            rows, places = small(int(sums[last - 1]) - before), small(int(sums[last - 1]) - before)
            reuse.by_match(lo[first:last], hi[first:last], rows, places)
            bound = {v: column[first:last][rows] for v, column in at.items()} | {var: lane.at[places]}
            passed = np.ones(len(rows), bool)
            for e in ties:
                passed &= self._true(e, bound, len(rows))
            violated[first:last][rows[passed]] = True
            first = last
        return np.flatnonzero(~violated).astype(np.int32)


def _clipped(r: Results, low: tuple[str, Bound], high: tuple[str, Bound], forbidden: Lane) -> Held | None:
    """Results whose new event stands on the right side of the nearest forbidden event; None: it is no end of the scope.

    The nearest one is that of the scope's other end, `v`. Where the new event is the scope's left end, the last
    forbidden event before the right one must not come after it; where the scope begins a window before the new event,
    it must lie before that window; and so on the other side.
    """
    held = r.held
    if not isinstance(held, Inserted) or not set(held.lane.key) <= set(forbidden.key):
        return None
    new = r.names[held.place]
    if (low[0] == new) == (high[0] == new):
        return None
    if low[0] == new:
        side, near, (v, of) = "low", "last", high
        bound = Bound("upto") if low[1].kind == "after" else Bound("reach", low[1].window)
    else:
        side, near, (v, of) = "high", "first", low
        bound = Bound("after") if high[1].kind == "upto" else Bound("back", high[1].window)
    return held.clipped(lambda at: Edge(side, at, bound, near, of, forbidden), r.place(v))  # type: ignore[arg-type]


def _around(r: Results, a: w.Insert) -> tuple[tuple[str, Bound], tuple[str, Bound]]:
    """Where a new event may stand: from which variable's bound to which."""
    if a.place == len(r.names):
        return (r.names[-1], Bound("after")), (r.names[0], Bound("reach", a.window))
    if a.place == 0:
        return (r.names[-1], Bound("back", a.window)), (r.names[0], Bound("upto"))
    return (r.names[a.place - 1], Bound("after")), (r.names[a.place], Bound("upto"))


def _named_alike(part: w.Part) -> tuple[x.Expr, ...]:
    """A part's own conditions, whatever it is called: so that parts can share their events."""

    def unnamed(e: x.Expr) -> x.Expr:
        if isinstance(e, x.Column):
            return evolve(e, var="")
        return x.with_children(e, tuple(unnamed(c) for c in x.children(e)))

    return tuple(unnamed(e) for e in part.where)


def _kept(n: int, fill: Callable[[Small], int]) -> Small:
    out = small(n)
    return out[: fill(out)]
