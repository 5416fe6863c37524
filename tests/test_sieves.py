"""Comparisons that sift candidates in blocks: the same matches as one by one; what is passed over is not counted."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local import exists, sieves
from quercus.backends.local.analyze import analyzed
from quercus.backends.local.buffers import buffer_specs
from quercus.backends.local.program import Compiler
from quercus.backends.local.specs import AT_ONCE, NEVER, PAID
from quercus.ir.flat import flatten
from quercus.kernels import match

ONE_BY_ONE = 1 << 62
OPS = ("<", "<=", ">", ">=", "=", "<>")
PATTERNS = (
    ("SEQ(A a, B b)", "ab"),
    ("SEQ(A a, B b, C c)", "abc"),
    ("SEQ(A a, B[2] b, C c)", "abc"),
    ("SEQ(A a, B+ b, C c)", "ac"),
    ("SEQ(A a, !D d, B b, C c)", "abc"),
    ("SEQ(A a, !(D d, d.v {op} a.v), B b)", "ab"),
    ("SEQ(A a, !(D d, d.f {op} a.f + 1, d.v {op} b.v), B b)", "ab"),
    ("SEQ(A a, !SEQ(C c, D d, c.v {op} d.v, d.f {op} a.f), B b)", "ab"),
    ("SEQ(A a, B b, !(D d, d.v {op} a.v))", "ab"),
    ("AND(A a, B b)", "ab"),
    ("AND(A a, A b, B c)", "abc"),
    ("SEQ(A a, AND(B b, D d), C c)", "abdc"),
)
WIDE = [-(2**63), 2**63 - 1, None]
REAL = [float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, None]


@pytest.fixture(autouse=True)
def usual_width() -> Iterator[None]:
    yield
    match.limit_width(8)


def schema(ties: Any = "strict") -> qc.Schema:
    return qc.Schema({"v": "int64", "f": "float64", "s": "string"}, ties=ties)


def events(r: Random, n: int) -> pa.Table:
    odd = r.choice((0.0, 0.1))
    v = [r.choice(WIDE) if r.random() < odd else r.randint(-30, 30) for _ in range(n)]
    f = [r.choice(REAL) if r.random() < odd else round(r.gauss(0, 3), 1) for _ in range(n)]
    if r.random() < 0.3:
        f.sort(key=lambda x: (x is None, x == x, x or 0))
    return pa.table(
        {
            "ts": sorted(r.randrange(n) for _ in range(n)),
            "type": [r.choice("ABCD") for _ in range(n)],
            "v": pa.array(v, pa.int64()),
            "f": pa.array(f, pa.float64()),
            "s": [r.choice(("p", "q", "qq", None)) for _ in range(n)],
        }
    )


def condition(r: Random, names: str) -> str:
    a, b, c, op, k = *r.sample(names, 2), r.choice(names), r.choice(OPS), r.choice("vf")
    return r.choice(
        (
            f"{a}.{k} {op} {b}.{k}",
            f"{a}.{k} {op} {b}.{k} + {r.randint(-5, 5)}",
            f"2 * {a}.{k} {op} 1.1 * {b}.{k}",
            f"{a}.v {op} {b}.f",
            f"{a}.s {op} {b}.s",
            f"{a}.{k} - {b}.{k} {op} {c}.{k}",
            f"{a}.{k} < {b}.{k} < {c}.{k}",
        )
    )


def query(r: Random) -> tuple[str, int]:
    pattern, names = r.choice(PATTERNS)
    pattern = pattern.replace("{op}", r.choice(OPS))
    conditions = " and ".join(condition(r, names) for _ in range(r.choice((1, 1, 2, 3))))
    long = len(names) < 3
    window = f"{r.choice((100, 1000)) if long else r.choice((50, 150))}{r.choice(('', ' EVENTS'))}"
    return f"PATTERN {pattern} WHERE {conditions} WITHIN {window}", r.choice((300, 900)) if long else 250


def found(text: str, table: pa.Table, shape: Any, ties: Any, threads: int = 1) -> list[list[int]]:
    limits = qc.Limits(max_matches=2_000_000)
    bound = qc.compile(text, schema(ties), shape=shape).run(table, threads=threads, limits=limits).bound
    return [b.rows.tolist() for b in bound]


@pytest.mark.parametrize("seed", range(12))
def test_blocks_and_single_candidates_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    r, total = Random(seed), 0
    for _ in range(8):
        text, n = query(r)
        table, shape, ties = events(r, n), r.choice(("auto", "stack", "left", "right")), r.choice(("strict", "arrival"))
        monkeypatch.setattr(sieves, "FROM", ONE_BY_ONE)
        expected = found(text, table, shape, ties)
        for least, build, width, threads in ((0, AT_ONCE, 8, 1), (0, NEVER, 4, 1), (9, PAID, 8, 2), (0, AT_ONCE, 1, 1)):
            monkeypatch.setattr(sieves, "FROM", least)
            monkeypatch.setattr(exists, "BUILD", build)
            match.limit_width(width)
            assert found(text, table, shape, ties, threads) == expected, (text, shape, ties, least, build, width)
        total += len(expected[0])
    assert total > 100


@pytest.mark.parametrize("seed", range(4))
def test_streams_sift_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    r = Random(100 + seed)
    for _ in range(4):
        text, n = query(r)
        table, given = events(r, n), []
        for least in (ONE_BY_ONE, 0):
            monkeypatch.setattr(sieves, "FROM", least)
            parts = []
            with qc.compile(text, schema()).stream() as stream:
                for i in range(0, n, 60):
                    parts.append([b.rows.tolist() for b in stream.push(table.slice(i, 60)).bound])
                parts.append([b.rows.tolist() for b in stream.close().bound])
            given.append(parts)
        assert given[0] == given[1], text


# What is looked at ----------------------------------------------------------------------------------------------------


def climb(n: int) -> pa.Table:
    """A's whose v climbs from 0, then one B."""
    return pa.table({"ts": range(n + 1), "type": ["A"] * n + ["B"], "v": range(n + 1), "f": [0.0] * (n + 1)})


