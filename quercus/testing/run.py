"""A case on the engine: as a whole, and event by event as a live stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quercus.errors import QuercusError, QueryError
from quercus.ir.pattern import Kleene
from quercus.plan import Plan
from quercus.schema import Schema
from quercus.testing.casefile import Case
from quercus.testing.compare import compare, compare_rows, match_text, plain
from quercus.testing.expectations import Match, match_key


def schema_of(case: Case) -> Schema:
    """What the events of a case look like."""
    options = case.options
    return Schema(
        dict(case.attributes),
        time_unit=options.time_unit,
        ties=options.ties,
        key=options.key,
        hierarchy=dict(options.hierarchy),
    )


def run_case(case: Case) -> list[str]:
    """How the engine's answers differ from what a case expects; nothing: it passes."""
    from quercus.compiler import compile

    try:
        plan = compile(case.query, schema_of(case))
    except QueryError as e:
        if case.error is None:
            return [f"the query is refused:\n{_indented(str(e))}"]
        return [] if e.code == case.error else [f"the query is refused with {e.code}, not with {case.error}"]
    except QuercusError as e:  # a schema that cannot be
        return [f"{type(e).__name__}: {e}"]
    if case.error is not None:
        return [f"the query is not refused: {case.error} was expected"]
    try:
        return [*_whole(case, plan), *_live(case, plan)]
    except QuercusError as e:
        return [f"{type(e).__name__}: {e}"]


def columns_of(case: Case) -> dict[str, list[Any]]:
    """The events of a case as columns."""
    names = dict.fromkeys(["ts", "type", *case.attributes])
    return {name: [event.get(name) for event in case.events] for name in names}


def _whole(case: Case, plan: Plan) -> list[str]:
    found = plan.run(columns_of(case))
    matches = [plain(m) for m in found.rows()]
    said: list[str] = _unknown(case, plan)
    if case.matches is not None:
        said += _body(compare(case, matches))
    if case.rows is not None:
        said += _body(compare_rows(case, found.to_arrow().to_pylist()))
    for some in case.must:
        if not any(_has(m, some) for m in matches):
            said.append(f"  missing     {match_text(case, some)}, or a match with it")
    for some in case.must_not:
        said += [f"  forbidden   {match_text(case, m)}" for m in matches if _has(m, some)]
    return [*said, *_pushed(case, plan, matches)]


def _unknown(case: Case, plan: Plan) -> list[str]:
    """Bindings that no match of the query can have: what names them would pass, or fail, for nothing."""
    known = {v.var: isinstance(v, Kleene) for v in plan.query.variables}
    asked = dict.fromkeys((v, isinstance(b, list)) for m in (*case.must, *case.must_not) for v, b in m.items())
    said = []
    for v, is_set in asked:
        if v not in known:
            said.append(f"  unknown     no variable '{v}' in a match: they are {', '.join(sorted(known))}")
        elif is_set != known[v]:
            kind = f"a set of events: write {v}={{...}}" if known[v] else f"one event: write {v}=... without braces"
            said.append(f"  unknown     '{v}' is {kind}")
    return said


def _body(difference: str | None) -> list[str]:
    return [] if difference is None else difference.split("\n")[1:]


def _has(match: Match, some: Mapping[str, Any]) -> bool:
    return all(match.get(var) == bound for var, bound in some.items())


def _pushed(case: Case, plan: Plan, whole: list[Match]) -> list[str]:
    """One by one, the events must give what they give as a whole."""
    order = sorted(range(len(case.events)), key=lambda row: case.events[row]["ts"])
    found: list[Match] = []
    with plan.stream() as stream:
        for row in order:
            found += stream.push(_event(case, row)).rows()
    found += stream.final.rows()
    one_by_one = {match_key(m) for m in (_renumbered(m, order) for m in found)}
    if one_by_one == {match_key(m) for m in whole}:
        return []
    return ["  a live stream gives other matches than the whole: this is a bug of Quercus, please report it"]


def _event(case: Case, row: int) -> list[dict[str, Any]]:
    return [{name: case.events[row].get(name) for name in ("ts", "type", *case.attributes)}]


def _renumbered(match: Mapping[str, Any], order: list[int]) -> Match:
    return {v: sorted(order[r] for r in b) if isinstance(b, list) else order[b] for v, b in match.items()}


def _live(case: Case, plan: Plan) -> list[str]:
    """What the stream gives at each step, beside what the case says."""
    if case.live is None:
        return []
    said: list[str] = []
    order: list[int] = []
    stream = plan.stream(max_delay=case.delay)
    for step in case.live:
        if step.row is not None:
            order.append(step.row)
            given = stream.push(_event(case, step.row))
        else:
            given = stream.close() if step.clock is None else stream.advance(step.clock)
        got = sorted(_rows(_renumbered(m, order)) for m in given.rows())
        if tuple(got) != step.gives:
            said.append(f"  at {step.word:<8} expected {_shown(case, step.gives)}, found {_shown(case, got)}")
    stream.close()
    return said


def _rows(match: Match) -> tuple[int, ...]:
    return tuple(sorted(r for b in match.values() for r in (b if isinstance(b, list) else [b])))


def _shown(case: Case, matches: Any) -> str:
    return "/".join("+".join(case.labels[r] for r in m) for m in matches) or "nothing"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
