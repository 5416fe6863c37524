"""Continuous queries: `quercus.continuous`, what it returns, and what a run of it gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from attrs import field, frozen

from quercus.backends.base import Limits
from quercus.compiler.continuous import compiled
from quercus.errors import DataError, QueryError
from quercus.ir import window as w
from quercus.plan import Plan
from quercus.result import SHOWN, Columns, counted, html
from quercus.schema import Schema

if TYPE_CHECKING:
    import graphviz

    from quercus.backends.local.continuous.relations import ClosedWindows


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

    def run(self, streams: Mapping[str, object], *, threads: int | None = None, limits: Limits | None = None) -> Tuples:
        """The output over streams that are at hand as a whole; each is given as `plan.run` takes events."""
        from quercus.backends.local.windows import closed_windows

        return self.run_with(closed_windows, streams, threads=threads, limits=limits)

    def run_with(
        self,
        closed_windows: ClosedWindows,
        streams: Mapping[str, object],
        *,
        threads: int | None = None,
        limits: Limits | None = None,
    ) -> Tuples:
        """The same with another way to come by the windows that close: tests have one."""
        from quercus.backends.local.continuous.run import Run

        if threads is not None and (type(threads) is not int or threads < 1):
            raise DataError(f"threads={threads!r}: give a whole number from 1 up, or None")
        run = Run(self.query, self.patterns, self.schemas, self.clock, closed_windows, limits or Limits(), threads or 1)
        return Tuples(run.output(streams))

    @property
    def schema(self) -> Schema:
        """That of the output, so that it can be a stream of another query: its time is `ts`."""
        from quercus.backends.local.continuous.run import output_schema

        return output_schema(self.query.query.columns, self.clock)

    def explain(self) -> str:
        """The query as a tree of operators, from the output down to the streams."""
        from quercus.compiler.continuous.explain import explain

        return explain(self.query, self.patterns, self.clock)

    def graph(self) -> graphviz.Digraph:
        """The tree as a `graphviz.Digraph`."""
        from quercus.compiler.continuous.render import graph

        return graph(self.query, self.patterns, self.clock)

    def render(self, path: str | Path) -> Path:
        """Draw the tree into an .svg, .png, .pdf or .dot file."""
        from quercus.compiler.render import write_picture

        return write_picture(self.graph().source, Path(path))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """A picture in notebooks, and the text beside it."""
        from quercus.compiler.render import RenderError, drawn

        bundle = {"text/plain": self.explain()}
        with suppress(RenderError):  # nothing to draw with: the text says the same
            bundle["image/svg+xml"] = drawn(self.graph().source, "svg").decode()
        return bundle


class Tuples(Columns):
    """The output stream of a continuous query: `ts`, and the columns of SELECT, in the order of time."""

    __slots__ = ("_table",)

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        return self._table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The tuples, as {column: value}."""
        return iter(self._table.to_pylist())

    def __repr__(self) -> str:
        return f"<Tuples: {counted(len(self), 'tuple', 'tuples')} of ({', '.join(self._table.column_names)})>"

    def _repr_html_(self) -> str:
        """The first few, as a table."""
        return html(repr(self)[1:-1], self._table.slice(0, SHOWN))
