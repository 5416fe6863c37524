"""What leads from the results of one query to those of another: E-Cube's six cases, as lists of actions.

Refinement alone is no containment: a component that is put beside a negation narrows where that looks, and scopes that
end at the window change with it and with the first and last component. So each way is made of steps that are sound by
themselves (`steps`), and there is none where a step is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Literal

from attrs import frozen

from quercus.compiler.cube.conditions import Known
from quercus.compiler.cube.refine import embeddings, is_coarser, kind_of
from quercus.compiler.cube.sequences import conditions, gaps, with_conditions, with_names
from quercus.compiler.cube.steps import NotSound, Step, Trail, uncovered
from quercus.ir import expr as x
from quercus.ir import text
from quercus.ir.workload import Action, Case, Kind, Part, Sequence
from quercus.schema import Schema

MOST_EMBEDDINGS = 8  # of one query in another, where types stand in it more than once
DOWN: Mapping[Kind, Case] = {"pattern": "5.1", "concept": "5.2", "both": "5.3", "same": "same"}
UP: Mapping[Kind, Case] = {"pattern": "5.4", "concept": "5.5", "both": "5.6"}
# From the special to the general query, in turn: which query lies between is for the cost to say (equation 11).
Change = Literal["concepts", "runs", "negations"]
ORDERS: tuple[tuple[Change, ...], ...] = (
    ("concepts", "runs", "negations"),
    ("concepts", "negations", "runs"),
    ("runs", "negations", "concepts"),
    ("negations", "runs", "concepts"),
)


@frozen(eq=False)
class Way:
    """One way from the results of a source to those of a query."""

    case: Case
    steps: tuple[Step, ...]

    @property
    def actions(self) -> tuple[Action, ...]:
        return tuple(s.action for s in self.steps)


def ways(source: Sequence, query: Sequence, schema: Schema) -> tuple[Way, ...] | str:
    """The ways to compute a query from the results of another one, or why there is none; "": they are not alike."""
    kind = kind_of(source, query)
    if kind is not None:
        found = _tried(_from_general(source, query, schema, kind, f) for f in _places(source, query))
        return _first(found)
    kind = kind_of(query, source)
    if kind is None:
        return ""
    found = _tried(w for f in _places(query, source) for w in _from_special(source, query, schema, kind, f))
    return _first(found)


def _places(small: Sequence, large: Sequence) -> Iterator[tuple[int, ...]]:
    found = embeddings(small.positive, large.positive, is_coarser)
    return islice(found, MOST_EMBEDDINGS)


def _tried(found: Iterable[Way | str]) -> tuple[list[Way], list[str]]:
    good, bad = [], []
    for w in found:
        if isinstance(w, str):
            bad.append(w)
        else:
            good.append(w)
    return good, bad


def _first(found: tuple[list[Way], list[str]]) -> tuple[Way, ...] | str:
    good, bad = found
    return tuple({w.actions: w for w in good}.values()) or bad[0]


# From the general query to the special one ----------------------------------------------------------------------------


def _from_general(source: Sequence, query: Sequence, schema: Schema, kind: Kind, places: tuple[int, ...]) -> Way | str:
    """Concepts first, then more components (equation 8): what takes matches away comes before what each is joined with.

    Every match of the query must be made from one of the source: it may ask nothing that the query does not.
    """
    trail = Trail(source, schema)
    names = {c.var: query.positive[i].var for c, i in zip(source.positive, places, strict=True)}
    trail.rename(_fresh(names, source, query))
    _call_alike(trail, query)
    known = conditions(query)
    more = _asks_more(trail.now, known)
    if more is not None:
        return more
    over = _forbids_more(trail.now, query, places)
    if over is not None:
        return over
    try:
        trail.narrow(query.window)
        _finish_from_general(trail, query, places)
    except NotSound as e:
        return str(e)
    assert [(c.var, c.accepts) for c in trail.now.parts] == [(c.var, c.accepts) for c in query.parts]
    return Way(DOWN[kind], tuple(trail.steps))


def _finish_from_general(trail: Trail, query: Sequence, places: tuple[int, ...]) -> None:
    for c, i in zip(trail.now.positive, places, strict=True):
        if c.accepts != query.positive[i].accepts:
            trail.retype(c.var, query.positive[i])
    _keep_what_is_seen(trail, query)
    wanted = gaps(query)
    added = [i for i in range(len(query.positive)) if i not in places]
    early = _settled_gaps(query, places)
    for at, gap in early.items():
        if _is_seen(wanted[at], trail.now):
            trail.require(wanted[at], gap)
            trail.settle(wanted[at], gap)
    there = list(places)
    ends = {i for i in added if i < places[0] or i > places[-1]}
    before = sorted((i for i in ends if i < places[0]), reverse=True)  # the nearest first
    after = sorted(i for i in ends if i > places[-1])
    for i in (*(i for i in added if i not in ends), *before, *after):
        place = sum(j < i for j in there)
        part = query.positive[i]
        seen = {*(c.var for c in trail.now.positive), part.var}
        asked = tuple(c for c in query.where if part.var in x.variables(c) and x.variables(c) <= seen)
        trail.insert(part, place, asked)
        there.append(i)
    for gap, parts in enumerate(wanted):
        trail.require(parts, gap)
        trail.settle(parts, gap)


def _settled_gaps(query: Sequence, places: tuple[int, ...]) -> dict[int, int]:
    """The gaps of the query that lie between components that the source has, with their number in the source."""
    n = len(query.positive)
    found = {}
    whole = places[0] == 0 and places[-1] == n - 1
    for gap in range(len(places) + 1):
        if gap in (0, len(places)):
            if whole:
                found[0 if gap == 0 else n] = gap
        elif places[gap] == places[gap - 1] + 1:
            found[places[gap]] = gap
    return found


def _is_seen(parts: tuple[Part, ...], now: Sequence) -> bool:
    there = {c.var for c in now.positive}
    return all(x.variables(c) - {part.var} <= there for part in parts for c in part.ties)


def _keep_what_is_seen(trail: Trail, query: Sequence) -> None:
    there = {c.var for c in trail.now.positive}
    trail.keep(c for c in conditions(query) if x.variables(c) <= there)


def _forbids_more(now: Sequence, query: Sequence, places: tuple[int, ...]) -> str | None:
    """Why the source has not all that the query could be made from: a negation of its own that the query has not."""
    settled = {gap: at for at, gap in _settled_gaps(query, places).items()}
    wanted = gaps(query)
    for gap, parts in enumerate(gaps(now)):
        for part in parts:
            if gap not in settled:
                new = next(c for i, c in enumerate(query.positive) if i not in places and _is_at(i, gap, places))
                return f"{new.type} changes where !{part.type} looks: the source lacks matches that the query has"
            if uncovered(part, wanted[settled[gap]], conditions(query)):
                return f"it forbids {part.type} where the query does not"
    return None


def _is_at(i: int, gap: int, places: tuple[int, ...]) -> bool:
    """Whether a component that is new stands in a gap of the source, or at an end that its scope depends on."""
    if gap in (0, len(places)):
        return i < places[0] or i > places[-1]
    return places[gap - 1] < i < places[gap]


def _asks_more(now: Sequence, known: Iterable[x.Expr]) -> str | None:
    said = Known(known)
    return next(
        (f"it asks {text.scalar(c)}, which the query does not" for c in conditions(now) if not said.entails(c)), None
    )


# From the special query to the general one ----------------------------------------------------------------------------


def _from_special(
    source: Sequence, query: Sequence, schema: Schema, kind: Kind, places: tuple[int, ...]
) -> Iterator[Way | str]:
    """What the source has of the query, and what it lacks as deltas: in several orders, for the cost to choose from."""
    trail = Trail(source, schema)
    names = {source.positive[i].var: c.var for c, i in zip(query.positive, places, strict=True)}
    trail.rename(_fresh(names, source, query))
    _call_alike(trail, query)
    own = {c.var for c in query.positive}
    said = Known(conditions(query))
    for c in conditions(trail.now):
        if x.variables(c) <= own and not said.entails(c):
            yield f"it asks {text.scalar(c)}, which the query does not"
            return
    try:
        trail.narrow(query.window)
        trail.keep(conditions(query))
    except NotSound as e:
        yield str(e)
        return
    more = tuple(c for c in conditions(trail.now) if not x.variables(c) <= own)
    trail.now = with_conditions(trail.now, (*conditions(query), *more))
    needed = _changes(trail.now, query)
    for order in dict.fromkeys(tuple(what for what in order if what in needed) for order in ORDERS):
        yield _in_order(trail.copy(), query, kind, order)


def _changes(now: Sequence, query: Sequence) -> set[Change]:
    """What has to be done to come from one to the other."""
    there = {c.var: c.accepts for c in now.positive}
    needed: set[Change] = {"negations"} if any(c.negated for c in (*now.parts, *query.parts)) else set()
    if any(there[c.var] != c.accepts for c in query.positive):
        needed.add("concepts")
    return needed | {"runs"} if len(there) > len(query.positive) else needed


def _in_order(trail: Trail, query: Sequence, kind: Kind, order: tuple[Change, ...]) -> Way | str:
    try:
        for what in order:
            if what == "concepts":
                _widen(trail, query)
            elif what == "runs":
                _drop_runs(trail, query)
            else:
                _drop_negations(trail, query)
    except NotSound as e:
        return str(e)
    assert trail.now.parts == query.parts, (trail.now.parts, query.parts)
    return Way(UP[kind], tuple(trail.steps))


def _widen(trail: Trail, query: Sequence) -> None:
    there = {c.var: c for c in trail.now.positive}
    wanted = {c.var: c for c in query.positive if there[c.var].accepts != c.accepts}
    if wanted:
        trail.widen(wanted)


def _drop_runs(trail: Trail, query: Sequence) -> None:
    own = {c.var for c in query.positive}
    wanted = gaps(query)
    while True:
        positive = trail.now.positive
        start = next((i for i, c in enumerate(positive) if c.var not in own), None)
        if start is None:
            return
        until = next((i for i in range(start, len(positive)) if positive[i].var in own), len(positive))
        trail.drop_run(start, until, wanted[start])


def _drop_negations(trail: Trail, query: Sequence) -> None:
    """Of the gaps that lie between components of the query: those with others in them go with these."""
    own = [c.var for c in query.positive]
    wanted = gaps(query)
    for at, parts in enumerate(wanted):
        there = [c.var for c in trail.now.positive]
        left = there.index(own[at - 1]) if at > 0 else -1
        right = there.index(own[at]) if at < len(own) else len(there)
        if right != left + 1:
            continue
        gap = right
        trail.require(parts, gap)
        for part in gaps(trail.now)[gap]:
            if part in parts:
                continue
            over = uncovered(part, parts, conditions(trail.now))
            if over:
                trail.drop_negated(part, gap, over)
        trail.settle(parts, gap)


def _fresh(names: dict[str, str], source: Sequence, query: Sequence) -> dict[str, str]:
    """Names of all variables of the source: those of the query where they are its own, else such as no other has."""
    taken = {c.var for c in query.parts} | set(names.values())
    full = dict(names)
    for c in source.parts:
        if c.var not in full:
            name, n = c.var, 1
            while name in taken:
                name, n = f"{c.var}_{n}", n + 1
            full[c.var] = name
            taken.add(name)
    return full


def _call_alike(trail: Trail, query: Sequence) -> None:
    """Negated parts that the query has at the same place are called what it calls them."""
    after = {c.var: i for i, c in enumerate(query.positive, 1)}
    wanted, at = gaps(query), 0
    names: dict[str, str] = {}
    for c in trail.now.parts:
        if not c.negated:
            at = after.get(c.var, at)
            continue
        for d in wanted[at]:
            alone = with_names(Sequence((c,), (), query.window), {c.var: d.var}).parts[0]
            if alone == d and d.var not in names.values():
                names[c.var] = d.var
                break
    trail.rename(names)
