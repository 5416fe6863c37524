"""Negations between the neighbours of a chain: they end ranges of the next component, and shut off what leads nowhere.

Chains of two to six components, with none, one or two negations after each, of leaves, SEQs, ANDs and ORs, some of
which are tied to the match by values; with and without keys and conditions; streams with equal times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

import quercus as qc
from quercus.backends.local import exists, sieves, threads
from quercus.backends.local.analyze import analyzed
from quercus.backends.local.specs import AT_ONCE
from quercus.ir import tree as t
from quercus.ir.analysis import places
from tests import reference
from tests.generate import Sample
from tests.nested import trades
from tests.reference import canonical
from tests.stream_checks import cuts
from tests.test_engine import table
from tests.test_negation import program_of

CHUNK = 40
NEGATED = ("X", "X", "SEQ(X, Y)", "SEQ(X, Y)", "SEQ(X, Y, X)", "AND(X, Y)", "OR(X, SEQ(Y, Z))", "SEQ(X, !Z, Y)")


def sample(seed: int, size: int) -> Sample:
    """A chain, and a stream of so many events."""
    r = Random(seed)
    n, names = r.choice((2, 3, 3, 4, 4, 5, 6)), iter(range(100))
    tied, asked = r.random() < 0.25, r.random() < 0.3
    parts = ["A v0"]
    for i in range(1, n):
        for _ in range(r.choice((0, 1, 1, 2))):
            parts.append("!" + negated(r, names, f"v{i - 1}" if tied and r.random() < 0.6 else None))
        parts.append(f"{'ABCDEF'[i]} v{i}")
    if asked:
        a, b = sorted(r.sample(range(n), 2))
        parts.append(f"v{a}.v {r.choice(('<', '<=', '<>'))} v{b}.v")
    key = r.choice(("", "", " PARTITION BY id"))
    if not key and r.random() < 0.2:
        parts.append("[id]")
    window = r.choice((f"{r.randint(n, 2 * size)}", f"{r.randint(n + 2, size)} EVENTS"))
    options = reference.Options(ties=r.choice(("strict", "arrival")), time_unit="s", hierarchy={})
    return Sample(seed, f"PATTERN SEQ({', '.join(parts)}){key} WITHIN {window}", stream(r, n, size), options)


def negated(r: Random, names: Iterator[int], to: str | None) -> str:
    """A negated pattern with a name for each leaf; each is tied to a component of the match, if there is one."""
    text, own = "", []
    for c in r.choice(NEGATED):
        text += c
        if c in "XYZ":
            own.append(f"n{next(names)}")
            text += f" {own[-1]}"
    if to is None or "!" in text or "OR" in text:
        return text
    tie = ", ".join(f"{v}.id = {to}.id" for v in own)
    return f"({text}, {tie})" if len(own) == 1 else f"{text[:-1]}, {tie})"


def stream(r: Random, n: int, size: int) -> list[dict[str, object]]:
    rows, ts = [], 0
    types = "ABCDEF"[:n] * r.choice((2, 3, 4)) + "XYZ"
    for _ in range(size):
        values = {"id": r.randint(0, 1), "v": r.randint(0, 4), "f": 0.5, "s": "p", "b": True}
        rows.append({"type": r.choice(types), "ts": ts} | values)
        ts += r.choice((0, 1, 1, 2))
    return rows


def compiled(s: Sample, nested: str = "index") -> qc.Plan:
    return qc.compile(s.query, s.schema(), shape="stack", nested=nested)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a run decides by cost is done at once: indexes, sieves, threads."""
    monkeypatch.setattr(exists, "BUILD", AT_ONCE)
    monkeypatch.setattr(sieves, "FROM", 0)
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(threads, "WORTH", 0)


@pytest.mark.parametrize("first", range(0, 5 * CHUNK, CHUNK))
def test_chains_with_negations_answer_as_the_reference_does(first: int) -> None:
    some = 0
    for s in (sample(seed, 18) for seed in range(first, first + CHUNK)):
        expected, plan = s.answer(), compiled(s)
        some += bool(expected)
        got = plan.run(table(s.events)).rows()
        assert len(got) == len(expected), s
        assert canonical(got) == expected, s
        assert plan.run(table(s.events), threads=3).rows() == got, s
    assert some > CHUNK / 4


@pytest.mark.parametrize("first", range(10_000, 10_000 + 2 * CHUNK, CHUNK))
def test_searches_find_the_same_in_longer_streams(first: int) -> None:
    """In the same order, and in pushes."""
    found = 0
    for s in (sample(seed, 90) for seed in range(first, first + CHUNK)):
        plan, events, r = compiled(s), table(s.events), Random(s.seed)
        try:
            want = compiled(s, "iterative").run(events, limits=qc.Limits(max_matches=20_000)).rows()
        except qc.LimitExceeded:
            continue
        found += len(want)
        assert plan.run(events).rows() == want, s
        assert plan.run(events, threads=3).rows() == want, s
        pushed, at = plan.stream(adapt=False), []
        for a, b in cuts(r, len(s.events)):
            at += pushed.push(events.slice(a, b - a)).rows()
        assert canonical([*at, *pushed.close().rows()]) == canonical(want), s
        for limit in {0, len(want) // 2, len(want) - 1} & set(range(len(want))):
            with pytest.raises(qc.LimitExceeded):
                plan.run(events, limits=qc.Limits(max_matches=limit))
        assert len(plan.run(events, limits=qc.Limits(max_matches=len(want)))) == len(want)
    assert found > 2_000


def test_samples_reach_every_kind_of_limit() -> None:
    """By pointers, by jumps and by an index, free and tied; after all components but the last, and after some."""
    seen: Counter[str] = Counter()
    for s in (sample(seed, 18) for seed in range(5 * CHUNK)):
        program = program_of(compiled(s))
        for f in (f for f in program.flats if f.root and f.chain is not None):
            where = {i for i, _ in (*f.limits, *f.jump_limits, *f.index_limits)}
            for kind in ("limits", "jump_limits", "index_limits"):
                seen[kind] += bool(getattr(f, kind))
            keys = [j for _, g in f.jump_limits for w in program.negations[g].ways for j in w.jumps]
            seen["tied"] += any(j.ties for j in keys)
            seen["free"] += any(not j.ties for j in keys)
            seen["all"] += len(where) == len(f.levels) - 1 > 1
            seen["before the last"] += len(f.levels) - 2 in where and len(f.levels) > 2
            seen["not there"] += bool(where) and len(f.levels) - 2 not in where
            seen["six"] += len(f.levels) == 6 and bool(where)
    rare = {k: n for k, n in seen.items() if n < 3}
    assert len(seen) == 9
    assert not rare, seen


@pytest.mark.parametrize("after", ["!SEQ(C x, D y)", "!C x", "!AND(C x, D y)"])
def test_nothing_is_looked_at_in_vain(after: str) -> None:
    """What a limit before the last component leaves of the one before it goes out as it is."""
    plan = qc.compile(
        f"PATTERN SEQ(A a, !SEQ(D u, E w), B b, {after}, E e) WITHIN 60",
        qc.Schema({"id": "int64", "v": "int64"}, time_unit="s"),
        shape="stack",
        nested="index",
    )
    done = analyzed(plan, trades(2_000))
    buffers = {n.var: done.nodes[path] for path, n in places(plan.tree.root) if isinstance(n, t.Buffer)}
    assert done.matches > 500
    assert buffers["b"].compared == buffers["b"].bound == done.matches
    assert buffers["a"].compared == buffers["a"].bound
