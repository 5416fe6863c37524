"""Markdown from figures: tables, numbers as short as they can be, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]  # as benchmarks/record.py writes it


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table whose first columns are text and whose others are numbers."""
    rule = ["---" if n < left else "---:" for n in range(len(heads))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows))


def short(value: float) -> str:
    """Two digits, or all before the point."""
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def ms(seconds: float) -> str:
    return short(1e3 * seconds)


def times(value: float) -> str:
    return f"{value:,.0f}x" if value >= 100 else f"{value:.1f}x" if value >= 2 else f"{value:.2f}x"


def taken(document: Document) -> str:
    """Where and when: for the line under a table."""
    machine = document["machine"]
    libraries = machine["versions"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, DuckDB {libraries['duckdb']}, "
        f"Polars {libraries['polars']}; {document['taken']}."
    )


def when(document: Document) -> str:
    """The same, without peers."""
    machine = document["machine"]
    return f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:g} before; {document['taken']}."
