"""A cube over a stream that is at hand as a whole: routed once, one query after the other (E-Cube, Fig. 6)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

import pyarrow as pa
from attrs import evolve

from quercus.backends.base import Limits
from quercus.backends.local.cube.actions import Results, Worker, equalities
from quercus.backends.local.cube.held import Held, Listed, nothing
from quercus.backends.local.cube.lanes import Lanes
from quercus.backends.local.cube.result import CubeResult, as_matches
from quercus.backends.local.cube.stacks import Stacks
from quercus.backends.local.dialect import is_files
from quercus.backends.local.events import Events, load
from quercus.backends.local.joins import STATE_BYTES
from quercus.backends.local.outputs import Bound
from quercus.backends.local.run import MANY, Later, find, needed, room_for, too_long, too_many
from quercus.errors import LimitExceeded
from quercus.ir import pattern as p
from quercus.ir import tree as t
from quercus.ir import workload as w
from quercus.plan import Plan
from quercus.result import Matches

MOST = 2**31 - 1  # events, and matches of a source: beyond, queries are computed alone
OFTEN = 8.0  # times as many matches as expected may be listed where totals could do without
Order = Callable[[Mapping[tuple[str, ...], int], int, float], w.Ordering]


def run_cube(plans: Mapping[str, Plan], order: Order, events: object, limits: Limits, threads: int = 1) -> CubeResult:
    """All matches of all queries, each as `plan.run` gives them.

    `order` is asked once, when the events are routed: with the number of events of each leaf's types, of all events,
    and the time between the first and the last.
    """
    schema = next(iter(plans.values())).schema
    wanted = [needed(plan) for plan in plans.values()]
    some = None if any(c is None for c in wanted) else frozenset().union(*(c for c in wanted if c is not None))
    stream = load(events, schema, some if is_files(events) else None, threads)
    return Cube(plans, stream, limits, threads).run(order)


class Cube:
    """One run of a cube."""

    def __init__(self, plans: Mapping[str, Plan], stream: Events, limits: Limits, threads: int) -> None:
        self.plans, self.stream, self.limits, self.threads = plans, stream, limits, threads
        self.end = None if limits.max_seconds is None else time.monotonic() + limits.max_seconds
        self.stacks = Stacks(stream, [accepts for plan in plans.values() for accepts in leaves(plan.tree)])
        self.lanes: dict[tuple[str, ...], Lanes] = {}

    def run(self, order: Order) -> CubeResult:
        asked = {a for plan in self.plans.values() for a in leaves(plan.tree)}
        counts = {a: len(self.stacks.positions(a)) for a in asked}
        counts |= {tuple(sorted(a)): n for a, n in counts.items()}
        span = float(self.stream.ts[-1] - self.stream.ts[0]) if len(self.stream) else 0.0
        ordering = order(counts, len(self.stream), span)
        fits = len(self.stream) < MOST
        users = Counter(c.source for c in ordering.cuboids if c.source is not None and fits)
        found: dict[str, Matches] = {}
        sizes: dict[str, int] = {}
        held: dict[str, Results] = {}
        ran: list[w.Cuboid] = []
        for c in ordering.cuboids:
            self.check_time()
            plan = self.plans[c.name]
            source = held.get(c.source or "") if fits else None
            results: Results | None = None
            counted: Matches | None = None
            tried = False
            if self.is_barren(plan):
                results = _none(plan)
            elif source is not None and len(source.held) < MOST:
                results = self.reused(plan, source, c.actions)
                tried = results is None
            elif c.counted:
                counted = self.counted(plan)
            if counted is not None:
                found[c.name], sizes[c.name] = counted, len(counted)
                ran.append(c)
            elif results is not None:
                found[c.name], sizes[c.name] = as_matches(plan, self.stream, results.held), len(results.held)
                ran.append(c)
            else:
                own = evolve(c, totalled=c.totalled or tried)
                found[c.name], results, sizes[c.name] = self.alone(own, reused=bool(users[c.name]))
                ran.append(_ran_alone(c, tried=tried, totalled=sizes[c.name] < 0))
            if c.source in held:
                users[c.source] -= 1
                if not users[c.source]:  # whoever still needs its columns has them
                    del held[c.source]
            if results is not None and users[c.name]:
                held[c.name] = results
        return CubeResult({name: found[name] for name in self.plans}, evolve(ordering, cuboids=tuple(ran)), sizes)

    def is_barren(self, plan: Plan) -> bool:
        """Whether a component has no event at all, so that there is nothing to look for."""
        parts = list(t.positive(plan.tree.root))
        if any(isinstance(n, t.Union) for n in parts) or not all(isinstance(v, p.Leaf) for v in plan.query.variables):
            return False
        return any(isinstance(n, t.Buffer) and not len(self.stacks.positions(n.accepts)) for n in parts)

    def alone(self, c: w.Cuboid, *, reused: bool) -> tuple[Matches, Results | None, int]:
        """A query that the engine computes; its results, if others are computed from them; how many there are."""
        plan = self.plans[c.name]
        if c.totalled and (totals := self.totals(plan)) is not None:
            return totals, None, -1
        try:
            few = not c.totalled and _is_totalled(plan)
            bound = self.found(plan, c.rows, self.few(c.rows) if few else None)
        except LimitExceeded as e:
            if not few or e.limit == "max_seconds":
                raise
            return self.alone(evolve(c, totalled=True), reused=False)  # to list them takes more than it was thought
        if not reused:
            rows = [b.numbered(self.stream.rows) for b in bound]
            return Matches(self.stream.table, plan.schema, plan.query, rows), None, len(rows[0])
        results = _held(plan, bound)
        return as_matches(plan, self.stream, results.held), results, len(results.held)

    def totals(self, plan: Plan) -> Matches | None:
        """A query with AGG, answered event by event; None: that would cost more than to list its matches."""
        table = self.totalled(plan)
        later = Later(plan, self.stream, self.limits, self.threads)
        return None if table is None else Matches.of_stream(plan.schema, plan.query, later, table)

    def counted(self, plan: Plan) -> Matches | None:
        """A query whose matches are counted, and listed when they are asked for; None: only a list tells how many."""
        counting = _counting(plan)
        try:
            table = self.totalled(counting) if _is_totalled(counting) else None
        except LimitExceeded as e:
            if e.limit == "max_seconds":
                raise
            return None
        if table is None:
            return None
        n = int(table.column(0)[0].as_py())
        if n > self.limits.max_matches:
            raise too_many(", ".join(v.var for v in plan.query.variables), self.limits)
        return Matches.of_stream(plan.schema, plan.query, Later(plan, self.stream, self.limits, self.threads, n))

    def totalled(self, plan: Plan) -> pa.Table | None:
        """Running totals, unless they would cost more than to list the matches."""
        from quercus.backends.local.running import Costly, run_totals

        with suppress(Costly), self.in_time() as left:
            return run_totals(plan, self.stream, left)
        return None

    def few(self, expected: float) -> Limits:
        """The limits where matches are listed because they were thought to be few."""
        return evolve(self.limits, max_matches=int(min(float(self.limits.max_matches), OFTEN * expected + MANY)))

    def reused(self, plan: Plan, source: Results, actions: tuple[w.Action, ...]) -> Results | None:
        """A query's results from those of another; None: they are too many, and its totals need none."""
        names = tuple(v.var for v in plan.query.variables)
        if not len(source.held) and not any(isinstance(a, w.Add) for a in actions):
            return _none(plan)  # E-Cube, 5.1: what is stricter fails as well
        try:
            found = self.worker(plan).run(source, actions)
            if len(found.held) > self.limits.max_matches and not w.is_count(plan.query):
                raise too_many(", ".join(names), self.limits)
        except LimitExceeded as e:
            if e.limit == "max_seconds" or not _is_totalled(plan):
                raise
            return None
        if found.names != names:
            raise AssertionError(f"the actions bind {found.names}, the query {names}")
        return found

    def worker(self, plan: Plan) -> Worker:
        partition = plan.tree.partition_by
        if partition not in self.lanes:
            self.lanes[partition] = Lanes(self.stream, self.stacks, partition)

        def delta(d: w.Delta) -> Results:
            own = delta_plan(plan, d)
            for accepts in leaves(own.tree):
                self.stacks.positions(accepts)
            return _held(own, self.found(own, limits=between(self.limits)))

        def spent(held: Held) -> None:
            self.check_time()
            what = ", ".join(v.var for v in plan.query.variables)
            if len(held) > between(self.limits).max_matches:
                raise too_many(what, between(self.limits))
            most = STATE_BYTES if self.limits.max_state_bytes is None else self.limits.max_state_bytes
            if held.bytes > most:
                raise LimitExceeded(
                    f"what is held for the matches of ({what}) takes {held.bytes:,} bytes, more than the {most:,} that "
                    'it may: run with share="independent", or raise Limits(max_state_bytes=)',
                    limit="max_state_bytes",
                    value=most,
                )

        return Worker(self.lanes[partition], delta, spent)

    def found(self, plan: Plan, expected: float = 0.0, limits: Limits | None = None) -> list[Bound]:
        """What the engine finds, as positions."""
        with self.in_time() as left:
            own = left if limits is None else evolve(limits, max_seconds=left.max_seconds)
            return find(plan, self.stream, own, threads=self.threads, numbered=False, expected=room_for(expected))

    @contextmanager
    def in_time(self) -> Iterator[Limits]:
        """The limits of what is still to come; who passes them is told those of the whole run."""
        try:
            seconds = None if self.end is None else max(self.end - time.monotonic(), 0.0)
            yield evolve(self.limits, max_seconds=seconds)
        except LimitExceeded as e:
            raise (too_long(self.limits) if e.limit == "max_seconds" else e) from None

    def check_time(self) -> None:
        if self.end is not None and time.monotonic() > self.end:
            raise too_long(self.limits)


