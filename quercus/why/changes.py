"""The smallest change of a condition that makes it true of given events."""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import evolve

from quercus.ir import expr as x
from quercus.why.columns import Choice, masks

INCLUSIVE: dict[str, x.CompareOp] = {">": ">=", "<": "<="}


def loosened(c: x.Expr, choice: Choice, i: int) -> x.Expr | None:
    """A condition like this one that is true of the i-th choice; None: only to leave it out would do."""
    for new in _tries(c, choice, i):
        is_true, _ = masks(choice.values(new))
        if is_true[i]:
            return new
    return None


def _tries(c: x.Expr, choice: Choice, i: int) -> Iterator[x.Expr]:
    if any(isinstance(n, x.Same) for n in x.walk(c)):
        return
    null = [n for n in x.walk(c) if isinstance(n, x.Column) and choice.value(n, i) is None]
    if null:
        tests = tuple(x.IsNull(n, False) for n in dict.fromkeys(null))
        yield x.Logic("or", (c, *tests))
        return
    match c:
        case x.InSet(negated=False):
            found = choice.value(c.value, i)
            if isinstance(found, int | float | str) and _can_be_written(found):
                yield evolve(c, items=(*c.items, x.Const(found, c.value.type)))
        case x.Logic(op="and", items=items):
            holds = [bool(masks(choice.values(e))[0][i]) for e in items]
            yield evolve(
                c, items=tuple(e if h else loosened(e, choice, i) or e for e, h in zip(items, holds, strict=True))
            )
        case x.Compare(op="=", left=left, right=x.Const()) if left.type == "string":
            if _can_be_written(choice.value(left, i)):
                yield evolve(c, right=x.Const(choice.value(left, i), "string"))
        case x.Compare(left=left, right=x.Const(type="timestamp")) if c.op != "<>":
            yield evolve(c, op=INCLUSIVE.get(c.op, c.op), right=x.Const(choice.value(left, i), "timestamp"))
        case x.Compare(op="=", right=right) if not isinstance(right, x.Const):
            return  # of keys, to be equal but for a number would mean nothing
        case x.Compare(op="=" | "<" | "<=" | ">" | ">="):
            gap = choice.off(c, i)
            if gap is not None and math.isfinite(gap) and "timestamp" not in (c.left.type, c.right.type):
                yield from _numbers(c, choice, i, gap)


def _can_be_written(value: object) -> bool:
    """Whether the language has a constant for it."""
    return "\n" not in value and "\r" not in value if isinstance(value, str) else math.isfinite(value)  # type: ignore[arg-type]


def _numbers(c: x.Compare, choice: Choice, i: int, gap: int | float) -> Iterator[x.Expr]:
    """Another constant, where there is one; else something added to the right side."""
    numbers = [n for n in x.walk(c) if isinstance(n, x.Const) and n.type in ("int64", "float64")]
    whole = all(n.type == "int64" for n in x.walk(c) if n.type in ("int64", "float64"))
    ops: list[x.CompareOp] = [INCLUSIVE[c.op], c.op] if c.op in INCLUSIVE and not whole else [c.op]
    if len(numbers) == 1:
        (old,) = numbers
        exact = _solved(c, choice, i, old, gap)
        if exact is not None:
            for op in ops:
                for value in _around(exact, whole):
                    yield _with_constant(evolve(c, op=op), old, value)
    for op in ops:
        for value in _around(gap, whole):
            kind: x.Type = "int64" if isinstance(value, int) else "float64"
            if value:
                sign: x.ArithmeticOp = "+" if value > 0 else "-"
                both: x.Type = "int64" if whole and kind == "int64" else "float64"
                yield evolve(c, op=op, right=x.Arithmetic(sign, c.right, x.Const(abs(value), kind), both))
            else:
                yield evolve(c, op=op)


def _solved(c: x.Compare, choice: Choice, i: int, old: x.Const, gap: int | float) -> int | float | None:
    """The constant that makes both sides equal, where they differ by a line in it."""
    assert isinstance(old.value, int | float)
    one, two = (choice.off(_with_constant(c, old, old.value + d), i) for d in (1, 2))
    if one is None or two is None:
        return None
    slope = one - gap
    if not slope or not math.isclose(two - one, slope, rel_tol=1e-6):
        return None
    if isinstance(gap, int) and isinstance(slope, int) and isinstance(old.value, int) and gap % slope == 0:
        return old.value - gap // slope
    found = old.value - gap / slope
    return int(found) if isinstance(old.value, int) and float(found).is_integer() and abs(found) < 2**53 else found


def _around(exact: int | float, whole: bool) -> Iterator[int | float]:
    """Numbers at and just beside one, nearest first: for what rounding or a strict comparison needs."""
    if whole and float(exact).is_integer():
        base = int(exact)
        yield from (base, base - 1, base + 1)
        return
    if whole:
        yield from (math.floor(exact), math.ceil(exact))
        return
    yield float(f"{exact:.6g}")
    yield float(exact)
    low = high = float(exact)
    for _ in range(4):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        yield from (low, high)


def _plain(e: x.Expr) -> x.Expr:
    """`a + (-3)` as `a - 3`."""
    match e:
        case x.Arithmetic(op="+", right=x.Const(value=int() | float() as v) as k) if v < 0:
            return evolve(e, op="-", right=evolve(k, value=-v))
        case x.Arithmetic(op="-", right=x.Const(value=int() | float() as v) as k) if v < 0:
            return evolve(e, op="+", right=evolve(k, value=-v))
        case _:
            return e


def _with_constant(c: x.Expr, old: x.Const, value: int | float) -> x.Compare:
    kind: x.Type = "float64" if isinstance(value, float) else old.type
    value = float(value) if kind == "float64" else value

    def change(e: x.Expr) -> x.Expr:
        if e is old:
            return evolve(old, value=value, type=kind)
        new = x.with_children(e, tuple(change(s) for s in x.children(e)))
        if isinstance(new, x.Arithmetic) and "float64" in (new.left.type, new.right.type):
            new = evolve(new, type="float64")
        return _plain(new)

    found = change(c)
    assert isinstance(found, x.Compare)
    return found
