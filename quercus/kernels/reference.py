"""The kernels in plain Python: what each one means, for the tests to hold the compiled form against."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from quercus.kernels.gather import Column
    from quercus.kernels.keys import Numbers, Strings
    from quercus.kernels.route import Indices, Offsets


def _is_valid(validity: NDArray[np.uint8] | None, bit: int) -> bool:
    return validity is None or bool(validity[bit >> 3] >> (bit & 7) & 1)


def _split(codes: list[int], names: int, first_row: int) -> list[NDArray[np.int64]]:
    routed: list[list[int]] = [[] for _ in range(names)]
    for row, code in enumerate(codes, first_row):
        if code >= 0:
            routed[code].append(row)
    return [np.array(rows, dtype=np.int64) for rows in routed]


def code_strings(
    offsets: "Offsets",
    data: NDArray[np.uint8],
    names: list[bytes],
    out: NDArray[np.int16],
    validity: NDArray[np.uint8] | None = None,
    bit_offset: int = 0,
) -> None:
    """Fill out with the index in names of each row's string, -1 where it is null or none of them."""
    code_of = {name: code for code, name in enumerate(names)}
    text = data.tobytes()
    for row in range(len(offsets) - 1):
        name = text[int(offsets[row]) : int(offsets[row + 1])]
        out[row] = code_of.get(name, -1) if _is_valid(validity, bit_offset + row) else -1


def route_strings(
    offsets: "Offsets",
    data: NDArray[np.uint8],
    names: list[bytes],
    validity: NDArray[np.uint8] | None = None,
    bit_offset: int = 0,
    first_row: int = 0,
) -> list[NDArray[np.int64]]:
    """For each name the row numbers of its events, counted from first_row."""
    codes = np.empty(len(offsets) - 1, dtype=np.int16)
    code_strings(offsets, data, names, codes, validity, bit_offset)
    return _split(codes.tolist(), len(names), first_row)


def route_codes(
    codes: "Indices",
    mapping: NDArray[np.int16],
    names: int,
    validity: NDArray[np.uint8] | None = None,
    bit_offset: int = 0,
    first_row: int = 0,
) -> list[NDArray[np.int64]]:
    """route_strings for a dictionary-encoded column: mapping[code] is the index of the wanted name, or -1."""
    wanted = [
        int(mapping[code]) if 0 <= code < len(mapping) and _is_valid(validity, bit_offset + row) else -1
        for row, code in enumerate(codes.tolist())
    ]
    return _split(wanted, names, first_row)


def is_sorted(values: NDArray[np.int64]) -> bool:
    """The twin of ``group.is_sorted``."""
    listed = values.tolist()
    return bool(listed == sorted(listed))


def stable_order(values: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The twin of ``group.stable_order``."""
    listed = values.tolist()
    if listed and max(listed) - min(listed) >= 2**44:
        return None
    return np.array(sorted(range(len(listed)), key=listed.__getitem__), dtype=np.int64)


def order_of(firsts: list[NDArray[np.int64]], lasts: list[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """The twin of ``group.order_of``."""
    begun, ended = (list(zip(*(c.tolist() for c in columns), strict=True)) for columns in (firsts, lasts))

    def key(i: int) -> tuple[int, int, tuple[int, ...]]:
        return max(-1, *ended[i]), min((at for at in begun[i] if at >= 0), default=2**63 - 1), begun[i]

    order = sorted(range(len(begun)), key=key)
    return None if order == list(range(len(begun))) else np.array(order, dtype=np.int64)


def group_by_code(codes: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The twin of ``group.group_by_code``."""
    if any(c >= count for c in codes.tolist()):
        raise ValueError("a code beyond the count")
    groups: list[list[int]] = [[i for i, c in enumerate(codes.tolist()) if c == k] for k in range(count)]
    starts = np.cumsum([0, *(len(g) for g in groups)], dtype=np.int64)
    return np.array([i for g in groups for i in g], dtype=np.int64), starts


def take(column: "Column", rows: NDArray[np.int64]) -> "Column":
    """The twin of ``gather.take``."""
    return np.array([column[r] for r in rows.tolist()], dtype=column.dtype)


def take_with_range(column: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], int, int]:
    """The twin of ``gather.take_with_range``."""
    values = take(column, rows)
    return values, min(values.tolist(), default=0), max(values.tolist(), default=-1)


