"""Numbers of partial matches, and of what each requirement alone stopped, counted by hand over all combinations."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random

import pytest

import quercus as qc

SCHEMA = qc.Schema({"id": "int64", "v": "int64"}, time_unit="s")
QUERY = "PATTERN SEQ(A a, B b, !D d, C c, a.id = b.id, c.v > b.v, a.v > 1) WITHIN 8"
Event = dict[str, int | str | None]
Test = Callable[[Event, Event, Event], bool]


def less(one: int | str | None, other: int | str | None) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one < other


def stream(seed: int) -> list[Event]:
    r = Random(seed)
    ts, found = 0, []
    for _ in range(16):
        ts += r.choice((0, 1, 1, 2))
        v = r.choice((None, 0, 1, 2, 3, 4))
        found.append({"ts": ts, "type": r.choice("ABCD"), "id": r.choice((1, 1, 2, None)), "v": v})
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(40))
def test_stages_and_obstacles(seed: int) -> None:
    events = stream(seed)
    of = {t: [e for e in events if e["type"] == t] for t in "ABCD"}

    def between(b: Event, c: Event) -> bool:
        return any(less(b["ts"], d["ts"]) and less(d["ts"], c["ts"]) for d in of["D"])

    def fits(e: Event, f: Event) -> bool:
        return f["ts"] - e["ts"] <= 8  # type: ignore[operator]

    def same(a: Event, b: Event) -> bool:
        return a["id"] is not None and a["id"] == b["id"]

    tests: dict[str, Test] = {
        "order": lambda a, b, c: less(a["ts"], b["ts"]) and less(b["ts"], c["ts"]),
        "WITHIN 8 s": lambda a, b, c: (
            max(e["ts"] for e in (a, b, c)) - min(e["ts"] for e in (a, b, c)) <= 8  # type: ignore[type-var, operator]
        ),
        "a.id = b.id": lambda a, b, c: same(a, b),
        "c.v > b.v": lambda a, b, c: less(b["v"], c["v"]),
        "a.v > 1": lambda a, b, c: less(1, a["v"]),
        "!D d": lambda a, b, c: not between(b, c),
    }
    triples = list(product(of["A"], of["B"], of["C"]))
    why = qc.compile(QUERY, SCHEMA).why(events, limits=qc.Limits(max_seconds=60))

    def met(*names: str) -> int:
        return sum(all(tests[n](*t) for n in names) for t in triples)

    assert why.matches.n == met(*tests)
    pairs = [(a, b) for a, b in product(of["A"], of["B"]) if less(1, a["v"]) and less(a["ts"], b["ts"]) and fits(a, b)]
    basic = ("order", "WITHIN 8 s", "a.v > 1")
    expected = [
        (("a", "b"), "in order, within 8 s", len(pairs)),
        (("a", "b"), "a.id = b.id", sum(same(a, b) for a, b in pairs)),
        (("a", "b", "c"), "in order, within 8 s", met(*basic, "a.id = b.id")),
        (("a", "b", "c"), "c.v > b.v", met(*basic, "a.id = b.id", "c.v > b.v")),
        (("a", "b", "c"), "!D d", met(*tests)),
    ]
    (funnel,) = why.funnels
    stages = [(s.variables, s.what, s.count.n) for s in funnel.stages if s.what not in ("in order", "within 8 s")]
    assert stages == expected[: len(stages)]
    assert all(n == 0 for _, _, n in expected[len(stages) :])
    alone = {o.what: o.stopped.n for o in why.obstacles if o.kind not in ("ties", "order")}
    by_hand = {n: met(*(t for t in tests if t != n)) - met(*tests) for n in tests if n != "order"}
    assert alone == {n: k for n, k in by_hand.items() if k}
    unordered = sum(
        all(tests[n](*t) for n in ("WITHIN 8 s", "a.id = b.id", "c.v > b.v", "a.v > 1")) and not tests["order"](*t)
        for t in triples
    )
    assert [o.stopped.n for o in why.obstacles if o.kind == "order"] == ([unordered] if unordered else [])
