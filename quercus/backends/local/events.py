"""The stream in memory: a table, the order of its events, and ways to reach their types, attributes and keys."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import field, frozen
from numpy.typing import NDArray

from quercus.backends.local.inputs import as_table
from quercus.backends.local.keys import Dictionary, pair_codes, part_codes
from quercus.backends.local.values import Values, combined, from_arrow, raw
from quercus.errors import DataError
from quercus.kernels import gather, group, route
from quercus.schema import Schema

Positions = NDArray[np.int64]
_MOST_NAMES = 32767  # of one call of the kernel
_MOST_ROWS = 2**31 - 1


@frozen(eq=False)
class Events:
    """A stream. Positions count from 0 in the order of time, among equal times in the order of the input.

    >>> from quercus.schema import Schema
    >>> events = load({"ts": [5, 1, 3], "type": ["A", "B", "A"], "id": [7, 8, None]}, Schema({"id": "int64"}))
    >>> [at.tolist() for at in events.route([("A",), ("A", "B")])]
    [[1, 2], [0, 1, 2]]
    >>> events.ts.tolist(), events.rows.tolist(), events.values("id", np.array([2, 1])).to_arrow().to_pylist()
    ([1, 3, 5], [1, 2, 0], [7, None])
    """

    table: pa.Table  # in the order of the input
    schema: Schema
    ts: NDArray[np.int64]  # by position
    rows: NDArray[np.int64] | None  # the input row of each position; None: the input was in order
    _cache: dict[Hashable, Any] = field(factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.ts)

    def route(self, wanted: Sequence[tuple[str, ...]]) -> list[Positions]:
        """For each request, the positions of the events whose type is one of its names, ascending.

        Requests may share an array: do not write into them.
        """
        names = list(dict.fromkeys(n for request in wanted for n in request))
        found: dict[str, Positions] = {}
        for first in range(0, len(names), _MOST_NAMES):
            part = names[first : first + _MOST_NAMES]
            found.update(zip(part, self._positions(part), strict=True))
        merged: dict[tuple[str, ...], Positions] = {}
        for request in wanted:
            if request not in merged:
                parts = [found[n] for n in dict.fromkeys(request) if len(found[n])]
                if len(parts) > 1:
                    merged[request] = np.sort(np.concatenate(parts), kind="stable")
                else:
                    merged[request] = parts[0] if parts else np.empty(0, np.int64)
        return [merged[request] for request in wanted]

    def values(self, attr: str, positions: Positions) -> Values:
        """The values of an attribute, `ts` and `type` included, at some positions."""
        return self._column(attr).take(self.input_rows(positions))

    def key_codes(self, attrs: Sequence[str], positions: Positions, space: Hashable = None) -> Positions:
        """Codes from 0 up that are equal where the keys are; -1 where a part is null or NaN, which equals nothing.

        Codes of two calls can be compared when both name the same attributes, or the same `space`, which is for keys
        that go by different names (`a.id = b.ref`) and have the same types.
        """
        owner = tuple(attrs) if space is None else (space,)
        codes: Positions | None = None
        for number, attr in enumerate(attrs):
            own = self._part_codes(attr, positions, (owner, number), alone=space is None)
            codes = own if codes is None else pair_codes(self._dictionary((owner, number, "pair")), codes, own)
        return np.zeros(len(positions), np.int64) if codes is None else codes

    def integers(self, attr: str, positions: Positions) -> tuple[Positions, int, int] | None:
        """The values of an integer attribute at some positions, the least and the greatest; None: it is not one, or has
        nulls.
        """
        column = self._column(attr)
        if column.kind not in ("int64", "timestamp") or column.valid is not None:
            return None
        return gather.take_with_range(column.data, self.input_rows(positions))

    def input_rows(self, positions: Positions) -> Positions:
        """The rows of the input at some positions."""
        return positions if self.rows is None else self.rows[positions]

    def _part_codes(self, attr: str, positions: Positions, owner: Hashable, *, alone: bool) -> Positions:
        if alone and (least := self._least(attr)) is not None:
            values = self.values(attr, positions)
            codes = values.data - least
            if values.valid is not None:
                codes[~values.valid] = -1
            return np.asarray(codes)
        return part_codes(self._dictionary(owner), self.values(attr, positions))

    def _least(self, attr: str) -> int | None:
        """The least value of an integer column of a narrow range: there, the distance from it is the code."""

        def find() -> int | None:
            column = self._column(attr)
            if column.kind not in ("int64", "timestamp") or not len(column):
                return None
            data = column.data if column.valid is None else column.data[column.valid]
            if not len(data):
                return 0
            least, most = int(data.min()), int(data.max())
            return least if most - least <= max(1024, 2 * len(column)) else None

        return self._once(("least", self._name(attr)), find)  # type: ignore[no-any-return]

    def _dictionary(self, owner: Hashable) -> Dictionary:
        return self._once(("keys", owner), Dictionary)  # type: ignore[no-any-return]

    def _column(self, attr: str) -> Values:
        name = self._name(attr)
        return self._once(("column", name), lambda: from_arrow(self.table.column(name)))  # type: ignore[no-any-return]

    def _name(self, attr: str) -> str:
        return self.schema.time if attr == "ts" else self.schema.type if attr == "type" else attr

    def _once(self, key: Hashable, make: Any) -> Any:
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    def _positions(self, names: list[str]) -> list[Positions]:
        """The positions of each name's events, ascending."""
        found = _routed(self.table.column(self.schema.type), [n.encode("utf-8", "surrogatepass") for n in names])
        if self.rows is None:
            return found
        place = self._once("place", self._place)
        return [np.sort(place[rows]) for rows in found]

    def _place(self) -> Positions:
        """The position of each input row."""
        assert self.rows is not None
        place = np.empty(len(self.rows), np.int64)
        place[self.rows] = np.arange(len(self.rows))
        return place


