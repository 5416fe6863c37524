"""The matcher beside its twin: the same programs over the same buffers, batch by batch for streams, give the same."""

from __future__ import annotations

import contextlib
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local import exists, incremental, sieves, threads
from quercus.kernels import match, reference_match, reference_stream
from tests import generate
from tests.stream_checks import feed, in_order
from tests.test_engine import table

CHUNK = 60
SHAPES = ("auto", "stack", "left", "right", "bushy", "inner")


def listed(found: Any) -> tuple[int, list[tuple[Any, ...]]]:
    """The status, and each match as the rows of its variables."""
    status, columns, sets = found
    parts = [c.tolist() for c in columns]
    parts += [[tuple(rows[a:b].tolist()) for a, b in zip(i, j, strict=True)] for i, j, rows in sets]
    return status, list(zip(*parts, strict=True))


def compare(found: Any, twin: Any, *, ordered: bool) -> int:
    (status, got), (expected_status, want) = listed(found), listed(twin)
    assert status == expected_status
    if status == match.OK:
        assert got == want if ordered else Counter(got) == Counter(want)
    return len(got)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Every matcher that is made runs beside its twin; counts what they did."""
    counted: Counter[str] = Counter()

    def note(program: Any) -> None:
        for start, end, over in program.preds:
            counted.update(match.OPS[op] for op in program.code[start:end:3])
            counted["over a set"] += over >= 0
        for f in program.flats:
            for part in (
                "chain",
                "trail",
                "limits",
                "jump_limits",
                "joins",
                "pairs",
                "counted",
                "held",
                "sets",
                "tests",
            ):
                counted[part] += getattr(f, part) not in (None, [])
            counted["natural"] += f.natural
        counted.update(w.method for g in program.negations for w in g.ways)

    class Both(match.Matcher):
        def __init__(self, program: Any) -> None:
            note(program)
            self.program, self.twin = program, reference_match.Matcher(program)

        def load(self, data: Any) -> None:
            super().load(data)
            self.twin.load(data)

        def run(self, flat: int, segments: Any, *limits: Any) -> Any:
            found = super().run(flat, segments, *limits)
            twin = self.twin.run(flat, segments, *limits)
            counted["matches"] += compare(found, twin, ordered=self.program.flats[flat].natural)
            return found

    class BothStreams(match.StreamMatcher):
        def __init__(self, program: Any, searches: Any, keyed: bool, own_positions: bool) -> None:
            super().__init__(program, searches, keyed, own_positions)
            note(program)
            counted.update(mode for _, _, mode, _ in searches)
            counted["stream chains"] += any(chain >= 0 for _, chain, _, _ in searches)
            self.program, self.alternatives, self.has_keys = program, searches, keyed
            self.twin = reference_stream.StreamMatcher(program, searches, keyed, own_positions)

        def check(self) -> None:
            assert self.events == self.twin.events
            for b in range(len(self.program.buffers)):
                assert self.kept(b).tolist() == self.twin.kept(b).tolist()
                assert self.kept_positions(b).tolist() == self.twin.kept_positions(b).tolist()
            for c in (i for i, spec in enumerate(self.program.columns) if spec.text):
                assert self.column(c).tolist() == self.twin.column(c).tolist()

        def number(self, segments: Any) -> Any:
            positions = super().number(segments)
            assert positions.tolist() == self.twin.number(segments).tolist()
            return positions

        def append(self, *given: Any) -> None:
            super().append(*given)
            self.twin.append(*given)

        def run(self, number: int, *moments: Any) -> Any:
            found = super().run(number, *moments)
            flat, chain, _, _ = self.alternatives[number]
            natural = self.program.flats[max(flat, chain)].natural and not self.has_keys
            counted["given"] += compare(found, self.twin.run(number, *moments), ordered=natural)
            return found

        def commit(self, *least: Any) -> Any:
            freed = super().commit(*least)
            assert freed == self.twin.commit(*least)
            self.check()
            return freed

        def live(self, *least: Any) -> list[int]:
            assert super().live(*least) == self.twin.live(*least)
            return super().live(*least)

        def undo(self) -> None:
            super().undo()
            self.twin.undo()
            self.check()
            counted["undone"] += 1

        def set_positions(self, next_: Any) -> None:
            super().set_positions(next_)
            self.twin.set_positions(next_)

        def positions(self) -> list[int]:
            assert super().positions() == self.twin.positions()
            return super().positions()

        def relabel(self, *given: Any) -> None:
            super().relabel(*given)
            self.twin.relabel(*given)
            counted["relabelled"] += 1

        def set_constants(self, *given: Any) -> None:
            super().set_constants(*given)
            self.twin.set_constants(*given)

    monkeypatch.setattr(match, "Matcher", Both)
    monkeypatch.setattr(match, "StreamMatcher", BothStreams)
    monkeypatch.setattr(incremental.Engine, "_feed_of", lambda self, schema: None)
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(threads, "WORTH", 0)
    return counted


@pytest.mark.parametrize("first", range(730_000, 730_360, CHUNK))
def test_random_queries(first: int, seen: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for sample, _ in generate.valid(range(first, first + CHUNK)):
        r = Random(sample.seed)
        monkeypatch.setattr(exists, "BUILD", r.choice((0, 1, 2)))
        monkeypatch.setattr(sieves, "FROM", r.choice((0, 0, 16)))
        plan = qc.compile(sample.query, sample.schema(), shape=r.choice(SHAPES))
        plan.run(table(sample.events), threads=r.choice((1, 1, 3)))
    assert seen["matches"] > 0


@pytest.mark.parametrize("first", range(731_000, 731_240, CHUNK))
def test_random_streams(first: int, seen: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieves, "FROM", 0)
    for sample, _ in generate.valid(range(first, first + CHUNK)):
        feed(qc.compile(sample.query, sample.schema()), in_order(sample).events, Random(sample.seed))
    assert seen["given"] > 0


# Every opcode, over numbers that do not behave ------------------------------------------------------------------------

WIDE = [-(2**63), 2**63 - 1, -7, -1, 0, 2, 5, None]
REAL = [float("nan"), float("inf"), -2.5, -0.5, 0.0, 0.5, 1e308, None]
TEXT = ["p", "P", "", "qq", None, "p", "Q", "é"]
PLAIN = [
    *(f"a.v {op} b.v {compare} c.v" for op in "+-*%" for compare in ("=", "<>", "<", "<=", ">", ">=")),
    *(f"a.f {op} b.f {compare} c.f" for op in "+-*/%" for compare in ("=", "<>", "<", "<=", ">", ">=")),
    *(f"(a.v {op} b.v) is null" for op in "+-*/%"),
    *(f"(a.f {op} b.f) is not null" for op in "+-*/%"),
    *(f"{name}(a.f - b.f) < c.f" for name in ("abs", "round", "floor", "ceil")),
    *(f"{name}(a.f * b.f) > 1.5" for name in ("abs", "round", "floor", "ceil")),
    "abs(a.v - b.v) <= c.v",
    "abs(a.v + b.v) is null",
    "-(a.v + b.v) < c.v",
    "-(a.v + b.v) is null",
    "-(a.f + b.f) < c.f",
    "a.v + b.f > c.v",
    "a.v + b.v in (4, null, c.v)",
    "a.v + b.v not in (4, c.v)",
    "not (a.v in (b.v, c.v))",
    "(a.v < b.v or b.v < c.v)",
    "(a.v < b.v and b.v < c.v) or a.f < c.f",
    "a.s < b.s",
    "a.s = b.s or b.s <> c.s",
]
GROUPS = [
    *(f"{name}(c.v) {compare} a.v" for name in ("sum", "min", "max", "avg") for compare in ("=", "<", ">=")),
    *(f"{name}(c.f) {compare} a.f" for name in ("sum", "min", "max", "avg") for compare in ("=", "<", ">=")),
    *(f"{name}(c).{attr} > a.{attr}" for name in ("first", "last") for attr in "vfs"),
    *(f"{name}(first(c).s) = a.s" for name in ("lower", "upper")),
    "min(c.s) < a.s",
    "length(last(c).s) < a.v",
    "count(c) > a.v",
    "sum(c.v) is null",
    "sum(c.v) + c.v > a.v",
]


def awkward(seed: int, each: int) -> pa.Table:
    r = Random(seed)
    types = "A" * each + "B" * each + "C" * each
    columns: dict[str, Any] = {"ts": range(len(types)), "type": list(types)}
    for name, pool, kind in (("v", WIDE, pa.int64()), ("f", REAL, pa.float64()), ("s", TEXT, pa.string())):
        columns[name] = pa.array([x for _ in range(3) for x in r.sample(pool, each)], kind)
    return pa.table(columns)


@pytest.mark.parametrize("sift_from", [0, 16])
def test_every_opcode(sift_from: int, seen: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieves, "FROM", sift_from)
    schema = qc.Schema({"v": "int64", "f": "float64", "s": "string"})
    for pattern, conditions, size in (("SEQ(A a, B b, C c)", PLAIN, 8), ("SEQ(A a, B b, C+ c)", GROUPS, 3)):
        for number, condition in enumerate(conditions):
            without = ["normal_comparison"] if "not" in condition else []  # which leaves no `not` but at columns
            plan = qc.compile(f"PATTERN {pattern} WHERE {condition} WITHIN 100", schema, without=without)
            for seed in range(1 if size == 8 else 12):
                plan.run(awkward(1000 * number + seed, size))
    assert [op for op in match.OPS if not seen[op]] == []
    assert seen["over a set"] > 0
    assert seen["matches"] > 5_000


# What the random samples cannot be trusted to have --------------------------------------------------------------------


def test_samples_reach_every_method(seen: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains with limits, trails, trees, sets, and each way of a negation; each way of a release."""
    monkeypatch.setattr(exists, "BUILD", 2)
    r = Random(9)
    for query in QUERIES:
        for ties in ("strict", "arrival"):
            plan = qc.compile(f"PATTERN {query}", qc.Schema({"id": "int64", "s": "string"}, ties=ties))
            events = [
                {"type": r.choice("AABBCCX"), "ts": t // 2, "id": r.randint(0, 1), "s": r.choice("pqr")}
                for t in range(12)
            ]
            plan.run(columns(events), threads=2)
            qc.compile(plan.text, plan.schema, shape="bushy").run(columns(events), threads=2)
            with plan.stream() as stream:
                for i in range(0, 12, 3):
                    stream.limits = qc.Limits(
                        max_matches=0, max_state_bytes=10**9
                    )  # what would give a match is taken back
                    with contextlib.suppress(qc.LimitExceeded):
                        stream.push(columns(events[i : i + 3]))
                        continue
                    stream.limits = qc.Limits()
                    stream.push(columns(events[i : i + 3]))
                stream.limits = qc.Limits()
    missing = [what for what in REACHED if not seen[what]]
    assert missing == []


QUERIES = [
    "SEQ(A a, B b, C c) WITHIN 5",
    "SEQ(A a, !X x, B b, C c) WITHIN 5",
    "SEQ(A a, !SEQ(X x, B y), B b) WITHIN 5",
    "SEQ(A a, !(X x, x.id = a.id), B b) WITHIN 5",
    "SEQ(A a, !(X x, x.id = b.id), B b) WITHIN 5 EVENTS",
    "SEQ(A a, !SEQ(X x, B y) WITHIN 1, C c) WITHIN 5",
    "SEQ(A a, !(X x, x.id < a.id), B b) WITHIN 5",
    "SEQ(A a, B b, C+ c) WITHIN 5",
    "SEQ(A a, B+ b, C+ c) WHERE [id] WITHIN 5",
    "SEQ(A a, B[2] b, C c) WHERE a.s < c.s WITHIN 5",
    "SEQ(A a, B b, !C c) WITHIN 3",
    "SEQ(A a, AND(B b, !C c)) WITHIN 3",
    "AND(A a, B b, C c) WITHIN 3",
    "AND(A a, B b, !C c) WITHIN 3",
    "SEQ(A+ a, B b, !C c) WITHIN 3 EVENTS",
    "SEQ(A a, B+ b) WHERE count(b) > 1 WITHIN 3 PARTITION BY id",
    "SEQ(A a, B b) WITHIN 3 EVENTS PARTITION BY id",
    "SEQ(A a, SEQ(B b, C+ c) WITHIN 2) WITHIN 5",
]
REACHED = [
    *("chain", "trail", "limits", "jump_limits", "pairs", "counted", "held", "sets", "tests", "natural", "joins"),
    *("next", "key", "jumps", "latest", "search"),
    *("last", "delayed", "first", "relabelled", "undone", "stream chains"),
    *("matches", "given"),
]


def columns(events: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(events)


def test_a_wrong_answer_is_noticed(seen: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WHERE a.id < b.id WITHIN 9", qc.Schema({"id": "int64"}))
    events = {"ts": [1, 2], "type": ["A", "B"], "id": [1, 2]}
    assert len(plan.run(events)) == 1
    monkeypatch.setattr(reference_match, "value_of", lambda *_: False)
    with pytest.raises(AssertionError):
        plan.run(events)
    with pytest.raises(AssertionError):
        plan.stream().push(events)
