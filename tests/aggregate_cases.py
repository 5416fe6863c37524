"""Random AGG queries with streams: sets, negations and ANDs at every place, keys, groups, ties, nulls."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

import quercus as qc
from quercus.backends.base import Limits
from quercus.backends.local.run import run_plan
from tests import reference

KINDS = {"id": "int64", "v": "int64", "f": "float64", "s": "string", "b": "bool"}
VALUES: dict[str, list[object]] = {
    "id": [0, 1, 1, 1],
    "v": [0, 1, 2, -7],
    "f": [0.0, 0.5, 1.5, -0.25, -0.0],
    "s": ["p", "p", "q", "é"],
    "b": [True, False],
}
LARGE = [2**62, 2**63 - 1, -(2**63), 1, -5]
STRANGE = [math.nan, math.inf, -math.inf, 0.5, 1e300]


@dataclass(frozen=True)
class Case:
    seed: int
    query: str
    events: list[dict[str, object]]
    ties: str

    def schema(self) -> qc.Schema:
        return qc.Schema(KINDS, ties=self.ties)  # type: ignore[arg-type]

    def table(self) -> pa.Table:
        columns = {"ts": pa.int64(), "type": pa.string(), "id": pa.int64(), "v": pa.int64(), "f": pa.float64()}
        columns |= {"s": pa.string(), "b": pa.bool_()}
        return pa.table({n: pa.array([e.get(n) for e in self.events], k) for n, k in columns.items()})

    def __str__(self) -> str:
        rows = "\n  ".join(str(e) for e in self.events)
        return f"seed {self.seed}, ties {self.ties}\n{self.query}\n  {rows}"


def case(seed: int, length: int | None = None) -> Case:
    """The case of a seed; its stream has `length` events, or 8 to 30."""
    r = Random(seed)
    names = iter(f"{name}{number}" for number in ("", 1) for name in "abcdefghijklmnopqrstuvwxyz")
    pattern, plain, sets = _pattern(r, names)
    if r.random() < 0.15:
        other, more, also = _pattern(r, names)
        pattern, plain, sets = f"OR({pattern}, {other})", plain + more, sets + also
    partition = ""
    if r.random() < 0.4:
        if r.random() < 0.5 and len(plain) + len(sets) > 1:
            pattern = pattern[:-1] + r.choice((", [id])", ", [id])", ", [id], [s])"))
        elif r.random() < 0.2 and pattern.count(",") == 1 and len(plain) == 2:
            pattern = pattern[:-1] + f", {plain[0]}.id = {plain[1]}.v)"
        else:
            partition = r.choice((" PARTITION BY id", " PARTITION BY id", " PARTITION BY s, id"))
    where = ""
    if r.random() < 0.3:
        where = f" WHERE {r.choice([*plain, *sets])}.v {r.choice(['>', '<>', '<='])} {r.randint(0, 1)}"
    by = [
        f"{r.choice(plain or ['a'])}.{r.choice(['id', 'id', 's', 's', 'f', 'b', 'v', 'ts', 'type'])}" for _ in range(2)
    ]
    count = r.choice((0, 1, 1, 1, 2)) if plain else 0
    groups = f" GROUPBY {', '.join(dict.fromkeys(by[:count]))}" if count else ""
    window = f"{r.randint(2, 12)}" + r.choice(("", "", " EVENTS"))
    totals = [f"{t} AS n{i}" for i, t in enumerate(_totals(r, [*plain, *sets]))]
    query = f"PATTERN {pattern}{where}{partition}{groups} AGG {', '.join(totals)} WITHIN {window}"
    return Case(seed, query, _events(r, length or r.randint(8, 36)), r.choice(("strict", "arrival")))


def _pattern(r: Random, names: Iterator[str]) -> tuple[str, list[str], list[str]]:
    parts: list[str] = []
    plain: list[str] = []
    sets: list[str] = []
    types = "ABC" if r.random() < 0.8 else "AB"

    closed = r.choice(("begin", "end", "end", "both", "none"))  # where nothing may reach to the end of the window

    def negation() -> None:
        if r.random() < 0.15:
            parts.append(f"!{r.choice('XXABC')} {next(names)}")

    def kleene() -> None:
        if r.random() < 0.2:
            sets.append(next(names))
            parts.append(f"{r.choice(types)}{r.choice('+*')} {sets[-1]}")

    for i in range(r.choice((1, 2, 2, 3, 3, 4))):
        if i or closed in ("end", "none"):
            negation()
            kleene()
            negation()
        kind = r.random()
        if kind < 0.12:
            sets.append(next(names))
            parts.append(f"{r.choice(types)}[{r.randint(1, 3)}] {sets[-1]}")
        elif kind < 0.24:
            own = [next(names) for _ in range(r.randint(2, 3))]
            plain.extend(own)
            parts.append(f"AND({', '.join(f'{r.choice(types)} {v}' for v in own)})")
        else:
            plain.append(next(names))
            parts.append(f"{r.choice(types)} {plain[-1]}")
    if closed in ("begin", "none"):
        negation()
        kleene()
        negation()
    return f"SEQ({', '.join(parts)})", plain, sets


def _totals(r: Random, names: list[str]) -> list[str]:
    found = ["COUNT(*)"] if r.random() < 0.8 else []
    for _ in range(r.randint(0 if found else 1, 3)):
        v, f = r.choice(names), r.choice(("COUNT", "SUM", "AVG", "MIN", "MAX"))
        attr = r.choice(("v", "v", "f", "ts") if f in ("SUM", "AVG") else ("v", "f", "s", "b", "ts"))
        found.append(f"COUNT({v})" if f == "COUNT" else f"{f}({v}.{attr})")
    return found


def _events(r: Random, n: int) -> list[dict[str, object]]:
    values = dict(VALUES)
    if r.random() < 0.15:
        values["v"] = LARGE
    if r.random() < 0.1:
        values["f"] = STRANGE
    nulls = r.choice((0.0, 0.0, 0.1, 0.3))
    steps = r.choice(((0, 1, 1, 2), (0, 0, 0, 1), (1, 1, 2)))
    ts, rows = r.randint(-3, 3), []
    for _ in range(n):
        row: dict[str, object] = {k: None if r.random() < nulls else r.choice(v) for k, v in values.items()}
        rows.append({"ts": ts, "type": r.choice("AAABBBCCCX"), **row})
        ts += r.choice(steps)
    if r.random() < 0.1:
        r.shuffle(rows)
    return rows


# Comparing ------------------------------------------------------------------------------------------------------------


def both(c: Case) -> tuple[str, pa.Table, pa.Table]:
    """The strategy of a case, its answer by that, and over listed matches."""
    plan = qc.compile(c.query, c.schema())
    table = c.table()
    assert plan.tree.aggregation is not None
    listed = run_plan(plan, table, Limits(), listed=True).to_arrow()
    return plan.tree.aggregation.strategy, run_plan(plan, table, Limits()).to_arrow(), listed


def referred(c: Case) -> list[dict[str, object]]:
    """What the reference says."""
    return reference.aggregate(c.query, c.events, reference.Options(ties=c.ties))


def alike(a: Any, b: Any) -> bool:
    """Equal values; of floats, nearly."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return (a is None) == (b is None) and isinstance(a, bool) == isinstance(b, bool) and a == b


def same(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> bool:
    """The same rows in the same order."""
    return len(a) == len(b) and all(
        x.keys() == y.keys() and all(alike(x[k], y[k]) for k in x) for x, y in zip(a, b, strict=True)
    )
