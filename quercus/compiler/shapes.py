"""Binary trees over the components of an operator: the named shapes, all of them, and the cheapest.

A tree is an index, or a pair of trees. SEQ joins neighbours only; AND may join any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product
from math import inf

Tree = int | tuple["Tree", "Tree"]

MAX_LISTED = {"SEQ": 8, "AND": 5}  # components up to which all trees are listed: 429 and 105 of them
MAX_EXACT_AND = 10  # components of an AND up to which every subset is tried; beyond, greedy

JoinCost = Callable[[int, int], float]  # (left mask, right mask) -> cost of that join alone
Floor = Callable[[int], float]  # mask -> what any join that gives it costs at least


def named(shape: str, n: int) -> Tree:
    """left ((0 1) 2) 3, right 0 (1 (2 3)), bushy (0 1) (2 3), inner 0 ((1 2) 3)."""
    return {"left": _left, "right": _right, "bushy": _bushy, "inner": _inner}[shape](tuple(range(n)))


def name_of(tree: Tree, n: int) -> str | None:
    return next((s for s in ("left", "right", "bushy", "inner") if named(s, n) == tree), None)


def _left(items: tuple[int, ...]) -> Tree:
    tree: Tree = items[0]
    for i in items[1:]:
        tree = (tree, i)
    return tree


def _right(items: tuple[int, ...]) -> Tree:
    return items[0] if len(items) == 1 else (items[0], _right(items[1:]))


def _bushy(items: tuple[int, ...]) -> Tree:
    if len(items) == 1:
        return items[0]
    half = (len(items) + 1) // 2
    return (_bushy(items[:half]), _bushy(items[half:]))


def _inner(items: tuple[int, ...]) -> Tree:
    return items[0] if len(items) == 1 else (items[0], _left(items[1:]))


def mask(tree: Tree) -> int:
    return 1 << tree if isinstance(tree, int) else mask(tree[0]) | mask(tree[1])


def cost(tree: Tree, join: JoinCost) -> float:
    if isinstance(tree, int):
        return 0.0
    left, right = tree
    return cost(left, join) + cost(right, join) + join(mask(left), mask(right))


def every(op: str, n: int) -> Iterator[Tree]:
    """All trees: over neighbours for SEQ (Catalan's number of them), over any components for AND."""

    def over(items: tuple[int, ...]) -> Iterator[Tree]:
        if len(items) == 1:
            yield items[0]
        for left, right in _splits(op, items):
            yield from product(over(left), over(right))

    yield from over(tuple(range(n)))


def _splits(op: str, items: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Each way to part the components once; for AND, the side with the first component is the left one."""
    for size in range(1, len(items)):
        if op == "SEQ":
            yield items[:size], items[size:]
        else:
            for others in combinations(items[1:], size - 1):
                left = (items[0], *others)
                yield left, tuple(i for i in items if i not in left)


def cheapest(op: str, n: int, join: JoinCost, floor: Floor) -> Tree:
    """Dynamic programming over intervals (SEQ) or subsets (AND, greedy when large).

    `floor(mask)` is what any join that gives these components costs at least: it spares looking at splits that cannot
    win.
    """
    return below(op, n, join, floor, inf) or _left(tuple(range(n)))


def below(op: str, n: int, join: JoinCost, floor: Floor, limit: float) -> Tree | None:
    """The cheapest tree, if it costs less than a limit: parts that cost as much are not looked at further."""
    if floor((1 << n) - 1) >= limit:
        return None
    if op == "SEQ":
        return _over_intervals(n, join, floor, limit)
    if n <= MAX_EXACT_AND:
        return _over_subsets(n, join, floor, limit)
    tree = _greedy(n, join)
    return tree if cost(tree, join) < limit else None


def _over_intervals(n: int, join: JoinCost, floor: Floor, limit: float) -> Tree | None:
    best: dict[int, tuple[float, Tree | None]] = {1 << i: (0.0, i) for i in range(n)}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            whole = ((1 << length) - 1) << i
            lowest, chosen, least = limit, None, floor(whole)
            for size in range(1, length):
                left = ((1 << size) - 1) << i
                so_far = best[left][0] + best[whole ^ left][0]
                if so_far + least < lowest:
                    whole_cost = so_far + join(left, whole ^ left)
                    if whole_cost < lowest:
                        lowest, chosen = whole_cost, left
            best[whole] = (lowest, None if chosen is None else _joined(best, chosen, whole ^ chosen))
    return best[(1 << n) - 1][1]


def _joined(best: dict[int, tuple[float, Tree | None]], left: int, right: int) -> Tree:
    a, b = best[left][1], best[right][1]
    assert a is not None
    assert b is not None
    return a, b


def _over_subsets(n: int, join: JoinCost, floor: Floor, limit: float) -> Tree | None:
    best: dict[int, tuple[float, Tree | None]] = {1 << i: (0.0, i) for i in range(n)}
    for whole in range(1, 1 << n):
        if whole & (whole - 1) == 0:
            continue
        first = whole & -whole
        others = whole ^ first
        lowest, chosen, least = limit, None, floor(whole)
        part = (others - 1) & others
        while True:  # each split once: the side with the first component, and the rest
            left, right = first | part, others ^ part
            so_far = best[left][0] + best[right][0]
            if so_far + least < lowest:
                whole_cost = so_far + join(left, right)
                if whole_cost < lowest:
                    lowest, chosen = whole_cost, left
            if part == 0:
                break
            part = (part - 1) & others
        best[whole] = (lowest, None if chosen is None else _joined(best, chosen, whole ^ chosen))
    return best[(1 << n) - 1][1]


def _greedy(n: int, join: JoinCost) -> Tree:
    """Join the cheapest pair, again and again."""
    trees: list[tuple[int, Tree]] = [(1 << i, i) for i in range(n)]
    while len(trees) > 1:
        pairs = ((join(trees[a][0], trees[b][0]), a, b) for a in range(len(trees)) for b in range(a + 1, len(trees)))
        _, a, b = min(pairs)
        joined = (trees[a][0] | trees[b][0], (trees[a][1], trees[b][1]))
        trees = [t for i, t in enumerate(trees) if i not in (a, b)]
        trees.insert(a, joined)
    return trees[0][1]
