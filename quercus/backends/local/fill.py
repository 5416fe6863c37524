"""A stream's events in a program's buffers: columns that conditions read, strings as labels that compare as text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quercus.backends.local.events import TAKEN, Events
from quercus.backends.local.expressions import evaluate
from quercus.backends.local.pool import shared
from quercus.backends.local.specs import BufferData, ColumnData, ColumnSpec, Filled, Index, Program
from quercus.backends.local.values import Values

TEXT_FUNCTIONS = {"lower": pc.utf8_lower, "upper": pc.utf8_upper, "length": pc.utf8_length}


def fill(program: Program, events: Events, buffers: list[BufferData]) -> Filled:
    """The data of a whole stream. Strings become ranks of one sorted dictionary: code point order is that of UTF-8."""
    tasks = [partial(column, c, events, buffers[c.buffer].row) for c in program.columns]
    large = sum(len(buffers[c.buffer].row) for c in program.columns) >= 2 * TAKEN
    values = shared(tasks, events.threads if large else 1)
    found = [v.data for c, v in zip(program.columns, values, strict=True) if c.text]
    known = sorted_texts([*found, [s for _, s in program.texts]], program.maps) if found or program.texts else None
    columns = [
        (labels(v.data, known), valid(v)) if c.text else numbers(c, v)
        for c, v in zip(program.columns, values, strict=True)
    ]
    constants = np.array(program.const_i, np.int64)
    for number, s in program.texts:
        constants[number] = labels([s], known)[0]
    return Filled(buffers, columns, constants, [table(name, known) for name in program.maps])


def column(c: ColumnSpec, events: Events, at: Index) -> Values:
    """A column's values at some positions."""
    return evaluate(c.expr, lambda k: events.values(k.attr, at), len(at))


def numbers(c: ColumnSpec, v: Values) -> ColumnData:
    kind: Any = np.float64 if c.expr.type == "float64" else np.int64
    return np.ascontiguousarray(v.data, kind), valid(v)


def valid(v: Values) -> NDArray[np.uint8] | None:
    return None if v.valid is None else np.ascontiguousarray(v.valid).view(np.uint8)


# Strings --------------------------------------------------------------------------------------------------------------


def sorted_texts(parts: Sequence[Any], functions: Sequence[str] = ()) -> pa.Array:
    """The distinct strings in order, with what text functions make of them, as often as there are functions."""
    known = pc.drop_null(pa.concat_arrays([pa.array(p, pa.large_string()) for p in parts])).unique()
    for _ in functions:
        made = [TEXT_FUNCTIONS[f](known) for f in functions if f != "length"]
        known = pa.concat_arrays([known, *made]).unique()
    return known.take(pc.sort_indices(known))


def labels(strings: Any, known: Any) -> Index:
    """The place of each string among the known ones; -1 for null."""
    found = pc.index_in(pa.array(strings, pa.large_string()), value_set=known)
    return np.ascontiguousarray(pc.fill_null(found, -1).cast(pa.int64()).to_numpy())


def table(function: str, known: Any) -> Index:
    """What a text function makes of each label: another label, or a length."""
    if known is None:
        return np.zeros(0, np.int64)
    made = TEXT_FUNCTIONS[function](known)
    return made.cast(pa.int64()).to_numpy() if function == "length" else labels(made, known)
