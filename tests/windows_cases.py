"""Random pattern windows and streams: conditions that compare with FIRST, PREV, ITER and NUM, nulls, ties in time."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import quercus as qc
from quercus.ir import expr as x
from quercus.ir.window import FIRST, HERE, PREV, WINDOW, PatternWindow

KINDS: dict[str, x.Type] = {"k": "string", "j": "int64", "v": "int64", "f": "float64", "s": "string"}
SCHEMA = qc.Schema(dict(KINDS), time="ts", type="type")
NAMES: dict[x.Type, tuple[str, ...]] = {"string": ("k", "s"), "int64": ("j", "v"), "float64": ("f",)}
OPS: tuple[x.CompareOp, ...] = ("=", "<>", "<", "<=", ">", ">=")
ARITHMETIC: tuple[x.ArithmeticOp, ...] = ("+", "-", "*", "%")
TS = x.Column(HERE, "ts", "int64")


def stream(random: Random, most: int = 36) -> list[dict[str, Any]]:
    """Rows in order of time."""
    nulls = random.choice((0.0, 0.0, 0.1, 0.3))
    keys = random.choice((1, 1, 2, 2, 3, 6))
    ties = random.choice((0.0, 0.0, 0.3, 0.7))
    ts = random.choice((0, -5, 10**9))
    rows = []
    for _ in range(random.randint(0, most)):
        ts += 0 if random.random() < ties else random.choice((1, 1, 2, 7))
        values = {
            "k": "abcdef"[random.randrange(keys)],
            "j": random.randrange(keys),
            "v": random.randint(-3, 3),
            "f": random.choice((0.0, -0.0, 0.5, 1.0, 2.5, math.nan)),
            "s": random.choice(("", "A", "a", "b", "ß")),
        }
        rows.append({"ts": ts, "type": "T", **{n: None if random.random() < nulls else v for n, v in values.items()}})
    return rows


def pattern_window(random: Random) -> PatternWindow:
    """Of one of several shapes, most with a key somewhere."""
    make = random.choice((_by_key, _by_key, _by_key, _paper, _bounded, _anything))
    return make(random)


# Shapes ---------------------------------------------------------------------------------------------------------------


def _paper(random: Random) -> PatternWindow:
    """As in the examples of the paper."""
    same, other = _key(random)
    start, end, drop = local(random), local(random), local(random)
    return PatternWindow(
        start,
        random.choice((both(same, end), same, end)),
        random.choice((either(other, drop, local(random)), either(other, drop), other, x.TRUE, x.TRUE, drop)),
        random.choice((same, same, both(same, local(random)), x.FALSE, x.TRUE)),
    )


def _by_key(random: Random) -> PatternWindow:
    """A key, and conditions on the window beside it."""
    same, other = _key(random)
    if random.random() < 0.3:
        more, less = _key(random)
        same, other = both(same, more), either(other, less)
    return PatternWindow(
        random.choice((x.TRUE, local(random), local(random))),
        both(same, condition(random, 1)),
        random.choice(
            (
                either(other, *(condition(random, 1) for _ in range(3))),
                x.TRUE,
                both(either(other, x.TRUE), bound(random)),
            )
        ),
        both(same, random.choice((x.TRUE, x.TRUE, condition(random, 1)))),
    )


def _bounded(random: Random) -> PatternWindow:
    """With limits on time and tuples."""
    w = _paper(random)
    parts = [bound(random) for _ in range(random.randint(1, 2))]
    return PatternWindow(w.start, w.termination, x.Logic("and", (w.iteration, *parts)), w.filter)


def _anything(random: Random) -> PatternWindow:
    start = random.choice((x.TRUE, local(random), local(random), x.FALSE))
    others = [
        random.choice((condition(random, 2), condition(random, 1), local(random), x.TRUE, x.FALSE)) for _ in range(3)
    ]
    return PatternWindow(start, *others)


# Conditions -----------------------------------------------------------------------------------------------------------


def both(*items: x.Expr) -> x.Expr:
    return x.Logic("and", items)


def either(*items: x.Expr) -> x.Expr:
    return x.Logic("or", items)


def _key(random: Random) -> tuple[x.Expr, x.Expr]:
    """`K = FIRST(K)`, and the other way round."""
    name = random.choice(("k", "k", "k", "j", "j", "f"))
    first = name
    if random.random() < 0.1:
        first = {"k": "s", "j": "v", "f": "f"}[name]
    here, there = x.Column(HERE, name, KINDS[name]), x.Column(FIRST, first, KINDS[name])
    one, two = (here, there) if random.random() < 0.7 else (there, here)
    same = x.Compare("=", one, two)
    other = x.Compare("<>", one, two) if random.random() < 0.7 else x.NotTrue(same)
    return same, other


def bound(random: Random) -> x.Expr:
    """What holds up to some time or count."""
    past = x.Arithmetic("-", TS, x.Column(random.choice((FIRST, FIRST, PREV)), "ts", "int64"), "int64")
    grows: x.Expr = random.choice((past, past, x.Column(WINDOW, "iter", "int64")))
    most: x.Expr = x.Const(random.randint(0, 12), "int64")
    if random.random() < 0.2:
        most = x.Column(random.choice((FIRST, PREV)), "v", "int64")
    if random.random() < 0.15:
        return x.Compare("<", x.Column(WINDOW, "num", "int64"), most)
    return x.Compare("<", grows, most) if random.random() < 0.6 else x.Compare(">=", most, grows)


def local(random: Random) -> x.Expr:
    """Of the tuple at hand alone."""
    return condition(random, random.choice((0, 0, 0, 1)), (HERE,))


def condition(random: Random, depth: int, variables: tuple[str, ...] = (HERE, HERE, FIRST, PREV, WINDOW)) -> x.Expr:
    if depth and random.random() < 0.8:
        choice = random.randrange(5)
        if choice == 0:
            return x.NotTrue(condition(random, depth - 1, variables))
        items = tuple(condition(random, depth - 1, variables) for _ in range(random.choice((2, 2, 3))))
        return x.Logic("and" if choice < 3 else "or", items)
    return _atom(random, variables)


def _atom(random: Random, variables: tuple[str, ...]) -> x.Expr:
    kind: x.Type = random.choice(("string", "int64", "int64", "float64"))
    choice = random.random()
    if choice < 0.05:
        return random.choice((x.TRUE, x.FALSE, x.Const(None, "bool")))
    if choice < 0.12:
        return x.IsNull(_value(random, kind, variables), random.random() < 0.5)
    if choice < 0.2:
        items = tuple(_constant(random, kind) for _ in range(random.randint(1, 3)))
        return x.InSet(_value(random, kind, variables), items, random.random() < 0.3)
    left = _value(random, kind, variables)
    if random.random() < 0.4:
        return x.Compare(random.choice(OPS), left, _constant(random, kind))
    other: x.Type = "float64" if kind == "int64" and random.random() < 0.1 else kind
    return x.Compare(random.choice(OPS), left, _value(random, other, variables))


def _constant(random: Random, kind: x.Type) -> x.Const:
    if random.random() < 0.03:
        return x.Const(None, kind)
    if kind == "string":
        return x.Const(random.choice(("a", "b", "A", "zz", "")), "string")
    if kind == "float64":
        return x.Const(random.choice((0.0, 0.5, 2.0)), "float64")
    return x.Const(random.randint(-2, 4), "int64")


def _value(random: Random, kind: x.Type, variables: tuple[str, ...]) -> x.Expr:
    var = random.choice(variables)
    if kind == "string":
        column: x.Expr = x.Column(HERE if var == WINDOW else var, random.choice(NAMES["string"]), "string")
        if random.random() < 0.1:
            return x.Call(random.choice(("lower", "upper")), (column,), "string")
        return column
    if kind == "int64" and random.random() < 0.1:
        return x.Call("length", (_value(random, "string", variables),), "int64")
    if var == WINDOW:
        column = x.Column(WINDOW, random.choice(("iter", "num")), "int64")
    elif random.random() < 0.15 and kind == "int64":
        column = x.Column(var, "ts", "int64")
    else:
        column = x.Column(var, random.choice(NAMES[kind]), kind)
    if random.random() < 0.2:
        op = random.choice(ARITHMETIC)
        other: x.Expr = random.choice((_constant(random, "int64"), _value(random, "int64", variables)))
        wide = "float64" in (column.type, other.type)
        return x.Arithmetic(op, column, other, "float64" if wide else "int64")
    if random.random() < 0.05:
        return x.Negative(column, column.type)
    return column
