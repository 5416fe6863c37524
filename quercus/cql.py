"""Continuous queries: `quercus.continuous`, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from quercus.backends.base import Limits, threads_of
from quercus.compiler.continuous import compiled
from quercus.errors import DataError, QueryError
from quercus.ir import window as w
from quercus.plan import Plan, is_of_spark
from quercus.result import Tuples
from quercus.schema import Schema

if TYPE_CHECKING:
    import graphviz

    from quercus.backends.local.continuous.arrivals import Delays, Late
    from quercus.backends.local.continuous.relations import ClosedWindows, SeveralWindows
    from quercus.backends.local.continuous.stream import ContinuousStream


def continuous(text: str, streams: Mapping[str, Schema]) -> Continuous:
    """Compile a continuous query over streams, or raise `QueryError` with the place and what to do.

    >>> import quercus as qc
    >>> at = qc.Schema({"Person": "string", "Location": "string"}, type=None)
    >>> q = qc.continuous("ISTREAM(SELECT Person FROM At[Now] WHERE Location = 'Lab')", {"At": at})
    >>> q.run({"At": [{"ts": 1, "Person": "Tom", "Location": "Lab"}]}).to_arrow().to_pylist()
    [{'ts': 1, 'Person': 'Tom'}]
    """
    if not isinstance(streams, Mapping):
        raise QueryError("E702", f"the streams are a {type(streams).__name__}", hint="give {name: quercus.Schema, ...}")
    for name, schema in streams.items():
        if not isinstance(schema, Schema):
            raise QueryError("E702", f"the schema of '{name}' is a {type(schema).__name__}", hint="give quercus.Schema")
    bound = compiled(text, streams)
    return Continuous(text, dict(streams), bound.query, bound.patterns, bound.clock)


@frozen
class Continuous:
    """A continuous query, ready to run: see docs/continuous.md."""

    text: str
    schemas: Mapping[str, Schema] = field(hash=False)
    query: w.Continuous
    patterns: tuple[Plan, ...]
    clock: Schema  # whose times its streams have

    def run(
        self,
        streams: Mapping[str, object],
        backend: str | None = None,
        *,
        threads: int | None = None,
        limits: Limits | None = None,
    ) -> Any:
        """The output over streams that are at hand as a whole; each is given as `plan.run` takes events.

        `Tuples`; over Spark DataFrames, a Spark DataFrame with the same rows.
        """
        from quercus.backends.local.windows import closed_windows, several

        given: Any = streams
        on_spark = isinstance(given, Mapping) and any(map(is_of_spark, given.values()))
        if backend == "spark" or (backend is None and on_spark):
            from quercus.backends.spark.continuous import run

            if threads is not None:
                raise DataError("threads= is for the local backend: on Spark, cores and executors are the session's")
            return run(self, streams, limits=limits)
        if backend not in (None, "local"):
            hint = "'local' and 'spark' can"
            raise QueryError("E703", f"the backend '{backend}' cannot run continuous queries", hint=hint)
        return self.run_with(closed_windows, streams, threads=threads, limits=limits, several=several)

    def run_with(
        self,
        closed_windows: ClosedWindows,
        streams: Mapping[str, object],
        *,
        threads: int | None = None,
        limits: Limits | None = None,
        several: SeveralWindows | None = None,
    ) -> Tuples:
        """The same with another way to come by the windows that close: tests have one."""
        from quercus.backends.local.continuous.run import Run

        run = Run(
            *(self.query, self.patterns, self.schemas, self.clock, closed_windows),
            *(Limits.of(limits), threads_of(threads), several),
        )
        return Tuples(run.output(streams))

    def stream(
        self, *, max_delay: Delays = None, late: Late = "error", limits: Limits | None = None
    ) -> ContinuousStream:
        """Watch live streams: push tuples as they come, and get each row as soon as it is certain.

        `max_delay` ("5 s", or a number in the time column's unit) lets tuples come that much out of order; one that is
        later still is an error, or dropped and counted. Both are of all streams, or {stream: ...} of each.

        >>> import quercus as qc
        >>> s = qc.Schema({"v": "int64"}, type=None)
        >>> with qc.continuous("ISTREAM(SELECT SUM(v) AS total FROM S[Range 5])", {"S": s}).stream() as live:
        ...     for tuple in ({"ts": 1, "v": 3}, {"ts": 4, "v": 4}):
        ...         print(list(live.push({"S": [tuple]})))
        []
        [{'ts': 1, 'total': 3}]
        >>> list(live.final)
        [{'ts': 4, 'total': 7}, {'ts': 7, 'total': 4}, {'ts': 10, 'total': None}]
        """
        from quercus.backends.local.continuous.stream import ContinuousStream

        return ContinuousStream(self, limits, max_delay=max_delay, late=late)

    def restore(self, state: bytes, *, limits: Limits | None = None) -> ContinuousStream:
        """A stream that goes on where `snapshot()` was taken, of this query and these schemas."""
        from quercus.backends.local.continuous.stream import ContinuousStream

        return ContinuousStream.restore(self, state, limits)

    @property
    def schema(self) -> Schema:
        """That of the output, so that it can be a stream of another query: its time is `ts`."""
        from quercus.backends.local.continuous.run import output_schema

        return output_schema(self.query.query.columns, self.clock)

    def explain(self) -> str:
        """The query as a tree of operators, from the output down to the streams, and how its pattern windows run."""
        from quercus.backends.local.windows.plan import plan_of
        from quercus.compiler.continuous.explain import explain

        return explain(self.query, self.patterns, self.clock, lambda window: plan_of(window).reason)

    def graph(self) -> graphviz.Digraph:
        """The tree as a `graphviz.Digraph`."""
        from quercus.compiler.continuous.render import graph

        return graph(self.query, self.patterns, self.clock)

    def render(self, path: str | Path) -> Path:
        """Draw the tree into an .svg, .png, .pdf or .dot file."""
        from quercus.compiler.render import save

        return save(self.graph(), Path(path))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """A picture in notebooks, and the text beside it."""
        from quercus.compiler.render import shown

        return shown(self.explain(), self.graph())
