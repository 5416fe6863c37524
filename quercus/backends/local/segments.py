"""Functions of many sets at once: values, and the range of them that each set is. No set is listed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quercus.backends.local.values import Values
from quercus.ir.expr import GroupName
from quercus.kernels import ranges

Index = NDArray[np.int64]
_LOW = np.int64(2**32 - 1)
_EXACT = 2**53


def fold(name: GroupName, values: Values, starts: Index, ends: Index) -> Values:
    """One value per set. Nulls are ignored, but by first and last; over no value all but count are null.

    An integer sum beyond int64 is null. Floats are added from left to right; what a NaN touches is NaN.

    >>> numbers = Values("int64", np.array([4, 5, 6]))
    >>> fold("sum", numbers, np.array([0, 2, 1]), np.array([2, 2, 3])).to_arrow().to_pylist()
    [9, None, 11]
    """
    if name in ("first", "last"):
        return _ends(values, starts, ends, last=name == "last")
    if name == "sum" and values.kind != "float64":
        values, starts, ends = without_nulls(values, starts, ends)
        high, low = _integer_sums(values.data, starts, ends)
        fits = (high >= -(2**31)) & (high < 2**31) & (ends > starts)
        return Values("int64", (high << 32) | low, None if fits.all() else fits)
    return fold_owned(name, values, starts, ends, np.arange(len(starts)), len(starts))


def fold_owned(name: GroupName, values: Values, starts: Index, ends: Index, owners: Index, count: int) -> Values:
    """The same for each of `count` owners of sets; not for first, last, or the sum of integers."""
    values, starts, ends = without_nulls(values, starts, ends)
    counts = _added(ends - starts, owners, count)
    match name:
        case "count":
            return Values("int64", counts)
        case "min" | "max":
            return _extreme(name, values, starts, ends, owners, counts)
        case _ if values.kind == "float64":
            sums = ranges.sums(np.ascontiguousarray(values.data), starts, ends, owners, count)
            with np.errstate(all="ignore"):
                return Values("float64", sums / counts if name == "avg" else sums, _some(counts))
        case _:
            return Values("float64", _means(values, starts, ends, owners, counts), _some(counts))


def exact_sums(values: Values, starts: Index, ends: Index, owners: Index, count: int) -> list[int | None]:
    """The sums of integers over the sets of each owner, however large; None over no value."""
    values, starts, ends = without_nulls(values, starts, ends)
    sums = _exact(*_integer_sums(values.data, starts, ends), owners, count)
    counts = _added(ends - starts, owners, count)
    return [s if n else None for s, n in zip(sums, counts.tolist(), strict=True)]


def without_nulls(values: Values, starts: Index, ends: Index) -> tuple[Values, Index, Index]:
    """The same sets without their nulls."""
    if values.valid is None:
        return values, starts, ends
    kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(values.valid)])
    return values.take(np.flatnonzero(values.valid)), kept[starts], kept[ends]


def _some(counts: Index) -> NDArray[np.bool_] | None:
    some = counts > 0
    return None if some.all() else some


def _ends(values: Values, starts: Index, ends: Index, *, last: bool) -> Values:
    some = _some(ends - starts)
    if not len(values):
        return _all_null(values, len(starts))
    at = ends - 1 if last else starts
    found = values.take(at if some is None else np.where(some, at, 0))
    if some is None:
        return found
    return Values(found.kind, found.data, some if found.valid is None else some & found.valid)


def _all_null(values: Values, n: int) -> Values:
    data: Any = pa.nulls(n, values.data.type) if values.kind == "string" else np.zeros(n, values.data.dtype)
    return Values(values.kind, data, np.zeros(n, np.bool_) if n else None)


def _added(numbers: Index, owners: Index, count: int) -> Index:
    """The sum of the numbers of each owner."""
    found = np.zeros(count, np.int64)
    np.add.at(found, owners, numbers)
    return found


def _integer_sums(data: NDArray[Any], starts: Index, ends: Index) -> tuple[Index, Index]:
    """Sums as high * 2**32 + low with 0 <= low < 2**32: exact for any number of int64s that memory holds."""
    data = data.astype(np.int64, copy=False)

    def sums(part: Index) -> Index:
        running = np.concatenate([np.zeros(1, np.int64), np.cumsum(part)])  # may wrap; differences wrap back
        return np.asarray(running[ends] - running[starts])

    low = sums(data & _LOW)
    return sums(data >> 32) + (low >> 32), low & _LOW


def _exact(high: Index, low: Index, owners: Index, count: int) -> list[int]:
    """The sums of each owner's high * 2**32 + low."""
    parts = zip(*(_added(part, owners, count).tolist() for part in (high >> 32, high & _LOW, low)), strict=True)
    return [(top << 64) + (middle << 32) + bottom for top, middle, bottom in parts]


def _means(values: Values, starts: Index, ends: Index, owners: Index, counts: Index) -> NDArray[np.float64]:
    """Of integers, rounded once."""
    high, low = _integer_sums(values.data, starts, ends)
    if len(owners) == len(counts) and (np.abs(high) < _EXACT >> 32).all() and (owners == np.arange(len(owners))).all():
        with np.errstate(all="ignore"):
            return np.asarray(((high << 32) | low).astype(np.float64) / counts)
    sums = _exact(high, low, owners, len(counts))
    return np.array([s / n if n else np.nan for s, n in zip(sums, counts.tolist(), strict=True)], np.float64)


def _extreme(name: str, values: Values, starts: Index, ends: Index, owners: Index, counts: Index) -> Values:
    some = _some(counts)
    if some is not None and not some.any():
        return _all_null(values, len(counts))
    data, ranked = _ranks(values.data) if values.kind == "string" else (values.data, None)
    wide = np.ascontiguousarray(data if data.dtype == np.float64 else data.astype(np.int64, copy=False))
    found = ranges.extremes(wide, starts, ends, owners, len(counts), name == "max").astype(data.dtype, copy=False)
    return Values(values.kind, found if ranked is None else ranked.take(pa.array(found)), some)


def _ranks(strings: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """The place of each string in the sorted list of the distinct ones, by code point, and that list."""
    encoded = strings.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[encoded.indices.to_numpy()], encoded.dictionary.take(pa.array(order))
