"""Actions one after the other, each from one set of results to another that is known exactly.

A `Trail` holds what the results at hand are, as a sequence of its own: the matches of `now`, no more and no fewer. Each
method adds actions that are sound by themselves, whatever they are used for; a negated part of `now` stands for its
scope in `now`, so that a change of its neighbours, or of a first or last component beside a scope that ends at the
window, is never silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from quercus.compiler.cube.conditions import Known
from quercus.compiler.cube.deltas import Run, delta_query
from quercus.compiler.cube.sequences import asked_of, conditions, gaps, joined, windowed, with_conditions, with_names
from quercus.ir import expr as x
from quercus.ir.pattern import Window
from quercus.ir.workload import (
    Action,
    Add,
    Delta,
    Forbid,
    Insert,
    Keep,
    Narrow,
    Part,
    Project,
    Rename,
    Retype,
    Sequence,
)
from quercus.schema import Schema

Conditions = tuple[x.Expr, ...]


class NotSound(Exception):
    """A step that the results at hand do not allow: says why."""


@frozen(eq=False)
class Extent:
    """A set of results, for estimates: the matches of a sequence beside which a run of events is, or is not."""

    sequence: Sequence
    run: Run | None = None
    there: bool = True


@frozen(eq=False)
class DeltaSteps:
    """Where a delta begins, and what is done to it."""

    alone: Extent
    steps: tuple[Step, ...]


@frozen(eq=False)
class Step:
    """An action, what the results are after it, and the deltas that it adds."""

    action: Action
    after: Extent | None  # None: of a query that is no sequence
    deltas: tuple[DeltaSteps, ...] = ()


class Trail:
    def __init__(self, now: Sequence, schema: Schema) -> None:
        self.now, self.schema = now, schema
        self.steps: list[Step] = []

    def copy(self) -> Trail:
        again = Trail(self.now, self.schema)
        again.steps = list(self.steps)
        return again

    def _did(self, action: Action, after: Sequence, run: Run | None = None) -> None:
        self.now = after
        self.steps.append(Step(action, Extent(after, run)))

    # what takes matches away

    def rename(self, names: Mapping[str, str]) -> None:
        """Variables by other names, all at once."""
        bound = {c.var for c in self.now.positive}
        changed = tuple((old, new) for old, new in names.items() if old in bound and old != new)
        after = with_names(self.now, names)
        if changed:
            self._did(Rename(changed), after)
        self.now = after

    def narrow(self, window: Window) -> None:
        """A tighter window. Scopes that end at the window would become others, so that there may be none."""
        if window.size == self.now.window.size:
            return
        if window.size > self.now.window.size:
            raise NotSound("its window is shorter")
        if windowed(self.now):
            part = windowed(self.now)[0]
            raise NotSound(f"!{part.type} looks as far as its window reaches, and the windows differ")
        self._did(Narrow(window), evolve(self.now, window=window))

    def keep(self, asked: Iterable[x.Expr]) -> None:
        """More conditions, of which those are tested that do not follow from what holds."""
        own = frozenset(c.var for c in self.now.positive)
        asked = tuple(asked)
        assert all(x.variables(c) <= own for c in asked)
        rest = Known(conditions(self.now)).rest(asked)
        after = with_conditions(self.now, (*conditions(self.now), *asked))
        if rest:
            self._did(Keep(rest), after)
        self.now = after

    def retype(self, var: str, like: Part) -> None:
        """A finer concept."""
        after = _with_type(self.now, var, like)
        self._did(Retype(var, like.accepts), after)

    def insert(self, part: Part, place: int, asked: Conditions) -> None:
        """One more component. A negation beside it would look elsewhere, so that there may be none."""
        between = gaps(self.now)
        beside = between[place] or (windowed(self.now) if place in (0, len(between) - 1) else ())
        if beside:
            raise NotSound(f"{part.type} would change where !{beside[0].type} looks")
        positive = self.now.positive
        where = Known((*conditions(self.now), *part.where)).rest(asked)
        after = Sequence(
            joined((*positive[:place], part, *positive[place:]), (*between[:place], (), *between[place:])),
            self.now.where,
            self.now.window,
            self.now.partition_by,
        )
        after = with_conditions(after, (*conditions(self.now), *part.where, *asked))
        self._did(Insert(part, place, where, self.now.window), after)

    def forbid(self, part: Part, gap: int) -> None:
        """One more negated component."""
        between = list(gaps(self.now))
        between[gap] = (*between[gap], part)
        after = evolve(self.now, parts=joined(self.now.positive, tuple(between)))
        self._did(_forbidding(part, gap, self.now), after)

    def require(self, wanted: Iterable[Part], gap: int) -> None:
        """Negated components, of which so much is forbidden as does not follow from those that are there."""
        known = conditions(self.now)
        for part in wanted:
            there = gaps(self.now)[gap]
            if part in there:
                continue
            left = uncovered(part, there, known)
            if left:
                self.forbid(evolve(part, accepts=left), gap)
            if left != part.accepts:  # what is there says it, in part or as a whole
                between = list(gaps(self.now))
                between[gap] = (*there, part)
                self.now = evolve(self.now, parts=joined(self.now.positive, tuple(between)))

    def settle(self, wanted: tuple[Part, ...], gap: int) -> None:
        """Let go of the negated components of a gap that others follow from: `wanted` is what it says."""
        known, between = conditions(self.now), list(gaps(self.now))
        over = [part for part in between[gap] if uncovered(part, wanted, known)]
        if over:
            raise NotSound(f"it forbids {over[0].type} where that may stand")
        between[gap] = wanted
        self.now = evolve(self.now, parts=joined(self.now.positive, tuple(between)))

    # what adds matches

    def widen(self, wanted: Mapping[str, Part]) -> None:
        """Coarser concepts (5.5): results with an event that only the coarser ones accept, one delta for each first."""
        fine, deltas, notes = self.now, [], []
        after = self.now
        for var, like in wanted.items():
            after = _with_type(after, var, like)
        for var, like in wanted.items():
            old = next(c for c in fine.positive if c.var == var)
            only = evolve(like, accepts=tuple(a for a in like.accepts if a not in old.accepts))
            delta = after
            for other in wanted:
                if other == var:
                    break
                delta = _with_type(delta, other, next(c for c in fine.positive if c.var == other))
            delta = _with_type(delta, var, only)
            deltas.append(Delta(*delta_query(delta, self.schema)))
            notes.append(DeltaSteps(Extent(delta), ()))
        self.now = after
        self.steps.append(Step(Add(tuple(deltas)), Extent(after), tuple(notes)))

    def drop_run(self, gap: int, until: int, wanted: tuple[Part, ...]) -> None:
        """Leave out the positive components from one up to another, with the negated ones around them (5.4).

        `SEQ(A, X, B)` -> `SEQ(A, B)`: without X, each match once, and those of `SEQ(A, !X, B)`. What stands between the
        neighbours, as a whole and negated, is what a match must not have so as not to be there already. A scope at an
        end reaches exactly as far as a component there could lie. `wanted` are the negated components of the new gap.
        """
        positive, between = self.now.positive, gaps(self.now)
        gone = positive[gap:until]
        names = {c.var for c in gone}
        inner = joined(gone, between[gap : until + 1])
        asked = tuple(c for c in conditions(self.now) if x.variables(c) & names)
        left = tuple(c for c in conditions(self.now) if not x.variables(c) & names)
        kept = tuple(
            wanted if i == gap else tuple(self._untied(c, names) for c in g)
            for i, g in enumerate((*between[:gap], (), *between[until + 1 :]))
        )
        after = evolve(self.now, parts=joined((*positive[:gap], *positive[until:]), kept))
        after = with_conditions(after, left)
        inner = tuple(c for c in inner if not c.negated or uncovered(c, wanted, left))
        run = Run(gap, inner, asked)
        self._did(Project(tuple(c.var for c in after.positive)), after, run)
        for part, at in _moved(after, gap):
            self._did(_forbidding(part, at, after), after, run)
        delta = Delta(*delta_query(after, self.schema, run))
        notes = DeltaSteps(Extent(after, run, there=False), ())
        self.steps.append(Step(Add((delta,)), Extent(after), (notes,)))

    def _untied(self, part: Part, names: set[str]) -> Part:
        """A negated part that names none of these variables: what it says of them must follow from the rest."""
        if not part.negated or not any(x.variables(c) & names for c in part.ties):
            return part
        free = evolve(part, ties=tuple(c for c in part.ties if not x.variables(c) & names))
        known = Known((*conditions(self.now), *asked_of(free)))
        if not all(known.entails(c) for c in part.ties):
            raise NotSound(f"!{part.type} is tied to an event that the query does not have")
        return free

    def drop_negated(self, part: Part, gap: int, accepts: tuple[str, ...]) -> None:
        """Leave out a negated component, which forbids events of these types that no other one does (5.4, 5.5).

        What is missing are the matches with such an event in the scope: the component made positive, each match once,
        and the negations checked again that it had shut off.
        """
        between = list(gaps(self.now))
        between[gap] = tuple(c for c in between[gap] if c != part)
        after = evolve(self.now, parts=joined(self.now.positive, tuple(between)))
        moved = list(_moved(after, gap))
        event = evolve(part, negated=False, accepts=accepts, ties=())
        here = {(c, at) for c, at in moved}
        bare = [tuple(c for c in g if (c, i) not in here) for i, g in enumerate(between)]
        positive = (*after.positive[:gap], event, *after.positive[gap:])
        delta = evolve(after, parts=joined(positive, (*bare[:gap], (), (), *bare[gap + 1 :])))
        delta = with_conditions(delta, (*conditions(after), *asked_of(part)))
        run = Run(gap, (event,), asked_of(part))
        actions: list[Action] = [Project(tuple(c.var for c in after.positive))]
        actions += [_forbidding(c, at, after) for c, at in moved]
        notes = tuple(Step(a, Extent(after, run)) for a in actions)
        query, others = delta_query(delta, self.schema)
        self.now = after
        self.steps.append(
            Step(Add((Delta(query, others, tuple(actions)),)), Extent(after), (DeltaSteps(Extent(delta), notes),))
        )


def uncovered(part: Part, by: Iterable[Part], known: Conditions) -> tuple[str, ...]:
    """The types that a negated part forbids and others in the same scope do not, on matches of which `known` is true.

    Another part forbids what this one does where it asks no more of its event.
    """
    left = part.accepts
    for other in by:
        inside = Known((*known, *asked_of(part)))
        asked = asked_of(with_names(_alone(other), {other.var: part.var}).parts[0])
        if all(inside.entails(c) for c in asked):
            left = tuple(a for a in left if a not in other.accepts)
    return left


def _alone(part: Part) -> Sequence:
    return Sequence((part,), (), Window("time", 0))


def _with_type(s: Sequence, var: str, like: Part) -> Sequence:
    parts = tuple(evolve(c, type=like.type, accepts=like.accepts) if c.var == var else c for c in s.parts)
    return evolve(s, parts=parts)


def _moved(s: Sequence, gap: int) -> list[tuple[Part, int]]:
    """The negated parts that look elsewhere when a component comes into a gap, or leaves it: with their gaps.

    Those of the gap; and beside an end, where the first or last component changes, those of the other end.
    """
    between, last = gaps(s), len(s.positive)
    at = {gap} | ({0, last} if gap in (0, last) else set())
    return [(c, i) for i, g in enumerate(between) if i in at for c in g]


def _forbidding(part: Part, gap: int, s: Sequence) -> Forbid:
    """A negated part with its scope among the components of a sequence."""
    positive = s.positive
    after = positive[gap - 1].var if gap > 0 else None
    before = positive[gap].var if gap < len(positive) else None
    return Forbid(part, after, before, s.window)
