"""What is left out before events leave their files: columns, types and events that no leaf of the plan can use.

Spark sees nothing of what a worker does, so all of this is said to it as ordinary `select` and `where`. A condition is
pushed down where Spark decides it as the engine does, or lets more through: the engine tests everything again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as st

from quercus.backends.spark.schemas import columns_of, named
from quercus.backends.spark.stream_groups import counts_events
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.plan import Plan

MOST_CODES = 120  # names of types that are sent as small integers
CODE = "quercus_type"  # the column that has them


def column(name: str) -> Column:
    """A column by its exact name, whatever is in it."""
    return f.col(quoted(name))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def types_read(plan: Plan) -> list[str]:
    """The names of all types that a leaf takes, negated ones included."""
    leaves = [n for n in t.walk(plan.tree.root) if isinstance(n, t.Buffer)]
    return sorted({name for n in leaves for name in n.accepts})


def pruned(plan: Plan, df: DataFrame, *more: Column) -> DataFrame:
    """The rows and columns that a run needs, and `more`; types as numbers in `type_names`, if they are not too many."""
    names = types_read(plan)
    if not counts_events(plan):
        df = df.where(_useful(plan, df.schema, names))
    for key in plan.tree.partition_by:
        df = df.where(f"{quoted(named(plan, key))} IS NOT NULL")
    kept = [quoted(n) for n in columns_of(plan) if n != plan.schema.type]
    return df.select(*kept, _coded(plan, names), *more)


def pruned_for(plans: tuple[Plan, ...], df: DataFrame) -> DataFrame:
    """The rows and columns that a run of any of these plans needs; types as numbers in `types_of`."""
    names = sorted({name for plan in plans for name in types_read(plan)})
    given, one = df.schema, plans[0]
    df = df.where(reduce(Column.__or__, (_useful(plan, given, types_read(plan)) for plan in plans)))
    kept = dict.fromkeys(n for plan in plans for n in columns_of(plan) if n != plan.schema.type)
    return df.select(*map(quoted, kept), _coded(one, names))


def types_of(plans: Mapping[str, Plan]) -> list[str] | None:
    """What the numbers of types stand for, of several plans together; None: types are sent as they are."""
    names = sorted({name for plan in plans.values() for name in types_read(plan)})
    return names if len(names) <= MOST_CODES else None


def type_names(plan: Plan) -> list[str] | None:
    """What the numbers of types stand for; None: types are sent as they are."""
    names = types_read(plan)
    return names if len(names) <= MOST_CODES else None


def _coded(plan: Plan, names: list[str]) -> Column:
    own = column(plan.schema.type)
    if len(names) > MOST_CODES:
        return own
    text = own.cast("string")
    code = f.when(text == names[0], 0) if names else f.lit(None)
    for i, name in enumerate(names[1:], 1):
        code = code.when(text == name, i)
    return code.cast("tinyint").alias(CODE)


def _useful(plan: Plan, given: st.StructType, names: list[str]) -> Column:
    """Whether some leaf takes an event: by its type, and by what it must meet alone."""
    kind = column(plan.schema.type).cast("string")
    leaves = [n for n in t.walk(plan.tree.root) if isinstance(n, t.Buffer)]
    if not names:
        return f.lit(False)
    by_condition: dict[tuple[str, ...], list[list[Column]]] = {}
    for n in leaves:
        said = [c for p in n.where if not p.when and (c := condition(p.expr, plan, given)) is not None]
        by_condition.setdefault(tuple(sorted(n.accepts)), []).append(said)
    every = kind.isin(names)
    if not any(said for many in by_condition.values() for said in many):
        return every
    parts = []
    for accepted, many in by_condition.items():
        fits = kind.isin(list(accepted))
        if all(many):
            fits = fits & reduce(Column.__or__, (reduce(Column.__and__, said) for said in many))
        parts.append(fits)
    return every & reduce(Column.__or__, parts)


_EXACT = {
    "int64": (st.ByteType, st.ShortType, st.IntegerType, st.LongType),
    "float64": (st.DoubleType, st.LongType, st.IntegerType, st.ShortType, st.ByteType),
    "string": (st.StringType,),
    "bool": (st.BooleanType,),
}
MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1}
_YEAR_1, _YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000  # in microseconds
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def condition(e: x.Expr, plan: Plan, given: st.StructType) -> Column | None:
    """A condition on one event in Spark's words; None: Spark might see it otherwise."""
    match e:
        case x.Compare(op=op, left=x.Column() as c, right=x.Const() as k):
            return _compared(op, c, k, plan, given)
        case x.Compare(op=op, left=x.Const() as k, right=x.Column() as c):
            return _compared(_TURNED[op], c, k, plan, given)
        case x.InSet(value=x.Column() as c, negated=False):
            found = [_compared("=", c, k, plan, given) for k in e.items]
            return None if any(k is None for k in found) else reduce(Column.__or__, [k for k in found if k is not None])
        case x.IsNull(value=x.Column() as c):
            own = _own(c, plan, given)
            return None if own is None else own.isNotNull() if e.negated else own.isNull()
        case x.Logic():
            parts = [condition(i, plan, given) for i in e.items]
            there = [i for i in parts if i is not None]
            if e.op == "or":
                return reduce(Column.__or__, there) if len(there) == len(parts) else None
            return reduce(Column.__and__, there) if there else None
        case _:
            return None


