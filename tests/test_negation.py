"""How negations are answered: which method fits which body, that all of them agree, and that an index lists nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.base import Limits
from quercus.backends.local import exists
from quercus.backends.local.buffers import BufferSource, buffer_specs, segments
from quercus.backends.local.events import load
from quercus.backends.local.fill import fill
from quercus.backends.local.program import Compiler
from quercus.backends.local.run import find
from quercus.backends.local.specs import AT_ONCE, NEVER, PAID, WaySpec
from quercus.ir import tree as t
from quercus.ir.flat import flatten
from quercus.kernels import match
from tests import generate, reference
from tests.generate import Sample
from tests.reference import canonical
from tests.test_engine import table

SCHEMA = qc.Schema({"id": "int64", "v": "int64", "f": "float64", "s": "string"})
CHUNK = 100


def plan_of(pattern: str, window: str = "20", **options: str) -> qc.Plan:
    return qc.compile(f"PATTERN {pattern} WITHIN {window}", SCHEMA, **options)


def program_of(plan: qc.Plan) -> Any:
    flats = flatten(plan.tree.root, plan.tree.window)
    compiler = Compiler(plan.tree, plan.schema, buffer_specs(flats, plan.tree), key_holds=True)
    for f in flats:
        compiler.flat(f, {}, root=True)
    return compiler.program


def methods(plan: qc.Plan) -> list[str]:
    """Of the match's own negations; inner ones come before the negation around them, and twice under `latest`."""
    return [w.method for g in program_of(plan).negations for w in g.ways]


def strategies(plan: qc.Plan) -> list[tuple[str, str]]:
    found = []
    for n in t.walk(plan.tree.root):
        steps = n.steps if isinstance(n, t.Stack) else ()
        found += [(g.strategy, g.reason) for s in steps for g in s.negations]
        found += [(n.negation.strategy, n.negation.reason)] if isinstance(n, t.Reject) else []
    return found


# Which method -------------------------------------------------------------------------------------------------------

CHOSEN = [
    ("SEQ(A a, !C x, B b)", ["next"]),
    ("SEQ(!C x, A a, B b)", ["next"]),
    ("SEQ(A a, !(C x, x.v > 3), B b)", ["next"]),
    ("SEQ(A a, !C+ x, B b)", ["next"]),
    ("SEQ(A a, !C[2] x, B b)", ["jumps"]),
    ("SEQ(A a, B b, [id], !C x)", ["next"]),  # a key is found: segments say it
    ("SEQ(A a, !(C x, x.id = a.id), B b)", ["key"]),
    ("SEQ(A a, !(C x, x.id = a.v, x.s = b.s), B b)", ["key"]),
    ("SEQ(A a, !(C x, x.id + 1 = abs(a.v)), B b)", ["key"]),
    ("SEQ(A a, !(C x, x.id = a.f), B b)", ["key"]),
    ("AND(A a, !A x)", ["next"]),
    ("AND(A a, B b, !(A x, x.id = a.id))", ["key"]),
    ("SEQ(A a, !SEQ(C x, D y), B b)", ["jumps"]),
    ("SEQ(A a, !SEQ(C x, C y, D z), B b)", ["jumps"]),
    ("SEQ(A a, !AND(C x, D y), B b)", ["jumps"]),
    ("SEQ(A a, !SEQ(C x, AND(D y, E z), C u), B b)", ["jumps"]),
    ("SEQ(A a, !SEQ(C x, D y, x.id = a.id), B b)", ["jumps"]),
    ("SEQ(A a, !SEQ(C x, D y, [id], x.id = a.id), B b)", ["jumps"]),
    ("SEQ(A a, !SEQ(C x, OR(D y, E z)), B b)", ["jumps", "jumps"]),
    ("SEQ(A a, !OR(C x, D y), B b)", ["next", "next"]),
    ("AND(A a, B b, !SEQ(A x, B y))", ["jumps"]),
    ("SEQ(A a, !AND(C x, C y), B b)", ["latest"]),
    ("SEQ(A a, !SEQ(C x, D y) WITHIN 2, B b)", ["latest"]),
    ("SEQ(A a, !SEQ(C x, D y, x.v < y.v), B b)", ["latest"]),
    ("SEQ(A a, !SEQ(C x, D y, x.id = y.id), B b)", ["latest"]),
    ("SEQ(A a, !SEQ(C x, D y, x.v < y.v, x.id = y.id = a.id), B b)", ["latest"]),
    ("SEQ(A a, !SEQ(C x, !E z, D y), B b)", ["next", "next", "latest"]),
    ("SEQ(A a, !SEQ(C x, AND(E z, !E u), D y), B b)", ["next", "next", "latest"]),
    ("AND(A a, B b, !SEQ(C x, D y, x.v < y.v))", ["latest"]),
]


