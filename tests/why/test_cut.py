"""A run that is cut off gives matches, whole ones, and says so."""

from __future__ import annotations

import pytest

import quercus as qc
from quercus.backends.local.events import load
from quercus.backends.local.outputs import row_numbers
from quercus.backends.local.run import find
from tests import reference
from tests.generate import valid

PLAIN = qc.Schema({"x": "int64"}, time_unit="s")


@pytest.mark.parametrize("shape", ["auto", "left", "stack"])
@pytest.mark.parametrize("most", [0, 1, 3])
def test_what_is_found_before_a_limit_is_right(shape: str, most: int) -> None:
    cut_off = 0
    for drawn, _ in valid(range(100, 130)):
        plan = qc.compile(drawn.query, drawn.schema(), shape=shape)
        stream = load(drawn.events, drawn.schema())
        every = row_numbers(find(plan, stream, qc.Limits()))
        cut: list[str] = []
        found = row_numbers(find(plan, stream, qc.Limits(max_matches=most), cut=cut))
        assert reference.canonical(found) <= reference.canonical(every), drawn
        assert len(found) == len(every) if not cut else len(found) <= most, drawn
        assert cut == (["max_matches"] if len(every) > most else []) or len(every) <= most, drawn
        cut_off += bool(cut)
    assert cut_off > 5


def test_time_that_is_over() -> None:
    plan = qc.compile("PATTERN SEQ(A a, A b, A c, A d, a.x > b.x, b.x < c.x, d.x <> a.x) WITHIN 5000", PLAIN)
    n = 5000
    stream = load({"ts": range(n), "type": ["A"] * n, "x": [i * 7919 % 1000 for i in range(n)]}, PLAIN)
    cut: list[str] = []
    found = find(plan, stream, qc.Limits(max_seconds=0.05), cut=cut)
    assert cut == ["max_seconds"]
    assert len({len(b) for b in found}) == 1


def test_without_a_list_a_limit_is_an_error() -> None:
    plan = qc.compile("PATTERN SEQ(A a, A b) WITHIN 5", PLAIN)
    stream = load({"ts": [1, 2, 3], "type": ["A"] * 3, "x": [1, 2, 3]}, PLAIN)
    with pytest.raises(qc.LimitExceeded):
        find(plan, stream, qc.Limits(max_matches=1))
