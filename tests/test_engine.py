"""The local engine against the reference, on random queries and streams; and what is promised around a run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local import threads
from quercus.compiler import SHAPES
from quercus.compiler.rules import RULES
from tests import generate
from tests.generate import Sample
from tests.reference import canonical

TYPES = {"id": pa.int64(), "v": pa.int64(), "f": pa.float64(), "s": pa.string(), "b": pa.bool_()}
CHUNK = 125


def table(events: list[dict[str, object]]) -> pa.Table:
    """The stream with its types told, since a column may be all null."""
    columns: dict[str, pa.Array] = {
        "ts": pa.array([e["ts"] for e in events], pa.int64()),
        "type": pa.array([e["type"] for e in events], pa.string()),
    }
    return pa.table(columns | {n: pa.array([e.get(n) for e in events], t) for n, t in TYPES.items()})


def run(sample: Sample, **options: str) -> frozenset[object]:
    return canonical(qc.compile(sample.query, sample.schema(), **options).run(table(sample.events)).rows())


def agree(seeds: range, shapes: tuple[str, ...]) -> Iterator[tuple[bool, Sample]]:
    for sample, _ in generate.valid(seeds):
        expected = sample.answer()
        for shape in shapes:
            got = run(sample, shape=shape)
            assert got == expected, f"{sample}\nshape {shape}\nmissing {expected - got}\nunexpected {got - expected}"
        yield bool(expected), sample


@pytest.mark.parametrize("first", range(0, 2_000, CHUNK))
def test_the_engine_answers_as_the_reference_does(first: int) -> None:
    seen = [found for found, _ in agree(range(first, first + CHUNK), ("auto",))]
    assert sum(seen) > len(seen) / 3, "too few samples have matches"


@pytest.mark.parametrize("first", range(100_000, 101_250, CHUNK))
def test_every_shape_gives_the_same_answer(first: int) -> None:
    assert list(agree(range(first, first + CHUNK), SHAPES))


@pytest.mark.parametrize("first", range(150_000, 150_250, CHUNK))
def test_threads_find_the_same_in_the_same_order(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(threads, "WORTH", 0)
    for sample, _ in generate.valid(range(first, first + CHUNK)):
        plan, events = qc.compile(sample.query, sample.schema()), table(sample.events)
        assert plan.run(events, threads=2).rows() == plan.run(events).rows() == plan.run(events, threads=5).rows()


@pytest.mark.parametrize("rule", [r.name for r in RULES])
def test_every_rule_can_be_left_out(rule: str) -> None:
    for sample, _ in generate.valid(range(300_000, 300_060)):
        got = canonical(qc.compile(sample.query, sample.schema(), without=[rule]).run(table(sample.events)).rows())
        assert got == sample.answer(), f"without {rule}: {sample}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000_000, 1_100_000, 1_000))
def test_the_engine_answers_as_the_reference_does_at_length(first: int) -> None:
    assert list(agree(range(first, first + 1_000), ("auto", "left", "stack")))


def test_the_comparison_can_fail() -> None:
    sample = next(s for s, _ in generate.valid(range(1_000)) if len(s.answer()) > 1)
    assert run(sample) != frozenset(list(sample.answer())[1:])


# What is promised around a run ----------------------------------------------------------------------------------------

SCHEMA = qc.Schema({"id": "int64"})


def stream(n: int, types: str = "AB") -> pa.Table:
    return pa.table({"ts": np.arange(n), "type": [types[i % len(types)] for i in range(n)], "id": np.arange(n) % 7})


def test_matches_come_by_end_then_start_then_rows() -> None:
    found = qc.compile("PATTERN SEQ(A a, B b, A c) WITHIN 9", SCHEMA).run(stream(40)).rows()
    order = [(m["c"], m["a"], m["b"]) for m in found]
    assert order == sorted(order)
    assert len(order) > 100


def test_order_of_matches_does_not_depend_on_the_operator() -> None:
    found = qc.compile("PATTERN AND(A a, B b) WITHIN 9", SCHEMA).run(stream(40)).rows()
    order = [(max(m.values()), min(m.values()), m["a"], m["b"]) for m in found]
    assert order == sorted(order)


def test_unsorted_input_is_sorted_and_rows_name_the_input() -> None:
    events = {"ts": [9, 1, 5], "type": ["B", "A", "B"], "id": [0, 0, 0]}
    assert qc.compile("PATTERN SEQ(A a, B b) WITHIN 9", SCHEMA).run(events).rows() == [
        {"a": 1, "b": 2},
        {"a": 1, "b": 0},
    ]


def test_an_empty_stream_has_no_matches() -> None:
    empty = pa.table(
        {"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string()), "id": pa.array([], pa.int64())}
    )
    for query in ("PATTERN SEQ(A a, B+ b) WITHIN 9", "PATTERN A+ WITHIN 3", "PATTERN SEQ(A a, !B, [id]) WITHIN 3"):
        assert len(qc.compile(query, SCHEMA).run(empty)) == 0


def test_too_many_matches_stop_with_what_to_do() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 1000", SCHEMA)
    with pytest.raises(qc.LimitExceeded, match=r"max_matches=\)") as e:
        plan.run(stream(1_000), limits=qc.Limits(max_matches=99))
    assert e.value.limit == "max_matches"
    assert len(plan.run(stream(20), limits=qc.Limits(max_matches=10**6))) == 55


@pytest.mark.parametrize("query", ["PATTERN SEQ(A a, B b, A c) WITHIN 9", "PATTERN SEQ(A a, B b, [id]) WITHIN 70"])
def test_two_threads_share_a_larger_stream(query: str) -> None:
    plan, events = qc.compile(query, SCHEMA), stream(20_000)
    one, two = plan.run(events), plan.run(events, threads=2)
    assert one.rows() == two.rows()
    assert len(one) > 10_000
    with pytest.raises(qc.LimitExceeded):
        plan.run(events, threads=2, limits=qc.Limits(max_matches=len(one) - 1))


def test_too_long_a_run_stops() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b, A c, B d, a.id + b.id = c.id + d.id + 100) WITHIN 100000", SCHEMA)
    began = time.monotonic()
    with pytest.raises(qc.LimitExceeded, match="max_seconds"):
        plan.run(stream(4_000), limits=qc.Limits(max_seconds=1))
    assert time.monotonic() - began < 10


ENDLESS = """
import numpy as np, quercus as qc
n = 10_000
events = {"ts": np.arange(n), "type": ["AB"[i % 2] for i in range(n)], "id": np.arange(n) % 7}
query = "PATTERN SEQ(A a, B b, A c, B d, a.id + b.id = c.id + d.id + 100) WITHIN 100000"
plan = qc.compile(query, qc.Schema({"id": "int64"}))
plan.run({"ts": [1], "type": ["A"], "id": [1]})  # an interrupt in a callback of an import would be lost
print("running", flush=True)
plan.run(events, threads=THREADS)
"""


@pytest.mark.parametrize("count", [1, 2])
def test_interrupt_stops_a_run(count: int) -> None:
    code = ENDLESS.replace("THREADS", str(count))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    time.sleep(0.5)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    try:
        _, errors = child.communicate(timeout=30)
    finally:
        child.kill()
    assert "KeyboardInterrupt" in errors
    assert child.returncode != 0
    assert time.monotonic() - began < 5


def test_sets_of_thousands_cost_no_combinations() -> None:
    n = 20_000
    events = {"ts": np.arange(n), "type": ["A", *["B"] * (n - 2), "C"], "id": np.zeros(n, np.int64)}
    (found,) = qc.compile("PATTERN SEQ(A a, B+ b, C c) WITHIN 100000", SCHEMA).run(events).rows()
    assert found["b"] == list(range(1, n - 1))


def test_text_functions_of_group_functions_run() -> None:
    events = {"ts": [1, 2, 3, 4], "type": ["A", "B", "B", "C"], "s": ["x", "Ab", "cd", "AB"]}
    plan = qc.compile(
        "PATTERN SEQ(A a, B+ b, C c) WHERE lower(first(b).s) = lower(c.s) and length(upper(max(b.s))) = 2 WITHIN 9",
        qc.Schema({"s": "string"}),
    )
    assert plan.run(events).rows() == [{"a": 0, "b": [1, 2], "c": 3}]


class Counting:
    """A backend from outside: what the registry promises is all it uses."""

    name = "counting"

    def supports(self, plan: qc.Plan) -> str | None:
        return "it counts no sets" if any(b.kleene for b in plan.query.variables if hasattr(b, "kleene")) else None

    def run(self, plan: qc.Plan, events: object, *, threads: int | None, limits: qc.Limits) -> int:
        return len(plan.run(events, "local", limits=limits))


def test_a_backend_plugs_in_from_outside() -> None:
    qc.backends.register("counting", Counting)
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 1", SCHEMA)
    assert plan.run(stream(10), "counting") == 5
    assert isinstance(Counting(), qc.backends.Backend)
    with pytest.raises(qc.QueryError, match="counting"):
        plan.run(stream(10), "countin")
