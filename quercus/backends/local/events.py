"""The stream in memory: a table, the order of its events, and ways to reach their types, attributes and keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import field, frozen
from numpy.typing import NDArray

from quercus.backends.local.inputs import as_table
from quercus.backends.local.keys import Dictionary, pair_codes, part_codes
from quercus.backends.local.pool import ranges, shared
from quercus.backends.local.values import Values, combined, from_arrow, raw
from quercus.errors import DataError
from quercus.kernels import gather, group, memory, route
from quercus.schema import Schema

Positions = NDArray[np.int64]
_MOST_NAMES = 32767  # of one call of the kernel
_MOST_ROWS = 2**31 - 1
SHARE = 2**17  # rows that make a thread worth waking
TAKEN = 2**14  # rows that are fetched one by one


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
    threads: int = 1  # that share what is done row by row
    _cache: dict[Hashable, Any] = field(factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.ts)

    def route(self, wanted: Sequence[tuple[str, ...]]) -> list[Positions]:
        """For each request, the positions of the events whose type is one of its names, ascending.

        Requests may share an array: do not write into them.
        """
        merged: dict[tuple[str, ...], Positions] = dict(self._cache.get("routed", {}))
        names = list(dict.fromkeys(n for request in wanted if request not in merged for n in request))
        found: dict[str, Positions] = {}
        for first in range(0, len(names), _MOST_NAMES):
            part = names[first : first + _MOST_NAMES]
            found.update(zip(part, self._positions(part), strict=True))
        for request in wanted:
            if request not in merged:
                parts = [found[n] for n in dict.fromkeys(request) if len(found[n])]
                if len(parts) > 1:
                    merged[request] = np.sort(np.concatenate(parts), kind="stable")
                else:
                    merged[request] = parts[0] if parts else np.empty(0, np.int64)
        return [merged[request] for request in wanted]

    def keep_routed(self, found: Mapping[tuple[str, ...], Positions]) -> None:
        """Answers to requests that were routed before, for whoever makes them again; buffers are then shared too."""
        self._once("routed", dict).update(found)

    def shared(self) -> dict[Hashable, Any]:
        """What queries over this stream have made for each other; nothing, where there is but one."""
        return self._once("shared", dict) if "routed" in self._cache else {}

    def values(self, attr: str, positions: Positions) -> Values:
        """The values of an attribute, `ts` and `type` included, at some positions."""
        return self._column(attr).take(self.input_rows(positions))

    def column(self, attr: str) -> Values:
        """All values of an attribute, in the order of the input."""
        return self._column(attr)

    def rows_of(self, attr: str, texts: Sequence[str]) -> list[Positions]:
        """The rows of the input in which a string attribute is each of these texts, ascending."""
        wanted = [t.encode("utf-8", "surrogatepass") for t in texts]
        return _routed(self.table.column(self._name(attr)), wanted, self.threads)

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

    def integers(self, attrs: Sequence[str], positions: Sequence[Positions]) -> list[tuple[Positions, int, int]] | None:
        """The values of integer attributes, each at some positions, the least and the greatest; None: one of them is no
        integer, or has nulls.
        """
        columns = [self._column(attr) for attr in attrs]
        if any(c.kind not in ("int64", "timestamp") or c.valid is not None for c in columns):
            return None
        rows = [self.input_rows(at) for at in positions]
        found, parts = self._taken(gather.take_with_range, [c.data for c in columns], rows)
        ends = [[(low, high) for part, low, high in own if len(part)] for own in parts]
        return [
            (f, min((low for low, _ in e), default=0), max((high for _, high in e), default=-1))
            for f, e in zip(found, ends, strict=True)
        ]

    def times(self, positions: Sequence[Positions]) -> list[Positions]:
        """The times at some positions, each as often as it is asked for."""
        return self._taken(gather.take, [self.ts] * len(positions), positions)[0]

    def _taken(self, take: Any, columns: Sequence[Any], rows: Sequence[Positions]) -> tuple[list[Positions], list[Any]]:
        """Each column at its rows, and what each call of `take` said, column by column."""
        threads = self.threads if sum(map(len, rows)) >= 2 * TAKEN else 1
        found = [memory.empty(len(r)) for r in rows]
        parts = [ranges(len(r), threads, TAKEN) for r in rows]
        tasks = [
            partial(take, c, r[a:b], f[a:b])
            for c, r, f, own in zip(columns, rows, found, parts, strict=True)
            for a, b in own
        ]
        told = iter(shared(tasks, threads))
        return found, [[next(told) for _ in own] for own in parts]

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
        if attr == "ts":
            return self.schema.time
        return self.schema.type if attr == "type" and self.schema.type else attr

    def _once(self, key: Hashable, make: Any) -> Any:
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    def _positions(self, names: list[str]) -> list[Positions]:
        """The positions of each name's events, ascending."""
        wanted = [n.encode("utf-8", "surrogatepass") for n in names]
        found = _routed(self.table.column(self.schema.type), wanted, self.threads)
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


