"""A plan over a whole stream: load, route, match each alternative, put the matches in order."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from quercus.backends.base import Limits
from quercus.backends.local.buffers import BufferSource, buffer_specs, routed_to, segments
from quercus.backends.local.dialect import is_files
from quercus.backends.local.events import TAKEN, Events, load
from quercus.backends.local.fill import fill
from quercus.backends.local.inputs import is_large
from quercus.backends.local.joins import Measured
from quercus.backends.local.outputs import Answer
from quercus.backends.local.pool import shared
from quercus.backends.local.program import Compiler
from quercus.backends.local.refine import refined, remembered
from quercus.backends.local.specs import BufferSpec, FlatSpec, Sets
from quercus.backends.local.threads import Matchers
from quercus.backends.local.trace import Trace
from quercus.errors import DataError, LimitExceeded, OutOfOrder
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import tree as t
from quercus.ir.flat import Flat, flatten
from quercus.kernels import group, match
from quercus.plan import Plan
from quercus.result import Bound, Matches

Index = NDArray[np.int64]
_NONE = np.empty(0, np.int64)
MANY, SPARE, RESERVED = 1e6, 1.25, 2.0**26  # expected matches that get room from the start, a quarter more than that
AHEAD = 2.0**17  # matches that a matcher has room for beside those that are there
_CUT = {match.TOO_MANY: "max_matches", match.TOO_LONG: "max_seconds"}


def run_plan(
    plan: Plan,
    events: object,
    limits: Limits,
    threads: int = 1,
    *,
    listed: bool = False,
    narrow: bool = False,
    progress: Callable[[int, int, float], None] | None = None,
) -> Matches:
    """All matches, by end, then start, then the bound rows.

    With `listed`, AGG goes over listed matches always. `narrow`: a table has no more than the columns that are needed.
    `progress` is told of files that are read in pieces, as `scan` tells it.
    """
    columns = needed(plan)
    if is_large(events, plan.schema, columns):
        from quercus.backends.local.scan import run_pieces

        with suppress(OutOfOrder):  # then they must be sorted, and so be in memory
            return run_pieces(plan, events, limits, progress)
    stream = load(events, plan.schema, columns if narrow or is_files(events) else None, threads)
    if plan.tree.aggregation is not None and plan.tree.aggregation.strategy == "running" and not listed:
        from quercus.backends.local.running import Costly, run_totals

        later = Later(plan, stream, limits, threads)
        with suppress(Costly):
            return Matches.of_stream(plan.schema, plan.query, later, run_totals(plan, stream, limits))
    found = find(plan, stream, limits, threads=threads)
    return Matches(stream.table, plan.schema, plan.query, found)


@define(eq=False)
class Later:
    """The matches behind running totals, listed when they are asked for. `count`: how many, if that is known."""

    plan: Plan
    stream: Events
    limits: Limits
    threads: int
    count: int | None = None
    _made: Answer | None = field(default=None, init=False)

    def __len__(self) -> int:
        return self.count if self.count is not None else len(self.answer())

    def answer(self) -> Answer:
        if self._made is None:
            room = 0.0 if self.count is None or self.count < MANY else min(self.count + AHEAD, RESERVED)
            found = find(self.plan, self.stream, self.limits, threads=self.threads, expected=room)
            if self.count is not None and len(found[0]) != self.count:
                raise DataError("the events have been changed since their matches were counted")
            self._made = Answer(self.stream.table, self.plan.schema, self.plan.query, {b.var: b for b in found})
        return self._made

    def numbered(self) -> tuple[Bound, ...]:
        return tuple(self.answer().bound.values())


def room_for(expected: float) -> float:
    """Matches that `find` makes room for from the start, where so many are expected."""
    return min(SPARE * expected, RESERVED) if expected > MANY else 0.0


def needed(plan: Plan) -> frozenset[str] | None:
    """The attributes that an answer is made from; None: all."""
    q = plan.query
    if any(isinstance(o.value, str) for o in q.returns) or not (q.returns or q.aggregates):
        return None
    shown = {attr for o in q.returns if not isinstance(o.value, str) for _, attr in x.columns(o.value)}
    shown |= {a.attr for a in q.aggregates if a.attr is not None} | {g.attr for g in q.group_by}
    return frozenset({c.attr for c in plan.tree.reads} | set(plan.tree.partition_by) | shown)


def find(
    plan: Plan,
    stream: Events,
    limits: Limits,
    counters: dict[str, int] | None = None,
    *,
    threads: int = 1,
    joins: list[Measured] | None = None,
    trace: Trace | None = None,
    numbered: bool = True,
    cut: list[str] | None = None,
    expected: float = 0.0,
) -> list[Bound]:
    """The bound rows of all matches in a loaded stream; unless `numbered`, its positions instead of rows of the input.

    Where so many are `expected` there is room for them from the start: results that grow are copied. Exact operation
    counts are added to `counters`; what each join of each alternative did, to `joins`; a `trace` is told of all stages.
    Given a list `cut`, a run that reaches a limit of matches or seconds gives those found so far, and adds the limit's
    name.
    """
    lap = trace.lap if trace is not None else _no_lap
    tree = plan.tree
    flats = flatten(tree.root, tree.window)
    parts: list[Part] = []
    ordered = single = False
    if flats:
        wanted = buffer_specs(flats, tree)
        lap("prepare")
        routed = routed_to(wanted, stream)
        lap("route")
        source = BufferSource(stream, tree, wanted, routed)
        lap("buffers")
        if trace is None:
            again = remembered(plan, stream, wanted, source.data, limits)
        else:
            again = refined(plan, stream, wanted, source.data, limits, shown=True)
        if again is not None:
            if again.plan is not plan:
                flats, wanted, tree = _planned_again(again.plan, wanted, source) or (flats, wanted, tree)
            if trace is not None and tree is again.plan.tree:
                trace.again = again
            lap("plan again")
        compiler = Compiler(tree, plan.schema, wanted, key_holds=not source.nulls)
        numbers = [compiler.flat(f, {}, root=True) for f in flats]
        program = compiler.program
        lap("prepare")
        data = fill(program, stream, source.data)
        matchers = Matchers(program, data, threads, limits.max_state_bytes)
        lap("buffers")
        if counters is not None:
            counters["routed"] = sum(len(b.row) for b in source.data)
        where = segments(source.data)
        left, end = limits.max_matches, None if limits.max_seconds is None else time.monotonic() + limits.max_seconds
        ordered = len(numbers) == 1 and program.flats[numbers[0]].natural
        single = where.shape[1] == 2
        for flat, number in zip(flats, numbers, strict=True):
            before = left
            nanoseconds = -1 if end is None else max(0, int((end - time.monotonic()) * 1e9))
            status, columns, sets = matchers.run(number, where, left, nanoseconds, expected / len(flats))
            if status == match.TOO_MUCH_STATE:
                raise matchers.too_much_state(number)
            if status == match.TOO_MUCH_VIEW:
                raise matchers.too_much_view()
            if cut is not None and status in _CUT:
                cut.append(_CUT[status])
                parts.append(Part(program.flats[number], *_whole(columns, sets, left)))
                break
            check(status, program.flats[number], limits)
            parts.append(Part(program.flats[number], columns, sets))
            left -= parts[-1].count
            if counters is not None:
                for name, count in matchers.counters().items():
                    counters[name] = counters.get(name, 0) + count
            if joins is not None:
                joins.extend(matchers.joins(number))
            if trace is not None:
                trace.ran(flat, number, before - left, matchers)
        if trace is not None:
            trace.data = data
    rows_of = stream if numbered else None
    found = combine(plan.query, parts, rows_of, distinct=repeats(tree.root), ordered=ordered, single=single)
    lap("order")
    return found


def _planned_again(
    plan: Plan, wanted: list[BufferSpec], source: BufferSource
) -> tuple[tuple[Flat, ...], list[BufferSpec], t.Tree] | None:
    """Another plan over the buffers that are there; None: it needs others."""
    flats = flatten(plan.tree.root, plan.tree.window)
    now = buffer_specs(flats, plan.tree)
    place = {spec: i for i, spec in enumerate(wanted)}
    if not flats or any(spec not in place for spec in now):
        return None
    source.data = [source.data[place[spec]] for spec in now]
    return flats, now, plan.tree


def _whole(columns: list[Index], sets: list[Sets], most: int) -> tuple[list[Index], list[Sets]]:
    """The matches that were written whole before a run was cut off."""
    count = min([most, *map(len, columns), *(min(len(s), len(e)) for s, e, _ in sets)])
    return [c[:count] for c in columns], [(s[:count], e[:count], rows) for s, e, rows in sets]


def _no_lap(stage: str) -> None:
    pass


def repeats(root: t.Node) -> bool:
    """Whether two alternatives can give the same match."""
    return any(isinstance(n, t.Union) and n.distinct for n in t.positive(root))


def check(status: int, spec: FlatSpec, limits: Limits) -> None:
    """Raise what a run that could not go on has to say."""
    if status == match.OK:
        return
    what = ", ".join([*spec.variables, *spec.set_variables])
    if status == match.TOO_MANY:
        raise too_many(what, limits)
    if status == match.TOO_LONG:
        raise too_long(limits)
    if status == match.TOO_LARGE:
        raise LimitExceeded(
            f"the sets of ({what}) could share more than {match.MAX_CLIQUE:,} events in one match: tighten WITHIN",
            limit="set elements",
            value=match.MAX_CLIQUE,
        )
    if status == match.NO_MEMORY:
        raise LimitExceeded(f"no memory left for the matches of ({what})", limit="memory")
    raise KeyboardInterrupt


def too_many(what: str, limits: Limits) -> LimitExceeded:
    return LimitExceeded(
        f"more matches of ({what}) than the limit of {limits.max_matches:,}: tighten WITHIN, add conditions, "
        "or raise Limits(max_matches=)",
        limit="max_matches",
        value=limits.max_matches,
    )


def too_long(limits: Limits) -> LimitExceeded:
    return LimitExceeded(
        f"not done after {limits.max_seconds} s: raise Limits(max_seconds=)",
        limit="max_seconds",
        value=limits.max_seconds,
    )


class Part:
    """The matches of one alternative: stream positions by variable."""

    def __init__(self, spec: FlatSpec, columns: list[Index], sets: list[Sets]) -> None:
        self.plain = dict(zip(spec.variables, columns, strict=True))
        self.sets = dict(zip(spec.set_variables, sets, strict=True))
        self.last = columns[-1] if columns else _NONE  # of a chain: the last component
        if spec.trail is not None:
            _, ends, rows = sets[0]
            self.last = rows[ends - 1]
        self.count = len(columns[0]) if columns else len(sets[0][0]) if sets else 0


def combine(
    q: p.Query, parts: list[Part], stream: Events | None, *, distinct: bool, ordered: bool, single: bool
) -> list[Bound]:
    """The matches of all alternatives in order, as rows of the input; without a stream, as positions."""
    bound = [_bound(leaf, parts) for leaf in q.variables]
    if ordered:  # inside each key's segment; an event has one key, so that its matches stay together
        last = _joined([part.last for part in parts])
        order = None if single or group.is_sorted(last) else _order(last)
        return _taken(bound, order, stream)
    firsts, lasts = _ends(bound)
    order = group.order_of(firsts, lasts)
    if distinct and len(parts):
        count = sum(part.count for part in parts)
        order = _unique(bound, firsts, np.arange(count) if order is None else order)
    return _taken(bound, order, stream)


def _taken(bound: list[Bound], order: Index | None, stream: Events | None) -> list[Bound]:
    """The matches in this order, as rows of the input."""
    tasks = [partial(_as_rows, b, stream, order) for b in bound]
    large = stream is not None and order is not None and len(order) >= TAKEN
    return shared(tasks, stream.threads if stream is not None and large else 1)


def in_order(bound: list[Bound]) -> list[Bound]:
    """Matches by end, then start, then the bound rows."""
    order = group.order_of(*_ends(bound))
    return bound if order is None else [b.take(order) for b in bound]


def _ends(bound: list[Bound]) -> tuple[list[Index], list[Index]]:
    """The first and the last position of each variable in every match."""
    both = [b.ends_of() for b in bound]
    return [first for first, _ in both], [last for _, last in both]


def _order(last: Index) -> Index:
    found = group.stable_order(last)
    return np.argsort(last, kind="stable") if found is None else found


def _bound(leaf: p.Leaf | p.Kleene, parts: list[Part]) -> Bound:
    """One variable over all alternatives, as stream positions."""
    if isinstance(leaf, p.Leaf):
        columns = [part.plain[leaf.var] if leaf.var in part.plain else _missing(part.count) for part in parts]
        return Bound(leaf.var, False, _joined(columns))
    sets = [_set(leaf.var, part) for part in parts]
    return Bound.joined(sets) if sets else Bound(leaf.var, True, _NONE, _NONE, _NONE)


def _set(var: str, part: Part) -> Bound:
    if var in part.sets:
        starts, ends, rows = part.sets[var]
        return Bound(var, True, rows, starts, ends)
    empty = np.zeros(part.count, np.int64)
    return Bound(var, True, _NONE, empty, empty, np.ones(part.count, bool))


def _joined(columns: list[Index]) -> Index:
    return columns[0] if len(columns) == 1 else np.concatenate(columns) if columns else _NONE


def _missing(count: int) -> Index:
    return np.full(count, -1, np.int64)


def _unique(bound: list[Bound], firsts: list[Index], order: Index) -> Index:
    """The order without matches that are there already: those that begin alike, side by side, are looked at."""
    same = np.ones(max(len(order) - 1, 0), bool)
    for first in firsts:
        ranked = first[order]
        same &= ranked[1:] == ranked[:-1]
    if not same.any():
        return order
    keep = np.ones(len(order), bool)
    seen: set[tuple[object, ...]] = set()
    for i in np.flatnonzero(np.r_[False, same] | np.r_[same, False]):
        found = tuple(b.identity(int(order[i])) for b in bound)
        keep[i] = found not in seen
        seen.add(found)
    return order[keep]


def _as_rows(b: Bound, stream: Events | None, order: Index | None) -> Bound:
    """Stream positions -> rows of the input, of the matches in this order."""
    b = b if order is None else b.take(order)
    return b if stream is None else b.numbered(stream.rows)
