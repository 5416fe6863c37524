"""A SELECT bound to its sources: outputs named, groups found, what is neither grouped nor aggregated refused."""

from __future__ import annotations

import re
from typing import NoReturn

from attrs import evolve

from quercus.compiler import syntax as s
from quercus.compiler.continuous import syntax as c
from quercus.compiler.continuous.scope import Scope
from quercus.compiler.continuous.typing import Selected
from quercus.errors import QueryError
from quercus.ir import expr as x
from quercus.ir import window as w
from quercus.ir.span import Span


class Selection:
    """One SELECT. `sources` are bound already."""

    def __init__(self, select: c.Select, scope: Scope, streams: tuple[w.Stream, ...], text: str) -> None:
        self.select, self.scope, self.streams, self.text = select, scope, streams, text
        self.typer = Selected(text, scope)

    def fail(self, code: str, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        raise QueryError(code, message, text=self.text, span=span, hint=hint)

    def bound(self) -> w.Select:
        select, typer = self.select, self.typer
        where: list[x.Expr] = []
        for source in select.sources:
            if source.on is not None:
                typer.clause = "ON"
                where += _conjuncts(typer.condition(source.on))
        if select.where is not None:
            typer.clause = "WHERE"
            where += _conjuncts(typer.condition(select.where))
        typer.clause = "GROUP BY"
        group_by = tuple(dict.fromkeys(typer.scalar(e) for e in select.group_by))
        typer.clause = "SELECT"
        outputs = [o for item in select.items for o in self.outputs(item)]
        typer.clause = "HAVING"
        having = _conjuncts(typer.condition(select.having)) if select.having is not None else []
        self.check_names(outputs)
        grouped = bool(group_by or typer.aggregates or select.having is not None or _counts_only(outputs))
        if grouped:
            outputs = [evolve(o, value=self.regrouped(o.value, group_by)) for o in outputs]
            having = [self.regrouped(e, group_by) for e in having]
        read = [*where, *group_by, *having, *(o.value for o in outputs)]
        read += [a.value for a in typer.aggregates if a.value is not None]
        return w.Select(
            tuple(self.source(i, read) for i in range(len(self.streams))),
            tuple(where),
            tuple(outputs),
            select.distinct,
            grouped,
            group_by,
            tuple(typer.aggregates),
            tuple(having),
        )

    def source(self, number: int, read: list[x.Expr]) -> w.Source:
        item = self.scope.items[number]
        columns = {n for e in read for n in x.walk(e) if isinstance(n, x.Column) and n.var == f"s{number}"}
        reads = tuple(sorted(columns, key=lambda column: column.attr))
        return w.Source(item.name, self.streams[number], item.window, reads, span=item.span)

    # outputs

    def outputs(self, item: s.Output | c.All) -> list[w.Output]:
        if isinstance(item, c.All):
            return self.all(item)
        call = item.value
        if isinstance(call, s.Call) and call.name in ("first", "last") and len(call.args) > 1:
            if item.name is not None:
                hint = f"write {call.name.upper()}(a) AS x, {call.name.upper()}(b) AS y"
                self.fail("E203", "one name for several attributes", item.span, hint)
            parts = [s.Call(call.name, (a,), distinct=call.distinct, span=a.span) for a in call.args]
            return [self.output(s.Output(p, None, span=p.span)) for p in parts]
        return [self.output(item)]

    def output(self, item: s.Output) -> w.Output:
        value = self.typer.scalar(item.value)
        return w.Output(item.name or self.default_name(item.value, value), value, span=item.span)

    def default_name(self, e: s.Scalar, value: x.Expr) -> str:
        if isinstance(e, s.Var | s.Attr) and isinstance(value, x.Column):
            return "Timestamp" if value.attr == "ts" else value.attr
        if isinstance(e, s.Call) and isinstance(value, x.Column):
            parts = [e.name, *("distinct" for _ in [e] if e.distinct)]
            parts += [a.name for a in e.args if isinstance(a, s.Var | s.Attr)]
            if len(parts) == 1 + e.distinct + len(e.args):
                return re.sub(r"\W", "_", "_".join(parts))
        return ""

    def all(self, item: c.All) -> list[w.Output]:
        """The attributes of one source or of all, in order; where several have one, with the source's name before."""
        sources = range(len(self.scope.items))
        if item.of is not None:
            sources = range(at := self.scope.source(item.of, item.span), at + 1)
        found = [(i, name) for i in sources for name in self.scope.items[i].tuples.columns]
        if not found:
            self.fail("E104", "there are no attributes for *", item.span, "name what you need: there is Timestamp")
        names = [name for _, name in found]
        return [
            w.Output(
                name if names.count(name) == 1 else f"{self.scope.items[i].name}_{name}",
                self.scope.column(i, name, item.span),
                span=item.span,
            )
            for i, name in found
        ]

    def check_names(self, outputs: list[w.Output]) -> None:
        """Names are unique; those that have none are numbered."""
        seen: set[str] = set()
        for number, o in enumerate(outputs):
            if not o.name:
                o = outputs[number] = evolve(o, name=f"column_{number + 1}")
            if o.name == "ts":
                self.fail("E107", "an output called 'ts'", o.span, "that is the output's own time: name it with AS")
            if o.name in seen:
                self.fail("E107", f"two outputs are called '{o.name}'", o.span, "name them with AS")
            seen.add(o.name)

    # groups

    def regrouped(self, e: x.Expr, group_by: tuple[x.Expr, ...]) -> x.Expr:
        """The expression over groups: what is grouped by is a column of the group."""
        if e in group_by:
            return x.Column(w.GROUP, str(group_by.index(e)), e.type, span=e.span)
        if isinstance(e, x.Column) and e.var.startswith("s"):
            name = "Timestamp" if e.attr == "ts" else e.attr
            first = f"FIRST({name}) or LAST({name})"
            hint = f"add it to GROUP BY, or write {first}"
            self.fail("E902", f"'{name}' is neither grouped nor aggregated", e.span, hint)
        return x.with_children(e, tuple(self.regrouped(child, group_by) for child in x.children(e)))


def _counts_only(outputs: list[w.Output]) -> bool:
    """ITER() and NUM() without a plain column beside them are of the whole window: one row, as of aggregates."""
    read = [n.var for o in outputs for n in x.walk(o.value) if isinstance(n, x.Column)]
    return bool(read) and all(var.startswith("w") for var in read)


def _conjuncts(e: x.Expr) -> list[x.Expr]:
    if isinstance(e, x.Logic) and e.op == "and":
        return [part for item in e.items for part in _conjuncts(item)]
    return [e]
