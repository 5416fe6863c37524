"""The relational part against tests/reference_relations.py: random queries over random small streams."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

import quercus as qc
from tests import reference_relations
from tests.continuous.generate import COLUMNS, SCHEMAS, Draw, has_order, streams
from tests.reference_windows import closed_windows


def answers(text: str, given: dict[str, list[dict[str, object]]], literally: bool) -> list[tuple[object, ...]]:
    """`literally`: with the windows of tests/reference_windows.py."""
    query = qc.continuous(text, SCHEMAS)
    found = query.run_with(closed_windows, given) if literally else query.run(given)
    return [tuple(row.values()) for row in found]


def expected(text: str, given: dict[str, list[dict[str, object]]]) -> list[tuple[object, ...]]:
    columns = {name: list(c) for name, c in COLUMNS.items()}
    return [(time, *row) for time, row in reference_relations.output(text, columns, given)]  # type: ignore[arg-type]


def check(seed: int, patterns: float = 0.3) -> int:
    random = Random(seed)
    text, given = Draw(random, patterns).query(), streams(random)
    found, right = answers(text, given, literally=seed % 2 == 0), expected(text, given)
    assert Counter(found) == Counter(right), (seed, text, given)
    assert [row[0] for row in found] == [row[0] for row in right], (seed, text, given)
    # of equal rows that two SELECTs have at one time, it is open which ones come and which ones stay
    if has_order(text) and not ("UNION ALL" in text and len(set(right)) < len(right)):
        assert found == right, (seed, text, given)
    return len(right)


@pytest.mark.parametrize("seed", [*range(120), 1491])
def test_random_queries(seed: int) -> None:
    check(seed)


@pytest.mark.slow
def test_many_random_queries() -> None:
    assert sum(check(seed) for seed in range(1_000, 6_000)) > 10_000


def test_a_difference_would_be_seen() -> None:
    given: dict[str, list[dict[str, object]]] = {"S": [{"ts": t, "a": t, "b": "u", "x": 0.5} for t in (1, 3)], "T": []}
    for one, other in (
        ("DSTREAM(SELECT a FROM S[Range 2])", "DSTREAM(SELECT a FROM S[Range 3])"),
        ("RSTREAM(SELECT a FROM S[Rows 1])", "RSTREAM(SELECT a FROM S[Rows 2])"),
        ("ISTREAM(SELECT b FROM S[Unbounded])", "ISTREAM(SELECT DISTINCT b FROM S[Unbounded])"),
    ):
        assert answers(one, given, literally=True) == expected(one, given)
        assert answers(one, given, literally=True) != expected(other, given)
