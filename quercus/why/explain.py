"""plan.why: the parts in a row."""

from __future__ import annotations

from attrs import evolve

from quercus.backends.base import Limits
from quercus.errors import DataError
from quercus.ir import pattern as p
from quercus.plan import Plan, is_of_spark
from quercus.why.asked import asked
from quercus.why.data import Count, Miss, Obstacle, Why
from quercus.why.engine import Engine, Rows
from quercus.why.funnel import funnel
from quercus.why.nearest import nearest, obstacles_of
from quercus.why.readings import readings
from quercus.why.space import Space

SECONDS = 8.0
FUNNEL, ALONE = 0.3, 0.6  # parts of the time after which it is the turn of obstacles, and of misses


def why(plan: Plan, events: object, *, rows: Rows | None, limit: int, limits: Limits) -> Why:
    """What `Plan.why` says it does."""
    if is_of_spark(events):
        raise DataError("why runs in memory, not on Spark: give it some of the events, as df.toArrow() or a file")
    if type(limit) is not int or limit < 0:
        raise DataError(f"limit={limit!r}: give a whole number from 0 up")
    engine = Engine(plan, events, seconds=limits.max_seconds or SECONDS, limits=limits)
    q: p.Query = evolve(plan.bound, returns=(), aggregates=(), group_by=())
    given: Rows = rows or {}
    found, whole = readings(q)
    notes = [] if whole else [f"only the first {len(found)} ways to take the branches of its ORs were looked at"]
    matches = engine.count(q)
    answer = None if rows is None else asked(engine, q, found, given)
    if answer is not None and not answer.missing:
        return Why(plan.text, len(engine.stream), matches, plan.query.empty, (), (), (), answer, tuple(notes))
    funnels, obstacles, misses = [], list[Obstacle](), list[tuple[float, Miss]]()
    for number, reading in enumerate(found):
        engine.share(number, len(found))
        engine.until(FUNNEL)
        if not set(given) <= {v.var for v in reading.query.variables}:
            continue
        pinned = engine.pinned(reading.query, given)
        funnels.append(funnel(engine, evolve(reading, query=pinned)))
        base = matches if len(found) == 1 and not given else engine.count(pinned)
        engine.until(ALONE)
        space = Space(engine, reading.query, q, given, base, limit)
        stopped, candidates = obstacles_of(space)
        near = nearest(space, candidates)
        of = "" if reading.taken is None else f" (of {reading.taken})"
        obstacles += [evolve(o, what=o.what + of) for o in stopped]
        misses += near
    misses.sort(key=lambda m: (len(m[1].failures), m[0]))
    if matches == Count(0) and not misses and limit and not engine.ran_out and all(f.stages for f in funnels):
        notes.append("no miss was found: there are too few events, or too many requirements are not met")
    if engine.ran_out:
        notes.append(f"stopped after {limits.max_seconds or SECONDS:g} s: what is missing was not counted")
    return Why(
        plan.text,
        len(engine.stream),
        matches,
        plan.query.empty,
        tuple(funnels),
        tuple(obstacles),
        tuple(m for _, m in misses[:limit]),
        answer,
        tuple(notes),
    )
