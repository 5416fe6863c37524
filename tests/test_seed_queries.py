"""Every query of the papers parses, and is changed only where its printed text could not stand."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from quercus.compiler.parse import parse_query
from quercus.compiler.syntax import QueryText
from tests.seed_queries import QUERIES, UNREADABLE, SeedQuery, assembled


def tokens(text: str) -> list[str]:
    """The text without its blanks, so that line breaks and spacing count for nothing."""
    return re.findall(r"\w+|\S", text)


def parameters() -> list[object]:
    return [pytest.param(q, id=f"{q.paper}: {q.where}") for q in QUERIES]


@pytest.mark.parametrize("query", parameters())
def test_parses(query: SeedQuery) -> None:
    parsed = parse_query(query.text)
    assert isinstance(parsed, QueryText)
    assert parsed.window is not None


@pytest.mark.parametrize("query", parameters())
def test_is_mended_only_where_it_says_so(query: SeedQuery) -> None:
    changed = tokens(assembled(query.printed, query.window)) != tokens(query.text)
    assert changed == bool(query.mended)
    assert all(len(what) > 10 for what in query.mended)


@pytest.mark.parametrize("query", parameters())
def test_a_window_is_given_only_where_none_is_printed(query: SeedQuery) -> None:
    assert (query.window is None) == bool(re.search(r"\bwithin\b", query.printed, re.IGNORECASE))


def test_queries_are_found_once() -> None:
    assert [place for place, n in Counter((q.paper, q.where) for q in QUERIES).items() if n > 1] == []


def test_none_is_missing() -> None:
    """The numbered queries of each paper, so that one deleted by accident is noticed."""
    e_cube = {int(n) for q in QUERIES if q.paper == "E-Cube" and (n := _number(q.where)) and "workload" in q.where}
    assert e_cube == set(range(1, 37))
    neel = {int(n) for q in QUERIES if q.paper == "NEEL" and (n := _number(q.where))}
    assert neel == set(range(1, 11))
    assert Counter(q.paper for q in QUERIES) == {"NEEL": 22, "E-Cube": 48, "sliding views": 9, "FAEM": 40}
    assert {u.paper for u in UNREADABLE} == {"E-Cube", "sliding views", "FAEM"}


def _number(where: str) -> str | None:
    found = re.search(r"\bq(\d+)", where)
    return found[1] if found else None
