"""E-Cube's workloads 1 to 8 on a stream of trades: queries alone, and computed from each other.

Run it with `python -m benchmarks.cube`. CPU time, the least of some rounds in which all take turns. `alone` runs plan
after plan; `independent` shares loading and routing; the others compute queries from each other. *Listed*: the row
numbers of all matches are there, in the order of the answer. *Found*: on the way to that, `len()` of all is known.
*Counted*: the numbers of matches, asked for by `AGG COUNT(*)`. All ways must find the same.

Tickers are traded as on an exchange: four heavily, the others thinly. Beside the workloads: how long Chase itself takes
for 50 queries, and a cube of 100 queries over a million events beside its most expensive one alone.

`--bars FILE ...` runs the workloads over one-minute bars of real tickers instead; the project has no such files.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import quercus as qc
from benchmarks import measure, record
from benchmarks.plot import bars
from quercus.ir.workload import Strategy

SECTORS = {
    "Computer": ["DELL", "INTC", "MSFT"],
    "Finance": ["QQQ", "FCF", "ROM"],
    "Education": ["EFC", "ANAT", "OREL"],
}
SHARES = {"DELL": 17, "INTC": 22, "MSFT": 25, "QQQ": 28, "FCF": 2, "ROM": 1.5, "EFC": 1.5, "ANAT": 1.5, "OREL": 1.5}
EVEN = dict.fromkeys([*SHARES, "IBM"], 1)
SCHEMA = qc.Schema({"price": "float64"}, types=[*SHARES, "IBM"], hierarchy=SECTORS, time_unit="us")
ROUNDS = 10
STRATEGIES: tuple[Strategy, ...] = ("independent", "top_down", "bottom_up", "chase")

_PATTERNS = {
    1: "q1 INTC !MSFT FCF | q2 INTC !MSFT FCF ROM | q3 INTC !MSFT FCF EFC | q4 INTC !MSFT FCF ANAT "
    "| q5 INTC !MSFT FCF OREL",
    2: "q6 DELL INTC !MSFT FCF | q7 DELL INTC !MSFT FCF ROM | q8 DELL INTC !MSFT FCF OREL "
    "| q9 DELL INTC !MSFT FCF ANAT | q10 DELL INTC !MSFT FCF QQQ",
    3: "q11 QQQ DELL INTC !MSFT FCF | q12 QQQ DELL INTC !MSFT FCF ROM | q13 QQQ DELL INTC !MSFT FCF ANAT "
    "| q14 QQQ DELL INTC !MSFT FCF OREL | q15 QQQ DELL INTC !MSFT FCF EFC",
    4: "q16 Computer Finance Education | q17 Computer Finance EFC",
    5: "q16 Computer Finance Education | q19 Computer QQQ EFC",
    6: "q16 Computer Finance Education | q19 INTC QQQ EFC",
    7: "q20 DELL QQQ ANAT | q21 DELL QQQ ANAT ROM | q22 FCF DELL QQQ ANAT | q23 DELL QQQ ANAT OREL "
    "| q24 DELL QQQ ANAT INTC | q25 DELL QQQ ANAT INTC EFC | q16 Computer Finance Education "
    "| q26 Computer Finance ANAT | q27 DELL Finance ANAT | q28 QQQ DELL Finance ANAT",
    8: "q16 Computer Finance Education | q29 Computer Finance OREL | q30 INTC QQQ Education | q31 INTC QQQ EFC "
    "| q32 MSFT INTC QQQ EFC | q33 INTC QQQ EFC DELL | q34 Computer ROM Education | q35 Computer ROM ANAT "
    "| q36 INTC ROM ANAT",
}
PATTERNS = {
    number: {line.split()[0]: line.split()[1:] for line in text.split("|")} for number, text in _PATTERNS.items()
}
SIZES = {  # events, trades in a second, and who trades how often
    1: (1_000_000, 400, SHARES),
    2: (200_000, 400, SHARES),
    3: (20_000, 500, SHARES),
    4: (200_000, 40, EVEN),
    5: (200_000, 40, EVEN),
    6: (200_000, 40, EVEN),
    7: (100_000, 60, EVEN),
    8: (100_000, 60, EVEN),
}


def trades(n: int, rate: int, shares: Mapping[str, float], seed: int = 20110612) -> pa.Table:
    """So many trades at so many in a second, at random times."""
    r = np.random.default_rng(seed)
    names, weights = list(shares), np.array(list(shares.values()), float)
    ts = np.sort(r.integers(0, n * 1_000_000 // rate, n))
    types = pa.DictionaryArray.from_arrays(r.choice(len(names), n, p=weights / weights.sum()).astype(np.int8), names)
    return pa.table({"ts": ts, "type": types.cast(pa.string()), "price": np.round(20 + r.random(n) * 60, 2)})


ROLES = {"AAPL": "DELL", "GOOG": "INTC", "AMZN": "QQQ", "ORLY": "FCF", "CBRL": "ROM", "DRIV": "EFC"}


def bars_of(paths: list[Path]) -> pa.Table:
    """One-minute bars, a line each: ticker, YYYYMMDDhhmm, open, high, low, close, volume.

    Tickers get the names that the workloads have, and a minute is a sixtieth of a second: within 1 s means an hour.
    """
    lines = [line.split(",") for path in paths for line in path.read_text().split()]
    rows = sorted(
        (int((datetime.strptime(at, "%Y%m%d%H%M") - datetime(1970, 1, 1)).total_seconds()), ROLES.get(t, t), close)
        for t, at, _, _, _, close, _ in lines
    )
    ts, types, prices = zip(*rows, strict=True)
    return pa.table({"ts": [t * 1_000_000 // 3600 for t in ts], "type": types, "price": [float(p) for p in prices]})


# The workloads --------------------------------------------------------------------------------------------------------


def run(number: int, events: pa.Table, rounds: int) -> dict[str, Any]:
    """CPU seconds of each way: until all matches are listed; of the same queries with COUNT(*); and until `len()` of
    all matches is known, on the way to listing them.
    """
    queries = {n: f"PATTERN SEQ({', '.join(types)}) WITHIN 1 s" for n, types in PATTERNS[number].items()}
    listed = Ways(queries)
    counted = Ways({name: f"{text} AGG COUNT(*) AS n" for name, text in queries.items()})
    for turn in range(rounds):
        listed.take_turns(turn, events, lambda m: [b.held for b in m.bound])
        counted.take_turns(turn, events, lambda m: [int(m.to_arrow().column("n")[0].as_py())])
    sizes = [n for n, _ in listed.answers.values()]
    assert sizes == [n for (n,) in counted.answers.values()], "counted"
    took, numbers = listed.pooled(), counted.pooled()
    return {
        "events": len(events),
        "matches": dict(zip(queries, sizes, strict=True)),
        "seconds": {way: [took[way][1], numbers[way][1], took[way][0]] for way in took},
        "chose": {c.name: c.source for c in listed.cubes["chase"].ordering.cuboids},
    }


class Ways:
    """The same queries alone, and as a cube under each strategy."""

    def __init__(self, queries: Mapping[str, str]) -> None:
        plans = {name: qc.compile(text, SCHEMA) for name, text in queries.items()}
        self.cubes = {share: qc.cube(queries, SCHEMA, share=share) for share in STRATEGIES}
        self.ways: dict[str, Callable[[pa.Table], Mapping[str, Any]]] = {
            "alone": lambda events: {name: plan.run(events) for name, plan in plans.items()},
            **{share: cube.run for share, cube in self.cubes.items()},
        }
        self.best = {way: [float("inf"), float("inf")] for way in self.ways}
        self.answers: dict[str, tuple[int, ...]] = {}

    def take_turns(self, turn: int, events: pa.Table, ask: Callable[[Any], Any]) -> None:
        """Each way once, until what is asked of all queries is there; in the first turn answers are compared."""
        ways = [*self.ways.items()]
        first = turn // 2 % len(ways)
        for way, action in [*ways[first:], *ways[:first]][:: 1 - 2 * (turn % 2)]:  # after whom matters: memory is kept
            gc.collect()
            begin = time.process_time()
            found = action(events)
            for matches in found.values():
                len(matches)
            known = time.process_time() - begin
            asked = {name: ask(matches) for name, matches in found.items()}
            self.best[way] = [min(self.best[way][0], known), min(self.best[way][1], time.process_time() - begin)]
            if turn == 0:
                answers = {name: _digest(columns) for name, columns in asked.items()}
                self.answers = self.answers or answers
                assert answers == self.answers, way
            del found, asked

    def pooled(self) -> dict[str, list[float]]:
        """The least seconds of each way, until numbers are known and in all; equal orderings are one."""
        orders = {
            share: [(c.name, c.source, c.actions, c.totalled, c.counted) for c in cube.ordering.cuboids]
            for share, cube in self.cubes.items()
        }
        return measure.pooled(self.best, {"alone": None, **orders})


def _digest(answer: list[Any]) -> tuple[int, ...]:
    """A number as it is; columns as how long they are, and what is in them."""
    if isinstance(answer[0], int):
        return tuple(answer)
    return len(answer[0]), hash(tuple(hash(column.tobytes()) for column in answer))


def show(name: str, found: dict[str, Any]) -> None:
    sizes = ", ".join(f"{q} {n:,}" for q, n in found["matches"].items())
    print(f"{name}: {found['events']:,} events; {sizes}")
    print("  chase: " + (", ".join(f"{q} from {s}" for q, s in found["chose"].items() if s) or "all alone"))
    plain = found["seconds"]["independent"]
    for way, (listed, counted, known) in found["seconds"].items():
        print(
            f"  {way:12} listed {listed * 1e3:8.1f} ms ({plain[0] / listed:5.2f}x)   "
            f"counted {counted * 1e3:8.1f} ms ({plain[1] / counted:5.2f}x)   "
            f"found {known * 1e3:8.1f} ms ({plain[2] / known:5.2f}x)",
            flush=True,
        )


# Beside them ----------------------------------------------------------------------------------------------------------


def many(count: int) -> dict[str, str]:
    """Queries of three and four components at all levels of the sectors."""
    sectors = [[name, *below] for name, below in SECTORS.items()]
    found = [f"SEQ({', '.join(types)})" for types in product(*sectors)]
    found += [f"SEQ({a}, {b}, !MSFT, {c}, ROM)" for a, b, c in product(*sectors)]
    step = len(found) / count
    return {f"q{i}": f"PATTERN {found[int(i * step)]} WITHIN 1 s" for i in range(count)}


def chase_itself(rounds: int) -> float:
    """Seconds for the ordering of 50 queries, their hierarchy being known."""
    cube = qc.cube(many(50), SCHEMA)
    cube.ordering  # noqa: B018  # the hierarchy is made with it
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        cube.ordering  # noqa: B018
        best = min(best, time.process_time() - begin)
    return best


def hundred(rounds: int, size: int) -> dict[str, float]:
    """A cube of 100 queries over so many events, beside each of its queries alone; found and listed."""
    events, queries = trades(size, 5, EVEN), many(100)
    cube, plans = qc.cube(queries, SCHEMA), {n: qc.compile(q, SCHEMA) for n, q in queries.items()}
    alone = dict.fromkeys(plans, float("inf"))
    whole = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        found = cube.run(events)
        total = sum(len(m.bound[0]) for m in found.values())
        whole = min(whole, time.process_time() - begin)
        del found
        for name, plan in plans.items():
            begin = time.process_time()
            len(plan.run(events).bound[0])
            alone[name] = min(alone[name], time.process_time() - begin)
    return {"cube": whole, "dearest": max(alone.values()), "all": sum(alone.values()), "matches": float(total)}


def size(workload: int, quick: bool) -> int:
    return SIZES[workload][0] // (10 if quick else 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    record.options(parser)
    parser.add_argument("--workloads", type=int, nargs="*", default=list(PATTERNS))
    parser.add_argument("--rounds", type=int, help=f"turns of everything (default {ROUNDS}, quick 1)")
    parser.add_argument("--bars", type=Path, nargs="*", help="files of one-minute bars, instead of made-up trades")
    asked = parser.parse_args()
    rounds = asked.rounds or (1 if asked.quick else ROUNDS)
    given = bars_of(asked.bars) if asked.bars else None
    found = {
        n: run(n, trades(size(n, asked.quick), *SIZES[n][1:]) if given is None else given, rounds)
        for n in asked.workloads
    }
    for n, one in found.items():
        show(f"workload {n}", one)
    if given is not None:
        record.keep(asked, "cube-bars", {"workloads": found, "rounds": rounds}, of_workloads(found, {}, 1.05))
        return
    if asked.workloads != list(PATTERNS):
        return
    chase, large = chase_itself(20), hundred(max(rounds // 2, 1), 100_000 if asked.quick else 1_000_000)
    print(f"Chase for 50 queries: {chase * 1e3:.1f} ms")
    print(
        f"100 queries, {large['matches']:,.0f} matches: {large['cube'] * 1e3:.0f} ms, "
        f"{large['cube'] / large['dearest']:.1f} times the most expensive alone, one by one {large['all'] * 1e3:.0f} ms"
    )
    figures = {"workloads": found, "rounds": rounds, "chase": chase, "hundred": large}
    record.keep(asked, "cube", figures, ratios(found, chase, large))
    if (folder := record.images(asked)) is not None:
        draw(found, folder)


def ratios(found: Mapping[int, dict[str, Any]], chase: float, large: Mapping[str, float]) -> dict[str, record.Ratio]:
    """What a later run is compared with."""
    out = of_workloads(found, {3: 4}, 1.05)
    out["Chase for 50 queries, ms"] = record.Ratio(chase * 1e3, 20, less=True)
    out["100 queries over the dearest"] = record.Ratio(large["cube"] / large["dearest"], 10, less=True)
    return out


def of_workloads(
    found: Mapping[int, dict[str, Any]], least: Mapping[int, float], most: float
) -> dict[str, record.Ratio]:
    """Chase beside `independent`, and beside the best of the others; `least` and `most`: what is asked of these."""
    out = {}
    for n, one in found.items():
        seconds = one["seconds"]
        others = [seconds[s] for s in STRATEGIES if s != "chase"]
        for place, what in enumerate(("listed", "counted", "found")):
            own = seconds["chase"][place]
            over = seconds["independent"][place] / own
            out[f"workload {n}: over independent, {what}"] = record.Ratio(over, None if place else least.get(n))
            best = own / min(other[place] for other in others)
            out[f"workload {n}: over the best other, {what}"] = record.Ratio(best, most, less=True)
    return out


def draw(found: Mapping[int, dict[str, Any]], folder: Path) -> None:
    """The paper's figures 12 to 15: a chart each for workloads with pattern, with concept and with both changes."""
    for name, numbers, title in (
        ("cube-patterns", (1, 2, 3), "Workloads 1 to 3: patterns change"),
        ("cube-concepts", (4, 5, 6), "Workloads 4 to 6: concepts change"),
        ("cube-both", (7, 8), "Workloads 7 and 8: both"),
    ):
        rows = {f"workload {n}": found[n]["seconds"] for n in numbers if n in found}
        if rows:
            times = {k: {way: t[0] * 1e3 for way, t in of.items()} for k, of in rows.items()}
            bars(folder / f"{name}.svg", title, "CPU milliseconds, all matches listed", "", times, log=True)


if __name__ == "__main__":
    main()
