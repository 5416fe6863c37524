"""Snapshots of streams: they go on where they were taken, and anything else is refused."""

from __future__ import annotations

import ast
import hashlib
import pickle
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import quercus as qc
from tests.stream_checks import Row, events_of
from tests.test_engine import table

SCHEMA = qc.Schema({"id": "int64"})
HELD = "PATTERN SEQ(A a, B+ b, !C c, [id]) WITHIN 9"
PAIRS = "PATTERN SEQ(A a, B b) WITHIN 9"


def busy(plan: qc.Plan) -> Any:
    """A stream with events in its buffers and a match held back."""
    stream = plan.stream(max_delay=1, late="drop")
    stream.push(events_of("a1.1 b2.1 a3.2 b4.2 b5.1 a2.1"))
    return stream


REST = events_of("b6.1 c7.2 b8.1 d30.1")


def rest(stream: Any) -> list[Row]:
    """What a stream gives from here to its end."""
    new = stream.push(REST)
    stream.close()
    found: list[Row] = [*new.rows(), *stream.final.rows()]
    assert found
    return found


@pytest.fixture(scope="module")
def plan() -> qc.Plan:
    return qc.compile(HELD, SCHEMA)


@pytest.fixture(scope="module")
def state(plan: qc.Plan) -> bytes:
    found: bytes = busy(plan).snapshot()
    return found


def test_a_snapshot_is_arrow_with_a_version(state: bytes) -> None:
    reader = pa.ipc.open_file(state) if state.startswith(b"ARROW1") else pa.ipc.open_stream(state)
    metadata = reader.schema.metadata
    assert any(b"quercus" in name or b"version" in name for name in metadata), metadata


def test_a_snapshot_does_not_disturb(plan: qc.Plan, state: bytes) -> None:
    stream = busy(plan)
    assert stream.snapshot() == stream.snapshot() == state
    assert rest(stream) == rest(plan.restore(state)) == rest(plan.restore(state))


def test_a_snapshot_is_of_its_moment(plan: qc.Plan, state: bytes) -> None:
    stream = plan.restore(state)
    assert stream.snapshot() == state
    before = rest(stream)
    assert rest(plan.restore(state)) == before
    assert rest(plan.restore(bytes(state))) == before


def test_options_travel_in_the_snapshot(plan: qc.Plan, state: bytes) -> None:
    stream = plan.restore(state)
    assert stream.dropped == 1
    assert stream.push(events_of("a3.1 a4.1")).rows() == []
    assert stream.dropped == 2


def test_a_fresh_stream_has_a_snapshot(plan: qc.Plan) -> None:
    stream = plan.restore(plan.stream().snapshot())
    stream.push(events_of("a1.1 b2.1"))
    stream.close()
    assert stream.final.rows() == [{"a": 0, "b": [1]}]


def test_an_equal_plan_goes_on(plan: qc.Plan, state: bytes) -> None:
    same_plan = qc.Plan.from_json(plan.to_json())
    assert rest(same_plan.restore(state)) == rest(plan.restore(state))


@pytest.mark.parametrize(
    ("query", "schema"),
    [
        (PAIRS, SCHEMA),
        (HELD.replace("9", "8"), SCHEMA),
        (HELD, qc.Schema({"id": "int64"}, key="id")),
        (HELD, qc.Schema({"id": "int64", "v": "int64"})),
        (HELD, qc.Schema({"id": "int64"}, ties="arrival")),
    ],
)
def test_another_plans_snapshot_is_refused(query: str, schema: qc.Schema, state: bytes) -> None:
    with pytest.raises(qc.DataError, match="plan"):
        qc.compile(query, schema).restore(state)


def test_a_truncated_snapshot_is_refused(plan: qc.Plan, state: bytes) -> None:
    for length in {*range(0, len(state), 1 + len(state) // 300), *range(len(state) - 20, len(state))}:
        with pytest.raises(qc.DataError):
            plan.restore(state[:length])
    with pytest.raises(qc.DataError):
        plan.restore(state + b"\0")


def test_a_flipped_bit_is_noticed(plan: qc.Plan, state: bytes) -> None:
    r = Random(1)
    for place in {*range(min(64, len(state))), *(r.randrange(len(state)) for _ in range(400))}:
        flipped = bytearray(state)
        flipped[place] ^= 1 << r.randrange(8)
        with pytest.raises(qc.DataError):
            plan.restore(bytes(flipped))


def test_another_version_is_refused(plan: qc.Plan, state: bytes) -> None:
    """Whatever holds the version: each entry of the metadata is changed in turn."""
    as_file = state.startswith(b"ARROW1")
    read = (pa.ipc.open_file(state) if as_file else pa.ipc.open_stream(state)).read_all()
    for name in read.schema.metadata:
        changed = read.replace_schema_metadata({**read.schema.metadata, name: b"999"})
        sink = pa.BufferOutputStream()
        with (pa.ipc.new_file if as_file else pa.ipc.new_stream)(sink, changed.schema) as writer:
            writer.write_table(changed)
        with pytest.raises(qc.DataError):
            plan.restore(sink.getvalue().to_pybytes())


class Evil:
    """Were it unpickled, it would leave a trace."""

    done: list[bool] = []  # noqa: RUF012

    def __reduce__(self) -> tuple[object, ...]:
        return Evil.done.append, (True,)


def foreign() -> list[object]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table([]).schema) as writer:
        writer.write_table(table(events_of("a1 b2")))
    noise = hashlib.sha512(b"noise").digest() * 20
    return [b"", b"ARROW1", b"\xff" * 64, noise, sink.getvalue().to_pybytes(), pickle.dumps(Evil()), None, "text", 7]


@pytest.mark.parametrize("data", foreign(), ids=lambda data: type(data).__name__)
def test_foreign_bytes_are_refused(plan: qc.Plan, data: Any) -> None:
    with pytest.raises(qc.DataError):
        plan.restore(data)
    assert not Evil.done


def test_nothing_is_pickled() -> None:
    for path in Path(qc.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {"pickle", "marshal", "shelve"} & {name.split(".")[0] for name in names}, path.name
