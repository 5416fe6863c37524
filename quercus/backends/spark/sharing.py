"""How events are shared out among workers: by key, by slices of time, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as st

from quercus.backends.spark import survey
from quercus.backends.spark.anchor import anchored, looks_ahead
from quercus.backends.spark.clock import clock, length
from quercus.backends.spark.keyed import Key, key_of
from quercus.backends.spark.planning import planned, types_counted
from quercus.backends.spark.planning import said as planned_for
from quercus.backends.spark.pushdown import pruned
from quercus.backends.spark.slices import FAR, Slices, borders_for, by_quantiles, of_cells, slice_of
from quercus.backends.spark.stream_groups import counts_events
from quercus.backends.spark.task import PLACE, Range
from quercus.plan import Plan

MADE = "quercus_key"
HOT = 2.0  # times the events of an average partition, from which a key is split
MANY = 100_000  # events from which a key can be worth slices of its own
SOME = 50_000  # events that are worth a task of their own
LARGE = 4_000_000  # events that had better not be in one slice
WIDE = 4  # halos that a slice had better be long
CELLS = 256  # into which time is cut where events are counted


@frozen
class Options:
    """What can be asked for. None: as the data suggest."""

    partitions: int | None = None  # of keys
    slices: int | None = None  # of time
    borders: tuple[int, ...] | None = None  # of slices: integers as in the time column, moments in microseconds
    split_keys: bool | None = None  # whether keys with very many events are split into slices


@frozen(eq=False)
class Shared:
    """Events on their way, and what workers must know of it."""

    plan: Plan  # for what is known of them
    needed: DataFrame  # before they are shared out
    events: DataFrame
    said: tuple[str, ...]  # in words
    ranges: dict[str, Range]
    expected: dict[str, int]


def share_out(plan: Plan, df: DataFrame, options: Options) -> Shared:
    """Share the events out among workers, so that each match is reported by one of them."""
    key = key_of(plan, df.schema)
    if isinstance(key, Key):
        return _by_key(plan, df, key, options)
    return _by_time(plan, df, key, options)


def parallelism(df: DataFrame) -> int:
    """How many tasks run at once, about."""
    session = df.sparkSession
    try:
        return int(session.sparkContext.defaultParallelism)
    except Exception:  # a remote session has no context
        return int(session.conf.get("spark.default.parallelism", None) or 8)


# By key ---------------------------------------------------------------------------------------------------------------


def _by_key(plan: Plan, df: DataFrame, key: Key, options: Options) -> Shared:
    more = tuple(k.alias(f"{MADE}{i}") for i, k in enumerate(key.columns)) if key.made else ()
    columns = tuple(f.col(f"{MADE}{i}") for i in range(len(more))) or key.columns
    events = pruned(plan, df, *more)
    for k in columns if not key.nulls else ():
        events = events.where(k.isNotNull())
    most = options.partitions or max(4 * parallelism(df), 8)
    count, told = most, list[str]()
    at = clock(plan, df.schema)
    hot: list[tuple[tuple[Any, ...], Slices]] = []
    best = plan
    if options.split_keys is not False and not counts_events(plan):
        known = _remembered(
            plan, events, ("keys", most), lambda: survey.keys(events, columns, at, types_counted(plan), HOT / most)
        )
        best = _planned(
            plan, df, events, known.times, told, {} if key.attribute is None else {key.attribute: known.count}
        )
        hot = _hot_keys(plan, df.schema, events, columns, known, most, always=bool(options.split_keys))
        if not hot and options.partitions is None:
            count = partitions_for(known.times.events, parallelism(df))
    said = [f"by key: {key.said}, {count} partition{'s' if count > 1 else ''}", *told]
    if not hot:
        return Shared(best, events, _without(more, events.repartition(count, *columns)), tuple(said), {}, {})
    place: Column = f.array(f.pmod(f.hash(*columns), f.lit(count)))
    ranges: dict[str, Range] = {}
    base = count
    for values, slices in hot:
        same = [k == f.lit(v) for k, v in zip(columns, values, strict=True)]
        is_hot = same[0]
        for one in same[1:]:
            is_hot = is_hot & one
        place = f.when(is_hot, slices.needing(at, base)).otherwise(place)
        ranges |= {str(base + i): slices.range_of(i) for i in range(slices.count)}
        said.append(f"key {', '.join(map(str, values))} has very many events: {slices.count} slices of time of its own")
        base += slices.count
    placed = events.withColumn(PLACE, f.explode(place)).repartitionById(base, f.col(PLACE))
    return Shared(best, events, _without(more, placed), tuple(said), ranges, {})


def _without(more: tuple[Column, ...], events: DataFrame) -> DataFrame:
    """Workers need no columns that were made for the way."""
    return events.drop(*(f"{MADE}{i}" for i in range(len(more)))) if more else events


def partitions_for(events: int, cores: int) -> int:
    """How many partitions keys are shared out to: four for each core, fewer where each would have few events.

    >>> [partitions_for(n, 2) for n in (1000, 150_000, 250_000, 10**7)], partitions_for(1000, 64)
    ([2, 3, 5, 8], 8)
    """
    return min(max(4 * cores, 8), max(min(cores, 8), events // SOME))


def _hot_keys(
    plan: Plan,
    given: st.StructType,
    events: DataFrame,
    key: tuple[Column, ...],
    known: survey.Keys,
    count: int,
    *,
    always: bool,
) -> list[tuple[tuple[Any, ...], Slices]]:
    """Keys with so many events that one worker would be busy long after all others, and how each is cut."""
    average = known.times.events / count
    chosen = [v for v, n in known.most if n > HOT * average and (always or n > MANY) and all(k == k for k in v)]
    if not chosen or plan.tree.window.size >= FAR:
        return []
    at = clock(plan, given)
    halo = halo_of(plan, given)
    found = []
    for values in chosen:
        same = events
        for k, v in zip(key, values, strict=True):
            same = same.where(k == f.lit(v))
        times = _remembered(plan, events, ("hot", values), lambda same=same: survey.times(same, at))
        most = int(times.events / max(average, 1.0)) + 1
        borders = _borders(times, halo, most, asked=always)
        if borders:
            found.append((values, evolve(halo, borders=borders)))
    return found


# By time --------------------------------------------------------------------------------------------------------------


def _by_time(plan: Plan, df: DataFrame, why: str, options: Options) -> Shared:
    at = clock(plan, df.schema)
    events = pruned(plan, df)
    said = [f"by time: {why}"]
    times, best = None, plan
    if options.borders is None:
        times = _remembered(plan, events, ("times",), lambda: survey.times(events, at, types_counted(plan)))
        best = _planned(plan, df, events, times, said, {})
    if plan.tree.window.kind == "count":
        slices = _counted_slices(plan, df, events, at, times, options)
    else:
        slices = _timed_slices(plan, df, times, options)
    if slices is None or slices.count == 1:
        said.append("one slice: all events go to one worker")
        return Shared(best, events, events.repartition(1), tuple(said), {}, {})
    shown = f"{slices.count} slices"
    if slices.cells is not None:
        shown += f", each with {plan.tree.window.size:,} events or more around it"
    else:
        shown += f", each with the events of a window before it{' and after it' if slices.ahead else ''}"
    said.append(shown)
    placed = events.withColumn(PLACE, f.explode(slices.needing(at))).repartitionById(slices.count, f.col(PLACE))
    ranges = {str(i): slices.range_of(i) for i in range(slices.count)}
    cells = slices.cells
    expected = {} if cells is None else {str(i): cells.events_of(i) for i in range(slices.count)}
    return Shared(best, events, placed, tuple(said), ranges, expected)


def _timed_slices(plan: Plan, df: DataFrame, times: survey.Times | None, options: Options) -> Slices | None:
    halo = halo_of(plan, df.schema)
    if max(halo.back, halo.ahead) >= FAR:
        return None
    if times is None:
        return evolve(halo, borders=tuple(sorted(set(options.borders or ()))))
    most = options.slices or max(3 * parallelism(df), times.events // LARGE)
    return evolve(halo, borders=_borders(times, halo, most, asked=options.slices is not None))


def _counted_slices(
    plan: Plan, df: DataFrame, events: DataFrame, at: str, times: survey.Times | None, options: Options
) -> Slices | None:
    if times is not None:
        if not times.quantiles or max(map(abs, (times.quantiles[0], times.quantiles[-1]))) > FAR:
            return None
        most = options.slices or max(3 * parallelism(df), times.events // LARGE)
        if options.slices is None:
            most = min(most, max(times.events // SOME, 1), max(times.events // (2 * WIDE * plan.tree.window.size), 1))
        cells = by_quantiles(times.quantiles, min(CELLS, len(times.quantiles)))
    else:
        cells = tuple(sorted(set(options.borders or ())))
        most = options.slices or len(cells) + 1
    if most < 2 or not cells:
        return None
    sizes = survey.sizes(events, f.expr(slice_of(at, cells)), len(cells) + 1)  # exact, and so of these very events
    return of_cells(cells, sizes, most, plan.tree.window.size)


def halo_of(plan: Plan, given: st.StructType) -> Slices:
    size = length(plan, given)
    ahead = anchored(plan) is None or looks_ahead(plan.bound.pattern)
    return Slices((), back=size, ahead=size if ahead else 0)


def _borders(times: survey.Times, halo: Slices, most: int, *, asked: bool = False) -> tuple[int, ...]:
    """As many slices as are asked for, or as are worth it: long beside their halo, and with many events each."""
    if not times.quantiles or max(map(abs, (times.quantiles[0], times.quantiles[-1]))) > FAR:
        return ()
    if not asked:
        most = min(most, times.events // SOME, times.span // max(WIDE * (halo.back + halo.ahead), 1))
    return borders_for(times.quantiles, most)


def _planned(
    plan: Plan, df: DataFrame, events: DataFrame, seen: survey.Times, said: list[str], distinct: Mapping[str, int]
) -> Plan:
    """The plan for these events, once it is clear that there is no bad one among them."""
    seen.require_times(plan.schema.time)
    best: Plan = _remembered(plan, events, ("plan", len(distinct)), lambda: planned(plan, df.schema, seen, distinct))
    if best is not plan:
        said.append(planned_for(best, seen))
    return best


def _remembered(plan: Plan, events: DataFrame, what: Sequence[Any], find: Any) -> Any:
    """What was found of these events, asked for once: it decides how events are shared out, and no answer."""
    kept = plan.made.setdefault("spark", {})
    key = (events.semanticHash(), *what)
    if key not in kept:
        kept[key] = find()
    return kept[key]
