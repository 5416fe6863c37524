"""Where a component's events lie beside those that are bound already: counts before bounds, looked up by position.

A bound of a position is another one: `after`, the first that comes after it; `upto`, the first that does not come
before it; `reach`, the first beyond the window that begins there; `back`, the first in the window that ends there. What
lies between two bounds is then a range of a component's events, and both its ends are looked up: in tables with an
entry for each position of the stream, or, for few matches in a long stream, by searching.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Literal, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from quercus.backends.local.cube.held import Column, Small, small
from quercus.backends.local.cube.stacks import Stacks
from quercus.backends.local.events import Events
from quercus.backends.local.expressions import true_mask
from quercus.ir import expr as x
from quercus.ir.pattern import Window
from quercus.kernels import group, reuse

T = TypeVar("T")
Index = NDArray[np.int64]
FEW = 50  # a table is made where there is a match for so many events; else each match is searched for


@frozen
class Bound:
    """A bound, and the window of `reach` and `back`."""

    kind: Literal["after", "upto", "reach", "back"]
    window: Window | None = None


@frozen(eq=False)
class Keyed:
    """The positions of a stream key by key: those of code c from first[c] on; those without a key are left out."""

    order: Index
    first: Index


class Lanes:
    """All that is looked up of one stream, made when first asked for and kept for the queries to come.

    `partition`: each key is a stream of its own, in which positions are counted.
    """

    def __init__(self, stream: Events, stacks: Stacks, partition: tuple[str, ...] = ()) -> None:
        self.stream, self.stacks, self.partition = stream, stacks, partition
        self._made: dict[Hashable, Any] = {}

    def lane(self, accepts: tuple[str, ...], where: tuple[x.Expr, ...], key: tuple[str, ...] = ()) -> Lane:
        """The events of some types that meet conditions of their own, each looked up by its key if there is one."""
        key = tuple(dict.fromkeys((*self.partition, *key)))
        return self.once(("lane", accepts, where, key), lambda: Lane(self, self._kept(accepts, where), key))

    def bound(self, b: Bound) -> Small:
        """The bound of each position."""
        return self.once(b, lambda: self._bound(b))

    def bound_at(self, b: Bound, positions: Column) -> Column:
        """The bounds of some positions, which are few."""
        if b in self._made or (b.window is not None and b.window.kind == "count" and self.partition):
            return self.bound(b)[positions]
        n, ts, positions = len(self.stream), self.stream.ts, positions.astype(np.int64, copy=False)
        if b.window is None:
            if self.stream.schema.ties == "arrival":
                return positions + (b.kind == "after")
            return np.searchsorted(ts, ts[positions], "right" if b.kind == "after" else "left")
        if b.window.kind == "count":
            size = min(b.window.size, n)
            return np.asarray(np.clip(positions + (size if b.kind == "reach" else 1 - size), 0, n))
        size = b.window.size
        if b.kind == "reach":
            return np.searchsorted(ts, np.minimum(ts[positions], 2**63 - 1 - size) + size, "right")
        return np.searchsorted(ts, np.maximum(ts[positions], -(2**63) + size) - size, "left")

    def keyed(self, attrs: tuple[str, ...]) -> Keyed:
        """All positions by the key that some attributes are."""

        def make() -> Keyed:
            codes = self.codes(attrs)
            return Keyed(*group.group_by_code(codes, int(codes.max(initial=-1)) + 1))

        return self.once(("keyed", attrs), make)

    def codes(self, attrs: tuple[str, ...]) -> Index:
        """The code of each position's key; -1 where it has none."""
        everything = np.arange(len(self.stream))
        return self.once(
            ("codes", attrs), lambda: np.ascontiguousarray(self.stream.key_codes(attrs, everything), np.int64)
        )

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def _kept(self, accepts: tuple[str, ...], where: tuple[x.Expr, ...]) -> Index:
        at = self.stacks.positions(accepts)
        for c in where:
            at = at[true_mask(c, lambda k, at=at: self.stream.values(k.attr, at), len(at))]  # type: ignore[misc]
        return at

    def _bound(self, b: Bound) -> Small:
        n, ts = len(self.stream), self.stream.ts
        out = small(n)
        if b.window is None:
            if self.stream.schema.ties == "arrival":
                return np.arange(n, dtype=np.int32) + (1 if b.kind == "after" else 0)
            (reuse.reach if b.kind == "after" else reuse.back)(ts, 0, out)
        elif b.window.kind == "time":
            (reuse.reach if b.kind == "reach" else reuse.back)(ts, b.window.size, out)
        else:
            return self._counted(b.kind == "reach", b.window.size)
        return out

    def _counted(self, forward: bool, size: int) -> Small:
        """`reach` and `back` of a window of so many events, in each key's own stream."""
        n = len(self.stream)
        size = min(size, n)
        if not self.partition:
            places = np.arange(n, dtype=np.int64)
            return np.clip(places + size if forward else places - size + 1, 0, n).astype(np.int32)
        out = np.zeros(n, np.int32)
        keys = self.keyed(self.partition)
        ends = np.repeat(keys.first[1:], np.diff(keys.first))
        begins = np.repeat(keys.first[:-1], np.diff(keys.first))
        places = np.arange(len(keys.order))
        if forward:
            to = places + size
            out[keys.order] = np.where(to < ends, keys.order[np.minimum(to, len(keys.order) - 1)], n)
        else:
            out[keys.order] = keys.order[np.maximum(places - size + 1, begins)]
        return out


