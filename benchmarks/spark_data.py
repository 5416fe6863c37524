"""Events for the Spark benchmarks, as Parquet files: types T0..T19, one event a millisecond."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.streams import TYPES

FILES = 8
_SEED = 20261116


def write(folder: Path, events: int, keys: int, *, moments: bool = False, files: int = FILES) -> str:
    """So many events with ids below `keys`, in files that follow each other in time; `moments`: ts is a timestamp."""
    path = folder / f"{events}-{keys}{'-moments' if moments else ''}-{files}"
    if path.exists():
        return str(path)
    part = path.with_suffix(".part")
    part.mkdir(parents=True)
    r = np.random.Generator(np.random.PCG64(_SEED))
    borders = np.linspace(0, events, files + 1).astype(int)
    for i, (first, end) in enumerate(pairwise(borders)):
        pq.write_table(_table(r, int(first), int(end), keys, moments), part / f"part-{i:03}.parquet")
    part.rename(path)
    return str(path)


def _table(r: np.random.Generator, first: int, end: int, keys: int, moments: bool) -> pa.Table:
    n = end - first
    codes = r.integers(0, len(TYPES), n).astype(np.int8)
    ts = pa.array(np.arange(first, end))
    if moments:  # from 2024 on
        ts = pa.array(np.arange(first, end) + 1_704_067_200_000).cast(pa.timestamp("ms", "UTC"))
    return pa.table(
        {
            "ts": ts,
            "type": pa.DictionaryArray.from_arrays(codes, TYPES).cast(pa.string()),
            "id": r.integers(0, keys, n),
            "value": np.round(r.random(n) * 1000, 4),
        }
    )
