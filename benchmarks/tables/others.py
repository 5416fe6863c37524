"""Tables of the planner, of pattern windows, of cubes and of `why`."""

from __future__ import annotations

from benchmarks.record import read
from benchmarks.tables.markdown import Document, markdown, ms, short, times, when

SEEN = {"chosen plan": "a plan that has seen its data", "first runs": "the first run of a plan"}


def chosen(document: Document) -> str:
    """How near the planner's choices are to the best shapes."""
    found = document["figures"]["summary"]
    rows = [
        (SEEN[what], f"{one['queries']:,}", f"{one['near']:.1%}", f"{one['middle']:.2f}", f"{one['worst']:.2f}")
        for what, one in found.items()
    ]
    heads = ("CPU time, one run of the benchmark", "queries", "within 1.2 times the best shape", "half within", "worst")
    return f"{markdown(heads, rows)}\n\n{when(document)}"


WAYS = {
    "quercus": "`q.run`",
    "windows alone": "its windows alone, without the language",
    "duckdb, lead": "DuckDB, `lead` over persons",
    "duckdb, asof": "DuckDB, ASOF join",
    "python, by person": "Python, windows by person in a dictionary",
    "python, straight": "Python, Algorithm 1 as printed: at least",
}


def example(document: Document) -> str:
    """Example 5 in every way."""
    found = document["figures"]["example 5"]
    rows = [
        (WAYS[name], ms(seconds), "" if name == "quercus" else times(seconds / found["quercus"]))
        for name, seconds in found.items()
    ]
    return f"{markdown(('', 'CPU ms', ''), rows)}\n\n{when(document)}"


def opened(document: Document) -> str:
    """By the number of open windows."""
    figures = document["figures"]
    rows = [(name, *(f"{ns:.0f}" for ns in row), f"{row[-1] / row[0]:.1f}x") for name, row in figures["growth"].items()]
    rows.append(("windows that outlast a push", *(f"{share:.0%}" for share in figures["beyond"]), ""))
    return markdown(("open windows", *(f"{n:,}" for n in figures["open"]), "last to first"), rows)


def shared(document: Document) -> str:
    """Several windows, alone and in one pass."""
    figures = document["figures"]
    rows = []
    for name, row in figures["shared"].items():
        kind, _, way = name.rpartition(": ")
        saved = f"{1 - row[-1] / figures['shared'][f'{kind}: alone'][-1]:.0%}" if way == "one pass" else ""
        rows.append((name, *map(short, row), saved))
    last = figures["windows"][-1]
    return markdown(("windows", *map(str, figures["windows"]), f"saved at {last}"), rows)


def cube(document: Document) -> str:
    """E-Cube's workloads: CPU milliseconds until all matches are listed, and of their numbers only."""
    rows = []
    ways = ("independent", "top_down", "bottom_up", "chase")
    for number, one in document["figures"]["workloads"].items():
        seconds = one["seconds"]
        took = (" / ".join(f"{1e3 * s:.0f}" for s in seconds[way]) for way in ways)
        over = (times(a / own) for a, own in zip(seconds["independent"], seconds["chase"], strict=True))
        rows.append((number, f"{sum(one['matches'].values()):,}", *took, *over))
    heads = ("", "matches", *ways, "chase over independent, listed", "counted", "found")
    large = document["figures"]["hundred"]
    took = {name: f"{1e3 * large[name]:.0f} ms" for name in ("cube", "all")}
    said = (
        f"Chase itself took {1e3 * document['figures']['chase']:.0f} ms for 50 queries. A cube of 100 queries at all "
        f"levels of the sectors, over 1,000,000\nevents with {large['matches']:,.0f} matches, took {took['cube']}, "
        f"{large['cube'] / large['dearest']:.1f} times as long as its most expensive query alone; one by\none they "
        f"took {took['all']}."
    )
    rounds = f"{document['figures']['rounds']} rounds. {when(document)}"
    return f"{markdown(heads, rows)}\n\n{said}\n\n{rounds}"


