from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
Column = TypeVar("Column", NDArray[np.int64], NDArray[np.float64])

def take(column: Column, rows: Index, out: Column | None = None) -> Column: ...
def take_with_range(column: Index, rows: Index, out: Index | None = None) -> tuple[Index, int, int]: ...
def by_key(keys: Index, least: int, count: int, rows: Index, column: Index) -> tuple[Index, Index, Index]: ...
