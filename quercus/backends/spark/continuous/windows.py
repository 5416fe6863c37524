"""Pattern windows on Spark: tuples are shared out by the key that conditions have, and each worker runs the kernel."""

from __future__ import annotations

import json
from functools import partial

from attrs import asdict, frozen
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as st

from quercus.backends.base import Limits
from quercus.backends.local.windows.plan import plan_of
from quercus.backends.spark.continuous.positions import with_positions
from quercus.backends.spark.continuous.streams import SPARK_TYPES, Stream
from quercus.backends.spark.continuous.task import Job, Rows, run_windows
from quercus.backends.spark.packed import packed
from quercus.backends.spark.schemas import arrow_schema
from quercus.ir import expr as x
from quercus.ir import window as w

FLOATS = (st.FloatType, st.DoubleType)


@frozen(eq=False)
class Place:
    """Which window of a query: of WITH, or the last one; which SELECT of it, and which source of that."""

    query: int
    select: int
    source: int


@frozen(eq=False)
class Shared:
    """The tuples of a stream on their way to workers."""

    stream: Stream
    df: DataFrame
    keys: tuple[str, ...]
    numbered: bool  # tuples have their positions in the whole stream


def key_of(window: w.PatternWindow, stream: Stream) -> tuple[str, ...] | str:
    """The attributes by which a window's tuples can be shared out; or why all must go to one worker."""
    p = plan_of(window)
    if not p.keys:
        return "no condition says K = FIRST(K) such that tuples of other keys leave a window alone"
    if any(not isinstance(k.here, x.Column) or k.here.attr == "ts" or k.here != k.first for k in p.keys):
        return "its key is no attribute that is the same of a tuple and of the first one"
    if not all(s.neutral for s in p.foreign):
        return "a tuple of another key can close, drop or enlarge a window"
    if any(n.var == w.WINDOW and n.attr == "iter" for c in w.conditions(window) for n in columns_of(c)):
        return "a condition asks for ITER(), which counts the tuples of all keys"
    if p.bound != x.TRUE:
        return "the iteration condition bounds time or counts, at tuples of all keys"
    names = tuple(dict.fromkeys(k.here.attr for k in p.keys if isinstance(k.here, x.Column)))
    if not all(s.neutral for s in p.missing) and _is_missing(stream, names):
        return f"{', '.join(names)} is null in some tuples, and a tuple without a key matters to windows of all keys"
    return names


def columns_of(e: x.Expr) -> list[x.Column]:
    return [n for n in x.walk(e) if isinstance(n, x.Column)]


def _is_missing(stream: Stream, names: tuple[str, ...]) -> bool:
    """Whether some tuple lacks a key: looked at before the job, unless Spark knows."""
    missing = f.lit(False)
    for n in names:
        own = stream.column(n)
        if stream.kind(n) == "float64":
            missing = missing | own.isNull() | f.isnan(own)
        elif stream.df.select(own).schema[0].nullable:
            missing = missing | own.isNull()
    return bool(stream.df.where(missing).limit(1).count())


def share_out(
    stream: Stream, window: w.PatternWindow, counted: frozenset[str], partitions: int, said: list[str]
) -> Shared:
    """`counted`: the counts that are read of closed windows."""
    key = key_of(window, stream)
    if isinstance(key, str):
        said.append(f"{stream.name}[Pattern By]: ALL TUPLES GO TO ONE WORKER: {key}")
        return Shared(stream, stream.df.repartition(1), (), False)
    numbered = "iter" in counted
    df = stream.df
    told = ""
    if numbered:
        df = with_positions(stream.untied((), "ITER()"))
        told = "; positions for ITER() are counted before"
    hashed = [_hashed(stream, n) for n in key]
    said.append(f"{stream.name}[Pattern By]: by key: {', '.join(key)}, {partitions} partitions{told}")
    return Shared(stream, df.repartition(partitions, *hashed), key, numbered)


def _hashed(stream: Stream, name: str) -> Column:
    """A key as it is hashed: 0.0 and -0.0 are one value, and so is every NaN."""
    own = stream.column(name)
    if stream.kind(name) == "float64":
        return f.when(f.isnan(own), f.lit(float("nan"))).otherwise(own + f.lit(0.0))
    return own


def closed(
    shared: Shared,
    place: Place,
    select: w.Select,
    rows: Rows,
    counted: frozenset[str],
    text: str,
    schemas: str,
    limits: Limits,
) -> DataFrame:
    """The windows that close. `rows`: one for each window, each with its aggregates, or one for each tuple in it."""
    stream, source = shared.stream, select.sources[place.source]
    ties = [stream.df.schema["q"]] if stream.tied else []
    ends = [st.StructField(f"{end}t", st.LongType()) for end in "cf"]
    ends += [st.StructField(f"{end}q", q.dataType) for end in "cf" for q in ties]
    keys = [st.StructField(f"k{i}", stream.df.schema[_name(stream, k)].dataType) for i, k in enumerate(shared.keys)]
    counts = [st.StructField(name, st.LongType()) for name in sorted(counted)]
    own: list[st.StructField] = []
    if rows == "tuples":
        own += [st.StructField("nt", st.LongType()), *(st.StructField("nq", q.dataType) for q in ties)]
        own += [_field(f"c{i}", c.type) for i, c in enumerate(source.reads)]
    elif rows == "ends":
        own += [_field(f"a{i}", a.value.type) for i, a in enumerate(select.aggregates) if a.value is not None]
    given = st.StructType([*ends, *keys, *counts, *own])
    job = Job(
        text,
        schemas,
        (place.query, place.select, place.source),
        json.dumps(stream.schema.to_dict()),
        stream.names,
        tuple(shared.df.columns),
        shared.keys,
        stream.untold("a pattern window"),
        rows,
        tuple(sorted(counted)),
        json.dumps(asdict(limits)),
        packed(arrow_schema(given)),
    )
    found = shared.df.mapInArrow(partial(run_windows, job.to_json()), given)
    parts = "tq" if ties else "t"
    order = [*(f"{end}{part}" for end in "cf" for part in parts), *(k.name for k in keys)]
    number = f.struct(*order).alias("w0" if rows == "ends" else "w")  # as they closed; of one tuple, as they opened
    time = [f.col("ct").alias("f"), (f.col("ct") + 1).alias("u")]
    values = [f.col(c.name) for c in own if c.name[0] != "n"]
    match rows:
        case "windows":
            return found.select(number, time[0], *(f.col(c.name) for c in counts))
        case "ends":
            return found.select(number, f.struct(*order).alias("o"), *time, *values)
        case _:
            place_ = f.struct(*order, *(c.name for c in own if c.name[0] == "n")).alias("n")
            return found.select(number, place_, *time, *values)


def _field(name: str, kind: x.Type) -> st.StructField:
    return st.StructField(name, st.DataType.fromDDL(SPARK_TYPES[kind]))


def _name(stream: Stream, attr: str) -> str:
    return "t" if attr == "ts" else f"e{stream.names.index(attr)}"