def cube_bars(document: Document) -> str:
    """The same workloads over real bars."""
    found = document["figures"]["workloads"]
    rows = []
    for number, one in found.items():
        own = one["seconds"]["chase"]
        over = (one["seconds"][way][i] / own[i] for i in (0, 1, 2) for way in ("independent", "top_down", "bottom_up"))
        took = " / ".join(f"{1e3 * s:.0f}" for s in own)
        rows.append((number, f"{sum(one['matches'].values()):,}", took, *map(times, over)))
    heads = (
        "",
        "matches",
        "chase",
        "over `independent`, listed",
        "`top_down`",
        "`bottom_up`",
        "over `independent`, counted",
        "`top_down`",
        "`bottom_up`",
        "over `independent`, found",
        "`top_down`",
        "`bottom_up`",
    )
    events = next(iter(found.values()))["events"]
    said = f"Chase over {events:,} bars, {document['figures']['rounds']} rounds, CPU time. {when(document)}"
    return f"{markdown(heads, rows)}\n\n{said}"


def calibrated(document: Document) -> str:
    """How wrong the model's times and rows are."""
    figures = document["figures"]
    rows = [
        (f"time of {figures['runs']:,} runs, constants as they were", figures["times"]["before"]),
        (f"time of {figures['runs']:,} runs, constants fitted to them", figures["times"]["after"]),
        (f"rows of joins and stacks of {figures['queries']} random queries, with `Stats.collect`", figures["rows"]),
    ]
    heads = ("expected wrongly by a factor of", "half at most", "nine of ten at most")
    table = markdown(heads, [(what, f"{one['half']:.2f}", f"{one['most']:.2f}") for what, one in rows])
    return f"{table}\n\n{when(document)}"


def why(document: Document) -> str:
    rows = [
        (one["stopped by"], f"{one['run']:.2f}", f"{one['why']:.2f}", f"{one['obstacles']}", f"{one['misses']}")
        for one in document["figures"]
    ]
    return f"{markdown(('stopped by', 'run, s', 'why, s', 'obstacles', 'misses'), rows)}\n\n{when(document)}"


# ---- Spark


def spark_batch(document: Document) -> str | None:
    """Runs over 10,000,000 events: with a key beside an empty kernel and a program by hand, without one by cores."""
    without = read("spark-unkeyed")
    if without is None:
        return None
    wall = {name: t["wall"] for name, t in document["figures"]["times"].items()}
    cores = {name: f["times"]["engine"]["wall"] for name, f in without["figures"]["ways"].items()}
    two = cores["two cores"]
    seen = without["figures"]["ways"]["two cores"]["metrics"]
    again = seen["halo"] / max(seen["events"] - seen["halo"], 1)
    keyed = "`SEQ(T0 a, T1 b, T2 c, a.id = b.id = c.id)`, 10,000 keys"
    rows = [
        (keyed, f"{wall['engine']:.2f}", f"{wall['engine'] / wall['empty']:.2f} times the empty kernel"),
        ("the same job with an empty kernel", f"{wall['empty']:.2f}", ""),
        ("the first run of a plan, with a look at the events", f"{wall['first']:.2f}", ""),
        (
            "`applyInPandas` by key over the same engine, types filtered before",
            f"{wall['applyInPandas']:.1f}",
            f"{times(wall['applyInPandas'] / wall['engine'])} as long",
        ),
        ("`SEQ(T0 a, T1 b, T2 c) WITHIN 100 ms`, no key, two cores", f"{two:.2f}", f"{again:.3%} of events sent twice"),
    ]
    rows += [(f"the same, {name}", f"{t:.2f}", times(t / two)) for name, t in cores.items() if name != "two cores"]
    rows.append(("two processes that share nothing, beside one", "", times(without["figures"]["machine"])))
    return f"{markdown(('10,000,000 events in Parquet', 'wall s', ''), rows)}\n\n{when(document)}"


def spark_joins(document: Document) -> str:
    wall = {name: t["wall"] for name, t in document["figures"]["times"].items()}
    rows = [
        (what, f"{wall[own]:.2f}", f"{wall[other]:.2f}", times(wall[other] / wall[own]))
        for what, own, other in (
            ("a key; joined on it", "W2", "W2 joins"),
            ("no key; joined on buckets of time, written by hand", "W1", "W1 joins"),
            ("no key; joined on times alone, as one writes it first", "W1", "W1 plain joins"),
        )
    ]
    return markdown(("1,000,000 events", "engine, wall s", "Spark SQL", "times as long"), rows)


def spark_streams(document: Document) -> str:
    rows = [
        (
            f"{one['rows']:,.0f}",
            str(one["groups"]),
            f"{one['early']:,.0f}",
            f"{one['rate']:,.0f}",
            f"{one['state'] / 1e6:.0f}",
        )
        for one in document["figures"]
    ]
    return markdown(("rows a batch", "groups", "rows a second at first", "warm", "MB of state"), rows, left=0)
