"""Algorithm 1 of the pattern windows paper (Shen et al.), line by line, over rows in the order of the stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from quercus.ir import expr as x
from quercus.ir.window import FIRST, HERE, PREV, WINDOW, PatternWindow
from tests.reference_scalar import Value, arithmetic, both, compare, either, function, negate, truth

Row = Mapping[str, Value]


class Window:
    """An open window: the tuples in it, by position, and its two counts."""

    def __init__(self, first: int) -> None:
        self.tuples = [first]
        self.iter = self.num = 1


class Found(NamedTuple):
    close: int
    iter: int
    tuples: tuple[int, ...]


def closed(w: PatternWindow, rows: Sequence[Row], *, arrival: bool = False) -> list[Found]:
    """The windows that are output, in that order. `arrival`: a tuple is later than all that came before it."""
    found: list[Found] = []
    open_: list[Window] = []
    for at, row in enumerate(rows):
        tau = row["ts"]
        if evaluate(w.start, {HERE: row, FIRST: row}) is True:
            open_.append(Window(at))
        left = []
        for window in open_:
            last = rows[window.tuples[-1]]
            if not (window.tuples[-1] < at if arrival else compare("<", last["ts"], tau)):
                left.append(window)
                continue
            counts = {"iter": window.iter, "num": window.num}
            seen = {HERE: row, FIRST: rows[window.tuples[0]], PREV: last, WINDOW: counts}
            if evaluate(w.termination, seen) is True:
                window.tuples.append(at)
                found.append(Found(at, window.iter, tuple(window.tuples)))
            elif evaluate(w.iteration, seen) is True:
                window.iter += 1
                counts["iter"] = window.iter
                if evaluate(w.filter, seen) is True:
                    window.tuples.append(at)
                    window.num += 1
                left.append(window)
        open_ = left
    return found


def evaluate(e: x.Expr, seen: Mapping[str, Row]) -> Value:
    """The value of an expression: None is unknown."""
    match e:
        case x.Const():
            return e.value
        case x.Column():
            return _typed(seen[e.var][e.attr], e.type)
        case x.Negative():
            return arithmetic("-", 0, evaluate(e.value, seen))
        case x.Arithmetic():
            return _typed(arithmetic(e.op, evaluate(e.left, seen), evaluate(e.right, seen)), e.type)
        case x.Compare():
            return compare(e.op, evaluate(e.left, seen), evaluate(e.right, seen))
        case x.Logic():
            together: Callable[[bool | None, bool | None], bool | None] = both if e.op == "and" else either
            value = truth(evaluate(e.items[0], seen))
            for item in e.items[1:]:
                value = together(value, truth(evaluate(item, seen)))
            return value
        case x.NotTrue():
            return negate(truth(evaluate(e.value, seen)))
        case x.InSet():
            one = evaluate(e.value, seen)
            inside: bool | None = False
            for constant in e.items:
                inside = either(inside, compare("=", one, constant.value))
            return negate(inside) if e.negated else inside
        case x.IsNull():
            return (evaluate(e.value, seen) is None) != e.negated
        case x.Call():
            return function(e.name, evaluate(e.args[0], seen))
        case x.GroupCall() | x.Same():
            raise TypeError(f"not of a window: {e}")


def _typed(value: Value, kind: x.Type) -> Value:
    return float(value) if kind == "float64" and isinstance(value, int) else value
