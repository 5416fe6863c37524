"""Numbers for keys: the hash table beside its twin, over whole numbers, strings and several parts."""

from __future__ import annotations

import doctest
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from quercus.backends.local.values import from_arrow
from quercus.backends.local.windows.keyed import part_of
from quercus.kernels import keys, reference

TEXTS = ["", "a", "ab", "abc", "abcd", "abcdefg", "abcdefgh", "abcdefghi", "x" * 16, "x" * 17, "y" * 40, "ß", None]


def column(random: Random, n: int) -> Any:
    """A part of keys; nulls, slices and both widths of offsets among them."""
    kind = random.randrange(4)
    if kind == 0:
        return part_of(from_arrow(pa.array([random.choice([None, 0, 1, -1, 2**63 - 1, -(2**63)]) for _ in range(n)])))
    if kind == 1:
        values = pa.array([random.choice([None, 0.0, -0.0, 1.5, float("nan")]) for _ in range(n)], pa.float64())
        return part_of(from_arrow(values))
    width = pa.string() if kind == 2 else pa.large_string()
    many = [random.choice(TEXTS) for _ in range(n + 3)]
    if random.random() < 0.3:
        many = [f"person{random.randrange(5 * n):06}" for _ in range(n + 3)]
    return part_of(from_arrow(pa.array(many, width).slice(3)))


@pytest.mark.parametrize("seed", range(60))
def test_tables_agree_with_their_twin(seed: int) -> None:
    random = Random(seed)
    n = random.choice([1, 5, 70, 700, 3000])
    shape = Random(seed + 1000).randint(1, 3)
    kernel, twin = keys.Table(shape, random.getrandbits(64)), reference.Table(shape, 0)
    for _ in range(5):
        parts = [column(Random(seed * 7 + i), n) for i in range(shape)]
        rows = np.sort(np.array([random.randrange(n) for _ in range(random.randrange(2 * n))], np.int64))
        assert kernel.find(parts, rows).tolist() == twin.find(parts, rows).tolist()
        assert kernel.codes(parts, rows).tolist() == twin.codes(parts, rows).tolist()
        assert (len(kernel), kernel.size) == (len(twin), twin.size)
        if random.random() < 0.5 and kernel.size:
            kept = np.unique([random.randrange(kernel.size) for _ in range(kernel.size // 2)]).astype(np.int64)
            kept = np.array([c for c in kept if c in twin.known.values()], np.int64)
            kernel.keep(kept)
            twin.keep(kept)


def test_zero_has_one_number_and_nan_none() -> None:
    part = part_of(from_arrow(pa.array([0.0, -0.0, float("nan"), None, 1.0])))
    assert keys.Table(1, 3).codes([part], np.arange(5)).tolist() == [0, 0, -1, -1, 1]


def test_what_is_wrong_is_refused() -> None:
    numbers, text = (np.array([1, 2]), None), part_of(from_arrow(pa.array(["a", "b"])))
    table = keys.Table(1, 3)
    table.codes([numbers], np.arange(2))
    for parts, rows, error in (
        ([numbers], np.array([2]), IndexError),
        ([numbers], np.array([-1]), IndexError),
        ([text], np.array([0]), ValueError),  # numbers before
        ([numbers, numbers], np.array([0]), ValueError),
    ):
        with pytest.raises(error):
            table.codes(parts, rows)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        keys.Table(1, 3).codes([text], np.array([2]))
    with pytest.raises(ValueError, match="a number that no key has"):
        table.keep(np.array([5]))
    with pytest.raises(ValueError, match="keys of 0 parts"):
        keys.Table(0, 1)


def test_the_examples_in_the_kernel() -> None:
    assert doctest.testmod(keys).failed == 0


@pytest.mark.parametrize("different", [3, 2_000, 100_000])
@pytest.mark.parametrize("kind", ["numbers", "strings"])
def test_many_rows_of_few_keys_or_many(kind: str, different: int) -> None:
    random = np.random.default_rng(different)
    values = random.integers(0, different, 120_000)
    column = pa.array(values, mask=random.random(len(values)) < 0.01)
    part = part_of(from_arrow(column if kind == "numbers" else column.cast(pa.string())))
    table, rows = keys.Table(1, 5), np.arange(len(values))
    first: dict[int, int] = {}
    expected = [-1 if v is None else first.setdefault(v, len(first)) for v in column.to_pylist()]
    assert table.codes([part], rows).tolist() == expected
    assert table.find([part], rows).tolist() == expected
    kept = np.arange(0, len(first), 3)
    table.keep(kept)
    assert table.find([part], rows).tolist() == [c if c < 0 or c % 3 == 0 else -2 for c in expected]
    assert len(table) == len(kept)
