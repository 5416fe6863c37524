"""Results listed with one more event: the kernel beside its twin."""

from __future__ import annotations

import doctest
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from quercus.kernels import listing, reference_listing

Rows = list[tuple[int, ...]]


def int64(values: Any) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def int32(values: Any) -> NDArray[np.int32]:
    return np.array(values, np.int32)


def matches(r: Random, positions: int, width: int, count: int, far: int) -> Rows:
    """Matches of ascending positions, in lexical order."""
    found = set()
    for _ in range(count):
        start = r.randrange(max(1, positions - width))
        reach = range(start + 1, min(positions, start + far))
        if len(reach) >= width - 1:
            found.add((start, *sorted(r.sample(reach, width - 1))))
    return sorted(found)


def columns_of(rows: Rows, width: int, kind: Any) -> list[NDArray[Any]]:
    return [np.array([row[c] for row in rows], kind) for c in range(width)]


def aligned(n: int) -> NDArray[np.int64]:
    """Numbers that begin a line of the cache."""
    room = np.full(n + 8, -7)
    first = -room.ctypes.data % 64 // 8
    return room[first : first + n]


@pytest.mark.parametrize("seed", range(300))
def test_listings_by_event_agree(seed: int) -> None:
    r = Random(seed)
    positions, width = r.choice([3, 20, 60]), r.randint(1, 5)
    rows = matches(r, positions, width, r.choice([0, 1, 10, 200]), r.choice([6, 30]))
    columns = columns_of(rows, width, np.int32)
    at = int64(sorted(r.sample(range(positions), r.randint(0, positions))))
    window = r.randint(1, 25)
    low, high = (int32([np.searchsorted(at, p + by) for p in range(positions)]) for by in (1, window))
    looked_at = [m.candidates(low, high, columns[0], len(at)) for m in (listing, reference_listing)]
    assert looked_at[0] == looked_at[1]
    expected = [(*row, p) for x, p in enumerate(at.tolist()) for row in rows if low[row[-1]] <= x < high[row[0]]]
    assert len(expected) <= looked_at[0]
    for module, most in ((listing, 16), (listing, 8), (listing, 1), (reference_listing, 16)):
        for apart in (len(expected), -(-len(expected) // 8) * 8):  # the latter begin a line: written past the caches
            room = aligned(apart * (width + 1) + 1)
            out = [room[c * apart : c * apart + len(expected)] for c in range(width + 1)]
            module.by_event(low, high, at, columns, out, most, 0)
            assert list(zip(*(c.tolist() for c in out), strict=True)) == expected
            beside = np.ones(len(room), bool)  # what is written beside a column is noticed
            for c in range(width + 1):
                beside[c * apart : c * apart + len(expected)] = False
            assert (room[beside] == -7).all()
        for wrong in (-1, 1):
            if len(expected) + wrong >= 0:
                other = [np.zeros(len(expected) + wrong, np.int64) for _ in out]
                with pytest.raises(ValueError, match="room"):
                    module.by_event(low, high, at, columns, other, most)


@pytest.mark.parametrize("seed", range(300))
def test_lexical_orders_agree(seed: int) -> None:
    r = Random(seed)
    width, far = r.randint(2, 5), r.choice([9, 60, 5000])
    first = r.choice([0, 10**6])
    rows = [
        tuple(first + p for p in row)
        for row in matches(r, r.choice([10, far]) + width, width, r.choice([1, 5, 60, 900]), far + width)
    ]
    if not rows:
        pytest.skip("no match fits")
    answer = sorted(rows, key=lambda row: (row[-1], *row[:-1]))
    columns = columns_of(answer, width, np.int64)
    bits = max(max(row[-1] - row[0] for row in rows).bit_length(), 1)
    low, high = rows[0][0], rows[-1][0]
    for module in (listing, reference_listing):
        for kind, room in ((np.uint32, 32), (np.uint64, 64)):
            keys, spare = np.zeros(len(rows), kind), np.zeros(len(rows), kind)
            out = [np.zeros(len(rows), np.int32) for _ in columns]
            given = (columns, low, bits, keys, spare, np.zeros(high - low + 2, np.uint32), out)
            if bits * (width - 1) > room:
                with pytest.raises(ValueError, match="no number"):
                    module.lexical(*given)
                continue
            module.lexical(*given)
            assert list(zip(*(c.tolist() for c in out), strict=True)) == rows


@pytest.mark.parametrize("module", [listing, reference_listing], ids=["kernel", "twin"])
def test_arrays_of_different_length_are_refused(module: Any) -> None:
    two, three, wide = np.zeros(2, np.int32), np.zeros(3, np.int32), np.zeros(2, np.int64)
    keys = np.zeros(2, np.uint32)
    calls = [
        lambda: module.candidates(two, three, two, 1),
        lambda: module.by_event(two, three, wide, [two], [wide, wide]),
        lambda: module.by_event(two, two, wide, [two, three], [wide, wide, wide]),
        lambda: module.by_event(two, two, wide, [two], [wide]),
        lambda: module.lexical([wide, wide], 0, 1, keys, np.zeros(3, np.uint32), keys, [two, two]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="length"):
            call()


@pytest.mark.parametrize("module", [listing, reference_listing], ids=["kernel", "twin"])
def test_positions_are_small(module: Any) -> None:
    table, out = int32([0]), [np.zeros(1, np.int64), np.zeros(1, np.int64)]
    module.by_event(table, table + 1, int64([2**31 - 1]), [table], out)
    assert [c.tolist() for c in out] == [[0], [2**31 - 1]]
    with pytest.raises(ValueError, match="beyond 32 bits"):
        module.by_event(table, table + 1, int64([2**31]), [table], out)


def test_examples_run() -> None:
    assert doctest.testmod(listing).failed == 0
