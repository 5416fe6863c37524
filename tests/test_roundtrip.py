"""What is printed parses back, and means the same; what is written as JSON reads back, and nothing else is accepted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from attrs import evolve

import quercus as qc
from quercus.compiler import SHAPES
from quercus.compiler.bind import bind
from quercus.compiler.check import MAX_COMPONENTS
from quercus.compiler.parse import parse_query
from quercus.compiler.pipeline import rewrite
from quercus.errors import QueryError
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.schema import Schema
from quercus.testing import Case
from tests.generate import evaluated, sample, valid
from tests.seed_queries import QUERIES
from tests.test_cases import CASES, reference_options, schema_of, title

CHUNKS, CHUNK = 8, 100
SEEDS = [range(100_000 + i * CHUNK, 100_000 + (i + 1) * CHUNK) for i in range(CHUNKS)]
GOOD = [case for case in CASES if case.error is None]

# Attributes of the papers' queries that are no whole numbers.
STRINGS = {"ins_type", "symbol", "name", "roomID", "room", "location", "type", "state", "city", "stock"}


def printed(q: p.Query, schema: Schema) -> str:
    return text.query(q, schema.timestamp_unit)


def again(q: p.Query, schema: Schema) -> p.Query:
    return bind(parse_query(printed(q, schema)), schema)


# The generator itself -------------------------------------------------------------------------------------------------


def test_the_generator_is_reproducible() -> None:
    assert [sample(seed) for seed in range(5)] != [sample(seed) for seed in range(5, 10)]
    assert [str(sample(seed)) for seed in range(20)] == [str(sample(seed)) for seed in range(20)]


def test_few_generated_queries_are_refused_and_many_match() -> None:
    seeds = range(200_000, 200_600)
    found = list(valid(seeds))
    matched = sum(bool(drawn.answer()) for drawn, _ in found)
    assert len(found) > 0.94 * len(seeds)
    assert matched > 0.5 * len(found)
    assert matched < 0.95 * len(found), "a query that always matches tests little"


def test_the_generator_reaches_everything() -> None:
    seen = "\n".join(sample(seed).query for seed in range(200_000, 202_000))
    for word in (
        "SEQ(", "AND(", "OR(", " ; ", " & ", " | ", " and ", " or ", "!", "NOT ", "+", "*", "[2]", "[1]", "WITHIN",
        "EVENTS", "UNIT", "PARTITION BY", "WHERE", "[id]", "[id, s]", "between", "not between", " in (", "not in (",
        "is null", "is not null", "abs(", "round(", "floor(", "ceil(", "lower(", "upper(", "length(", "count(", "sum(",
        "avg(", "min(", "max(", "first(", "last(", "same(", ".ts", ".type", "true", "false", "not (",
    ):  # fmt: skip
        assert word in seen, word
    bound = [q for _, q in valid(range(200_000, 201_000))]
    depth = [_negation_depth(q.pattern) for q in bound]
    assert max(depth) >= 2
    shared = [q for q in bound if len(list(p.leaves(q.pattern))) > len(p.positive_variables(q.pattern))]
    assert len(shared) > 20
    adjacent = [
        e
        for q in bound
        for e in p.walk(q.pattern)
        if isinstance(e, p.Seq)
        and any(isinstance(a, p.Not) and isinstance(b, p.Not) for a, b in zip(e.parts, e.parts[1:], strict=False))
    ]
    assert adjacent
    assert any(isinstance(e, p.And) and p.has_direct_kleene(e) for q in bound for e in p.walk(q.pattern))


def _negation_depth(e: p.Pattern) -> int:
    return isinstance(e, p.Not) + max(map(_negation_depth, p.parts(e)), default=0)


# Text -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_generated_queries_print_and_parse_to_the_same(seeds: range) -> None:
    for drawn, bound in valid(seeds):
        schema = drawn.schema()
        assert _plain(again(bound, schema)) == _plain(bound), drawn
        rewritten, _ = rewrite(bound)
        # The orders of an AND, written out, can have more leaves than a query may.
        if rewritten.empty is None and len(list(p.leaves(rewritten.pattern, negated=True))) <= MAX_COMPONENTS:
            assert _plain(again(rewritten, schema)) == _plain(rewritten), drawn


def _plain(q: p.Query) -> p.Query:
    """Without what the text does not say: findings, transparent operators, the order of the answer's columns."""

    def bare(e: p.Pattern) -> p.Pattern:
        e = p.unwrapped(p.with_parts(e, tuple(map(bare, p.parts(e)))))
        return evolve(e, marks=()) if isinstance(e, p.Not) else e

    return evolve(q, pattern=bare(q.pattern), key=None, reads=None, variables=())


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_what_is_printed_means_the_same(seeds: range) -> None:
    for drawn, bound in valid(seeds):
        schema, expected = drawn.schema(), drawn.answer()
        assert drawn.answer(printed(bound, schema)) == expected, drawn
        rewritten, _ = rewrite(bound)
        assert drawn.answer(printed(rewritten, schema)) == expected, drawn


