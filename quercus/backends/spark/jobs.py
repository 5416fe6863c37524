"""What all tasks have in common: a job that travels as JSON, and the rows of a partition as one table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import asdict, frozen
from numpy.typing import NDArray

from quercus.backends.local.values import combined


@frozen
class Travelling:
    """What a worker needs to know, as plain data."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def fields_of(text: str) -> dict[str, Any]:
    """The fields of a job; JSON has lists where they have tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in json.loads(text).items()}


def table_of(batches: Iterator[pa.RecordBatch], columns: Sequence[str]) -> pa.Table | None:
    """The rows of a partition under the names that they have at home; None: there are none."""
    taken = list(batches)
    if not any(b.num_rows for b in taken):
        return None
    return pa.Table.from_batches(taken).rename_columns(list(columns))


def same_as_next(column: Any) -> NDArray[np.bool_]:
    """Whether each value but the last is the one that follows it; null is like nothing."""
    own = combined(column)
    equal = pc.equal(own[1:], own[:-1]).fill_null(False)
    found: NDArray[np.bool_] = equal.to_numpy(zero_copy_only=False)
    return found
