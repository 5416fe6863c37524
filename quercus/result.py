"""What a query found: row numbers, Arrow columns, frames, files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from quercus.backends.local.aggregate import aggregated
from quercus.backends.local.changed import Changed
from quercus.backends.local.outputs import Answer, Bound, Rows, projected, row_numbers
from quercus.backends.local.records import records
from quercus.backends.local.write import write_table
from quercus.ir import pattern as p
from quercus.schema import Schema

if TYPE_CHECKING:
    from quercus.show.timeline import Timeline

__all__ = ["Bound", "Matches", "Tuples"]

SHOWN = 10


class Later(Protocol):
    """Matches whose number is known before they are made."""

    def __len__(self) -> int: ...

    def answer(self) -> Answer: ...

    def numbered(self) -> tuple[Bound, ...]: ...


class Columns:
    """What any answer can become, once it has columns."""

    __slots__ = ()

    def to_arrow(self) -> pa.Table:
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """`to_arrow()` as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """`to_arrow()` as a Polars DataFrame."""
        import polars

        return polars.from_arrow(self.to_arrow())

    def write(self, path: str | Path) -> None:
        """Write `to_arrow()` to a file: .parquet, .csv, .jsonl or .arrow.

        In CSV a struct becomes a column per field and a list JSON text.
        """
        write_table(self.to_arrow(), path)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


class Matches(Columns):
    """The matches of a query over a stream, or, for a query with AGG, its aggregates.

    >>> import numpy as np
    >>> from quercus.compiler.bind import bind
    >>> from quercus.compiler.parse import parse_query
    >>> schema = Schema({"id": "int64"})
    >>> query = bind(parse_query("PATTERN SEQ(A a, B+ b) WITHIN 5"), schema)
    >>> events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "id": [7, 8, 9]})
    >>> bound = [Bound("a", False, np.array([0])), Bound("b", True, np.array([1, 2]), np.array([0]), np.array([2]))]
    >>> result = Matches(events, schema, query, bound)
    >>> result
    <Matches: 1 match of (a, b+)>
    >>> result.rows()
    [{'a': 0, 'b': [1, 2]}]
    >>> result.to_arrow()["b"].to_pylist()[0][0]
    {'ts': 2, 'type': 'B', 'id': 8}
    """

    __slots__ = ("__weakref__", "_aggregates", "_made", "query", "schema")

    def __init__(
        self, events: pa.Table, schema: Schema, query: p.Query, bound: Sequence[Bound], numbers: Rows | None = None
    ) -> None:
        """`bound` are rows of `events`; `numbers` are what rows() calls these, if they are only some of the input's."""
        self.schema, self.query = schema, query
        self._made: Answer | Later = Answer(events, schema, query, {b.var: b for b in bound}, numbers)
        self._aggregates: pa.Table | Changed | None = None

    @classmethod
    def of_stream(
        cls, schema: Schema, query: p.Query, later: Later, totals: pa.Table | Changed | None = None
    ) -> Matches:
        """What a stream gives: made when it is first looked at. `totals`: the groups that changed, with AGG."""
        found = cls.__new__(cls)
        found.schema, found.query, found._made, found._aggregates = schema, query, later, totals
        return found

    @property
    def answer(self) -> Answer:
        """The matches with their events."""
        if not isinstance(self._made, Answer):
            self._made = self._made.answer()
        return self._made

    @property
    def bound(self) -> tuple[Bound, ...]:
        """What each variable is bound to, in the order of the query's variables, as rows of the input."""
        made = self._made
        if isinstance(made, Answer):
            return tuple(b.numbered(made.numbers) for b in made.bound.values())
        return made.numbered()

    def __len__(self) -> int:
        """The number of matches; with AGG, of groups."""
        if isinstance(self._aggregates, Changed):
            return len(self._aggregates)
        return self.to_arrow().num_rows if self.query.aggregates else len(self._made)

    def rows(self) -> list[dict[str, int | list[int]]]:
        """Each match as {variable: row number in the input, or a list of them in order of position}.

        Variables of an OR branch not taken are left out; an empty Kleene set is []. With AGG: the matches that were
        aggregated, so that there may be more or fewer than len() of them.
        """
        return row_numbers(self.bound)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The matches, as rows() has them; with AGG, the groups as {column: value}."""
        if isinstance(self._aggregates, Changed):
            return iter(self._aggregates.rows())
        return iter(self.to_arrow().to_pylist() if self.query.aggregates else self.rows())

    def to_arrow(self) -> pa.Table:
        """RETURN's columns, or the aggregates; by default one column per variable, a struct of `ts`, `type` and the
        attributes of the variable's type, and a list of structs for a Kleene variable. Absent is null, empty an empty
        list. Counts and integer sums are decimal128(38, 0).
        """
        if not self.query.aggregates:
            return projected(self.answer)
        if self._aggregates is None:
            self._aggregates = aggregated(self.answer)
        return self._aggregates.table() if isinstance(self._aggregates, Changed) else self._aggregates

    def timeline(self, *, by: str | None = None, aligned: bool = False) -> Timeline:
        """The matches over time, as a picture that shows itself in notebooks: `.save("matches.svg")` writes it, and
        `.save("matches.html")` a page to zoom and filter in.

        Matches are grouped `by` an attribute: by default the key of the query, if it has one. `aligned`: the picture
        has each match from its own first event on, so that short matches of a long stream can be compared. With AGG:
        the matches that were aggregated, which are listed for it.
        """
        from quercus.show.timeline import Timeline

        return Timeline(self, by=by, aligned=aligned)

    def __repr__(self) -> str:
        if self.query.aggregates:
            return f"<Matches: {counted(len(self), 'group', 'groups')}>"
        variables = ", ".join(v.var + (v.sign if isinstance(v, p.Kleene) else "") for v in self.query.variables)
        return f"<Matches: {counted(len(self), 'match', 'matches')} of ({variables})>"

    def _repr_html_(self) -> str:
        """The first few, as a table and over time."""
        if self.query.aggregates:
            return html(repr(self)[1:-1], self.to_arrow().slice(0, SHOWN))
        head = self.head(SHOWN)
        drawn = head.timeline()._repr_html_() if len(head) else ""
        return html(repr(self)[1:-1], head.to_arrow()) + drawn

    def head(self, n: int) -> Matches:
        """The first matches only; with AGG, those that the totals are of stay as they are."""
        answer = self.answer
        bound = [b.head(n) for b in answer.bound.values()]
        return Matches(answer.table, self.schema, self.query, bound, answer.numbers)


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


def html(title: str, head: pa.Table) -> str:
    """The first rows of an answer, for notebooks."""
    names = "".join(f"<th>{escape(n)}</th>" for n in head.column_names)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(v))}</td>" for v in row.values()) + "</tr>" for row in records(head)
    )
    return f"<div>{escape(title)}<table><tr>{names}</tr>{rows}</table></div>"


def counted(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}={_cell(v)}" for k, v in value.items())
    if isinstance(value, list):
        shown = [f"({_cell(v)})" if isinstance(v, dict) else _cell(v) for v in value[:SHOWN]]
        return "; ".join(shown) + ("; ..." if len(value) > SHOWN else "")
    return "" if value is None else str(value)
