"""Where refinement is no containment: each trap of reuse, with the way around it or the reason why there is none."""

from __future__ import annotations

import pytest

import quercus as qc
from quercus.compiler.cube.reuse import ways
from quercus.compiler.cube.sequences import sequence_of
from quercus.compiler.cube.words import Words

SCHEMA = qc.Schema({"id": "int64", "v": "int64"}, hierarchy={"X": {"Y": ["A", "B"], "C": []}})


def way(source: str, query: str, schema: qc.Schema = SCHEMA) -> list[str] | str:
    """The actions of the first way in words, after its case; or the reason why there is none."""
    plans = [qc.compile(f"PATTERN {q}" if "WITHIN" in q else f"PATTERN {q} WITHIN 10", schema) for q in (source, query)]
    one, other = (sequence_of(plan) for plan in plans)
    assert not isinstance(one, str)
    assert not isinstance(other, str)
    found = ways(one, other, schema)
    if isinstance(found, str):
        return found
    words = Words(schema, tuple(v.var for v in plans[0].query.variables))
    return [found[0].case, *words.lines(found[0].actions)]


@pytest.mark.parametrize(
    ("source", "query", "expected"),
    [
        # a component beside a negation narrows where it looks
        ("SEQ(A, !B, C)", "SEQ(A, D, !B, C)", "D changes where !B looks: the source lacks matches that the query has"),
        ("SEQ(A, !B, C)", "SEQ(A, !B, D, C)", "D changes where !B looks: the source lacks matches that the query has"),
        ("SEQ(A, !B, C)", "SEQ(A, !B, C, D)", ["5.1", "join with D after C"]),
        ("SEQ(A, !B, C)", "SEQ(D, A, !B, C)", ["5.1", "join with D before A"]),
        (
            "SEQ(A, D, !B, C)",
            "SEQ(A, !B, C)",
            [
                "5.4",
                "leave A, C of each, every match once",
                "drop those with B between A and C",
                "add SEQ(A, !B, !D, C)",
            ],
        ),
        # inner negations go with the run, unless the query's own say it
        (
            "SEQ(A, !E, D, !B, C)",
            "SEQ(A, C)",
            ["5.4", "leave A, C of each, every match once", "add SEQ(A, !SEQ(!E, D, !B), C)"],
        ),
        # scopes that end at the window: the first and last component bound them
        ("SEQ(!B, A)", "SEQ(!B, A, D)", "D changes where !B looks: the source lacks matches that the query has"),
        ("SEQ(A, !B)", "SEQ(D, A, !B)", "D changes where !B looks: the source lacks matches that the query has"),
        ("SEQ(!B, A, C)", "SEQ(!B, A, D, C)", ["5.1", "join with D between A and C"]),
        (
            "SEQ(!B, A, D)",
            "SEQ(!B, A)",
            [
                "5.4",
                "leave A of each, every match once",
                "drop those with B before A, within 10 ms of the end",
                "add SEQ(!B, A, !D)",
            ],
        ),
        # ... and the window itself
        (
            "SEQ(!B, A) WITHIN 10",
            "SEQ(!B, A) WITHIN 5",
            "!B looks as far as its window reaches, and the windows differ",
        ),
        ("SEQ(A, !B, C) WITHIN 10", "SEQ(A, !B, C) WITHIN 5", ["same", "keep those within 5 ms"]),
        ("SEQ(A, C) WITHIN 5", "SEQ(A, C) WITHIN 10", "its window is shorter"),
        ("SEQ(A, C) WITHIN 5", "SEQ(A, D, C) WITHIN 10", "its window is shorter"),
        (
            "SEQ(A, D) WITHIN 10",
            "SEQ(A) WITHIN 5",
            ["5.4", "keep those within 5 ms", "leave A of each, every match once", "add SEQ(A, !D)"],
        ),
        # a negation too many
        (
            "SEQ(A, !B, C)",
            "SEQ(A, C)",
            ["5.4", "add SEQ(A, B, C)", "  of these: leave A, C of each, every match once"],
        ),
        (
            "SEQ(!B, A, !D)",
            "SEQ(A, !D)",
            [
                "5.4",
                "add SEQ(B, A)",
                "  of these: leave A of each, every match once",
                "  of these: drop those with D after A, within 10 ms of the start",
            ],
        ),
        # concepts
        ("SEQ(X x, D)", "SEQ(A x, D)", ["5.2", "keep those whose x is of A"]),
        ("SEQ(A x, D)", "SEQ(X x, D)", ["5.5", "add SEQ(X x, D), with x of X but for A"]),
        (
            "SEQ(A x, B y)",
            "SEQ(Y x, X y)",
            ["5.5", "add SEQ(Y x, X y), with x of Y but for A", "add SEQ(A x, X y), with y of X but for B"],
        ),
        ("SEQ(D, !A a, E)", "SEQ(D, !Y a, E)", ["5.2", "drop those with Y but for A a between D and E"]),
        (
            "SEQ(D, !Y a, E)",
            "SEQ(D, !A a, E)",
            [
                "5.5",
                "add SEQ(D, Y a_1, E), with a_1 of Y but for A",
                "  of these: leave D, E of each, every match once",
                "  of these: drop those with A a between D and E",
            ],
        ),
        # conditions
        ("SEQ(A a, C c) WHERE a.v > 3 WITHIN 10", "SEQ(A a, C c)", "it asks a.v > 3, which the query does not"),
        ("SEQ(A a, C c)", "SEQ(A a, C c) WHERE a.v > 3 WITHIN 10", ["same", "keep those with a.v > 3"]),
        (
            "SEQ(A a, C c) WHERE a.v > 3 WITHIN 10",
            "SEQ(A a, C c) WHERE a.v > 5 WITHIN 10",
            ["same", "keep those with a.v > 5"],
        ),
        (
            "SEQ(A a, C c, [id])",
            "SEQ(A a, D d, C c, [id])",
            ["5.1", "join with D d between a and c where a.id = d.id"],
        ),
        (
            "SEQ(A a, D d, C c, [id])",
            "SEQ(A a, C c, [id])",
            [
                "5.4",
                "leave a, c of each, every match once",
                "add SEQ(A a, !(D d, a.id = d.id, d.id = c.id), C c) where a.id = c.id",
            ],
        ),
        ("SEQ(A a, D d, C c, [id])", "SEQ(A a, C c)", "it asks a.id = c.id, which the query does not"),
        ("SEQ(A a, !(B b, b.v > 1), C)", "SEQ(A a, !B b, C)", ["same", "drop those with B b between a and C"]),
        ("SEQ(A a, !B b, C)", "SEQ(A a, !(B b, b.v > 1), C)", "it forbids B where the query does not"),
        (
            "SEQ(A a, !(B b, b.id = d.id), C c, D d)",
            "SEQ(A a, !B b, C c)",
            [
                "5.4",
                "drop those with B b between a and c",  # first: then it no longer matters what d says of it
                "leave a, c of each, every match once",
                "add SEQ(A a, !B b, C c, !D d)",
            ],
        ),
        # the same type in several components: no event twice, since each comes before the next
        ("SEQ(A a, A b)", "SEQ(A a, A b, A c)", ["5.1", "join with A c after b"]),
        (
            "SEQ(A a, A b)",
            "SEQ(A x)",
            ["5.4", "call a x", "leave x of each, every match once", "add SEQ(A x, !A b)"],
        ),
        # names are no part of a pattern
        ("SEQ(A a, C b)", "SEQ(A b, C a)", ["same", "call a b, b a"]),
        # keys and kinds of windows
        ("SEQ(A, C) PARTITION BY id WITHIN 10", "SEQ(A, C)", ""),
        ("SEQ(A, C) WITHIN 10 EVENTS", "SEQ(A, D, C)", ""),
        (
            "SEQ(A, C) WITHIN 9 EVENTS",
            "SEQ(A, C, D) WITHIN 5 EVENTS",
            ["5.1", "keep those within 5 EVENTS", "join with D after C"],
        ),
    ],
)
def test_ways(source: str, query: str, expected: list[str] | str) -> None:
    assert way(source, query) == expected


def test_a_tie_that_others_imply_is_no_hindrance() -> None:
    """Of `[id]`, what a negation says of an event that goes, it says of another one too."""
    found = way("SEQ(A a, !B b, C c, D d, [id])", "SEQ(A a, !B b, C c, [id])")
    assert found[0] == "5.4"
    tied = "!(B b_1, a.id = b_1.id, b_1.id = c.id)"
    assert found[-1] == f"add SEQ(A a, {tied}, C c, !(D d, a.id = d.id, c.id = d.id)) where a.id = c.id"
