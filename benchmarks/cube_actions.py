"""What each action over held results takes, in nanoseconds: `python -m benchmarks.cube_actions`.

For each action there are two numbers: for a row of the source, until the number of results is known; and for a row of
the result, until its columns are listed in the order of the answer. CPU time, the least of some rounds; other work on
the machine makes all of them larger. What is made once for a stream or a source is told apart.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import quercus as qc
from benchmarks.cube import EVEN, SCHEMA, trades
from quercus.backends.local.cube.actions import Results, Worker
from quercus.backends.local.cube.held import Held, Listed
from quercus.backends.local.cube.lanes import Bound, Lanes
from quercus.backends.local.cube.stacks import Stacks
from quercus.backends.local.events import load
from quercus.backends.local.run import find
from quercus.ir import expr as x
from quercus.ir import workload as w

ROUNDS = 9


def accepts(name: str) -> tuple[str, ...]:
    return tuple(sorted(SCHEMA.accepts(name)))


def spent(rounds: int, prepare: Callable[[], Held], action: Callable[[Held], Held]) -> tuple[float, float, int, int]:
    """Seconds until the results are known, and until they are listed; rows before and after."""
    found = listed = float("inf")
    for _ in range(rounds):
        source = prepare()
        begin = time.process_time()
        held = action(source)
        known = time.process_time()
        columns = held.columns
        end = time.process_time()
        found, listed = min(found, known - begin), min(listed, end - known)
        size = len(source), len(held)
        del held, columns
    return found, listed, *size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    events = trades(25_000, 80, EVEN)
    plan = qc.compile("PATTERN SEQ(Computer a, Finance b, Education c) WITHIN 1 s", SCHEMA)
    window = plan.query.window
    stream = load(events, SCHEMA)
    stacks = Stacks(stream, [accepts(name) for name in ("Computer", "Finance", "Education", "IBM")])
    columns = [b.held for b in find(plan, stream, qc.Limits(), numbered=False)]
    names = ("a", "b", "c")

    def nobody(delta: w.Delta) -> Results:
        raise AssertionError(delta)

    def source() -> Held:
        return Listed(columns)

    def part(name: str, *, negated: bool = False) -> w.Part:
        return w.Part("new", name, accepts(name), negated)

    price = x.Compare("<", x.Column("a", "price", "float64"), x.Column("c", "price", "float64"))
    narrow = qc.compile("PATTERN SEQ(Computer a, Finance b) WITHIN 500 ms", SCHEMA).query.window
    actions: dict[str, w.Action] = {
        "Insert at the end": w.Insert(part("IBM"), 3, (), window),
        "Insert before the last": w.Insert(part("IBM"), 2, (), window),
        "Insert in the middle": w.Insert(part("IBM"), 1, (), window),
        "Insert at the front": w.Insert(part("IBM"), 0, (), window),
        "Retype of the last": w.Retype("c", accepts("EFC")),
        "Retype of another": w.Retype("b", accepts("QQQ")),
        "Forbid between two": w.Forbid(part("ROM", negated=True), "b", "c", window),
        "Forbid to the window's end": w.Forbid(part("OREL", negated=True), "c", None, window),
        "Narrow": w.Narrow(narrow),
        "Keep (two columns)": w.Keep((price,)),
        "Project to two": w.Project(("a", "c")),
    }
    print(f"source: {len(columns[0]):,} matches of three components")
    for name, action in actions.items():
        lanes = Lanes(stream, stacks)
        worker = Worker(lanes, nobody, lambda held: None)

        def apply(held: Held, worker: Worker = worker, action: w.Action = action) -> Held:
            return worker.apply(Results(held, names), action).held

        show(name, *spent(rounds, source, apply))
    add = w.Add((w.Delta(plan.bound),))
    half = np.arange(len(columns[0])) % 2 == 0
    blocks = stacks.kinds[columns[2]] == stacks.code["EFC"]
    for name, chosen in (("Add, row by row", half), ("Add, block by block", blocks)):
        one, other = (Listed([c[own] for c in columns]) for own in (chosen, ~chosen))
        merging = Worker(Lanes(stream, stacks), lambda _, other=other: Results(other, names), lambda held: None)  # type: ignore[misc]

        def both(held: Held, worker: Worker = merging) -> Held:
            return worker.apply(Results(held, names), add).held

        show(name, *spent(rounds, lambda one=one: one, both))  # type: ignore[misc]
    once = {
        "lexical order": (lambda: Listed(columns).in_lexical_order.columns, len(columns[0]), "row of a source"),
        "a component's table": (
            lambda: Lanes(stream, stacks).lane(accepts("IBM"), ()).before(Bound("after")),
            len(stream),
            "event of the stream, its bound included",
        ),
        "the engine, alone": (lambda: find(plan, stream, qc.Limits(), numbered=False), len(columns[0]), "match"),
    }
    for name, (action, count, of) in once.items():
        print(f"{name:28} {min(_timed(action) for _ in range(rounds)) / count * 1e9:6.1f} ns a {of}")


def _timed(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin


def show(name: str, found: float, listed: float, before: int, after: int) -> None:
    a_row = f"{found / before * 1e9:6.1f} ns a row of the source"
    print(f"{name:28} {a_row}, {listed / max(after, 1) * 1e9:6.1f} ns a row of the result ({after:,})")


if __name__ == "__main__":
    main()