def between(limits: Limits) -> Limits:
    """The limits of what lies between a query's source and its matches: these are none that anyone asked for."""
    return evolve(limits, max_matches=max(limits.max_matches, Limits().max_matches))


def delta_plan(plan: Plan, d: w.Delta) -> Plan:
    """The plan of a query's delta."""
    own = plan.with_query(d.query, plan.schema)
    if not d.accepts:
        return own
    tree = evolve(own.tree, root=_accepting(own.tree.root, dict(d.accepts)))
    return evolve(own, tree=tree, arranged=None, options=evolve(own.options, shape=tree.shape))


def leaves(tree: t.Tree) -> list[tuple[str, ...]]:
    """The types of all leaves of a plan, negated ones too."""
    return list(dict.fromkeys(n.accepts for n in t.walk(tree.root) if isinstance(n, t.Buffer)))


def _ran_alone(c: w.Cuboid, *, tried: bool, totalled: bool) -> w.Cuboid:
    """How a query was come by that ran alone, whatever was planned. `tried`: from its source there was too much."""
    reason = c.reason
    if tried or (totalled and c.source is None and not c.totalled):
        reason = "its matches are more than expected"
    elif c.source is not None:
        reason = f"the matches of {c.source} are more than expected, and are not held"
    return evolve(c, source=None, case=None, actions=(), reason=reason, totalled=totalled, counted=False)


