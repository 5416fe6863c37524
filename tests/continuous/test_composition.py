"""Patterns in FROM, pattern windows and queries of WITH as event types, in random queries over random small streams.

What is expected comes from the three references: tests/reference_windows.py closes windows, tests/reference.py finds
the matches, tests/reference_relations.py does the rest, each over what the one before gave.
"""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import Any

import pytest
from attrs import field, frozen

import quercus as qc
from quercus.compiler.continuous import syntax as c
from quercus.compiler.continuous.parse import parse_continuous
from tests import reference, reference_relations
from tests.continuous.test_live import pushed
from tests.reference_windows import closed

COLUMNS = {"S": {"k": "int64", "a": "int64", "b": "string"}, "T": {"k": "int64", "d": "int64", "b": "string"}}
SCHEMAS = {name: qc.Schema(columns, type=None) for name, columns in COLUMNS.items()}
NUMBERS = {"S": "a", "T": "d"}
Rows = list[dict[str, Any]]

SHAPES = """SEQ(A a)  SEQ(A a, B b)  SEQ(A a, B b, C c)  AND(A a, B b)  OR(A a, B b)  SEQ(A a, OR(B b, C c))
SEQ(A a, !N n, B b)  SEQ(A a, B b, !N n)  SEQ(!N n, A a)  SEQ(A a, !N n)  AND(A a, B b, !N n)  OR(A a, SEQ(B b, !N n))
SEQ(A a, !SEQ(N n, M m), B b)  AND(A a, OR(B b, SEQ(C c, !N n)))
SEQ(A a, B+ b)  SEQ(B+ b, A a)  SEQ(B+ b)  AND(A a, B+ b)  SEQ(A a, B* b, C c)  SEQ(A a, B[2] b)"""
LEAF = r"\b[A-Z](?=(\+|\*|\[2\])? [a-z]\b)"
QUERIES = [
    "{kind}(SELECT k AS k, b AS b FROM S[Range 2] WHERE k > 0)",
    "{kind}(SELECT k AS k, MIN(b) AS b FROM T[Range 3] GROUP BY k)",
    "ISTREAM(SELECT FIRST(k) AS k, LAST(b) AS b FROM S[Pattern By (TRUE; k = FIRST(k); TRUE; FALSE)])",
    "{kind}(SELECT S.k AS k, T.b AS b FROM S[Range 3], T[Range 3] WHERE S.k = T.k)",
]
SELECTS = [
    "SELECT * FROM {p}{w} AS m",
    "SELECT COUNT(*) AS n, MAX(p0) AS x FROM {p}{w} AS m",
    "SELECT p0, COUNT(*) AS n FROM {p}{w} AS m GROUP BY p0",
    "SELECT DISTINCT p0 FROM {p}{w} AS m",
    "SELECT m.p0 AS p, S.a AS a FROM {p}{w} AS m, S{v} WHERE S.k = m.p0 OR m.p0 > 2",
    "SELECT p0 FROM {p}{w} AS m UNION SELECT k FROM T{v}",
    "SELECT m.p0 AS p, S.a AS a FROM {p}{w} AS m, S[Pattern By (k = 1; k = 2; TRUE; FALSE)] WHERE m.p0 IS NOT NULL",
]


@frozen
class Drawn:
    """A query, and its parts: the query of WITH, windows that are event types, the pattern with names for them."""

    text: str
    outer: str  # with P where the pattern stands
    pattern: str
    named: dict[str, str]
    windows: dict[str, tuple[str, str]] = field(factory=dict)


