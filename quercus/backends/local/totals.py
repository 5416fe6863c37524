"""AGG over a stream: running totals of every group, and the groups that a batch of matches changed."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from attrs import evolve

from quercus.backends.local.aggregate import aggregated, groups_of
from quercus.backends.local.changed import Changed, Layout, column_of
from quercus.backends.local.conform import wanted_columns
from quercus.backends.local.exact import exact
from quercus.backends.local.outputs import Answer, Bound
from quercus.errors import DataError
from quercus.ir import pattern as p
from quercus.schema import Schema

Key = tuple[Any, ...]
_FEW = 10**37  # what needs no closer look


class Group(Protocol):
    """What was found of a group: its values, and what is kept of each aggregate."""

    @property
    def shown(self) -> tuple[Any, ...]: ...
    @property
    def parts(self) -> list[Any]: ...


def nothing(q: p.Query) -> dict[str, Bound]:
    """No match."""
    none = np.empty(0, np.int64)
    return {
        v.var: Bound(v.var, False, none) if isinstance(v, p.Leaf) else Bound.listed(v.var, none, np.zeros(1, np.int64))
        for v in q.variables
    }


class Totals:
    """For each group, by its values, what each aggregate has come to: of an average, its sum and its count.

    Floats are added in the order of release, so that the last digits of a sum may differ from a run's.
    """

    def __init__(self, query: p.Query, schema: Schema) -> None:
        self.query, self.schema = query, schema
        self._made: Layout | None = None
        self.groups: dict[Key, list[Any]] = {}
        kinds = {**wanted_columns(schema), "ts": "int64"}
        self._parts = [_parts(a, kinds.get(a.attr or "", "float64")) for a in query.aggregates]
        self.flat = [part for parts in self._parts for part in parts]

    def add(self, answer: Answer) -> pa.Table:
        """Add some matches; gives the groups that they change, in the order of their first matches, with new totals."""
        schema = aggregated(answer).schema
        if not len(answer):
            return schema.empty_table()
        found = aggregated(evolve(answer, query=evolve(self.query, aggregates=tuple(self.flat))))
        width = len(self.query.group_by)
        rows: list[Key] = list(zip(*(keys_of(c) for c in found.columns[:width]), strict=True)) if width else [()]
        values = [plain(c).to_pylist() for c in found.columns[width:]]
        for i, key in enumerate(rows):
            self.merge(key, [v[i] for v in values])
        first = groups_of(answer)[1]
        shown = [answer.arrow_at(g.attr, answer.bound[g.var].rows[first]) for g in self.query.group_by]
        return self.table(rows, shown, schema)

    def add_groups(self, found: Sequence[Group], events: pa.Table, never: bool) -> Changed:
        """Add what was found of some groups; those that change. `never`: the one row of a query without matches."""
        first: dict[Key, Group] = {}
        for g in found:
            key = tuple(known(v) for v in g.shown)
            first.setdefault(key, g)
            self.merge(key, g.parts)
        keys: list[Key] = [()] if never else list(first)
        shown = [g.shown for g in first.values()] if self.query.group_by else []
        return Changed(self._layout_of(events), shown, [self._values(k) for k in keys])

    def _values(self, key: Key) -> list[Any]:
        """What each aggregate of a group has come to."""
        kept, at, found = self.groups.get(key) or [None] * len(self.flat), 0, []
        for a, parts in zip(self.query.aggregates, self._parts, strict=True):
            found.append(_value(a, kept[at : at + len(parts)]))
            at += len(parts)
        return found

    def check(self, found: Sequence[Group]) -> None:
        """Refuse what would have too many digits, before it is added."""
        merged: dict[Key, list[Any]] = {}
        for g in found:
            key = tuple(known(v) for v in g.shown)
            old = merged.setdefault(key, list(self.groups.get(key, [None] * len(self.flat))))
            for j, part in enumerate(self.flat):
                old[j] = _merged(part.function, old[j], g.parts[j])
        at = 0
        for a, parts in zip(self.query.aggregates, self._parts, strict=True):
            if a.function in ("count", "sum"):
                exact([k[at] for k in merged.values() if isinstance(k[at], int)], a.name)
            at += len(parts)

    def check_one(self, group: Group) -> None:
        """The same of the one group of a query without GROUPBY."""
        old = self.groups.get((), [None] * len(self.flat))
        for j, part in enumerate(self.flat):
            new = _merged(part.function, old[j], group.parts[j])
            if isinstance(new, int) and not -_FEW < new < _FEW:
                self.check([group])

    def _layout_of(self, events: pa.Table) -> Layout:
        if self._made is None:
            self._made = Layout(aggregated(Answer(events, self.schema, self.query, nothing(self.query))).schema)
        return self._made

    def merge(self, key: Key, parts: Sequence[Any]) -> None:
        """Add what is kept of each aggregate to a group."""
        known = self.groups.setdefault(key, [None] * len(self.flat))
        for j, part in enumerate(self.flat):
            known[j] = _merged(part.function, known[j], parts[j])

    def sum_up(self, answer: Answer) -> pa.Table:
        """The one row of a query without GROUPBY, whatever changed."""
        return self.table([()], [], aggregated(answer).schema)

    def table(self, rows: list[Key], shown: list[pa.Array], schema: pa.Schema) -> pa.Table:
        values = [self._values(k) for k in rows]
        names = [a.name for a in self.query.aggregates]
        columns = [
            column_of([v[i] for v in values], schema.field(len(shown) + i).type, name) for i, name in enumerate(names)
        ]
        return pa.Table.from_arrays([*shown, *columns], schema=schema)

    @property
    def bytes(self) -> int:
        """What groups take, about."""
        return len(self.groups) * (200 + 40 * len(self.flat))

    # snapshots

    def to_json(self) -> list[Any]:
        return [[[_coded(k) for k in key], [_coded(v) for v in kept]] for key, kept in self.groups.items()]

    def from_json(self, data: Any) -> None:
        for key, kept in data:
            if len(key) != len(self.query.group_by) or len(kept) != len(self.flat):
                raise DataError("not the totals of this query")
            self.groups[tuple(_decoded(k) for k in key)] = [_decoded(v) for v in kept]


def _parts(a: p.Aggregate, kind: Any) -> tuple[p.Aggregate, ...]:
    """What is kept of an aggregate."""
    if a.function != "avg":
        return (a,)
    return (
        evolve(a, function="sum", name=f"{a.name}, sum", type=kind),
        evolve(a, function="count", name=f"{a.name}, n"),
    )


def _merged(function: str, known: Any, new: Any) -> Any:
    new = int(new) if isinstance(new, Decimal) else new
    if known is None or new is None:
        return new if known is None else known
    if function in ("count", "sum"):
        return known + new
    if isinstance(new, float) and (np.isnan(new) or np.isnan(known)):
        return float("nan")
    return min(known, new) if function == "min" else max(known, new)


def _value(a: p.Aggregate, kept: list[Any]) -> Any:
    if a.function == "avg":
        total, count = kept
        return None if total is None or not count else total / count
    return 0 if a.function == "count" and kept[0] is None else kept[0]


def plain(column: Any) -> Any:
    """Moments as numbers."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def keys_of(column: Any) -> list[Any]:
    """Values as parts of a group's key: NaN is one value, and so are 0.0 and -0.0."""
    return [known(v) for v in plain(column).to_pylist()]


def known(v: Any) -> Any:
    return "NaN" if isinstance(v, float) and v != v else v + 0.0 if isinstance(v, float) else v


def _coded(v: Any) -> Any:
    return [v.hex()] if isinstance(v, float) else v


def _decoded(v: Any) -> Any:
    return float.fromhex(v[0]) if isinstance(v, list) else v
