from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]

def elements(values: Index, starts: Index, ends: Index) -> Index: ...
def sums(values: NDArray[np.float64], starts: Index, ends: Index, owners: Index, count: int) -> NDArray[np.float64]: ...
def extremes(
    values: NDArray[Any], starts: Index, ends: Index, owners: Index, count: int, most: bool
) -> NDArray[Any]: ...
