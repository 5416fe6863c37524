"""E-Cube's workloads 1 to 8 on a stream of trades: queries alone, and computed from each other.

Run it with `python -m benchmarks.cube`. CPU time, the least of some rounds in which all take turns. `alone` runs plan
after plan; `independent` shares loading and routing; the others compute queries from each other. *Found*: the number
of matches of every query is known. *Listed*: so are the row numbers of all of them, in the order of the answer.

Tickers are traded as on an exchange: four heavily, the others thinly. Orderings are written by hand here: every query
from one that is more general (top_down), every query from one that is more special (bottom_up), and what the paper
says that Chase chose (7.2 to 7.4).
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from attrs import frozen

import quercus as qc
from quercus.backends.local.cube import CubeResult, run_cube
from quercus.ir import workload as w

SECTORS = {
    "Computer": ["DELL", "INTC", "MSFT"],
    "Finance": ["QQQ", "FCF", "ROM"],
    "Education": ["EFC", "ANAT", "OREL"],
}
SHARES = {"DELL": 17, "INTC": 22, "MSFT": 25, "QQQ": 28, "FCF": 2, "ROM": 1.5, "EFC": 1.5, "ANAT": 1.5, "OREL": 1.5}
EVEN = dict.fromkeys([*SHARES, "IBM"], 1)
SCHEMA = qc.Schema({"price": "float64"}, types=[*SHARES, "IBM"], hierarchy=SECTORS, time_unit="us")
ROUNDS = 5

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
# Where each query comes from; those that are not named are computed alone.
_TOP_DOWN = {
    1: "q2 q1 q3 q1 q4 q1 q5 q1",
    2: "q7 q6 q8 q6 q9 q6 q10 q6",
    3: "q12 q11 q13 q11 q14 q11 q15 q11",
    4: "q17 q16",
    5: "q19 q16",
    6: "q19 q16",
    7: "q26 q16 q27 q26 q20 q27 q28 q27 q21 q20 q22 q20 q23 q20 q24 q20 q25 q24",
    8: "q29 q16 q30 q16 q31 q30 q32 q31 q33 q31 q34 q16 q35 q34 q36 q35",
}
_BOTTOM_UP = {
    4: "q16 q17",
    5: "q16 q19",
    6: "q16 q19",
    7: "q27 q20 q26 q27 q16 q26",
    8: "q30 q31 q35 q36 q34 q35 q16 q29",
}
_CHASE = {
    **{number: _TOP_DOWN[number] for number in (1, 2, 3)},
    **{number: _BOTTOM_UP[number] for number in (4, 5, 6)},
    7: "q27 q20 q21 q20 q22 q20 q23 q20 q24 q20 q25 q24 q26 q27 q16 q26 q28 q27",
    8: "q30 q31 q32 q31 q33 q31 q35 q36 q34 q35 q16 q29",
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


# How one query comes from another -------------------------------------------------------------------------------------


@frozen
class Query:
    """A plan, and the names that stand in its pattern."""

    types: list[str]
    plan: qc.Plan

    @property
    def positive(self) -> list[str]:
        return [name for name in self.types if not name.startswith("!")]

    @property
    def negated(self) -> list[tuple[str, int]]:
        """Negated types, with the place of the positive one behind them."""
        found, place = [], 0
        for name in self.types:
            if name.startswith("!"):
                found.append((name[1:], place))
            else:
                place += 1
        return found

    @property
    def names(self) -> list[str]:
        return [v.var for v in self.plan.query.variables]


def compiled(types: list[str]) -> Query:
    return Query(types, qc.compile(f"PATTERN SEQ({', '.join(types)}) WITHIN 1 s", SCHEMA))


def accepts(name: str) -> tuple[str, ...]:
    return tuple(sorted(SCHEMA.accepts(name)))


def actions(source: Query, target: Query) -> tuple[w.Action, ...]:
    """What makes the target's results from the source's: from a general one, or from one of finer types."""
    if len(source.positive) == len(target.positive) and source.negated == target.negated:
        finer = all(set(accepts(b)) <= set(accepts(a)) for a, b in zip(source.positive, target.positive, strict=True))
        if not finer:
            return _widened(source, target)
    found: list[w.Action] = []
    names, at = list(source.names), 0
    for place, name in enumerate(target.positive):
        var = target.names[place]
        if at < len(source.positive) and set(accepts(name)) <= set(accepts(source.positive[at])):
            if name != source.positive[at]:
                found.append(w.Retype(names[place], accepts(name)))
            at += 1
        else:
            found.append(w.Insert(w.Part(var, name, accepts(name)), place, (), target.plan.query.window))
            names.insert(place, var)
    renamed = tuple((old, new) for old, new in zip(names, target.names, strict=True) if old != new)
    found += [w.Rename(renamed)] if renamed else []
    for name, place in target.negated:
        if (name, place) not in source.negated:
            part = w.Part(f"!{name}", name, accepts(name), negated=True)
            found.append(w.Forbid(part, target.names[place - 1], target.names[place], target.plan.query.window))
    return tuple(found)


def _widened(source: Query, target: Query) -> tuple[w.Action, ...]:
    """The results of finer types, and for each type that is wider those in which it is the first that is not fine."""
    renamed = tuple(zip(source.names, target.names, strict=True))
    pairs = list(zip(target.names, source.positive, target.positive, strict=True))
    changed = [(v, accepts(fine), accepts(wide)) for v, fine, wide in pairs if fine != wide]
    deltas = []
    for i, (var, fine, wide) in enumerate(changed):
        others = tuple((v, own) for v, own, _ in changed[:i])
        deltas.append(w.Delta(target.plan.bound, (*others, (var, tuple(n for n in wide if n not in fine)))))
    return w.Rename(renamed), w.Add(tuple(deltas))


def ordering(queries: dict[str, Query], share: w.Strategy, text: str) -> w.Ordering:
    """The cuboids, sources before those that are computed from them."""
    words = text.split()
    source = dict(zip(words[::2], words[1::2], strict=True))
    cuboids: dict[str, w.Cuboid] = {}

    def add(name: str) -> None:
        if name in cuboids:
            return
        came = source.get(name)
        if came is None:
            cuboids[name] = w.Cuboid(name, None, None, (), "", 0.0, 0.0)
        else:
            add(came)
            cuboids[name] = w.Cuboid(name, came, "5.6", actions(queries[came], queries[name]), "", 0.0, 0.0)

    for name in queries:
        add(name)
    return w.Ordering(share, tuple(cuboids.values()))


# Measuring ------------------------------------------------------------------------------------------------------------


def run(number: int, rounds: int) -> dict[str, tuple[float, float]]:
    """CPU seconds of each way: until all are found, and until all are listed. Every way must find the same."""
    events = trades(*SIZES[number])
    queries = {name: compiled(types) for name, types in PATTERNS[number].items()}
    plans = {name: q.plan for name, q in queries.items()}

    def shared(share: w.Strategy, text: str) -> Callable[[], CubeResult]:
        made = ordering(queries, share, text)
        return lambda: run_cube(plans, lambda *_: made, events, qc.Limits(), 1)

    ways: dict[str, Callable[[], Mapping[str, object]]] = {
        "alone": lambda: {name: plan.run(events) for name, plan in plans.items()},
        "independent": shared("independent", ""),
        "top_down": shared("top_down", _TOP_DOWN[number]),
        "bottom_up": shared("bottom_up", _BOTTOM_UP.get(number, "")),
        "chase": shared("chase", _CHASE[number]),
    }
    best = dict.fromkeys(ways, (float("inf"), float("inf")))
    seen: dict[str, tuple[int, ...]] = {}
    for turn in range(rounds):
        for way, action in [*ways.items()][
            :: 1 - 2 * (turn % 2)
        ]:  # who comes after whom matters to the memory there is
            gc.collect()
            begin = time.process_time()
            found = action()
            sizes = tuple(len(m) for m in found.values())  # type: ignore[arg-type]
            known = time.process_time()
            bound = [m.bound for m in found.values()]  # type: ignore[attr-defined]
            listed = time.process_time()
            best[way] = (min(best[way][0], known - begin), min(best[way][1], listed - begin))
            if turn == 0:
                digest = tuple(hash(b.held.tobytes()) for own in bound for b in own)
                assert seen.setdefault("sizes", sizes) == sizes, way
                assert seen.setdefault("digest", digest) == digest, way
            del found, bound
    print(f"workload {number}: {len(events):,} events, matches {', '.join(f'{n:,}' for n in seen['sizes'])}")
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, nargs="*", default=list(PATTERNS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    for number in asked.workloads:
        best = run(number, asked.rounds)
        plain = best["independent"]
        for way, (found, listed) in best.items():
            print(
                f"  {way:12} found {found * 1e3:8.1f} ms ({plain[0] / found:5.2f}x)   "
                f"listed {listed * 1e3:8.1f} ms ({plain[1] / listed:5.2f}x)"
            )


if __name__ == "__main__":
    main()
