from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

OK: int
STOPPED: int
TOO_MANY: int
TOO_LONG: int
NO_MEMORY: int
TOO_MUCH_STATE: int
STARTS: int
MAY_END: int
ENDS: int
MAY_STAY: int
STAYS: int
MAY_TAKE: int
TAKES: int
TO_ALL: int
TO_LOOSE: int
NOWHERE: int
BY_GROUP: int
BY_WINDOW: int

Index = NDArray[np.int64]

class Pass:
    @property
    def status(self) -> int: ...
    def cancel(self) -> None: ...

def together(passes: Sequence[Pass], n: int, max_state: int = ...) -> int: ...

class Windows(Pass):
    def __init__(
        self,
        code: Sequence[int],
        preds: Sequence[tuple[int, int] | None],
        const_f: Sequence[float],
        n_columns: int,
        alike: bool,
        keeping: int,
    ) -> None: ...
    def load(
        self,
        n: int,
        columns: Sequence[tuple[NDArray[Any], NDArray[np.uint8] | None]],
        const_i: Index,
    ) -> None: ...
    def begin(
        self,
        steps: Index,
        codes: Index,
        homes: Index,
        flags: NDArray[np.uint16],
        ends: Index,
        position: int,
        place: int,
        n_groups: int,
        max_closed: int,
        max_nanoseconds: int,
        max_state: int,
        part: int = 0,
        parts: int = 1,
        size: int = -1,
    ) -> None: ...
    def finish(self) -> tuple[int, Index, Index, Index, Index, Index]: ...
    def delay(self, position: int, lead: int) -> None: ...
    def trim(self) -> None: ...
    def groups(self) -> Index: ...
    def mark(self, used: NDArray[np.uint8]) -> None: ...
    def move(self, places: Index) -> None: ...
    def state(self) -> tuple[Index, Index]: ...
    def restore(self, windows: Index, tuples: Index, n_groups: int, position: int) -> None: ...
    @property
    def mixed(self) -> bool: ...
    @property
    def touched(self) -> int: ...
    @property
    def most_open(self) -> int: ...
    @property
    def open(self) -> int: ...
    @property
    def has_loose(self) -> bool: ...
    @property
    def state_bytes(self) -> int: ...

class Pairs(Pass):
    def __init__(
        self,
        steps: Index,
        codes: Index,
        flags: NDArray[np.uint16],
        n_groups: int,
        max_closed: int,
        max_nanoseconds: int,
        max_state: int,
    ) -> None: ...
    def finish(self) -> tuple[int, Index, Index]: ...