@pytest.mark.parametrize(("pattern", "expected"), CHOSEN, ids=[p for p, _ in CHOSEN])
def test_an_index_is_chosen(pattern: str, expected: list[str]) -> None:
    plan = plan_of(pattern)
    assert methods(plan) == expected
    assert {s for s, _ in strategies(plan)} == {"index"}
    assert "by index" in plan.explain()
    assert "by iterative" not in plan.explain().replace("sub-query by iterative", "")


SEARCHED = [
    ("SEQ(A a, !(C x, x.v < a.v), B b)", "no equality"),
    ("SEQ(A a, !(C x, a.id = b.id), B b)", "no equality"),
    ("SEQ(A+ a, !(C x, x.id = a.id), B b)", "no equality"),
    ("SEQ(A a, !SEQ(C x, D y, x.v < b.v), B b)", "no equality"),
    ("SEQ(A a, !SEQ(C x, !D y), B b)", "border"),
    ("SEQ(A a, !AND(C x, !D y), B b)", "border"),
    ("SEQ(A a, !SEQ(C x, !(D y, y.id = a.id), E z), B b)", "names the match"),
    ("AND(A a, B b, !SEQ(A x, B y, x.v < y.v))", "may not use"),
    ("SEQ(A a, !SEQ(C x, D y, x.v < y.v, x.id = a.id), B b)", "last event"),
    ("SEQ(A a, !SEQ(C[2] x, D y, x.v < y.v), B b)", "set of n"),
]


@pytest.mark.parametrize(("pattern", "why"), SEARCHED, ids=[p for p, _ in SEARCHED])
def test_a_search_is_left_where_no_index_fits(pattern: str, why: str) -> None:
    plan = plan_of(pattern)
    assert methods(plan)[-1] == "search"
    (strategy, reason), *_ = strategies(plan)
    assert strategy == "iterative"
    assert why in reason


@pytest.mark.parametrize("pattern", [p for p, _ in CHOSEN])
def test_iterative_searches_always(pattern: str) -> None:
    plan = plan_of(pattern, nested="iterative")
    program = program_of(plan)
    assert {w.method for g in program.negations for w in g.ways} == {"search"}
    assert not any(f.limits or f.jump_limits for f in program.flats)
    assert {s for s, _ in strategies(plan)} == {"iterative"}


LIMITS = [
    ("SEQ(A a, !SEQ(C x, D y), B b, E e)", [(0, 2)], []),
    ("SEQ(A a, B b, !C x, E e)", [(1, 1)], []),
    ("SEQ(A a, !AND(C x, D y), B b)", [], [0]),
    ("SEQ(A a, B b, !SEQ(C x, D y, y.id = b.id), E e)", [], [1]),
    ("SEQ(A a, !(C x, x.id = a.id), B b)", [], [0]),
    ("SEQ(A a, !(C x, x.id = b.id), B b)", [], []),
    ("SEQ(A a, B b, !(C x, x.id = a.id), E e)", [], []),
    ("SEQ(A a, !SEQ(C x, D y, x.v < y.v), B b)", [], []),
    ("SEQ(A a, B b, !(C x, x.id = b.id))", [], []),
]


