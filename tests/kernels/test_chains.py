"""Chains over streams long enough for merges side by side and pairs written many at a time: every match, in order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from attrs import frozen

import quercus as qc
from quercus.backends.local import threads

SCHEMA = {"id": "int64"}


@frozen
class Chain:
    """A SEQ of plain components, of negated ones between them (!X), and of a set at the end (C+)."""

    parts: str
    within: str
    same: bool = False

    @property
    def query(self) -> str:
        written = [f"{part} v{i}" for i, part in enumerate(self.parts.split())]
        key = " PARTITION BY id" if self.same else ""
        return f"PATTERN SEQ({', '.join(written)}) WITHIN {self.within}{key}"


CHAINS = [
    Chain("A B", "40"),
    Chain("A B C", "40"),
    Chain("A B C", "30 EVENTS"),
    Chain("A B C", "60", same=True),
    Chain("A B C", "9 EVENTS", same=True),
    Chain("A B C D", "30"),
    Chain("A !X B C", "40"),
    Chain("A B !X C", "40"),
    Chain("A !X !D B !X C", "60"),
    Chain("A B+", "40"),
    Chain("A B C+", "30"),
    Chain("A B C+", "40 EVENTS"),
    Chain("A !X B C D+", "20"),
    Chain("A B C+", "40", same=True),
]
RATES = {
    "even": dict.fromkeys("ABCDX", 1.0),
    "few first": {"A": 0.1, "B": 1.0, "C": 2.0, "D": 1.0, "X": 0.3},
    "few last": {"A": 2.0, "B": 1.0, "C": 0.1, "D": 0.1, "X": 0.3},
    "nothing between": {"A": 1.0, "B": 0.0, "C": 1.0, "D": 1.0, "X": 1.0},
}


def stream(seed: int, rates: dict[str, float], n: int = 700, *, apart: int = 3) -> pa.Table:
    """The first half of a stream has all types, the second first A and B only, then C and D."""
    r = np.random.default_rng(seed)
    p = np.array(list(rates.values())) / sum(rates.values())
    types = r.choice(list(rates), n, p=p)
    place = np.arange(n)
    types = np.where((place >= n // 2) & (place < n * 3 // 4) & np.isin(types, ["C", "D"]), "A", types)
    types = np.where((place >= n * 3 // 4) & np.isin(types, ["A", "B"]), "C", types)
    return pa.table({"ts": np.cumsum(r.integers(0, apart, n)), "type": types, "id": r.integers(0, 3, n)})


def expected(chain: Chain, events: pa.Table, *, arrival: bool) -> list[dict[str, int | list[int]]]:
    ts, types, ids = (events[c].to_pylist() for c in ("ts", "type", "id"))
    place, seen = [], dict.fromkeys(ids, 0)
    for i in ids:
        place.append(seen[i])
        seen[i] += 1
    count = chain.within.endswith("EVENTS")
    size = int(chain.within.split()[0]) - count
    at = ts if not count else place if chain.same else list(range(len(ts)))
    order = list(range(len(ts))) if arrival else ts
    parts = chain.parts.split()
    plain = [i for i, p in enumerate(parts) if p[0] != "!"]
    rows = {t: [i for i, found in enumerate(types) if found == t] for t in "ABCDX"}

    def free(i: int, j: int, bound: list[int]) -> bool:
        """No negated event between the components i and j, which are neighbours but for what is negated."""
        return not any(
            order[bound[-2]] < order[x] < order[bound[-1]] and (not chain.same or ids[x] == ids[bound[0]])
            for k in range(i + 1, j)
            for x in rows[parts[k][1]]
        )

    def later(name: str, bound: list[int]) -> Iterator[int]:
        for e in rows[name]:
            if bound and (order[e] <= order[bound[-1]] or (chain.same and ids[e] != ids[bound[0]])):
                continue
            if bound and at[e] - at[bound[0]] > size:
                break
            yield e

    def matches(k: int, bound: list[int]) -> Iterator[dict[str, int | list[int]]]:
        if k == len(plain):
            yield {f"v{plain[i]}": e for i, e in enumerate(bound)}
        elif parts[plain[k]][-1] == "+":
            if elements := list(later(parts[plain[k]][0], bound)):
                yield {f"v{plain[i]}": e for i, e in enumerate(bound)} | {f"v{plain[k]}": elements}
        else:
            for e in later(parts[plain[k]], bound):
                if k == 0 or free(plain[k - 1], plain[k], [*bound, e]):
                    yield from matches(k + 1, [*bound, e])

    return sorted(matches(0, []), key=key)


def key(match: dict[str, int | list[int]]) -> tuple[int, ...]:
    ends = [v if isinstance(v, int) else v[-1] for v in match.values()]
    firsts = [v if isinstance(v, int) else v[0] for v in match.values()]
    return max(ends), min(firsts), *firsts


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: c.query)
def test_every_match_is_found_in_order(chain: Chain, rates: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(threads, "WORTH", 0)
    for ties in ("strict", "arrival"):
        events = stream(len(chain.query), RATES[rates])
        plan = qc.compile(chain.query, qc.Schema(SCHEMA, ties=ties))
        want = expected(chain, events, arrival=ties == "arrival")
        assert plan.run(events).rows() == want
        assert plan.run(events, threads=3).rows() == want


def test_the_oracle_finds_something() -> None:
    found = [len(expected(c, stream(len(c.query), RATES["even"]), arrival=False)) for c in CHAINS]
    assert min(found) > 20
    assert max(found) > 2_000


@pytest.mark.parametrize("limit", [0, 1, 7, 300])
@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: c.query)
def test_a_limit_is_kept(chain: Chain, limit: int) -> None:
    plan, events = qc.compile(chain.query, qc.Schema(SCHEMA)), stream(1, RATES["even"])
    found = len(plan.run(events))
    if found > limit:
        with pytest.raises(qc.LimitExceeded):
            plan.run(events, limits=qc.Limits(max_matches=limit))
    assert len(plan.run(events, limits=qc.Limits(max_matches=found))) == found


@pytest.mark.parametrize("low", [1 - 2**63, 2**63 - 2 - 30])
@pytest.mark.parametrize("query", ["SEQ(A a, B b)", "SEQ(A a, B b, C c)", "SEQ(A a, B+ b)", "SEQ(A a, B b, C+ c)"])
def test_the_ends_of_time(query: str, low: int) -> None:
    """Windows that reach beyond what int64 holds; at the last moment nothing comes after anything."""
    ts = sorted([low + i for i in range(31)] * 3)
    types = [t for _ in range(31) for t in "ABC"]
    moved = pa.table({"ts": pa.array([t - low for t in ts], pa.int64()), "type": types})
    plan = qc.compile(f"PATTERN {query} WITHIN 12", qc.Schema({}))
    assert plan.run(pa.table({"ts": pa.array(ts, pa.int64()), "type": types})).rows() == plan.run(moved).rows()


def test_long_ranges_are_written_whole() -> None:
    """More partners than are written at once, at the end of a buffer and before it."""
    types = ["A"] * 3 + ["B"] * 100 + ["C"] * 2 + ["B"] * 5 + ["C"]
    events = pa.table({"ts": np.arange(len(types)), "type": types})
    found = qc.compile("PATTERN SEQ(A a, B b, C c) WITHIN 1000", qc.Schema({})).run(events).rows()
    b = [i for i, t in enumerate(types) if t == "B"]
    ends = [i for i, t in enumerate(types) if t == "C"]
    assert found == [{"a": x, "b": y, "c": z} for z in ends for x in range(3) for y in b if y < z]
    assert all(u["c"] <= v["c"] for u, v in pairwise(found))
