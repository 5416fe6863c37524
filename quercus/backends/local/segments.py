"""Functions of many sets at once: the values of all sets end to end, and where each set begins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quercus.backends.local.values import Values
from quercus.ir.expr import GroupName

Offsets = NDArray[np.int64]  # of n sets: n + 1 places, the first 0, the last the number of values
_LOW = np.int64(2**32 - 1)
_EXACT = 2**53


def fold(name: GroupName, values: Values, offsets: Offsets) -> Values:
    """One value per set. Nulls are ignored, but by first and last; over no value all but count are null.

    An integer sum beyond int64 is null. Floats are added from left to right; what a NaN touches is NaN.

    >>> numbers = Values("int64", np.array([4, 5, 6]))
    >>> fold("sum", numbers, np.array([0, 2, 2, 3])).to_arrow().to_pylist()
    [9, None, 6]
    """
    if name in ("first", "last"):
        return _ends(values, offsets, last=name == "last")
    values, offsets = without_nulls(values, offsets)
    counts = np.diff(offsets)
    match name:
        case "count":
            return Values("int64", counts)
        case "min" | "max":
            return _extreme(name, values, offsets)
        case "sum" if values.kind == "float64":
            return Values("float64", _float_sums(values.data, offsets), _some(counts))
        case "sum":
            high, low = _integer_sums(values.data, offsets)
            fits = (high >= -(2**31)) & (high < 2**31) & (counts > 0)
            return Values("int64", (high << 32) | low, None if fits.all() else fits)
        case _:
            return Values("float64", _means(values, offsets), _some(counts))


def exact_sums(values: Values, offsets: Offsets) -> list[int | None]:
    """The sums of integers, however large; None over no value."""
    values, offsets = without_nulls(values, offsets)
    high, low = _integer_sums(values.data, offsets)
    counts = np.diff(offsets)
    return [
        (h << 32) + lo if n else None for h, lo, n in zip(high.tolist(), low.tolist(), counts.tolist(), strict=True)
    ]


def without_nulls(values: Values, offsets: Offsets) -> tuple[Values, Offsets]:
    """The same sets without their nulls."""
    if values.valid is None:
        return values, offsets
    kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(values.valid)])
    return values.take(np.flatnonzero(values.valid)), kept[offsets]


def _some(counts: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    some = counts > 0
    return None if some.all() else some


def _ends(values: Values, offsets: Offsets, *, last: bool) -> Values:
    some = _some(np.diff(offsets))
    if not len(values):
        return _all_null(values, len(offsets) - 1)
    at = offsets[1:] - 1 if last else offsets[:-1]
    found = values.take(at if some is None else np.where(some, at, 0))
    if some is None:
        return found
    return Values(found.kind, found.data, some if found.valid is None else some & found.valid)


def _all_null(values: Values, n: int) -> Values:
    data: Any = pa.nulls(n, values.data.type) if values.kind == "string" else np.zeros(n, values.data.dtype)
    return Values(values.kind, data, np.zeros(n, np.bool_) if n else None)


def _float_sums(data: NDArray[np.float64], offsets: Offsets) -> NDArray[np.float64]:
    n = len(offsets) - 1
    of_set = np.repeat(np.arange(n), np.diff(offsets))
    return np.asarray(
        np.bincount(of_set, data, n), np.float64
    )  # adds one by one in order, which reduceat does not promise


def _integer_sums(data: NDArray[Any], offsets: Offsets) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sums as high * 2**32 + low with 0 <= low < 2**32: exact for any number of int64s that memory holds."""
    data = data.astype(np.int64, copy=False)

    def sums(part: NDArray[np.int64]) -> NDArray[np.int64]:
        running = np.concatenate([np.zeros(1, np.int64), np.cumsum(part)])  # may wrap; differences wrap back
        return np.asarray(running[offsets[1:]] - running[offsets[:-1]])

    low = sums(data & _LOW)
    return sums(data >> 32) + (low >> 32), low & _LOW


def _means(values: Values, offsets: Offsets) -> NDArray[np.float64]:
    counts = np.diff(offsets)
    if values.kind == "float64":
        with np.errstate(all="ignore"):
            return _float_sums(values.data, offsets) / counts
    high, low = _integer_sums(values.data, offsets)
    with np.errstate(all="ignore"):
        means = ((high << 32) | low).astype(np.float64) / counts
    for i in np.flatnonzero(((high >= _EXACT >> 32) | (high < -(_EXACT >> 32))) & (counts > 0)):
        means[i] = ((int(high[i]) << 32) + int(low[i])) / int(counts[i])  # rounded once, not twice
    return means


def _extreme(name: str, values: Values, offsets: Offsets) -> Values:
    some = np.diff(offsets) > 0
    if not some.any():
        return _all_null(values, len(offsets) - 1)
    data, ranked = _ranks(values.data) if values.kind == "string" else (values.data, None)
    least = np.minimum if name == "min" else np.maximum  # a NaN goes through both
    found = np.zeros(len(some), data.dtype)
    found[some] = least.reduceat(data, offsets[:-1][some])
    return Values(values.kind, found if ranked is None else ranked.take(pa.array(found)), None if some.all() else some)


def _ranks(strings: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """The place of each string in the sorted list of the distinct ones, by code point, and that list."""
    encoded = strings.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[encoded.indices.to_numpy()], encoded.dictionary.take(pa.array(order))
