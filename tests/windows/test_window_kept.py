"""Rows that windows over streams keep, beside Arrow's own."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from quercus.backends.local.windows.kept import Kept
from quercus.kernels import keys, rows


def column(r: Random, kind: pa.DataType, n: int, nulls: bool) -> pa.Array:
    made: list[object] = []
    for _ in range(n):
        if nulls and r.random() < 0.3:
            made.append(None)
        elif pa.types.is_boolean(kind):
            made.append(r.random() < 0.5)
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            made.append("".join(r.choice("abcäß") for _ in range(r.choice((0, 1, 5, 40)))))
        elif pa.types.is_float64(kind):
            made.append(r.choice((r.random(), float("inf"), -0.0)))
        else:
            most = 2**50 if pa.types.is_timestamp(kind) else 2**63  # Python has no later times
            made.append(r.randrange(-most, most))
    return pa.array(made, kind)


KINDS = (pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.timestamp("us", "UTC"))


@pytest.mark.parametrize("seed", range(60))
def test_what_is_kept_is_what_was_given(seed: int) -> None:
    r = Random(seed)
    kinds = [r.choice(KINDS) for _ in range(r.choice((1, 3, 9, 17)))]
    kept, expected = Kept(), None
    wanted = np.empty(0, np.bool_)
    changing = r.random() < 0.3
    for push in range(6):
        n = r.choice((0, 1, 7, 200))
        made = [column(r, kind, n + 3, r.random() < 0.5).slice(r.randrange(3), n) for kind in kinds]
        if changing and push == 3:  # other kinds of the same
            made = [a.dictionary_encode() if pa.types.is_string(a.type) else a for a in made]
        table = pa.table(made, names=[f"c{i}" for i in range(len(made))])
        mask = np.array([r.random() < 0.7 for _ in range(n)], np.bool_)
        kept.add(table, mask.view(np.uint8))
        wanted = np.append(wanted, mask)
        values = table.to_pylist()
        expected = values if expected is None else expected + values
        at = np.array([i for i in range(len(wanted)) if wanted[i] and r.random() < 0.6], np.int64)
        if len(wanted):
            assert kept.take(at).to_pylist() == [expected[i] for i in at]
        if push % 2:
            kept.keep(at)
            expected, wanted = [expected[i] for i in at], wanted[at]


def test_rows_say_what_they_cannot_do() -> None:
    made = rows.Rows([False, True])
    numbers, texts = (np.array([1, 2]), None), (np.array([0, 1, 2], np.int32), np.zeros(2, np.uint8), None)
    made.add([numbers, texts], np.array([1, 0], np.uint8))
    assert made.there().tolist() == [0]
    for places in ([-1], [1], [2]):
        with pytest.raises(IndexError):
            made.take(np.array(places))
    for places in ([1, 0], [0, 0], [5]):
        with pytest.raises(IndexError):
            made.keep(np.array(places))
    for wrong in ([numbers], [texts, numbers], [(np.array([1]), None), texts]):
        with pytest.raises(ValueError, match="columns"):
            made.add(wrong)
    with pytest.raises(ValueError, match="strings that are not there"):
        made.add([numbers, (np.array([0, 1, 9], np.int32), np.zeros(2, np.uint8), None)])


def test_keys_that_are_new_only_where_they_may_be() -> None:
    r = Random(1)
    values = np.array([r.randrange(300) for _ in range(2000)])
    new = np.array([r.random() < 0.2 for _ in values], np.uint8)
    table, known = keys.Table(1, 7), dict[int, int]()
    expected = [known.setdefault(v, len(known)) if new[i] else known.get(v, -2) for i, v in enumerate(values.tolist())]
    assert table.find_or_add([(values, None)], np.arange(len(values)), new).tolist() == expected
