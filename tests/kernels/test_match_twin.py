"""The matcher beside its twin: the same programs over the same buffers, batch by batch for streams, give the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.backends.local import exists, incremental, threads
from quercus.kernels import match, reference_code, reference_match, reference_stream
from tests import generate
from tests.stream_checks import in_order
from tests.test_engine import table

CHUNK = 60
SHAPES = ("auto", "stack", "left", "right", "bushy", "inner")


def listed(found: Any) -> tuple[int, list[tuple[Any, ...]]]:
    """The status, and each match as the rows of its variables."""
    status, columns, sets = found
    parts = [c.tolist() for c in columns]
    parts += [[tuple(rows[a:b]) for a, b in zip(at[:-1], at[1:], strict=True)] for at, rows in sets]
    return status, list(zip(*parts, strict=True))


def compare(found: Any, twin: Any, *, ordered: bool) -> int:
    (status, got), (expected_status, want) = listed(found), listed(twin)
    assert status == expected_status
    if status == match.OK:
        assert got == want if ordered else Counter(got) == Counter(want)
    return len(got)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
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
    yield counted


@pytest.mark.parametrize("first", range(730_000, 730_360, CHUNK))
def test_random_queries(first: int, seen: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for sample, _ in generate.valid(range(first, first + CHUNK)):
        r = Random(sample.seed)
        monkeypatch.setattr(exists, "BUILD", r.choice((0, 1, 2)))
        plan = qc.compile(sample.query, sample.schema(), shape=r.choice(SHAPES))
        plan.run(table(sample.events), threads=r.choice((1, 1, 3)))
    assert seen["matches"] > 0


@pytest.mark.parametrize("first", range(731_000, 731_240, CHUNK))
def test_random_streams(first: int, seen: Counter[str]) -> None:
    for sample, _ in generate.valid(range(first, first + CHUNK)):
        r, events = Random(sample.seed), in_order(sample).events
        plan = qc.compile(sample.query, sample.schema())
        with plan.stream() as stream:
            while events:
                n = r.choice((1, 1, 2, 3))
                stream.push(table(events[:n]))
                events = events[n:]
    assert seen["given"] > 0
