"""Pattern windows: Example 5 of the paper beside Algorithm 1 in Python and beside DuckDB, and how cost grows.

`python -m benchmarks.windows [--quick]`. CPU seconds with one thread each, best of some turns; all answers are checked.
Algorithm 1 in Python looks at every open window for every tuple: it is run on the first tuples only, when few windows
are open, and its time for all tuples is told as no less than that per tuple. A Python program that keeps windows by
person in a dictionary is run whole. DuckDB starts from its own tables, in two forms, of which the best counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import quercus as qc
from benchmarks import measure
from quercus.backends.local.events import load
from quercus.backends.local.windows import WindowStream, closed_windows
from quercus.ir import expr as x
from quercus.ir.window import FIRST, HERE, PREV, PatternWindow

TUPLES, PERSONS, STRAIGHT = 1_000_000, 10_000, 8_000
PLACES = ("Lab", "Home", "Office", "Cafe", "Gym", "Shop", "Park", "Bar", "School", "Room101")
SCHEMA = qc.Schema({"person": "string", "location": "string", "heat": "float64"})
PERSON, LOCATION = x.Column(HERE, "person", "string"), x.Column(HERE, "location", "string")
SAME = x.Compare("=", PERSON, x.Column(FIRST, "person", "string"))
OTHER = x.Compare("<>", PERSON, x.Column(FIRST, "person", "string"))
HOTTER = x.Compare(">=", x.Column(HERE, "heat", "float64"), x.Column(PREV, "heat", "float64"))
OPEN = (100, 1_000, 10_000, 100_000)

_LEAD = """
    SELECT person, later - ts AS duration
    FROM (SELECT person, ts, location, lead(location) OVER w AS next, lead(ts) OVER w AS later
          FROM located WHERE location IN ('Lab', 'Home') WINDOW w AS (PARTITION BY person ORDER BY ts))
    WHERE location = 'Lab' AND next = 'Home'"""
_ASOF = """
    SELECT l.person, e.ts - l.ts AS duration
    FROM (SELECT person, ts FROM located WHERE location = 'Lab') l
    ASOF JOIN (SELECT person, ts, location FROM located WHERE location IN ('Lab', 'Home')) e
    ON l.person = e.person AND l.ts < e.ts
    WHERE e.location = 'Home'"""
FORMS = {"lead": _LEAD, "asof": _ASOF}


def place(name: str, op: x.CompareOp = "=") -> x.Expr:
    return x.Compare(op, LOCATION, x.Const(name, "string"))


EXAMPLE_5 = PatternWindow(
    place("Lab"), x.Logic("and", (SAME, place("Home"))), x.Logic("or", (OTHER, place("Lab", "<>"))), SAME
)
ONE_BY_ONE = PatternWindow(
    place("Lab"), x.Logic("and", (SAME, place("Home"), HOTTER)), x.Logic("or", (OTHER, place("Lab", "<>"))), SAME
)


def locations(n: int, persons: int, at_work: int = 0) -> pa.Table:
    """Persons who go from place to place; so many of them are in the laboratory first."""
    r = np.random.default_rng(1)
    names = pa.array([f"person{i:06d}" for i in range(persons)])
    who, where = r.integers(0, persons, n), r.integers(0, len(PLACES), n)
    who[:at_work], where[:at_work] = np.arange(at_work), 0
    return pa.table(
        {
            "ts": np.arange(n),
            "type": pa.array(["At"]).take(pa.array(np.zeros(n, np.int64))),
            "person": names.take(pa.array(who)),
            "location": pa.array(PLACES).take(pa.array(where)),
            "heat": r.random(n),
        }
    )


# Example 5 ------------------------------------------------------------------------------------------------------------


def own(table: pa.Table) -> pa.Table:
    """From the table to the answer: FIRST(person), LAST(ts) - FIRST(ts)."""
    events = load(table, SCHEMA)
    found = closed_windows(EXAMPLE_5, events, qc.Limits())
    person = table.column("person").take(pa.array(events.input_rows(found.first)))
    return pa.table({"person": person, "duration": events.ts[found.close] - events.ts[found.first]})


def straight(rows: list[tuple[int, str, str]]) -> list[tuple[str, int]]:
    """Algorithm 1."""
    found, windows = [], []
    for ts, person, location in rows:
        if location == "Lab":
            windows.append([(ts, person)])
        left = []
        for w in windows:
            if w[-1][0] >= ts:
                left.append(w)
            elif person == w[0][1] and location == "Home":
                found.append((person, ts - w[0][0]))
            elif person != w[0][1] or location != "Lab":
                if person == w[0][1]:
                    w.append((ts, person))
                left.append(w)
        windows = left
    return found


def by_person(rows: list[tuple[int, str, str]]) -> list[tuple[str, int]]:
    """The same with windows by person."""
    found: list[tuple[str, int]] = []
    windows: dict[str, list[list[int]]] = {}
    for ts, person, location in rows:
        mine = windows.get(person)
        if mine:
            if location == "Home":
                found += [(person, ts - w[0]) for w in mine if w[-1] < ts]
                windows[person] = [w for w in mine if w[-1] >= ts]
            elif location == "Lab":
                windows[person] = [w for w in mine if w[-1] >= ts]
            else:
                for w in mine:
                    if w[-1] < ts:
                        w.append(ts)
        if location == "Lab":
            windows.setdefault(person, []).append([ts])
    return found


def example_5(rounds: int) -> dict[str, float]:
    """CPU seconds of each way, over the same tuples."""
    table = locations(TUPLES, PERSONS)
    columns = [table.column(n).to_pylist() for n in ("ts", "person", "location")]
    rows = list(zip(*columns, strict=True))
    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.register("given", table)
    con.execute("CREATE TABLE located AS FROM given")
    expected = sorted(by_person(rows))
    _check(sorted(straight(rows[:STRAIGHT])) == sorted(by_person(rows[:STRAIGHT])), "straight")
    best: dict[str, float] = {}
    for _ in range(rounds):
        _time(best, "quercus", partial(own, table), lambda t: _answer(t) == expected, 5)
        for name, sql in FORMS.items():
            _time(best, f"duckdb, {name}", partial(_sql, con, sql), lambda t: _answer(t) == expected, 2)
    _time(best, "python, by person", partial(by_person, rows), lambda found: sorted(found) == expected, 1)
    _time(best, "python, straight", partial(straight, rows[:STRAIGHT]), lambda found: True, 1)
    best["python, straight"] *= TUPLES / STRAIGHT
    return best


def _sql(con: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    return con.sql(sql).to_arrow_table()


def _answer(table: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(table.column("person").to_pylist(), table.column("duration").to_pylist(), strict=True))


def _time(best: dict[str, float], name: str, run: Callable[[], Any], right: Callable[[Any], bool], times: int) -> None:
    for _ in range(times):
        begin = time.process_time()
        found = run()
        best[name] = min(best.get(name, 1e9), time.process_time() - begin)
    _check(right(found), name)


def _check(right: bool, name: str) -> None:
    if not right:
        raise AssertionError(f"{name}: a wrong answer")


# Growth ---------------------------------------------------------------------------------------------------------------


def by_open_windows(rounds: int) -> dict[str, list[tuple[int, float]]]:
    """Nanoseconds a tuple where about so many windows are open from first to last: each of twice as many persons is
    as likely in the laboratory as at home last. As a run, and as a stream in pushes of 10,000, of which at its end it
    is checked how many are open.
    """
    found: dict[str, list[tuple[int, float]]] = {}
    for n_open in OPEN:
        table = locations(TUPLES, 2 * n_open, at_work=n_open)
        events = load(table, SCHEMA)
        for name, w in (("all at once", EXAMPLE_5), ("one by one", ONE_BY_ONE)):
            best: dict[str, float] = {}
            _time(best, name, partial(closed_windows, w, events, qc.Limits()), lambda _: True, rounds)
            found.setdefault(name, []).append((n_open, best[name] / TUPLES * 1e9))
        best = {}
        _time(best, "stream", partial(_streamed, table), partial(_is_about, n_open), 1)
        found.setdefault("stream", []).append((n_open, best["stream"] / TUPLES * 1e9))
    return found


def _streamed(table: pa.Table) -> int:
    """How many windows are open in the end."""
    stream = WindowStream(EXAMPLE_5, SCHEMA)
    for at in range(0, len(table), 10_000):
        stream.push(table.slice(at, 10_000))
    return stream.open


def _is_about(expected: int, found: int) -> bool:
    return 0.7 * expected < found < 1.3 * expected


def lines(times: dict[str, float], growth: dict[str, list[tuple[int, float]]]) -> list[str]:
    mine = times["quercus"]
    out = [f"Example 5, {TUPLES:,} tuples of {PERSONS:,} persons, CPU ms:"]
    for name, seconds in times.items():
        least = "at least " if name == "python, straight" else ""
        out.append(
            f"  {name:18} {least}{seconds * 1e3:,.0f}" + (f"   {seconds / mine:,.1f}x" if name != "quercus" else "")
        )
    out.append("ns a tuple, by open windows: " + ", ".join(f"{n:,}" for n in OPEN))
    for name, rows in growth.items():
        out.append(f"  {name:12}" + "".join(f"{ns:9.1f}" for _, ns in rows))
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    rounds = 1 if parser.parse_args().quick else 4
    print(measure.machine())
    print("\n".join(lines(example_5(rounds), by_open_windows(rounds))))


if __name__ == "__main__":
    main()
