"""What is known of a stream: how often each type comes, how many values an attribute has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from quercus.errors import DataError

VERSION = 1


@frozen
class Stats:
    """Rates and distinct counts, for the planner.

    >>> import quercus as qc
    >>> stats = qc.Stats(rates={"Google": 0.5, "Dell": 0.1}, distinct={"id": 100})
    >>> qc.Stats.from_json(stats.to_json()) == stats
    True

    `rates` are events per unit of the time column, by type. `selectivity` overrides the planner's guess for a
    conjunct, given as the text that `explain()` shows.
    """

    rates: Mapping[str, float] = field(factory=dict, hash=False)
    distinct: Mapping[str, int] = field(factory=dict, hash=False)
    selectivity: Mapping[str, float] = field(factory=dict, hash=False)

    def total_rate(self) -> float:
        return sum(self.rates.values())

    @classmethod
    def collect(cls, table: Any, *, time: str = "ts", type: str = "type") -> Stats:
        """Count the types and the distinct values of a pyarrow Table (or anything it can be made from)."""
        import pyarrow as pa
        import pyarrow.compute as pc

        data = table if isinstance(table, pa.Table) else pa.table(table)
        for needed in (time, type):
            if needed not in data.column_names:
                raise DataError(f"no column '{needed}'", column=needed)
        if data.num_rows == 0:
            return cls()
        times = data[time].cast(pa.int64())
        span = max(1, pc.max(times).as_py() - pc.min(times).as_py() + 1)
        counts = pc.value_counts(data[type].combine_chunks())
        rates = {str(c["values"]): c["counts"] / span for c in counts.to_pylist() if c["values"] is not None}
        others = [n for n in data.column_names if n not in (time, type)]
        distinct = {n: int(pc.count_distinct(data[n]).as_py()) for n in others if not pa.types.is_nested(data[n].type)}
        return cls(rates, distinct)

    def to_json(self) -> str:
        return json.dumps(
            {
                "version": VERSION,
                "rates": dict(self.rates),
                "distinct": dict(self.distinct),
                "selectivity": dict(self.selectivity),
            },
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str) -> Stats:
        try:
            data = json.loads(text)
            if data["version"] != VERSION:
                raise DataError(
                    f"statistics of version {data['version']}; this is version {VERSION}: collect them again"
                )
            return cls(data["rates"], data["distinct"], data["selectivity"])
        except (ValueError, TypeError, KeyError) as e:
            raise DataError(f"not a statistics document: {e}") from None
