"""Attributes that are never there, and conditions on one event that never or always hold."""

from __future__ import annotations

from collections.abc import Iterator

from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.lint.finding import Finding
from quercus.lint.look import Condition, Look


def nulls(look: Look) -> Iterator[Finding]:
    """Attributes that no event of a variable's type has."""
    seen: set[tuple[str, str]] = set()
    outputs = [o.value for o in look.query.returns if not isinstance(o.value, str)]
    totals = [
        x.Column(a.var, a.attr, a.type) for a in look.query.aggregates if a.var is not None and a.attr is not None
    ]
    for e in (*(c.test for c in look.conditions), *outputs, *totals, *look.query.group_by):
        for n in x.walk(e):
            if not isinstance(n, x.Column) or n.attr in ("ts", "type") or (n.var, n.attr) in seen:
                continue
            seen.add((n.var, n.attr))
            type_name = look.leaves[n.var].type
            events = look.of(type_name)
            if len(events) and events.column(n.attr).null_count == len(events):
                message = f"'{n.attr}' is null in all {len(events):,} events of '{type_name}'"
                yield look.finding("L201", "warning", message, hint=_elsewhere(look, n.attr), span=n.span)


def _elsewhere(look: Look, attr: str) -> str | None:
    if look.table.column(attr).null_count == len(look.table):
        return "no event has it"
    others = (name for name in look.counts if (t := look.of(name)).column(attr).null_count < len(t))
    return f"events of {', '.join(sorted(others)[:5])} have it"


def conditions(look: Look) -> Iterator[Finding]:
    """Conditions on one event, tried on every event of its type."""
    for c in look.conditions:
        variables = x.variables(c.test)
        if len(variables) != 1 or isinstance(c.test, x.Same):
            continue
        leaf = look.leaves[next(iter(variables))]
        n = look.count(leaf.type)
        if not n:
            continue
        if look.holds(leaf, c.test) is False:
            yield never(look, c, f"of the {n:,} events of '{leaf.type}'", leaf)
        elif look.holds(leaf, _fails(c.test)) is False:
            message = f"{text.scalar(c.test)} holds for all {n:,} events of '{leaf.type}'"
            yield look.finding("L302", "note", message, hint="it leaves nothing out", span=c.test.span)


def _fails(test: x.Expr) -> x.Expr:
    """What is true where the test is false or unknown."""
    return x.Logic("or", (x.NotTrue(test), x.IsNull(test, False)))


def never(look: Look, c: Condition, among: str, leaf: p.Leaf | None = None) -> Finding:
    """A condition that holds for none of those that it was tried on."""
    said = text.scalar(c.test)
    if c.negated:
        what = "this branch of the negation never happens" if c.optional else "nothing can violate the negation"
        message = f"{said} holds for none {among}: {what}"
        return look.finding("L501", "warning", message, span=c.test.span)
    hint = None if leaf is None else seen_values(look, c.test, leaf)
    severity = "warning" if c.optional else "error"
    message = f"{said} holds for none {among}"
    return look.finding("L301", severity, message, hint=hint, span=c.test.span)  # type: ignore[arg-type]


def seen_values(look: Look, test: x.Expr, leaf: p.Leaf) -> str | None:
    """What the one attribute of a condition really holds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    attrs = {n.attr for n in x.walk(test) if isinstance(n, x.Column)} - {"ts", "type"}
    if len(attrs) != 1:
        return None
    attr = next(iter(attrs))
    column = look.of(leaf.type).column(attr)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        ends = pc.min_max(column).as_py()
        known = ends["min"] is not None and ends["min"] == ends["min"]  # else all are null, or none is a number
        return f"'{attr}' is {ends['min']} to {ends['max']} there" if known else None
    values = [str(v)[:60] for v in pc.unique(column.cast(pa.string())).to_pylist()[:6] if v is not None]
    return (
        f"'{attr}' is {', '.join(map(repr, values[:5]))}{', ...' if len(values) > 5 else ''} there" if values else None
    )