def _is_totalled(plan: Plan) -> bool:
    """Whether a query can be answered event by event."""
    return plan.tree.aggregation is not None and plan.tree.aggregation.strategy == "running"


def _counting(plan: Plan) -> Plan:
    """The plan for the number of a query's matches."""
    if "counting" not in plan.made:
        count = p.Aggregate("n", "count", None, None, "int64")
        plan.made["counting"] = plan.with_query(evolve(plan.bound, returns=(), aggregates=(count,)), plan.schema)
    made: Plan = plan.made["counting"]
    return made


def _none(plan: Plan) -> Results:
    return Results(nothing(len(plan.query.variables)), tuple(v.var for v in plan.query.variables))


def _held(plan: Plan, bound: Iterable[Bound]) -> Results:
    """What the engine found, as results for others."""
    bound = list(bound)
    if any(not isinstance(v, p.Leaf) for v in plan.query.variables):
        raise AssertionError(f"the results of {plan.text!r} have sets: nothing can be computed from them")
    return Results(Listed([b.held for b in bound]), tuple(b.var for b in bound), equalities(plan.query.where))


def _accepting(n: t.Node, accepts: Mapping[str, tuple[str, ...]]) -> t.Node:
    """The tree with other types for some variables."""
    match n:
        case t.Buffer():
            return evolve(n, accepts=accepts.get(n.var, n.accepts))
        case t.Join():
            return evolve(n, left=_accepting(n.left, accepts), right=_accepting(n.right, accepts))
        case t.Union():
            return evolve(n, branches=tuple(_accepting(b, accepts) for b in n.branches))
        case t.Stack():
            steps = (
                evolve(
                    s,
                    component=_accepting(s.component, accepts),
                    negations=tuple(evolve(g, body=_accepting(g.body, accepts)) for g in s.negations),
                )
                for s in n.steps
            )
            return evolve(n, steps=tuple(steps))
        case t.Reject():
            negation = evolve(n.negation, body=_accepting(n.negation.body, accepts))
            return evolve(n, source=_accepting(n.source, accepts), negation=negation)
        case t.Test() | t.Combine() | t.Nest():
            return evolve(n, source=_accepting(n.source, accepts))
        case t.Empty():
            return n
    raise AssertionError(n)
