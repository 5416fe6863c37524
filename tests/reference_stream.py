"""The stream as tests/reference.py reads it (section 1): positions, keys, order, windows and types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from quercus.compiler.syntax import WindowText
from tests.reference_scalar import Event

NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
    "week": 7 * 86400 * 10**9,
}


@dataclass(frozen=True)
class Options:
    """What a schema says: how to read the stream."""

    ties: str = "strict"
    time_unit: str = "ms"
    key: tuple[str, ...] = ()
    hierarchy: Mapping[str, object] = field(default_factory=dict)
    type_column: str = "type"
    time_column: str = "ts"


@dataclass(frozen=True)
class Stream:
    """The events of one key in order of position, and how they compare."""

    events: list[Event]
    options: Options

    def before(self, x: Event, y: Event) -> bool:
        return x.pos < y.pos if self.options.ties == "arrival" else x.ts < y.ts

    def is_a(self, event: Event, type_name: str) -> bool:
        return type_name == event.type or type_name in ancestors(event.type, self.options.hierarchy)

    def span(self, window: WindowText) -> Fraction:
        """A time window in units of `ts`."""
        size = Fraction(str(window.size))
        if window.unit is None:
            return size
        return size * NANOSECONDS[window.unit] / NANOSECONDS[self.options.time_unit]

    def within(self, window: WindowText, x: Event, y: Event) -> bool:
        if window.unit == "events":
            return abs(x.pos - y.pos) < window.size
        return abs(x.ts - y.ts) <= self.span(window)


def ancestors(type_name: str, forest: object) -> set[str]:
    """The types above `type_name` in {"TX": {"Dallas": ["DBusStation"]}}."""
    if not isinstance(forest, Mapping):
        return set()
    found: set[str] = set()
    for parent, children in forest.items():
        below = {children} if isinstance(children, str) else set(children)
        deeper = ancestors(type_name, children)
        if type_name in below or deeper:
            found |= {parent} | deeper
    return found


def streams(rows: Sequence[Mapping[str, object]], options: Options, partition_by: tuple[str, ...]) -> list[Stream]:
    """One stream per key. HOLE: where both a schema's key and PARTITION BY are given, the two together are the key."""
    columns = options.key + partition_by
    by_key: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        key = tuple(row.get(column) for column in columns)
        if None not in key:
            by_key[key].append(number)

    def time(number: int) -> int:
        ts = rows[number][options.time_column]
        assert isinstance(ts, int)
        return ts

    def event(pos: int, number: int) -> Event:
        return Event(number, pos, time(number), str(rows[number][options.type_column]), rows[number])

    return [
        Stream([event(pos, number) for pos, number in enumerate(sorted(numbers, key=time))], options)
        for numbers in by_key.values()
    ]
