"""Pattern windows: Example 5 of the paper beside Algorithm 1 in Python and beside DuckDB, and how cost grows.

`python -m benchmarks.windows [--quick]`. CPU seconds with one thread each, best of some turns; all answers are checked.
Algorithm 1 in Python looks at every open window for every tuple: it is run on the first tuples only, when few windows
are open, and its time for all tuples is told as no less than that per tuple. A Python program that keeps windows by
person in a dictionary is run whole. DuckDB starts from its own tables, in two forms, of which the best counts.

Then the cost of a tuple by the number of open windows, for persons that are strings and such that are numbers, beside
what it costs to tell the strings of persons apart and no more, here and in Arrow, DuckDB and Polars; and what several
windows over one stream cost together, beside one after the other.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import quercus as qc
from benchmarks import measure, record
from quercus.backends.local.events import Events, load
from quercus.backends.local.values import from_arrow
from quercus.backends.local.windows import WindowStreams, closed_windows, several
from quercus.backends.local.windows.keyed import part_of, table_of
from quercus.ir import expr as x
from quercus.ir.window import FIRST, HERE, PREV, PatternWindow, conditions

TUPLES, PERSONS, STRAIGHT = 1_000_000, 10_000, 8_000
PLACES = ("Lab", "Home", "Office", "Cafe", "Gym", "Shop", "Park", "Bar", "School", "Room101")
SCHEMA = qc.Schema({"person": "string", "location": "string", "heat": "float64"})
NUMBERED = qc.Schema({"person": "int64", "location": "string", "heat": "float64"})
PERSON, LOCATION = x.Column(HERE, "person", "string"), x.Column(HERE, "location", "string")
SAME = x.Compare("=", PERSON, x.Column(FIRST, "person", "string"))
OTHER = x.Compare("<>", PERSON, x.Column(FIRST, "person", "string"))
HOTTER = x.Compare(">=", x.Column(HERE, "heat", "float64"), x.Column(PREV, "heat", "float64"))
OPEN = (100, 1_000, 10_000, 100_000)
PUSH = 10_000
WINDOWS = (1, 2, 4, 8)
ALONE, WAITING = "strings alone:", "waiting"
FLAT = 1.2  # what the same tuples may take longer beside a thousand times as many windows that wait
HALF, WHOLE = ", half", ", whole"

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

TEXT = """ISTREAM(
    SELECT FIRST(person) AS person, LAST(Timestamp) - FIRST(Timestamp) AS duration
    FROM At[Pattern By (location = 'Lab';
                        person = FIRST(person) AND location = 'Home';
                        person <> FIRST(person) OR location <> 'Lab';
                        person = FIRST(person))])"""


def place(name: str, op: x.CompareOp = "=") -> x.Expr:
    return x.Compare(op, LOCATION, x.Const(name, "string"))


EXAMPLE_5 = PatternWindow(
    place("Lab"), x.Logic("and", (SAME, place("Home"))), x.Logic("or", (OTHER, place("Lab", "<>"))), SAME
)
ONE_BY_ONE = PatternWindow(
    place("Lab"), x.Logic("and", (SAME, place("Home"), HOTTER)), x.Logic("or", (OTHER, place("Lab", "<>"))), SAME
)


def locations(n: int, persons: int, at_work: int = 0) -> pa.Table:
    """So many persons who go from place to place. With `at_work`, that many are in the laboratory first; as many tuples
    say so however many they are, so that streams differ in nothing but the number of persons.
    """
    r = np.random.default_rng(1)
    names = pa.array([f"person{i:06d}" for i in range(max(persons, at_work))])
    who, where = r.integers(0, persons, n), r.integers(0, len(PLACES), n)
    if at_work:
        who[: OPEN[-1]], where[: OPEN[-1]] = np.arange(OPEN[-1]) % at_work, 0
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
    """From the table to the answer, FIRST(person) and LAST(ts) - FIRST(ts), without the language."""
    events = load(table, SCHEMA)
    found = closed_windows(EXAMPLE_5, events, qc.Limits())
    person = table.column("person").take(pa.array(events.input_rows(found.first)))
    return pa.table({"person": person, "duration": events.ts[found.close] - events.ts[found.first]})


def asked(query: qc.Continuous, table: pa.Table) -> pa.Table:
    """The same through the language."""
    return query.run({"At": table}).to_arrow()


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
    query = qc.continuous(TEXT, {"At": SCHEMA})
    for _ in range(rounds):
        _time(best, "quercus", partial(asked, query, table), lambda t: _answer(t) == expected, 5)
        _time(best, "windows alone", partial(own, table), lambda t: _answer(t) == expected, 5)
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


def numbered(w: PatternWindow) -> PatternWindow:
    """The same where a person is a number."""

    def change(e: x.Expr) -> x.Expr:
        if isinstance(e, x.Column) and e.attr == "person":
            return x.Column(e.var, e.attr, "int64")
        return x.with_children(e, tuple(change(c) for c in x.children(e)))

    return PatternWindow(*(change(c) for c in conditions(w)))


def by_open_windows(rounds: int) -> tuple[dict[str, list[float]], list[float]]:
    """Nanoseconds a tuple where about so many windows are open: of the second million tuples, when those who come are
    known. Of a run: what two millions take longer than one. Of a stream in pushes of PUSH: what its second half takes.

    *Spread*: each of twice as many persons is as likely in the laboratory as at home last, and each tuple is about
    any of them. *Waiting*: the same tuples in every column are about as many persons as in the first; the windows of
    all others are open and wait. All tuples of the windows that close are listed, or only their first and last ones.

    And the share of windows that close in a later push than they open in: a stream need not keep the others.
    """
    beyond: list[float] = []
    ways: dict[tuple[str, int], Callable[[], float]] = {}
    for n_open in OPEN:
        spread = locations(2 * TUPLES, 2 * n_open, at_work=n_open)
        waiting = locations(2 * TUPLES, 2 * OPEN[0], at_work=n_open)
        persons = pc.utf8_slice_codeunits(spread["person"], 6).cast(pa.int64())
        for kind, schema, table in (
            ("spread, strings", SCHEMA, spread),
            ("spread, numbers", NUMBERED, spread.set_column(2, "person", persons)),
            (f"{WAITING}, strings", SCHEMA, waiting),
        ):
            change = numbered if schema is NUMBERED else (lambda w: w)
            loaded = {part: load(table.slice(0, n), schema) for part, n in ((HALF, TUPLES), (WHOLE, 2 * TUPLES))}
            for part, events in loaded.items():
                for name, w in (("run, all at once", EXAMPLE_5), ("run, one by one", ONE_BY_ONE)):
                    run = partial(closed_windows, change(w), events, qc.Limits())
                    ways[f"{kind}: {name}{part}", n_open] = partial(_seconds, run)
            for name, bare in (("stream, ends", True), ("stream, listed", False)):
                stream = partial(_streamed, change(EXAMPLE_5), schema, table, bare, n_open)
                ways[f"{kind}: {name}", n_open] = stream
        closed = closed_windows(EXAMPLE_5, load(spread, SCHEMA), qc.Limits())
        beyond.append(float(np.mean(closed.first // PUSH != closed.close // PUSH)))
        for name, alone in told_apart(spread).items():
            ways[f"{ALONE} {name}", n_open] = partial(_seconds, alone)
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):  # all by turns: what else the machine does concerns them alike
        for name, n in ways:
            best[name, n] = min(best[name, n], ways[name, n]())
    found: dict[str, list[float]] = {}
    for (name, n), seconds in best.items():
        if name.endswith(WHOLE):
            more = seconds - best[name.replace(WHOLE, HALF), n]
            found.setdefault(name.removesuffix(WHOLE), []).append(more / TUPLES * 1e9)
        elif not name.endswith(HALF):
            tuples = 2 * TUPLES if name.startswith(ALONE) else TUPLES
            found.setdefault(name, []).append(seconds / tuples * 1e9)
    return dict(sorted(found.items(), key=lambda one: one[0].startswith(ALONE))), beyond


def _seconds(do: Callable[[], Any]) -> float:
    begin = time.process_time()
    do()
    return time.process_time() - begin


def told_apart(table: pa.Table) -> dict[str, Callable[[], Any]]:
    """The persons of all tuples as numbers, and nothing else: no answer can cost less for as many."""
    person = table.column("person").combine_chunks()
    part, rows = part_of(from_arrow(person)), np.arange(len(table))
    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.register("given", table.select(["person"]))
    con.execute("CREATE TABLE persons AS FROM given")
    series = pl.Series(person)
    return {
        "Quercus": lambda: table_of(1).codes([part], rows),
        "Arrow": person.dictionary_encode,
        "DuckDB": lambda: con.sql("SELECT count(*) FROM (SELECT person FROM persons GROUP BY person)").fetchall(),
        "Polars": lambda: series.cast(pl.Categorical),
    }


def _streamed(w: PatternWindow, schema: qc.Schema, table: pa.Table, bare: bool, expected: int) -> float:
    """Seconds for the second half of a stream, at the end of which about so many windows must be open."""
    stream = WindowStreams([w], schema, None, [bare])
    begin = 0.0
    for at in range(0, len(table), PUSH):
        if at == len(table) // 2:
            begin = time.process_time()
        stream.push_all(table.slice(at, PUSH))
    seconds = time.process_time() - begin
    _check(0.7 * expected < stream.open < 1.3 * expected, f"{stream.open:,} open windows, not {expected:,}")
    return seconds


# Sharing --------------------------------------------------------------------------------------------------------------


def sharing(rounds: int) -> dict[str, list[float]]:
    """CPU ms of 1, 2, 4 and 8 different windows over one stream, one after the other and in one pass."""
    events = load(locations(TUPLES, PERSONS), SCHEMA)
    pieces = [load(events.table.slice(at, 10_000), SCHEMA) for at in range(0, TUPLES, 10_000)]
    found: dict[str, list[float]] = {}
    for kind, more in (("all at once", x.TRUE), ("one by one", HOTTER)):
        for k in WINDOWS:
            ws = [_trip(PLACES[i], PLACES[(i + 1 + i // 4) % len(PLACES)], more) for i in range(k)]
            best: dict[str, float] = {}
            counts = [len(closed_windows(w, events, qc.Limits())) for w in ws]
            _time(best, f"run, {kind}: alone", partial(_alone, ws, events), partial(_are, counts), rounds)
            _time(best, f"run, {kind}: one pass", partial(_together, ws, events), partial(_are, counts), rounds)
            for name, groups in (("alone", [[w] for w in ws]), ("one pass", [ws])):
                run = partial(_streams, groups, pieces)
                _time(best, f"stream, {kind}: {name}", run, partial(_are, counts), rounds)
            for name, seconds in best.items():
                found.setdefault(name, []).append(seconds * 1e3)
    return found


def _trip(start: str, end: str, more: x.Expr) -> PatternWindow:
    ends = x.Logic("and", (SAME, place(end), more))
    return PatternWindow(place(start), ends, x.Logic("or", (OTHER, place(start, "<>"))), SAME)


def _alone(ws: list[PatternWindow], events: Events) -> list[int]:
    return [len(closed_windows(w, events, qc.Limits())) for w in ws]


def _together(ws: list[PatternWindow], events: Events) -> list[int]:
    return [len(found) for found in several(ws, events, qc.Limits())]


def _streams(groups: list[list[PatternWindow]], pieces: list[Events]) -> list[int]:
    streams = [WindowStreams(group, SCHEMA) for group in groups]
    counts = [0] * sum(map(len, groups))
    for piece in pieces:
        for i, found in enumerate(closed for stream in streams for closed in stream.push_all(piece)):
            counts[i] += len(found)
    return counts


def _are(expected: list[int], found: list[int]) -> bool:
    return found == expected


def lines(
    times: dict[str, float], growth: dict[str, list[float]], beyond: list[float], shared: dict[str, list[float]]
) -> list[str]:
    mine = times["quercus"]
    out = [f"Example 5, {TUPLES:,} tuples of {PERSONS:,} persons, CPU ms:"]
    for name, seconds in times.items():
        least = "at least " if name == "python, straight" else ""
        out.append(
            f"  {name:18} {least}{seconds * 1e3:,.0f}" + (f"   {seconds / mine:,.1f}x" if name != "quercus" else "")
        )
    out.append("ns a tuple, by open windows: " + ", ".join(f"{n:,}" for n in OPEN))
    for name, row in growth.items():
        out.append(f"  {name:28}" + "".join(f"{ns:9.1f}" for ns in row) + f"   {row[-1] / row[0]:.2f}x")
    out.append(f"  {'windows that outlast a push':28}" + "".join(f"{share:9.0%}" for share in beyond))
    out.append("CPU ms of different windows over one stream: " + ", ".join(map(str, WINDOWS)))
    for name, row in shared.items():
        out.append(f"  {name:28}" + "".join(f"{ms:9.1f}" for ms in row))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    record.options(parser)
    given = parser.parse_args()
    rounds = 1 if given.quick else 4
    print(measure.machine())
    times, (growth, beyond), shared = example_5(rounds), by_open_windows(2 * rounds), sharing(rounds)
    print("\n".join(lines(times, growth, beyond, shared)))
    figures = {
        "example 5": times,
        "open": list(OPEN),
        "growth": growth,
        "beyond": beyond,
        "windows": list(WINDOWS),
        "shared": shared,
    }
    record.keep(given, "windows", figures, ratios(times, growth))


def ratios(times: dict[str, float], growth: dict[str, list[float]]) -> dict[str, record.Ratio]:
    """What a later run is compared with."""
    own, best = times["quercus"], min(seconds for name, seconds in times.items() if name.startswith("duckdb"))
    return {
        "Example 5 over the best of DuckDB": record.Ratio(best / own, 3),
        "Example 5 over Algorithm 1 in Python": record.Ratio(times["python, straight"] / own, 20),
        **{
            f"{OPEN[-1]:,} open windows over {OPEN[0]:,}: {k}": record.Ratio(
                r[-1] / r[0], FLAT if k.startswith(WAITING) else None, less=True
            )
            for k, r in growth.items()
            if not k.startswith(ALONE)
        },
    }


if __name__ == "__main__":
    main()
