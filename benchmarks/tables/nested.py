"""Tables of nested queries: docs/nested.md."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.tables.markdown import Document, markdown, short, times

WHAT = {
    "fig19": "length {}",
    "fig21": "number {}",
    "fig23": "length {}",
    "neel6a": "{}",
    "neel6b": "{}",
    "neel6c": "{}",
}


def windows(document: Document) -> str:
    """Fig. 10, with what views save."""
    one = document["figures"]["experiments"]["fig10"]
    rows = [
        (name, f"{one['matches'][name]:,}", *map(short, row.values()), times(row["iterative"] / row["balanced"]))
        for name, row in one["rows"].items()
    ]
    ways = next(iter(one["rows"].values()))
    least = f"A run that finds next to nothing takes {document['figures']['least']:.1f} ms."
    return markdown(("window", "matches", *ways, "balanced over iterative"), rows) + f"\n\n{least}"


def work(document: Document) -> str:
    """What views had to search for, and what the search match by match did."""
    found = document["figures"]["work"]
    rows = [
        (name, *(f"{one['balanced'][k]:,}" for k in ("asked", "hits", "results")), f"{one['iterative']['results']:,}")
        for name, one in found.items()
        if "index" not in one
    ]
    heads = ("intervals asked for", "held already", "results found by `balanced`", "by `iterative`")
    return markdown(("window", *heads), rows)


def tests(document: Document) -> str:
    """Fig. 23: what negations looked at."""
    rows = [
        (f"length {name}", way, f"{did['tests']:,}", f"{did['compared']:,}" if "compared" in did else "")
        for name, one in document["figures"]["work"].items()
        if "index" in one
        for way, did in one.items()
        if "tests" in did
    ]
    return markdown(("", "", "tests", "events compared"), rows, left=2)


def _of(document: Document, names: Sequence[str]) -> str:
    found = document["figures"]["experiments"]
    rows = [
        (WHAT.get(name, "{}").format(query), f"{found[name]['matches'][query]:,}", *map(short, row.values()))
        for name in names
        for query, row in found[name]["rows"].items()
    ]
    ways = next(iter(found[names[0]]["rows"].values()))
    return markdown(("", "matches", *ways), rows)


def plain(document: Document) -> str:
    return _of(document, ["fig10-plain"])


def positive(document: Document) -> str:
    return _of(document, ["fig19", "fig21"])


def negated(document: Document) -> str:
    return _of(document, ["fig23", "neel6a", "neel6b", "neel6c"])


def cached(document: Document) -> str:
    return _of(document, ["neel8"])


def longer(document: Document) -> str:
    """Over more trades, an index beside a view."""
    found = document["figures"]["longer"]
    rows = [(way, *(short(row[way]) for row in found.values())) for way in ("balanced", "index")]
    rows.append(("factor", *(times(row["balanced"] / row["index"]) for row in found.values())))
    return markdown(("", *(f"length {name}" if name.isdigit() else name for name in found)), rows)


def correlated(document: Document) -> str:
    found = document["figures"]["correlated"]
    rows = [
        (said, *(short(row[way]) for row in found.values()))
        for way, said in (("partitioned", "parts"), ("one view", "one view"))
    ]
    return markdown(("values", *found), rows)


def memory(document: Document) -> str:
    found = document["figures"]["memory"]
    ways = next(iter(found.values()))
    return markdown(("window, kB", *ways), [(name, *map(short, row.values())) for name, row in found.items()])
