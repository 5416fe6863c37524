"""What a plan did in one run, node by node: measured by a backend, printed by explain.

Nodes are named by their path from the root: the numbers of the children that lead to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from attrs import asdict, evolve, frozen

from quercus.ir import tree as t

Path = tuple[int, ...]


@frozen
class Actual:
    """What one node did. None: not measured, or nothing that this kind of node does."""

    rows: int | None = None  # of a leaf: events held; of a join: composites built; else: what passed it
    branches: tuple[int, ...] = ()  # of a union: matches that took each
    compared: int | None = None  # candidates looked at
    bound: int | None = None  # ... of which so many were bound
    sets: int | None = None  # maximal sets of a Kleene leaf, one for each whole match
    tests: int | None = None  # existence tests of a negation, whole matches that a test node looked at
    found: int | None = None  # existence tests that found a match, so that the match around it was none
    methods: tuple[str, ...] = ()  # how a negation was answered
    searched: int = 0  # existence tests that an index could have answered, but was not worth building yet
    asked: int | None = None  # intervals that the results of a sub-query were asked for in
    hits: int = 0  # ... that its view held already
    results: int = 0  # that were found for them
    bytes: int | None = None  # of a leaf: its events and columns; of a join or a view: the most that it held
    shared: bool = False  # the buffer is another leaf's too
    matches: int | None = None  # of the root: the answer
    note: str = ""
    seconds: float | None = None


@frozen
class Passes:
    """What running totals did: passes over an alternative's events, and the events that they looked at, with those that
    became the older part of a window; the states of all alternatives.
    """

    passes: int
    steps: int
    states: int


@frozen
class Analysis:
    """A run of a plan: every count is exact, and the same each time; seconds are not."""

    nodes: Mapping[Path, Actual]
    events: int
    in_order: bool  # False: sorted by time first
    windows: float  # how many windows long the stream is; estimates are for one
    routed: int  # events in leaf buffers, those of shared ones once
    buffers: int
    bytes: int  # of all leaf buffers
    alternatives: int  # choices of OR branches, each run by itself
    compared: int  # all candidates, of joins, levels, sets and negations
    matches: int
    groups: int | None  # of a query with AGG
    again: str  # what a plan that was made from these events rests on; empty: it was not
    stages: tuple[tuple[str, float], ...]  # seconds of each
    totals: Passes | None = None  # where no matches were listed

    @property
    def seconds(self) -> float:
        return sum(s for _, s in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; nodes are listed with their paths, and with what was measured of them."""
        nodes = [{"path": list(path), **_measured(actual)} for path, actual in self.nodes.items()]
        return {**asdict(evolve(self, nodes={})), "nodes": nodes, "seconds": self.seconds}


def _measured(a: Actual) -> dict[str, Any]:
    defaults = asdict(Actual())
    return {name: value for name, value in asdict(a).items() if value != defaults[name]}


def below(n: t.Node | t.Negation) -> tuple[t.Node | t.Negation, ...]:
    """What hangs below a node, negations and their bodies included, in the order of explain."""
    match n:
        case t.Buffer() | t.Empty():
            return ()
        case t.Join():
            return (n.left, n.right)
        case t.Union():
            return n.branches
        case t.Stack():
            return tuple(i for s in n.steps for i in (s.component, *s.negations))
        case t.Reject():
            return (n.source, n.negation)
        case t.Test() | t.Combine() | t.Nest():
            return (n.source,)
        case t.Negation():
            return (n.body,)
        case _:
            assert_never(n)


def places(n: t.Node | t.Negation, path: Path = ()) -> Iterator[tuple[Path, t.Node | t.Negation]]:
    """Every node and negation with its path."""
    yield path, n
    for i, child in enumerate(below(n)):
        yield from places(child, (*path, i))
