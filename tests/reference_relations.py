"""Continuous queries read by brute force: every relation is made anew at every instant, from its definition.

Nothing here knows how the engine does it: the surface syntax is evaluated as it stands, over rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from attrs import evolve

from quercus.compiler import syntax as s
from quercus.compiler.continuous import syntax as c
from quercus.compiler.continuous.parse import parse_continuous
from tests import reference_scalar as scalar
from tests.reference_scalar import Event, Value
from tests.reference_windows import Window, closed

Rows = Sequence[Mapping[str, Value]]
Row = tuple[Value, ...]
AGGREGATES = ("count", "sum", "avg", "min", "max")


@dataclass(frozen=True)
class Source:
    """One item of FROM over all of time: what is in its relation at each time, or its closed windows."""

    name: str
    columns: Sequence[str]
    at: Callable[[int], list[Event]] | None
    windows: Sequence[Window]
    closing: Callable[[int], list[int]]
    times: frozenset[int]  # at which something might change

    def content(self, time: int) -> object:
        """Different at two times if, and only if, the relation is."""
        if self.at is None:
            return frozenset(self.closing(time))
        return frozenset(t.pos for t in self.at(time))


@dataclass(frozen=True)
class Found:
    """A row at an instant; `window` says which windows it is of, so that it equals no other; None: it lasts."""

    values: Row
    window: object


def output(text: str, columns: Mapping[str, Sequence[str]], streams: Mapping[str, Rows]) -> list[tuple[int, Row]]:
    """The output of a query, in the order of time: (time, values). `columns` are the attributes of each stream."""
    query = parse_continuous(text)
    known = {name: (list(names), events(streams[name])) for name, names in columns.items() if name in streams}
    for name, _, stream in query.named:
        found, names = _stream(stream, known)
        rows = [{"ts": time, **dict(zip(names, row, strict=True))} for time, row in found]
        known[name] = (names, events(rows))
    return _stream(query.stream, known)[0]


def events(rows: Rows) -> list[Event]:
    """In order of time, among equal times in the order given."""
    ordered = sorted(rows, key=lambda row: row["ts"])  # type: ignore[arg-type,return-value]
    return [
        Event(i, i, int(row["ts"]), "", {n: v for n, v in row.items() if n != "ts"})  # type: ignore[arg-type]
        for i, row in enumerate(ordered)
    ]


Known = Mapping[str, tuple[list[str], list[Event]]]


def _stream(stream: c.Stream, known: Known) -> tuple[list[tuple[int, Row]], list[str]]:
    relation = _relation(stream.relation, known)
    instants = sorted(t for t in relation.times if relation.content(t) != relation.content(t - 1))
    result: list[tuple[int, Row]] = []
    for i, now in enumerate(instants):
        here = relation.rows(now)
        before = relation.rows(now - 1) if i else []
        match stream.kind:
            case "rstream":
                given = [f.values for f in here]
            case "istream":  # of equal rows that come and go at once, those that come last are new
                given = _difference(here[::-1], before)[::-1]
            case "dstream":
                given = _difference(before, here)
        result += [(now, row) for row in given]
    return result, relation.names


def _difference(more: list[Found], less: list[Found]) -> list[Row]:
    left = Counter(more) - Counter(less)
    found = []
    for f in more:
        if left[f] > 0:
            left[f] -= 1
            found.append(f.values)
    return found


# Relations ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relation:
    rows: Callable[[int], list[Found]]
    names: list[str]
    times: frozenset[int]
    content: Callable[[int], object]


def _relation(e: c.Relation, known: Known) -> Relation:
    if isinstance(e, c.Select):
        return _Select(e, [_source(one, known) for one in e.sources]).relation()
    left, right = _relation(e.left, known), _relation(e.right, known)

    def rows(time: int) -> list[Found]:
        both = left.rows(time) + right.rows(time)
        if e.all:
            return both
        lasting = {f.values for f in both if f.window is None}
        once = dict.fromkeys(f.values for f in both)
        return [Found(v, None if v in lasting else ("union", time)) for v in once]

    return Relation(rows, left.names, left.times | right.times, lambda time: (left.content(time), right.content(time)))


def _source(e: c.Source, known: Known) -> Source:
    assert isinstance(e.stream, c.StreamName)
    name = e.alias or e.stream.name
    columns, tuples = known[e.stream.name]
    times = frozenset(t.ts for t in tuples)

    def arrived(time: int) -> list[Event]:
        return [t for t in tuples if t.ts <= time]

    match e.window:
        case c.RangeText(length=length):
            size = int(length.size)
            at = lambda time: [t for t in tuples if t.ts <= time <= t.ts + size]  # noqa: E731
            times |= {t + size + 1 for t in times}
        case c.RowsText(count=count, by=by):

            def at(time: int) -> list[Event]:
                parts: dict[object, list[Event]] = {}
                for t in arrived(time):
                    parts.setdefault(tuple(t.value(_attribute(n)) for n, _ in by), []).append(t)
                return sorted((t for part in parts.values() for t in part[-count:]), key=lambda t: t.pos)

        case c.NowText():
            at = lambda time: [t for t in tuples if t.ts == time]  # noqa: E731
            times |= {t + 1 for t in times}
        case c.UnboundedText():
            at = arrived
        case c.PatternText():
            parts = [_condition(p) for p in (e.window.start, e.window.termination, e.window.iteration, e.window.filter)]
            found = closed(parts[0], parts[1], parts[2], parts[3], tuples)
            closing = {i: w.tuples[-1].ts for i, w in enumerate(found)}
            times = frozenset(t for close in closing.values() for t in (close, close + 1))
            return Source(name, columns, None, found, lambda time: [i for i in closing if closing[i] == time], times)
    return Source(name, columns, at, [], lambda _: [], times)


def _attribute(name: str) -> str:
    return "ts" if name.casefold() == "timestamp" else name


def _condition(e: s.Scalar) -> s.Scalar:
    """A condition of a pattern window over the names of tests/reference_windows.py."""

    def name(arg: s.Scalar) -> str:
        assert isinstance(arg, s.Var | s.Attr)
        return _attribute(arg.name)

    def change(node: s.Scalar) -> s.Scalar | None:
        match node:
            case s.Var() | s.Attr():
                return s.Attr("", name(node))
            case s.Call(name="first" | "prev" as which, args=(arg,)):
                return s.Attr(which, name(arg))
            case s.Call(name="iter" | "num" as which):
                return s.Attr("window", which)
        return None

    return rewritten(e, change)


def rewritten(e: s.Scalar, change: Callable[[s.Scalar], s.Scalar | None]) -> s.Scalar:
    """The expression with what `change` gives instead of a node, from the top down."""
    new = change(e)
    if new is not None:
        return new
    match e:
        case s.Unary() | s.IsNull():
            return evolve(e, value=rewritten(e.value, change))
        case s.Binary():
            return evolve(e, left=rewritten(e.left, change), right=rewritten(e.right, change))
        case s.Chain():
            return evolve(e, operands=tuple(rewritten(o, change) for o in e.operands))
        case s.InList():
            items = tuple(rewritten(i, change) for i in e.items)
            return evolve(e, value=rewritten(e.value, change), items=items)
        case s.Between():
            parts = [rewritten(p, change) for p in (e.value, e.low, e.high)]
            return evolve(e, value=parts[0], low=parts[1], high=parts[2])
        case s.Call():
            return evolve(e, args=tuple(rewritten(a, change) for a in e.args))
    return e


def walk(e: s.Scalar) -> Iterator[s.Scalar]:
    yield e
    for part in scalar.parts(e):
        yield from walk(part)


# SELECT ---------------------------------------------------------------------------------------------------------------

Joined = Mapping[str, Event]


@dataclass(frozen=True)
class Context:
    """The closed windows that a SELECT is evaluated for, by source; without pattern windows there is one, of none."""

    windows: Mapping[str, tuple[int, Window]]

    @property
    def identity(self) -> object:
        return tuple((name, number) for name, (number, _) in self.windows.items()) or None


class _Select:
    def __init__(self, e: c.Select, sources: list[Source]) -> None:
        self.e, self.sources = e, sources
        self.items = list(self._items())
        written = [value for _, value in self.items] + ([e.having] if e.having is not None else [])
        calls = [n for v in written for n in walk(v) if isinstance(n, s.Call)]
        plain = any(self._is_plain(v) for v in written)
        counts = any(n.name in ("iter", "num") for n in calls)
        self.of_tuples = any(n.name in ("first", "last") for n in calls)
        aggregated = self.of_tuples or any(n.name in AGGREGATES for n in calls)
        self.grouped = bool(e.group_by) or e.having is not None or aggregated or (counts and not plain)

    def _is_plain(self, e: s.Scalar) -> bool:
        if isinstance(e, s.Call) and e.name in (*AGGREGATES, "first", "last", "iter", "num"):
            return False
        return isinstance(e, s.Var | s.Attr) or any(self._is_plain(p) for p in scalar.parts(e))

    def _items(self) -> Iterator[tuple[str, s.Scalar]]:
        for number, item in enumerate(self.e.items):
            if isinstance(item, c.All):
                for source in self.sources:
                    if item.of in (None, source.name):
                        for column in source.columns:
                            yield column, s.Attr(source.name, column)
            elif isinstance(item.value, s.Call) and item.value.name in ("first", "last") and len(item.value.args) > 1:
                for arg in item.value.args:
                    yield f"{number}_{arg}", evolve(item.value, args=(arg,))
            else:
                name = item.name or (item.value.name if isinstance(item.value, s.Var | s.Attr) else f"c{number}")
                yield name, item.value

    def relation(self) -> Relation:
        times = frozenset[int]().union(*(source.times for source in self.sources))
        return Relation(
            self.rows, [n for n, _ in self.items], times, lambda t: tuple(source.content(t) for source in self.sources)
        )

    def rows(self, time: int) -> list[Found]:
        found: list[Found] = []
        for context in self.contexts(time):
            rows = [r for r in self.joined(time, context) if self.passes(r)]
            values = self.groups(rows, context) if self.grouped else [self.row(r, [r], context) for r in rows]
            if self.e.distinct:
                values = list(dict.fromkeys(values))
            # windows of two SELECTs of a UNION are different ones, whatever they are called
            of = None if context.identity is None else (id(self), context.identity)
            found += [Found(v, of) for v in values]
        return found

    def contexts(self, time: int) -> list[Context]:
        windows = [source for source in self.sources if source.at is None]
        choices = product(*(source.closing(time) for source in windows))
        return [
            Context({source.name: (i, source.windows[i]) for source, i in zip(windows, choice, strict=True)})
            for choice in choices
        ]

    def joined(self, time: int, context: Context) -> Iterator[Joined]:
        lists = [
            source.at(time) if source.at is not None else context.windows[source.name][1].tuples
            for source in self.sources
        ]
        for choice in product(*lists):
            yield {source.name: t for source, t in zip(self.sources, choice, strict=True)}

    def passes(self, row: Joined) -> bool:
        conditions = [*(source.on for source in self.e.sources), self.e.where]
        return all(self.value(x, row) is True for x in conditions if x is not None)

    # expressions

    def value(self, e: s.Scalar, row: Joined) -> Value:
        return scalar.evaluate(rewritten(e, self.qualified), row, {})

    def qualified(self, e: s.Scalar) -> s.Scalar | None:
        match e:
            case s.Var(name=name):
                owners = [source.name for source in self.sources if _attribute(name) in (*source.columns, "ts")]
                assert len(owners) == 1, name
                return s.Attr(owners[0], _attribute(name))
            case s.Attr(var=var, name=name):
                return s.Attr(var, _attribute(name))
        return None

    def row(self, row: Joined, group: list[Joined], context: Context) -> Row:
        return tuple(self.over_group(value, row, group, context) for _, value in self.items)

    def over_group(self, e: s.Scalar, row: Joined, group: list[Joined], context: Context) -> Value:
        """An output, where aggregates are of a group, and plain columns of one of its rows."""

        def change(node: s.Scalar) -> s.Scalar | None:
            if isinstance(node, s.Call) and node.name in ("iter", "num"):
                [(_, window)] = (
                    context.windows.values() if not node.args else [context.windows[node.args[0].name]]  # type: ignore[union-attr]
                )
                return s.Constant(window.iter if node.name == "iter" else window.num)
            if isinstance(node, s.Call) and node.name in ("first", "last"):
                column = self.qualified(node.args[0])
                assert isinstance(column, s.Attr)
                ordered = sorted((r[column.var] for r in group), key=lambda t: t.pos)
                return s.Constant(ordered[0 if node.name == "first" else -1].value(column.name))
            if isinstance(node, s.Call) and node.name in AGGREGATES:
                if node.star:
                    return s.Constant(len(group))
                values = [self.value(node.args[0], r) for r in group]
                if node.distinct:
                    values = list(dict.fromkeys(values))
                return s.Constant(scalar.fold(node.name, values))
            return None

        return self.value(rewritten(e, change), row)

    # groups

    def groups(self, rows: list[Joined], context: Context) -> list[Row]:
        parts: dict[object, list[Joined]] = {}
        for r in rows:
            parts.setdefault(tuple(self.value(g, r) for g in self.e.group_by), []).append(r)
        if not parts and not self.e.group_by and not self.of_tuples:
            parts[()] = []  # SQL: an aggregate of nothing is a row too
        if context.identity is None:  # in the order of the keys; else of their first rows
            parts = dict(sorted(parts.items(), key=lambda one: [(v is None, v) for v in one[0]]))  # type: ignore[attr-defined]
        found = []
        for group in parts.values():
            one = group[0] if group else {}
            if self.e.having is not None and self.over_group(self.e.having, one, group, context) is not True:
                continue
            found.append(self.row(one, group, context))
        return found
