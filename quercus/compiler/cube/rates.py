"""How many events of each type there are, for all queries of a cube alike: of a run, by statistics, or by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from attrs import define, field

from quercus.compiler.cost import DEFAULT_DISTINCT, DEFAULT_PER_WINDOW, DEFAULT_TYPES, DEFAULT_WINDOWS
from quercus.ir.pattern import Window
from quercus.stats import Stats

Types = tuple[str, ...]


@define(eq=False)
class Rates:
    """Events of a stretch of the stream, which is `span` long in units of time: all estimates are for it.

    `given` are exact numbers by the types that a leaf accepts, `each` numbers by type, `other` that of any other type.
    """

    total: float
    span: float
    given: Mapping[frozenset[str], float] = field(factory=dict)
    each: Mapping[str, float] = field(factory=dict)
    other: float = 0.0
    distinct: Mapping[str, int] = field(factory=dict)
    sizes: dict[object, float] = field(factory=dict, init=False)  # of results, as they were computed from this
    _known: dict[Types, float] = field(factory=dict, init=False)

    @classmethod
    def of_run(
        cls, counts: Mapping[Types, int], events: int, span: float, distinct: Mapping[str, int] | None = None
    ) -> Rates:
        """What a run has counted: its leaves' events, all events, and how long the stream is."""
        given = {frozenset(types): float(n) for types, n in counts.items()}
        return cls(float(events), float(span), given, distinct=distinct or {})

    @classmethod
    def expected(cls, stats: Stats | None, windows: Iterable[Window]) -> Rates:
        """What statistics say of ten times the longest window; without any, so many of each type in it."""
        windows = tuple(windows)
        time = max((w.size for w in windows if w.kind == "time"), default=0)
        count = max((w.size for w in windows if w.kind == "count"), default=0)
        if stats is not None and stats.rates and stats.total_rate() > 0:
            longest = time or count / stats.total_rate()
            span = DEFAULT_WINDOWS * longest
            each = {name: rate * span for name, rate in stats.rates.items()}
            return cls(stats.total_rate() * span, span, each=each, distinct=stats.distinct)
        other = DEFAULT_WINDOWS * (DEFAULT_PER_WINDOW if time else count / DEFAULT_TYPES)
        distinct = stats.distinct if stats is not None else {}
        return cls(DEFAULT_TYPES * other, DEFAULT_WINDOWS * (time or 1), other=other, distinct=distinct)

    def alike(self, other: Rates) -> bool:
        """Whether both say the same of a run."""
        return (self.total, self.span, self.given) == (other.total, other.span, other.given)

    def events(self, types: Types) -> float:
        """Events of these types."""
        known = self._known.get(types)
        if known is None:
            known = self._known[types] = self._events(frozenset(types))
        return known

    def _events(self, types: frozenset[str]) -> float:
        if types in self.given:
            return self.given[types]
        if self.given:  # a concept but for a part of it: the smallest known around it, without those known inside that
            around = [(n, s) for s, n in self.given.items() if types < s]
            if around:
                n, whole = min(around, key=lambda found: len(found[1]))
                inside = [s for s in self.given if s < whole and not s & types]
                largest = [s for s in inside if not any(s < other for other in inside)]
                return max(0.0, n - sum(self.given[s] for s in largest))
            parts = [s for s in self.given if s < types]
            return sum(self.given[s] for s in parts if not any(s < other for other in parts))
        if self.each:
            return sum(self.each.get(name, 0.0) for name in types)
        return self.other * max(1, len(types) - 1)

    def reach(self, window: Window, partition_by: tuple[str, ...]) -> float:
        """A window as a part of the stretch."""
        if window.kind == "time":
            return min(1.0, (window.size + 1) / max(self.span, 1.0))
        return min(1.0, window.size * self.keys(partition_by) / max(self.total, 1.0))

    def keys(self, partition_by: tuple[str, ...]) -> float:
        """How many keys there are: events of one meet no others."""
        return max(1.0, prod(float(self.distinct.get(k) or DEFAULT_DISTINCT) for k in partition_by))
