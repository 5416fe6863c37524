"""Comparisons that go round in a circle: against all values that could be there."""

from __future__ import annotations

import operator
from itertools import product
from math import nan
from random import Random

from quercus.compiler.circles import circle
from quercus.ir import expr as x

NAMES = "abcd"
OPS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne}
VALUES = (0.0, 1.0, 2.0, 3.0, nan)  # as many as there are names, in any order, and one that is in none


def column(var: str) -> x.Expr:
    return x.Column(var, "v", "float64")


def once(e: x.Expr) -> x.Expr:
    return x.Arithmetic("*", e, x.Const(1.0, "float64"), "float64")


def drawn(r: Random) -> list[tuple[str, str, str]]:
    return [(*r.sample(NAMES, 2), r.choice(list(OPS))) for _ in range(r.randint(1, 6))]  # type: ignore[misc]


def test_what_is_found_can_never_be_true_and_all_that_never_can_is_found() -> None:
    found = 0
    for seed in range(1500):
        r = Random(seed)
        asked = drawn(r)
        conditions = [
            x.Compare(op, column(a), once(column(b)) if r.random() < 0.3 else column(b))  # type: ignore[arg-type]
            for a, b, op in asked
        ]
        never = not any(
            all(OPS[op](values[NAMES.index(a)], values[NAMES.index(b)]) for a, b, op in asked)
            for values in product(VALUES, repeat=len(NAMES))
        )
        said = circle(conditions, lambda _: True)
        assert (said is not None) is never, asked
        if said is not None:
            found += 1
            assert set(said) <= set(conditions)
            assert circle(said, lambda _: True) is not None, "what is said is enough"
    assert 300 < found < 1200


def test_conditions_that_may_not_hold_say_nothing() -> None:
    a, b = column("a"), column("b")
    both = [x.Compare("<", a, b), x.Compare("<", b, a)]
    assert circle(both, lambda _: True) == both
    assert circle(both, lambda c: c is both[0]) is None
    assert circle([x.Compare("<>", a, a)], lambda _: True) is None, "NaN passes it"
    assert circle([x.Compare("<", a, a)], lambda _: True) is not None
