from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
Small = NDArray[np.int32]
Keys = NDArray[Any]  # uint32 or uint64

def candidates(low: Small, high: Small, first: Small, events: int) -> int: ...
def by_event(
    low: Small, high: Small, at: Index, columns: list[Small], out: list[Index], most: int = 16, past: int = ...
) -> None: ...
def lexical(
    columns: list[Index], low: int, bits: int, keys: Keys, spare: Keys, begins: NDArray[np.uint32], out: list[Small]
) -> None: ...
