"""The physical plan: FAEM's binary-tree directed graph, or the automaton of instance stacks, with what each node tests.

Leaf buffers hold the events of one variable. An internal buffer holds composites, made by the join of its two
children; cursors say which child may look for partners in the other. A stack plan has no internal buffers: it binds
its components one by one. Negations, late combinations and group tests are nodes above the buffer that they filter.
Every node carries the planner's estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, assert_never

from attrs import field, frozen

from quercus.ir.expr import Column, Expr
from quercus.ir.pattern import Aggregate, KeyClass, Output, Window

Shape = Literal["left", "right", "bushy", "inner", "stack", "mixed"]
Strategy = Literal["iterative", "aggressive", "passive", "balanced", "index", "rewrite"]
_MOST = 1e300  # of an estimate


def finite(value: float) -> float:
    """What is larger than all numbers as a large one: plans are written as JSON, which has no infinity."""
    return value if value < _MOST else _MOST


@frozen
class Estimate:
    """Expected composites per window length, and nanoseconds that this node alone takes for them.

    Of a negation: the part of composites that it lets through.
    """

    rows: float = field(default=0.0, converter=finite)
    cost: float = field(default=0.0, converter=finite)


@frozen
class Scope:
    """Where a negation looks. `after`/`before`: groups of variables, nearest first; the first that bound any counts.

    `left`/`right` say what bounds the scope when no group did: None, a group is always there; "window", `end.ts - w`
    and `start.ts + w` of the whole match, inclusive; "end", the match's own end, inclusive (an AND at the root).
    """

    after: tuple[tuple[str, ...], ...]
    before: tuple[tuple[str, ...], ...]
    left: Literal["window"] | None
    right: Literal["window", "end"] | None


# (union, branch) pairs: the choices of OR branches under which something is tested.
When = tuple[tuple[int, int], ...]


@frozen
class Predicate:
    """A conjunct at the lowest node that sees its variables.

    Not tested on a composite in which one of its variables is absent or empty, nor where one of `when`'s branches was
    not taken (a conjunct that stands in an OR branch but names variables outside it).
    """

    expr: Expr
    when: When = ()


@frozen
class Buffer:
    """A leaf buffer: the events of one variable, after the tests that need no other variable."""

    var: str
    type: str
    accepts: tuple[str, ...]
    kleene: bool
    least: int
    most: int | None
    where: tuple[Predicate, ...]
    estimate: Estimate


@frozen
class Cursor:
    """`next`:

    the left child's new events look in the right buffer; `previous`: the reverse. A two-way operator needs one.
    """

    next: bool
    previous: bool


@frozen
class Join:
    """An internal buffer: composites of a left and a right child."""

    op: Literal["SEQ", "AND"]
    left: Node
    right: Node
    kleene: Literal["left", "right", "both"] | None
    equal: tuple[Predicate, ...]  # equalities to hash on
    where: tuple[Predicate, ...]  # the other tests that first see all their variables here
    cursor: Cursor
    window: Window | None  # an inner window that ends at this node
    estimate: Estimate


@frozen
class Union:
    """OR: the composites of whichever branch, each remembering which."""

    number: int  # what Predicate.when and Negation.when call it
    branches: tuple[Node, ...]
    window: Window | None
    distinct: bool  # branches share variables: equal matches are one
    estimate: Estimate


@frozen
class Step:
    """One component of a stack plan, with the tests that first see all their variables when it is bound."""

    component: Node
    equal: tuple[Predicate, ...]
    where: tuple[Predicate, ...]
    negations: tuple[Negation, ...]


@frozen
class Stack:
    """The automaton:

    one instance stack per component, bound depth-first from the last event backwards. No internal buffers.
    """

    op: Literal["SEQ", "AND"]
    steps: tuple[Step, ...]  # in the order of the text; bound from the last to the first
    window: Window | None
    estimate: Estimate


@frozen
class Negation:
    """A negated sub-query: its own tree, where it looks, what ties it to the match, and how it is answered."""

    body: Node
    scope: Scope
    pattern: str  # what is negated, as text
    where: tuple[Expr, ...]  # tests that name the match's variables
    when: When
    excludes: tuple[str, ...]  # its siblings, whose events it may not use (matters in an AND)
    strategy: Strategy
    reason: str
    marks: tuple[Literal["delayed", "postponed", "exists"], ...]
    estimate: Estimate


@frozen
class Reject:
    """Drops the composites of a buffer that a negation forbids."""

    source: Node
    negation: Negation
    estimate: Estimate


@frozen
class Test:
    """Tests on whole matches: group functions, and conjuncts that no node below could test."""

    source: Node
    where: tuple[Predicate, ...]
    estimate: Estimate


@frozen
class Combine:
    """FAEM's late combination: each set of `[n]` candidates becomes every choice of n."""

    source: Node
    counts: tuple[tuple[str, int], ...]
    estimate: Estimate


