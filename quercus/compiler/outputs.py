"""RETURN, AGG and GROUPBY: names, types and what may stand in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from attrs import evolve

from quercus.compiler import syntax as s
from quercus.compiler.typing import NUMBERS, Typer
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text

if TYPE_CHECKING:
    from quercus.compiler.names import Names
    from quercus.ir.span import Span

_AGGREGATES = ("count", "sum", "avg", "min", "max")


def bind_outputs(query: p.Query, source: s.QueryText, names: Names, typer: Typer) -> p.Query:
    """The query with its outputs bound. RETURN projects each match, AGG counts over all: a query has one of them."""
    if source.returns and source.aggregates:
        typer.fail(
            "E601",
            "RETURN and AGG in one query",
            source.returns[0].span,
            "RETURN lists matches, AGG counts them: ask two queries",
        )
    if source.group_by and not source.aggregates:
        typer.fail("E601", "GROUPBY without AGG", source.group_by[0].span, "add for example AGG COUNT(*)")
    kleene = p.kleene_variables(query.pattern)
    returns = tuple(_returned(o, i, names, typer, kleene) for i, o in enumerate(source.returns, 1))
    aggregates = tuple(_aggregate(o, names, typer) for o in source.aggregates)
    groups = tuple(_group(g, names, typer, kleene) for g in source.group_by)
    seen: set[str] = set()
    for g in groups:
        if f"{g.var}.{g.attr}" in seen:
            typer.fail("E107", f"GROUPBY names {g.var}.{g.attr} twice", g.span, "once is enough")
        seen.add(f"{g.var}.{g.attr}")
    outputs: tuple[p.Output | p.Aggregate, ...] = (*returns, *aggregates)
    for o in outputs:
        if o.name in seen:
            typer.fail("E107", f"two outputs are called '{o.name}'", o.span, "name them with AS")
        seen.add(o.name)
    return evolve(query, returns=returns, aggregates=aggregates, group_by=groups)


def _positive(name: str, span: Span | None, names: Names, typer: Typer) -> None:
    """An output can only name what a match binds."""
    found = names.by_name.get(name)
    if found and all(v.negations for v in found):
        typer.fail(
            "E603", f"'{name}' is bound inside a negation: no match holds it", span, "return a positive variable"
        )
    names.lookup(name, (), span)


def _returned(o: s.Output, number: int, names: Names, typer: Typer, kleene: frozenset[str]) -> p.Output:
    whole = s.as_variable(o.value)
    if isinstance(whole, s.Var) and (whole is o.value or _must_be_quoted(o.value, names)):
        _positive(whole.name, whole.span, names, typer)
        return p.Output(o.name or whole.name, whole.name, span=o.span)
    for name in s.names(o.value):
        _positive(name, o.value.span, names, typer)
    value = typer.scalar(o.value)
    each = {n.var for n in x.walk(value) if isinstance(n, x.Column)} & kleene
    if len(each) > 1:
        typer.fail("E501", "two Kleene variables in one output", o.span, "return them in columns of their own")
    return p.Output(o.name or _default_name(value, number), value, bool(each), span=o.span)


def _must_be_quoted(e: s.Scalar, names: Names) -> bool:
    """Whether a constant is the only way to write a variable: `RETURN "in"`, but not `RETURN 'a'`."""
    if not isinstance(e, s.Constant) or str(e.value) not in names.by_name:
        return False
    return not isinstance(e.value, str) or text.name(e.value) != e.value


def _default_name(value: x.Expr, number: int) -> str:
    match value:
        case x.Column():
            return f"{value.var}_{value.attr}"
        case x.GroupCall():
            return "_".join(n for n in (value.name, value.var, value.attr) if n)
        case _:
            return f"column_{number}"


def _aggregate(o: s.Output, names: Names, typer: Typer) -> p.Aggregate:
    call = o.value
    if not isinstance(call, s.Call) or call.name not in _AGGREGATES or call.attr:
        typer.fail("E203", "AGG takes COUNT(*), COUNT(v), SUM(v.x), AVG(v.x), MIN(v.x) or MAX(v.x)", o.span)
    whole = s.as_variable(call.args[0]) if len(call.args) == 1 else None
    if call.star or (call.name == "count" and isinstance(whole, s.Var)):
        if call.name != "count":
            typer.fail(
                "E203", f"{call.name.upper()}(*) means nothing", o.span, f"write {call.name.upper()}(v.attribute)"
            )
        var = None
        if not call.star:
            var = cast("s.Var", whole).name
            _positive(var, o.span, names, typer)
        return p.Aggregate(
            o.name or ("count" if var is None else f"count_{var}"), "count", var, None, "int64", span=o.span
        )
    if call.name == "count" or len(call.args) != 1 or not isinstance(call.args[0], s.Attr):
        typer.fail(
            "E203",
            f"{call.name.upper()} takes {'* or a variable' if call.name == 'count' else 'variable.attribute'}",
            o.span,
        )
    _positive(call.args[0].var, call.args[0].span, names, typer)
    column = typer.column(call.args[0].var, call.args[0].name, call.args[0].span)
    if call.name in ("sum", "avg") and column.type not in NUMBERS:
        typer.fail("E201", f"{call.name.upper()} of a {column.type}", call.args[0].span, "it takes numbers")
    kind: x.Type = "float64" if call.name == "avg" else column.type
    name = o.name or f"{call.name}_{column.var}_{re.sub(r'[^0-9A-Za-z_]', '_', column.attr)}"
    return p.Aggregate(name, cast("Any", call.name), column.var, column.attr, kind, span=o.span)


def _group(g: s.Attr | s.Var, names: Names, typer: Typer, kleene: frozenset[str]) -> x.Column:
    """GROUPBY v is by the event's own type (E-Cube)."""
    var, attr = (g.var, g.name) if isinstance(g, s.Attr) else (g.name, "type")
    _positive(var, g.span, names, typer)
    column = typer.column(var, attr, g.span)
    if var in kleene:
        typer.fail(
            "E602", f"grouping by the Kleene variable '{var}'", g.span, "group by a variable that binds one event"
        )
    return column