@pytest.mark.parametrize("case", [pytest.param(c, id=title(c)) for c in GOOD])
def test_the_queries_of_the_cases(case: Case) -> None:
    schema = schema_of(case)
    bound = bind(parse_query(case.query), schema)
    assert again(bound, schema) == bound
    options = reference_options(case)
    expected = evaluated(case.query, case.events, options)
    assert evaluated(printed(bound, schema), case.events, options) == expected
    rewritten, _ = rewrite(bound)
    assert evaluated(printed(rewritten, schema), case.events, options) == expected


@pytest.mark.parametrize("query", [pytest.param(q.text, id=f"{q.paper}: {q.where}") for q in QUERIES])
def test_the_queries_of_the_papers(query: str) -> None:
    schema = paper_schema(query)
    bound = bind(parse_query(query), schema)
    assert again(bound, schema) == bound
    rewritten, _ = rewrite(bound)
    if rewritten.empty is None:
        assert _plain(again(rewritten, schema)) == _plain(rewritten)


def paper_schema(query: str) -> Schema:
    """Every attribute that the text names: strings where it says so, numbers otherwise."""
    named = set(re.findall(r"\.\s*([A-Za-z_]\w*)", query))
    named |= {a.strip() for inside in re.findall(r"\[([^\]]*)\]", query) for a in inside.split(",")}
    named |= {
        a.strip() for inside in re.findall(r"PARTITION BY ([\w, ]+?)(?: [A-Z]|$)", query) for a in inside.split(",")
    }
    quoted = set(re.findall(r"\.\s*([A-Za-z_]\w*)\s*(?:=|<>|!=|in)\s*\(?\s*['\"]", query))
    columns = {a: "string" if a in quoted | STRINGS else "float64" for a in named if re.fullmatch(r"[A-Za-z_]\w*", a)}
    return Schema({a: kind for a, kind in columns.items() if a not in ("ts", "type")})


