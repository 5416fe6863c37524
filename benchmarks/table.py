"""One table: the engine beside DuckDB and Polars, and how its time grows. `python -m benchmarks.table [--quick]`.

One run, one thread, on Arrow tables in memory with plain string types, best of some interleaved turns. The engine's
plan is compiled before; its time is that of `plan.run(table)`, from the Arrow table to the row numbers of all matches,
those of the elements of sets included.
The peers start from their own format. Every result is checked: the number of matches and the sum of each column.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import pyarrow as pa

from benchmarks import aggregates, growth, measure, negations, peers, record, sifting, stages, streaming, threaded
from benchmarks.streams import stream
from benchmarks.workloads import WORKLOADS, Workload
from quercus.plan import Plan
from quercus.result import Matches

ENGINES = ("quercus", "duckdb", "polars")
LOOSE = "polars, sets in any order"


def compared(rounds: int) -> list[dict[str, Any]]:
    """Every workload on the engine and on both peers."""
    streams = {name: stream(name) for name in sorted({w.stream for w in WORKLOADS.values()})}
    con, frames = peers.duckdb_with(streams), peers.polars_with(streams)
    found = []
    for w in WORKLOADS.values():
        table = streams[w.stream]
        actions = [partial(_listed, w.compile(), table), partial(peers.DUCKDB[w.name], con)]
        actions.append(partial(peers.POLARS[w.name], frames))
        if w.name == "W5":
            actions.append(partial(peers.polars_w5_unsorted, frames))
        matches = actions[0]()
        rows = [b.rows for b in matches.bound]
        expected = (w.count, [int(r.sum()) for r in rows])

        def look(number: int, result: Any, w: Workload = w, expected: Any = expected) -> None:
            if number == 0:
                got: Any = (len(result), [int(b.rows.sum()) for b in result.bound])
            else:
                got = peers.summary(result, con)
            if got != expected:
                raise AssertionError(f"{w.name}: engine {number} found {got}, expected {expected}")

        times = measure.interleaved(actions, rounds, look)
        outputs = [a for b in matches.bound for a in (b.rows, b.offsets) if a is not None]
        found.append(_entry(w, table, times, outputs, rounds))
    return found


def _listed(plan: Plan, table: pa.Table) -> Matches:
    """A run whose sets are listed as well, which otherwise waits until somebody asks."""
    found = plan.run(table)
    for b in found.bound:
        if b.kleene:
            _ = b.rows, b.offsets
    return found


def _entry(w: Workload, table: pa.Table, times: list[measure.Times], outputs: list[Any], rounds: int) -> dict[str, Any]:
    seconds = {name: t.best for name, t in zip(ENGINES, times, strict=False)}
    medians = {name: t.middle for name, t in zip(ENGINES, times, strict=False)}
    extra = {LOOSE: times[3].best} if len(times) > 3 else {}
    floor = {"types": measure.pass_over_types(table, rounds), "copy": measure.copy_of(outputs, rounds)}
    cpus = {name: min(t.cpus) for name, t in zip(ENGINES, times, strict=False)}
    return {
        "workload": w.name,
        "what": w.what,
        "query": w.query,
        "stream": w.stream,
        "matches": w.count,
        "seconds": {**seconds, **extra},
        "median_seconds": medians,
        "cpu_seconds": cpus,
        "ratio": _ratio(seconds),
        "cpu_ratio": _ratio(cpus),
        "median_ratio": _ratio(medians),
        "target": w.target,
        "ns_per_event": seconds["quercus"] / len(table) * 1e9,
        "ns_per_match": seconds["quercus"] / w.count * 1e9,
        "floor": floor,
    }


def _ratio(seconds: dict[str, float]) -> float:
    return min(seconds["duckdb"], seconds["polars"]) / seconds["quercus"]


def print_compared(found: list[dict[str, Any]]) -> None:
    print(
        f"{'':31}{'matches':>9} {'Quercus':>8} {'DuckDB':>8} {'Polars':>8}"
        f" {'ratio':>7} {'median':>7} {'CPU':>7} {'target':>7}"
        f"  {'':6} {'ns/event':>8} {'ns/match':>8} {'types':>6} {'copy':>6}"
    )
    for e in found:
        ms = {k: 1e3 * v for k, v in e["seconds"].items()}
        verdict = "met" if e["ratio"] >= e["target"] else "MISSED"
        print(
            f"{e['workload']:3}{e['what']:28}{e['matches']:9,} {ms['quercus']:8.2f} {ms['duckdb']:8.2f}"
            f" {ms['polars']:8.2f} {e['ratio']:6.2f}x {e['median_ratio']:6.2f}x {e['cpu_ratio']:6.2f}x"
            f" {e['target']:6.1f}x  {verdict:6}"
            f" {e['ns_per_event']:8.1f} {e['ns_per_match']:8.1f}"
            f" {1e3 * e['floor']['types']:6.2f} {1e3 * e['floor']['copy']:6.2f}"
        )
    print("Best times in ms. The ratio is over the better peer: from best times, from medians, from best CPU times;")
    print("on a busy machine the last says most, since a short run is seldom interrupted and a long one often.")
    print("Floors, in ms: a pass over the type column, a copy of the output.")
    loose = next((e["seconds"] for e in found if LOOSE in e["seconds"]), None)
    if loose is not None:
        ratio = loose[LOOSE] / loose["quercus"]
        print(f"W5 on Polars with sets in any order: {1e3 * loose[LOOSE]:.2f} ms, {ratio:.2f}x (not what is asked).")


def print_growth(title: str, rows: list[dict[str, Any]]) -> None:
    print(f"\n{title:36}{'matches':>11} {'ms':>9} {'ns/event':>9} {'ns/match':>9}")
    for r in rows:
        each = f"{r['seconds'] / r['matches'] * 1e9:9.1f}" if r["matches"] else f"{'-':>9}"
        ns = r["seconds"] / r["events"] * 1e9
        print(f"{r['of']:36}{r['matches']:11,} {1e3 * r['seconds']:9.2f} {ns:9.1f} {each}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.table", description=__doc__)
    record.options(options)
    options.add_argument("--rounds", type=int, help="turns of everything (default 7, quick 2)")
    given = options.parse_args()
    rounds = given.rounds or (2 if given.quick else 7)
    few = max(2, rounds // 3)
    pa.set_cpu_count(1)

    facts = measure.machine()
    libraries = ", ".join(f"{n} {v}" for n, v in facts["versions"].items())
    print(f"{facts['cpu']}, {facts['cores']} cores, load {facts['load']}; Python {facts['python']}, {libraries}")
    print(f"One thread, best of {rounds} interleaved turns of {measure.TURN} runs.\n", flush=True)
    workloads = compared(rounds)
    print_compared(workloads)
    spent = stages.measured(5 if given.quick else stages.RUNS)
    stages.show(spent)
    grown: dict[str, list[dict[str, Any]]] = {}
    measured = {
        "W1, more events": partial(growth.with_events, few, quick=given.quick),
        "W1, longer window (x1: 100)": partial(growth.with_window, few),
        "longer pattern": partial(growth.with_length, few),
        "larger sets, 1,000 matches": partial(growth.with_sets, few),
    }
    for title, rows in measured.items():
        grown[title] = rows()
        print_growth(title, grown[title])
    print("\nGrowth is measured after larger runs, when malloc keeps freed memory: large outputs then cost fewer")
    print("page faults, and the same query may take a third less than in the first table.")
    negated = negations.compared(few)
    negations.show(negated)
    sifted = sifting.compared(few)
    sifting.show(sifted)
    threads = threaded.compared(rounds)
    threaded.show(threads)
    streams = {"beside a run": streaming.beside_a_run(rounds), "by batch": streaming.by_batch(few)}
    streaming.show(streams["beside a run"], streams["by batch"])
    counted = aggregates.measured(few)
    print()
    print("\n".join(aggregates.lines(counted)))
    small = growth.small(rounds)
    print(f"\n{'compile + run, 100 events':36}{'ms':>11}   (target: under 5)")
    for name, seconds in small.items():
        print(f"{name:36}{1e3 * seconds:11.2f}")
    results = {
        "machine": facts,
        "rounds": rounds,
        "workloads": workloads,
        "stages": spent,
        "growth": grown,
        "negations": negated,
        "sifted": sifted,
        "threads": threads,
        "streams": streams,
        "aggregates": counted,
        "small": small,
    }
    record.keep(given, "engine", results, ratios(results))


def ratios(results: dict[str, Any]) -> dict[str, record.Ratio]:
    """What a later run is compared with. CPU time: on a busy machine it says most."""
    found = {
        f"{e['workload']} over the better of DuckDB and Polars": record.Ratio(e["cpu_ratio"], e["target"])
        for e in results["workloads"]
    }
    found["W6 over DuckDB"] = record.Ratio(results["aggregates"]["W6"]["times"], 500)
    live = results["streams"]["beside a run"]
    found["W1 streamed over a run"] = record.Ratio(live["cpu_ratio"], live["target"], less=True)
    return found


if __name__ == "__main__":
    main()