def load(events: object, schema: Schema, columns: frozenset[str] | None = None) -> Events:
    """The stream of anything that `plan.run` takes; of its attributes only `columns`, if given."""
    table = as_table(events, schema, columns)
    time = combined(table.column(schema.time))
    ts = raw(time.view(pa.int64()), np.int64)
    if group.is_sorted(ts):
        check_times(ts, schema)
        return Events(table, schema, ts, None)
    rows = np.argsort(ts, kind="stable")
    check_times(ts[rows], schema, rows)
    return Events(table, schema, ts[rows], rows)


def check_times(ts: Positions, schema: Schema, rows: Positions | None = None, first_row: int = 0) -> None:
    """The ends of int64 stand for times before and after all others: no event may have them. `ts` is in order."""
    for at, end in ((0, -(2**63)), (-1, 2**63 - 1)):
        if len(ts) and ts[at] == end:
            place = at % len(ts)
            row = first_row + (place if rows is None else int(rows[place]))
            raise DataError(f"column '{schema.time}', row {row}: {end} is no time", column=schema.time, row=row)


# Routing --------------------------------------------------------------------------------------------------------------


def _routed(column: Any, names: list[bytes]) -> list[Positions]:
    """The rows of each name in a type column, chunk by chunk over the buffers as they lie."""
    parts: list[list[Positions]] = []
    first = 0
    for whole in column.chunks:
        for start in range(0, len(whole), _MOST_ROWS):
            chunk = whole.slice(start, _MOST_ROWS)
            parts.append(_routed_chunk(chunk, names, first))
            first += len(chunk)
    if len(parts) == 1:
        return parts[0]
    return [np.concatenate([p[i] for p in parts]) if parts else np.empty(0, np.int64) for i in range(len(names))]


def _routed_chunk(chunk: pa.Array, names: list[bytes], first_row: int) -> list[Positions]:
    if not pa.types.is_dictionary(chunk.type):
        return route.route_strings(names=names, first_row=first_row, **_string_buffers(chunk))
    mapping = np.empty(len(chunk.dictionary), np.int16)
    route.code_strings(names=names, out=mapping, **_string_buffers(chunk.dictionary))
    indices = chunk.indices
    if pa.types.is_uint64(indices.type):
        indices = indices.cast(pa.int64())
    validity = indices.buffers()[0]
    return route.route_codes(
        raw(indices, indices.type.to_pandas_dtype()),
        mapping,
        len(names),
        None if validity is None else np.frombuffer(validity, np.uint8),
        indices.offset,
        first_row,
    )


def _string_buffers(array: pa.Array) -> dict[str, Any]:
    """The keyword arguments that describe a string array, slice or not, to the kernel."""
    validity, offsets, data = array.buffers()
    dtype: Any = np.int64 if pa.types.is_large_string(array.type) else np.int32
    if not len(array):
        return {"offsets": np.zeros(1, dtype), "data": np.empty(0, np.uint8)}
    return {
        "offsets": np.frombuffer(offsets, dtype)[array.offset : array.offset + len(array) + 1],
        "data": np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8),
        "validity": np.frombuffer(validity, np.uint8) if validity is not None and array.null_count else None,
        "bit_offset": array.offset,
    }
