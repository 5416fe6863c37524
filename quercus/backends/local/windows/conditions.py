"""What a condition of a pattern window says, once something of it is known: the key's comparison, or the tuple alone.

A condition is asked for *true* only; but under `not`, whether a part is false counts too, and unknown is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from attrs import frozen

from quercus.ir import expr as x
from quercus.ir.window import FIRST, HERE, PREV, WINDOW, PatternWindow

UNKNOWN = x.Const(None, "bool")


@frozen
class Key:
    """`here = FIRST(first)`: both as expressions over a tuple without a name."""

    here: x.Expr
    first: x.Expr


def key_of(e: x.Expr) -> Key | None:
    """The key that a comparison, `=` or `<>`, compares: something of the tuple at hand with something of the first."""
    if not isinstance(e, x.Compare) or e.op not in ("=", "<>") or e.left.type != e.right.type or e.left.type == "null":
        return None
    for here, first in ((e.left, e.right), (e.right, e.left)):
        if x.variables(here) == {HERE} and x.variables(first) == {FIRST}:
            return Key(here, renamed(first, {FIRST: HERE}))
    return None


def keys_in(conditions: Iterable[x.Expr]) -> list[Key]:
    """All of them, in the order in which they stand."""
    found = (key_of(n) for e in conditions for n in x.walk(e))
    return list(dict.fromkeys(k for k in found if k is not None))


def renamed(e: x.Expr, names: Mapping[str, str]) -> x.Expr:
    """The same over other variables."""
    if isinstance(e, x.Column):
        return x.Column(names.get(e.var, e.var), e.attr, e.type)
    return x.with_children(e, tuple(renamed(c, names) for c in x.children(e)))


def knowing(e: x.Expr, truth: Mapping[Key, x.Const]) -> x.Expr:
    """The condition where it is known what these keys' comparisons say."""
    found = key_of(e)
    if found is not None and found in truth:
        assert isinstance(e, x.Compare)
        return truth[found] if e.op == "=" else negation(truth[found])
    parts = tuple(knowing(c, truth) for c in x.children(e))
    match e:
        case x.Logic("and"):
            return all_of(parts)
        case x.Logic():
            return any_of(parts)
        case x.NotTrue():
            return negation(parts[0])
        case _:
            return x.with_children(e, parts)


# Connectives that leave out what decides nothing ----------------------------------------------------------------------


def all_of(items: Iterable[x.Expr]) -> x.Expr:
    left: dict[x.Expr, None] = {}
    for i in items:
        if i == x.FALSE:
            return x.FALSE
        left.update(dict.fromkeys(i.items if isinstance(i, x.Logic) and i.op == "and" else (i,)))
    left.pop(x.TRUE, None)
    return _joined("and", tuple(left), x.TRUE)


def any_of(items: Iterable[x.Expr]) -> x.Expr:
    left: dict[x.Expr, None] = {}
    for i in items:
        if i == x.TRUE:
            return x.TRUE
        left.update(dict.fromkeys(i.items if isinstance(i, x.Logic) and i.op == "or" else (i,)))
    left.pop(x.FALSE, None)
    return _joined("or", tuple(left), x.FALSE)


def _joined(op: str, items: tuple[x.Expr, ...], empty: x.Expr) -> x.Expr:
    if len(items) < 2:
        return items[0] if items else empty
    return x.Logic("and" if op == "and" else "or", items)


def negation(e: x.Expr) -> x.Expr:
    match e:
        case x.Const(None):
            return UNKNOWN
        case x.Const(value):
            return x.FALSE if value else x.TRUE
        case x.NotTrue():
            return e.value
        case _:
            return x.NotTrue(e)


# What the tuple alone says --------------------------------------------------------------------------------------------


def may_be_true(e: x.Expr) -> x.Expr:
    """True, of the tuple at hand alone, wherever the condition is true for some window. Never true: never."""
    return _seen(e, true=True, open_=x.TRUE)


def must_be_true(e: x.Expr) -> x.Expr:
    """True, of the tuple at hand alone, only where the condition is true for every window."""
    return _seen(e, true=True, open_=x.FALSE)


def _seen(e: x.Expr, *, true: bool, open_: x.Expr) -> x.Expr:
    """An expression that is true where `e` is true (or false, without `true`), with `open_` for what windows decide."""
    match e:
        case x.NotTrue():
            return _seen(e.value, true=not true, open_=open_)
        case x.Logic():
            together: Callable[[Iterable[x.Expr]], x.Expr] = all_of if (e.op == "and") == true else any_of
            return together([_seen(i, true=true, open_=open_) for i in e.items])
        case x.Const(value):
            return x.FALSE if value is None or value != true else x.TRUE
        case _ if x.variables(e) <= {HERE}:
            return e if true else negation(e)
        case _:
            return open_


# Bounds ---------------------------------------------------------------------------------------------------------------


def bounds_of(iteration: x.Expr) -> tuple[x.Expr, x.Expr]:
    """The iteration condition as (rest, bounds): both must be true.

    A bound never becomes true again after it was not, as long as the window takes nothing in: it compares how much
    time or how many tuples have passed with what does not change meanwhile, or nothing but that. So whether it has
    dropped a window can be asked later, of the tuple before the one at hand.
    """
    items = iteration.items if isinstance(iteration, x.Logic) and iteration.op == "and" else (iteration,)
    flat = [i for item in items for i in (item.items if isinstance(item, x.Logic) and item.op == "and" else (item,))]
    bounds = [i for i in flat if _is_bound(i)]
    return (all_of(i for i in flat if not _is_bound(i)), all_of(bounds)) if bounds else (iteration, x.TRUE)


def _is_bound(e: x.Expr) -> bool:
    if _is_fixed(e):
        return bool(x.variables(e))
    if not isinstance(e, x.Compare):
        return False
    if e.op in ("<", "<="):
        return _grows(e.left) and _is_fixed(e.right)
    return e.op in (">", ">=") and _is_fixed(e.left) and _grows(e.right)


def _is_fixed(e: x.Expr) -> bool:
    """Changes only when the window takes something in."""
    return all(var in (FIRST, PREV) or (var, attr) == (WINDOW, "num") for var, attr in x.columns(e))


def _grows(e: x.Expr) -> bool:
    """The time that has passed, or the number of tuples. `ts - FIRST(ts)` is never negative: if it overflows, it stays
    null.
    """
    match e:
        case x.Column("", "ts") | x.Column("window", "iter"):
            return True
        case x.Arithmetic("-", x.Column("", "ts"), x.Column(var, "ts")):
            return var in (FIRST, PREV)
        case _:
            return False


def start_of(w: PatternWindow) -> x.Expr:
    """The start condition, of the tuple at hand alone: in it, that is the first tuple."""
    start = renamed(w.start, {FIRST: HERE})
    assert x.variables(start) <= {HERE}, start
    return start
