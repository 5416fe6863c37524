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

Sets = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]  # match i has rows[starts[i]:ends[i]]

def limit_width(most: int) -> int: ...

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
        room: int = 0,
    ) -> tuple[int, list[NDArray[np.int64]], list[Sets]]: ...
    def limit_state(self, max_bytes: int, round_size: int) -> None: ...
    def joins(self, flat: int) -> list[tuple[int, int, int, int]]: ...
    def tally(self, flat: int) -> tuple[list[tuple[int, int, int]], int, int, int]: ...
    def tally_set(self, number: int) -> int: ...
    def tally_negation(self, number: int) -> tuple[int, int, int, list[int]]: ...
    @property
    def grew(self) -> int: ...
    @property
    def counters(self) -> dict[str, int]: ...

Found = tuple[int, list[NDArray[np.int64]], list[Sets]]
Moment = tuple[int, int, int]

class StreamMatcher(Matcher):
    events: int
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
    def live(self, least_ts: int, least_pos: int) -> list[int]: ...
    def positions(self) -> list[int]: ...
    def set_positions(self, next_: NDArray[np.int64]) -> None: ...
    def kept(self, b: int) -> NDArray[np.int64]: ...
    def kept_positions(self, b: int) -> NDArray[np.int64]: ...
    def column(self, c: int) -> NDArray[np.int64]: ...
    def relabel(self, columns: list[int], labels: NDArray[np.int64], constants: NDArray[np.int64]) -> None: ...
    def set_constants(self, constants: NDArray[np.int64], maps: list[NDArray[np.int64]] | None) -> None: ...

class Feed:
    def __init__(
        self, matcher: StreamMatcher, names: list[bytes], ts_column: int, type_column: int, wide: bool
    ) -> None: ...
    def step(
        self, capsule: Any, place: int, clock: int, reach: int, max_matches: int, max_nanoseconds: int
    ) -> Raw | None: ...

class Raw:
    status: int
    clock: int
    count: int
    pieces: tuple[Piece, ...]
    def __len__(self) -> int: ...
    def take(self) -> tuple[list[NDArray[np.int64]], list[Sets]]: ...
    def numbered(self) -> tuple[Any, ...]: ...
    def answer(self) -> Any: ...
    def closer(self) -> Any: ...

PIECES: int
SLACK: int

class Course:
    clock: int
    place: int
    rows: int
    seen: int
    live: int

class Piece:
    events: Any
    first: int
    places: NDArray[np.int64] | None
    rows: NDArray[np.int64] | int
    last_ts: int
    level: int
    straight: bool
    def __init__(
        self,
        events: Any,
        first: int,
        places: NDArray[np.int64] | None,
        rows: NDArray[np.int64] | int,
        last_ts: int,
        level: int = 0,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def last(self) -> int: ...
    def all_places(self) -> NDArray[np.int64]: ...
    def index(self, places: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def row_numbers(self, index: NDArray[np.int64]) -> NDArray[np.int64]: ...

class Like:
    def __init__(self, pattern: object, held: object) -> None: ...
    def __call__(self, value: object) -> Any: ...

class Inlet:
    def __init__(
        self,
        feed: Feed,
        course: Course,
        kind: type,
        schema: Any,
        history: Any,
        reach: int,
        matches: Like,
        bound: list[Like] | None,
    ) -> None: ...
    def push(self, batch: Any, engine: Any, limits: Any) -> Any: ...