@pytest.mark.parametrize(("pattern", "pointers", "jumps"), LIMITS, ids=[p for p, *_ in LIMITS])
def test_what_one_neighbour_in_a_chain_decides_is_a_limit(
    pattern: str, pointers: list[tuple[int, int]], jumps: list[int]
) -> None:
    (flat, *_) = program_of(plan_of(pattern)).flats
    assert [(where, len(buffers)) for where, buffers in flat.limits] == pointers
    assert [where for where, _ in flat.jump_limits] == jumps
    left = sum(len(level.negations) for level in flat.levels) + len(flat.negations)
    assert left == (0 if pointers or jumps else 1)


# All methods agree --------------------------------------------------------------------------------------------------


class Drawn:
    """A query with negations and a stream for it, from a seed."""

    def __init__(self, seed: int, events: int) -> None:
        self.seed, self.r, self.size = seed, Random(seed), events
        self.names = iter([f"n{i}" for i in range(40)])
        self.correlated = self.r.random() < 0.6
        self.positive: list[str] = []

    def sample(self) -> Sample:
        r = self.r
        positives = [
            f"{r.choice('AAB')}{r.choice(('', '', '', '+')) if i == 0 else ''} p{i}" for i in range(r.randint(1, 3))
        ]
        root = r.choice(("SEQ", "SEQ", "SEQ", "AND"))
        if root == "AND":
            positives = [p.replace("+", "") for p in positives]
        self.positive = [p.split()[1] for p in positives]
        parts = list(positives)
        for _ in range(r.choice((1, 1, 1, 2))):
            parts.insert(r.randint(0, len(parts)), "!" + self.body(r.choice((1, 2, 2, 2)), self.positive))
        if len(positives) > 1 and root == "SEQ" and r.random() < 0.2:
            inner = r.randint(1, len(parts) - 1)
            head = parts[:inner]
            if any(not p.startswith("!") for p in head) and any(not p.startswith("!") for p in parts[inner:]):
                parts = [f"SEQ({', '.join(head)})", *parts[inner:]]
        if r.random() < 0.12:
            parts.append("[id]")
        size = r.randint(3, 9)
        window = f"{size} EVENTS" if r.random() < 0.35 else str(size)
        query = f"PATTERN {root}({', '.join(parts)}) WITHIN {window}"
        options = reference.Options(ties=r.choice(("strict", "strict", "arrival")), time_unit="s", hierarchy={})
        return Sample(self.seed, query, self.stream(), options)

    def body(self, depth: int, seen: list[str]) -> str:
        r = self.r
        if depth == 0 or r.random() < 0.25:
            name, where = next(self.names), ""
            if self.correlated and r.random() < 0.6:
                where = f", {self.tie(name, seen)}"
            return f"({r.choice('BCD')} {name}{where})"
        kind = r.choice(("SEQ", "SEQ", "SEQ", "AND", "OR"))
        parts, own = [], []
        for _ in range(r.choice((2, 2, 3))):
            if kind == "OR" or r.random() < 0.8:
                name = next(self.names)
                own.append(name)
                sign = r.choice(("[2]", "+")) if kind != "AND" and r.random() < 0.1 else ""
                parts.append(f"{r.choice('BCDD')}{sign} {name}")
            else:
                parts.append(self.nested(depth, seen))
        if kind == "SEQ" and len(parts) > 1 and r.random() < 0.25:
            parts.insert(r.randint(0, len(parts)), "!" + self.body(depth - 1, seen + own))
        if not own:
            own.append(next(self.names))
            parts.append(f"C {own[0]}")
        conditions = []
        if self.correlated and r.random() < 0.7:
            conditions += [self.tie(n, seen) for n in own if r.random() < 0.7]
        if len(own) > 1 and kind != "OR" and r.random() < 0.35:
            x, y = r.sample(own, 2)
            conditions.append(r.choice((f"{x}.v < {y}.v", f"{x}.id = {y}.id", "[id]", f"{x}.v + {y}.v > 3")))
        window = f" WITHIN {r.randint(1, 4)}{r.choice(('', ' EVENTS'))}" if r.random() < 0.2 else ""
        return f"({kind}({', '.join([*parts, *conditions])}){window})"

    def nested(self, depth: int, seen: list[str]) -> str:
        return self.body(max(depth - 1, 0), seen)

    def tie(self, name: str, seen: list[str]) -> str:
        r, other = self.r, self.r.choice(seen)
        return r.choice(
            (
                *[f"{name}.id = {other}.id"] * 5,
                f"{other}.v = {name}.v",
                f"{name}.s = {other}.s",
                f"{name}.f = {other}.f",
                f"{name}.f = {other}.v",
                f"{name}.v + 1 = {other}.v",
                f"{name}.v <= {other}.v",
            )
        )

    def stream(self) -> list[dict[str, object]]:
        r, ts, rows = self.r, 0, []
        nulls = r.choice((0.0, 0.0, 0.1))
        for _ in range(self.size):
            values: dict[str, object] = {
                "id": r.choice((0, 1, 1)),
                "v": r.randint(0, 3),
                "f": r.choice((0.0, -0.0, 1.0, 2.0, float("nan"))),
                "s": r.choice("pq"),
                "b": True,
            }
            kept = {k: None if r.random() < nulls else v for k, v in values.items()}
            rows.append({"type": r.choice("AABBCD"), "ts": ts, **kept})
            ts += r.choice((0, 1, 1, 2))
        return rows


