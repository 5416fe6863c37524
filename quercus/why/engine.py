"""Variants of a query over one loaded stream, counted and listed within limits.

A column of row numbers stands beside the events, so that a variant can ask for given ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from quercus.backends.base import Limits
from quercus.backends.local.events import Events, load
from quercus.backends.local.outputs import row_numbers
from quercus.backends.local.run import find, repeats
from quercus.errors import LimitExceeded, QueryError
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.plan import Options, Plan
from quercus.schema import Schema
from quercus.why.data import Count

Rows = Mapping[str, int | Sequence[int]]
Match = dict[str, int | list[int]]

FEW = 20_000  # events
COUNTED = 100_000  # matches that are listed to be counted, where they cannot be counted otherwise
_COUNT = (p.Aggregate("n", "count", None, None, "int64"),)


@frozen
class Some:
    """Matches of a variant; unless `whole`, only those found before a limit."""

    rows: list[Match]
    whole: bool


class Engine:
    """Runs variants of a plan's query over its events."""

    def __init__(self, plan: Plan, events: object, *, seconds: float, limits: Limits) -> None:
        stream = load(events, plan.schema)
        self.row = _free_name(plan.schema)
        self.schema = _with_column(plan.schema, self.row)
        table = stream.table.append_column(self.row, pa.array(np.arange(len(stream)), pa.int64()))
        self.stream = Events(table, self.schema, stream.ts, stream.rows, stream.threads)
        few = len(stream) < FEW  # then to plan takes longer than to run
        asked = (*plan.options.without, "distribute_or") if few else plan.options.without
        self.plan = evolve(plan, options=Options("auto", "rewrite" if few else "auto", asked, None))
        self.quick = evolve(plan, options=Options("stack", "rewrite", (*plan.options.without, "distribute_or"), None))
        self.limits, self.began, self.seconds = limits, time.monotonic(), seconds
        self.deadline, self.turn = self.began + seconds, (self.began, seconds)
        self.ran_out = False
        self._counts: dict[tuple[p.Query, str], Count] = {}

    def share(self, number: int, of: int) -> None:
        """From now on it is the turn of one of several, which share the time."""
        self.turn = self.began + number * self.seconds / of, self.seconds / of

    def until(self, part: float) -> None:
        """From now on, only so much of the turn's time may be used."""
        began, seconds = self.turn
        self.deadline = began + part * seconds

    def count(self, q: p.Query, *, schema: Schema | None = None, most: int = COUNTED) -> Count:
        """The number of matches: totalled without listing where that can be, else listed up to `most`."""
        ties = (schema or self.schema).ties
        if (q, ties) not in self._counts:
            count = self._count(q, schema, most)
            if not count.exact:
                return count
            self._counts[q, ties] = count
        return self._counts[q, ties]

    def _count(self, q: p.Query, schema: Schema | None, most: int) -> Count:
        plan = self._plan(evolve(q, returns=(), aggregates=_COUNT, group_by=()), schema, quick=most == 1)
        if plan is None:
            return Count(None, False)
        if plan.tree.aggregation is not None and plan.tree.aggregation.strategy == "running":
            from quercus.backends.local.running import Costly, run_totals

            with suppress(Costly, LimitExceeded):
                return Count(int(run_totals(plan, self.stream, self._limits(most)).column("n")[0].as_py()))
        found, cut = self._find(plan, most)
        n = len(found[0]) if found else 0
        if cut == ["max_matches"]:
            return Count(max(n, 1) if repeats(plan.tree.root) else most, False)
        return Count(n) if not cut else Count(n or None, False)

    def some(self, q: p.Query, most: int, *, schema: Schema | None = None) -> Some:
        """Up to `most` matches."""
        plan = self._plan(evolve(q, returns=(), aggregates=(), group_by=()), schema)
        if plan is None:
            return Some([], False)
        found, cut = self._find(plan, most)
        if cut == ["max_matches"] and not (found and len(found[0])):  # they were counted before any was listed
            found = self._narrowed(q, most, schema)
        return Some(row_numbers(tuple(found)), not cut)

    def _narrowed(self, q: p.Query, most: int, schema: Schema | None) -> list[Any]:
        """Some matches of more than can be listed: those of the first events that bind one variable, then the next."""
        for leaf in p.leaves(q.pattern):
            if not isinstance(leaf, p.Leaf):
                continue
            few, many = -1, len(self.stream)
            found: list[Any] = []
            while many - few > 1:
                middle = (few + many) // 2
                plan = self._plan(evolve(self._up_to(q, leaf, middle), returns=(), aggregates=(), group_by=()), schema)
                if plan is None:
                    return found
                less, cut = self._find(plan, most)
                if cut:
                    many = middle
                else:
                    few, found = middle, less
            if found and len(found[0]):
                return found
            q = self._up_to(q, leaf, many)
        return []

    def _up_to(self, q: p.Query, leaf: p.Leaf, row: int) -> p.Query:
        last = x.Compare("<=", x.Column(leaf.var, self.row, "int64"), x.Const(row, "int64"))
        return evolve(q, where=(*q.where, last))

    def pinned(self, q: p.Query, rows: Rows) -> p.Query:
        """The query, of which each given variable is bound to the given events, if they are there."""
        pins = []
        for var, at in rows.items():
            column = x.Column(var, self.row, "int64")
            items = [at] if isinstance(at, int) else list(at)
            if not isinstance(at, int) and not items:
                continue
            pins.append(x.InSet(column, tuple(x.Const(int(i), "int64") for i in items), False))
        return evolve(q, where=(*q.where, *pins))

    def extent(self, window: p.Window) -> int:
        """The size of a window that holds the whole stream."""
        if window.kind == "count":
            return len(self.stream)
        return int(self.stream.ts[-1]) - int(self.stream.ts[0]) if len(self.stream) else 0

    def said(self, c: x.Expr) -> str:
        """A condition as text; one that asks for given events says so."""
        if isinstance(c, x.InSet) and isinstance(c.value, x.Column) and c.value.attr == self.row:
            return f"{c.value.var} as given"
        return text.scalar(c, self.schema.timestamp_unit)

    def text(self, q: p.Query) -> str:
        """A variant as text, over the schema of the plan."""
        where = tuple(c for c in q.where if c != x.TRUE and not (len(cs := x.columns(c)) == 1 and self._asks(cs)))
        return text.query(evolve(q, where=where), self.schema.timestamp_unit, sep=" ")

    def _asks(self, columns: frozenset[tuple[str, str]]) -> bool:
        return all(attr == self.row for _, attr in columns)

    @property
    def late(self) -> bool:
        late = time.monotonic() > self.deadline
        self.ran_out |= late
        return late

    def _plan(self, q: p.Query, schema: Schema | None, *, quick: bool = False) -> Plan | None:
        """The plan of a variant, or None where there is none, or no time; `quick`: one match is enough."""
        if self.late:
            return None
        try:
            return (self.quick if quick else self.plan).with_query(q, schema or self.schema)
        except QueryError:  # a variant that the language does not have
            return None

    def _limits(self, most: int) -> Limits:
        left = max(0.05, min(self.seconds / (40 if most == 1 else 10), self.deadline - time.monotonic()))
        return Limits(max_matches=most, max_seconds=left, max_state_bytes=self.limits.max_state_bytes)

    def _find(self, plan: Plan, most: int) -> tuple[list[Any], list[str]]:
        cut: list[str] = []
        if plan.query.empty is not None:
            return [], cut
        try:
            return find(plan, self.stream, self._limits(most), cut=cut), cut
        except LimitExceeded as e:
            return [], [e.limit]


def _free_name(schema: Schema) -> str:
    name = "row"
    while name in schema.columns() or name in (schema.time, schema.type):
        name += "_"
    return name


def _with_column(schema: Schema, name: str) -> Schema:
    data = schema.to_dict()
    own = data["attributes"]
    if schema.per_type is not None:
        data["attributes"] = {n: {**c, name: "int64"} for n, c in own.items()}
    else:
        data["attributes"] = {**own, name: "int64"}
    return Schema.from_dict(data)