def _compared(op: str, c: x.Column, k: x.Const, plan: Plan, given: st.StructType) -> Column | None:
    if k.type == "timestamp":
        return _in_time(op, c, k, plan, given)
    own = _own(c, plan, given)
    whole = isinstance(k.value, int) and not isinstance(k.value, bool) and not -(2**53) < k.value < 2**53
    if own is None or k.value is None or (whole and c.type == "float64") or (c.type == "int64" and k.type == "float64"):
        return None
    value = f.lit(k.value)
    found = {
        "=": own == value,
        "<>": own != value,
        "<": own < value,
        "<=": own <= value,
        ">": own > value,
        ">=": own >= value,
    }
    return found[op]


def _in_time(op: str, c: x.Column, k: x.Const, plan: Plan, given: st.StructType) -> Column | None:
    """A moment compared with another. Spark has microseconds, the engine its unit, rounded down: this lets more in."""
    name = named(plan, c.attr)
    if op == "<>" or not isinstance(k.value, int) or name not in given.names:
        return None
    unit = plan.schema.timestamp_unit
    first = k.value // 1000 if unit == "ns" else k.value * MICROSECONDS[unit]  # microsecond that is `k`, and ...
    last = first if unit == "ns" else first + MICROSECONDS[unit] - 1
    moments = [_moment(m, given[name].dataType) for m in (first, last)]
    if moments[0] is None or moments[1] is None:
        return None
    own = column(name)
    after, before = own >= moments[0], own <= moments[1]
    return before if op in ("<", "<=") else after if op in (">", ">=") else after & before


def _moment(micros: int, kind: st.DataType) -> Column | None:
    """A moment as a constant of Spark's; None: the column has none, or Spark knows no such year."""
    if not isinstance(kind, st.TimestampType | st.TimestampNTZType) or not _YEAR_1 <= micros < _YEAR_10000:
        return None
    if isinstance(kind, st.TimestampType):
        return f.timestamp_micros(f.lit(micros))
    return f.lit(str(datetime(1970, 1, 1) + timedelta(microseconds=micros))).cast("timestamp_ntz")


def _own(c: x.Column, plan: Plan, given: st.StructType) -> Column | None:
    """An attribute, where its column is of a type that compares alike here and there."""
    name = named(plan, c.attr)
    if name not in given.names:
        return None
    kind = given[name].dataType
    if isinstance(kind, st.StringType) and kind != st.StringType():  # another collation
        return None
    return column(name) if type(kind) in _EXACT.get(c.type, ()) else None
