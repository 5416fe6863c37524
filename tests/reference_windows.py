"""Algorithm 1 of the paper on pattern windows, line by line, over rows: what `[Pattern By (...)]` means.

Conditions are read by tests/reference_scalar.py, over four names: "" is the tuple at hand, `first` and `prev` the first
and the last tuple of the window, `window` its two counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quercus.compiler import syntax as s
from quercus.ir import expr as x
from quercus.ir.window import FIRST, HERE, PREV, WINDOW, PatternWindow
from tests.reference_scalar import Event, evaluate


@dataclass
class Window:
    tuples: list[Event]
    iter: int
    num: int


def closed(
    start: s.Scalar,
    termination: s.Scalar,
    iteration: s.Scalar,
    filter_: s.Scalar,
    stream: Sequence[Event],
) -> list[Window]:
    """The windows that close, in the order of closing, those of one tuple in the order of opening.

    `stream` is in order of time. NUM counts the last tuple of a closed window too (docs/semantics.md).
    """
    open_: list[Window] = []
    output: list[Window] = []
    for t in stream:  # 1: get a new tuple at tau
        if true(start, t, None):  # 2
            open_.append(Window([t], 1, 1))  # 3, 4
        for w in list(open_):  # 6: each open window, in which the time of the last tuple is less than tau
            if not w.tuples[-1].ts < t.ts:
                continue
            if true(termination, t, w):  # 7
                w.tuples.append(t)  # 8
                w.num += 1
                output.append(w)  # 9: close and output the window
                open_.remove(w)
            elif true(iteration, t, w):  # 10
                w.iter += 1  # 11
                if true(filter_, t, w):  # 12
                    w.tuples.append(t)  # 13
                    w.num += 1  # 14
            else:
                open_.remove(w)  # 17: drop the window
    return output


def true(condition: s.Scalar, t: Event, w: Window | None) -> bool:
    """Whether a condition is true, neither false nor unknown. At the start the tuple at hand is the first."""
    first, prev = (t, t) if w is None else (w.tuples[0], w.tuples[-1])
    counts = {} if w is None else {"iter": w.iter, "num": w.num}
    names = {HERE: t, FIRST: first, PREV: prev, WINDOW: Event(-1, -1, 0, "", counts)}
    return evaluate(condition, names, {}) is True


def closed_windows(w: PatternWindow, events: object, limits: object = None, threads: int = 1) -> Closed:
    """The same as what `quercus.backends.local.windows.closed_windows` gives, over its `Events`."""
    stream = rows_of(events)
    conditions = [as_syntax(c) for c in (w.start, w.termination, w.iteration, w.filter)]
    found = closed(conditions[0], conditions[1], conditions[2], conditions[3], stream)
    sizes = [len(one.tuples) for one in found]
    return Closed(
        np.array([one.tuples[-1].pos for one in found], np.int64),
        np.array([one.tuples[0].pos for one in found], np.int64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([t.pos for one in found for t in one.tuples], np.int64),
        np.array([one.iter for one in found], np.int64),
        np.array([one.num for one in found], np.int64),
    )


@dataclass
class Closed:
    close: object
    first: object
    offsets: object
    tuples: object
    iter: object
    num: object


def rows_of(events: object) -> list[Event]:
    """The tuples of `Events`, in order."""
    positions = np.arange(len(events))  # type: ignore[arg-type]
    names = [n for n in events.table.column_names if n != events.schema.time]  # type: ignore[attr-defined]
    columns = {n: events.values(n, positions).to_arrow().to_pylist() for n in names}  # type: ignore[attr-defined]
    types = columns.get(events.schema.type, [""] * len(positions))  # type: ignore[attr-defined]
    return [
        Event(i, i, int(ts), types[i], {n: columns[n][i] for n in names})
        for i, ts in enumerate(events.ts)  # type: ignore[attr-defined]
    ]


def as_syntax(e: x.Expr) -> s.Scalar:
    """A typed expression as the syntax that tests/reference_scalar.py reads."""
    match e:
        case x.Const():
            return s.Constant(e.value)
        case x.Column():
            return s.Attr(e.var, e.attr)
        case x.Negative():
            return s.Unary("-", as_syntax(e.value))
        case x.Arithmetic():
            return s.Binary(e.op, as_syntax(e.left), as_syntax(e.right))
        case x.Compare():
            return s.Chain((as_syntax(e.left), as_syntax(e.right)), (e.op,))
        case x.Logic():
            found = as_syntax(e.items[0])
            for item in e.items[1:]:
                found = s.Binary(e.op, found, as_syntax(item))
            return found
        case x.NotTrue():
            return s.Unary("not", as_syntax(e.value))
        case x.InSet():
            return s.InList(as_syntax(e.value), tuple(as_syntax(i) for i in e.items), e.negated)
        case x.IsNull():
            return s.IsNull(as_syntax(e.value), e.negated)
        case x.Call():
            return s.Call(e.name, tuple(as_syntax(a) for a in e.args))
        case _:
            raise TypeError(f"not of a condition: {e}")
