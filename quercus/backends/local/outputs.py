"""Matches as Arrow columns: bound events as structs, RETURN's expressions, lists for Kleene variables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
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
from quercus.kernels import gather, ranges
from quercus.schema import Schema

Rows = NDArray[np.int64]


@frozen(eq=False)
class Bound:
    """What one variable is bound to in all matches, as rows of the input.

    Plain: `held` has a row per match, -1 where the variable is absent. Kleene: match i has the rows from `starts[i]` to
    `ends[i]` of `held`, in order of position, so that a set costs the same however large it is; `absent` is True where
    the OR branch was not taken.

    >>> sets = Bound("b", True, np.array([10, 11, 12]), np.array([0, 0]), np.array([2, 3]))
    >>> sets.rows.tolist(), sets.offsets.tolist()
    ([10, 11, 10, 11, 12], [0, 2, 5])
    """

    var: str
    kleene: bool
    held: Rows
    starts: Rows | None = None
    ends: Rows | None = None
    absent: Mask | None = None

    @classmethod
    def listed(cls, var: str, elements: Rows, offsets: Rows, absent: Mask | None = None) -> Bound:
        """Sets whose elements stand end to end, with n + 1 offsets of the sets."""
        return cls(var, True, elements, offsets[:-1], offsets[1:], absent)

    @classmethod
    def joined(cls, parts: Sequence[Bound]) -> Bound:
        """One variable of several lots of matches, one after the other."""
        one = parts[0]
        if len(parts) == 1:
            return one
        if not one.kleene:
            return cls(one.var, False, np.concatenate([b.held for b in parts]))
        if len({id(b.held) for b in parts if len(b.held)}) > 1:
            parts = [b.narrowed for b in parts]
        arrays = {id(b.held): b.held for b in parts if len(b.held)}
        begin = dict(zip(arrays, np.cumsum([0, *map(len, arrays.values())]).tolist(), strict=False))
        held = np.concatenate([*arrays.values()]) if len(arrays) > 1 else next(iter(arrays.values()), one.held)
        starts = np.concatenate([b.starts + begin.get(id(b.held), 0) for b in parts if b.starts is not None])
        ends = np.concatenate([b.ends + begin.get(id(b.held), 0) for b in parts if b.ends is not None])
        absent = np.concatenate([np.zeros(len(b), bool) if b.absent is None else b.absent for b in parts])
        return cls(one.var, True, held, starts, ends, absent if absent.any() else None)

    def __len__(self) -> int:
        return len(self.held if self.starts is None else self.starts)

    @property
    def sizes(self) -> Rows:
        """How many elements each set has."""
        assert self.starts is not None
        assert self.ends is not None
        return self.ends - self.starts

    @cached_property
    def rows(self) -> Rows:
        """A row per match; of sets, the rows of all elements end to end, listed when first asked for."""
        if self.starts is None or self.ends is None:
            return self.held
        whole = len(self.starts) and self.starts[0] == 0 and self.ends[-1] == len(self.held)
        if whole and np.array_equal(self.starts[1:], self.ends[:-1]):  # end to end already
            return self.held
        return ranges.elements(self.held, self.starts, self.ends)

    @cached_property
    def offsets(self) -> Rows | None:
        """Where each set begins in `rows`, and the end; None of a plain variable."""
        return None if self.starts is None else np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])

    @cached_property
    def narrowed(self) -> Bound:
        """The same with no more in `held` than what the sets cover, or than all their elements, whichever is less."""
        if self.starts is None or self.ends is None:
            return self
        some = self.ends > self.starts
        low, high = int(self.starts[some].min(initial=len(self.held))), int(self.ends[some].max(initial=0))
        total = int(self.sizes.sum())
        if low == 0 and high == len(self.held) <= total:
            return self
        if total < high - low:
            assert self.offsets is not None
            return Bound.listed(self.var, self.rows, self.offsets, self.absent)
        starts, ends = (np.where(some, at - low, 0) for at in (self.starts, self.ends))
        return Bound(self.var, True, self.held[low:high], starts, ends, self.absent)

    def events(self) -> Rows:
        """Rows that all lie in matches, or between them: what `found_in` looks up."""
        return self.narrowed.held if self.kleene else self.held[self.held >= 0]

    def take(self, order: Rows) -> Bound:
        """Some matches, in that order."""
        if self.starts is None or self.ends is None:
            return Bound(self.var, False, gather.take(self.held, order))
        absent = None if self.absent is None else self.absent[order]
        starts, ends = gather.take(self.starts, order), gather.take(self.ends, order)
        return Bound(self.var, True, self.held, starts, ends, absent)

    def one(self, i: int) -> int | tuple[int, ...] | None:
        """What one match binds; None where the variable is absent."""
        if self.starts is None or self.ends is None:
            return int(self.held[i]) if self.held[i] >= 0 else None
        if self.absent is not None and self.absent[i]:
            return None
        return tuple(self.held[self.starts[i] : self.ends[i]].tolist())

    def identity(self, i: int) -> object:
        """The same of two matches if they bind the same."""
        if self.starts is None or self.ends is None:
            return int(self.held[i])
        if self.absent is not None and self.absent[i]:
            return None
        return blake2b(self.held[self.starts[i] : self.ends[i]].tobytes()).digest()

    def ends_of(self) -> tuple[Rows, Rows]:
        """The first and the last row of each match, -1 where there is none."""
        if self.starts is None or self.ends is None:
            return self.held, self.held
        some = self.ends > self.starts
        if some.all():
            return self.held[self.starts], self.held[self.ends - 1]
        first, last = np.full(len(self), -1, np.int64), np.full(len(self), -1, np.int64)
        first[some], last[some] = self.held[self.starts[some]], self.held[self.ends[some] - 1]
        return first, last

    def numbered(self, numbers: Rows | None) -> Bound:
        """The same events by other numbers: `numbers[row]` instead of `row`."""
        if numbers is None:
            return self
        b = self.narrowed
        rows = b.held if b.held.min(initial=0) >= 0 else np.maximum(b.held, 0)
        found = numbers[rows] if len(numbers) else rows
        return Bound(b.var, b.kleene, np.where(b.held < 0, -1, found), b.starts, b.ends, b.absent)

    def found_in(self, numbers: Rows) -> Bound:
        """The reverse: the place of each row in some ascending ones, that have all of `events`."""
        b = self.narrowed
        at = np.where(b.held < 0, -1, np.searchsorted(numbers, b.held))
        return Bound(b.var, b.kleene, at, b.starts, b.ends, b.absent)

    def head(self, n: int) -> Bound:
        """The first matches only."""
        return self.take(np.arange(min(n, len(self))))


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
        b = self.bound[g.var].narrowed
        assert b.starts is not None
        assert b.ends is not None
        if g.attr is None:
            return Values("int64", b.sizes)
        values = self.at(g.attr, b.held)
        return fold(g.name, values.as_float() if g.type == "float64" and g.name != "avg" else values, b.starts, b.ends)

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
        match_of = np.repeat(np.arange(len(b)), b.sizes)

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
    if any(b.absent is not None or (not b.kleene and (b.held < 0).any()) for b in bound):
        return [{n: r for n, r in match.items() if r is not None} for match in found]
    return found


def _python_rows(b: Bound) -> list[int | None] | list[list[int] | None]:
    if not b.kleene:
        return [r if r >= 0 else None for r in b.held.tolist()]
    b = b.narrowed
    assert b.starts is not None
    assert b.ends is not None
    rows = b.held.tolist()  # numbers that sets share are the same objects
    sets = [rows[i:j] for i, j in zip(b.starts.tolist(), b.ends.tolist(), strict=True)]
    if b.absent is None:
        return sets
    return [None if gone else s for s, gone in zip(sets, b.absent.tolist(), strict=True)]
