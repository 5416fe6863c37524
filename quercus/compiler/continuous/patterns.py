"""Patterns as streams: `FROM (PATTERN SEQ(A a, B b) WITHIN 5 min RETURN a.x AS x) [Range 5 min]`.

Where all event types of a pattern are names of streams (or of queries of WITH), an event of a type is a tuple of that
stream. Otherwise the types are those of one stream's type column: the stream after OVER, or the only one that has such
a column. `At[Pattern By (...)]` is an event type too: an event of it is a window that closes. A match is a tuple at the
time of its last event, with the columns of RETURN; without RETURN with every attribute of every event, `a_x`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from attrs import evolve

from quercus.compiler import planned
from quercus.compiler import syntax as s
from quercus.compiler.bind import bind
from quercus.compiler.continuous import syntax as c
from quercus.compiler.continuous.scope import Tuples
from quercus.compiler.parse import parse_query
from quercus.errors import DataError, QueryError
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import window as w
from quercus.ir.span import Span
from quercus.plan import Options, Plan
from quercus.schema import Schema

if TYPE_CHECKING:
    Find = Callable[[str, Span | None], tuple[w.Given | w.Named, Tuples]]
    Windowed = Callable[[c.WindowedType, frozenset[str] | None, frozenset[str]], str]


_OTHER_WINDOW = re.compile(r"\w\s*\[\s*(?:range|rows|now|unbounded|partition(?:\s+by)?)\Z", re.IGNORECASE)
ORDER = "quercus_order"  # the column in which a backend without an order of its own puts that of a stream


class Patterns:
    """The patterns of one query, compiled in the order of the text."""

    def __init__(self, text: str, schemas: Mapping[str, Schema], find: Find, windowed: Windowed) -> None:
        self.text, self.schemas, self.find, self.windowed = text, schemas, find, windowed
        self.plans: list[Plan] = []

    def fail(self, code: str, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        raise QueryError(code, message, text=self.text, span=span, hint=hint)

    def matched(self, e: c.Island) -> tuple[w.Matched, Tuples]:
        """A pattern as a stream, and what its tuples have."""
        try:
            query = self.without_windows(e, parse_query(e.text))
            streams, typed, schema = self.looked_at(e, query)
            bound = bind(query, schema)
            bound = self.with_columns(bound, schema, e.span)
            plan = planned(e.text.strip(), bound, schema, Options("auto", "auto", (), None))
        except QueryError as error:  # shown where it stands in the whole text
            if error.span is None:
                raise
            if _OTHER_WINDOW.search(e.text, 0, error.span.end):
                hint = "only [Pattern By (...)] stands in a pattern: what slides is a relation, and stands in FROM"
                self.fail("E403", "a window where none may stand", error.span, hint)
            self.fail(error.code, error.message, error.span, error.hint)
        self.plans.append(plan)
        kinds = {o.name: o.value.type for o in bound.returns if not isinstance(o.value, str)}
        tuples = Tuples(kinds, schema.time_unit, schema.time_is_timestamp)
        return w.Matched(len(self.plans) - 1, streams, typed), tuples

    def without_windows(self, e: c.Island, query: s.QueryText) -> s.QueryText:
        """The query with the names of queries in the place of pattern windows."""
        if not e.windows:
            return query
        if e.over is not None:
            hint = "leave OVER out: the other event types are then names of streams"
            self.fail("E906", "a pattern window in a pattern OVER a stream", e.windows[0].window.span, hint)

        # without RETURN all is asked for; names in quotes may be anything
        words = frozenset(re.findall(r"\w+", e.text)) if query.returns and '"' not in e.text else None
        windows = {one.stream.span.start: one for one in e.windows if one.stream.span is not None}
        used: set[int] = set()

        def renamed(part: Any) -> Any:
            match part:
                case s.Event() if part.span is not None and part.span.start in windows:
                    used.add(part.span.start)
                    own = frozenset(re.findall(rf"(?<!\w){re.escape(part.var or '')}\s*\.\s*(\w+)", e.text))
                    return evolve(part, type=self.windowed(windows[part.span.start], words, own))
                case s.Negation():
                    return evolve(part, body=renamed(part.body))
                case s.Operator():
                    return evolve(part, parts=tuple(renamed(p) for p in part.parts))
            return part

        made = evolve(query, pattern=renamed(query.pattern))
        for start, one in windows.items():
            if start not in used:
                hint = "a pattern window stands after an event type: At[Pattern By (...)] w"
                self.fail("E403", "a window where none may stand", one.window.span, hint)
        return made

    def looked_at(self, e: c.Island, query: s.QueryText) -> tuple[tuple[w.Given | w.Named, ...], bool, Schema]:
        """The streams of a pattern, whether a type column tells its events apart, and the schema of them all."""
        if e.over is not None:
            stream, _ = self.find(e.over.name, e.over.span)
            return (stream,), True, self.typed(e.over.name, e.over.span)
        events = list(_events(query.pattern))
        types = list(dict.fromkeys(event.type for event in events))
        try:
            found = [self.find(event.type, event.span) for event in {e.type: e for e in events}.values()]
        except QueryError as error:
            if error.code != "E109":
                raise
            typed = [name for name, schema in self.schemas.items() if schema.type]
            if len(typed) != 1:
                hint = "name streams as event types, or say which stream it is in, (PATTERN ...) OVER S"
                self.fail("E109", error.message, error.span, error.hint if len(types) > 1 else hint)
            stream, _ = self.find(typed[0], e.span)
            return (stream,), True, self.typed(typed[0], e.span)
        attributes: dict[str, Any] = {}
        for name, (_, tuples) in zip(types, found, strict=True):
            self.check_event_type(name, tuples, len(types), e.span)
            time = {"ts": f"timestamp[{tuples.unit}]"} if tuples.is_timestamp else {}
            attributes[name] = {**tuples.columns, **time}
        try:
            first = found[0][1]
            order = ORDER if first.ties == "arrival" else None
            schema = Schema(attributes, time="ts", type="type", time_unit=first.unit, ties=first.ties, order=order)
        except DataError as error:
            self.fail("E906", f"the streams cannot be event types of one pattern: {error}", e.span)
        self.check_numbers(attributes, e.span)
        return tuple(stream for stream, _ in found), False, schema

    def check_event_type(self, name: str, tuples: Tuples, of: int, span: Span | None) -> None:
        """What a stream may not have where its name is an event type."""
        if "type" in tuples.columns:
            hint = f"rename it first: WITH Q AS (ISTREAM(SELECT type AS kind, ... FROM {name}[Now]))"
            self.fail(
                "E906", f"'{name}' has an attribute called 'type', which is the event type in a pattern", span, hint
            )
        if tuples.key:
            hint = f"declare it without a key, and write PARTITION BY {tuples.key[0]}"
            self.fail("E906", f"'{name}' has a key: its events are many streams", span, hint)
        if tuples.ties == "arrival" and of > 1:
            hint = 'declare it with ties="strict": events of one time then come in no order'
            self.fail(
                "E906", f"events of '{name}' have an order at one time, and among several streams none", span, hint
            )

    def check_numbers(self, attributes: Mapping[str, Mapping[str, str]], span: Span | None) -> None:
        """Events of all streams stand in one table, where an attribute has one type."""
        seen: dict[str, tuple[str, str]] = {}
        for stream, columns in attributes.items():
            for name, kind in columns.items():
                other, before = seen.setdefault(name, (stream, kind))
                if before != kind:
                    hint = f"give one of them another name, or another type: {name} + 0.0"
                    self.fail("E906", f"'{name}' is {before} in '{other}' and {kind} in '{stream}'", span, hint)

    def typed(self, name: str, span: Span | None) -> Schema:
        schema = self.schemas.get(name)
        if schema is None or not schema.type:
            hint = "use the stream's own name as an event type, and leave OVER out"
            self.fail("E906", f"'{name}' has no type column", span, hint)
        return schema

    def with_columns(self, q: p.Query, schema: Schema, span: Span | None) -> p.Query:
        """The query with RETURN, each of whose columns is one value."""
        if q.aggregates:
            hint = "RETURN columns, and aggregate in SELECT"
            self.fail("E906", "AGG in a pattern that is a stream", q.aggregates[0].span, hint)
        for o in q.returns:
            if isinstance(o.value, str) or o.each:
                hint = "return single values: a.x, count(b), last(b).x"
                self.fail("E906", f"'{o.name}' is no single value", o.span, hint)
            if o.name == "ts":
                self.fail("E107", "a column called 'ts'", o.span, "that is the match's own time: name it with AS")
        if q.returns:
            return q
        outputs: list[p.Output] = []
        for v in q.variables:
            if isinstance(v, p.Kleene):
                hint = "say with RETURN what of it is needed: RETURN a.x, count(b) AS n"
                self.fail("E906", f"'{v.var}' is a set of events", v.span or span, hint)
            attributes: dict[str, x.Type] = {**schema.attributes(v.type)}
            attributes["ts"] = "timestamp" if schema.time_is_timestamp else "int64"
            for attr, kind in attributes.items():
                outputs.append(p.Output(f"{v.var}_{attr}", x.Column(v.var, attr, kind)))
        names = [o.name for o in outputs]
        for name in names:
            if names.count(name) > 1:
                self.fail("E107", f"two columns are called '{name}'", span, "name them with RETURN ... AS")
        return evolve(q, returns=tuple(outputs))


def windowed_columns(tuples: Tuples) -> Iterator[tuple[str, tuple[str, str]]]:
    """What an event that is a window has, with the function that tells it: the attributes of its last tuple, those of
    the first one, and its counts. An attribute of the stream goes before what would be called alike.
    """
    yield from ((name, ("last", name)) for name in tuples.columns)
    more = {f"first_{name}": ("first", name) for name in (*tuples.columns, "ts")} | {
        n: (n, "") for n in ("iter", "num")
    }
    yield from ((name, call) for name, call in more.items() if name not in tuples.columns)


def windowed_value(function: str, attribute: str) -> s.Call:
    return s.Call(function, (s.Var(attribute),) if attribute else ())


def _events(e: s.Pattern) -> Iterator[s.Event]:
    match e:
        case s.Event():
            yield e
        case s.Negation():
            yield from _events(e.body)
        case s.Operator():
            for part in e.parts:
                yield from _events(part)
