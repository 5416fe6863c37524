"""How a stream is shared out: groups of keys, each with a state of its own, or one group for all."""

from __future__ import annotations

import warnings

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from quercus.errors import DataError
from quercus.ir import tree as t
from quercus.ir.pattern import can_be_absent
from quercus.plan import Plan

GROUPS = 8  # where nothing else is asked for
MOST_GROUPS = 4096
_EVEN = 5040  # groups are spread evenly over every number of partitions that divides this
_SEARCHED = 2**16


@frozen
class Grouping:
    """The columns whose hash tells the group of an event, the number of groups, and the same in words."""

    columns: tuple[str, ...]
    count: int
    said: str = field(eq=False)


def counts_events(plan: Plan) -> bool:
    """Whether some window counts events, so that every event has a position that matters."""
    own = [n.window for n in t.walk(plan.tree.root) if isinstance(n, t.Join | t.Stack | t.Union)]
    return any(w is not None and w.kind == "count" for w in (plan.tree.window, *own))


def grouping(plan: Plan, groups: int | None) -> Grouping:
    """The grouping of a plan's events; with one group where keys do not keep matches apart, which is said loudly."""
    if groups is not None and (type(groups) is not int or not 1 <= groups <= MOST_GROUPS):
        raise DataError(f"groups={groups!r}: give a whole number from 1 to {MOST_GROUPS}")
    if groups == 1:
        return Grouping((), 1, "one group, as asked for: one core runs it")
    columns, why = _key(plan)
    if not columns:
        asked = "" if groups is None else f" instead of {groups}"
        warnings.warn(
            f"this stream runs as one group{asked}, on one core of the whole cluster: {why}. "
            "groups=1 says that this is meant",
            UserWarning,
            stacklevel=2,
        )
        return Grouping((), 1, f"ONE GROUP, ON ONE CORE: {why}")
    count = groups or GROUPS
    return Grouping(columns, count, f"by key: {', '.join(columns)}, {count} groups with a state each")


def _key(plan: Plan) -> tuple[tuple[str, ...], str]:
    """The columns that keep matches apart; if there are none, why, and what would help."""
    tree = plan.tree
    if tree.partition_by:
        columns = tree.partition_by
    elif tree.key is None:
        return (), "nothing says that all events of a match agree on an attribute: give one with [attr] or PARTITION BY"
    else:
        columns = tuple(sorted({c.attr for c in tree.key.columns}))
        if len(columns) > 1:
            told = ", ".join(f"{c.var}.{c.attr}" for c in tree.key.columns)
            return (), f"its key has different columns ({told}): rename them to one, and use PARTITION BY or [attr]"
        if counts_events(plan):
            return (), (
                f"a window counts the events of all keys together: PARTITION BY {columns[0]} counts those of each key"
            )
    if plan.query.aggregates:
        absent = can_be_absent(plan.query.pattern)
        by = {c.attr for c in plan.query.group_by if c.var not in absent}
        if not by.issuperset(columns):
            told = ", ".join(columns)
            return (), f"its totals are of several keys: GROUPBY {told} of a variable that is always there parts them"
    return columns, ""


def labels(count: int) -> list[int]:
    """What groups are called, so that Spark spreads them evenly.

    Spark gives a group to the partition `hash % partitions`; for few groups that leaves some partitions idle. So group
    i is called by the least number whose hash is i modulo 5040. That depends on nothing else, and so never changes.
    """
    found: dict[int, int] = {}
    first = 0
    while len(found) < min(count, _EVEN):
        numbers = np.arange(first, first + _SEARCHED, dtype=np.int32)
        for place, number in zip((spark_hash(numbers) % _EVEN).tolist(), numbers.tolist(), strict=True):
            if place < count:
                found.setdefault(place, number)
        first += _SEARCHED
    return [found[i] for i in range(count)]


def spark_hash(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """What Spark's hash() gives for integers: Murmur3 of 32 bits with seed 42."""

    def turned(v: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
        return (v << np.uint32(by)) | (v >> np.uint32(32 - by))

    k = numbers.astype(np.uint32) * np.uint32(0xCC9E2D51)
    k = turned(k, 15) * np.uint32(0x1B873593)
    h = turned(np.uint32(42) ^ k, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    h ^= np.uint32(4)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (h ^ (h >> np.uint32(16))).astype(np.int32)
