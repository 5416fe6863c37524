"""What is known of a stream: how often each type comes, and how the values of its attributes are spread."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from quercus.errors import DataError

VERSION = 2
READABLE = (1, 2)  # version 1 had no total, attributes and order
SAMPLE = 100_000


@frozen
class Attribute:
    """The values of one attribute among the events of one type.

    `quantiles` are borders between equally many values, from the least to the greatest, of numbers and timestamps.
    `common` are values that are more frequent than others, with their part of all that are not null: the skew of a key.
    """

    distinct: float
    nulls: float = 0.0
    quantiles: tuple[float, ...] = ()
    common: tuple[tuple[bool | int | float | str, float], ...] = ()


@frozen
class Stats:
    """Rates, values and selectivities, for the planner.

    >>> import quercus as qc
    >>> stats = qc.Stats(rates={"Google": 0.5, "Dell": 0.1}, distinct={"id": 100})
    >>> qc.Stats.from_json(stats.to_json()) == stats
    True

    `rates` are events per unit of the time column, by type; `total` is that of all types together, where `rates` does
    not name them all. `distinct` counts the values of an attribute over all types, `attributes` has more of them type
    by type. `selectivity` overrides the planner's estimate for a conjunct, given as the text that `explain()` shows.
    `order` says for two types, as "A;B", how many times as many pairs of an A and a later B are near each other as
    there would be if the one had nothing to do with the other.
    """

    rates: Mapping[str, float] = field(factory=dict, hash=False)
    distinct: Mapping[str, int] = field(factory=dict, hash=False)
    selectivity: Mapping[str, float] = field(factory=dict, hash=False)
    total: float | None = None
    attributes: Mapping[str, Mapping[str, Attribute]] = field(factory=dict, hash=False)
    order: Mapping[str, float] = field(factory=dict, hash=False)

    def total_rate(self) -> float:
        """Events of all types per unit of time."""
        return sum(self.rates.values()) if self.total is None else self.total

    @classmethod
    def collect(
        cls,
        table: Any,
        *,
        sample: int | None = SAMPLE,
        window: int | None = None,
        time: str = "ts",
        type: str = "type",
    ) -> Stats:
        """Count the types of a pyarrow Table (or anything it can be made from), and look at a sample of its events.

        `sample` is how many events are looked at; None: all. With a `window`, in the time column's unit, the order
        of types within it is looked at as well.

        >>> import quercus as qc
        >>> qc.Stats.collect({"ts": [0, 1, 2, 3], "type": ["A", "B", "A", "A"]}).rates
        {'A': 0.75, 'B': 0.25}
        """
        from quercus.collect import collect

        return collect(cls, table, sample, window, time, type)

    def to_json(self) -> str:
        """The statistics as JSON, versioned. `from_json` reads them back."""
        return json.dumps(
            {
                "version": VERSION,
                "rates": dict(self.rates),
                "distinct": dict(self.distinct),
                "selectivity": dict(self.selectivity),
                "total": self.total,
                "attributes": {t: {a: _encoded(v) for a, v in of.items()} for t, of in self.attributes.items()},
                "order": dict(self.order),
            },
            sort_keys=True,
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Stats:
        """Read statistics of this version or an earlier one; anything else is a `DataError`."""
        try:
            data = json.loads(text)
            if data["version"] not in READABLE:
                raise DataError(
                    f"statistics of version {data['version']}; this reads versions up to {VERSION}: collect them again"
                )
            parts = (data["rates"], data["distinct"], data["selectivity"])
            if data["version"] == 1:
                return cls(*parts)
            attributes = {t: {a: _decoded(v) for a, v in of.items()} for t, of in data["attributes"].items()}
            return cls(*parts, data["total"], attributes, data["order"])
        except (ValueError, TypeError, KeyError, AttributeError) as e:
            raise DataError(f"not a statistics document: {e}") from None


def _encoded(a: Attribute) -> dict[str, Any]:
    return {
        "distinct": a.distinct,
        "nulls": a.nulls,
        "quantiles": list(a.quantiles),
        "common": [list(c) for c in a.common],
    }


def _decoded(a: Any) -> Attribute:
    common = tuple((value, float(part)) for value, part in a["common"])
    return Attribute(float(a["distinct"]), float(a["nulls"]), tuple(map(float, a["quantiles"])), common)
