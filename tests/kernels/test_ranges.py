"""Sets as ranges: the kernels beside their twins."""

from __future__ import annotations

import doctest
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from quercus.kernels import ranges, reference

BOTH = pytest.mark.parametrize("impl", [ranges, reference], ids=["kernel", "twin"])
wide = st.integers(-(2**63), 2**63 - 1)


def int64(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


@st.composite
def some_ranges(draw: st.DrawFn, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Any ranges of so many values: overlapping, empty, in no order."""
    ends = st.integers(0, size)
    drawn = [sorted(pair) for pair in draw(st.lists(st.tuples(ends, ends), max_size=12))]
    return int64([a for a, _ in drawn]), int64([b for _, b in drawn])


@given(st.lists(wide, max_size=40), st.data())
def test_ranges_agree_with_their_twins(values: list[int], data: st.DataObject) -> None:
    at = data.draw(some_ranges(len(values)))
    owners = int64(data.draw(st.lists(st.integers(0, 4), min_size=len(at[0]), max_size=len(at[0]))))
    numbers, floats = int64(values), int64(values).view(np.float64)
    assert ranges.elements(numbers, *at).tolist() == reference.elements(numbers, *at).tolist()
    with np.errstate(all="ignore"):
        assert_alike(ranges.sums(floats, *at, owners, 5), reference.sums(floats, *at, owners, 5))
    for most in (False, True):
        for column in (numbers, floats):
            assert_alike(
                ranges.extremes(column, *at, owners, 5, most), reference.extremes(column, *at, owners, 5, most)
            )


def assert_alike(found: NDArray[np.float64], want: NDArray[np.float64]) -> None:
    assert found.dtype == want.dtype
    assert list(map(str, found.tolist())) == list(map(str, want.tolist())) or np.array_equal(found, want)


def test_floats_are_added_from_left_to_right() -> None:
    values = np.array([1e16, 1.0, 1.0, -1e16, 0.1, 0.2])
    at = int64([0, 1, 4]), int64([4, 4, 6])
    assert ranges.sums(values, *at, int64([0, 1, 2]), 3).tolist() == [0.0, 1.0 + 1.0 - 1e16, 0.1 + 0.2]
    assert ranges.sums(values, *at, int64([1, 0, 1]), 2).tolist() == [1.0 + 1.0 - 1e16, 0.0 + 0.1 + 0.2]


@BOTH
@pytest.mark.parametrize("at", [([-1], [1]), ([0], [4]), ([2], [1]), ([4], [4])])
def test_what_is_no_range(impl: ModuleType, at: tuple[list[int], list[int]]) -> None:
    starts, ends = map(int64, at)
    with pytest.raises(ValueError, match="range"):
        impl.elements(int64([1, 2, 3]), starts, ends)
    with pytest.raises(ValueError, match="range"):
        impl.sums(np.zeros(3), starts, ends, int64([0]), 1)
    with pytest.raises(ValueError, match="range"):
        impl.extremes(np.zeros(3), starts, ends, int64([0]), 1, False)


@BOTH
@pytest.mark.parametrize("owners", [[-1], [1], []])
def test_every_range_has_an_owner(impl: ModuleType, owners: list[int]) -> None:
    with pytest.raises(ValueError, match="owner"):
        impl.sums(np.zeros(3), int64([0]), int64([1]), int64(owners), 1)
    with pytest.raises(ValueError, match="owner"):
        impl.extremes(np.zeros(3), int64([0]), int64([1]), int64(owners), 1, True)


def test_the_example_runs() -> None:
    assert doctest.testmod(ranges).failed == 0
