"""Streams whose names are event types of a pattern: what they may have there, and what their order means."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

import quercus as qc

PAIRS = "PATTERN SEQ(S a, S b) WITHIN 5 RETURN a.v AS x, b.v AS y"
PLAIN = qc.Schema({"v": "int64"}, type=None)
ARRIVAL = qc.Schema({"v": "int64"}, type=None, ties="arrival")


def rows(found: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in found)


@pytest.mark.parametrize(
    ("schemas", "pattern", "message"),
    [
        ({"S": qc.Schema({"type": "string", "v": "int64"}, type=None)}, PAIRS, "an attribute called 'type'"),
        ({"S": qc.Schema({"id": "int64", "v": "int64"}, key="id")}, PAIRS, "'S' has a key"),
        ({"S": PLAIN, "T": ARRIVAL}, "PATTERN SEQ(S a, T b) WITHIN 5", "among several streams none"),
        (
            {"S": PLAIN, "T": qc.Schema({"v": "float64"}, type=None)},
            "PATTERN SEQ(S a, T b) WITHIN 5",
            "'v' is int64 in 'S' and float64 in 'T'",
        ),
    ],
)
def test_what_a_stream_may_not_have(schemas: dict[str, qc.Schema], pattern: str, message: str) -> None:
    with pytest.raises(qc.QueryError, match=message) as error:
        qc.continuous(f"ISTREAM(SELECT * FROM ({pattern})[Now])", schemas)
    assert error.value.code == "E906"
    assert error.value.span is not None
    assert error.value.hint


def test_an_attribute_called_type_under_another_name() -> None:
    schema = qc.Schema({"type": "string", "v": "int64"}, type=None)
    text = (
        "WITH Q AS (ISTREAM(SELECT type AS kind, v FROM S[Now])) "
        "RSTREAM(SELECT * FROM (PATTERN SEQ(Q a, Q b) WHERE a.kind = 'a' WITHIN 5 RETURN a.v AS x)[Now])"
    )
    given = {"S": {"ts": [1, 2, 3], "type": ["a", "b", "b"], "v": [1, 2, 3]}}
    assert rows(qc.continuous(text, {"S": schema}).run(given)) == [(2, 1), (3, 1)]


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_arrival_is_kept(seed: int) -> None:
    """As the pattern alone has it, in batch, and live with snapshots."""
    random = Random(seed)
    n = random.randint(0, 12)
    ts, v = sorted(random.randint(0, 4) for _ in range(n)), [random.randint(0, 3) for _ in range(n)]
    alone = qc.compile(PAIRS, qc.Schema({"v": "int64"}, ties="arrival")).run({"ts": ts, "type": ["S"] * n, "v": v})
    expected = sorted((ts[m["b"]], v[m["a"]], v[m["b"]]) for m in alone.rows())
    q = qc.continuous(f"RSTREAM(SELECT * FROM ({PAIRS})[Now])", {"S": ARRIVAL})
    assert rows(q.run({"S": {"ts": ts, "v": v}})) == expected
    stream, found, first = q.stream(), [], 0
    while first < n:
        end = first + random.randint(1, 4)
        found += [*stream.push({"S": {"ts": ts[first:end], "v": v[first:end]}})]
        stream, first = q.restore(stream.snapshot()), end
    assert rows([*found, *stream.close()]) == expected


def test_names_in_quotes_of_a_window() -> None:
    schema = qc.Schema({"a b": "int64", "v": "int64"}, type=None)
    window = "S[Pattern By (v = 1; v = 2; TRUE; TRUE)]"
    text = f'ISTREAM(SELECT * FROM (PATTERN SEQ({window} w, S s) WITHIN 5 RETURN w."a b" AS x)[Now])'
    given = {"S": {"ts": [1, 2, 3], "a b": [1, 2, 3], "v": [1, 2, 3]}}
    assert rows(qc.continuous(text, {"S": schema}).run(given)) == [(3, 2)]


def test_all_nans_are_one_part() -> None:
    """inf - inf is a NaN with a sign."""
    schema = qc.Schema({"v": "int64", "x": "float64"}, type=None)
    given = {"S": {"ts": [1, 2], "v": [1, 2], "x": [math.nan, math.copysign(math.nan, -1)]}}
    assert rows(qc.continuous("DSTREAM(SELECT v FROM S[Partition By x Rows 1])", {"S": schema}).run(given)) == [(2, 1)]
