from typing import Any

import numpy as np
from numpy.typing import NDArray

OK: int
STOPPED: int
TOO_MANY: int
TOO_LONG: int
TOO_LARGE: int
NO_MEMORY: int
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
    @property
    def counters(self) -> dict[str, int]: ...

Found = tuple[int, list[NDArray[np.int64]], list[tuple[NDArray[np.int64], NDArray[np.int64]]]]
Moment = tuple[int, int, int]

class StreamMatcher(Matcher):
    events: int
    bytes: int
    def __init__(
        self, program: Any, searches: list[tuple[int, int, str, int]], keyed: bool, own_positions: bool
    ) -> None: ...
    def number(self, segments: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def append(
        self,
        b: int,
        ts: NDArray[np.int64],
        pos: NDArray[np.int64],
        row: NDArray[np.int64],
        segments: NDArray[np.int64],
        columns: list[tuple[NDArray[Any], NDArray[np.uint8] | None]],
    ) -> None: ...
    def run(  # type: ignore[override]
        self, number: int, before: Moment, now: Moment, max_matches: int, max_nanoseconds: int
    ) -> Found: ...
    def commit(self, least_ts: int, least_pos: int, all_: bool) -> list[int]: ...
    def undo(self) -> None: ...
    def positions(self) -> list[int]: ...
    def set_positions(self, next_: NDArray[np.int64]) -> None: ...
    def kept(self, b: int) -> NDArray[np.int64]: ...
    def kept_positions(self, b: int) -> NDArray[np.int64]: ...
    def relabel(self, columns: list[int], labels: NDArray[np.int64], constants: NDArray[np.int64]) -> None: ...
    def set_constants(self, constants: NDArray[np.int64], maps: list[NDArray[np.int64]] | None) -> None: ...

class Feed:
    def __init__(
        self, matcher: StreamMatcher, names: list[bytes], ts_column: int, type_column: int, wide: bool
    ) -> None: ...
    def take(self, capsule: Any, place: int, clock: int) -> int | None: ...