NAMES = Schema({"id": "int64", "a b": "int64", "seq": "string", "t": "timestamp[ms]", "x": "float64", "ok": "bool"})
AWKWARD = [
    'PATTERN SEQ("and" "or", "it\'s" "say ""x""", 147073 n) WITHIN 5',
    'PATTERN SEQ(A "select me", B b, "select me"."a b" = b.id) WITHIN 5',
    "PATTERN SEQ(A a, B b) WHERE a.seq = 'it''s' and b.\"seq\" <> '\"' WITHIN 5",
    "PATTERN SEQ(A a, B b, a.t >= '2026-11-16T09:30:00', b.t < '1969-12-31T23:59:59.5') WITHIN 5",
    "PATTERN SEQ(A a, B b, a.x > -1.5e10, b.x < 1e-7, -a.id < -(-3), -(-a.id) = 1, - -a.id = 2) WITHIN 5",
    "PATTERN SEQ(A a, B b, a.id - (b.id - 1) = 2, (a.id - b.id) - 1 = 2, a.id / (b.id * 2) > 0) WITHIN 5",
    "PATTERN SEQ(A a, B b, not (not a.ok), not a.ok = b.ok, (a.ok = b.ok) = true, (a.id is null) = false) WITHIN 5",
    "PATTERN SEQ(A a, B b, (a.ok or b.ok) and a.ok, a.ok or b.ok and a.ok, (a.id = 1 and b.id = 2) or a.ok) WITHIN 5",
    "PATTERN SEQ(A a, B b, a.id in (1, -2, null), a.id not in (1), a.seq in ('x')) WITHIN 5",
    "PATTERN SEQ(A a, B b, a.id between b.id and b.id + 1, a.id not between 1 and 2) WITHIN 5",
    "PATTERN SEQ(A a, B+ b, count(b) > 1, first(b).id = last(b).id, sum(b.x) / count(b) > avg(b.x)) WITHIN 5",
    "PATTERN SEQ(A, A, SEQ(A) WITHIN 3, B[3], !A) WITHIN 1 week",
    "PATTERN SEQ(A a, B* b, C c) WITHIN 90 s RETURN a, b.id AS \"the id\", a.id + 1, count(b) AS n",
    "PATTERN SEQ(A a, B b) WITHIN 1500 ms AGG COUNT(*), COUNT(a) AS n, SUM(b.x), AVG(b.x), MAX(a.seq) GROUPBY a.id, b",
    "PATTERN SEQ(A a, B b, same(a.id, b.id)) PARTITION BY \"seq\", \"a b\" WITHIN 7 EVENTS",
    "PATTERN SEQ(A a, B b, a.x = 1.0, b.x = 100000000000000000000.0, a.id = 9223372036854775807) WITHIN 2",
    "PATTERN SEQ(A a, B b, true, null, not null, a.id = null, (1 < 2)) WITHIN 2",
    "PATTERN SEQ(A a, B b, abs(-a.id) = 1, lower(upper(a.seq)) = 'x', length(a.seq) % 2 = 1) WITHIN 2",
]  # fmt: skip


@pytest.mark.parametrize("query", AWKWARD)
def test_awkward_text(query: str) -> None:
    bound = bind(parse_query(query), NAMES)
    assert again(bound, NAMES) == bound
    rewritten, _ = rewrite(bound)
    if rewritten.empty is None:
        assert _plain(again(rewritten, NAMES)) == _plain(rewritten)


def test_a_difference_is_noticed() -> None:
    """The comparison above can fail."""
    schema = Schema({"x": "int64"})
    one, two = (bind(parse_query(f"PATTERN SEQ(A a, B b, a.x {op} b.x) WITHIN 5"), schema) for op in ("<", "<="))
    assert one != two
    assert _plain(one) != _plain(two)


# JSON -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_plans_read_back(shape: str) -> None:
    for drawn, _ in valid(range(300_000, 300_080)):
        plan = qc.compile(drawn.query, drawn.schema(), shape=shape)
        document = plan.to_json()
        read = qc.Plan.from_json(document)
        assert read == plan, drawn
        assert read.to_json() == document
        assert read.explain(verbose=True) == plan.explain(verbose=True)
        assert qc.Plan.from_json(document.encode()) == plan


def test_attributes_of_a_plan_that_was_read_are_in_the_same_order() -> None:
    plan = qc.compile("PATTERN A a WITHIN 1", Schema({"z": "int64", "a": "int64", "k": "int64"}))
    read = qc.Plan.from_json(plan.to_json())
    assert [f.name for f in read.run([]).to_arrow().schema.field("a").type] == ["ts", "type", "z", "a", "k"]


def test_plans_of_the_cases_read_back() -> None:
    for case in GOOD:
        plan = qc.compile(case.query, schema_of(case))
        assert qc.Plan.from_json(plan.to_json()) == plan, title(case)


@pytest.mark.parametrize("query", AWKWARD)
def test_plans_of_awkward_text_read_back(query: str) -> None:
    plan = qc.compile(query, NAMES)
    assert qc.Plan.from_json(plan.to_json()) == plan


QUERY = """
PATTERN SEQ(A a, !(B b, b.id = a.id), OR(C c, D+ d), a.id > 2, c.id = a.id) WHERE count(d) > 1 WITHIN 5 RETURN a.id AS i
"""


def document() -> dict[str, Any]:
    data = json.loads(qc.compile(QUERY, Schema({"id": "int64"})).to_json())
    assert isinstance(data, dict)
    return data


