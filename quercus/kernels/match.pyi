from typing import Any

import numpy as np
from numpy.typing import NDArray

OK: int
STOPPED: int
TOO_MANY: int
TOO_LONG: int
TOO_LARGE: int
NO_MEMORY: int
TOO_MUCH_STATE: int
MAX_CLIQUE: int
STACK_DEPTH: int
OPS: list[str]
GROUP_FUNCTIONS: tuple[str, ...]

class Matcher:
    def __init__(self, program: Any) -> None: ...
    def load(self, data: Any) -> None: ...
    def outermost(self, flat: int) -> tuple[int, int]: ...
    def cancel(self) -> None: ...
    def run(
        self,
        flat: int,
        segments: NDArray[np.int64],
        max_matches: int,
        max_nanoseconds: int,
        first: int = 0,
        last: int = -1,
    ) -> tuple[int, list[NDArray[np.int64]], list[tuple[NDArray[np.int64], NDArray[np.int64]]]]: ...
    def limit_state(self, max_bytes: int, round_size: int) -> None: ...
    def joins(self, flat: int) -> list[tuple[int, int, int, int]]: ...
    @property
    def grew(self) -> int: ...
    @property
    def counters(self) -> dict[str, int]: ...