def draw(seed: int, events: int) -> Sample | None:
    sample = Drawn(seed, events).sample()
    try:
        qc.compile(sample.query, sample.schema())
    except qc.QueryError:
        return None
    return sample


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the methods, and holds each to what the plan says."""
    seen: Counter[str] = Counter()
    lower: Callable[..., WaySpec] = exists.lower

    def watched(c: Any, body: Any, names: Any, strategy: str, barred: Any) -> WaySpec:
        way = lower(c, body, names, strategy, barred)
        assert (strategy == "index") == (way.method != "search")
        seen[way.method] += 1
        return way

    monkeypatch.setattr(exists, "lower", watched)
    return seen


def answers(sample: Sample, monkeypatch: pytest.MonkeyPatch, *builds: int) -> list[tuple[str, frozenset[object]]]:
    """What a search says, then what the plan's own strategies say, built at these times."""
    events, found = table(sample.events), []
    for nested, times in (("iterative", (PAID,)), ("auto", builds)):
        plan = qc.compile(sample.query, sample.schema(), nested=nested)
        for build in times:
            monkeypatch.setattr(exists, "BUILD", build)
            found.append((f"{nested}, build {build}", canonical(plan.run(events).rows())))
    return found


def agree(expected: frozenset[object], found: list[tuple[str, frozenset[object]]], sample: Sample) -> None:
    for how, got in found:
        assert got == expected, f"{sample}\n{how}\nmissing {expected - got}\nunexpected {got - expected}"


@pytest.mark.parametrize("first", range(0, 1_600, CHUNK))
def test_every_method_answers_as_the_reference_does(
    first: int, monkeypatch: pytest.MonkeyPatch, told: Counter[str]
) -> None:
    some = 0
    for sample in filter(None, (draw(seed, 9) for seed in range(first, first + CHUNK))):
        expected = sample.answer()
        some += bool(expected)
        agree(expected, answers(sample, monkeypatch, AT_ONCE, NEVER, PAID), sample)
    assert some > CHUNK / 3
    assert all(told[m] > CHUNK / 10 for m in ("next", "key", "jumps", "latest", "search")), told


@pytest.mark.parametrize("first", range(10_000, 10_800, CHUNK))
def test_an_index_and_a_search_agree_on_longer_streams(
    first: int, monkeypatch: pytest.MonkeyPatch, told: Counter[str]
) -> None:
    for sample in filter(None, (draw(seed, 45) for seed in range(first, first + CHUNK))):
        (_, expected), *found = answers(sample, monkeypatch, AT_ONCE, PAID)
        agree(expected, found, sample)


