"""Plans on Spark: beside a job that does nothing, beside what one would write by hand, on one core and two, as streams.

Run it with `make bench-spark` or `python -m benchmarks.spark [--quick]`. Java 17 and the extra `spark` are needed. Each
part has a process, and so a JVM, of its own. Seconds on the wall and, since other programs may be running, CPU seconds
of the JVM and its Python workers; the best of some rounds in which all take turns. Every answer is checked: the number
of matches and the sum of their times.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import quercus as qc
from benchmarks import record
from benchmarks.spark_data import write
from benchmarks.spark_jobs import (
    SCHEMA,
    W1,
    W2,
    Answer,
    Clock,
    applied,
    emptied,
    joined,
    joined_by_time,
    joined_plainly,
    summed,
)
from quercus.backends.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS, KEYS = 10_000_000, 10_000
TASKS = 2  # of a stream's batch: as many as there are cores, as docs/spark-streaming.md says
EMPTY, BY_HAND, CORES, JOINS, STREAM = 1.3, 3.0, 1.6, 10.0, 150_000  # what is asked for


def keyed(spark: SparkSession, folder: Path, events: int, rounds: int) -> dict[str, Any]:
    """W2-like on many keys: the engine, the same job with an empty kernel, and applyInPandas over the same engine."""
    df = spark.read.parquet(write(folder, events, KEYS))
    query = W2.format(window=200_000)
    clock = Clock()
    answers: dict[str, Answer] = {}
    summed(emptied(qc.compile(query, SCHEMA), df))  # what starts and is compiled with any first job
    plan = qc.compile(query, SCHEMA)
    clock.time("first", lambda: answers.update(first=summed(plan.run(df))))  # a look at the keys included
    for _ in range(rounds):
        clock.time("engine", lambda: answers.update(engine=summed(plan.run(df))))
        clock.time("empty", lambda: answers.update(empty=summed(emptied(plan, df))))
    clock.time("applyInPandas", lambda: answers.update(applied=summed(applied(plan, df))))
    assert answers["first"] == answers["engine"] == answers["applied"], answers
    assert answers["empty"].count == 0
    return {"times": clock.told(), "matches": answers["engine"].count}


def unkeyed(spark: SparkSession, folder: Path, events: int, rounds: int) -> dict[str, Any]:
    """W1, which has no key, with the cores that the session has."""
    from quercus.backends.spark import metrics

    df = spark.read.parquet(write(folder, events, KEYS))
    plan = qc.compile(W1, SCHEMA)
    clock = Clock()
    found: dict[str, Any] = {}

    def run() -> None:
        result = plan.run(df)
        found["answer"] = summed(result)
        found["metrics"] = metrics(result)

    for _ in range(rounds + 1):  # the first is no good: it looks at the times, and nothing is compiled yet
        clock.time("engine", run)
    return {"times": clock.told(), "answer": list(found["answer"]), "metrics": found["metrics"]}


def joins(spark: SparkSession, folder: Path, events: int, rounds: int) -> dict[str, Any]:
    """Both queries beside joins of the table with itself."""
    df = spark.read.parquet(write(folder, events, 100))
    clock = Clock()
    answers: dict[str, Answer] = {}
    for name, query, by_join in (
        ("W2", W2.format(window=2_000), lambda: joined(df, 2_000)),
        ("W1", W1, lambda: joined_by_time(df, 100)),
    ):
        plan = qc.compile(query, SCHEMA)
        summed(plan.run(df))
        for _ in range(3 * rounds):  # short jobs: the JVM compiles for some time, on both sides
            clock.time(name, lambda: answers.update({name: summed(plan.run(df))}))  # noqa: B023  runs at once
            clock.time(f"{name} joins", lambda: answers.update({f"{name} joins": summed(by_join())}))  # noqa: B023
        assert answers[name] == answers[f"{name} joins"], answers
    clock.time("W1 plain joins", lambda: answers.update(plain=summed(joined_plainly(df, 100))))
    assert answers["W1"] == answers["plain"], answers
    return {"times": clock.told(), "matches": {name: a.count for name, a in answers.items()}}


def streamed(spark: SparkSession, folder: Path, events: int, groups: int, files: int) -> dict[str, Any]:
    """W2-like on a stream of files, in so many groups of keys: rows a second in the first half, without the first two
    batches, and in the second half, where the JVM has compiled what it runs; and the state.
    """
    from quercus.backends.spark import run

    source = write(folder, events, KEYS, moments=True, files=files)
    schema = qc.Schema({"id": "int64"})
    plan = qc.compile(W2.format(window=200_000), schema)
    df = spark.readStream.schema(spark.read.parquet(source).schema).option("maxFilesPerTrigger", 1).parquet(source)
    answer = run(plan, df.withWatermark("ts", "10 seconds"), groups=groups)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        begin = time.perf_counter()
        query = (
            answer.writeStream.format("parquet")
            .option("path", f"{place}/out")
            .option("checkpointLocation", f"{place}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        wall = time.perf_counter() - begin
        matches = spark.read.parquet(f"{place}/out").count()
    batches = [p for p in query.recentProgress if p.numInputRows]
    half = len(batches) // 2

    def rate(some: list[Any]) -> float:
        return sum(p.numInputRows for p in some) / (sum(p.batchDuration for p in some) / 1e3)

    return {
        "groups": groups,
        "matches": matches,
        "batches": len(batches),
        "rows": sum(p.numInputRows for p in batches) / len(batches),
        "early": rate(batches[min(2, half - 1) : half]),
        "rate": rate(batches[half:]),
        "wall": wall,
        "state": max(p.stateOperators[0].memoryUsedBytes for p in batches),
        "late": sum(p.stateOperators[0].numRowsDroppedByWatermark for p in batches),
    }


# ---- processes


def part(name: str, folder: Path, master: str, *arguments: str) -> dict[str, Any]:
    """A part in a process of its own; what it measured."""
    command = [sys.executable, "-m", "benchmarks.spark", "--part", name, "--folder", str(folder), "--master", master]
    done = subprocess.run([*command, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def by_turns(folder: Path, turns: int, many: list[str]) -> tuple[dict[str, dict[str, Any]], float]:
    """The un-keyed query with one core and with two, in sessions by turns, of which the best times count; and how much
    faster than one two processes are here that share nothing: no job can gain more.
    """
    ways = {
        "one core (one processor for all processes)": ["local[1]", *many, "--processor", "0"],
        "one task at a time (local[1])": ["local[1]", *many],
        "two cores": ["local[2]", *many],
    }
    found: dict[str, dict[str, Any]] = {}
    one, two = inf, inf
    for _ in range(turns):
        one, two = min(one, at_once(1)), min(two, at_once(2))
        for name, arguments in ways.items():
            now = part("unkeyed", folder, *arguments)
            times, best = now["times"]["engine"], found.setdefault(name, now)["times"]["engine"]
            assert now["answer"] == found[name]["answer"], (now, found)
            best |= {unit: min(seconds, times[unit]) for unit, seconds in best.items()}
    return found, 2 * one / two


def at_once(processes: int) -> float:
    """Seconds until so many processes, each with a loop of its own, are done."""
    loop = "import time; t = time.perf_counter(); sum(i * i for i in range(10**7)); print(time.perf_counter() - t)"
    running = [subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE) for _ in range(processes)]
    return max(float(one.communicate()[0]) for one in running)


def run_part(given: argparse.Namespace) -> None:
    if given.processor is not None:
        os.sched_setaffinity(0, {given.processor})  # of the JVM and its workers too
    tasks = TASKS if given.part == "streamed" else 8
    spark = session(
        given.master, app=given.part, config={"spark.sql.shuffle.partitions": tasks, "spark.driver.memory": "3g"}
    )
    try:
        if given.part == "streamed":
            found = streamed(spark, given.folder, given.events, given.groups, given.files)
        else:
            found = PARTS[given.part](spark, given.folder, given.events, given.rounds)
    finally:
        spark.stop()
    print(json.dumps(found))


PARTS: dict[str, Callable[..., dict[str, Any]]] = {"keyed": keyed, "unkeyed": unkeyed, "joins": joins}


# ---- what is printed


def verdict(ratio: float, asked: float, *, most: bool = False) -> str:
    met = ratio <= asked if most else ratio >= asked
    return f"{ratio:6.2f}x  (asked: {'at most' if most else 'at least'} {asked}x) {'met' if met else 'MISSED'}"


def line(name: str, times: dict[str, float], events: int) -> str:
    return f"{name:44}{times['wall']:8.2f} {times['cpu']:8.2f} {events / times['wall'] / 1e6:9.2f}"


HEAD = f"{'':44}{'wall s':>8} {'CPU s':>8} {'M rows/s':>9}"


def show_keyed(found: dict[str, Any], events: int) -> Iterator[str]:
    t = found["times"]
    yield f"\nKeyed: W2-like, {events:,} events, {KEYS:,} keys, {found['matches']:,} matches, 2 cores"
    yield HEAD
    for name, said in (
        ("empty", "the same job, empty kernel"),
        ("engine", "plan.run(df)"),
        ("first", "plan.run(df), first time: looks at the keys"),
        ("applyInPandas", "applyInPandas by key, types filtered"),
    ):
        yield line(said, t[name], events)
    for unit in ("wall", "cpu"):
        yield f"over the empty kernel, {unit:4} {verdict(t['engine'][unit] / t['empty'][unit], EMPTY, most=True)}"
        yield f"over applyInPandas,    {unit:4} {verdict(t['applyInPandas'][unit] / t['engine'][unit], BY_HAND)}"


def show_unkeyed(found: dict[str, dict[str, Any]], machine: float, events: int) -> Iterator[str]:
    two = found["two cores"]
    yield f"\nUn-keyed: W1, {events:,} events, {two['answer'][0]:,} matches"
    yield HEAD
    for name, f in found.items():
        yield line(name, f["times"]["engine"], events)
    yield f"two busy processes that share nothing over one: {machine:.2f}x"
    assert len({tuple(f["answer"]) for f in found.values()}) == 1, found
    wall = two["times"]["engine"]["wall"]
    for name, f in found.items():
        if f is not two:
            yield f"two cores over {name:31} {verdict(f['times']['engine']['wall'] / wall, CORES)}"
    m = two["metrics"]
    yield (
        f"halo: {int(m['halo']):,} of {int(m['events']):,} events in {int(m['tasks'])} tasks were sent twice"
        f" ({m['halo'] / max(m['events'] - m['halo'], 1):.3%}); {m['seconds']:.1f} s in the engine, of all tasks"
    )


def show_joins(found: dict[str, Any], events: int) -> Iterator[str]:
    t = found["times"]
    yield f"\nBeside joins in Spark SQL: {events:,} events, 100 keys, 2 cores"
    yield HEAD
    for name, said in (("W2", "joins on id"), ("W1", "joins on buckets of time, by hand")):
        yield line(f"{name}, plan.run(df), {found['matches'][name]:,} matches", t[name], events)
        yield line(f"{name}, {said}", t[f"{name} joins"], events)
        yield f"{name}: {verdict(t[f'{name} joins']['wall'] / t[name]['wall'], JOINS)}"
    yield line("W1, joins on times alone", t["W1 plain joins"], events)
    yield f"W1: {verdict(t['W1 plain joins']['wall'] / t['W1']['wall'], JOINS)}"


def show_streams(found: list[dict[str, Any]], events: int) -> Iterator[str]:
    yield f"\nStream: W2-like, {events:,} events in files, {KEYS:,} keys, 2 cores, {TASKS} tasks a batch"
    yield "groups  rows/batch  rows/s at first    rows/s  state bytes   matches  late  whole s"
    for f in found:
        yield (
            f"{f['groups']:6} {f['rows']:11,.0f} {f['early']:16,.0f} {f['rate']:9,.0f} {f['state']:12,}"
            f" {f['matches']:9,} {f['late']:5} {f['wall']:8.1f}  {'met' if f['rate'] >= STREAM else 'MISSED'}"
        )
    yield (
        f"Rows a second in the first half, without two batches, and in the second half (asked: {STREAM:,}); "
        "state as RocksDB counts it."
    )


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    record.options(options)
    options.add_argument("--only", choices=["keyed", "unkeyed", "joins", "streams"], help="one table")
    options.add_argument("--folder", type=Path, help="for the events; kept (default: a temporary one)")
    for hidden in ("--part", "--master"):
        options.add_argument(hidden, help=argparse.SUPPRESS)
    for hidden in ("--events", "--groups", "--files", "--processor"):
        options.add_argument(hidden, type=int, help=argparse.SUPPRESS)
    options.add_argument("--rounds", type=int, help="turns of everything (default 3, quick 1)")
    given = options.parse_args()
    if given.part:
        run_part(given)
        return
    with tempfile.TemporaryDirectory(prefix="quercus-bench-") as temporary:
        everything(given, given.folder or Path(temporary))


def everything(given: argparse.Namespace, folder: Path) -> None:
    share = 10 if given.quick else 1
    rounds = str(given.rounds or (1 if given.quick else 3))
    events = EVENTS // share
    wanted = [given.only] if given.only else ["keyed", "unkeyed", "joins", "streams"]
    versions = f"Python {sys.version.split()[0]}, pyarrow {pa.__version__}"
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {versions}; best of {rounds} rounds", flush=True)

    def keep(name: str, figures: Any, ratios: dict[str, record.Ratio]) -> None:
        record.keep(given, f"spark-{name}", figures, ratios)

    if "keyed" in wanted:
        found = part("keyed", folder, "local[2]", "--events", str(events), "--rounds", rounds)
        print("\n".join(show_keyed(found, events)), flush=True)
        wall = {name: t["wall"] for name, t in found["times"].items()}
        own = wall["engine"]
        ratios = {"over the empty kernel": record.Ratio(own / wall["empty"], EMPTY, less=True)}
        keep("keyed", found, {**ratios, "applyInPandas over it": record.Ratio(wall["applyInPandas"] / own, BY_HAND)})
    if "unkeyed" in wanted:
        both, machine = by_turns(folder, int(rounds), ["--events", str(events), "--rounds", rounds])
        print("\n".join(show_unkeyed(both, machine, events)), flush=True)
        wall = {name: f["times"]["engine"]["wall"] for name, f in both.items()}
        two = wall.pop("two cores")
        gain = {f"two cores over {name}": record.Ratio(t / two, CORES) for name, t in wall.items()}
        keep(
            "unkeyed",
            {"ways": both, "machine": machine},
            {**gain, "two busy processes over one": record.Ratio(machine)},
        )
    if "joins" in wanted:
        found = part("joins", folder, "local[2]", "--events", str(events // 10), "--rounds", rounds)
        print("\n".join(show_joins(found, events // 10)), flush=True)
        wall = {name: t["wall"] for name, t in found["times"].items()}
        over = {name: wall[name] / wall[name[:2]] for name in ("W2 joins", "W1 joins", "W1 plain joins")}
        keep("joins", found, {f"{name} over it": record.Ratio(r, JOINS) for name, r in over.items()})
    if "streams" in wanted:
        streamed_ = 6 * events // 10
        many = ["--events", str(streamed_)]
        kept = []
        for files in (24, 12):  # smaller and larger batches: Spark's own time for each is the same
            sized = [*many, "--files", str(files)]
            rows = [part("streamed", folder, "local[2]", *sized, "--groups", str(g)) for g in (2, 8, 32)]
            assert len({r["matches"] for r in rows}) == 1, rows
            print("\n".join(show_streams(rows, streamed_)), flush=True)
            kept += rows
        rates = {f"{r['groups']} groups, {r['rows']:,.0f} rows a batch: rows/s": r["rate"] for r in kept}
        keep("streams", kept, {name: record.Ratio(rate, STREAM) for name, rate in rates.items()})


if __name__ == "__main__":
    main()
