"""Columns at some rows, rows by key, orders by counting, and memory that is kept: the kernels beside their twins."""

from __future__ import annotations

import doctest
from random import Random
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from quercus.kernels import gather, group, memory, reference

BOTH = pytest.mark.parametrize("impl", [gather, reference], ids=["kernel", "twin"])
wide = st.integers(-(2**63), 2**63 - 1)


def int64(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


@given(st.lists(wide, min_size=1, max_size=60), st.data())
def test_take_agrees_with_its_twin(column: list[int], data: st.DataObject) -> None:
    rows = int64(data.draw(st.lists(st.integers(0, len(column) - 1), max_size=90)))
    for values in (int64(column), int64(column).view(np.float64)):
        kernel, twin = (impl.take(values, rows) for impl in (gather, reference))
        assert kernel.dtype == twin.dtype == values.dtype
        assert kernel.tobytes() == twin.tobytes()
    found, want = (impl.take_with_range(int64(column), rows) for impl in (gather, reference))
    assert (found[0].tolist(), *found[1:]) == (want[0].tolist(), *want[1:])


@given(st.lists(st.integers(0, 6), max_size=90), st.sampled_from([-(2**63), -3, 0, 2**63 - 7]))
def test_by_key_agrees_with_its_twin(codes: list[int], least: int) -> None:
    column, rows = np.arange(200) * 7, np.arange(len(codes)) * 2
    keys = int64([least + c for c in codes])
    kernel, twin = (impl.by_key(keys, least, 7, rows, column) for impl in (gather, reference))
    assert [part.tolist() for part in kernel] == [part.tolist() for part in twin]


@BOTH
@pytest.mark.parametrize(("keys", "count"), [([0, 7], 7), ([-1, 0], 7), ([0], 0), ([0, 1, 2], 7)])
def test_keys_that_do_not_fit_are_refused(impl: ModuleType, keys: list[int], count: int) -> None:
    with pytest.raises(ValueError, match="key"):
        impl.by_key(int64(keys), 0, count, int64([0, 1]), int64([5, 6]))


@given(st.lists(st.integers(0, 40) | st.sampled_from([2**11, 2**22 + 1, 2**43]), max_size=90), st.booleans())
def test_a_stable_order_agrees_with_its_twin(values: list[int], low: bool) -> None:
    shifted = int64([v - 2**63 if low else v for v in values])
    kernel, twin = group.stable_order(shifted), reference.stable_order(shifted)
    assert kernel is not None
    assert twin is not None
    assert kernel.tolist() == twin.tolist()


def test_an_order_by_counting_has_its_limit() -> None:
    for impl in (group, reference):
        assert impl.stable_order(int64([0, 2**44])) is None
        assert impl.stable_order(int64([-(2**63), 2**63 - 1])) is None


def test_memory_is_kept_for_the_next_array_and_bounded() -> None:
    size = 1 << 18
    others = [memory.empty(size) for _ in range(40)]  # blocks that earlier tests gave back
    first = memory.empty(size)
    first[:] = 7
    address = first.ctypes.data
    del first
    assert memory.kept() >= 8 * size
    second = memory.empty(size)
    assert second.ctypes.data == address
    assert len({a.ctypes.data for a in others}) == 40
    held = [memory.empty(1 << 23) for _ in range(20)]  # never written to
    assert len({a.ctypes.data for a in held}) == 20
    held.clear()
    assert memory.kept() <= memory.MOST


@pytest.mark.parametrize("impl", [memory, reference], ids=["kernel", "twin"])
def test_an_array_is_as_long_as_asked_for(impl: ModuleType) -> None:
    for n in (0, 1, 1000):
        made = impl.empty(n)
        made[:] = np.arange(n)
        assert (made.dtype, made.tolist()) == (np.dtype(np.int64), list(range(n)))
    with pytest.raises(ValueError, match="less than nothing"):
        impl.empty(-1)


def test_examples_in_the_docstrings_run() -> None:
    for module in (gather, group):
        failed, attempted = doctest.testmod(module, globs=vars(module))
        assert failed == 0
        assert attempted > 0


@given(st.integers(1, 4), st.sampled_from([3, 40, 10_000]), st.integers(0, 60), st.randoms(use_true_random=False))
def test_the_order_of_matches_agrees_with_its_twin(variables: int, longest: int, count: int, random: Random) -> None:
    firsts = [int64([random.randrange(-1, longest) for _ in range(count)]) for _ in range(variables)]
    lasts = [int64([at + random.randrange(3) if at >= 0 else -1 for at in f.tolist()]) for f in firsts]
    kernel, twin = group.order_of(firsts, lasts), reference.order_of(firsts, lasts)
    assert (kernel is None) == (twin is None)
    assert kernel is None or kernel.tolist() == twin.tolist()


def test_many_matches_that_end_alike_are_merged_in_order() -> None:
    random = Random(5)
    firsts = [int64([random.randrange(9) for _ in range(3_000)]), int64([9] * 3_000)]
    kernel, twin = group.order_of(firsts, firsts), reference.order_of(firsts, firsts)
    assert kernel is not None
    assert twin is not None
    assert kernel.tolist() == twin.tolist()