def refused(text_: str | bytes) -> QueryError:
    with pytest.raises(QueryError) as caught:
        qc.Plan.from_json(text_)
    assert caught.value.code == "E701"
    return caught.value


@pytest.mark.parametrize(
    "text_",
    [
        "",
        "{",
        "null",
        "[]",
        "3",
        '"x"',
        "{}",
        '{"quercus_plan": 1}',
        "\x00",
        b"\xff\xfe",
        "[" * 100_000,
        "NaN",
        '{"quercus_plan": null}',
    ],
)
def test_what_is_no_plan(text_: str | bytes) -> None:
    refused(text_)


@pytest.mark.parametrize("version", [0, 2, "1", None, 1.5, True, []])
def test_another_version(version: object) -> None:
    refused(json.dumps({**document(), "quercus_plan": version}))


@pytest.mark.parametrize("part", ["text", "schema", "bound", "query", "tree", "fired", "alternatives", "warnings"])
def test_a_missing_part(part: str) -> None:
    data = document()
    del data[part]
    refused(json.dumps(data))


@pytest.mark.parametrize("part", ["text", "schema", "bound", "query", "tree", "fired", "alternatives"])
@pytest.mark.parametrize("junk", [None, 3, "x", {}, {"a": 1}, ["x"], [3], [None]])
def test_a_part_of_another_kind(part: str, junk: object) -> None:
    if isinstance(junk, str) and part == "text":
        pytest.skip("that is a text")
    refused(json.dumps({**document(), part: junk}))


def test_an_unknown_part_of_the_document() -> None:
    refused(json.dumps({**document(), "extra": 1}))


def nodes(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    yield path, data
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from nodes(value, (*path, key))


def changed(data: Any, path: tuple[Any, ...], change: Any) -> str:
    """The document with one place of it changed."""
    copy = json.loads(json.dumps(data))
    at = copy
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return json.dumps(copy)


def test_an_unknown_node() -> None:
    data = document()
    places = [path for path, value in nodes(data) if path and path[-1] == "node"]
    assert len(places) > 50
    for path in places:
        for name in ("Nothing", "Query", "__init__", 3, None):
            refused(changed(data, path, lambda at, key, name=name: at.update({key: name})))


def test_an_unknown_field() -> None:
    data = document()
    places = [
        path
        for path, value in nodes(data)
        if isinstance(value, dict) and path and path[0] in ("bound", "query", "tree")
    ]
    for path in places:
        refused(changed(data, (*path, "extra"), lambda at, key: at.update({key: 1})))


def test_a_missing_field() -> None:
    data = document()
    for path, _ in nodes(data):
        if path and path[0] == "tree" and isinstance(path[-1], str) and path[-1] not in _OPTIONAL:
            refused(changed(data, path, lambda at, key: at.pop(key)))


# Fields with a default; a document without one of them says the same.
_OPTIONAL = {"when", "unit", "each", "rows", "cost"}


def test_a_truncated_document() -> None:
    text_ = qc.compile(QUERY, Schema({"id": "int64"})).to_json()
    for length in range(0, len(text_), 97):
        refused(text_[:length])


JUNK: list[Any] = [None, True, -1, 3.5, "", "x", "SEQ", [], {}, [[]], {"node": "Leaf"}, 10**30, "\ud800", [None, None]]


@pytest.mark.parametrize("chunk", range(4))
def test_mutations_are_read_or_refused(chunk: int) -> None:
    """A document changed at random is refused with E701, or still a plan that can be shown and written."""
    r = Random(chunk)
    data = document()
    places = [path for path, _ in nodes(data) if path]
    values = [value for _, value in nodes(data)]

    def change(at: Any, key: Any) -> None:
        kind = r.random()
        if kind < 0.25:
            del at[key]
        elif kind < 0.6:
            at[key] = r.choice(JUNK)
        else:
            at[key] = json.loads(json.dumps(r.choice(values)))

    accepted, codes = 0, set()
    for _ in range(500):
        text_ = changed(data, r.choice(places), change)
        try:
            plan = qc.Plan.from_json(text_)
        except QueryError as e:
            codes.add(e.code)
        else:
            accepted += 1
            assert qc.Plan.from_json(plan.to_json()) == plan
    assert codes == {"E701"}
    assert accepted < 150
