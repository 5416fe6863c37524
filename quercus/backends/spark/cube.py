"""A cube over a DataFrame: one pass over the events for all its queries.

The events that any query can use are shared out once, by a key that all have, or by slices of time whose halo is the
longest window. Each worker runs the cube as the local backend does and hands on, query by query, the rows of its own
matches: those whose last event is its own. These are kept by Spark, so that asking for a second query reads them and
not the events. Queries whose window counts events of all types run by themselves.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
from attrs import asdict, evolve, frozen
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from quercus.backends.base import Limits
from quercus.backends.local.outputs import projected
from quercus.backends.spark import survey
from quercus.backends.spark.batch import job_of, plainly_named, run_batch, totals_of
from quercus.backends.spark.clock import clock, length
from quercus.backends.spark.counters import Counters, counters_for
from quercus.backends.spark.jobs import Travelling, fields_of, table_of
from quercus.backends.spark.keyed import Key, key_of
from quercus.backends.spark.packed import BODY, bodies, opened, packed
from quercus.backends.spark.planning import is_open
from quercus.backends.spark.pushdown import pruned_for, types_of
from quercus.backends.spark.schemas import arrow_schema, check_input, output_schema
from quercus.backends.spark.sharing import LARGE, MANY, WIDE, Options, Shared, halo_of, parallelism
from quercus.backends.spark.slices import FAR, Slices, borders_for
from quercus.backends.spark.stream_groups import counts_events
from quercus.backends.spark.task import PLACE, Made, Range, answer_of, by_place, inside, made, own_of, read
from quercus.errors import DataError, QueryError
from quercus.plan import Plan
from quercus.schema import Schema
from quercus.stats import Stats


@frozen(eq=False)
class CubeFrames(Mapping[str, DataFrame]):
    """The matches of each query as a DataFrame, by its name. What all are read from is kept until `unpersist()`."""

    frames: Mapping[str, DataFrame]
    said: tuple[str, ...]  # how events are shared out
    kept: DataFrame | None
    counters: Counters | None

    def __getitem__(self, name: str) -> DataFrame:
        return self.frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.frames)

    def __len__(self) -> int:
        return len(self.frames)

    def unpersist(self) -> None:
        """Let go of what Spark keeps for all queries together."""
        if self.kept is not None:
            self.kept.unpersist()

    def metrics(self) -> dict[str, float]:
        """What workers counted: one pass, however many queries were asked for."""
        if self.counters is None:
            raise DataError("over Spark Connect nothing is counted: Spark's accumulators are not there")
        return self.counters.told()


@frozen
class CubeJob(Travelling):
    """What a worker needs to know: the cube by its queries, and of each query a job."""

    queries: dict[str, str]  # those that are listed
    schema: dict[str, Any]
    share: str
    stats: str | None
    names: tuple[str, ...]  # of all queries of the pass, by number
    jobs: dict[str, str]


def run_cube(
    plans: Mapping[str, Plan],
    share: str,
    stats: Stats | None,
    df: DataFrame,
    limits: Limits,
    options: Options,
    cube: Callable[..., Any],
) -> CubeFrames:
    """The matches of all queries; nothing has run yet but a look at the events.

    `cube` makes one of queries, a schema, `share=` and `stats=`: workers call it.
    """
    if not isinstance(df, DataFrame):
        raise DataError(f"events are a {type(df).__name__}: the Spark backend takes a Spark DataFrame")
    if df.isStreaming:
        hint = "run its plans one by one: plan.run(df)"
        raise QueryError("E703", "the backend 'spark' cannot run a cube over a streaming DataFrame", hint=hint)
    for plan in plans.values():
        if plan.schema.ties == "arrival" and plan.schema.order is None:
            raise QueryError(
                "E703", 'a DataFrame has no order for ties="arrival"', hint="give Schema(order=) the column that has it"
            )
        check_input(plan, df)
    together = {n: plan for n, plan in plans.items() if not counts_events(plan)}
    frames = {n: run_batch(plan, df, limits, options) for n, plan in plans.items() if n not in together}
    said = tuple(f"{n} by itself: its window counts events of all types" for n in frames)
    if not together:
        return CubeFrames(frames, said, None, None)
    shared = _shared_out(together, df, options)
    counters = counters_for(df.sparkSession)
    columns = {n: output_schema(plan, df.schema) for n, plan in together.items()}
    jobs, parts = {}, {}
    for n, plan in together.items():
        own = evolve(shared, plan=plan)
        if plan.query.aggregates:
            jobs[n], parts[n] = totals_of(plan, df, own, limits, refined=is_open(plan), names=types_of(together))
        else:
            output = packed(arrow_schema(columns[n]))
            jobs[n] = job_of(plan, own, limits, output, refined=is_open(plan), names=types_of(together))
    schema = next(iter(together.values())).schema
    listed = {n: plan.text for n, plan in together.items() if not plan.query.aggregates}
    told = None if stats is None else stats.to_json()
    job = CubeJob(listed, schema.to_dict(), share, told, tuple(together), jobs)
    task = partial(run_cube_task, job.to_json(), json.dumps(asdict(limits)), cube, counters)
    kept = plainly_named(shared.events).mapInArrow(task, BODY).persist()
    for i, n in enumerate(together):
        rows = kept.where(f.col("query") == f.lit(i)).select("body")
        frames[n] = (
            rows.mapInArrow(partial(opened, packed(arrow_schema(columns[n]))), columns[n])
            if n not in parts
            else parts[n](rows)
        )
    return CubeFrames({n: frames[n] for n in plans}, (*shared.said, *said), kept, counters)


# Sharing out ----------------------------------------------------------------------------------------------------------


def _shared_out(plans: Mapping[str, Plan], df: DataFrame, options: Options) -> Shared:
    one = next(iter(plans.values()))
    events = pruned_for(tuple(plans.values()), df)
    key = _common_key(plans, df)
    if isinstance(key, Key):
        count = options.partitions or max(4 * parallelism(df), 8)
        said = f"by key: {key.said}, {count} partitions, for {len(plans)} queries"
        return Shared(one, events, events.repartition(count, *key.columns), (said,), {}, {})
    at = clock(one, df.schema)
    slices = _slices(plans, df, events, at, options)
    said = f"by time: {key}"
    if slices.count == 1:
        whole = events.repartition(1)
        return Shared(one, events, whole, (said, "one slice: all events go to one worker"), {}, {})
    shown = f"{slices.count} slices, each with the events of the longest window before it"
    shown += " and after it" if slices.ahead else ""
    placed = events.withColumn(PLACE, f.explode(slices.needing(at))).repartitionById(slices.count, f.col(PLACE))
    ranges: dict[str, Range] = {str(i): slices.range_of(i) for i in range(slices.count)}
    return Shared(one, events, placed, (said, shown), ranges, {})


def _common_key(plans: Mapping[str, Plan], df: DataFrame) -> Key | str:
    """The key that all queries have; or why there is none."""
    found = {n: key_of(plan, df.schema) for n, plan in plans.items()}
    first: Key | None = None
    for n, key in found.items():
        if isinstance(key, str):
            return f"{n} has {key}"
        if key.attribute is None or key.made:
            return f"the key of {n} is not one attribute"
        if first is not None and key.attribute != first.attribute:
            return f"queries have different keys: {first.attribute} and {key.attribute}"
        first = first or key
    assert first is not None
    return first


def _slices(plans: Mapping[str, Plan], df: DataFrame, events: DataFrame, at: str, options: Options) -> Slices:
    back = max(length(plan, df.schema) for plan in plans.values())
    ahead = back if any(halo_of(plan, df.schema).ahead for plan in plans.values()) else 0
    halo = Slices((), back=back, ahead=ahead)
    if back >= FAR:
        return halo
    if options.borders is not None:
        return evolve(halo, borders=tuple(sorted(set(options.borders))))
    times = survey.times(events, at)
    times.require_times(next(iter(plans.values())).schema.time)
    if not times.quantiles or max(map(abs, (times.quantiles[0], times.quantiles[-1]))) > FAR:
        return halo
    most = options.slices or max(3 * parallelism(df), times.events // LARGE)
    if options.slices is None:
        most = min(most, times.events // MANY, times.span // max(WIDE * (back + ahead), 1))
    return evolve(halo, borders=borders_for(times.quantiles, most))


# On a worker ----------------------------------------------------------------------------------------------------------


@frozen(eq=False)
class MadeCube:
    job: CubeJob
    cube: Any  # of the queries that are listed; None: all are totalled
    made: dict[str, Made]


@lru_cache(maxsize=4)
def made_cube(text: str, cube: Callable[..., Any]) -> MadeCube:
    """Read a job."""
    job = CubeJob(**fields_of(text))
    stats = None if job.stats is None else Stats.from_json(job.stats)
    schema = Schema.from_dict(job.schema)
    listed = cube(job.queries, schema, share=job.share, stats=stats) if job.queries else None
    return MadeCube(job, listed, {n: made(j) for n, j in job.jobs.items()})


def run_cube_task(
    text: str, limits: str, cube: Callable[..., Any], count: Counters | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The own matches of all queries over a partition's events."""
    m = made_cube(text, cube)
    first = next(iter(m.made.values()))
    table = table_of(batches, first.job.columns)
    if table is None:
        return
    for place, part in by_place(table):
        began = time.perf_counter()
        own = first.job.ranges.get(str(place))
        given = 0
        ready = read(first, part)
        found = m.cube.run(ready, limits=Limits(**json.loads(limits))) if m.cube is not None else {}
        for i, name in enumerate(m.job.names):
            made_of = m.made[name]
            if name in found:
                answer = found[name].answer
                rows = projected(answer if own is None else own_of(answer, own))
            else:
                rows = answer_of(made_of, part, own)
            given += rows.num_rows
            yield from bodies(i, rows.rename_columns(made_of.output.names).cast(made_of.output))
        if count is not None:
            time_column = part.column(first.plan.schema.time)
            halo = 0 if own is None else part.num_rows - int(inside(time_column, own).sum())
            count(events=part.num_rows, halo=halo, matches=given, seconds=time.perf_counter() - began)
