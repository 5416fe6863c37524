"""How a pattern window is run: which equalities are its key, and what a tuple alone says of the conditions.

A tuple of another key makes `K = FIRST(K)` false. Where termination and filter then cannot be true, and iteration must
be, it changes nothing but ITER(), which is known from positions. So windows are kept by key, and a tuple touches those
of its own. Where a key is null (or NaN) its comparisons are never true: such windows are kept apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from attrs import frozen

from quercus.backends.local.windows.conditions import (
    UNKNOWN,
    Key,
    bounds_of,
    keys_in,
    knowing,
    may_be_true,
    must_be_true,
    start_of,
)
from quercus.ir import expr as x
from quercus.ir.window import PatternWindow


@frozen
class Sight:
    """What a tuple alone says of each condition: where it may be true for a window, and where it is for all."""

    may_end: x.Expr
    must_end: x.Expr
    may_stay: x.Expr
    must_stay: x.Expr
    may_take: x.Expr
    must_take: x.Expr

    @property
    def exact(self) -> bool:
        """Windows have no say."""
        return (self.may_end, self.may_stay, self.may_take) == (self.must_end, self.must_stay, self.must_take)

    @property
    def hopeless(self) -> bool:
        """No tuple at all leaves windows as they are."""
        return self.may_end == x.TRUE or self.must_stay == x.FALSE or self.may_take == x.TRUE

    @property
    def neutral(self) -> bool:
        """Every tuple does."""
        return self.may_end == x.FALSE and self.must_stay == x.TRUE and self.may_take == x.FALSE


@frozen
class WindowPlan:
    """A pattern window, taken apart. `rest` and `bound` are the iteration condition: both must be true."""

    window: PatternWindow
    start: x.Expr
    rest: x.Expr
    bound: x.Expr
    keys: tuple[Key, ...]
    own: Sight  # of windows of the tuple's own key
    foreign: tuple[Sight, ...]  # where this key differs, one for each
    missing: tuple[Sight, ...]  # where it is null
    reason: str  # of what a tuple touches, for people

    @property
    def alike(self) -> bool:
        """All windows of one key do the same."""
        return self.bound == x.TRUE and self.own.exact

    @property
    def ranged(self) -> bool:
        """What a window takes in is a range of what its key can take in."""
        others = (*self.foreign, *self.missing)
        return self.own.may_take == self.own.must_take and all(s.may_take == x.FALSE for s in others)


@lru_cache(maxsize=256)
def plan_of(w: PatternWindow) -> WindowPlan:
    rest, bound = bounds_of(w.iteration)
    conditions = (w.termination, rest, w.filter)
    candidates = [k for k in keys_in(conditions) if not sight(conditions, {k: x.FALSE}).hopeless]
    sure = [k for k in candidates if sight(conditions, {k: x.FALSE}).neutral]
    keys = tuple(sure or candidates[:1])
    return WindowPlan(
        w,
        start_of(w),
        rest,
        bound,
        keys,
        sight(conditions, dict.fromkeys(keys, x.TRUE)),
        tuple(sight(conditions, {k: x.FALSE}) for k in keys),
        tuple(sight(conditions, {k: UNKNOWN}) for k in keys),
        _reason(keys, conditions, bound),
    )


def sight(conditions: tuple[x.Expr, x.Expr, x.Expr], truth: Mapping[Key, x.Const]) -> Sight:
    """Where it is known what some keys' comparisons say."""
    end, stay, take = (knowing(c, truth) for c in conditions)
    return Sight(
        *(may_be_true(end), must_be_true(end)),
        *(may_be_true(stay), must_be_true(stay)),
        *(may_be_true(take), must_be_true(take)),
    )


def _reason(keys: tuple[Key, ...], conditions: tuple[x.Expr, x.Expr, x.Expr], bound: x.Expr) -> str:
    own = sight(conditions, dict.fromkeys(keys, x.TRUE))
    alike = bound == x.TRUE and own.exact
    told = "all at once" if alike else "one by one"
    if keys:
        names = ", ".join(map(_told, keys))
        return f"open windows are kept by {names}; a tuple touches those of its own, {told}"
    found = keys_in(conditions)
    if not found:
        return f"no condition compares a tuple with FIRST() by =: a tuple touches all open windows, {told}"
    names = ", ".join(map(_told, found))
    return f"a tuple that differs in {names} can close, drop or enlarge a window: a tuple touches all, {told}"


def _told(k: Key) -> str:
    if isinstance(k.here, x.Column):
        return k.here.attr
    return f"an expression of {', '.join(sorted(attr for _, attr in x.columns(k.here)))}"
