"""What a negated sub-query costs, searched for each match or kept in a view: nanoseconds of one window, roughly."""

from __future__ import annotations

from math import factorial

from quercus.ir import tree as t

CANDIDATE = 6.0  # an event that is looked at
RECORD = 10.0  # a result of a view that is looked at
STORE = 20.0  # ... that is kept
LOOKUP = 80.0  # an interval that a view is asked for
PART = 1 / 3  # of a window, that lies between two neighbours


def searched(body: t.Node, asks: float) -> float:
    """A search for each match, until the first result."""
    rows = [n.estimate.rows for n in t.positive(body) if isinstance(n, t.Buffer)]
    found = body.estimate.rows * PART ** len(rows)
    each = _candidates(rows, PART) / max(1.0, found)
    return asks * CANDIDATE * max(each, len(rows))


def viewed(body: t.Node, asks: float) -> float:
    """All results once, and a lookup for each match."""
    rows = [n.estimate.rows for n in t.positive(body) if isinstance(n, t.Buffer)]
    found = body.estimate.rows * PART ** len(rows)
    return _candidates(rows, 1.0) * CANDIDATE + body.estimate.rows * STORE + asks * (LOOKUP + min(found, 4.0) * RECORD)


def _candidates(rows: list[float], part: float) -> float:
    """Events looked at to bind leaves one after the other, in a part of a window."""
    total, product = 0.0, 1.0
    for k, r in enumerate(rows):
        product *= max(r * part, 0.01)
        total += product / factorial(k)
    return total