def drawn(random: Random) -> Drawn:
    kind = random.choice(["ISTREAM", "ISTREAM", "DSTREAM", "RSTREAM"])
    named = {"Q": random.choice(QUERIES).format(kind=kind)} if random.random() < 0.3 else {}
    shape = random.choice(re.split(r"\s{2,}|\n", SHAPES))
    types: dict[str, tuple[str, str]] = {}  # as the query has them, and by name
    windows: dict[str, tuple[str, str]] = {}
    for letter, sign in [(m[0], m[1]) for m in re.finditer(LEAF, shape)]:
        stream = random.choice([*"SSTT", *named])
        types[letter] = stream, stream
        if stream in COLUMNS and not sign and random.random() < 0.25:
            name = f"W{len(windows)}"
            windows[name] = stream, "; ".join(_condition(random, stream, i == 0) for i in range(4))
            types[letter] = f"{stream}[Pattern By ({windows[name][1]})]", name
    sets = set(re.findall(r"(?:\+|\*|\]) ([a-z])\b", shape))
    bound = [v for v in re.findall(r"[A-Z]\S* ([a-z])\b", shape) if v not in "nm"]
    rest = (", [k])" if random.random() < 0.3 else ")") + _where(random, bound, sets)
    rest += f" WITHIN {random.randrange(2, 9)}{' EVENTS' if random.random() < 0.15 else ''} RETURN "
    rest += ", ".join(f"{e} AS p{i}" for i, e in enumerate(_returned(random, bound, sets, types)))
    texts = [re.sub(LEAF, lambda m: types[m[0]][i], shape[:-1]) + rest for i in (0, 1)]  # noqa: B023
    windows_ = random.choices(["[Now]", "[Now]", "[Range 3]", "[Range 5]", "[Unbounded]"], k=2)
    outer = f"{kind}({random.choice(SELECTS).format(p='P ', w=windows_[0], v=windows_[1])})"
    if random.random() < 0.15:  # its matches twice
        named["Z"] = f"ISTREAM(SELECT p0 FROM P {windows_[0]})"
        outer = f"{kind}(SELECT p0, COUNT(*) AS n FROM Z[Range 2] GROUP BY p0 UNION ALL SELECT p0, 0 FROM Z[Now])"
    prefix = f"WITH {', '.join(f'{n} AS ({t})' for n, t in named.items())} " if named else ""
    whole = re.sub(r"\bP\b", lambda _: f"(PATTERN {texts[0]})", prefix + outer)
    return Drawn(whole, outer, f"PATTERN {texts[1]}", named, windows)


def _condition(random: Random, stream: str, start: bool) -> str:
    n = NUMBERS[stream]
    options = ["TRUE", "TRUE", "TRUE", f"{n} > 0", "b = 'u'", "k = 1", f"{n} IS NOT NULL"]
    if not start:
        options += ["k = FIRST(k)", "k = FIRST(k)", f"{n} >= PREV({n})", "NUM() < 3", "ITER() > 1"]
        options += [f"k = FIRST(k) AND {n} > 0", "Timestamp - FIRST(Timestamp) < 5"]
    return random.choice(options)


def _where(random: Random, bound: list[str], sets: set[str]) -> str:
    if random.random() < 0.6:
        return ""
    one, other = random.choice(bound), random.choice(bound)
    both = one != other and not {one, other} <= sets
    return f" WHERE {one}.k {random.choice(['=', '<', '<>', '<='])} {other}.k" if both else f" WHERE {one}.k = 1"


def _returned(random: Random, bound: list[str], sets: set[str], types: dict[str, tuple[str, str]]) -> list[str]:
    """Expressions, the first of which is a number."""
    found: list[str] = []
    for v in bound:
        found += [f"count({v})", f"sum({v}.k)", f"first({v}).k"] if v in sets else [f"{v}.k", f"{v}.ts", f"{v}.b"]
        if "Pattern" in types[v.upper()][0]:
            found += [f"{v}.num", f"{v}.iter", f"{v}.first_ts", f"{v}.first_k", f"{v}.ts - {v}.first_ts"]
    random.shuffle(found)
    found.sort(key=lambda e: e.endswith(".b"))
    return [found[0], *random.sample(found[1:], random.randrange(min(3, len(found))))]


def streams(random: Random) -> dict[str, Rows]:
    times = random.choice([range(12), range(-8, 12), range(40), range(3)])
    return {name: _stream(random, name, times) for name in COLUMNS}


def _stream(random: Random, name: str, times: range) -> Rows:
    rows = [
        {
            "ts": random.choice(times),
            "k": random.choice([None, 1, 1, 2, 2]),
            NUMBERS[name]: random.choice([None, 0, 1, 2, 3]),
            "b": random.choice([None, "u", "v", ""]),
        }
        for _ in range(random.choice([0, 2, 4, 7, 7]))
    ]
    return rows if random.random() < 0.3 else sorted(rows, key=lambda r: r["ts"])


