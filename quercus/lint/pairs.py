"""Two events of a match: whether they ever stand together in the window, and conditions between them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.lint.finding import Finding
from quercus.lint.look import Look
from quercus.lint.values import never

MOST = 30  # pairs that are looked at


def together(look: Look) -> Iterator[Finding]:
    """Pairs that never meet; of those that do, conditions that never hold."""
    apart: set[frozenset[str]] = set()
    positive = [v for v in look.leaves if v not in look.negated and look.count(look.leaves[v].type)]
    for a, b in list(combinations(positive, 2))[:MOST]:
        pattern = _pair(look, a, b)
        if pattern is None or look.holds(pattern) is not False:
            continue
        apart.add(frozenset({a, b}))
        severity = "warning" if {a, b} & look.absent else "error"
        message = f"{_words(look, a, b)} never stand together WITHIN {text.window(look.query.window)}"
        hint = "the window is too short, or they come in another order"
        if look.query.partition_by and look.holds(pattern, keyed=False):
            key = ", ".join(look.query.partition_by)
            message, hint = (
                f"{message} with one {key}",
                f"they do with different ones: is '{key}' what they have in common?",
            )
        yield look.finding("L402", severity, message, hint=hint, span=look.spans[b])  # type: ignore[arg-type]
    for c in look.conditions:
        variables = sorted(x.variables(c.test), key=list(look.leaves).index)
        if len(variables) != 2 or frozenset(variables) in apart:
            continue
        if not all(look.count(look.leaves[v].type) for v in variables):
            continue
        pattern = _pair(look, *variables)
        if pattern is not None and look.holds(pattern) and look.holds(pattern, c.test) is False:
            yield never(look, c, f"of the pairs of {_words(look, *variables)} in a window")


def _words(look: Look, a: str, b: str) -> str:
    order = _order(look.query.pattern, a, b)
    between = " and a later " if order else " and "
    first, second = (b, a) if order == -1 else (a, b)
    return f"'{look.leaves[first].type} {first}'{between}'{look.leaves[second].type} {second}'"


def _pair(look: Look, a: str, b: str) -> p.Pattern | None:
    """Both in the order that the pattern asks for; None: they are in two branches, or two negations."""
    one, other = look.leaves[a], look.leaves[b]
    if {a, b} <= look.negated:
        return None
    order = _order(look.query.pattern, a, b)
    if order is None:
        return None
    if order == 0 or {a, b} & look.negated:
        return p.And((one, other))
    return p.Seq((one, other) if order == 1 else (other, one))


def _order(e: p.Pattern, a: str, b: str) -> int | None:
    """1: a before b; -1: after; 0: in no order; None: never both."""
    parts = p.parts(e)
    inside = [{a, b} & p.all_variables(part) for part in parts]
    for part, found in zip(parts, inside, strict=True):
        if len(found) == 2:
            return _order(part, a, b)
    if isinstance(e, p.Or):
        return None
    if not isinstance(e, p.Seq):
        return 0
    first = next((i for i, found in enumerate(inside) if a in found), 0)
    second = next((i for i, found in enumerate(inside) if b in found), 0)
    return 1 if first < second else -1
