"""Tables of the engine's own figures: docs/performance.md and README.md."""

from __future__ import annotations

from benchmarks.record import read
from benchmarks.tables.markdown import Document, markdown, ms, short, taken, times


def beside(document: Document) -> str:
    """The workloads beside DuckDB and Polars."""
    rows = [
        (
            e["workload"],
            *(f"{1e3 * e['cpu_seconds'][name]:.1f}" for name in ("quercus", "duckdb", "polars")),
            f"{e['cpu_ratio']:.1f}",
        )
        for e in document["figures"]["workloads"]
    ]
    return markdown(("", "Quercus", "DuckDB", "Polars", "times the better"), rows) + f"\n\n{taken(document)}"


def flink(document: Document) -> str:
    """The workloads beside Flink CEP."""
    rows = [
        (
            name,
            f"{one['matches']:,}",
            ms(one["quercus"]["cpu_seconds"]),
            ms(one["flink"]["cpu_seconds"]),
            times(one["ratio"]),
        )
        for name, one in document["figures"]["workloads"].items()
    ]
    machine, heads = document["machine"], ("", "matches", "Quercus", "Flink CEP", "times as long")
    where = f"{machine['cpu']}, {machine['cores']} cores, Flink {document['figures']['version']}; {document['taken']}."
    return f"{markdown(heads, rows)}\n\n{where}"


def summary(document: Document) -> str:
    """For the README: one line a workload, ratios only."""
    flink = (read("flink") or {"figures": {"workloads": {}}})["figures"]["workloads"]
    last = ("over Flink CEP",) if flink else ()
    rows = []
    for e in document["figures"]["workloads"]:
        cpu = e["cpu_seconds"]
        over = flink.get(e["workload"])
        rows.append(
            (
                e["what"],
                f"{e['matches']:,}",
                f"{1e3 * cpu['quercus']:.1f} ms",
                f"{cpu['duckdb'] / cpu['quercus']:.0f}x",
                f"{cpu['polars'] / cpu['quercus']:.0f}x",
                *([f"{over['ratio']:,.0f}x" if over else ""] if last else []),
            )
        )
    count = document["figures"]["aggregates"]["W6"]
    rows.append(
        (
            "count only, not listed",
            "252,017,033",
            f"{1e3 * count['quercus']:.1f} ms",
            f"{count['times']:,.0f}x",
            "",
            *([""] if last else []),
        )
    )
    heads = ("1,000,000 events", "matches", "Quercus", "over DuckDB", "over Polars", *last)
    return markdown(heads, rows) + f"\n\n{taken(document)}"


def stages(document: Document) -> str | None:
    """Where the time goes, with the floors of reading the types and writing the output."""
    found = document["figures"].get("stages")
    if found is None:  # an older run
        return None
    floors = {e["workload"]: e["floor"] for e in document["figures"]["workloads"]}
    shown = ("load", "route", "buffers", "match", "order", "prepare")
    rows = [
        (name, *(f"{1e3 * row[s]:.1f}" for s in shown), *(f"{1e3 * floors[name][f]:.1f}" for f in ("types", "copy")))
        for name, row in found.items()
    ]
    heads = ("load", "route", "buffers, keys", "matcher", "order", "preparing", "floor: types", "floor: output")
    return markdown(("", *heads), rows)


def events(document: Document) -> str:
    found = document["figures"]["growth"]["W1, more events"]
    rows = [("ms", *(ms(r["seconds"]) for r in found)), ("ns an event", *(_each(r, "events") for r in found))]
    return markdown(("events", *(f"{r['events']:,}" for r in found)), rows)


def windows(document: Document) -> str:
    """By the window, of patterns that find nothing and of one that finds more and more."""
    found = document["figures"]["growth"]["W1, longer window (x1: 100)"]
    parts: dict[str, list[Document]] = {}
    for r in found:
        parts.setdefault(r["of"].rpartition(", ")[0], []).append(r)
    rows = [(f"{name}: ms", *(ms(r["seconds"]) for r in of)) for name, of in parts.items()]
    last = list(parts.values())[-1]
    rows.append((f"{list(parts)[-1]}: matches", *(f"{r['matches']:,}" for r in last)))
    return markdown(("window", *(f"{100 * int(r['of'].rpartition('x')[2]):,}" for r in last)), rows)


def length(document: Document) -> str:
    found = document["figures"]["growth"]["longer pattern"]
    rows = [
        ("matches", *(f"{r['matches']:,}" for r in found)),
        ("ms", *(ms(r["seconds"]) for r in found)),
        ("ns a match", *(_each(r, "matches") for r in found)),
    ]
    return markdown(("components", *(r["of"].split()[0] for r in found)), rows)


def sets(document: Document) -> str:
    found = document["figures"]["growth"]["larger sets, 1,000 matches"]
    parts: dict[str, list[Document]] = {}
    for r in found:
        parts.setdefault(r["query"].removeprefix("PATTERN ").partition(" WITHIN")[0], []).append(r)
    rows = [(f"`{name}`", *(ms(r["seconds"]) for r in of)) for name, of in parts.items()]
    sizes = [r["of"].rpartition(", ")[2].split()[0] for r in next(iter(parts.values()))]
    return markdown(("elements of each set", *sizes), rows)


