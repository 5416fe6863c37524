"""The matcher on both builds: random queries against the reference, with every index checked in one of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quercus as qc
from quercus.kernels import group, reference
from tests import generate
from tests.reference import canonical
from tests.test_engine import table

CHUNK = 75


@pytest.mark.parametrize("first", range(200_000, 200_300, CHUNK))
def test_random_queries(first: int) -> None:
    for sample, _ in generate.valid(range(first, first + CHUNK)):
        found = qc.compile(sample.query, sample.schema()).run(table(sample.events)).rows()
        assert canonical(found) == sample.answer(), str(sample)


def test_counters_are_exact() -> None:
    """SEQ over a1 b2 a3 b4: two ends, three partners looked at, three matches."""
    from quercus.backends.base import Limits
    from quercus.backends.local.events import load
    from quercus.backends.local.run import find

    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 9", qc.Schema({}))
    counters: dict[str, int] = {}
    find(plan, load({"ts": [1, 2, 3, 4], "type": ["A", "B", "A", "B"]}, plan.schema), Limits(), counters)
    assert counters == {"compared": 5, "bound": 3, "negation tests": 0, "matches": 3, "routed": 4}


@given(st.lists(st.integers(-2, 6), max_size=40))
def test_group_by_code_agrees_with_its_twin(codes: list[int]) -> None:
    given_codes = np.array(codes, dtype=np.int64)
    order, starts = group.group_by_code(given_codes, 7)
    twin_order, twin_starts = reference.group_by_code(given_codes, 7)
    assert order.tolist() == twin_order.tolist()
    assert starts.tolist() == twin_starts.tolist()


@given(st.lists(st.integers(-5, 5), max_size=6))
def test_is_sorted_agrees_with_its_twin(values: list[int]) -> None:
    given_values = np.array(values, dtype=np.int64)
    assert group.is_sorted(given_values) == reference.is_sorted(given_values)


def test_a_code_beyond_the_count_is_refused() -> None:
    for function in (group.group_by_code, reference.group_by_code):
        with pytest.raises(ValueError, match="beyond"):
            function(np.array([0, 7], dtype=np.int64), 7)
