"""The surface syntax of a continuous query: what the text says, before names and types are looked up."""

from __future__ import annotations

from typing import Literal as OneOf

from attrs import field, frozen

from quercus.compiler.syntax import Output, Scalar, WindowText
from quercus.ir.span import Span
from quercus.ir.span import span_field as _span

# Windows --------------------------------------------------------------------------------------------------------------


@frozen
class PatternText:
    """`[Pattern By (start; termination; iteration; filter)]`."""

    start: Scalar
    termination: Scalar
    iteration: Scalar
    filter: Scalar
    span: Span | None = _span()


@frozen
class RangeText:
    """`[Range 2 min]`."""

    length: WindowText
    span: Span | None = _span()


@frozen
class RowsText:
    """`[Rows 3]`, `[Partition By a, b Rows 3]`; `by` are names with their places."""

    count: int
    by: tuple[tuple[str, Span], ...] = ()
    span: Span | None = _span()


@frozen
class NowText:
    span: Span | None = _span()


@frozen
class UnboundedText:
    span: Span | None = _span()


Window = PatternText | RangeText | RowsText | NowText | UnboundedText

# Sources --------------------------------------------------------------------------------------------------------------


@frozen
class StreamName:
    name: str
    span: Span | None = _span()


@frozen
class WindowedType:
    """`At[Pattern By (...)]` in the place of an event type."""

    stream: StreamName
    window: PatternText


@frozen
class Island:
    """`(PATTERN ...) [OVER S]`: `text` is that of the whole query with blanks around the pattern's own, and where the
    windows of `windows` stand.
    """

    text: str
    over: StreamName | None = None
    windows: tuple[WindowedType, ...] = ()
    span: Span | None = _span()


@frozen
class Source:
    """One item of FROM. `on` is the condition of the JOIN that it stands in."""

    stream: StreamName | Island
    window: Window
    alias: str | None = None
    on: Scalar | None = None
    span: Span | None = _span()


# Relations ------------------------------------------------------------------------------------------------------------


@frozen
class All:
    """`*`, or `x.*`."""

    of: str | None = None
    span: Span | None = _span()


@frozen
class Select:
    items: tuple[Output | All, ...]
    sources: tuple[Source, ...]
    where: Scalar | None = None
    group_by: tuple[Scalar, ...] = ()
    having: Scalar | None = None
    distinct: bool = False
    span: Span | None = _span()


@frozen
class Union:
    """`left UNION [ALL] right`."""

    left: Relation
    right: Select
    all: bool
    span: Span | None = _span()


Relation = Select | Union


@frozen
class Stream:
    """`ISTREAM(...)`, `RSTREAM(...)`, `DSTREAM(...)`."""

    kind: OneOf["istream", "rstream", "dstream"]
    relation: Relation
    span: Span | None = _span()


@frozen
class ContinuousText:
    """A whole query; `named` are those of WITH, each with the place of its name."""

    stream: Stream
    named: tuple[tuple[str, Span, Stream], ...] = ()
    text: str = field(default="", eq=False, repr=False, kw_only=True)
