"""Many queries at once, at many levels: what `quercus.cube` returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import frozen

from quercus.compiler import compile
from quercus.compiler.cube.explain import explain
from quercus.compiler.cube.operations import Change, Operation, Place, operated
from quercus.compiler.cube.order import STRATEGIES, ordering, prices
from quercus.compiler.cube.planning import Planning
from quercus.compiler.cube.rates import Rates
from quercus.compiler.cube.slices import sliced
from quercus.compiler.cube.workload import Workload
from quercus.errors import DataError, QueryError, nearest
from quercus.ir import text as texts
from quercus.ir.workload import Cuboid, Ordering, Refinement, Strategy
from quercus.plan import Plan, is_of_spark
from quercus.schema import Schema
from quercus.stats import Stats

if TYPE_CHECKING:
    import graphviz
    import pyarrow as pa

    from quercus.adapt import Adapt
    from quercus.backends.base import Limits
    from quercus.backends.local.cube.stream import CubeStream


def cube(queries: Mapping[str, str], schema: Schema, *, share: Strategy = "chase", stats: Stats | None = None) -> Cube:
    """Compile queries that are asked together, so that each is computed alone or from another one, whatever is cheaper.

    `share`: chase (the cheapest of all orderings), top_down, bottom_up, or independent. Each query returns what it
    returns alone.

    >>> import quercus as qc
    >>> schema = qc.Schema({}, hierarchy={"TX": ["Dallas", "Austin"], "OK": ["Tulsa"]}, time_unit="s")
    >>> cube = qc.cube({
    ...     "states": "PATTERN SEQ(TX, OK) WITHIN 1 h",
    ...     "cities": "PATTERN SEQ(Dallas, Tulsa) WITHIN 1 h",
    ... }, schema)
    >>> cube.refinements[0].kind
    'concept'
    """
    given: object = queries
    if not isinstance(given, Mapping) or not given:
        raise QueryError("E804", "a cube has at least one query", hint="give {name: query text, ...}")
    if share not in STRATEGIES:
        hint = nearest(str(share), STRATEGIES) or "one of " + ", ".join(STRATEGIES)
        raise QueryError("E702", f"no share '{share}'", hint=hint)
    plans = {str(name): _compiled(str(name), text, schema, stats) for name, text in queries.items()}
    return Cube(plans, schema, share, stats)


def _compiled(name: str, text: str, schema: Schema, stats: Stats | None) -> Plan:
    try:
        return compile(text, schema, stats=stats)
    except QueryError as e:
        raise QueryError(e.code, f"{name}: {e.message}", text=text, span=e.span, hint=e.hint) from None


@frozen
class CubeQuery:
    """A query of a cube, and, if an operation made it, of which other one."""

    name: str
    text: str
    came_from: str | None = None
    operation: str | None = None


@frozen(eq=False)
class _Run:
    """What a run has counted and found, and how: as it was planned, and as it came."""

    rates: Rates
    planned: Ordering
    ordering: Ordering
    sizes: Mapping[str, int]


class Cube:
    """Queries that are answered together. Operations add queries; running it leaves it as it is."""

    def __init__(self, plans: Mapping[str, Plan], schema: Schema, share: Strategy, stats: Stats | None) -> None:
        self.schema, self.share, self.stats = schema, share, stats
        self._plans = dict(plans)
        self._made: dict[str, CubeQuery] = {}
        self._workload: Workload | None = Workload(self._plans, stats)
        self._last: _Run | None = None

    # what there is

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._plans)

    @property
    def queries(self) -> dict[str, str]:
        """The text of each query."""
        return {name: plan.text for name, plan in self._plans.items()}

    @property
    def plans(self) -> dict[str, Plan]:
        """The plan of each query, as `compile` gives it."""
        return dict(self._plans)

    @property
    def refinements(self) -> tuple[Refinement, ...]:
        """All pairs of queries of which one refines the other (E-Cube's definitions 3 to 5)."""
        return self._known.refinements

    @property
    def ordering(self) -> Ordering:
        """How the results of each query are come by: in the last run, or else as statistics or defaults suggest."""
        return self._last.ordering if self._last is not None else self._order(self._expected)

    def __getitem__(self, name: str) -> CubeQuery:
        self._plan(name)
        return self._made.get(name) or CubeQuery(name, self._plans[name].text)

    def __len__(self) -> int:
        return len(self._plans)

    def __repr__(self) -> str:
        return f"<Cube: {len(self)} queries ({', '.join(self.names)}), shared by {self.share}>"

    @property
    def _known(self) -> Workload:
        if self._workload is None:
            self._workload = Workload(self._plans, self.stats)
        return self._workload

    @property
    def _expected(self) -> Rates:
        return Rates.expected(self.stats, (plan.query.window for plan in self._plans.values()))

    def _order(self, rates: Rates) -> Ordering:
        return ordering(self._known, self.share, rates)

    def _plan(self, name: str) -> Plan:
        if name not in self._plans:
            hint = nearest(str(name), self._plans) or "queries: " + ", ".join(self._plans)
            raise QueryError("E804", f"no query '{name}' in the cube", hint=hint)
        return self._plans[name]

    # running

    def run(
        self, events: Any, backend: str | None = None, *, threads: int | None = None, limits: Limits | None = None
    ) -> Any:
        """The matches of all queries, by name: `cube.run(events)["q1"]` is what the query returns alone.

        Events are read and routed once; what is computed from what is decided when they have been counted.
        """
        from quercus.backends.base import Limits, threads_of
        from quercus.backends.local.cube import run_cube

        if backend == "spark" or (backend is None and is_of_spark(events)):
            return self._run_on_spark(events, threads, Limits.of(limits))
        if backend not in (None, "local"):
            raise QueryError("E703", f"the backend '{backend}' cannot run a cube", hint="run its plans one by one")
        known = self._known
        seen: list[tuple[Rates, Ordering]] = []

        def order(counts: Mapping[tuple[str, ...], int], total: int, span: float) -> Ordering:
            distinct = self.stats.distinct if self.stats is not None else None
            rates = Rates.of_run(counts, total, span, distinct)
            if self._last is not None and self._last.rates.alike(rates):
                planned = self._last.planned  # as in the run before: a large cube takes longer to order than to look
            else:
                planned = ordering(known, self.share, rates)
            seen.append((rates, planned))
            return planned

        result = run_cube(self.plans, order, events, Limits.of(limits), threads_of(threads))
        if seen:
            self._last = _Run(*seen[0], result.ordering, result.sizes)
        return result

    def _run_on_spark(self, df: Any, threads: int | None, limits: Limits, **options: Any) -> Any:
        from quercus.backends.spark.cube import run_cube
        from quercus.backends.spark.sharing import Options

        if threads is not None:
            raise DataError("threads= is for the local backend: on Spark, cores and executors are the session's")
        return run_cube(self.plans, self.share, self.stats, df, limits, Options(**options), cube)

    def stream(
        self,
        *,
        max_delay: str | int | None = None,
        late: Literal["error", "drop"] = "error",
        limits: Limits | None = None,
        adapt: bool | Adapt = True,
    ) -> CubeStream:
        """Watch a live stream: a push gives the matches of each query that are now decided, by name.

        As `Plan.stream`, for all queries at once. Queries can be added, removed and replaced while it runs; when rates
        drift, what is computed from what is decided again (`quercus.Adapt`).

        >>> import quercus as qc
        >>> queries = {"q1": "PATTERN SEQ(A a, B b) WITHIN 5", "q2": "PATTERN SEQ(A a, B b, C c) WITHIN 5"}
        >>> with qc.cube(queries, qc.Schema({})).stream() as s:
        ...     found = s.push({"ts": [1, 2], "type": ["A", "B"]})
        ...     found = s.push({"ts": [3], "type": ["C"]})
        >>> found["q1"].rows(), found["q2"].rows()
        ([], [{'a': 0, 'b': 1, 'c': 2}])
        """
        from quercus.backends.local.cube.stream import CubeStream

        return CubeStream(self.plans, self._planning, max_delay=max_delay, late=late, limits=limits, adapt=adapt)

    def restore(self, state: bytes, *, limits: Limits | None = None, adapt: bool | Adapt = True) -> CubeStream:
        """A stream that goes on where `snapshot()` was taken, with the queries that it had then."""
        from quercus.backends.local.cube.snapshot import restored

        return restored(self._planning, self.schema, state, limits=limits, adapt=adapt)

    @property
    def _planning(self) -> Planning:
        return Planning(self._known, self.share, self.stats, self._compiled_here)

    def _compiled_here(self, name: str, text: str) -> Plan:
        return _compiled(name, text, self.schema, self.stats)

    # showing

    def explain(self) -> str:
        """The hierarchy, how the results of each query are come by, and what the other strategies would cost.

        After a run: with the numbers of its events, and the matches that each query has.
        """
        last = self._last
        rates = last.rates if last is not None else self._expected
        found = prices(self._known, rates)
        chosen = last.ordering if last is not None else ordering(self._known, self.share, rates, found)
        return explain(self._known, chosen, found, rates, last.sizes if last is not None else None)

    def graph(self) -> graphviz.Digraph:
        """The hierarchy as a `graphviz.Digraph`, as in the paper's Fig. 1, with what is computed from what."""
        from quercus.compiler.cube.render import graph

        sizes = self._last.sizes if self._last is not None else None
        return graph(self._known, self.ordering, sizes)

    def render(self, path: str | Path) -> Path:
        """Draw the cube into an .svg, .png, .pdf or .dot file."""
        from quercus.compiler.render import save

        return save(self.graph(), Path(path))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """A picture in notebooks, and the text beside it."""
        from quercus.compiler.render import shown

        return shown(self.explain(), self.graph())

    # moving

    def pattern_drill_down(self, name: str | CubeQuery, places: Iterable[Place], *, to: str | None = None) -> CubeQuery:
        """Insert components: `[("!D", 2)]` puts a negated D at the second position."""
        return self._operated("pattern_drill_down", name, places, to)

    def pattern_roll_up(self, name: str | CubeQuery, places: Iterable[Place], *, to: str | None = None) -> CubeQuery:
        """Leave components out: `[("G", 1)]` leaves out the G at the first position."""
        return self._operated("pattern_roll_up", name, places, to)

    def concept_drill_down(
        self, name: str | CubeQuery, changes: Iterable[Change], *, to: str | None = None
    ) -> CubeQuery:
        """Finer concepts: `[("TX", "Dallas", 1)]` asks for Dallas at the first position."""
        return self._operated("concept_drill_down", name, changes, to)

    def concept_roll_up(self, name: str | CubeQuery, changes: Iterable[Change], *, to: str | None = None) -> CubeQuery:
        """Coarser concepts: `[("Dallas", "TX", 1)]` asks for any event of TX at the first position."""
        return self._operated("concept_roll_up", name, changes, to)

    def _operated(
        self, operation: Operation, query: str | CubeQuery, changes: Iterable[Place] | Iterable[Change], to: str | None
    ) -> CubeQuery:
        """The query that an operation leads to: one of the cube, or a new one, which is then one of the cube."""
        name = query.name if isinstance(query, CubeQuery) else query
        to = None if to is None else str(to)
        plan = self._plan(name)
        text = operated(plan, operation, changes)
        made = _compiled(to or name, text, self.schema, self.stats)
        if to is not None and to in self._plans:
            raise QueryError("E804", f"there is a query '{to}' in the cube already")
        known = {texts.query(other.bound): n for n, other in self._plans.items()}
        there = known.get(texts.query(made.bound))
        if to is None and there is not None:
            return self[there]
        new = to or next(n for i in range(1, len(self) + 2) if (n := f"{name}.{i}") not in self._plans)
        self._plans[new] = made
        self._made[new] = CubeQuery(new, text, name, operation)
        self._workload = self._last = None
        return self._made[new]

    def slice(self, conditions: str | Mapping[str, str]) -> Cube:
        """The cube of the same queries with more conditions.

        One text is asked of every event of every query, negated ones too, by the names of attributes: "price > 10". A
        mapping has conditions for some queries, over their variables: {"q1": "a.price > 10"}.
        """
        made = sliced(self._plans, conditions)
        plans = {name: _compiled(name, text, self.schema, self.stats) for name, text in made.items()}
        return Cube(plans, self.schema, self.share, self.stats)

    def table(
        self, name: str, events: Any, positions: int | Iterable[int] | None = None, *, limits: Limits | None = None
    ) -> pa.Table:
        """Totals of a query at every level: a row for each concept at these positions with matches, coarse ones first.

        Positions count from 1, over all components; without any, those whose concepts have others below them. The
        columns are the level below the query's own concept and the concept, for each position, then what the query
        groups by, then its aggregates, or the number of its matches. Where AGG needs no listing, neither does this.
        """
        from quercus.levels import table

        return table(self._plan(name), events, positions, limits)

    def cuboid(self, name: str) -> Cuboid:
        """How the results of one query are come by."""
        self._plan(name)
        return next(c for c in self.ordering.cuboids if c.name == name)