def load(
    events: object,
    schema: Schema,
    columns: frozenset[str] | None = None,
    threads: int = 1,
    *,
    typed: bool = True,
) -> Events:
    """The stream of anything that `plan.run` takes; of its attributes only `columns`, if given.

    `typed`: whether its events have a type; where they need none, a column of types is left where it is.
    """
    table = as_table(events, schema, columns, typed=typed)
    time = combined(table.column(schema.time))
    ts = raw(time.view(pa.int64()), np.int64)
    parts = ranges(len(ts), threads, SHARE)
    if all(shared([partial(group.is_sorted, ts[max(a - 1, 0) : b]) for a, b in parts], threads)):
        check_times(ts, schema)
        return Events(table, schema, ts, None, threads)
    rows = np.argsort(ts, kind="stable")
    check_times(ts[rows], schema, rows)
    return Events(table, schema, ts[rows], rows, threads)


def check_times(ts: Positions, schema: Schema, rows: Positions | None = None, first_row: int = 0) -> None:
    """The ends of int64 stand for times before and after all others: no event may have them. `ts` is in order."""
    for at, end in ((0, -(2**63)), (-1, 2**63 - 1)):
        if len(ts) and ts[at] == end:
            place = at % len(ts)
            row = first_row + (place if rows is None else int(rows[place]))
            raise DataError(f"column '{schema.time}', row {row}: {end} is no time", column=schema.time, row=row)


# Routing --------------------------------------------------------------------------------------------------------------


def _routed(column: Any, names: list[bytes], threads: int) -> list[Positions]:
    """The rows of each name in a type column, part by part over the buffers as they lie."""
    tasks, first = [], 0
    for whole in column.chunks:
        find = _finder(whole, names)
        for begin in range(0, len(whole), _MOST_ROWS):
            size = min(len(whole) - begin, _MOST_ROWS)
            tasks += [partial(find, begin + a, b - a, first + begin + a) for a, b in ranges(size, threads, SHARE)]
        first += len(whole)
    workers = threads if first >= 2 * SHARE else 1
    parts = shared(tasks, workers)
    if len(parts) == 1:
        return parts[0].arrays()
    starts = np.zeros((len(parts) + 1, len(names)), np.int64)
    for i, part in enumerate(parts):
        starts[i + 1] = starts[i] + part.counts
    found = [memory.empty(n) for n in starts[-1].tolist()]
    writes = [partial(p.write, found, at) for p, at in zip(parts, starts.tolist(), strict=False)]
    shared(writes, workers if starts[-1].sum() >= 2 * SHARE else 1)
    return found


def _finder(chunk: pa.Array, names: list[bytes]) -> Callable[[int, int, int], route.Found]:
    """Finds the rows of the names in a part of a chunk: from where, how many rows, and the number of the first."""
    if not pa.types.is_dictionary(chunk.type):
        return lambda begin, size, first_row: route.find_strings(
            names=names, first_row=first_row, **string_buffers(chunk.slice(begin, size))
        )
    mapping = np.empty(len(chunk.dictionary), np.int16)
    route.code_strings(names=names, out=mapping, **string_buffers(chunk.dictionary))
    indices = chunk.indices
    if pa.types.is_uint64(indices.type):
        indices = indices.cast(pa.int64())
    validity = indices.buffers()[0]
    bits = None if validity is None else np.frombuffer(validity, np.uint8)
    codes = raw(indices, indices.type.to_pandas_dtype())
    return lambda begin, size, first_row: route.find_codes(
        codes[begin : begin + size], mapping, len(names), bits, indices.offset + begin, first_row
    )


def string_buffers(array: pa.Array) -> dict[str, Any]:
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
