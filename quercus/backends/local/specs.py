"""What `kernels.match.Matcher` reads: buffers, slots, levels, sets, negations and code, as plain lists and arrays."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.exists import Method
from quercus.ir.flat import Flat

# When existence indexes that must be built are: never; once searches have cost as much; at the first test.
NEVER, PAID, AT_ONCE = 0, 1, 2

Index = NDArray[np.int64]
Sets = tuple[Index, Index, Index]  # starts, ends, rows: match i has rows[starts[i]:ends[i]]


@frozen
class BufferSpec:
    """A leaf buffer to be filled: events of some types that pass local conditions, grouped by a key if there is one."""

    accepts: tuple[str, ...]
    local: tuple[x.Expr, ...]
    key: tuple[str, ...] | None


@frozen
class ColumnSpec:
    """Values over one buffer's events: an expression in which the variable has no name."""

    buffer: int
    expr: x.Expr

    @property
    def text(self) -> bool:
        """Whether the matcher sees labels that compare as the strings do."""
        return self.expr.type == "string"


@frozen(eq=False)
class BufferData:
    """A leaf buffer's events in stream order (key by key where there is a key)."""

    ts: Index
    pos: Index
    row: Index  # the position in the whole stream: who the event is
    codes: Index | None  # of the key
    starts: Index | None = None  # in place of codes from 0 up: where the events of each begin, and the end


@frozen
class Name:
    """What a variable of an alternative is to the matcher."""

    var: str
    buffer: int
    slots: tuple[int, ...]  # of a plain variable or of [n]
    set: int | None  # of a Kleene variable
    element: int | None  # the slot through which a set's elements pass


@define
class WindowSpec:
    count: bool
    size: int
    slots: list[int]
    sets: list[int]


@define
class SetSpec:
    slot: int
    least: int
    slots: list[int]
    after: list[int] = field(factory=list)
    before: list[int] = field(factory=list)
    distinct: list[int] = field(factory=list)
    preds: list[int] = field(factory=list)
    windows: list[int] = field(factory=list)


@frozen
class Sieve:
    """A column of a candidate, compared with what the code from `start` to `end` says of events bound before."""

    column: int
    compare: str  # eq, lt, le, gt, ge, with the column on the left
    real: bool  # float64
    start: int
    end: int


@define
class LevelSpec:
    slot: int
    previous: int
    following: int = -1
    after: list[int] = field(factory=list)
    before: list[int] = field(factory=list)
    below: list[int] = field(factory=list)
    above: list[int] = field(factory=list)
    distinct: list[int] = field(factory=list)
    preds: list[int] = field(factory=list)
    negations: list[int] = field(factory=list)
    reach: list[tuple[int, list[int]]] = field(factory=list)
    sub: int = -1  # a sub-query whose results are bound here
    slots: tuple[int, ...] = ()  # ... all of them
    early: bool = False  # ... from a view whose greatest interval is known before, of all that the first event leads to

    sieves: list[Sieve] = field(factory=list)
    sifted: int = 0  # the first predicates, which sieves stand for


@define
class SubSpec:
    """A sub-query, and the view that its results are kept in."""

    strategy: t.Strategy
    flat: int  # the whole of it, bound inside an interval
    collects: bool  # whether the results of `flat` are kept too
    slots: list[int]  # what a result binds
    ends: list[int] = field(factory=list)  # for each event that can be last: the same, with that event bound first
    end_slots: list[list[int]] = field(factory=list)  # `slots` in each of `ends`, then in `flat`
    firsts: list[int] = field(factory=list)  # buffers of events that can be first
    lasts: list[int] = field(factory=list)  # ... of `ends`
    distinct: list[int] = field(factory=list)  # pairs of slots that hold different events
    ties: list[tuple[int, int]] = field(factory=list)  # (slot, column) of the match, whose values choose a part
    preds: list[int] = field(factory=list)  # of a negated one: what a result must meet beside
    negations: list[int] = field(factory=list)
    sparse: bool = False  # of a negated one: of results with the same end, only the latest start is kept
    loose: bool = False  # in no order with all that is bound before
    flags: bool = False  # only whether an interval is empty is kept
    source: t.Nest | t.Negation | None = None  # of the plan
    kept: Flat | None = None  # what its results are
    tied: list[x.Expr] = field(factory=list)  # the values of `ties`


@define
class JumpSpec:
    """Where the first event of a leaf is looked for: all of a buffer (keys -1), or a key's events.

    A tie is (column of the leaf, slot and column of the match, whether as floats).
    """

    keys: int = -1
    ties: list[tuple[int, int, int, bool]] = field(factory=list)


@define
class EndSpec:
    """Of `latest`: an alternative that binds the last event first, and the key of that event.

    `steps`: the slots of a SEQ of three and more whose conditions tie neighbours only, and those with the next one.
    """

    flat: int
    jump: JumpSpec
    steps: list[tuple[int, list[int]]] = field(factory=list)


@define
class WaySpec:
    """How one body of a negation is answered: see quercus/ir/exists.py."""

    method: Method | Literal["view"]
    flat: int
    jumps: list[JumpSpec] = field(factory=list)  # of next, key and jumps: one a level
    ends: list[EndSpec] = field(factory=list)  # of latest
    sub: int = -1  # of view