class Lane:
    """The events of one component: `at` has their positions, ascending, or key by key where there is a key."""

    def __init__(self, lanes: Lanes, at: Index, key: tuple[str, ...]) -> None:
        self.lanes, self.key, self.at = lanes, key, at
        self.starts: Index | None = None
        if key:
            count = len(lanes.keyed(key).first) - 1
            order, self.starts = group.group_by_code(np.ascontiguousarray(lanes.codes(key)[at]), count)
            self.at = np.ascontiguousarray(at[order])
        self._tables: dict[Hashable, Small] = {}

    def before(self, b: Bound) -> Small:
        """For each position, the place in `at` of the first event that does not lie before its bound (in its key)."""

        def make() -> Small:
            out = small(len(self.lanes.stream))
            if self.starts is None:
                reuse.counted(self.lanes.bound(b), self.at, out)
            else:
                keys = self.lanes.keyed(self.key)
                reuse.counted_by_key(keys.order, keys.first, self.lanes.bound(b), self.at, self.starts, out)
            return out

        return self.table(b, make)

    def before_at(self, b: Bound, positions: Column) -> Small:
        """The same of some positions."""
        if self.starts is not None or b in self._tables or not self.is_few(positions):
            return self.before(b)[positions]
        return self.before_bounds(self.lanes.bound_at(b, positions))

    def before_bounds(self, bounds: Column) -> Small:
        """The place of the first event that does not lie before each of some bounds; of all keys together."""
        return np.searchsorted(self.at, bounds).astype(np.int32)

    def ends(self, low: Bound, low_at: Column, high: Bound, high_at: Column) -> tuple[Small, Column, Small, Column]:
        """The range of each match between two bounds: a table of where it begins, and where in it; then of its end."""
        if self.starts is not None or not self.is_few(low_at):
            return self.before(low), low_at, self.before(high), high_at
        own = np.arange(len(low_at))
        return self.before_at(low, low_at), own, self.before_at(high, high_at), own

    def is_few(self, positions: Column) -> bool:
        """Whether searching costs less than a table: of keys there always is one."""
        return FEW * len(positions) < len(self.lanes.stream)

    def table(self, key: Hashable, make: Callable[[], Small]) -> Small:
        """A table of this lane's events, once."""
        if key not in self._tables:
            self._tables[key] = make()
        return self._tables[key]

    def some(self, events: Small) -> Lane:
        """Only some of the events."""
        return Lane(self.lanes, np.sort(self.at[events]), self.key)

    def nearest(self, b: Bound, positions: Column, *, before: bool) -> tuple[Index, NDArray[np.bool_]]:
        """The last event before the bound of some positions, or the first that is not, in their keys; where one is."""
        place = self.before_at(b, positions).astype(np.int64) - before
        if self.starts is None:
            there = (place >= 0) & (place < len(self.at))
        else:
            codes = self.lanes.codes(self.key)[positions]
            low, high = self.starts[codes], self.starts[np.minimum(codes + 1, len(self.starts) - 1)]
            there = (codes >= 0) & (place >= low) & (place < high)
        if not len(self.at):
            return np.zeros(len(place), np.int64), np.zeros(len(place), bool)
        return self.at[np.clip(place, 0, len(self.at) - 1)], there
