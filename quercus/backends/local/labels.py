"""Strings and keys of a stream as numbers: whatever was seen before has the number that it had."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quercus.backends.local.fill import TEXT_FUNCTIONS, sorted_texts
from quercus.backends.local.fill import labels as places_of
from quercus.backends.local.fill import table as table_of
from quercus.backends.local.specs import Index, Program
from quercus.backends.local.values import Values

_NONE = np.empty(0, np.int64)
_FEW = 64  # keys that are sooner looked up one by one


class Labelled(Protocol):
    """Who holds labels: a matcher of a stream, for one."""

    def set_constants(self, const_i: Index, maps: list[Index], /) -> None: ...
    def relabel(self, columns: list[int], moved: Index, const_i: Index, /) -> None: ...
    def column(self, number: int, /) -> Index: ...


class Labels:
    """Labels of strings. Where conditions only ask whether two are equal, a new string gets the next number; where
    they ask for more, labels are places in the sorted list of all, and change as it grows.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.ordered = program.ordered_texts or bool(program.maps)
        self.columns = [i for i, c in enumerate(program.columns) if c.text]
        self.known: Any = pa.array([], pa.large_string())
        self.numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.known) if self.ordered else len(self.numbers)

    def begin(self, matcher: Labelled) -> None:
        """The constants of the conditions."""
        texts = [s for _, s in self.program.texts]
        if not texts and not self.columns:
            return
        self._learn(pa.array(texts, pa.large_string()), matcher)
        matcher.set_constants(*self._constants())

    def of(self, arrays: list[Any], matcher: Labelled) -> list[Index]:
        """The labels of some arrays of strings; -1 for null."""
        if not arrays:
            return []
        if not self.ordered:
            return [self._equal(a) for a in arrays]
        together = pa.concat_arrays([pa.array(a, pa.large_string()) for a in arrays])
        self._learn(together, matcher)
        return [places_of(a, self.known) for a in arrays]

    def texts(self) -> list[str]:
        """The strings of all labels."""
        return list(self.known.to_pylist() if self.ordered else self.numbers)

    def forget(self, matcher: Labelled) -> None:
        """Keep the strings of kept events and of conditions only."""
        used = np.unique(np.concatenate([matcher.column(c) for c in self.columns])) if self.columns else _NONE
        texts = [s for _, s in self.program.texts]
        moved = np.full(len(self), -1, np.int64)
        if self.ordered:
            before = self.known
            self.known = sorted_texts([before.take(pa.array(used[used >= 0])), texts], self.program.maps)
            kept = before.take(pa.array(used[used >= 0]))
            moved[used[used >= 0]] = places_of(kept, self.known)
        else:
            wanted = set(used.tolist()) | {self.numbers[s] for s in texts}
            left = [(s, n) for s, n in self.numbers.items() if n in wanted]
            self.numbers = {s: i for i, (s, _) in enumerate(left)}
            moved[[n for _, n in left]] = np.arange(len(left))
        constants, maps = self._constants()
        matcher.set_constants(constants, maps)
        matcher.relabel(self.columns, moved, constants)

    def _equal(self, array: Any) -> Index:
        encoded = pa.array(array, pa.large_string()).dictionary_encode()
        numbers = self.numbers
        found = [numbers.setdefault(s, len(numbers)) for s in encoded.dictionary.to_pylist()]
        return np.asarray(np.array([*found, -1], np.int64)[encoded.indices.fill_null(-1).to_numpy()])

    def _learn(self, array: Any, matcher: Labelled) -> None:
        if not self.ordered:
            self._equal(array)
            return
        known = sorted_texts([self.known, array], self.program.maps)
        if len(known) > len(self.known):
            moved = places_of(self.known, known)
            self.known = known
            constants, maps = self._constants()
            matcher.set_constants(constants, maps)
            matcher.relabel(self.columns, moved, constants)

    def _constants(self) -> tuple[Index, list[Index]]:
        constants = np.array(self.program.const_i, np.int64)
        for number, s in self.program.texts:
            constants[number] = places_of([s], self.known)[0] if self.ordered else self.numbers[s]
        return constants, [table_of(name, self.known) for name in self.program.maps if name in TEXT_FUNCTIONS]