@define
class NegationSpec:
    left: int
    right: int
    after: list[tuple[list[int], list[int]]]
    before: list[tuple[list[int], list[int]]]
    exclude_slots: list[int]
    exclude_sets: list[int]
    ways: list[WaySpec]  # one a body
    source: t.Negation | None = None  # of the plan


@define
class JoinSpec:
    """A node of a tree of joins: a leaf with its slot, or an internal buffer over two nodes that come before it."""

    variables: list[str]
    slots: list[int]
    children: tuple[int, int] | None = None
    source: t.Join | t.Stack | None = None
    ordered: bool = False  # SEQ: what is left ends before what is right starts
    within_time: int | None = None  # the narrowest windows around it
    within_count: int | None = None
    distinct: list[tuple[int, int]] = field(factory=list)
    preds: list[int] = field(factory=list)
    negations: list[int] = field(factory=list)
    keys: list[tuple[int, int, int, int, bool]] = field(factory=list)  # left slot, column, right slot, column, float64
    needs: set[int] = field(factory=set)  # slots that predicates and negations read
    fetch: list[list[tuple[int, list[int]]]] = field(factory=list)  # of each child: slots, and the ways to them
    sieves: list[list[Sieve]] = field(factory=lambda: [[], []])  # of each child that is a leaf


@define
class HeldSpec:
    """Of a stream: each match is asked whether its moment has come, and who finds it first (release.py)."""

    sets: list[int]  # that can grow
    ending: int = 0  # the search from the last event that comes first: none, last, delayed, exact, any
    earlier: list[int] = field(factory=list)  # the windows whose searches come first
    exact: list[int] = field(factory=list)  # buffers: in one of them a match begins that fills the window
    pivot: int = -1  # the set whose first element is the pivot
    beyond: int = -1  # the level that must be out of the window of an element before that one


@define
class FlatSpec:
    root: bool
    levels: list[LevelSpec] = field(factory=list)
    sets: list[int] = field(factory=list)
    counted: list[int] = field(factory=list)
    negations: list[int] = field(factory=list)
    tests: list[int] = field(factory=list)
    outs: list[int] = field(factory=list)
    out_sets: list[int] = field(factory=list)
    slots: list[int] = field(factory=list)
    pairs: list[tuple[int, int, int, int, int]] = field(factory=list)
    chain: int | None = None  # the window of a SEQ of plain components, which needs no search
    joins: list[JoinSpec] = field(factory=list)  # a tree of joins binds its slots before the levels; children first
    limits: list[tuple[int, list[int]]] = field(factory=list)  # of a chain: (component, buffers of a SEQ negated after)
    jump_limits: list[tuple[int, int]] = field(factory=list)  # (component, negation after it that is jumps from there)
    index_limits: list[tuple[int, int]] = field(factory=list)  # ... by latest starts; levels have it too, at the end
    pointed: list[int] = field(factory=list)  # the negations that became limits
    trail: int | None = None  # the set at the end of a SEQ of plain components, all in one window
    due: int = -1  # of a stream: the window whose end is waited for
    pivot: tuple[str, int] | None = None  # of a stream: a set, and the slot of its first element, which is bound first
    held: HeldSpec | None = None
    natural: bool = False  # matches come out in the order of the answer
    variables: list[str] = field(factory=list)  # of outs
    set_variables: list[str] = field(factory=list)  # of out_sets
    leaves: list[tuple[t.Buffer, Name]] = field(factory=list)


@define
class Program:
    """Everything `kernels.match.Matcher` reads."""

    by_arrival: bool
    count_window: bool
    window_size: int
    buffers: list[BufferSpec] = field(factory=list)
    slots: list[int] = field(factory=list)
    windows: list[WindowSpec] = field(factory=list)
    sets: list[SetSpec] = field(factory=list)
    negations: list[NegationSpec] = field(factory=list)
    flats: list[FlatSpec] = field(factory=list)
    code: list[int] = field(factory=list)
    preds: list[tuple[int, int, int]] = field(factory=list)
    columns: list[ColumnSpec] = field(factory=list)
    const_i: list[int] = field(factory=list)
    const_f: list[float] = field(factory=list)
    texts: list[tuple[int, str]] = field(factory=list)  # constants of const_i that stand for a string
    ordered_texts: bool = False  # whether a condition asks which of two strings is less
    maps: list[str] = field(factory=list)  # text functions that run on labels
    keys: list[tuple[int, tuple[int, ...]]] = field(factory=list)  # (buffer, columns): events that are grouped by a key
    build_indexes: int = PAID
    subs: list[SubSpec] = field(factory=list)
    sift_from: int = 0  # candidates from which a range is sifted


ColumnData = tuple[NDArray[Any], NDArray[np.uint8] | None]  # int64 or float64, and where it is not null


@frozen(eq=False)
class Filled:
    """The data of a program: a stream's events in its buffers."""

    buffers: list[BufferData]
    columns: list[ColumnData]
    const_i: Index
    maps: list[Index]
