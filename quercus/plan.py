"""A compiled query: what `quercus.compile` returns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from attrs import field, frozen

from quercus.compiler.explain import explain
from quercus.compiler.pipeline import Fired
from quercus.errors import DataError, QueryError
from quercus.ir import codec, pattern, text, tree
from quercus.schema import Schema
from quercus.stats import Stats

if TYPE_CHECKING:
    import graphviz

    from quercus.adapt import Adapt
    from quercus.backends.base import Limits
    from quercus.backends.local.stream import Stream
    from quercus.compiler.arrange import Arranged
    from quercus.ir.observed import Observed
    from quercus.lint.finding import Finding
    from quercus.why.data import Why


@frozen
class Alternative:
    """A shape that the planner considered for the root operator, with its cost."""

    shape: str
    cost: float = field(converter=tree.finite)
    chosen: bool


@frozen
class Options:
    """What `compile` was asked: enough, with the text and the schema, to make the same plan again."""

    shape: str
    nested: str
    without: tuple[str, ...]
    stats: Stats | None


@frozen
class Plan:
    """A query compiled to a tree, ready to run. Frozen: plans can be kept, compared and sent as JSON.

    >>> import quercus as qc
    >>> plan = qc.compile("PATTERN A; B+; C WITHIN 5 EVENTS", qc.Schema({"x": "int64"}))
    >>> qc.Plan.from_json(plan.to_json()) == plan
    True
    """

    text: str
    schema: Schema
    bound: pattern.Query = field(repr=False)
    query: pattern.Query = field(repr=False)
    tree: tree.Tree = field(repr=False)
    fired: tuple[Fired, ...] = field(repr=False, eq=False)
    considered: tuple[Alternative, ...] = field(repr=False)
    warnings: tuple[str, ...]
    options: Options = field(repr=False)
    arranged: Arranged | None = field(default=None, repr=False, eq=False)  # the root operator, where it is over leaves
    made: dict[str, Any] = field(factory=dict, init=False, repr=False, eq=False)  # by a backend, for next time

    def explain(self, *, verbose: bool = False, analyze: object = None) -> str:
        """The plan as text:

        logical query, rules that fired (with `verbose`, what each changed), tree with estimated costs. With events to
        `analyze`, anything that `run` takes, the plan is run over them in memory on one thread, and what each node did
        stands beside its estimates: rows, candidates, bytes, milliseconds. Without statistics, the tree is the one that
        was planned again from these events. A Spark DataFrame is run on Spark: how its events are shared out, what
        workers counted, and Spark's own plan.
        """
        if analyze is None:
            return explain(self, verbose=verbose)
        if is_of_spark(analyze):
            from quercus.backends.spark.report import explain as explain_on_spark

            return explain_on_spark(self, cast("Any", analyze), analyze=True)
        from quercus.backends.local.analyze import run_and_analyze

        ran, analysis = run_and_analyze(self, analyze)
        return explain(ran, verbose=verbose, analysis=analysis)

    def alternatives(self) -> tuple[Alternative, ...]:
        """The shapes considered for the root operator, cheapest first, with the cost of its joins alone.

        The stack, and all binary trees of a SEQ of up to eight components or an AND of up to five. Beyond, the named
        shapes and the cheapest tree: all are searched, up to ten components of an AND, but not all are kept. To keep
        sub-queries apart from the match around, where `nested="auto"` could, is one more.
        """
        return self.considered

    def planned_again(self, observed: Observed, best: Arranged | None = None) -> Plan:
        """The plan of the same query, from what a run has seen of its events; `best`: of its root, if known."""
        from quercus.compiler import plan_again

        return plan_again(self, observed, best)

    def with_query(self, bound: pattern.Query, schema: Schema) -> Plan:
        """The plan of a query made from this one, with the same options: backends add conditions of their own."""
        from quercus.compiler import planned

        return planned(self.text, bound, schema, self.options)

    def retold(self, bound: pattern.Query) -> Plan:
        """The same with a text of its own, which such a plan needs to travel as JSON."""
        from quercus.compiler import compile

        o = self.options
        told = text.query(bound, self.schema.timestamp_unit)
        return compile(told, self.schema, stats=o.stats, shape=o.shape, nested=o.nested, without=o.without)

    def graph(self) -> graphviz.Digraph:
        """The tree as a `graphviz.Digraph`."""
        from quercus.compiler.render import graph

        return graph(self)

    def render(self, path: str | Path) -> Path:
        """Draw the plan into an .svg, .png, .pdf or .dot file.

        Graphviz draws it: the program `dot`, or pygraphviz. Without either an .svg is drawn by a layout of our own.
        """
        from quercus.compiler.render import RenderError, render

        path = Path(path)
        try:
            return render(self, path)
        except RenderError:
            if path.suffix.casefold() != ".svg":
                raise
        try:
            path.write_text(self._svg(), encoding="utf-8")
        except OSError as e:
            raise DataError(f"cannot write '{path}': {e.strerror}") from None
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """A picture in notebooks, and the text beside it."""
        return {"text/plain": self.explain(), "image/svg+xml": self._svg()}

    def _svg(self) -> str:
        """The picture by Graphviz, or where there is none by a layout of our own."""
        from quercus.compiler.render import RenderError, svg
        from quercus.show.tree import picture

        try:
            return svg(self)
        except RenderError:
            return picture(self)

    def report(self, events: Any, path: str | Path, *, limits: Limits | None = None, title: str | None = None) -> Path:
        """Run over events, and write one HTML file with all there is to see: `quercus.report.write`."""
        from quercus.report import write

        return write(self, events, path, limits=limits, title=title)

    def run(
        self, events: Any, backend: str | None = None, *, threads: int | None = None, limits: Limits | None = None
    ) -> Any:
        """Find all matches in a stream that is at hand as a whole. A Spark DataFrame runs on Spark, and gives another.

        >>> import quercus as qc
        >>> plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 3", qc.Schema({}))
        >>> plan.run({"ts": [1, 2, 9], "type": ["A", "B", "B"]}).rows()
        [{'a': 0, 'b': 1}]
        """
        from quercus import backends

        chosen = backends.get(backend or ("spark" if is_of_spark(events) else "local"))
        reason = chosen.supports(self)
        if reason is not None:
            raise QueryError("E703", f"the backend '{chosen.name}' cannot run this plan: {reason}")
        return chosen.run(self, events, threads=threads, limits=backends.Limits.of(limits))

    def write(self, events: Any, path: str | Path, *, limits: Limits | None = None) -> int:
        """Find all matches and write them into a file as they are decided: .parquet, .csv, .jsonl or .arrow.

        Events in files are read in pieces, so that neither they nor the matches need fit into memory; events out of
        order are read whole and sorted. Matches come in the order in which they are decided. Returns their number.
        """
        from quercus.backends.base import Limits
        from quercus.backends.local.scan import write

        return write(self, events, path, Limits.of(limits))

    def why(
        self,
        events: Any,
        *,
        rows: Mapping[str, int | Sequence[int]] | None = None,
        limit: int = 3,
        limits: Limits | None = None,
    ) -> Why:
        """Why there are no matches, or so few: how far partial matches got, what stopped them and with which events,
        and what smallest change would have let the nearest misses through, at most `limit` of them.

        `rows` asks about given events, as `rows()` of a result names them: why are *these* no match? Variables that are
        left out are looked for. It takes a few seconds at most, `limits.max_seconds` if given; what was not counted in
        that time is said to be so.

        >>> import quercus as qc
        >>> plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 3", qc.Schema({}, time_unit="s"))
        >>> why = plan.why({"ts": [1, 5], "type": ["A", "B"]})
        >>> why.misses[0].failures[0].change
        'WITHIN 4 s'
        """
        from quercus.backends.base import Limits
        from quercus.why.explain import why

        return why(self, events, rows=rows, limit=limit, limits=Limits.of(limits))

    def stream(
        self,
        *,
        max_delay: str | int | None = None,
        late: Literal["error", "drop"] = "error",
        limits: Limits | None = None,
        adapt: bool | Adapt = True,
    ) -> Stream:
        """Watch a live stream: push events as they come, and get each match as soon as it is decided.

        `max_delay` ("5 s", or a number in the time column's unit) lets events come that much out of order; an event
        that is later still is an error, or dropped and counted. `adapt`: whether the stream may be searched in another
        order when its rates change, and when (`quercus.Adapt`); a shape that was asked for stays.

        >>> import quercus as qc
        >>> with qc.compile("PATTERN SEQ(A a, B b) WITHIN 3", qc.Schema({})).stream() as s:
        ...     for event in ({"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}):
        ...         print(s.push([event]).rows())
        []
        [{'a': 0, 'b': 1}]
        """
        from quercus.backends.local.stream import Stream

        return Stream(self, max_delay=max_delay, late=late, limits=limits, adapt=adapt)

    def restore(self, state: bytes, *, limits: Limits | None = None, adapt: bool | Adapt = True) -> Stream:
        """A stream that goes on where `snapshot()` was taken, of this query and schema, whatever the plan's shape."""
        from quercus.backends.local.stream import Stream

        return Stream.restore(self, state, limits=limits, adapt=adapt)

    def check(self, events: Any) -> tuple[Finding, ...]:
        """What the query asks of these events in vain, and what would grow beyond limits: see docs/command-line.md.

        >>> import quercus as qc
        >>> plan = qc.compile("PATTERN SEQ(Wash w, Operat o) WITHIN 3", qc.Schema({}))
        >>> print(plan.check({"ts": [1, 2], "type": ["Wash", "Operate"]})[0])
        error[L101]: no event is a 'Operat'
          1 | PATTERN SEQ(Wash w, Operat o) WITHIN 3
                                  ^^^^^^^^  did you mean 'Operate'?
        """
        from quercus.lint import check

        return check(self, events)

    def to_json(self) -> str:
        """The plan as JSON, versioned. `from_json` reads it back."""
        data = {
            "quercus_plan": codec.VERSION,
            "text": self.text,
            "schema": self.schema.to_dict(),
            "options": {
                "shape": self.options.shape,
                "nested": self.options.nested,
                "without": list(self.options.without),
                "stats": None if self.options.stats is None else json.loads(self.options.stats.to_json()),
            },
            "bound": codec.encode(self.bound, pattern.Query),
            "query": codec.encode(self.query, pattern.Query),
            "tree": codec.encode(self.tree, tree.Tree),
            "fired": [
                {
                    "rule": f.rule,
                    "before": codec.encode(f.before, pattern.Query),
                    "after": codec.encode(f.after, pattern.Query),
                }
                for f in self.fired
            ],
            "alternatives": [codec.encode(a, Alternative) for a in self.considered],
            "warnings": list(self.warnings),
        }
        return json.dumps(data, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Read a plan; anything that is not one of this version is a `QueryError` (E701).

        The query is compiled again as it was the first time, and what comes out must be what the document says: so a
        document that was changed is refused, however it was changed.
        """
        from quercus.compiler import compile

        data = codec.loads(text)
        if set(data) != _KEYS:
            raise QueryError("E701", f"not a plan: unknown or missing keys {sorted(set(data) ^ _KEYS)}")
        for name, kind in (("bound", pattern.Query), ("query", pattern.Query), ("tree", tree.Tree)):
            codec.decode(data[name], kind)
        try:
            asked = data["options"]
            stats = None if asked["stats"] is None else Stats.from_json(json.dumps(asked["stats"]))
            plan = compile(
                data["text"],
                Schema.from_dict(data["schema"]),
                stats=stats,
                shape=asked["shape"],
                nested=asked["nested"],
                without=asked["without"],
            )
        except (KeyError, TypeError, ValueError, AttributeError, DataError, QueryError) as e:
            raise QueryError("E701", f"not a plan: {str(e).splitlines()[0]}") from None
        made = json.loads(plan.to_json())
        if made != data:
            changed = ", ".join(sorted(k for k in made if made[k] != data[k]))
            hint = "compile the query again"
            raise QueryError(
                "E701", f"not the plan of its query: {changed} differ from what compiling gives", hint=hint
            )
        return plan


def is_of_spark(events: object) -> bool:
    return type(events).__name__ == "DataFrame" and type(events).__module__.startswith("pyspark.")


_KEYS = {"quercus_plan", "text", "schema", "options", "bound", "query", "tree", "fired", "alternatives", "warnings"}
