"""What a run did, as text: behind each node's estimates, and as a summary.

Counts are exact. Times are the only thing that changes from run to run: each has one decimal, and ends its line.
"""

from __future__ import annotations

from collections.abc import Iterator

from quercus.ir import tree as t
from quercus.ir.analysis import Actual, Analysis


def number(v: float) -> str:
    """A cost or a row count, to three figures."""
    if v >= 1e6 or 0 < v < 0.01:
        return f"{v:.2e}"
    return f"{v:.0f}" if v >= 100 else f"{v:.3g}"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


def compared(n: t.Node, a: Actual, windows: float) -> str:
    """A node's estimates beside what it did; rows that were expected, with the factor by which that was wrong."""
    if isinstance(n, t.Empty):
        return actual_text(a)
    off = ""
    if a.rows is not None and windows >= 1:
        off = f" (off {_factor(n.estimate.rows * windows, a.rows)})"
    return f"  est {number(n.estimate.rows)}{off}, cost {number(n.estimate.cost)}{actual_text(a)}"


def _factor(expected: float, actual: float) -> str:
    """How many times too many or too few, one row more or less aside."""
    ratio = (expected + 1) / (actual + 1)
    return f"x{max(ratio, 1 / ratio):.2g}" if max(ratio, 1 / ratio) < 1000 else "x1000 or more"


def actual_text(a: Actual) -> str:
    """What a node did, from what came out of it to the time that it took."""
    said = list(words(a))
    return f" | {', '.join(said)}" if said else ""


def words(a: Actual) -> Iterator[str]:
    if a.matches is not None:
        yield f"matches {a.matches:,}"
    if a.rows is not None:
        yield f"rows {a.rows:,}"
    if a.branches:
        yield "matches by branch " + " + ".join(f"{n:,}" for n in a.branches)
    if a.sets is not None:
        yield f"sets {a.sets:,}"
    if a.tests is not None:
        yield f"tests {a.tests:,}"
    if a.found is not None:
        yield f"found {a.found:,}"
    if a.methods:
        searched = f" ({a.searched:,} by search)" if a.searched else ""
        yield "by " + " and ".join(a.methods) + searched
    if a.asked is not None:
        yield f"intervals {a.asked:,} ({a.hits:,} at hand), results {a.results:,}"
    if a.compared is not None:
        yield f"compared {a.compared:,}"
    if a.bound is not None:
        yield f"bound {a.bound:,}"
    if a.bytes is not None:
        yield f"bytes {a.bytes:,}" + (" shared" if a.shared else "")
    if a.note:
        yield a.note
    if a.seconds is not None:
        yield milliseconds(a.seconds)


def run_facts(a: Analysis, cost: float) -> Iterator[tuple[str, str]]:
    """The run as a whole, as (name, value)."""
    yield "events", f"{a.events:,}" + (", in order" if a.in_order else ", sorted by time first")
    yield "windows", f"{number(a.windows)} (estimates are for one, figures for the whole run)"
    yield "routed", f"{a.routed:,} rows, {a.bytes:,} bytes in {_counted(a.buffers, 'buffer', 'buffers')}"
    if a.again:
        yield "planned again", f"from the data: {a.again}"
    if a.alternatives > 1:
        yield "alternatives", f"{a.alternatives:,}, one after the other"
    if a.totals is not None:
        yield (
            "totalled",
            f"{_counted(a.totals.passes, 'pass', 'passes')} of {_counted(a.totals.states, 'state', 'states')}",
        )
        yield "steps", f"{a.totals.steps:,}"
    else:
        yield "compared", f"{a.compared:,}"
    yield "matches", f"{a.matches:,}"
    if a.groups is not None:
        yield "groups", f"{a.groups:,}"
    for stage, seconds in a.stages:
        yield stage, milliseconds(seconds)
    yield "in all", milliseconds(a.seconds)
    yield "expected", milliseconds(cost * a.windows / 1e9)


def _counted(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