@pytest.mark.parametrize("first", range(500_000, 500_800, CHUNK))
def test_random_queries_with_negations_agree(first: int, monkeypatch: pytest.MonkeyPatch, told: Counter[str]) -> None:
    for sample, _ in generate.valid(range(first, first + CHUNK)):
        if "!" in sample.query or "NOT" in sample.query:
            agree(sample.answer(), answers(sample, monkeypatch, AT_ONCE, NEVER), sample)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000_000, 1_030_000, 1_000))
def test_every_method_answers_as_the_reference_does_at_length(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + 1_000):
        for sample in filter(None, (draw(seed, 9), draw(seed, 45))):
            (_, expected), *found = answers(sample, monkeypatch, AT_ONCE, PAID)
            agree(expected, found, sample)
            if len(sample.events) == 9:
                assert sample.answer() == expected, str(sample)


@pytest.mark.parametrize("build", [AT_ONCE, NEVER])
@pytest.mark.parametrize(("first", "left"), [(5, 0), (4, 1)])
def test_a_scope_as_long_as_the_window_holds_a_match_as_long(
    first: int, left: int, build: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exists, "BUILD", build)
    plan = plan_of("AND(A a, !SEQ(C x, D y, x.v <= y.v))", "5")
    events = [{"ts": ts, "type": type_, "v": 1} for ts, type_ in ((first, "C"), (10, "D"), (10, "A"))]
    assert len(plan.run(events)) == left


def test_an_and_ends_with_its_last_event_in_whatever_order() -> None:
    for pattern in ("AND(C x, D y)", "AND(D y, C x)", "AND(C x, D y, x.id = a.id)"):
        plan = plan_of(f"SEQ(A a, !{pattern}, B b)")
        assert program_of(plan).flats[0].jump_limits
        events = [{"ts": ts, "type": type_, "id": 1} for ts, type_ in enumerate("ADBCB")]
        assert plan.run(events).rows() == [{"a": 0, "b": 2}]


@pytest.mark.parametrize(("last", "left"), [("5", 0), ("5 EVENTS", 1), ("6 EVENTS", 0)])
def test_a_limit_looks_as_far_as_the_window(last: str, left: int) -> None:
    plan = plan_of("SEQ(A a, !(C x, x.id = a.id), B b)", last)
    events = [{"ts": ts, "type": type_, "id": 1} for ts, type_ in enumerate("AZZBCB" if left else "AZZZCB")]
    assert program_of(plan).flats[0].jump_limits
    assert len(plan.run(events)) == left


@pytest.mark.parametrize(("v", "left"), [(2, 1), (1, 0)])
def test_two_ties_of_one_variable_must_both_hold(v: int, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exists, "BUILD", AT_ONCE)
    plan = plan_of("SEQ(A a, !SEQ(C x, D y, x.v < y.v, y.id = a.id, y.v = a.id), B b)")
    assert methods(plan) == ["latest"]
    values = {"A": {"id": 1}, "C": {"v": 0}, "D": {"id": 1, "v": v}, "B": {}}
    events = [{"ts": ts, "type": type_, **values[type_]} for ts, type_ in enumerate("ACDB")]
    assert len(plan.run(events)) == left


# Keys ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [AT_ONCE, NEVER])
@pytest.mark.parametrize(
    ("attr", "outer", "inner", "equal"),
    [
        ("id", 3, 3, True),
        ("id", 3, 4, False),
        ("id", None, None, False),
        ("f", 0.0, -0.0, True),
        ("f", float("nan"), float("nan"), False),
        ("s", "p", "p", True),
        ("s", "p", "q", False),
        ("s", None, "q", False),
    ],
)
def test_keys_compare_as_values_do(
    attr: str, outer: object, inner: object, equal: bool, build: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exists, "BUILD", build)
    plan = plan_of(f"SEQ(A a, !(C x, x.{attr} = a.{attr}), B b)")
    events = [{"ts": 1, "type": "A", attr: outer}, {"ts": 2, "type": "C", attr: inner}, {"ts": 3, "type": "B"}]
    assert len(plan.run(events)) == (0 if equal else 1)


