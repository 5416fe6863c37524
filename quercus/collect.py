"""Statistics from a table: types are counted, values are looked at in a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quercus.errors import DataError
from quercus.stats import Attribute, Stats

MOST_TYPES = 200  # types whose attributes are looked at, the most frequent first
MOST_PAIRED = 20  # types whose order is looked at
QUANTILES = 32
COMMON = 16  # values kept as more frequent than others
SEED = 1


def collect(made: type[Stats], table: Any, sample: int | None, window: int | None, time: str, type: str) -> Stats:
    """What `Stats.collect` gives."""
    data = table if isinstance(table, pa.Table) else pa.table(table)
    for needed in (time, type):
        if needed not in data.column_names:
            raise DataError(f"no column '{needed}'", column=needed)
    if sample is not None and sample < 1:
        raise DataError(f"a sample of {sample} events")
    if data.num_rows == 0:
        return made()
    times = data[time].cast(pa.int64())
    span = max(1, pc.max(times).as_py() - pc.min(times).as_py() + 1)
    counts = pc.value_counts(data[type].combine_chunks())
    found = {str(c["values"]): c["counts"] for c in counts.to_pylist() if c["values"] is not None}
    rates = {name: n / span for name, n in found.items()}
    names = [n for n in data.column_names if n not in (time, type) and not pa.types.is_nested(data[n].type)]
    seen = _sampled(data, sample)
    distinct = {n: max(1, round(_spread(seen[n], data.num_rows).distinct)) for n in names}
    kinds = seen[type].cast(pa.string())
    looked_at = sorted(found, key=lambda name: (-found[name], name))[:MOST_TYPES]
    attributes = {}
    for name in looked_at:
        own = seen.filter(pc.equal(kinds, name))
        if own.num_rows:
            attributes[name] = {n: _spread(own[n], found[name]) for n in names}
    order = {} if window is None else _order(data, time, type, looked_at[:MOST_PAIRED], window, span)
    return made(rates, distinct, {}, sum(found.values()) / span, attributes, order)


def _sampled(data: pa.Table, sample: int | None) -> pa.Table:
    if sample is None or data.num_rows <= sample:
        return data
    rows = np.random.Generator(np.random.PCG64(SEED)).choice(data.num_rows, sample, replace=False)
    return data.take(pa.array(np.sort(rows)))


def _spread(column: Any, whole: int) -> Attribute:
    """The values of a sample of `whole` events."""
    n = len(column)
    there = pc.drop_null(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    if pa.types.is_dictionary(there.type):
        there = there.cast(there.type.value_type)
    nulls = 1 - len(there) / n
    if not len(there):
        return Attribute(0.0, nulls)
    counted = pc.value_counts(there)
    counts = counted.field("counts").to_numpy()
    return Attribute(
        _distinct(counts, len(there), (1 - nulls) * whole), nulls, _quantiles(there), _common(counted, len(there))
    )


def _distinct(counts: NDArray[np.int64], n: int, whole: float) -> float:
    """How many values the whole has: those that a sample has once stand for several."""
    once = int((counts == 1).sum())
    return min(whole, len(counts) - once + once * float(np.sqrt(max(whole / n, 1.0))))


def _quantiles(values: Any) -> tuple[float, ...]:
    kind = values.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        numbers = values.cast(pa.timestamp("us") if pa.types.is_date(kind) else kind).cast(pa.int64()).to_numpy()
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers = values.to_numpy(zero_copy_only=False)
    else:
        return ()
    numbers = np.asarray(numbers, np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return ()
    return tuple(float(q) for q in np.quantile(numbers, np.linspace(0, 1, QUANTILES + 1)))


def _common(counted: Any, n: int) -> tuple[tuple[Any, float], ...]:
    """Values twice as frequent as the average, and seen more than a few times."""
    counts = counted.field("counts").to_numpy()
    least = max(2 * n / len(counts), 3) if len(counts) > COMMON else 1
    at = np.argsort(-counts, kind="stable")[:COMMON]
    values = counted.field("values").take(pa.array(at)).to_pylist()
    pairs = zip(values, counts[at], strict=True)
    kept = [(v, float(c / n)) for v, c in pairs if c >= least and isinstance(v, bool | int | float | str)]
    return tuple((v, part) for v, part in kept if not isinstance(v, float) or np.isfinite(v))


def _order(data: pa.Table, time: str, type: str, names: list[str], window: int, span: int) -> dict[str, float]:
    """Of each two types, ordered pairs within the window against those that rates alone would give."""
    times = data[time].cast(pa.int64()).to_numpy()
    kinds = data[type].cast(pa.string())
    by_type = {n: np.sort(times[pc.equal(kinds, n).to_numpy(zero_copy_only=False)]) for n in names}
    found = {}
    for a, first in by_type.items():
        for b, second in by_type.items():
            pairs = later_pairs(first, second, window)
            expected = len(first) * len(second) * min(window, span) / span
            if expected >= 1:
                found[f"{a};{b}"] = pairs / expected
    return found


def later_pairs(first: NDArray[np.int64], second: NDArray[np.int64], window: int, most: int = 2_000) -> float:
    """Pairs of a time of `first` and a later one of `second` within a window, counted from some of `first`."""
    step = max(1, len(first) // most)
    some = first[::step]
    ends = np.where(some > np.iinfo(np.int64).max - window, np.iinfo(np.int64).max, some + window)
    upto = np.searchsorted(second, ends, "right")
    return float((upto - np.searchsorted(second, some, "right")).sum() * (len(first) / max(len(some), 1)))
