"""A cube as data: queries taken apart, how they refine each other, and how the results of each are come by.

A query whose pattern is a SEQ of events and negated events is a `Sequence`: the form in which E-Cube compares queries.
What is computed from another query's results is a list of actions over them, one after the other. Results of a query
are columns of stream positions, one a variable.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from quercus.ir.expr import Expr
from quercus.ir.pattern import Query, Window

# What lies between two queries: E-Cube's definitions 3 and 4; `same`, where only conditions, window or output differ.
Kind = Literal["concept", "pattern", "both", "same"]
# E-Cube's sections: from the general query to the special one (5.1 to 5.3), and back (5.4 to 5.6).
Case = Literal["5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "same"]
Strategy = Literal["independent", "top_down", "bottom_up", "chase"]


@frozen
class Part:
    """One component of a sequence: an event of some types, or, negated, none."""

    var: str
    type: str
    accepts: tuple[str, ...]  # the finest types, sorted
    negated: bool = False
    where: tuple[Expr, ...] = ()  # what is asked of the event alone
    ties: tuple[Expr, ...] = ()  # of a negated one: conditions that also name variables of the match


@frozen
class Sequence:
    """A query that can be taken apart: a SEQ of parts in one window."""

    parts: tuple[Part, ...]
    where: tuple[Expr, ...]  # conditions between positive variables
    window: Window
    partition_by: tuple[str, ...] = ()

    @property
    def positive(self) -> tuple[Part, ...]:
        return tuple(c for c in self.parts if not c.negated)


def is_count(query: Query) -> bool:
    """Whether nothing but the number of matches is asked for."""
    counts = all(a.function == "count" and not a.attr for a in query.aggregates)
    return bool(query.aggregates) and counts and not query.group_by


@frozen
class Refinement:
    """`special` is finer than `general` (Def. 5), or the same pattern with more conditions or a tighter window."""

    general: str
    special: str
    kind: Kind


@frozen
class Rename:
    """The results' variables under the names that the query at hand has for them: (old, new), all at once.

    Only those that change are named; `(("a", "b"), ("b", "a"))` swaps two.
    """

    names: tuple[tuple[str, str], ...]


@frozen
class Retype:
    """Matches whose event of `var` is of one of these types stay: a concept is read again (5.2)."""

    var: str
    accepts: tuple[str, ...]


@frozen
class Insert:
    """Each match with each event of one more component that stands at `place` among the positive ones (5.1)."""

    part: Part
    place: int
    where: tuple[Expr, ...]  # conditions between the new variable and those that are there
    window: Window


@frozen
class Forbid:
    """Matches with an event of `part` in the scope go (5.1, and equation 7).

    The scope lies between two variables; without `after` it begins at `end.ts - w`, without `before` it ends at
    `start.ts + w`, both inclusive (counts: as in a query).
    """

    part: Part
    after: str | None
    before: str | None
    window: Window


@frozen
class Narrow:
    """Matches that fit into a tighter window stay."""

    window: Window


@frozen
class Keep:
    """Matches that meet more conditions stay."""

    where: tuple[Expr, ...]


@frozen
class Project:
    """Only these variables; equal matches are one (5.4)."""

    variables: tuple[str, ...]


@frozen
class Delta:
    """Results that the reused query does not have: a query of its own, run by the engine, and what is done to them.

    `accepts` says for some of its variables (negated ones too) which types they take instead of those of their type's
    name: 'a concept but for a part of it' has no name.
    """

    query: Query
    accepts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    actions: tuple[Action, ...] = ()


@frozen
class Add:
    """The union with the results of deltas, which share none with each other or with what is there (5.4, 5.5)."""

    deltas: tuple[Delta, ...]


Action = Rename | Retype | Insert | Forbid | Narrow | Keep | Project | Add


@frozen
class Cuboid:
    """How the results of one query are come by: alone, or from those of `source` by actions, in their order.

    Estimates are for the same stretch of the stream in all of an ordering, in a run for the whole of it: rows, and
    nanoseconds beside those of the source.
    """

    name: str
    source: str | None
    case: Case | None
    actions: tuple[Action, ...]
    reason: str  # why alone, or what is reused, for explain
    rows: float
    cost: float
    totalled: bool = False  # alone, by running totals: its matches are not listed, and no source for others
    counted: bool = False  # alone: its matches are counted by running totals, and listed when they are asked for


@frozen
class Ordering:
    """An execution ordering (Def. 7): sources stand before those that are computed from them."""

    strategy: Strategy
    cuboids: tuple[Cuboid, ...]

    @property
    def cost(self) -> float:
        return sum(c.cost for c in self.cuboids)