def by_key(
    keys: NDArray[np.int64], least: int, count: int, rows: NDArray[np.int64], column: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The twin of ``gather.by_key``."""
    codes = keys - least
    if len(keys) != len(rows) or any(c < 0 or c >= count for c in codes.tolist()):
        raise ValueError("a key outside the range given")
    order, starts = group_by_code(codes, count)
    return rows[order], column[rows[order]], starts


def empty(n: int) -> NDArray[np.int64]:
    """The twin of ``memory.empty``: what is in it is nobody's concern."""
    if n < 0:
        raise ValueError("an array of less than nothing")
    return np.zeros(n, dtype=np.int64)


def elements(values: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The twin of ``ranges.elements``."""
    return np.array([v for i, j in _ranges(values, starts, ends) for v in values[i:j].tolist()], dtype=np.int64)


def sums(
    values: NDArray[np.float64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    owners: NDArray[np.int64],
    count: int,
) -> NDArray[np.float64]:
    """The twin of ``ranges.sums``."""
    found = [0.0] * count
    for owner, (i, j) in zip(_owners(starts, owners, count), _ranges(values, starts, ends), strict=True):
        for v in values[i:j].tolist():
            found[owner] += v
    return np.array(found, dtype=np.float64)


def extremes(
    values: "Column",
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    owners: NDArray[np.int64],
    count: int,
    most: bool,
) -> "Column":
    """The twin of ``ranges.extremes``."""
    there: list[list[float]] = [[] for _ in range(count)]
    for owner, (i, j) in zip(_owners(starts, owners, count), _ranges(values, starts, ends), strict=True):
        there[owner] += values[i:j].tolist()
    nan = [any(v != v for v in own) for own in there]
    best = [float("nan") if n else (max if most else min)(own, default=0) for n, own in zip(nan, there, strict=True)]
    return np.array(best, dtype=values.dtype)


def _ranges(values: "Column", starts: NDArray[np.int64], ends: NDArray[np.int64]) -> list[tuple[int, int]]:
    listed = list(zip(starts.tolist(), ends.tolist(), strict=True))
    if not all(0 <= i <= j <= len(values) for i, j in listed):
        raise ValueError("a range that is none")
    return listed


def _owners(starts: NDArray[np.int64], owners: NDArray[np.int64], count: int) -> list[int]:
    if len(owners) != len(starts) or not all(0 <= owner < count for owner in owners.tolist()):
        raise ValueError("an owner beyond the count")
    return [int(owner) for owner in owners]


class Table:
    """Numbers for keys: see keys.pyx."""

    def __init__(self, n_parts: int, seed: int) -> None:
        self.known: dict[tuple[int | bytes, ...], int] = {}
        self.free: list[int] = []
        self.size = 0

    def __len__(self) -> int:
        return len(self.known)

    def codes(self, parts: "list[Numbers | Strings]", rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([self._code(_key(parts, r), learn=True) for r in rows.tolist()], np.int64)

    def find(self, parts: "list[Numbers | Strings]", rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([self._code(_key(parts, r), learn=False) for r in rows.tolist()], np.int64)

    def _code(self, key: tuple[int | bytes, ...] | None, *, learn: bool) -> int:
        if key is None:
            return -1
        if key not in self.known and not learn:
            return -2
        if key not in self.known:
            self.known[key] = self.free.pop() if self.free else self.size
            self.size = max(self.size, self.known[key] + 1)
        return self.known[key]

    def keep(self, codes: NDArray[np.int64]) -> None:
        kept = set(codes.tolist())
        self.free += sorted(c for c in self.known.values() if c not in kept)
        self.known = {k: c for k, c in self.known.items() if c in kept}


def _key(parts: "list[Numbers | Strings]", row: int) -> tuple[int | bytes, ...] | None:
    found: list[int | bytes] = []
    for part in parts:
        valid = part[-1]
        if valid is not None and not valid[row]:
            return None
        if len(part) == 2:
            found.append(int(part[0][row]))
        else:
            found.append(part[1][part[0][row] : part[0][row + 1]].tobytes())
    return tuple(found)
