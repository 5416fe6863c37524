import numpy as np
from numpy.typing import NDArray

def group_by_code(codes: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
