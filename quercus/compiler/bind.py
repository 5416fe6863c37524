"""Surface syntax + schema -> the logical IR: names looked up, types checked, conjuncts moved to where they act.

Two passes. The first types every conjunct and notes its home: the query, an OR branch, or a negation (`[attr]` and
WHERE can put one into a negation from outside). The second builds the frozen pattern with each home's conjuncts in
it.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, NoReturn

from quercus.compiler import syntax as s
from quercus.compiler.check import check_pattern
from quercus.compiler.names import Names, Path, Variable
from quercus.compiler.outputs import bind_outputs
from quercus.compiler.typing import PER_SECOND, Typer
from quercus.errors import QueryError, nearest
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir.span import Span

if TYPE_CHECKING:
    from quercus.schema import Schema

_SECONDS = {"min": 60, "h": 3600, "d": 86_400, "week": 604_800}
MAX_WINDOW = 2**62


def bind(query: s.QueryText, schema: Schema) -> p.Query:
    """Bind a parsed query to a schema, or raise `QueryError`."""
    return _Binder(query, schema).query()


class _Binder:
    def __init__(self, query: s.QueryText, schema: Schema) -> None:
        self.source, self.schema, self.text = query, schema, query.text
        self.names = Names(query, schema)
        # Conjuncts by home: () is the query, else the path of a Negation or of an OR's branch.
        self.homes: dict[Path, list[x.Expr]] = {(): []}

    def fail(self, code: str, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        raise QueryError(code, message, text=self.text, span=span, hint=hint)

    def query(self) -> p.Query:
        if self.source.window is None:
            end = len(self.text.rstrip())
            self.fail(
                "E401", "the query has no window", Span(end, end + 1), "end it with WITHIN, for example WITHIN 10 min"
            )
        self._collect(self.source.pattern, (), (), ())
        for conjunct in self.source.where:
            if isinstance(conjunct, s.SameAttr):
                self._same(conjunct, (), (), ())
            else:
                for link in s.links(conjunct):
                    self._where(link)
        pattern = self._build(self.source.pattern, ())
        check_pattern(pattern, self.text)
        window = bound_window(self.source.window, self.schema.time_unit, self.text)
        partition_by = tuple(
            dict.fromkeys(self.schema.canonical(a) for a in (*self.schema.key, *self.source.partition_by))
        )
        for name in partition_by:
            at = self._partition_span(name)
            for leaf in self.names.at.values():
                self._column_of(leaf, name, at or leaf.event.span)
        variables = tuple({leaf.var: leaf for leaf in p.leaves(pattern)}.values())
        bound = p.Query(pattern, tuple(self.homes[()]), window, partition_by, variables=variables)
        return bind_outputs(bound, self.source, self.names, self.typer(()))

    def _partition_span(self, name: str) -> Span | None:
        """Where PARTITION BY names an attribute; None when the schema's key does."""
        clause = re.search(r"partition\s+by\b", self.text, re.IGNORECASE)
        found = re.compile(rf"\b{re.escape(name)}\b").search(self.text, clause.end()) if clause else None
        return Span(found.start(), found.end()) if found else None

    # looking names up

    def typer(self, inside: tuple[Path, ...]) -> Typer:
        def column(var: str, attr: str, span: Span | None) -> x.Column:
            return self._column_of(self.names.lookup(var, inside, span), attr, span)

        def kleene(var: str, function: str, span: Span | None) -> None:
            v = self.names.lookup(var, inside, span)
            if not v.event.kleene:
                self.fail(
                    "E502",
                    f"{function} of '{var}', which is one event",
                    span,
                    f"use {var}.attribute, or make it {v.event.type}+ {var}",
                )
            if v.negations:
                self.fail(
                    "E304",
                    f"{function} of '{var}', which is bound inside a negation",
                    span,
                    "a negated Kleene variable has no set to test",
                )

        return Typer(self.text, self.schema.timestamp_unit, column, kleene)

    def _column_of(self, v: Variable, attr: str, span: Span | None) -> x.Column:
        kind = self.schema.attribute(v.event.type, attr)
        if kind is None:
            known = [*self.schema.attributes(v.event.type), "ts", "type"]
            hint = nearest(attr, known) or "attributes: " + ", ".join(known[:8])
            at = type(span)(span.end - len(attr), span.end) if span and self.text[: span.end].endswith(attr) else span
            self.fail("E104", f"no attribute '{attr}' in event type '{v.event.type}'", at, hint)
        return x.Column(v.name, self.schema.canonical(attr), kind, span=span)

    # first pass: conjuncts to their homes

    def _collect(self, e: s.Pattern, path: Path, inside: tuple[Path, ...], home: Path) -> None:
        match e:
            case s.Event():
                return
            case s.Negation():
                self._collect(e.body, (*path, 0), (*inside, path), path)
            case s.Operator():
                typer = self.typer(inside)
                for conjunct in e.where:
                    if isinstance(conjunct, s.SameAttr):
                        self._same(conjunct, path, inside, home)
                    else:
                        self._add(home, typer, conjunct)
                for i, part in enumerate(e.parts):
                    self._collect(part, (*path, i), inside, (*path, i) if e.kind == "OR" else home)

    def _add(self, home: Path, typer: Typer, conjunct: s.Scalar) -> None:
        for link in s.links(conjunct):
            condition = self._spelled_out(typer.condition(link))
            self._check_kleene(condition)
            self.homes.setdefault(home, []).append(condition)

    def _spelled_out(self, e: x.Expr) -> x.Expr:
        """A condition in which `same` is part of a larger one, as comparisons."""
        if isinstance(e, x.Same) or not any(isinstance(n, x.Same) for n in x.walk(e)):
            return e

        def change(n: x.Expr) -> x.Expr:
            if not isinstance(n, x.Same):
                return x.with_children(n, tuple(change(c) for c in x.children(n)))
            kleene = next((c.var for c in n.columns if self.names.by_name[c.var][0].event.kleene), None)
            if kleene is not None:
                hint = "make it a condition of its own"
                self.fail("E504", f"same() over the set '{kleene}' inside a larger condition", n.span, hint)
            links = tuple(x.Compare("=", a, b, span=n.span) for a, b in combinations(n.columns, 2))
            return x.TRUE if not links else links[0] if len(links) == 1 else x.Logic("and", links, span=n.span)

        return change(e)

    def _check_kleene(self, e: x.Expr) -> None:
        if isinstance(e, x.Same):
            return
        kleene = {v for v in x.variables(e) if self.names.by_name[v][0].event.kleene}
        each = {n.var for n in x.walk(e) if isinstance(n, x.Column)} & kleene
        if len(kleene) > 1 and each:
            first, second = sorted(kleene)[:2]
            hint = f"compare group functions instead, for example max({first}.x) < min({second}.x)"
            inside = next((v for v in sorted(kleene) if self.names.by_name[v][0].negations), None)
            if inside is not None:
                hint = f"inside a negation one event is enough: drop the Kleene sign of '{inside}'"
            self.fail("E501", f"two Kleene variables, '{first}' and '{second}', in one conjunct", e.span, hint)

    def _same(self, e: s.SameAttr, path: Path, inside: tuple[Path, ...], home: Path) -> None:
        """`[attr]`: every event under the operator agrees with one that is always there, else each with each."""
        under = list({v.name: v for v in self.names.under(path)}.values())
        column = {v.name: self._column_of(v, e.attr, e.span) for v in under}
        typer = self.typer(inside)
        if column:
            typer.agreeing(tuple(column.values()), e.span)
        outer = [v for v in under if v.negations == inside]
        always = [v for v in outer if not v.event.kleene and not any(len(o) >= len(path) for o in v.ors)]
        if always:
            anchor = column[always[0].name]
            for v in under:
                if v.name != anchor.var:
                    at = v.negations[-1] if len(v.negations) > len(inside) else home
                    self.homes.setdefault(at, []).append(x.Compare("=", anchor, column[v.name], span=e.span))
            return
        for negations in dict.fromkeys(v.negations for v in under):
            seen = [v for v in under if negations[: len(v.negations)] == v.negations]
            if len(seen) > 1 or seen[0].event.kleene:
                at = negations[-1] if len(negations) > len(inside) else home
                same = x.Same(tuple(column[v.name] for v in seen), span=e.span)
                self.homes.setdefault(at, []).append(same)

    def _where(self, e: s.Scalar) -> None:
        """A WHERE conjunct acts on the match, or inside the innermost negation whose variables it names."""
        negated = [v for name in s.names(e) for v in self.names.by_name.get(name, ()) if v.negations]
        negated = [v for v in negated if all(o.negations for o in self.names.by_name[v.name])]
        targets = [
            n
            for n in dict.fromkeys(v.negations for v in negated)
            if all(any(self.names.sees(n, o) for o in self.names.by_name[v.name]) for v in negated)
        ]
        if negated and not targets:
            names = sorted({v.name for v in negated})
            self.fail(
                "E503",
                f"a conjunct over {' and '.join(repr(n) for n in names)}, bound in negations that are not nested",
                e.span,
                "give each negation a condition of its own",
            )
        for inside in targets or [()]:
            self._add(inside[-1] if inside else (), self.typer(inside), e)

    # second pass: the frozen pattern

    def _build(self, e: s.Pattern, path: Path) -> p.Pattern:
        match e:
            case s.Event():
                leaf = p.Leaf(self.names.at[path].name, e.type, span=e.span)
                return p.Kleene(leaf, e.least, e.most, span=e.span) if e.kleene else leaf
            case s.Negation():
                return p.Not(self._build(e.body, (*path, 0)), tuple(self.homes.get(path, ())), span=e.span)
            case s.Operator():
                if len(e.parts) == 1 and e.where and e.window is None and e.kind != "OR":
                    return self._build(e.parts[0], (*path, 0))  # it only carried its conditions
                window = bound_window(e.window, self.schema.time_unit, self.text) if e.window else None
                parts = [self._build(c, (*path, i)) for i, c in enumerate(e.parts)]
                if e.kind == "OR":
                    homes = [
                        tuple(self.homes.get((*path, i), ())) if not isinstance(c, p.Not) else ()
                        for i, c in enumerate(parts)
                    ]
                    branches = tuple(p.Branch(c, w, span=c.span) for c, w in zip(parts, homes, strict=True))
                    return p.Or(branches, window, span=e.span)
                return (p.Seq if e.kind == "SEQ" else p.And)(tuple(parts), window, span=e.span)


def bound_window(w: s.WindowText, time_unit: p.TimeUnit, text: str) -> p.Window:
    """The window in units of the time column, or in events."""
    if w.unit == "events":
        size, kind, unit = int(w.size), "count", None
    else:
        kind, unit = "time", time_unit
        if w.unit is None:
            size = _scale(w.size, 1, 1)
        elif w.unit in PER_SECOND:
            size = _scale(w.size, PER_SECOND[unit], PER_SECOND[w.unit])
        else:
            size = _scale(w.size, _SECONDS[w.unit] * PER_SECOND[unit], 1)
        if size == 0:
            raise QueryError(
                "E402",
                "the window is shorter than one unit of the time column",
                text=text,
                span=w.span,
                hint=f"times are counted in {unit}",
            )
    if size > MAX_WINDOW:
        raise QueryError(
            "E402", "the window is longer than time itself", text=text, span=w.span, hint="give a shorter one"
        )
    return p.Window(kind, size, unit, span=w.span)  # type: ignore[arg-type]


def _scale(size: int | float, times: int, over: int) -> int:
    """Exact for whole numbers; a fraction is rounded down to whole units of the time column."""
    return size * times // over if isinstance(size, int) else int(min(size * times / over, 2.0 * MAX_WINDOW))
