"""Reuse is exact: actions over a source's matches give the query's, and never where they must not be used."""

from __future__ import annotations

from collections import Counter

import pytest

import quercus as qc
from quercus.compiler.cube.reuse import Way, ways
from quercus.compiler.cube.sequences import sequence_of
from quercus.ir.workload import Sequence
from tests import reference
from tests.cube.interpret import Interpreter
from tests.cube.workloads import Workload, workload


def apart(w: Workload) -> dict[str, Sequence]:
    found = {name: sequence_of(qc.compile(text, w.schema())) for name, text in w.queries.items()}
    return {name: s for name, s in found.items() if not isinstance(s, str)}


def check(w: Workload, seen: Counter[str]) -> None:
    """Every way between every two queries, read literally, against the reference."""
    schema, sequences = w.schema(), apart(w)
    answers = {n: reference.matches(w.queries[n], w.events, w.options) for n in sequences}
    for source in sequences:
        for name in sequences:
            found = ways(sequences[source], sequences[name], schema) if source != name else ""
            if isinstance(found, str):
                continue
            for way in found:
                interpreter = Interpreter(w.events, w.options, ("id",) if w.keyed else ())
                rows = interpreter.run(answers[source], way.actions)
                shown = f"{source} -> {name} by {way.case}: {way.actions}\n{w}"
                assert reference.canonical(rows) == reference.canonical(answers[name]), shown
                seen[way.case] += 1
                seen["rows"] += len(rows)
                seen["changed"] += rows != answers[source]


def test_reuse_gives_what_the_query_gives() -> None:
    seen: Counter[str] = Counter()
    for seed in range(400):
        check(workload(seed), seen)
    assert all(seen[case] > 40 for case in ("5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "same")), seen


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_reuse_gives_what_the_query_gives_always(block: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(1_000 * (block + 1), 1_000 * (block + 2)):
        check(workload(seed), seen)


def test_the_oracle_notices_a_missing_action() -> None:
    """A way without one of its actions is wrong somewhere: so each kind of them is looked at."""
    wanted = {"Retype", "Insert", "Forbid", "Narrow", "Keep", "Add"}
    for seed in range(2_000):
        w = workload(seed)
        sequences = apart(w)
        for source in sequences:
            for name in sequences:
                found = ways(sequences[source], sequences[name], w.schema()) if source != name else ""
                for way in found[:1] if not isinstance(found, str) else ():
                    if wanted & {type(a).__name__ for a in way.actions}:
                        wanted -= _missed(w, source, name, way)
        if not wanted:
            return
    pytest.fail(f"nobody misses {wanted}")


def _missed(w: Workload, source: str, name: str, way: Way) -> set[str]:
    found: set[str] = set()
    answers = [reference.matches(w.queries[n], w.events, w.options) for n in (source, name)]
    for i, action in enumerate(way.actions):
        if type(action).__name__ in ("Rename", "Project", "Insert") and i + 1 < len(way.actions):
            continue  # what follows needs their variables
        rest = (*way.actions[:i], *way.actions[i + 1 :])
        try:
            rows = Interpreter(w.events, w.options, ("id",) if w.keyed else ()).run(answers[0], rest)
        except AssertionError:  # a delta that gives what is there
            found.add(type(action).__name__)
            continue
        if {frozenset(r.items()) for r in rows} != {frozenset(r.items()) for r in answers[1]}:
            found.add(type(action).__name__)
    return found
