"""Matches as Arrow columns: bound events as structs, RETURN's expressions, lists for Kleene variables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import field, frozen
from numpy.typing import NDArray

from quercus.backends.local.expressions import evaluate
from quercus.backends.local.segments import fold
from quercus.backends.local.values import Mask, Values, combined, from_arrow
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.schema import Schema

Rows = NDArray[np.int64]


@frozen(eq=False)
class Bound:
    """What one variable is bound to in all matches, as rows of the input.

    Plain: a row per match, -1 where the variable is absent. Kleene: the elements' rows of all matches end to end, each
    set in order of position, with n + 1 `offsets` of the sets; `absent` is True where the OR branch was not taken.
    """

    var: str
    kleene: bool
    rows: Rows
    offsets: Rows | None = None
    absent: Mask | None = None

    def __len__(self) -> int:
        return len(self.rows) if self.offsets is None else len(self.offsets) - 1

    def take(self, order: Rows) -> Bound:
        """Some matches, in that order."""
        if self.offsets is None:
            return Bound(self.var, False, self.rows[order], None, None)
        sizes = np.diff(self.offsets)[order]
        offsets = np.r_[0, np.cumsum(sizes)].astype(np.int64)
        picked = np.repeat(self.offsets[:-1][order] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Bound(self.var, True, self.rows[picked], offsets, None if self.absent is None else self.absent[order])

    def one(self, i: int) -> int | tuple[int, ...] | None:
        """What one match binds; None where the variable is absent."""
        if self.offsets is None:
            return int(self.rows[i]) if self.rows[i] >= 0 else None
        if self.absent is not None and self.absent[i]:
            return None
        return tuple(self.rows[self.offsets[i] : self.offsets[i + 1]].tolist())

    def numbered(self, numbers: Rows | None) -> Bound:
        """The same events by other numbers: `numbers[row]` instead of `row`."""
        if numbers is None:
            return self
        rows = self.rows if self.rows.min(initial=0) >= 0 else np.maximum(self.rows, 0)
        found = numbers[rows] if len(numbers) else rows
        return Bound(self.var, self.kleene, np.where(self.rows < 0, -1, found), self.offsets, self.absent)

    def found_in(self, numbers: Rows) -> Bound:
        """The reverse: the place of each row in some ascending ones."""
        at = np.where(self.rows < 0, -1, np.searchsorted(numbers, self.rows))
        return Bound(self.var, self.kleene, at, self.offsets, self.absent)

    def head(self, n: int) -> Bound:
        """The first matches only."""
        if self.offsets is None:
            return Bound(self.var, self.kleene, self.rows[:n])
        offsets = self.offsets[: n + 1]
        absent = None if self.absent is None else self.absent[:n]
        return Bound(self.var, self.kleene, self.rows[: offsets[-1]], offsets, absent)


@frozen(eq=False)
class Answer:
    """Matches over a table: everything that an output is made of."""

    table: pa.Table
    schema: Schema
    query: p.Query
    bound: dict[str, Bound]
    numbers: Rows | None = None  # the row number of each row of the table, where it is not its place
    _cache: dict[str, Any] = field(factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return next((len(b) for b in self.bound.values()), 0)

    # ---- values, to compute with

    def at(self, attr: str, rows: Rows) -> Values:
        """An attribute at some rows; at row -1 it is null."""
        column = self._once(f"values {attr}", lambda: from_arrow(self._array(attr)))
        missing = rows < 0
        if not missing.any():
            return column.take(rows)  # type: ignore[no-any-return]
        array = self.arrow_at(attr, rows)
        return from_arrow(array)

    def column(self, c: x.Column) -> Values:
        """A plain variable's attribute in each match."""
        return self.at(c.attr, self.bound[c.var].rows)

    def group(self, g: x.GroupCall) -> Values:
        """A group function of each match's set."""
        b = self.bound[g.var]
        assert b.offsets is not None
        if g.attr is None:
            return Values("int64", np.diff(b.offsets))
        values = self.at(g.attr, b.rows)
        return fold(g.name, values.as_float() if g.type == "float64" and g.name != "avg" else values, b.offsets)

    # ---- Arrow, to hand out

    def arrow_at(self, attr: str, rows: Rows) -> pa.Array:
        """An attribute at some rows as Arrow has it; at row -1 it is null."""
        missing = rows < 0
        array = self._array(attr)
        indices = pa.array(rows, mask=missing) if missing.any() else pa.array(rows)
        try:
            found = array.take(indices)
            return found.cast(found.type.value_type) if pa.types.is_dictionary(found.type) else found
        except pa.ArrowInvalid:  # more text than one array of plain strings holds
            return array.cast(pa.large_string()).take(indices)

    def variable(self, leaf: p.Leaf | p.Kleene) -> pa.Array:
        """The bound events as structs of `ts`, `type` and the attributes of the variable's type."""
        b = self.bound[leaf.var]
        owner = leaf.type if isinstance(leaf, p.Leaf) else leaf.leaf.type
        names = ["ts", "type", *(a for a in self.schema.attributes(owner) if a in self.table.column_names)]
        arrays = [self.arrow_at(a, b.rows) for a in names]
        missing = None if b.kleene or not (b.rows < 0).any() else pa.array(b.rows < 0)
        structs = pa.StructArray.from_arrays(arrays, names, mask=missing)
        return _lists(structs, b) if b.kleene else structs

    def output(self, o: p.Output) -> pa.Array:
        """A column of RETURN."""
        if isinstance(o.value, str):
            return self.variable(next(v for v in self.query.variables if v.var == o.value))
        if o.each:
            return self._each(o.value)
        if isinstance(o.value, x.Column):
            return self._typed(self.arrow_at(o.value.attr, self.bound[o.value.var].rows), o.value.type)
        return self._arrow(evaluate(o.value, self.column, len(self), self.group), o.value.type)

    def _each(self, e: x.Expr) -> pa.Array:
        """An expression of each element of a Kleene set: beside it, what the match has one of is repeated."""
        (b,) = {
            n.var: self.bound[n.var] for n in x.walk(e) if isinstance(n, x.Column) and self.bound[n.var].kleene
        }.values()
        assert b.offsets is not None
        match_of = np.repeat(np.arange(len(b)), np.diff(b.offsets))

        def column(c: x.Column) -> Values:
            return self.at(c.attr, b.rows if c.var == b.var else self.bound[c.var].rows[match_of])

        def group(g: x.GroupCall) -> Values:
            return self.group(g).take(match_of)

        return _lists(self._arrow(evaluate(e, column, len(b.rows), group), e.type), b)

    def _arrow(self, v: Values, kind: x.Type) -> pa.Array:
        return pa.nulls(len(v)) if kind == "null" else v.to_arrow(pa.timestamp(self.schema.timestamp_unit))

    def _typed(self, array: pa.Array, kind: x.Type) -> pa.Array:
        """Integers where a float64 is declared."""
        return array.cast(pa.float64(), safe=False) if kind == "float64" else array

    def _array(self, attr: str) -> pa.Array:
        name = self.schema.time if attr == "ts" else self.schema.type if attr == "type" else attr
        return self._once(f"array {name}", lambda: combined(self.table.column(name)))

    def _once(self, key: str, make: Any) -> Any:
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]


