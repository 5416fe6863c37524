"""Continuous queries: windows over streams, relations over windows, and streams out of relations.

A pattern window (Shen et al.) opens at a tuple that meets `start`, and looks at every later tuple: `termination` closes
it, else `iteration` lets it go on, and `filter` takes the tuple in; anything else drops it.

Conditions are expressions over columns of these variables: `""`, the tuple at hand; `first`, the first tuple of the
window; `prev`, the last one that it took in; `window`, with the attributes `iter` and `num`, its two counts. Of a
tuple's own columns, `ts` is its time.

In a `Select`, the variables are generated, so that no name of a query can be mistaken for one: `s0`, `s1`, ... for the
tuples of its sources, `w0`, `w1`, ... for the counts of their windows, `g` for what is grouped by, `a` for aggregates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, assert_never

from attrs import frozen

from quercus.ir.expr import Column, Expr, Type, walk
from quercus.ir.span import Span, span_field

HERE, FIRST, PREV, WINDOW = "", "first", "prev", "window"
GROUP, AGGREGATE = "g", "a"

# Stream to relation ---------------------------------------------------------------------------------------------------


@frozen
class PatternWindow:
    """`Stream[Pattern By (start; termination; iteration; filter)]`."""

    start: Expr
    termination: Expr
    iteration: Expr
    filter: Expr


@frozen
class Range:
    """`[Range t]`: a tuple is there from its time to `size` units of time later, both included."""

    size: int


@frozen
class Rows:
    """`[Rows n]`, `[Partition By a, b Rows n]`: until `count` later tuples (with the same values of `by`) have come."""

    count: int
    by: tuple[str, ...] = ()


@frozen
class Now:
    """`[Now]`: at its own time only."""


@frozen
class Unbounded:
    """`[Unbounded]`: from its time on."""


Window = PatternWindow | Range | Rows | Now | Unbounded


@frozen
class Given:
    """A stream of the user's."""

    name: str


@frozen
class Named:
    """The output of a query of WITH."""

    name: str


@frozen
class Matched:
    """The matches of a pattern; `number` is its place among the patterns of the whole query.

    `streams` are those that it looks at: each is an event type, by its name; or, with `typed`, the only one, whose
    type column says the types.
    """

    number: int
    streams: tuple[Given | Named, ...]
    typed: bool


Stream = Given | Named | Matched


@frozen
class Source:
    """One item of FROM; `reads` are the attributes of its tuples that the query needs, `ts` and `type` included."""

    name: str
    stream: Stream
    window: Window
    reads: tuple[Column, ...] = ()
    span: Span | None = span_field()


# Relation to relation -------------------------------------------------------------------------------------------------

Function = Literal["count", "sum", "avg", "min", "max", "first", "last"]


@frozen
class Aggregate:
    """A value of all rows of a group. Without `value`: COUNT(*). FIRST and LAST go by the order of one source."""

    function: Function
    value: Expr | None
    type: Type
    distinct: bool = False
    source: int = 0


@frozen
class Output:
    """A column of SELECT."""

    name: str
    value: Expr
    span: Span | None = span_field()


@frozen
class Select:
    """`where` are conjuncts over the sources. With `grouped`, `having` and `outputs` are over groups and aggregates."""

    sources: tuple[Source, ...]
    where: tuple[Expr, ...]
    outputs: tuple[Output, ...]
    distinct: bool = False
    grouped: bool = False
    group_by: tuple[Expr, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    having: tuple[Expr, ...] = ()

    @property
    def windows(self) -> tuple[int, ...]:
        """The sources that are pattern windows."""
        return tuple(i for i, s in enumerate(self.sources) if isinstance(s.window, PatternWindow))

    @property
    def is_of_ends(self) -> bool:
        """Whether nothing is asked of a pattern window but FIRST, LAST and its counts: no other tuple matters."""
        alone = len(self.sources) == len(self.windows) == 1 and not self.where and not self.group_by
        ends = all(a.function in ("first", "last") for a in self.aggregates)
        return alone and self.grouped and ends


@frozen
class Union:
    left: Relation
    right: Relation
    all: bool


Relation = Select | Union

# Relation to stream ---------------------------------------------------------------------------------------------------

Kind = Literal["istream", "rstream", "dstream"]


@frozen
class Query:
    """`ISTREAM(relation)`, `RSTREAM(relation)`, `DSTREAM(relation)`; `columns` are of its output, without `ts`."""

    kind: Kind
    relation: Relation
    columns: tuple[tuple[str, Type], ...]


@frozen
class Continuous:
    """A whole query: those of WITH, each after those that it uses, and the one whose output is the answer."""

    named: tuple[tuple[str, Query], ...]
    query: Query


def selects(relation: Relation) -> Iterator[Select]:
    """The SELECTs of a relation, from left to right."""
    match relation:
        case Select():
            yield relation
        case Union():
            yield from selects(relation.left)
            yield from selects(relation.right)
        case _:
            assert_never(relation)


def streams(query: Query) -> Iterator[Given | Named]:
    """The streams that a query reads, as often as it does."""
    for select in selects(query.relation):
        for source in select.sources:
            if isinstance(source.stream, Matched):
                yield from source.stream.streams
            else:
                yield source.stream


def pattern_windows(query: Continuous) -> dict[Stream, tuple[PatternWindow, ...]]:
    """The pattern windows over each stream, each once, in the order in which they stand."""
    found: dict[Stream, dict[PatternWindow, None]] = {}
    for one in (*(q for _, q in query.named), query.query):
        for select in selects(one.relation):
            for source in select.sources:
                if isinstance(source.window, PatternWindow):
                    found.setdefault(source.stream, {})[source.window] = None
    return {stream: tuple(windows) for stream, windows in found.items()}


def conditions(window: PatternWindow) -> tuple[Expr, Expr, Expr, Expr]:
    return window.start, window.termination, window.iteration, window.filter


def attributes(window: Window) -> frozenset[str]:
    """The attributes of tuples that a window itself looks at."""
    match window:
        case PatternWindow():
            nodes = (n for c in conditions(window) for n in walk(c))
            return frozenset(n.attr for n in nodes if isinstance(n, Column) and n.var != WINDOW)
        case Rows():
            return frozenset(window.by)
        case Range() | Now() | Unbounded():
            return frozenset()
        case _:
            assert_never(window)
