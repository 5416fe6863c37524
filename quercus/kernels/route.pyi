from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Offsets = NDArray[np.int32] | NDArray[np.int64]
Indices = (
    NDArray[np.int8]
    | NDArray[np.int16]
    | NDArray[np.int32]
    | NDArray[np.int64]
    | NDArray[np.uint8]
    | NDArray[np.uint16]
    | NDArray[np.uint32]
)

CHECKED: bool

def code_strings(
    offsets: Offsets,
    data: NDArray[np.uint8],
    names: list[bytes],
    out: NDArray[np.int16],
    validity: NDArray[np.uint8] | None = None,
    bit_offset: int = 0,
) -> None: ...

class Found:
    counts: list[int]
    def write(self, arrays: list[NDArray[np.int64]], starts: Sequence[int]) -> None: ...
    def arrays(self) -> list[NDArray[np.int64]]: ...

def find_strings(
    offsets: Offsets,
    data: NDArray[np.uint8],
    names: list[bytes],
    validity: NDArray[np.uint8] | None = None,
    bit_offset: int = 0,
    first_row: int = 0,
    at_once: int = 8,
) -> Found: ...
def find_codes(
    codes: Indices,
    mapping: NDArray[np.int16],
    names: int,
    validity: NDArray[np.uint8] | None = None,
    bit_offset: int = 0,
    first_row: int = 0,
) -> Found: ...
def route_strings(
    offsets: Offsets,
    data: NDArray[np.uint8],
    names: list[bytes],
    validity: NDArray[np.uint8] | None = None,
    bit_offset: int = 0,
    first_row: int = 0,
    at_once: int = 8,
) -> list[NDArray[np.int64]]: ...
def route_codes(
    codes: Indices,
    mapping: NDArray[np.int16],
    names: int,
    validity: NDArray[np.uint8] | None = None,
    bit_offset: int = 0,
    first_row: int = 0,
) -> list[NDArray[np.int64]]: ...

class Router:
    @staticmethod
    def can(names: list[bytes]) -> bool: ...
    def __init__(self, names: list[bytes]) -> None: ...
