"""Queries without a relational operator: of each closed window, expressions over its first tuple, its last one and its
counts. One row a window needs no SQL: the engine's own expressions compute it, in the order in which windows closed.
"""

from __future__ import annotations

from quercus.backends.local.continuous.relations import Relation, Times
from quercus.backends.local.expressions import evaluate
from quercus.backends.local.values import Values, from_arrow
from quercus.ir import expr as x
from quercus.ir import window as w


def is_direct(query: w.Query) -> bool:
    """Whether a query is nothing but that."""
    e = query.relation
    return isinstance(e, w.Select) and e.is_of_ends and not e.distinct and not e.having


def rows_of(query: w.Query, relation: Relation) -> tuple[Times, list[Values]]:
    """The times of its rows, and the values of its outputs."""
    select = query.relation
    assert isinstance(select, w.Select)
    tuples, windows = relation.tuples, relation.windows
    assert windows is not None

    def column(c: x.Column) -> Values:
        """An aggregate, or a count of the window: both tables have a row a window, in one order."""
        values = from_arrow(tuples[f"a{c.attr}"] if c.var == w.AGGREGATE else windows[c.attr])
        return Values("timestamp", values.data, values.valid) if c.type == "timestamp" else values

    at = windows["f"].to_numpy()
    return at + 1 if query.kind == "dstream" else at, [evaluate(o.value, column, len(at)) for o in select.outputs]
