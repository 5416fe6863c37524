"""Actions of a cube, read literally over rows: the oracle of what a reuse gives, slow and plain.

Rows are {variable: row number in the input}, as tests/reference.py gives them. Deltas are answered by the reference
too, as text; that they share no match with what is there is checked, not assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from attrs import evolve

from quercus.compiler.parse import parse_query
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.ir.workload import Action, Add, Delta, Forbid, Insert, Keep, Narrow, Part, Project, Rename, Retype
from tests import reference
from tests.reference_scalar import Event, evaluate
from tests.reference_stream import Options, Stream, streams

Row = dict[str, int]


class Interpreter:
    """Actions over the rows of one stream; `partition_by` is that of all queries at hand."""

    def __init__(
        self, events: Sequence[Mapping[str, object]], options: Options, partition_by: tuple[str, ...] = ()
    ) -> None:
        self.events, self.options, self.partition_by = events, options, partition_by
        by = tuple(k for k in partition_by if k not in options.key)
        self.stream_of: dict[int, Stream] = {}
        self.event: dict[int, Event] = {}
        for stream in streams(events, options, by):
            for e in stream.events:
                self.stream_of[e.row], self.event[e.row] = stream, e
        self.steps = 0

    def run(self, rows: Iterable[Row], actions: Iterable[Action]) -> list[Row]:
        rows = list(rows)
        for action in actions:
            rows = self.act(rows, action)
            self.steps += 1
            assert len({frozenset(r.items()) for r in rows}) == len(rows), f"equal matches after {action}"
        return rows

    def act(self, rows: list[Row], action: Action) -> list[Row]:
        match action:
            case Rename():
                names = dict(action.names)
                return [{names.get(v, v): at for v, at in r.items()} for r in rows]
            case Retype():
                return [r for r in rows if self.event[r[action.var]].type in action.accepts]
            case Narrow():
                return [r for r in rows if self.fits(r, action.window)]
            case Keep():
                return [r for r in rows if self.holds(action.where, r)]
            case Project():
                seen = {tuple(r[v] for v in action.variables) for r in rows}
                return [dict(zip(action.variables, at, strict=True)) for at in seen]
            case Insert():
                return [new for r in rows for new in self.inserted(r, action)]
            case Forbid():
                return [r for r in rows if not self.is_violated(r, action)]
            case Add():
                for delta in action.deltas:
                    more = self.delta(delta)
                    known = {frozenset(r.items()) for r in rows}
                    assert not known & {frozenset(r.items()) for r in more}, f"a delta gives what is there: {delta}"
                    rows = rows + more
                return rows

    def delta(self, delta: Delta) -> list[Row]:
        query, options = delta.query, self.options
        if delta.accepts:
            named = {var: f"concept{i}" for i, (var, _) in enumerate(delta.accepts)}
            concepts = {named[var]: list(types) for var, types in delta.accepts}
            options = replace(options, hierarchy={**options.hierarchy, **concepts})
            query = evolve(query, pattern=_retyped(query.pattern, named))
        if options.key:  # the reference adds it
            query = evolve(query, partition_by=tuple(k for k in query.partition_by if k not in options.key))
        found = reference.matches(text.query(query), self.events, options)
        return self.run(found, delta.actions)  # type: ignore[arg-type]

    def holds(self, where: Iterable[x.Expr], row: Mapping[str, int]) -> bool:
        bound = {v: self.event[at] for v, at in row.items()}
        return all(evaluate(_scalar(c), bound, {}) is True for c in where)

    def fits(self, row: Row, window: p.Window) -> bool:
        bound = [self.event[at] for at in row.values()]
        if window.kind == "count":
            return max(e.pos for e in bound) - min(e.pos for e in bound) < window.size
        return max(e.ts for e in bound) - min(e.ts for e in bound) <= window.size

    def ordered(self, row: Row) -> list[Event]:
        return sorted((self.event[at] for at in row.values()), key=lambda e: e.pos)

    def candidates(self, part: Part, row: Row) -> list[Event]:
        stream = self.stream_of[next(iter(row.values()))]
        return [e for e in stream.events if e.type in part.accepts]

    def inserted(self, row: Row, action: Insert) -> list[Row]:
        found, there = [], self.ordered(row)
        stream = self.stream_of[there[0].row]
        left, right = there[: action.place], there[action.place :]
        for e in self.candidates(action.part, row):
            in_order = (not left or stream.before(left[-1], e)) and (not right or stream.before(e, right[0]))
            new = {**row, action.part.var: e.row}
            if in_order and self.fits(new, action.window) and self.holds((*action.part.where, *action.where), new):
                found.append(new)
        return found

    def is_violated(self, row: Row, action: Forbid) -> bool:
        stream, there = self.stream_of[next(iter(row.values()))], self.ordered(row)
        start, end, w = there[0], there[-1], action.window
        for e in self.candidates(action.part, row):
            if action.after is not None:
                inside = stream.before(self.event[row[action.after]], e)
            else:
                inside = e.pos > end.pos - w.size if w.kind == "count" else e.ts >= end.ts - w.size
            if action.before is not None:
                inside = inside and stream.before(e, self.event[row[action.before]])
            else:
                reached = e.pos < start.pos + w.size if w.kind == "count" else e.ts <= start.ts + w.size
                inside = inside and reached
            if inside and self.holds((*action.part.where, *action.part.ties), {**row, action.part.var: e.row}):
                return True
        return False


def _retyped(e: p.Pattern, named: Mapping[str, str]) -> p.Pattern:
    if isinstance(e, p.Leaf):
        return evolve(e, type=named.get(e.var, e.type))
    return p.with_parts(e, tuple(_retyped(c, named) for c in p.parts(e)))


@lru_cache(maxsize=4096)
def _scalar(e: x.Expr) -> object:
    [conjunct] = parse_query(f"PATTERN A WHERE {text.scalar(e)} WITHIN 1").where
    return conjunct
