import numpy as np
from numpy.typing import NDArray

MOST: int

def empty(n: int) -> NDArray[np.int64]: ...
def kept() -> int: ...