@pytest.mark.parametrize("build", [AT_ONCE, NEVER])
def test_integers_equal_floats_as_floats(build: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exists, "BUILD", build)
    plan = plan_of("SEQ(A a, !(C x, x.f = a.id), B b)")
    for number, f, left in ((2, 2.0, 0), (2, 2.5, 1), (2**53 + 1, float(2**53), 0)):
        events = [{"ts": 1, "type": "A", "id": number}, {"ts": 2, "type": "C", "f": f}, {"ts": 3, "type": "B"}]
        assert len(plan.run(events)) == left


def test_other_data_needs_other_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matcher that is loaded again forgets what it built."""
    monkeypatch.setattr(exists, "BUILD", AT_ONCE)
    for pattern in (
        "SEQ(A a, !(C x, x.id = a.id), B b)",
        "SEQ(A a, !SEQ(C x, C y, y.v > x.v, [id], x.id = a.id), B b)",
    ):
        plan = plan_of(pattern)
        matcher = match.Matcher(program_of(plan))
        r = Random(1)
        for n in (30, 60, 10, 45):
            stream = load(random_table(r, n), plan.schema)
            flats = flatten(plan.tree.root, plan.tree.window)
            source = BufferSource(stream, plan.tree, buffer_specs(flats, plan.tree))
            compiler = Compiler(plan.tree, plan.schema, buffer_specs(flats, plan.tree), key_holds=True)
            compiler.flat(flats[0], {}, root=True)
            matcher.load(fill(compiler.program, stream, source.data))
            status, columns, _ = matcher.run(0, segments(source.data), 10**6, -1)
            assert status == match.OK
            (expected, *_) = find(plan_of(pattern, nested="iterative"), stream, Limits())
            assert len(columns[0]) == len(expected.rows)


def random_table(r: Random, n: int) -> pa.Table:
    types = [r.choice("ABCD") for _ in range(n)]
    ids, values = [r.randint(0, 2) for _ in range(n)], [r.randint(0, 9) for _ in range(n)]
    return pa.table({"ts": np.arange(n), "type": types, "id": ids, "v": values, "f": np.zeros(n), "s": ["p"] * n})


# What it costs ------------------------------------------------------------------------------------------------------


def compared(
    pattern: str, types: list[str], ids: list[int] | None = None, window: str = "100000", **options: str
) -> dict[str, int]:
    n = len(types)
    events = pa.table(
        {
            "ts": np.arange(n),
            "type": types,
            "id": np.zeros(n, np.int64) if ids is None else ids,
            "v": np.zeros(n, np.int64),
            "f": np.zeros(n),
            "s": ["p"] * n,
        }
    )
    plan = plan_of(pattern, "100000", **options)
    counters: dict[str, int] = {}
    find(plan, load(events, plan.schema), Limits(), counters)
    return counters


def test_jumps_do_not_enumerate() -> None:
    pattern = "AND(SEQ(A a, !SEQ(B b, C c, D d), E e), F f)"
    types = ["F", "A", *"B" * 30, *"C" * 30, "E"]
    jumped, searched = compared(pattern, types), compared(pattern, types, nested="iterative")
    assert jumped == {"routed": 63, "compared": 3 + 2, "bound": 3, "negation tests": 1, "matches": 1}
    assert searched["compared"] == 3 + 30 + 30 * 30 + 1  # the result of the SEQ around it is looked at as a whole
    assert searched["negation tests"] == 1


def test_a_limit_of_a_chain_tests_nothing() -> None:
    pattern = "SEQ(A a, !SEQ(B b, C c, D d), E e)"
    for n in (10, 100, 1_000):
        counters = compared(pattern, [*"A" * 3, *"B" * n, *"C" * n, *"E" * 3])
        assert counters["negation tests"] == 0
        assert counters["compared"] <= 2 * 3 * 3 + 3


@pytest.mark.parametrize(
    ("pattern", "slope"),
    [
        ("SEQ(A a, !SEQ(B b, C c, D d, [id], b.id = e.id), E e)", 5),
        ("SEQ(A a, !SEQ(B b, C c, D d, [id], b.id = e.id, b.v <= d.v), E e)", 5),
        ("SEQ(A a, !(B b, b.id = e.id), E e)", 5),
    ],
)
def test_comparisons_grow_with_the_events(pattern: str, slope: int) -> None:
    """Many matches, each with a scope full of B, C and D that end no inner match."""
    for n in (50, 100, 200):
        types = [k for _ in range(n) for k in "ADCBE"]
        ids = [i for i, _ in enumerate(types)]
        counters = compared(pattern, types, ids)
        assert counters["negation tests"] == n * (n + 1) // 2
        assert counters["compared"] <= slope * (counters["negation tests"] + 5 * n), counters


@pytest.mark.parametrize(
    "inside", ["B b, C c, D d, b.v < c.v", "B b, C c, b.v < c.v", "B b, C c, D d, b.v < d.v", "B b, C c) WITHIN (9"]
)
def test_latest_starts_limit_the_range_of_the_next_component(inside: str) -> None:
    """A test for each A, instead of one for each pair of A and E; and each pair of neighbours once."""
    pattern = f"SEQ(A a, !SEQ({inside}), E e)".replace("(9)", "9")
    for n in (50, 100, 200):
        types = [k for _ in range(n) for k in "ADCBE"]
        counters = compared(pattern, types)
        assert counters["negation tests"] == n
        assert counters["matches"] == compared(pattern, types, nested="iterative")["matches"]


def test_a_window_inside_costs_a_test_for_each_start() -> None:
    for n in (50, 100, 200):
        types = [k for _ in range(n) for k in "ADCBE"]
        counters = compared("SEQ(A a, !SEQ(B b, C c, D d) WITHIN 100000 EVENTS, E e)", types, list(range(len(types))))
        assert counters["negation tests"] == n
        assert counters["compared"] <= 5 * (n * (n + 1) // 2 + 5 * n), counters


def test_latest_starts_are_found_by_neighbours() -> None:
    n = 40
    types = [*"A" * n, *"B" * n, *"C" * n, *"D" * n, *"E" * n, *"F" * n]
    pattern = "SEQ(A a, !SEQ(B b, C c, D d, E e, c.v <= d.v, d.v < e.v), F f)"
    assert compared(pattern, types)["compared"] <= 2 * n * n + 5 * n


def test_a_limit_is_not_built_for_a_few_tests() -> None:
    counters = compared("SEQ(A a, !SEQ(B b, C c, D d, b.v <= c.v), E e)", ["A", *"BCD" * 3_000, "E"])
    assert counters["compared"] < 100


def test_building_is_paid_for_by_searches() -> None:
    """One test in a long stream builds nothing; many tests build once."""
    pattern = "SEQ(A a, !(B b, b.id = e.id), E e)"
    few = compared(pattern, [*"B" * 10_000, "A", "B", "E"])
    assert few["compared"] < 10
    many = compared(pattern, ["A"] * 200 + ["B"] * 500 + ["E"] * 200, [*[-1] * 700, *range(200)])
    assert many["negation tests"] == 200 * 200
    assert many["compared"] == 200 * 200 + 200 + 500  # each pair, each E, one pass over B; then no B has the key


def test_a_neighbour_that_decides_is_tested_once() -> None:
    counters = compared("SEQ(A a, !(B b, b.id = a.id), E e)", ["A"] * 200 + ["B"] * 500 + ["E"] * 200)
    assert counters["negation tests"] == 200
    assert counters["compared"] == 200 * 200 + 200 + 200
    assert counters["matches"] == 0


def test_threads_build_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from quercus.backends.local import threads

    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(threads, "WORTH", 0)
    r = Random(3)
    events = random_table(r, 400)
    for pattern, _ in CHOSEN:
        plan = plan_of(pattern.replace("E ", "D "))
        assert plan.run(events, threads=3).rows() == plan.run(events).rows()