def expected(d: Drawn, given: dict[str, Rows]) -> list[tuple[Any, ...]]:
    known, columns = dict(given), {name: list(cs) for name, cs in COLUMNS.items()}
    if "Q" in d.named:
        known["Q"] = [
            {"ts": t, "k": k, "b": b} for t, (k, b) in reference_relations.output(d.named["Q"], columns, known)
        ]
        columns["Q"] = ["k", "b"]
    for name, (stream, conditions) in d.windows.items():
        known[name] = _windows(known[stream], conditions)
    query = reference.read_query(d.pattern)
    events = [{"type": n, **row} for n in dict.fromkeys(re.findall(r"\b(S|T|Q|W\d)\b", d.pattern)) for row in known[n]]
    known["P"] = [
        {"ts": max(e.ts for e in m.events()), **{o.name or "": reference.projected(o.value, m) for o in query.returns}}
        for m in reference.answer(query, events, reference.Options())
    ]
    columns["P"] = [o.name or "" for o in query.returns]
    if "Z" in d.named:
        known["Z"] = [{"ts": t, "p0": p} for t, (p,) in reference_relations.output(d.named["Z"], columns, known)]
        columns["Z"] = ["p0"]
    return [(t, *row) for t, row in reference_relations.output(d.outer, columns, {n: known[n] for n in columns})]


def _windows(rows: Rows, conditions: str) -> Rows:
    """Windows as events: the last tuple of each, what the first one had, and the counts."""
    relation = parse_continuous(f"ISTREAM(SELECT * FROM S[Pattern By ({conditions})])").stream.relation
    assert isinstance(relation, c.Select)
    window = relation.sources[0].window
    assert isinstance(window, c.PatternText)
    parts = (window.start, window.termination, window.iteration, window.filter)
    conditions_ = [reference_relations._condition(part) for part in parts]
    found = []
    for one in closed(*conditions_, reference_relations.events(rows)):
        first, last = one.tuples[0], one.tuples[-1]
        firsts = {f"first_{name}": value for name, value in first.attributes.items()}
        counts = {"first_ts": first.ts, "iter": one.iter, "num": one.num}
        found.append({"ts": last.ts, **last.attributes, **firsts, **counts})
    return found


def check(seed: int) -> int:
    random = Random(seed)
    d, given = drawn(random), streams(random)
    query = qc.continuous(d.text, SCHEMAS)
    found = [tuple(row.values()) for row in query.run(given)]
    assert Counter(found) == Counter(expected(d, given)), (seed, d.text, given)
    try:
        used = query.stream().schemas
    except qc.QueryError:  # a query that only runs as a whole; test_live.py has them
        return len(found)
    live = pushed(query, {n: rows for n, rows in given.items() if n in used}, random)
    assert [row[0] for row in live] == [row[0] for row in found], (seed, d.text, given)
    assert Counter(live) == Counter(found), (seed, d.text, given)
    return len(found)


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_random_queries(first: int) -> None:
    assert sum(check(seed) > 0 for seed in range(first, first + 20)) > 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 3_000, 100))
def test_many_random_queries(first: int) -> None:
    assert sum(check(seed) > 0 for seed in range(first, first + 100)) > 20


def test_a_difference_would_be_seen() -> None:
    text = "ISTREAM(SELECT * FROM {}[Now] AS m)"
    pattern = "PATTERN SEQ(W0 a, T b) WITHIN 5 RETURN a.num AS p0"
    window = "k = 1; k = 2; TRUE; FALSE"
    whole = text.format(f"({pattern.replace('W0', f'S[Pattern By ({window})]')}) ")
    d = Drawn(whole, text.format("P "), pattern, {}, {"W0": ("S", window)})
    given: dict[str, Rows] = {
        "S": [{"ts": t, "k": k, "a": 0, "b": "u"} for t, k in ((1, 1), (2, 1), (3, 2))],
        "T": [{"ts": 4, "k": 1, "d": 0, "b": "u"}],
    }
    found = [tuple(row.values()) for row in qc.continuous(whole, SCHEMAS).run(given)]
    assert sorted(found) == sorted(expected(d, given)) == [(4, 2), (4, 2)]
    assert found != expected(d, {**given, "S": given["S"][1:]})
    assert found != expected(d, {**given, "T": []})