def projected(answer: Answer) -> pa.Table:
    """RETURN's columns; without RETURN, one per variable."""
    if answer.query.returns:
        columns = [(o.name, answer.output(o)) for o in answer.query.returns]
    else:
        columns = [(v.var, answer.variable(v)) for v in answer.query.variables]
    return pa.Table.from_arrays([c for _, c in columns], [n for n, _ in columns])


def _lists(elements: pa.Array, b: Bound) -> pa.Array:
    """One list per match; null where the variable is absent."""
    assert b.offsets is not None
    absent = None if b.absent is None or not b.absent.any() else pa.array(b.absent)
    if len(elements) < 2**31:
        return pa.ListArray.from_arrays(pa.array(b.offsets.astype(np.int32)), elements, mask=absent)
    return pa.LargeListArray.from_arrays(pa.array(b.offsets), elements, mask=absent)


def row_numbers(bound: Sequence[Bound]) -> list[dict[str, int | list[int]]]:
    """Each match as {variable: row or rows}; absent variables are left out."""
    columns = [_python_rows(b) for b in bound]
    names = [b.var for b in bound]
    found = [dict(zip(names, match, strict=True)) for match in zip(*columns, strict=True)]
    if any(b.absent is not None or (b.offsets is None and (b.rows < 0).any()) for b in bound):
        return [{n: r for n, r in match.items() if r is not None} for match in found]
    return found


def _python_rows(b: Bound) -> list[int | None] | list[list[int] | None]:
    rows = b.rows.tolist()
    if b.offsets is None:
        return [r if r >= 0 else None for r in rows]
    ends = b.offsets.tolist()
    sets = [rows[i:j] for i, j in pairwise(ends)]
    if b.absent is None:
        return sets
    return [None if gone else s for s, gone in zip(sets, b.absent.tolist(), strict=True)]
