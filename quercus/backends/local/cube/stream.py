"""A cube over a live stream: `cube.stream()`.

Queries that are computed alone have a stream each. Others are made, push by push, from what their sources found in the
same push; where they get events at the end, also from what the sources found in the last window. All see the same
events, prepared and committed together, so that an error leaves every query as it was. What is shared depends on
nothing but the events of the last window: so the ordering can change between two pushes, and queries can come and go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
from attrs import frozen

from quercus.adapt import Adapt, Switch
from quercus.backends.base import Limits
from quercus.backends.local.conform import wanted_columns
from quercus.backends.local.cube.actions import Results, Worker, equalities
from quercus.backends.local.cube.execute import between, delta_plan, leaves
from quercus.backends.local.cube.held import Held, Listed, nothing
from quercus.backends.local.cube.live import Member, ends_later, refusal, shared
from quercus.backends.local.cube.recent import LiveMatches, Recent, Shared, Window
from quercus.backends.local.events import Events
from quercus.backends.local.incremental import BEGIN, END, Prepared
from quercus.backends.local.inputs import as_table
from quercus.backends.local.intake import Intake
from quercus.backends.local.run import find, too_many
from quercus.backends.local.specs import Index
from quercus.backends.local.stream import Stream
from quercus.errors import DataError, nearest
from quercus.ir import workload as w
from quercus.plan import Plan
from quercus.result import Matches
from quercus.running_stats import Running
from quercus.stats import Stats

Counts = Mapping[tuple[str, ...], int]
_NONE = np.empty(0, np.int64)


class Planning(Protocol):
    """Who plans the queries of a cube: of these, or, `of` others, of those."""

    def of(self, plans: Mapping[str, Plan]) -> Planning: ...

    def compiled(self, name: str, text: str) -> Plan: ...

    def expected(self) -> w.Ordering:
        """The ordering before any event is seen."""
        ...

    def order(self, counts: Counts, events: int, span: float) -> w.Ordering: ...

    def cost(self, ordering: w.Ordering, counts: Counts, events: int, span: float) -> float: ...


@frozen(eq=False)
class Made:
    """What a push gives of the queries that share, and what is kept of it for the next one."""

    matches: Mapping[str, LiveMatches]
    recent: Recent
    windows: Mapping[str, Window]


class CubeStream(Intake[dict[str, Matches]]):
    """A stream that all queries of a cube watch: a push gives the matches of each that are now decided."""

    def __init__(
        self,
        plans: Mapping[str, Plan],
        planning: Planning,
        *,
        max_delay: str | int | None = None,
        late: Literal["error", "drop"] = "error",
        limits: Limits | None = None,
        adapt: bool | Adapt = True,
    ) -> None:
        if not isinstance(adapt, bool | Adapt):
            raise DataError(f"adapt={adapt!r}: choose True, False or a quercus.Adapt")
        schema = next(iter(plans.values())).schema
        names = [schema.time, schema.type, *wanted_columns(schema)]
        super().__init__(schema, names, max_delay=max_delay, late=late, limits=limits, columns=None)
        self._now, self._place, self._pushed, self._latest = BEGIN, 0, 0, BEGIN
        self._asked = adapt if isinstance(adapt, Adapt) else Adapt()
        self._adapts = adapt is not False
        self.switches: list[Switch] = []
        self._members = {name: Member(name, plan) for name, plan in plans.items()}
        self._planning = planning
        self._streams: dict[str, Stream] = {}
        self._deltas: dict[int, Stream] = {}  # by the identity of what is added
        self._windows: dict[str, Window] = {}
        self._recent = Recent(as_table([], schema, None), schema, _NONE, _NONE, _NONE)
        self._planned()
        self._switch(shared(planning.expected(), self._members, self._now))

    # ---- the clock

    @property
    def _clock(self) -> int:
        return self._now

    @property
    def _rows(self) -> int:
        return self._pushed

    @property
    def _seen(self) -> int:
        return self._latest

    def _went(self, seen: int, rows: int) -> None:
        self._latest, self._pushed = seen, rows
        for s in self._all():
            s._went(seen, rows)

    def _all(self) -> Iterator[Stream]:
        yield from self._streams.values()
        yield from self._deltas.values()

    # ---- pushing

    def push(self, events: Any) -> dict[str, Matches]:
        """Take in some events, one or many; gives the matches of each query that are now decided, by name.

        Bad events, or a limit reached, are errors that leave the stream as it was before this push.
        """
        self._check_open()
        if self._adapts and self._pushed >= self._look_at:
            self._look()
        return self._push(events)

    def _step(self, table: pa.Table | None, ts: Index, rows: Index | int, clock: int) -> dict[str, Matches]:
        prepared: dict[int, Prepared] = {}
        done: list[Stream] = []
        try:
            for s in self._all():
                if s._course.rows >= s._look_at:
                    s._look()
                prepared[id(s)] = s._engine.prepare(table, ts, rows, clock, self.limits)
                done.append(s)
            made = self._made(prepared, table, ts, rows, clock)
        except BaseException:
            for s in done:
                s._engine.revoke()
            raise
        found: dict[str, Matches] = {}
        for name, s in self._streams.items():
            found[name] = s._matches(s._engine.commit(prepared[id(s)]))
        for s in self._deltas.values():
            s._engine.commit(prepared[id(s)])
        for name, later in made.matches.items():
            plan = self._members[name].plan
            found[name] = Matches.of_stream(plan.schema, plan.query, later)
        self._observe(table, ts, clock)
        self._now, self._place = clock, self._place + len(ts)
        self._recent, self._windows = made.recent, dict(made.windows)
        return {name: found[name] for name in self._members}

    def _made(
        self, prepared: Mapping[int, Prepared], table: pa.Table | None, ts: Index, rows: Index | int, clock: int
    ) -> Made:
        """What is shared, computed one after the other."""
        recent, first = self._with_events(table, ts, rows), len(self._recent)
        if not self._users or (not len(ts) and not self._recent):
            return Made(self._none(recent), self._purged(recent, clock), {})
        look_up = Shared(recent, self._requests)
        results: dict[str, Results] = {}
        matches: dict[str, LiveMatches] = {}
        windows: dict[str, Window] = {}
        for c in self._ordering.cuboids:
            plan = self._members[c.name].plan
            if c.source is None:
                if self._users[c.name]:
                    results[c.name] = _found(plan, prepared[id(self._streams[c.name])], recent)
            else:
                source, later = results[c.source], c.name in self._later
                if later and c.source in self._windows:
                    source = _joined(self._windows[c.source], source, recent)
                made = (
                    self._worker(plan, look_up, prepared, recent).run(source, c.actions)
                    if len(source.held) or (any(isinstance(a, w.Add) for a in c.actions))
                    else Results(nothing(len(plan.query.variables)), tuple(v.var for v in plan.query.variables))
                )
                if later:
                    made = Results(made.held.keep([len(made.names) - 1], _from(first)), made.names, made.equal)
                if len(made.held) > self.limits.max_matches:
                    raise too_many(", ".join(made.names), self.limits)
                results[c.name] = made
                matches[c.name] = LiveMatches(plan, recent, made.held)
            if c.name in self._reach:
                windows[c.name] = self._window(c.name, results[c.name], recent, clock)
        return Made(matches, self._purged(recent, clock), windows)

    def _none(self, recent: Recent) -> dict[str, LiveMatches]:
        """Nothing for whoever shares."""
        shares = [c.name for c in self._ordering.cuboids if c.source is not None]
        plans = {name: self._members[name].plan for name in shares}
        return {n: LiveMatches(plan, recent, nothing(len(plan.query.variables))) for n, plan in plans.items()}

    def _worker(self, plan: Plan, look_up: Shared, prepared: Mapping[int, Prepared], recent: Recent) -> Worker:
        def delta(d: w.Delta) -> Results:
            s = self._deltas[id(d)]
            return _found(s.plan, prepared[id(s)], recent)

        def spent(held: Held) -> None:
            if len(held) > between(self.limits).max_matches:
                raise too_many(", ".join(v.var for v in plan.query.variables), between(self.limits))

        return Worker(look_up.lanes(plan.tree.partition_by), delta, spent)

    # ---- what is kept

    def _with_events(self, table: pa.Table | None, ts: Index, rows: Index | int) -> Recent:
        """The kept events and, of those that are new, the ones that a query which can share may need."""
        if table is None or not len(ts) or not self._names_kept:
            return self._recent
        (at,) = Events(table, self.schema, ts, None).route([self._names_kept])
        numbers = rows + at if isinstance(rows, int) else rows[at]
        taken = table.select(self._names).take(pa.array(at))
        return self._recent.with_events(taken, ts[at], self._place + at, numbers)

    def _purged(self, recent: Recent, clock: int) -> Recent:
        return recent if clock == END else recent.since(max(BEGIN, clock - self._longest))

    def _window(self, name: str, new: Results, recent: Recent, clock: int) -> Window:
        """The results of a source that later events can still be joined to."""
        columns = [recent.places[new.held.column(i)] for i in range(len(new.names))]
        if name in self._windows:
            columns = [np.concatenate([a, b]) for a, b in zip(self._windows[name].columns, columns, strict=True)]
        if clock != END and len(columns[0]):
            begins = recent.ts[recent.positions(columns[0])]
            columns = [c[begins >= clock - self._reach[name]] for c in columns]
        return Window(tuple(columns), new.names, new.equal)

    # ---- plans

    @property
    def ordering(self) -> w.Ordering:
        """How the results of each query are come by."""
        return self._ordering

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def add(self, name: str, text: str) -> None:
        """One more query: it watches the stream from the next push on, and knows nothing of what came before; of what
        `max_delay` held back until then, as of what comes.
        """
        self._check_open()
        name = str(name)
        if name in self._members:
            raise DataError(f"there is a query '{name}' in the stream already: replace it, or take another name")
        self._add(name, text)

    def remove(self, name: str) -> None:
        """A query less. What it held back is not given any more; the others go on as they were."""
        self._check_open()
        self._check_known(name)
        if len(self._members) == 1:
            raise DataError(f"'{name}' is the last query of the stream: close the stream instead")
        with self._whole():
            del self._members[name]
            self._streams.pop(name, None)
            self._planned()
            self._switch(self._best())

    def replace(self, name: str, text: str) -> None:
        """Another query under the name of one that goes."""
        self._check_open()
        self._check_known(name)
        self._add(name, text)

    def _add(self, name: str, text: str) -> None:
        plan = self._planning.compiled(name, text)
        with self._whole():
            self._streams.pop(name, None)
            self._members[name] = Member(name, plan, self._now if self._place else None)
            self._planned()
            self._switch(self._best())

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """A change of queries, or none of it."""
        before = dict(self.__dict__) | {"_members": dict(self._members), "_streams": dict(self._streams)}
        try:
            yield
        except BaseException:
            self.__dict__.update(before)
            raise

    def _check_known(self, name: str) -> None:
        if name not in self._members:
            hint = nearest(str(name), self._members) or "queries: " + ", ".join(self._members)
            raise DataError(f"no query '{name}' in the stream: {hint}")

    def _planned(self) -> None:
        """Queries came or went: what is kept for those that can share, and what is counted."""
        plans = {name: m.plan for name, m in self._members.items()}
        self._planning = self._planning.of(plans)
        can = [plan for plan in plans.values() if refusal(plan) is None]
        self._longest = max((plan.tree.window.size for plan in can), default=0)
        self._names_kept = tuple(dict.fromkeys(n for plan in can for a in leaves(plan.tree) for n in a))
        self._requests = list(dict.fromkeys(a for plan in plans.values() for a in leaves(plan.tree)))
        times = [plan.tree.window.size for plan in plans.values() if plan.tree.window.kind == "time"]
        self._running = Running(self._asked.half_life or 4.0 * max((*times, 1)))
        self._known: Stats | None = None
        self._look_at = self._pushed + self._asked.every

    def _observe(self, table: pa.Table | None, ts: Index, clock: int) -> None:
        """Running statistics of the types that are named."""
        if not self._adapts or table is None or not len(ts):
            return
        names = list(dict.fromkeys(n for a in self._requests for n in a))
        found = Events(table, self.schema, ts, None).route([(n,) for n in names])
        begin = self._now if self._now != BEGIN else int(ts[0])
        counts = {n: len(at) for n, at in zip(names, found, strict=True)}
        self._running.observe(counts, float(int(ts[-1]) - begin), len(ts))

    def _seen_by_now(self) -> tuple[dict[tuple[str, ...], int], int, float]:
        stats, span = self._running.stats(), self._running.span
        counts = {a: round(sum(stats.rates.get(n, 0.0) for n in a) * span) for a in self._requests}
        return counts, round(stats.total_rate() * span), span

    def _best(self) -> w.Ordering:
        """The ordering that is cheapest by what is known."""
        known = self._planning.order(*self._seen_by_now()) if self._running.span > 0 else self._planning.expected()
        return shared(known, self._members, self._now)

    def _look(self) -> None:
        """See whether another ordering has become better (E-Cube, section 6)."""
        self._look_at = self._pushed + self._asked.every
        if self._running.span <= 0:
            return
        drift = float("inf") if self._known is None else self._running.drift(self._known)
        if drift <= self._asked.theta:
            return
        self._known = self._running.stats()
        best, seen = self._best(), self._seen_by_now()
        now, then = self._planning.cost(self._ordering, *seen), self._planning.cost(best, *seen)
        if _sources(best) != _sources(self._ordering) and now > self._asked.gamma * then:
            told = (_told(self._ordering), _told(best), drift, now / max(then, 1e-9))
            self._switch(best)
            self.switches.append(Switch(self._pushed, self._now, *told))

    def _switch(self, ordering: w.Ordering) -> None:
        """Another ordering from the next push on: what it needs is made again from the events of the last window.

        Streams for those computed alone, and the results of the last window for those who need them; an error changes
        nothing.
        """
        plans = {name: m.plan for name, m in self._members.items()}
        names = {n: tuple(v.var for v in plan.query.variables) for n, plan in plans.items()}
        shares = [(c, c.source) for c in ordering.cuboids if c.source is not None]
        later = [(c, source) for c, source in shares if ends_later(names[source], c.actions)]
        reach: dict[str, int] = {}
        for c, source in later:
            reach[source] = max(reach.get(source, 0), plans[c.name].tree.window.size)
        alone = [c.name for c in ordering.cuboids if c.source is None]
        added = [(c, d) for c, _ in shares for a in c.actions if isinstance(a, w.Add) for d in a.deltas]
        streams = {n: self._streams[n] if n in self._streams else self._began(n) for n in alone}
        deltas = {id(d): self._going_on(delta_plan(plans[c.name], d)) for c, d in added}
        windows = {name: self._again(plans[name]) for name in reach}
        self._ordering, self._streams, self._deltas, self._windows = ordering, streams, deltas, windows
        self._users, self._later, self._reach = Counter(s for _, s in shares), {c.name for c, _ in later}, reach

    def _began(self, name: str) -> Stream:
        """The stream of a query that is computed alone from now on."""
        member = self._members[name]
        if member.since is None or member.since < self._now:
            return self._going_on(member.plan)
        return self._going_on(member.plan, anew=True)

    def _going_on(self, plan: Plan, *, anew: bool = False) -> Stream:
        """A stream that has seen the events of the last window; `anew`: none."""
        s = Stream(plan, limits=self.limits, adapt=self._asked if self._adapts else False)
        course, recent = s._course, self._recent
        course.clock, course.place, course.seen, course.rows = self._now, self._place, self._latest, self._pushed
        if not anew and len(recent):
            s._engine.restore(recent.table, recent.ts, recent.rows, recent.places, recent.places)
        return s

    def _again(self, plan: Plan) -> Window:
        """What a source found in the last window."""
        recent = self._recent
        names = tuple(v.var for v in plan.query.variables)
        if not len(recent):
            return Window(tuple(_NONE for _ in names), names, equalities(plan.query.where))
        bound = find(plan, recent.events, between(self.limits))  # most of it was given long ago
        return Window(tuple(recent.places[b.held] for b in bound), names, equalities(plan.query.where))

    def snapshot(self) -> bytes:
        """The state as bytes, versioned Arrow IPC: `cube.restore(state)` goes on from there."""
        from quercus.backends.local.cube import snapshot

        self._check_open()
        return snapshot.taken(self)

    def explain(self) -> str:
        """How each query is come by at the moment, and all switches."""
        lines = [f"live cube, {len(self._members)} queries, shared by {self._ordering.strategy}", ""]
        for c in self._ordering.cuboids:
            how = "alone" if c.source is None else f"from {c.source} ({c.case})"
            lines.append(f"  {c.name}: {how}: {c.reason}")
        lines += ["", "switches" if self.switches else "no switches"]
        lines += [
            f"  after {s.row:,} events, at {s.clock}: {s.before} -> {s.after}"
            f" (rates x{s.drift:.1f}, expected gain x{s.gain:.1f})"
            for s in self.switches
        ]
        return "\n".join(lines) + "\n"


def _found(plan: Plan, prepared: Prepared, recent: Recent) -> Results:
    """What a stream found in a push, as positions among recent events."""
    bound = prepared.found.places()
    columns = [recent.positions(b.held) for b in bound]
    return Results(Listed(columns), tuple(b.var for b in bound), equalities(plan.query.where))


def _joined(window: Window, new: Results, recent: Recent) -> Results:
    """The results of the last window, and then the new ones: in the order of the answer, since these end later."""
    old = window.over(recent)
    columns = [np.concatenate([old.column(i), new.held.column(i)]) for i in range(len(new.names))]
    return Results(Listed(columns), new.names, new.equal & window.equal)


def _from(first: int) -> Callable[[list[Any]], Any]:
    """Events that are new."""
    return lambda columns: np.flatnonzero(np.asarray(columns[0]) >= first).astype(np.int32)


def _sources(ordering: w.Ordering) -> dict[str, str | None]:
    return {c.name: c.source for c in ordering.cuboids}


def _told(ordering: w.Ordering) -> str:
    shares = [f"{c.name} from {c.source}" for c in ordering.cuboids if c.source is not None]
    return ", ".join(shares) or "all alone"
