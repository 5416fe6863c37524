"""Surface syntax + schemas -> the IR of a continuous query: streams looked up, windows typed, patterns compiled."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, NoReturn, assert_never

from attrs import frozen

from quercus.compiler import syntax as s
from quercus.compiler.bind import bound_window
from quercus.compiler.continuous import syntax as c
from quercus.compiler.continuous.patterns import Patterns, windowed_columns, windowed_value
from quercus.compiler.continuous.scope import Item, Scope, Tuples
from quercus.compiler.continuous.select import Selection
from quercus.compiler.continuous.typing import Conditions
from quercus.errors import QueryError, nearest
from quercus.ir import window as w
from quercus.ir.expr import Type
from quercus.ir.span import Span

if TYPE_CHECKING:
    from quercus.plan import Plan
    from quercus.schema import Schema


@frozen
class Bound:
    """A query with its names looked up, and the plans of its patterns."""

    query: w.Continuous
    patterns: tuple[Plan, ...]
    clock: Schema  # of the stream whose times it goes by


def bind_continuous(query: c.ContinuousText, schemas: Mapping[str, Schema]) -> Bound:
    """Bind a parsed query to the schemas of its streams, or raise `QueryError`."""
    return _Binder(query, schemas).bound()


class _Binder:
    def __init__(self, query: c.ContinuousText, schemas: Mapping[str, Schema]) -> None:
        self.source, self.text, self.schemas = query, query.text, schemas
        self.given = {name: Tuples.of(schema) for name, schema in schemas.items()}
        self.named: dict[str, Tuples] = {}
        self.clock: Tuples | None = None
        self.clock_of = ""
        self.found: list[tuple[str, w.Query]] = []  # queries that have a name
        self.events: dict[tuple[object, ...], str] = {}  # names of windows that are events
        self.patterns = Patterns(self.text, schemas, self.tuples_of, self.windowed)

    def fail(self, code: str, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        raise QueryError(code, message, text=self.text, span=span, hint=hint)

    def bound(self) -> Bound:
        for name, span, stream in self.source.named:
            if name in self.given or name in self.named:
                self.fail("E103", f"there is a stream '{name}' already", span, "give the query another name")
            self.add(name, stream)
        query = self.query(self.source.stream)
        clock = self.schemas[self.clock_of]
        return Bound(w.Continuous(tuple(self.found), query), tuple(self.patterns.plans), clock)

    def add(self, name: str, stream: c.Stream) -> None:
        """A query whose output is a stream of this name."""
        one = self.query(stream)
        self.found.append((name, one))
        assert self.clock is not None
        self.named[name] = Tuples(dict(one.columns), self.clock.unit, self.clock.is_timestamp)

    def windowed(self, e: c.WindowedType, words: frozenset[str] | None, own: frozenset[str]) -> str:
        """The name of a query that gives the windows of a pattern window as events of a pattern: of each the last
        tuple, and what else is asked for. `words` are those of the pattern, `own` those after its variable; without
        words all is asked for. Equal windows have one name: what closes is one event, which a match binds once.
        """
        stream, tuples = self.tuples_of(e.stream.name, e.stream.span)
        columns = dict(windowed_columns(tuples))
        if words is None or own - {*columns, "ts", "type"}:  # one that there is not: the error lists those that are
            words = frozenset(columns)
        items = [s.Output(windowed_value(*call), name) for name, call in columns.items() if name in words]
        items = items or [s.Output(windowed_value("first", "ts"), "first_ts")]
        window = self.window(e.window, e.stream.name, e.stream.name, tuples)
        event = (stream, window, tuple(item.name for item in items))
        if event in self.events:
            return self.events[event]
        taken = {*self.given, *self.named, *(name for name, _, _ in self.source.named)}
        name = self.events[event] = next(n for i in count(1) if (n := f"{e.stream.name}_{i}") not in taken)
        source = c.Source(e.stream, e.window, span=e.stream.span)
        self.add(name, c.Stream("istream", c.Select(tuple(items), (source,), span=e.stream.span)))
        return name

    def query(self, stream: c.Stream) -> w.Query:
        relation, columns = self.relation(stream.relation)
        kinds = tuple((name, "int64" if kind == "null" else kind) for name, kind in columns)
        return w.Query(stream.kind, relation, kinds)

    def relation(self, e: c.Relation) -> tuple[w.Relation, tuple[tuple[str, Type], ...]]:
        match e:
            case c.Select():
                select = self.select(e)
                return select, tuple((o.name, o.value.type) for o in select.outputs)
            case c.Union():
                left, ours = self.relation(e.left)
                right, theirs = self.relation(e.right)
                if len(ours) != len(theirs):
                    message = f"UNION of {len(ours)} and {len(theirs)} columns"
                    self.fail("E905", message, e.span, "both sides need as many")
                kinds = [
                    (name, self.common(name, one, other, e.span))
                    for (name, one), (_, other) in zip(ours, theirs, strict=True)
                ]
                return w.Union(left, right, e.all), tuple(kinds)
            case _:
                assert_never(e)

    def common(self, name: str, one: Type, other: Type, span: Span | None) -> Type:
        if one == other or other == "null":
            return one
        if one == "null":
            return other
        if {one, other} == {"int64", "float64"}:
            return "float64"
        self.fail("E905", f"'{name}' is {one} on the left of UNION and {other} on the right", span, "use one type")

    def select(self, e: c.Select) -> w.Select:
        items: list[Item] = []
        streams: list[w.Stream] = []
        for source in e.sources:
            stream, tuples, own = self.stream(source.stream, len(streams))
            name = source.alias or own
            if name in [i.name for i in items]:
                hint = "give one of them another name, with AS"
                self.fail("E103", f"two sources are called '{name}'", source.span, hint)
            items.append(Item(name, tuples, self.window(source.window, own, name, tuples), source.span))
            streams.append(stream)
        return Selection(e, Scope(items, self.text), tuple(streams), self.text).bound()

    # streams

    def stream(self, e: c.StreamName | c.Island, number: int) -> tuple[w.Stream, Tuples, str]:
        """A stream of FROM, what its tuples have, and what it is called without AS."""
        if isinstance(e, c.Island):
            matched, tuples = self.patterns.matched(e)
            return matched, tuples, f"pattern_{number + 1}"
        return *self.tuples_of(e.name, e.span), e.name

    def tuples_of(self, name: str, span: Span | None) -> tuple[w.Given | w.Named, Tuples]:
        """A stream by its name. All that a query uses count their times alike."""
        stream: w.Given | w.Named = w.Named(name) if name in self.named else w.Given(name)
        tuples = self.named.get(name) or self.given.get(name)
        if tuples is None:
            known = [*self.named, *self.given]
            hint = nearest(name, known) or "streams: " + ", ".join(known)
            if name in [n for n, _, _ in self.source.named]:
                hint = "a query of WITH sees those before it"
            self.fail("E109", f"no stream '{name}'", span, hint)
        if self.clock is None:
            self.clock, self.clock_of = tuples, name
        elif (self.clock.unit, self.clock.is_timestamp) != (tuples.unit, tuples.is_timestamp):
            ways = [f"'{n}' in {_times(t)}" for n, t in ((self.clock_of, self.clock), (name, tuples))]
            message = f"times are counted differently: {ways[0]}, {ways[1]}"
            self.fail("E904", message, span, "give the streams of a query one time unit")
        return stream, tuples

    def window(self, e: c.Window, name: str, alias: str, tuples: Tuples) -> w.Window:
        if tuples.key:
            key = ", ".join(tuples.key)
            self.fail(
                "E403",
                f"'{name}' has a key: its events are many streams",
                e.span,
                f"declare it without a key, and write [Partition By {key} Rows n], or {tuples.key[0]} = "
                f"FIRST({tuples.key[0]}) in a pattern window",
            )
        match e:
            case c.PatternText():
                typer = Conditions(self.text, name, alias, tuples, e.span)
                return w.PatternWindow(
                    typer.typed("start", e.start),
                    typer.typed("termination", e.termination),
                    typer.typed("iteration", e.iteration),
                    typer.typed("filter", e.filter),
                )
            case c.RangeText():
                return w.Range(bound_window(e.length, tuples.unit, self.text).size)
            case c.RowsText():
                scope = Scope([Item(alias, tuples, w.Now(), e.span)], self.text)
                return w.Rows(e.count, tuple(scope.column(0, by, span).attr for by, span in e.by))
            case c.NowText():
                return w.Now()
            case c.UnboundedText():
                return w.Unbounded()
            case _:
                assert_never(e)


def _times(t: Tuples) -> str:
    return f"timestamps of {t.unit}" if t.is_timestamp else t.unit
