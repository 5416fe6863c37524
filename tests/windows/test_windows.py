"""Pattern windows over whole streams beside Algorithm 1, line by line."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local.events import Events, load
from quercus.backends.local.windows import Closed, WindowStream, closed_windows, run
from quercus.backends.local.windows.plan import plan_of
from quercus.ir import expr as x
from quercus.ir.window import PatternWindow
from tests import windows_cases as cases
from tests import windows_oracle as oracle

CHUNK = 100
_ARROW = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64()}
KINDS = {"ts": pa.int64(), "type": pa.string(), **{n: _ARROW[k] for n, k in cases.KINDS.items()}}


ARRIVAL = qc.Schema(dict(cases.KINDS), ties="arrival")


def events_of(rows: list[dict[str, Any]], schema: qc.Schema = cases.SCHEMA) -> Events:
    names = ("ts", "type", *cases.KINDS)
    return load({n: [r[n] for r in rows] for n in names}, schema)


def listed(found: Closed) -> list[oracle.Found]:
    assert found.offsets.tolist() == [0, *found.num.cumsum().tolist()]
    assert len(found.tuples) == found.offsets[-1]
    parts = zip(found.offsets.tolist(), found.offsets[1:].tolist(), strict=False)
    tuples = [tuple(found.tuples[a:b].tolist()) for a, b in parts]
    assert [t[0] for t in tuples] == found.first.tolist()
    return [oracle.Found(*f) for f in zip(found.close.tolist(), found.iter.tolist(), tuples, strict=True)]


def check(w: PatternWindow, rows: list[dict[str, Any]], **options: Any) -> list[oracle.Found]:
    expected = oracle.closed(w, rows)
    found = listed(closed_windows(w, events_of(rows), qc.Limits(), **options))
    assert found == expected, (w, rows)
    return expected


def case(random: Random) -> tuple[PatternWindow, list[dict[str, Any]]]:
    """A window and a stream; most of those of which nothing comes are thrown away."""
    while True:
        w, rows = cases.pattern_window(random), cases.stream(random)
        found = oracle.closed(w, rows)
        if random.random() < (0.1 if not found else 0.5 if all(len(f.tuples) < 3 for f in found) else 1.0):
            return w, rows


def compare(first: int, count: int, **options: Any) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        random = Random(seed)
        w, rows = case(random)
        found = check(w, rows, **options)
        p = plan_of(w)
        seen.update(
            {"keyed": bool(p.keys), "alike": p.alike, "ranged": p.ranged, "closed": bool(found), "all": True}
            | {"bound": p.bound != x.TRUE, "longer": any(len(f.tuples) > 3 for f in found)}
        )
    return seen


@pytest.mark.parametrize("chunk", range(8))
def test_windows_are_those_of_algorithm_1(chunk: int) -> None:
    seen = compare(chunk * CHUNK, CHUNK)
    assert min(seen[n] for n in ("keyed", "alike", "ranged", "closed", "bound", "longer")) >= CHUNK // 10, seen


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(8, 120))
def test_many_windows_are_those_of_algorithm_1(chunk: int) -> None:
    compare(chunk * CHUNK, CHUNK)


@pytest.mark.parametrize("chunk", range(3))
def test_ties_by_arrival_are_later(chunk: int) -> None:
    """Algorithm 1 where a tuple is later than every one that came before it, whatever their times."""
    seen = 0
    for seed in range(7 * 10**6 + chunk * CHUNK, 7 * 10**6 + (chunk + 1) * CHUNK):
        w, rows = case(Random(seed))
        expected = oracle.closed(w, rows, arrival=True)
        assert listed(closed_windows(w, events_of(rows, ARRIVAL), qc.Limits())) == expected, (w, rows)
        stream = WindowStream(w, ARRIVAL)
        cut = len(rows) // 2
        pushed = [f for part in (rows[:cut], rows[cut:]) for f in listed(stream.push(events_of(part, ARRIVAL)))]
        assert pushed == expected, (w, rows)
        seen += expected != oracle.closed(w, rows)
    assert seen > 10


@pytest.mark.parametrize("chunk", range(2))
def test_threads_share_the_keys(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "WORTH", 0)
    compare(10**6 + chunk * CHUNK, CHUNK, threads=3)


def test_input_in_any_order_and_form() -> None:
    """Positions are those of the order of time; strings may be dictionaries, columns may lie in chunks."""
    for seed in range(5 * 10**6, 5 * 10**6 + 150):
        random = Random(seed)
        w, rows = case(random)
        random.shuffle(rows)
        table = pa.table({n: pa.array([r[n] for r in rows], KINDS[n]) for n in KINDS})
        for name in ("k", "s"):
            if random.random() < 0.5:
                table = table.set_column(
                    table.schema.get_field_index(name), name, table.column(name).dictionary_encode()
                )
        cut = random.randint(0, len(rows))
        table = pa.concat_tables([table.slice(0, cut), table.slice(cut)], promote_options="default")
        found = closed_windows(w, load(table, cases.SCHEMA), qc.Limits())
        rows.sort(key=lambda r: r["ts"])
        assert listed(found) == oracle.closed(w, rows), (w, rows)
        taken = found.table.take(pa.array(found.rows_at(found.tuples)))
        assert taken.column("ts").to_pylist() == [rows[t]["ts"] for t in found.tuples.tolist()]


def test_windows_that_bounds_end_are_swept_out() -> None:
    """Streams that are long enough for it, of windows that nobody touches again."""
    for seed in range(2):
        random = Random(seed)
        key, other = x.Column("", "j", "int64"), x.Column("first", "j", "int64")
        past = x.Arithmetic("-", cases.TS, x.Column("first", "ts", "int64"), "int64")
        w = PatternWindow(
            x.TRUE,
            x.Logic("and", (x.Compare("=", key, other), cases.condition(random, 1))),
            x.Compare("<=", past, x.Const(40, "int64")),
            x.Logic("and", (x.Compare("=", key, other), cases.condition(random, 0))),
        )
        rows: list[dict[str, Any]] = []
        for i in range(3_000):
            values = {"k": "a", "j": random.randrange(800), "v": random.randint(-3, 3), "f": 0.5, "s": "b"}
            rows.append({"ts": i // 2, "type": "T", **values})
        check(w, rows)
