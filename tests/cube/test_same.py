"""Queries with one pattern that are no sequences: what may differ between them."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from attrs import evolve

import quercus as qc
from quercus.compiler.cube.reuse import Way
from quercus.compiler.cube.same import same_way
from quercus.errors import QueryError
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from tests import generate, reference
from tests.cube.interpret import Interpreter
from tests.cube.test_refine import SCHEMA


def found(source: str, query: str) -> list[str] | str:
    plans = [qc.compile(f"PATTERN {q}" if "WITHIN" in q else f"PATTERN {q} WITHIN 10", SCHEMA) for q in (source, query)]
    way = same_way(plans[0].query, plans[1].query)
    return way if isinstance(way, str) else [type(a).__name__ for a in way.actions]


SETS = "it binds one of several branches: windows and conditions must be the same"
HELD = "its matches have sets: results that are held for others are of single events"
ENDS = "no variable of it is always the first, or the last: the windows must be the same"


@pytest.mark.parametrize(
    ("source", "query", "expected"),
    [
        ("AND(D, T)", "AND(D, T)", []),
        ("AND(D d, T t)", "AND(D x, T y)", ["Rename"]),
        ("AND(D, T)", "AND(T, D)", "its pattern is another one"),
        ("AND(D, T)", "SEQ(D, T)", "its pattern is another one"),
        ("AND(D d, T t)", "AND(D d, T t) WHERE d.v > 3 WITHIN 10", ["Keep"]),
        ("AND(D d, T t)", "AND(D d, T t) WHERE d.v > 3 WITHIN 5", ENDS),
        ("SEQ(D d, AND(G, A), T t)", "SEQ(D d, AND(G, A), T t) WITHIN 5", ["Narrow"]),
        ("SEQ(AND(G, A), T t)", "SEQ(AND(G, A), T t) WITHIN 5", ENDS),
        ("AND(D d, T t, d.v > 3)", "AND(D d, T t)", "it asks d.v > 3, which the query does not"),
        ("AND(D d, T t) WITHIN 5", "AND(D d, T t)", "its window is shorter, or of another kind"),
        (
            "AND(D d, !A, T t)",
            "AND(D d, !A, T t) WITHIN 5",
            "a negation looks as far as its window reaches, and the windows differ",
        ),
        ("AND(D d, !A, T t)", "AND(D d, !A, T t, d.v = 1)", ["Keep"]),
        ("SEQ(D d, !SEQ(A, G), T t)", "SEQ(D d, !SEQ(A, G), T t) WITHIN 5", ["Narrow"]),
        (
            "SEQ(D d, !SEQ(A, G))",
            "SEQ(D d, !SEQ(A, G)) WITHIN 5",
            "a negation looks as far as its window reaches, and the windows differ",
        ),
        (
            "SEQ(D d, !SEQ(A a, G), T t, [id])",
            "SEQ(D x, !SEQ(A a, G), T y, [id]) WHERE x.v > 3 WITHIN 10",
            ["Rename", "Keep"],
        ),
        ("SEQ(D d, !SEQ(A a, G), T t)", "SEQ(D d, !SEQ(A a, G), T t, [id])", "its pattern is another one"),
        ("SEQ(D d, A+ a, T t)", "SEQ(D x, A+ y, T z)", HELD),
        ("SEQ(D d, !SEQ(A+ a, G), T t)", "SEQ(D x, !SEQ(A+ a, G), T t)", ["Rename"]),
        ("OR(D d, SEQ(T t, A a))", "OR(D d, SEQ(T t, A a)) WHERE d.v > 3 WITHIN 10", SETS),
        ("OR(D d, SEQ(T t, A a))", "OR(D d, SEQ(T t, A a)) WITHIN 10 RETURN d.v", []),
        ("AND(D, T) PARTITION BY id WITHIN 10", "AND(D, T)", "its keys are others"),
    ],
)
def test_what_may_differ(source: str, query: str, expected: list[str] | str) -> None:
    assert found(source, query) == expected


def varied(q: p.Query, r: Random) -> p.Query:
    """The same query with other names, and perhaps a tighter window and one more condition."""
    if r.random() < 0.5:
        q = evolve(q, window=evolve(q.window, size=max(1, q.window.size - r.randint(1, 3))))
    plain = [leaf for leaf in q.variables if isinstance(leaf, p.Leaf)]
    if r.random() < 0.5 and plain:
        column = x.Column(r.choice(plain).var, "v", "int64")
        q = evolve(q, where=(*q.where, x.Compare(r.choice([">", "<="]), column, x.Const(r.randint(0, 3), "int64"))))
    return evolve(q, returns=(), aggregates=(), group_by=())


def check(seed: int) -> str | None:
    sample = generate.sample(seed)
    try:
        bound = evolve(sample.bind(), returns=(), aggregates=(), group_by=())
        texts = [text.query(bound), text.query(varied(bound, Random(seed)))]
        plans = [qc.compile(t, sample.schema()) for t in texts]
    except QueryError:
        return None
    way = same_way(plans[0].query, plans[1].query)
    if not isinstance(way, Way):
        return None
    rows, expected = (sample.answer(t) for t in texts)
    interpreter = Interpreter(sample.events, sample.options, plans[0].query.partition_by)
    actual = interpreter.run([dict(r) for r in rows], way.actions)  # type: ignore[call-overload]
    assert reference.canonical(actual) == expected, f"{way.actions}\n{texts}\n{sample}"
    return "Keep" if any(type(a).__name__ in ("Keep", "Narrow") for a in way.actions) else "equal"


def test_it_gives_what_the_query_gives() -> None:
    seen = Counter(check(seed) for seed in range(400))
    assert seen["Keep"] > 30, seen
    assert seen["equal"] > 30, seen
