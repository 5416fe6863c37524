"""Groups of AGG that a push of a stream changed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from attrs import field, frozen

from quercus.backends.local.exact import TOTAL, exact


@frozen(eq=False)
class Layout:
    """The columns of a query's totals."""

    schema: pa.Schema
    names: list[str] = field(init=False)
    whole: list[bool] = field(init=False)  # of each column: whether it is a decimal
    plain: bool = field(init=False)  # whether values are shown as they are kept

    def __attrs_post_init__(self) -> None:
        kinds = self.schema.types
        object.__setattr__(self, "names", self.schema.names)
        object.__setattr__(self, "whole", [k == TOTAL for k in kinds])
        object.__setattr__(self, "plain", not any(pa.types.is_timestamp(k) for k in kinds))


class Changed:
    """Groups that a push changed, with their totals by then: made a table when somebody looks."""

    __slots__ = ("_table", "layout", "shown", "values")

    def __init__(self, layout: Layout, shown: list[tuple[Any, ...]], values: list[list[Any]]) -> None:
        """`shown`: the values that groups are told apart by; none without GROUPBY."""
        self.layout, self.shown, self.values = layout, shown, values
        self._table: pa.Table | None = None

    def __len__(self) -> int:
        return len(self.values)

    def table(self) -> pa.Table:
        if self._table is None:
            schema = self.layout.schema
            rows = [[*s, *v] for s, v in zip(self.shown, self.values, strict=True)] if self.shown else self.values
            columns = [column_of([r[i] for r in rows], f.type, f.name) for i, f in enumerate(schema)]
            self._table = pa.Table.from_arrays(columns, schema=schema)
        return self._table

    def rows(self) -> list[dict[str, Any]]:
        """As `table().to_pylist()`."""
        layout = self.layout
        if not layout.plain or (self.shown and self.shown[0]):
            return list(self.table().to_pylist())
        return [
            {
                n: Decimal(v) if w and v is not None else v
                for n, v, w in zip(layout.names, own, layout.whole, strict=True)
            }
            for own in self.values
        ]


def column_of(values: list[Any], kind: pa.DataType, name: str) -> pa.Array:
    if kind == TOTAL:
        return exact(values, name)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)