class Keys:
    """Segments of keys: each value, or tuple of values, that was seen has one, until it is let go."""

    def __init__(self) -> None:
        self.segments: dict[Any, int] = {}
        self.values: list[Any] = []  # of each segment
        self.free: list[int] = []
        self.unused: set[int] = set()  # the same
        self.new: list[int] = []  # of the batch at hand

    def of(self, parts: list[Values], *, alone: bool) -> Index:
        """A segment for each event; where a part is null, a new one each (`alone`) or -1."""
        if len(parts) == 1 and parts[0].kind == "int64" and parts[0].valid is None and len(parts[0]) <= _FEW:
            return np.array([self._segment(k) for k in parts[0].data.tolist()], np.int64)
        codes, keys = _codes(parts)
        found = np.array([*(self._segment(k) for k in keys), -1], np.int64)[codes]
        if alone:
            for i in np.flatnonzero(found < 0):
                found[i] = self._new(None)
        return np.ascontiguousarray(found)

    def find(self, parts: list[Values]) -> Index:
        """The segment of each event that has one; -1 where a part is null, -2 where the key is new: it stays so."""
        codes, keys = _codes(parts)
        return np.array([*(self.segments.get(k, -2) for k in keys), -1], np.int64)[codes]

    def keep(self) -> None:
        """The batch at hand is taken."""
        self.new.clear()

    def undo(self) -> None:
        """It is taken back."""
        for s in reversed(self.new):
            self.let_go([s])
            if s == len(self.values) - 1:
                self.values.pop()
                self.free.remove(s)
                self.unused.discard(s)
        self.new.clear()

    def let_go(self, segments: list[int]) -> None:
        """Forget some; those of a batch that was taken back are forgotten already."""
        for s in segments:
            if s >= len(self.values) or s in self.unused:
                continue
            if self.values[s] is not None:
                del self.segments[self.values[s]]
            self.values[s] = None
            self.free.append(s)
            self.unused.add(s)

    def _segment(self, key: Any) -> int:
        found = self.segments.get(key)
        if found is None:
            found = self.segments[key] = self._new(key)
        return found

    def _new(self, key: Any) -> int:
        if self.free:
            s = self.free.pop()
            self.unused.discard(s)
            self.values[s] = key
        else:
            s = len(self.values)
            self.values.append(key)
        self.new.append(s)
        return s


def _codes(parts: list[Values]) -> tuple[NDArray[np.int64], list[Any]]:
    """A code for each event, -1 where a part is null or NaN, and the key of each code."""
    columns = [_encoded(v) for v in parts]
    if len(columns) == 1:
        return columns[0]
    missing = np.any([codes < 0 for codes, _ in columns], axis=0)
    stacked = np.stack([codes for codes, _ in columns])
    distinct, inverse = np.unique(stacked, axis=1, return_inverse=True)
    keys = [
        tuple(keys[c] if c >= 0 else None for (_, keys), c in zip(columns, group, strict=True))
        for group in distinct.T.tolist()
    ]
    used = sorted(set(inverse[~missing].tolist()))
    number = np.full(len(keys) + 1, -1, np.int64)
    number[used] = np.arange(len(used))
    return np.where(missing, -1, number[inverse.reshape(-1)]), [keys[u] for u in used]


def _encoded(v: Values) -> tuple[NDArray[np.int64], list[Any]]:
    if v.kind == "float64":
        mask = np.isnan(v.data) if v.valid is None else np.isnan(v.data) | ~v.valid
        array = pa.array(v.data + 0.0, mask=mask)  # 0.0 and -0.0 are one value
    else:
        array = v.to_arrow()
        if v.kind == "timestamp":
            array = array.view(pa.int64())
    encoded = array.dictionary_encode()
    return encoded.indices.fill_null(-1).to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
