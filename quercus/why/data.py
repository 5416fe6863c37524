"""What `plan.why` returns: frozen data that knows how to show itself."""

from __future__ import annotations

from typing import Any

from attrs import asdict, field, frozen


@frozen
class Count:
    """How many there are; unless `exact`, at least so many, and None where counting took too long to tell anything."""

    n: int | None
    exact: bool = True

    def __str__(self) -> str:
        if self.n is None:
            return "not counted"
        return f"{self.n:,}" if self.exact else f"at least {self.n:,}"

    @property
    def some(self) -> bool:
        return bool(self.n)


@frozen
class Passed:
    """One condition on the events of one variable: how many were left after it, and on how many it was unknown."""

    condition: str
    passed: int
    unknown: int


@frozen
class Component:
    """One variable: how many events its type has, and what its own conditions left of them."""

    var: str
    type: str
    negated: bool
    events: int
    conditions: tuple[Passed, ...]
    hint: str | None  # where there is no event of the type: which types there are that look alike

    @property
    def left(self) -> int:
        return self.conditions[-1].passed if self.conditions else self.events


@frozen
class Stage:
    """How many partial matches there are of the first variables, under one more requirement than in the stage before.

    `query` asks for exactly these.
    """

    variables: tuple[str, ...]
    what: str
    count: Count
    query: str


@frozen
class Funnel:
    """The stages of one reading of the pattern: of the only one, or of one choice among the branches of its ORs."""

    reading: str | None
    components: tuple[Component, ...]
    stages: tuple[Stage, ...]
    stopped: str | None  # the first component or stage of which nothing is left, in words


@frozen
class Event:
    """A bound event: its row in the input, type and time."""

    var: str
    row: int
    type: str
    time: str

    def __str__(self) -> str:
        return f"{self.var} row {self.row} at {self.time}"


@frozen
class Failure:
    """A requirement that some events do not meet: its kind, as it is written, what the events make of it, and the
    smallest change of it that would let them through.
    """

    kind: str
    what: str
    found: str
    change: str


@frozen
class Miss:
    """Events that would be a match of `query`, the query after the changes that its failures name.

    `rows` is that match. `schema` are options of the schema that have to change too, as `Schema.from_dict` has them:
    {"ties": "arrival"}, {"key": []}.
    """

    rows: dict[str, int | list[int]]
    events: tuple[Event, ...]
    failures: tuple[Failure, ...]
    query: str
    schema: dict[str, str | list[str]] = field(factory=dict)


@frozen
class Obstacle:
    """A requirement, and how many matches there would be more without it: what it alone stopped."""

    kind: str
    what: str
    stopped: Count
    examples: tuple[str, ...]


@frozen
class Why:
    """Why a query has no more matches than it has. `str(why)` tells it in words.

    `asked` is None, or the answer to the question about `rows`: whether they are a match, and what they fail.
    """

    query: str
    events: int
    matches: Count
    impossible: str | None
    funnels: tuple[Funnel, ...]
    obstacles: tuple[Obstacle, ...]
    misses: tuple[Miss, ...]
    asked: Asked | None
    notes: tuple[str, ...]

    def __str__(self) -> str:
        from quercus.why.words import told

        return told(self)

    def _repr_html_(self) -> str:
        from quercus.why.html import page

        return page(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        found: dict[str, Any] = asdict(self)
        return found


@frozen
class Asked:
    """The given events as a match: `is_match`, or every requirement that they fail."""

    rows: dict[str, int | list[int]]
    events: tuple[Event, ...]
    is_match: bool
    missing: tuple[str, ...]  # variables that were not given
    failures: tuple[Failure, ...]
    untested: tuple[str, ...]  # requirements of which nothing can be said, and why
    query: str | None = None  # with all changes: the given events are a match of it
    schema: dict[str, str | list[str]] = field(factory=dict)  # the options of the schema that have to change as well
