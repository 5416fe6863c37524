"""The plan and the events that a check looks at, and the questions it can ask the engine about them.

A question is a small query made from parts of the one that is checked. It is run until its first match, or for a few
seconds: what is not known by then is not said.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen
from numpy.typing import NDArray

from quercus.backends.base import Limits
from quercus.backends.local.inputs import as_table
from quercus.backends.local.run import run_plan
from quercus.backends.local.values import combined, raw
from quercus.errors import LimitExceeded, QuercusError
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir.span import Span
from quercus.lint.finding import Finding, Severity
from quercus.plan import Plan

SECONDS = 3


@frozen
class Condition:
    """A conjunct, with whether it acts in a negation, and whether a match may do without it."""

    test: x.Expr
    negated: bool
    optional: bool


class Look:
    """What checks look at."""

    def __init__(self, plan: Plan, events: object) -> None:
        self.plan, self.query, self.schema = plan, plan.bound, plan.schema
        table = as_table(events, plan.schema)
        ts = _times(table.column(self.schema.time))
        if len(ts) and (ts[1:] < ts[:-1]).any():
            order = np.argsort(ts, kind="stable")
            table, ts = table.take(pa.array(order)), ts[order]
        self.table, self.ts = table, ts

    def finding(
        self, code: str, severity: Severity, message: str, *, hint: str | None = None, span: Span | None = None
    ) -> Finding:
        return Finding(code, severity, message, hint, self.plan.text, span)

    # ---- the pattern

    @cached_property
    def leaves(self) -> dict[str, p.Leaf]:
        """Every variable as one event."""
        found = p.leaves(self.query.pattern, negated=True)
        return {k.var: k.leaf if isinstance(k, p.Kleene) else k for k in found}

    @cached_property
    def spans(self) -> dict[str, Span | None]:
        return {k.var: k.span for k in p.leaves(self.query.pattern, negated=True)}

    @cached_property
    def negated(self) -> frozenset[str]:
        return frozenset(self.leaves) - p.positive_variables(self.query.pattern)

    @cached_property
    def absent(self) -> frozenset[str]:
        """Positive variables that a match may do without."""
        return p.can_be_absent(self.query.pattern)

    @cached_property
    def branched(self) -> frozenset[str]:
        """Variables in a branch of an OR: something else may happen in their stead."""
        ors = [e for e in p.walk(self.query.pattern) if isinstance(e, p.Or)]
        return frozenset(v for e in ors for v in p.all_variables(e))

    @cached_property
    def conditions(self) -> list[Condition]:
        """All conjuncts without group functions."""
        found = [Condition(c, False, bool(x.variables(c) & self.absent)) for c in self.query.where]
        found += self._inside(self.query.pattern, negated=False)
        return [c for c in dict.fromkeys(found) if not x.has_group_call(c.test)]

    def _inside(self, e: p.Pattern, *, negated: bool) -> Iterator[Condition]:
        """Those that stand in negations, which are not tested on a match, and in branches."""
        if isinstance(e, p.Not):
            negated = True
            yield from (Condition(c, True, False) for c in e.where)
        if isinstance(e, p.Or):
            yield from (Condition(c, negated, True) for b in e.branches for c in b.where)
        for part in p.parts(e):
            yield from self._inside(part, negated=negated)

    # ---- the events

    @cached_property
    def counts(self) -> dict[str, int]:
        """Events of each type."""
        if not len(self.table):
            return {}
        counted = pc.value_counts(self.table.column(self.schema.type).cast(pa.string()).combine_chunks())
        return {str(c["values"]): c["counts"] for c in counted.to_pylist() if c["values"] is not None}

    def count(self, type_name: str) -> int:
        """Events of a type, or of those below it."""
        return sum(self.counts.get(name, 0) for name in self.schema.accepts(type_name))

    def of(self, type_name: str) -> pa.Table:
        names = pa.array(self.schema.accepts(type_name), pa.string())
        return self.table.filter(pc.is_in(self.table.column(self.schema.type).cast(pa.string()), names))

    def times(self, type_name: str) -> NDArray[np.int64]:
        return _times(self.of(type_name).column(self.schema.time))

    # ---- questions

    def holds(self, pattern: p.Pattern, *where: x.Expr, keyed: bool = True) -> bool | None:
        """Whether this pattern has a match under these conditions, in the window of the query; None: not known."""
        query = self.made(pattern, where)
        query = query if keyed else evolve(query, partition_by=())
        try:
            found = run_plan(self._planned(query), self.table, Limits(max_matches=0, max_seconds=SECONDS))
        except LimitExceeded as e:
            return True if e.limit == "max_matches" else None
        except QuercusError:
            return None
        return len(found) > 0

    def total(self, query: p.Query) -> int | None:
        """How many matches a query has, if that can be told in time."""
        counting = evolve(query, aggregates=(p.Aggregate("n", "count", None, None, "int64"),), returns=(), group_by=())
        limits = Limits(max_matches=2_000_000, max_seconds=SECONDS)
        try:
            found: Any = run_plan(self._planned(counting), self.table, limits)
            return int(found.to_arrow().column("n")[0].as_py())
        except QuercusError:
            return None

    def made(self, pattern: p.Pattern, where: tuple[x.Expr, ...]) -> p.Query:
        variables = tuple(p.leaves(pattern))
        empty: dict[str, Any] = {"returns": (), "aggregates": (), "group_by": (), "key": None, "reads": None}
        return evolve(self.query, pattern=pattern, where=where, variables=variables, empty=None, **empty)

    def _planned(self, query: p.Query) -> Plan:
        return self.plan.with_query(query, self.schema)


def _times(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Times as numbers: to_numpy() would look for pandas, and swallow a Ctrl-C that comes meanwhile."""
    return raw(combined(column).view(pa.int64()), np.int64)
