"""Random queries and streams: what `why` says is held against the brute-force reference and the engine.

- counts of matches and of every stage are the reference's, of the query that the stage names;
- every miss is no match, and is one of the query with its changes; a window that was told is the least;
- a match is never said to fail, and of what is no match something is said to.
"""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

import quercus as qc
from quercus.ir import pattern as p
from quercus.why.data import Miss
from quercus.why.readings import readings
from tests import reference
from tests.generate import Sample, evaluated, valid

SEEDS = range(45)
LONG = qc.Limits(max_seconds=120)
SAMPLES = [pytest.param(drawn, bound, id=str(drawn.seed)) for drawn, bound in valid(SEEDS)]


@pytest.mark.parametrize(("drawn", "bound"), SAMPLES)
def test_counts_and_misses(drawn: Sample, bound: p.Query) -> None:
    plan = qc.compile(drawn.query, drawn.schema())
    why = plan.why(drawn.events, limits=LONG)
    truth = drawn.answer()
    assert why.matches.n == len(truth), drawn
    for funnel in why.funnels:
        for stage in funnel.stages:
            assert stage.count.n == len(evaluated(stage.query, drawn.events, drawn.options)), (drawn, stage)
        if len(why.funnels) == 1:
            assert (funnel.stopped is None) or not truth, drawn
            if funnel.stages and funnel.stopped is None:
                assert funnel.stages[-1].count.n == len(truth), drawn
    for miss in why.misses:
        assert reference.canonical([miss.rows]).isdisjoint(truth), (drawn, miss)
        assert miss.rows in matches(drawn, miss, miss.query), (drawn, miss)
        is_least(drawn, miss)


def test_all_kinds_of_failures_are_drawn() -> None:
    """Else the test above would say less than it seems to."""
    seen: Counter[str] = Counter()
    for drawn, _ in valid(range(40)):
        for miss in qc.compile(drawn.query, drawn.schema()).why(drawn.events, limits=LONG).misses:
            seen.update(f.kind for f in miss.failures)
    assert seen.keys() == {"condition", "group", "order", "window", "count", "negation", "key", "ties"}


def matches(drawn: Sample, miss: Miss, query: str) -> list[dict[str, int | list[int]]]:
    schema = qc.Schema.from_dict({**drawn.schema().to_dict(), **miss.schema})
    found: list[dict[str, int | list[int]]] = qc.compile(query, schema).run(drawn.events).rows()
    return found


def is_least(drawn: Sample, miss: Miss) -> None:
    """A window shorter by one does not do, where the window is all that fails."""
    if [f.kind for f in miss.failures] != ["window"] or not miss.failures[0].what.startswith("WITHIN"):
        return
    changed = re.search(r"WITHIN (\d+) (\w+)$", miss.query)
    assert changed is not None, miss
    size, unit = int(changed[1]), changed[2]
    shorter = f"{miss.query[: changed.start()]}WITHIN {size - 1} {unit}"
    assert miss.rows not in matches(drawn, miss, shorter), (drawn, miss)


@pytest.mark.parametrize(("drawn", "bound"), SAMPLES)
def test_given_rows(drawn: Sample, bound: p.Query) -> None:
    plan = qc.compile(drawn.query, drawn.schema())
    truth = drawn.answer()
    for match in plan.run(drawn.events).rows()[:2]:
        asked = plan.why(drawn.events, rows=match, limits=LONG).asked
        assert asked is not None
        assert asked.is_match, (drawn, match)
        assert asked.failures == ()
    r = Random(drawn.seed)
    for _ in range(3):
        rows = combination(r, drawn, bound)
        asked = plan.why(drawn.events, rows=rows, limits=LONG).asked
        assert asked is not None
        assert asked.is_match == (reference.canonical([rows]) <= truth), (drawn, rows)
        assert asked.is_match or asked.failures, (drawn, rows)
        if asked.query is not None:
            assert rows in qc.compile(asked.query, drawn.schema()).run(drawn.events).rows(), (drawn, asked)


def combination(r: Random, drawn: Sample, bound: p.Query) -> dict[str, int | list[int]]:
    """Some events of the right types for the variables of some reading."""
    rows: dict[str, int | list[int]] = {}
    for v in r.choice(readings(bound)[0]).query.variables:
        kind = v.leaf.type if isinstance(v, p.Kleene) else v.type
        fitting = [i for i, e in enumerate(drawn.events) if e["type"] in drawn.schema().accepts(kind)]
        fitting = fitting or list(range(len(drawn.events)))
        many = min(len(fitting), r.randint(1, 2))
        rows[v.var] = sorted(r.sample(fitting, many)) if isinstance(v, p.Kleene) else r.choice(fitting)
    return rows
