"""Plans from what a survey has counted: statistics for the optimiser, remembered with the plan.

A survey counts the events that workers will get, after what no leaf can use is gone. So a rate is that of a type's
events that some leaf takes, and conditions that Spark has decided are known to hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as st

from quercus.backends.spark.pushdown import CODE, MICROSECONDS, condition, type_names
from quercus.backends.spark.stream_groups import counts_events
from quercus.backends.spark.survey import Times
from quercus.ir import text
from quercus.ir import tree as t
from quercus.plan import Plan
from quercus.stats import Stats

MOST_TYPES = 32  # that are counted


def types_counted(plan: Plan) -> tuple[Column, ...]:
    """What a survey is to count: whether an event has the first of the types that are read, the second, ..."""
    names = type_names(plan)
    wanted = names is not None and len(names) <= MOST_TYPES and is_open(plan)
    return tuple(f.col(CODE) == f.lit(i) for i in range(len(names or ()))) if wanted else ()


def is_open(plan: Plan) -> bool:
    """Whether the planner was left to guess."""
    return plan.options.stats is None and plan.options.shape == "auto"


def planned(plan: Plan, given: st.StructType, seen: Times, distinct: Mapping[str, int]) -> Plan:
    """The plan of the same query for these events. `distinct`: values of attributes that are known."""
    if not is_open(plan) or not seen.by_type or not seen.events:
        return plan
    span = max(float(seen.span), 1.0) / _unit(plan, given)
    rates = {n: k / span for n, k in zip(type_names(plan) or (), seen.by_type, strict=True)}
    known = {} if counts_events(plan) else dict.fromkeys(_decided(plan, given), 1.0)
    stats = Stats(rates, distinct, known, total=seen.events / span)
    return evolve(plan, options=evolve(plan.options, stats=stats)).with_query(plan.bound, plan.schema)


def _decided(plan: Plan, given: st.StructType) -> Iterator[str]:
    """Conditions that Spark decides, of leaves whose types no other leaf takes: whoever does not meet them is gone."""
    leaves = [n for n in t.walk(plan.tree.root) if isinstance(n, t.Buffer)]
    for n in leaves:
        if not any(set(n.accepts) & set(o.accepts) for o in leaves if o is not n):
            yield from (
                text.scalar(p.expr) for p in n.where if not p.when and condition(p.expr, plan, given) is not None
            )


def _unit(plan: Plan, given: st.StructType) -> float:
    """One unit of the time column as a survey counts time: integers as they are, moments in microseconds."""
    moments = isinstance(given[plan.schema.time].dataType, st.DateType | st.TimestampType | st.TimestampNTZType)
    return MICROSECONDS.get(plan.schema.time_unit, 1e-3) if moments else 1.0


def said(plan: Plan, seen: Times) -> str:
    """What a plan was made for, in words."""
    counted = sorted(zip(seen.by_type, type_names(plan) or (), strict=False), key=lambda c: (-c[0], c[1]))
    shown = ", ".join(f"{n:,} {name}" for n, name in counted[:6])
    return f"planned for {seen.events:,} events: {shown}{', ...' if len(counted) > 6 else ''}"
