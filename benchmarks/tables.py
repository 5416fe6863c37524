"""The tables of the documents, each from the results of one benchmark: Markdown, or None where there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.record import read


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table whose first columns are text and whose others are numbers."""
    rule = ["---" if n < left else "---:" for n in range(len(heads))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows))


def taken(document: dict[str, Any]) -> str:
    """Where and when: for the line under a table."""
    machine = document["machine"]
    libraries = machine["versions"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, DuckDB {libraries['duckdb']}, "
        f"Polars {libraries['polars']}; {document['taken']}."
    )


def engine() -> str | None:
    """The workloads beside DuckDB and Polars."""
    document = read("engine")
    if document is None:
        return None
    rows = [
        (
            e["workload"],
            *(f"{1e3 * e['cpu_seconds'][name]:.1f}" for name in ("quercus", "duckdb", "polars")),
            f"{e['cpu_ratio']:.1f}",
        )
        for e in document["figures"]["workloads"]
    ]
    return markdown(("", "Quercus", "DuckDB", "Polars", "times the better"), rows) + f"\n\n{taken(document)}"


def summary() -> str | None:
    """For the README: one line a workload, ratios only."""
    document = read("engine")
    if document is None:
        return None
    flink = (read("flink") or {"figures": {}})["figures"]
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


def cube() -> str | None:
    """E-Cube's workloads: CPU milliseconds until all are found, and until all are listed."""
    document = read("cube")
    if document is None:
        return None
    rows = []
    for number, one in document["figures"]["workloads"].items():
        seconds = one["seconds"]
        own, alone = seconds["chase"], seconds["independent"]
        rows.append(
            (
                number,
                f"{sum(one['matches'].values()):,}",
                *(
                    f"{1e3 * seconds[way][0]:.0f} / {1e3 * seconds[way][1]:.0f}"
                    for way in ("independent", "top_down", "bottom_up", "chase")
                ),
                f"{alone[0] / own[0]:.1f}x",
                f"{alone[1] / own[1]:.1f}x",
            )
        )
    heads = ("", "matches", "independent", "top_down", "bottom_up", "chase", "chase over independent, found", "listed")
    large = document["figures"]["hundred"]
    ms = {name: f"{1e3 * large[name]:.0f} ms" for name in ("cube", "all")}
    said = (
        f"Chase itself took {1e3 * document['figures']['chase']:.0f} ms for 50 queries. A cube of 100 queries at all "
        f"levels of the sectors, over 1,000,000\nevents with {large['matches']:,.0f} matches, took {ms['cube']}, "
        f"{large['cube'] / large['dearest']:.1f} times as long as its most expensive query alone; one by\none they "
        f"took {ms['all']}."
    )
    return f"{markdown(heads, rows)}\n\n{said}"


TABLES: dict[str, Callable[[], str | None]] = {"cube": cube, "engine": engine, "summary": summary}
