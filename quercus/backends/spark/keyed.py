"""The key by which events are shared out, if a plan has one: events of different keys never meet."""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

from attrs import frozen
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as st

from quercus.backends.spark.key_values import key_value
from quercus.backends.spark.pushdown import column
from quercus.backends.spark.schemas import named
from quercus.backends.spark.stream_groups import counts_events
from quercus.errors import DataError
from quercus.ir import pattern as p
from quercus.ir import tree as t
from quercus.plan import Plan


@frozen(eq=False)
class Key:
    """What events are shared out by, and the same in words. `made`: a column of its own must be made for it first.

    `attribute`: the one that it is, if it is one. `nulls`: whether an event without a key can be part of a match.
    """

    columns: tuple[Column, ...]
    said: str
    made: bool = False
    attribute: str | None = None
    nulls: bool = False


def key_of(plan: Plan, given: st.StructType) -> Key | str:
    """The key of a plan: declared, or found by the planner; or why there is none to share events out by."""
    tree = plan.tree
    if tree.partition_by:
        names = [named(plan, n) for n in tree.partition_by]
        gone = plan.schema.type in names  # once types are numbers
        values = _values(names, plan, given)
        if isinstance(values, str):
            raise DataError(f"column {values}")
        return Key(tuple(values.values()), ", ".join(names) + " (declared)", gone, _only(tree.partition_by))
    if tree.key is None:
        return "no key: not all events of a match must agree on an attribute"
    if counts_events(plan):
        return "a window of events counts those of all keys"
    attrs = {c.var: named(plan, c.attr) for c in tree.key.columns}
    by_type: dict[str, set[str]] = {}
    for n in t.walk(tree.root):
        if isinstance(n, t.Buffer):
            for name in n.accepts:
                by_type.setdefault(name, set()).add(attrs.get(n.var, ""))
    if any(len(names) > 1 or "" in names for names in by_type.values()):
        return "events of one type have their key in several attributes"
    names = sorted({next(iter(k)) for k in by_type.values()})
    nulls = _least(plan.bound.pattern) < 2
    values = _values(names, plan, given)
    if isinstance(values, str):
        return f"its key {values}"
    if len(names) == 1:
        gone = names[0] == plan.schema.type
        attribute = _only({c.attr for c in tree.key.columns})
        return Key((values[names[0]],), f"{names[0]} (found)", gone, attribute, nulls)
    kind = column(plan.schema.type).cast("string")
    own = values[names[0]]
    for name in names[1:]:
        types = [k for k, of in by_type.items() if of == {name}]
        own = f.when(kind.isin(types), values[name]).otherwise(own)
    return Key((own,), " or ".join(names) + ", by type (found)", made=True, nulls=nulls)


def _least(e: p.Pattern) -> int:
    """How many variables a match has at least. Two must agree on the key; one that is alone agrees with nobody, and
    may have none."""
    match e:
        case p.Leaf():
            return 1
        case p.Kleene():
            return min(e.least, 1)
        case p.Not():
            return 0
        case p.Or():
            return min(_least(b.body) for b in e.branches)
        case p.Seq() | p.And():
            return sum(map(_least, e.parts))
        case _:
            assert_never(e)


def _only(names: Collection[str]) -> str | None:
    return next(iter(names)) if len(names) == 1 else None


def _values(names: list[str], plan: Plan, given: st.StructType) -> dict[str, Column] | str:
    """Keys as they are hashed; or why one cannot be."""
    found = {}
    for name in names:
        value = key_value(name, plan, given[name].dataType)
        if isinstance(value, str):
            return value
        found[name] = value
    return found
