"""AGG and GROUPBY over listed matches (section 5 of docs/semantics.md)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quercus.backends.local.exact import exact
from quercus.backends.local.outputs import Answer
from quercus.backends.local.segments import exact_sums, fold_owned
from quercus.backends.local.values import Values
from quercus.ir import pattern as p

Index = NDArray[np.int64]


def aggregated(answer: Answer) -> pa.Table:
    """One row per group, in the order of their first matches; without GROUPBY one row always.

    Columns: `v.attr` for each GROUPBY, then the aggregates under their names.
    """
    group_of, first = groups_of(answer)
    columns = [answer.arrow_at(g.attr, answer.bound[g.var].rows[first]) for g in answer.query.group_by]
    columns += [_total(a, answer, group_of, len(first)) for a in answer.query.aggregates]
    names = [f"{g.var}.{g.attr}" for g in answer.query.group_by] + [a.name for a in answer.query.aggregates]
    return pa.Table.from_arrays(columns, names)


def groups_of(answer: Answer) -> tuple[Index, Index]:
    """The group of each match, numbered by first appearance, and the first match of each group.

    Null is a group of its own, and so is NaN.
    """
    count = len(answer)
    if not answer.query.group_by:
        return np.zeros(count, np.int64), np.zeros(1, np.int64)
    codes = group_codes([answer.column(g) for g in answer.query.group_by], count)
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse], first[order]


def group_codes(columns: list[Values], count: int) -> Index:
    """Numbers from 0 up that are equal where all values are."""
    codes = np.zeros(count, np.int64)
    for values in columns:
        own = _codes(values)
        pairs = codes * (own.max(initial=0) + 1) + own
        _, codes = np.unique(pairs, return_inverse=True)
    return codes


def _codes(values: Values) -> Index:
    if values.kind == "float64":
        data = np.where(np.isnan(values.data), np.nan, values.data + 0.0)  # -0.0 and 0.0 are one group, and all NaNs
        values = Values("float64", data, values.valid)
    encoded = values.to_arrow().dictionary_encode()
    return np.asarray(encoded.indices.fill_null(-1).to_numpy().astype(np.int64) + 1)


def _total(a: p.Aggregate, answer: Answer, group_of: Index, groups: int) -> pa.Array:
    """One aggregate of every group."""
    if a.var is None:
        return exact(np.bincount(group_of, minlength=groups).tolist(), a.name)
    b, owners = answer.bound[a.var].narrowed, group_of
    rows, starts, ends = b.held, b.starts, b.ends
    if starts is None or ends is None:
        if (rows < 0).any():
            rows, owners = rows[rows >= 0], owners[rows >= 0]
        starts, ends = np.arange(len(rows)), np.arange(1, len(rows) + 1)
    if a.attr is None:
        counts = np.zeros(groups, np.int64)
        np.add.at(counts, owners, ends - starts)
        return exact(counts.tolist(), a.name)
    values = answer.at(a.attr, rows)
    if a.function == "sum" and a.type == "int64":
        return exact(exact_sums(values, starts, ends, owners, groups), a.name)
    numbers = values.as_float() if a.type == "float64" and a.function != "avg" else values
    found = fold_owned(a.function, numbers, starts, ends, owners, groups)
    return found.to_arrow(answer.arrow_at(a.attr, rows[:0]).type if found.kind == "timestamp" else None)
