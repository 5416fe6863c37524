"""A continuous query as text and as one tree of operators: streams below, the output on top (the paper's Fig. 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, assert_never

from attrs import frozen

from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.ir import window as w

if TYPE_CHECKING:
    from quercus.plan import Plan
    from quercus.schema import Schema

Role = Literal["output", "project", "distinct", "group", "select", "join", "union", "window", "stream", "pattern"]
_GIVES = {
    "istream": "each row when it comes",
    "rstream": "all rows at each instant",
    "dstream": "each row when it is gone",
}


@frozen
class Operator:
    """A node of the tree: what it is, what it says in one line each, and what it reads."""

    role: Role
    head: str
    lines: tuple[str, ...] = ()
    inputs: tuple[Operator, ...] = ()


def explain(
    query: w.Continuous, patterns: tuple[Plan, ...], clock: Schema, reason: Callable[[w.PatternWindow], str]
) -> str:
    """The operators of each query, its streams as leaves; how pattern windows run; then the plans of patterns.

    `reason`: which open windows a tuple touches, and why.
    """
    out: list[str] = []
    for name, tree in trees(query, patterns, clock):
        out += [f"query {text.name(name)}" if name else "query", *(f"  {line}" for line in _lines(tree)), ""]
    windows = w.pattern_windows(query)
    if windows:
        out += ["windows", *(f"  {_stream(s)}: {reason(one)}" for s, ws in windows.items() for one in ws), ""]
    shared = [(_stream(stream), len(ws)) for stream, ws in windows.items() if len(ws) > 1]
    if shared:
        lines = (f"  {name}: {n} pattern windows in one pass, with tuples kept once" for name, n in shared)
        out += ["shared", *lines, ""]
    for number, plan in enumerate(patterns, 1):
        out += [f"pattern {number}", *(f"  {line}".rstrip() for line in plan.explain().splitlines()), ""]
    return "\n".join(out[:-1])


def _lines(o: Operator) -> Iterator[str]:
    yield ": ".join([o.head, "; ".join(o.lines)]) if o.lines else o.head
    for i, below in enumerate(o.inputs):
        last = i == len(o.inputs) - 1
        lines = _lines(below)
        yield ("└─ " if last else "├─ ") + next(lines)
        yield from (("   " if last else "│  ") + line for line in lines)


def trees(query: w.Continuous, patterns: tuple[Plan, ...], clock: Schema) -> Iterator[tuple[str, Operator]]:
    """The tree of each query of WITH, by its name, and that of the whole."""
    made = _Trees(patterns, clock)
    for name, one in query.named:
        yield name, made.output(one)
    yield "", made.output(query.query)


class _Trees:
    def __init__(self, patterns: tuple[Plan, ...], clock: Schema) -> None:
        self.patterns = patterns
        self.unit: p.TimeUnit = clock.timestamp_unit
        self.time_unit: p.TimeUnit = clock.time_unit

    def output(self, query: w.Query) -> Operator:
        return Operator("output", query.kind.upper(), (_GIVES[query.kind],), (self.relation(query.relation),))

    def relation(self, e: w.Relation) -> Operator:
        match e:
            case w.Select():
                return self.select(e)
            case w.Union():
                head = "union all" if e.all else "union"
                lines = () if e.all else ("equal rows once",)
                return Operator("union", head, lines, (self.relation(e.left), self.relation(e.right)))
            case _:
                assert_never(e)

    def select(self, e: w.Select) -> Operator:
        shown = _Shown(e, self.unit)
        below = tuple(self.source(s) for s in e.sources)
        where = tuple(shown.scalar(c) for c in e.where)
        if len(below) > 1:
            joined = tuple(c for c, text_ in zip(e.where, where, strict=True) if _is_of_several(c))
            on = tuple(shown.scalar(c) for c in joined)
            node = Operator("join", "join", on, below)
            where = tuple(t for c, t in zip(e.where, where, strict=True) if c not in joined)
        else:
            node = below[0]
        if where:
            node = Operator("select", "where", where, (node,))
        if e.grouped:
            by = [f"by {', '.join(shown.scalar(g) for g in e.group_by)}"] if e.group_by else []
            lines = (*by, *dict.fromkeys(shown.aggregate(a) for a in e.aggregates))
            node = Operator("group", "group" if e.group_by else "aggregate", tuple(lines), (node,))
            if e.having:
                node = Operator("select", "having", tuple(shown.scalar(c) for c in e.having), (node,))
        outputs = tuple(shown.output(o) for o in e.outputs)
        node = Operator("project", "select", (", ".join(outputs),), (node,))
        if e.distinct:
            node = Operator("distinct", "distinct", ("equal rows once",), (node,))
        return node

    def source(self, s: w.Source) -> Operator:
        match s.stream:
            case w.Given() | w.Named():
                stream = Operator("stream", text.name(s.stream.name))
            case w.Matched():
                plan = self.patterns[s.stream.number]
                below = tuple(Operator("stream", text.name(one.name)) for one in s.stream.streams)
                said = text.query(plan.bound, self.unit, sep=" ")
                stream = Operator("pattern", f"pattern {s.stream.number + 1}", (said,), below)
            case _:
                assert_never(s.stream)
        name = f" AS {text.name(s.name)}" if stream.head != text.name(s.name) else ""
        return Operator("window", *self.window(s.window, name), (stream,))

    def window(self, e: w.Window, name: str) -> tuple[str, tuple[str, ...]]:
        match e:
            case w.PatternWindow():
                names = ("start", "termination", "iteration", "filter")
                parts = zip(names, w.conditions(e), strict=True)
                return f"[Pattern By]{name}", tuple(f"{n} {_condition(c, self.unit)}" for n, c in parts)
            case w.Range():
                return f"[Range {text.window(p.Window('time', e.size, self.time_unit))}]{name}", ()
            case w.Rows():
                by = f"Partition By {', '.join(text.name(a) for a in e.by)} " if e.by else ""
                return f"[{by}Rows {e.count}]{name}", ()
            case w.Now():
                return f"[Now]{name}", ()
            case w.Unbounded():
                return f"[Unbounded]{name}", ()
            case _:
                assert_never(e)


class _Shown:
    """Expressions of a SELECT with their names instead of the generated ones."""

    def __init__(self, e: w.Select, unit: p.TimeUnit) -> None:
        self.e, self.unit = e, unit

    def scalar(self, e: x.Expr) -> str:
        return text.scalar(e, self.unit, self.column)

    def output(self, o: w.Output) -> str:
        value = self.scalar(o.value)
        return value if value.rpartition(".")[2] == text.name(o.name) else f"{value} AS {text.name(o.name)}"

    def column(self, c: x.Column) -> str:
        match c.var:
            case w.AGGREGATE:
                return self.aggregate(self.e.aggregates[int(c.attr)])
            case w.GROUP:
                return self.scalar(self.e.group_by[int(c.attr)])
        source = self.e.sources[int(c.var[1:])].name
        several = len(self.e.sources) > 1
        if c.var.startswith("w"):
            return f"{c.attr.upper()}({text.name(source) if several else ''})"
        attr = "Timestamp" if c.attr == "ts" else text.name(c.attr)
        return f"{text.name(source)}.{attr}" if several else attr

    def aggregate(self, a: w.Aggregate) -> str:
        value = "*" if a.value is None else self.scalar(a.value)
        return f"{a.function.upper()}({'DISTINCT ' if a.distinct else ''}{value})"


def _stream(stream: w.Stream) -> str:
    return f"pattern {stream.number + 1}" if isinstance(stream, w.Matched) else text.name(stream.name)


def _is_of_several(e: x.Expr) -> bool:
    return len(x.variables(e)) > 1


def _condition(e: x.Expr, unit: p.TimeUnit) -> str:
    def column(c: x.Column) -> str:
        attr = "Timestamp" if c.attr == "ts" else text.name(c.attr)
        match c.var:
            case w.HERE:
                return attr
            case w.WINDOW:
                return f"{c.attr.upper()}()"
            case _:
                return f"{c.var.upper()}({attr})"

    shown = text.scalar(e, unit, column)
    return shown[1:-1] if isinstance(e, x.Logic) else shown
