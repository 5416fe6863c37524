"""What a run knows of its events before it looks for matches: better than any estimate."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from quercus.ir.expr import Expr

Leaf = tuple[tuple[str, ...], tuple[Expr, ...]]  # the types that a leaf accepts, and the conditions on it alone


@frozen
class Observed:
    """Counts for one window length, of leaves that are routed and filtered, and what a sample says of conditions."""

    leaves: Mapping[Leaf, float]
    events: float  # of all types
    selectivity: Mapping[Expr, float]
    order: Mapping[tuple[str, str], float]  # pairs of two variables in order, against those that chance would give
    windows: float = 1.0  # that the stream is long
    keys: float = 1.0  # of PARTITION BY
    most_bytes: float = float("inf")  # that internal buffers may be expected to hold