@frozen
class Nest:
    """A positive nested sub-query, as one component of the operator around it, and how its results are come by."""

    source: Node
    strategy: Strategy
    reason: str
    estimate: Estimate


@frozen
class Empty:
    """A plan with no matches, and why."""

    reason: str
    estimate: Estimate


Node = Buffer | Join | Union | Stack | Reject | Test | Combine | Nest | Empty


@frozen
class Aggregation:
    """How AGG is answered. `running`: totals that each event moves on; `enumerated`: over all matches, listed."""

    strategy: Literal["running", "enumerated"]
    reason: str
    listed_live: str = ""  # why a stream lists the matches of each push all the same; empty: it does not


@frozen
class Tree:
    """A whole physical plan: the root buffer and what is said once for all nodes."""

    root: Node
    window: Window
    shape: Shape
    purge: str
    partition_by: tuple[str, ...]
    key: KeyClass | None
    reads: tuple[Column, ...]
    returns: tuple[Output, ...]
    aggregates: tuple[Aggregate, ...]
    group_by: tuple[Column, ...]
    routing: float  # nanoseconds per window length, to look at the types of all events
    cost: float  # of routing and of all nodes
    aggregation: Aggregation | None = None
    also: tuple[KeyClass, ...] = ()  # other columns on which all agree, where totals are told apart by them

    @property
    def keys(self) -> tuple[KeyClass, ...]:
        """All that was found to agree."""
        return () if self.key is None else (self.key, *self.also)


def inputs(n: Node) -> tuple[Node, ...]:
    """The nodes that a node reads, negated bodies included."""
    match n:
        case Buffer() | Empty():
            return ()
        case Join():
            return (n.left, n.right)
        case Union():
            return n.branches
        case Stack():
            return tuple(i for s in n.steps for i in (s.component, *(g.body for g in s.negations)))
        case Reject():
            return (n.source, n.negation.body)
        case Test() | Combine() | Nest():
            return (n.source,)
        case _:
            assert_never(n)


def walk(n: Node) -> Iterator[Node]:
    yield n
    for c in inputs(n):
        yield from walk(c)


def positive(n: Node) -> Iterator[Node]:
    """The node and what it is made of, without negated bodies."""
    yield n
    match n:
        case Stack():
            below: tuple[Node, ...] = tuple(s.component for s in n.steps)
        case Reject():
            below = (n.source,)
        case _:
            below = inputs(n)
    for c in below:
        yield from positive(c)


def variables(n: Node) -> tuple[str, ...]:
    """The positive variables a node's composites bind, in the order of the tree."""
    match n:
        case Buffer():
            return (n.var,)
        case Empty():
            return ()
        case Join():
            return tuple(dict.fromkeys(variables(n.left) + variables(n.right)))
        case Union():
            return tuple(dict.fromkeys(v for b in n.branches for v in variables(b)))
        case Stack():
            return tuple(dict.fromkeys(v for s in n.steps for v in variables(s.component)))
        case Reject() | Test() | Combine() | Nest():
            return variables(n.source)
        case _:
            assert_never(n)


def total_cost(n: Node) -> float:
    """The cost of a node with all below it."""
    below = sum(total_cost(c) for c in inputs(n))
    own = n.estimate.cost
    if isinstance(n, Reject):
        own += n.negation.estimate.cost
    if isinstance(n, Stack):
        own += sum(g.estimate.cost for s in n.steps for g in s.negations)
    return own + below
