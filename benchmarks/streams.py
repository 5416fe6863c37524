"""Seeded event streams. Each is made on first use and kept as Parquet under build/bench.

ts counts 0, 1, 2, ..., so that the ts of an event is also its row; types are plain strings.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

FOLDER = Path(__file__).parents[1] / "build" / "bench"
TYPES = [f"T{i}" for i in range(20)]
TRACKS = {"t147073": 1661, "t56437": 1350, "t189820": 1325, "t531386": 1268}  # events of each; the rest is 'other'
_SEED = 20261115


def stream(name: str) -> pa.Table:
    """A stream by name: u100k, u1m, u10m (types T0..T19, all as frequent) or music1m (four rare tracks)."""
    path = FOLDER / f"{name}.parquet"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        pq.write_table(_MAKERS[name](), part, compression="zstd")
        part.rename(path)  # an interrupted run leaves no half file under the name
    return pq.read_table(path).combine_chunks()


def uniform(n: int, seed: int) -> pa.Table:
    r = np.random.Generator(np.random.PCG64(seed))
    return _table(r, r.integers(0, len(TYPES), n), TYPES)


def music(n: int, seed: int) -> pa.Table:
    r = np.random.Generator(np.random.PCG64(seed))
    codes = np.zeros(n, np.int64)
    shuffled, first = r.permutation(n), 0
    for code, count in enumerate(TRACKS.values(), start=1):
        codes[shuffled[first : first + count]] = code
        first += count
    return _table(r, codes, ["other", *TRACKS])


def _table(r: np.random.Generator, codes: NDArray[np.int64], names: list[str]) -> pa.Table:
    """The other columns are drawn after the types, id before value: the order is part of the seed."""
    n = len(codes)
    types = pa.DictionaryArray.from_arrays(codes.astype(np.int8), names).cast(pa.string())
    ids = r.integers(0, 100, n)
    return pa.table({"ts": np.arange(n), "type": types, "id": ids, "value": np.round(r.random(n) * 1000, 4)})


_MAKERS = {
    "u100k": lambda: uniform(100_000, _SEED),
    "u1m": lambda: uniform(1_000_000, _SEED + 1),
    "music1m": lambda: music(1_000_000, _SEED + 2),
    "u10m": lambda: uniform(10_000_000, _SEED + 3),
}
