"""The part of candidates that pass a condition, from how the values of attributes are spread.

A spread is some ranges with weights: from quantile to quantile, or single values where there are few. A comparison of
two spreads compares all their ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from quercus.ir import expr as x
from quercus.stats import Attribute, Stats

NEVER = 1e-6  # what no value seen so far would pass
Types = Mapping[str, tuple[str, ...]]  # the event types of each variable


@frozen(eq=False)
class Spread:
    """Ranges, over each of which values are even, with weights that add up to the part that is not null."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    weights: NDArray[np.float64]


def known(c: x.Column, stats: Stats, types: Types) -> list[tuple[float, Attribute]]:
    """What is known of a column, type by type, each with its part of the events."""
    found = [(stats.rates.get(t, 0.0), stats.attributes[t][c.attr]) for t in types.get(c.var, ()) if _has(stats, t, c)]
    total = sum(rate for rate, _ in found)
    return [(rate / total, a) for rate, a in found] if total > 0 else []


def _has(stats: Stats, name: str, c: x.Column) -> bool:
    return c.attr in stats.attributes.get(name, {})


def compared(e: x.Compare, stats: Stats, types: Types) -> float | None:
    """The selectivity of a comparison; None: nothing is known of one side."""
    if e.op in ("=", "<>"):
        part = _equal(e, stats, types)
        if part is None:
            return None
        return part if e.op == "=" else max(0.0, _there(e, stats, types) - part)
    left, right = spread(e.left, stats, types), spread(e.right, stats, types)
    if left is None or right is None:
        return None
    part = float((_less(left, right) * left.weights[:, None] * right.weights[None, :]).sum())
    if e.op in (">", ">="):
        part = _there(e, stats, types) - part
    return min(1.0, max(part, NEVER))


def _less(left: Spread, right: Spread) -> NDArray[np.float64]:
    """How often a value of each range on the left is less than one of each range on the right."""
    a, top, b, end = left.low[:, None], left.high[:, None], right.low[None, :], right.high[None, :]
    width, other = top - a, end - b
    thin, narrow = np.maximum(width, 1e-300), np.maximum(other, 1e-300)

    def below(t: Any) -> Any:
        """What lies below all numbers up to t, added up."""
        return (np.clip(t, a, top) - a) ** 2 / (2 * thin) + np.maximum(t - top, 0.0)

    single = np.where(width > 0, np.clip((b - a) / thin, 0.0, 1.0), (a < b) + 0.5 * (a == b))
    found: NDArray[np.float64] = np.where(other > 0, (below(end) - below(b)) / narrow, single)
    return np.clip(found, 0.0, 1.0)


def _there(e: x.Compare, stats: Stats, types: Types) -> float:
    """The part of candidates that have values on both sides."""
    part = 1.0
    for side in (e.left, e.right):
        if isinstance(side, x.Column):
            part *= 1 - sum(w * a.nulls for w, a in known(side, stats, types))
    return part


def _equal(e: x.Compare, stats: Stats, types: Types) -> float | None:
    left, right = e.left, e.right
    if isinstance(left, x.Const):
        left, right = right, left
    if not isinstance(left, x.Column):
        return None
    ours = known(left, stats, types)
    if not ours:
        return None
    if isinstance(right, x.Const):
        return sum(w * _of_value(a, right.value) for w, a in ours)
    theirs = known(right, stats, types) if isinstance(right, x.Column) else []
    if not theirs:
        return None
    return sum(u * v * _of_both(a, b) for u, a in ours for v, b in theirs)


def _of_value(a: Attribute, value: object) -> float:
    """How often an attribute has a value."""
    for v, part in a.common:
        if v == value and isinstance(v, bool) == isinstance(value, bool):
            return part * (1 - a.nulls)
    number = isinstance(value, int | float) and a.quantiles
    if number and not a.quantiles[0] <= value <= a.quantiles[-1]:  # type: ignore[operator]
        return NEVER
    return max(_rest(a) / max(a.distinct - len(a.common), 1.0), NEVER) * (1 - a.nulls)


def _of_both(a: Attribute, b: Attribute) -> float:
    """How often two attributes agree: by what is common to both, and by chance otherwise."""
    theirs = dict(b.common)
    shared = [v for v, _ in a.common if v in theirs]
    part = sum(p * theirs[v] for v, p in a.common if v in theirs)
    rest_a = 1 - sum(p for v, p in a.common if v in shared)
    rest_b = 1 - sum(theirs[v] for v in shared)
    others = max(a.distinct - len(shared), b.distinct - len(shared), 1.0)
    return (part + rest_a * rest_b / others) * (1 - a.nulls) * (1 - b.nulls)


def _rest(a: Attribute) -> float:
    return max(0.0, 1 - sum(p for _, p in a.common))


# Spreads --------------------------------------------------------------------------------------------------------------


def spread(e: x.Expr, stats: Stats, types: Types) -> Spread | None:
    """The values of an expression over one variable, as numbers."""
    match e:
        case x.Const():
            if isinstance(e.value, bool) or not isinstance(e.value, int | float):
                return None
            one = np.array([float(e.value)])
            return Spread(one, one, np.ones(1))
        case x.Column():
            parts = [(w, p) for w, a in known(e, stats, types) if (p := _points(a)) is not None]
            if not parts:
                return None
            low, high = (np.concatenate([getattr(p, end) for _, p in parts]) for end in ("low", "high"))
            return Spread(low, high, np.concatenate([w * p.weights for w, p in parts]))
        case x.Negative():
            of = spread(e.value, stats, types)
            return None if of is None else Spread(-of.high, -of.low, of.weights)
        case x.Arithmetic():
            return _arithmetic(e, stats, types)
        case _:
            return None


def _arithmetic(e: x.Arithmetic, stats: Stats, types: Types) -> Spread | None:
    left, right = spread(e.left, stats, types), spread(e.right, stats, types)
    if left is None or right is None or (len(left.low) > 1 and len(right.low) > 1):
        return None
    do: Any = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod}[e.op]
    with np.errstate(all="ignore"):
        if e.op == "%":  # no range stays one
            middle = do((left.low + left.high) / 2, (right.low + right.high) / 2)
            ends = [middle, middle]
        else:
            ends = [do(left.low, right.low), do(left.high, right.high), do(left.low, right.high)]
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    weights = left.weights * right.weights
    return Spread(low, high, weights) if np.isfinite(low).all() and np.isfinite(high).all() else None


def _points(a: Attribute) -> Spread | None:
    """What is common by itself, where that is all there is; else the steps between quantiles."""
    if not a.quantiles:
        return None
    borders = np.array(a.quantiles)
    low, high = (borders[:-1], borders[1:]) if len(borders) > 1 else (borders, borders)
    common = [(float(v), p) for v, p in a.common if not isinstance(v, str | bool)]
    if a.distinct <= len(common):
        values, weights = np.array([v for v, _ in common]), np.array([p for _, p in common])
        return Spread(values, values, weights * (1 - a.nulls))
    return Spread(low, high, np.full(len(low), (1 - a.nulls) / len(low)))