def _each(r: Document, of: str) -> str:
    return f"{r['seconds'] / r[of] * 1e9:.1f}" if r[of] else "-"


def counted(document: Document) -> str:
    """W6: counted, listed by nobody."""
    found = document["figures"]["aggregates"]
    w6, live = found["W6"], found["streamed"]
    rows = [
        ("`plan.run`", ms(w6["quercus"]), ""),
        ("DuckDB, its fastest form known", ms(w6["duckdb"]), times(w6["times"])),
        ("a stream, 1,000 pushes of 1,000 events", ms(live["stream"]), times(live["stream"] / live["run"])),
    ]
    return markdown(("W6", "CPU ms", "times as long"), rows)


AGGREGATES = {
    "count": "`SEQ(T0 a, T1 b, T2 c)`, COUNT(*)",
    "sum": "the same, SUM(b.id)",
    "negation": "`SEQ(T0 a, !T3 x, T1 b, T2 c)`, COUNT(*)",
    "set": "`SEQ(T0 a, T1+ b, T2 c)`, COUNT(b)",
    "key": "`SEQ(T0 a, T1 b, T2 c, [id])`, COUNT(*)",
    "least": "`SEQ(T0 a, T1 b, T2 c)`, MIN(b.value)",
}


def aggregates(document: Document) -> str:
    """Nanoseconds an event by the events in the window, and what the longest one gives."""
    found = document["figures"]["aggregates"]["windows"]
    rows = [(AGGREGATES[name], *(f"{ns:.0f}" for _, ns, _ in of), of[-1][2]) for name, of in found.items()]
    sizes = [f"{window:,}" for window, _, _ in next(iter(found.values()))]
    return markdown(("", *sizes, "answer"), rows)


def sifted(document: Document) -> str:
    """Sifted in blocks, and one by one."""
    found: dict[tuple[str, str], list[Document]] = {}
    for e in document["figures"]["sifted"]:
        what, share, _ = e["of"].rsplit(", ", 2)
        found.setdefault((what, share), []).append(e)
    rows = [
        (what, share, *(f"{ms(e['sifted'])} / {ms(e['one by one'])}" for e in of), f"{of[-1]['matches']:,}")
        for (what, share), of in found.items()
    ]
    return markdown(("", "share that passes", "100 ms", "1 s", "10 s", "matches in 10 s"), rows, left=2)


def negated(document: Document) -> str:
    """An existence index, and the search match by match."""
    rows = [
        (
            f"`{e['query'].removeprefix('PATTERN ')}`",
            f"{e['matches']:,}",
            ms(e["index"]),
            ms(e["search"]),
            times(e["search"] / e["index"]),
        )
        for e in document["figures"]["negations"]
    ]
    return markdown(("", "matches", "`auto`", "`iterative`", ""), rows)


def streamed(document: Document) -> str:
    """W1 pushed in batches beside a run."""
    found = document["figures"]["streams"]["beside a run"]
    rows = [
        ("a run over the table", ms(found["run_seconds"]), ""),
        (f"pushes of {found['batch']:,} events", ms(found["stream_seconds"]), times(found["ratio"])),
    ]
    return markdown(("W1, 1,000,000 events", "ms", "times as long"), rows)


def pushes(document: Document) -> str:
    found = document["figures"]["streams"]["by batch"]
    rows = [
        ("µs a push", *(short(r["seconds"] / -(-r["events"] // r["batch"]) * 1e6) for r in found)),
        ("million events a second", *(short(r["events"] / r["seconds"] / 1e6) for r in found)),
    ]
    return markdown(("events a push", *(f"{r['batch']:,}" for r in found)), rows)


def threads(document: Document) -> str:
    rows = [
        (e["of"], ms(e["one"]), ms(e["two"]), f"{e['one'] / e['two']:.2f}", f"{e['cpu']:.2f}")
        for e in document["figures"]["threads"]
    ]
    return markdown(("", "one thread, ms", "two, ms", "times as fast", "CPU time of two over one's"), rows)


def small(document: Document) -> str:
    rows = [(name, ms(seconds)) for name, seconds in document["figures"]["small"].items()]
    return markdown(("compile and run on 100 events", "ms"), rows)


def adapting(document: Document) -> str:
    """Each order in each half, and the stream that adapts."""
    first, second = document["figures"]["orders"]
    own = document["figures"]["adaptive"]
    rows = [(name, f"{first[name]:.2f}", f"{second[name]:.2f}") for name in first]
    rows.append(("adapting", f"{own[0]:.2f}", f"{own[1]:.2f}"))
    for what, over in (
        ("over the best order", [t / min(o.values()) for t, o in zip(own, (first, second), strict=True)]),
        ("the worst order over it", [max(o.values()) / t for t, o in zip(own, (first, second), strict=True)]),
    ):
        rows.append((what, *(times(v) for v in over)))
    return markdown(("order", "first half, s", "second half, s"), rows)