def looked_at(text: str, table: pa.Table) -> tuple[int, int]:
    a = analyzed(qc.compile(text, qc.Schema({"v": "int64", "f": "float64"}), shape="stack"), table)
    return a.compared, a.matches


def test_blocks_that_hold_nothing_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.v > b.v - 11 WITHIN 100000"
    monkeypatch.setattr(exists, "BUILD", AT_ONCE)
    assert looked_at(text, climb(6400)) == (1 + 64, 10)  # the B, and the last block of A's
    monkeypatch.setattr(exists, "BUILD", NEVER)
    assert looked_at(text, climb(6400)) == (1 + 6400, 10)
    monkeypatch.setattr(sieves, "FROM", ONE_BY_ONE)
    assert looked_at(text, climb(6400)) == (1 + 6400, 10)


def test_a_bound_that_nothing_passes_needs_no_look() -> None:
    assert looked_at("PATTERN SEQ(A a, B b) WHERE a.v > b.v + 9223372036854775807 WITHIN 9999", climb(100)) == (1, 0)
    assert looked_at("PATTERN SEQ(A a, B b) WHERE a.f > b.f / 0.0 WITHIN 9999", climb(100)) == (1, 0)


def test_zones_are_made_when_blocks_were_compared_for_nothing() -> None:
    n, several = 6400, 50
    table = pa.table({"ts": range(n + several), "type": ["A"] * n + ["B"] * several, "v": [0] * n + [5] * several})
    plan = qc.compile("PATTERN SEQ(A a, B b) WHERE a.v > b.v WITHIN 100000", qc.Schema({"v": "int64"}), shape="stack")
    assert analyzed(plan, table).compared == several + 4 * n  # four passes, then none


# Which comparisons are sieves -----------------------------------------------------------------------------------------


def sieves_of(text: str) -> dict[str, list[str]]:
    plan = qc.compile(f"PATTERN {text} WITHIN 100", schema(), shape="stack")
    flats = flatten(plan.tree.root, plan.tree.window)
    compiler = Compiler(plan.tree, plan.schema, buffer_specs(flats, plan.tree), key_holds=True)
    spec = compiler.program.flats[compiler.flat(flats[0], {}, root=True)]
    names = {s: leaf.var for leaf, name in spec.leaves for s in name.slots}
    return {names[k.slot]: [s.compare for s in k.sieves] for k in spec.levels}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ("a.v < b.v", {"c": [], "a": [], "b": ["gt"]}),
        ("a.v < b.v < c.v", {"c": [], "a": ["lt"], "b": ["gt", "lt"]}),
        ("a.v <= b.v, b.v <= c.v", {"c": [], "a": ["le"], "b": ["ge", "le"]}),
        ("a.v <= b.v < c.v", {"c": [], "a": ["lt"], "b": ["ge", "lt"]}),
        ("a.v > b.v = c.v + 1", {"c": [], "a": ["gt"], "b": ["lt", "eq"]}),
        ("a.v < b.v > c.v", {"c": [], "a": [], "b": ["gt", "gt"]}),
        ("a.v < b.v, b.f < c.f", {"c": [], "a": [], "b": ["gt", "lt"]}),
        ("b.v > a.v + c.v * 2", {"c": [], "a": [], "b": ["gt"]}),
        ("a.v <> b.v, a.v + b.v > c.v, b.v + a.v > b.f", {"c": [], "a": [], "b": []}),
        ("a.v < b.v or b.v < c.v", {"c": [], "a": [], "b": []}),
    ],
)
def test_sieves(conditions: str, expected: dict[str, list[str]]) -> None:
    assert sieves_of(f"SEQ(A a, B b, C c, {conditions})") == expected


def test_a_long_chain_says_what_its_ends_say() -> None:
    assert sieves_of("SEQ(A a, B b, C c, D d, a.v < b.v < c.v < d.v)") == {
        "d": [],
        "a": ["lt"],
        "b": ["gt", "lt"],
        "c": ["gt", "lt"],
    }
