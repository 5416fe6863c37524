"""The kernel of running totals against its twin, which looks at every window anew."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from quercus.kernels import reference_running, running


@frozen(eq=False)
class Entries:
    symbol: Any
    mark: Any
    at: Any
    row: Any
    window: int
    group: Any = None
    reach: Any = None


def drawn(seed: int) -> tuple[Any, Entries, int]:
    """An automaton of one to five gaps of random moves, and events for it."""
    r = Random(seed)
    gaps, at = [], 0
    for _ in range(r.randint(1, 5)):
        size = r.randint(1, 4)
        gaps.append((at, size, [[r.randint(-1, size - 1) for _ in range(size)] for _ in range(8)]))
        at += size + r.randint(0, 2)
    states = at
    symbols = []
    for s in range(r.randint(2, 6)):
        edges = []
        for _ in range(r.randint(0, 3)):
            source = r.randrange(states)
            target = r.randint(source + 1, states) if source + 1 < states else states
            edges.append((source, -1 if target == states else target, s, r.randint(0, 1)))
        stays = [(r.randrange(len(gaps)), r.choice((1, 2, 4)), s)] if r.random() < 0.4 or not edges else []
        symbols.append((edges, stays))
    n = r.randint(1, 40)
    mark = [3] + [r.choice((0, 1, 1, 1, 3)) for _ in range(n - 1)]
    ties = r.random() < 0.5
    at_, where = 0, []
    for m in mark:
        at_ = r.randint(-5, 5) if m == 3 else at_ + (r.randint(1, 2) if m or not ties else 0)
        where.append(at_)
    symbol = np.array([r.randrange(len(symbols)) for _ in range(n)], np.uint8)
    group = np.array([r.randrange(3) for _ in range(n)], np.int32) if r.random() < 0.5 else None
    row = np.array(r.sample(range(100), n), np.int64)
    made = Entries(symbol, np.array(mark, np.uint8), np.array(where, np.int64), row, r.randint(0, 8), group)
    return (states, gaps, symbols), made, r.randrange(len(symbols))


def in_one_group(e: Entries) -> bool:
    """Whether a window can begin inside the tie group it ends in, where inner edges are not told apart."""
    begin = 0
    for i, m in enumerate(e.mark.tolist()):
        begin = i if m & 1 else begin
        if e.at[i] - e.at[begin] > e.window:
            return True
    return False


@pytest.mark.parametrize("first", range(0, 1200, 200))
def test_kernel_and_twin_agree(first: int) -> None:
    compared = 0
    for seed in range(first, first + 200):
        given, e, role = drawn(seed)
        if in_one_group(e):
            continue
        kernel, twin = running.Automaton(*given), reference_running.Automaton(*given)
        groups = 1 if e.group is None else 3
        counts, found = kernel.count(e, groups)
        want, firsts = twin.count(e, groups)
        assert (counts, found.tolist()) == (want, firsts), seed
        r = Random(seed)
        values = np.array([r.choice((0, 1, -3, 2**62, -(2**63))) for _ in range(len(e.symbol))], np.int64)
        assert kernel.sums(e, groups, role, values) == twin.sums(e, groups, role, values), seed
        small = np.array([r.choice((0.0, 0.5, -2.0)) for _ in range(len(e.symbol))])
        assert kernel.real_sums(e, groups, role, small).tolist() == twin.sums(e, groups, role, small), seed
        compared += bool(sum(want))
    assert compared > 20


@pytest.mark.parametrize("seed", range(60))
def test_merged_buffers(seed: int) -> None:
    r = Random(seed)
    segments, buffers = r.randint(1, 4), r.randint(1, 5)
    starts = np.zeros((buffers, segments + 1), np.int64)
    columns: list[list[list[int]]] = [[[], [], []] for _ in range(buffers)]
    for s in range(segments):
        rows = sorted(r.sample(range(s * 50, s * 50 + 50), r.randint(0, 12)))
        ts = {row: row // 3 for row in rows}
        for k in range(buffers):
            own = [row for row in rows if r.random() < 0.5]
            columns[k][0] += own
            columns[k][1] += [row * 2 for row in own]
            columns[k][2] += [ts[row] for row in own]
            starts[k, s + 1] = len(columns[k][0])
    given = [tuple(np.array(c, np.int64) for c in b) for b in columns]
    for ties in (True, False):
        made = [a.tolist() for a in running.merge(given, starts, ties)]
        assert made == [list(a) for a in reference_running.merge(given, starts, ties)]


def test_what_does_not_fit_is_refused() -> None:
    gap = (0, 1, [[0]] * 8)
    with pytest.raises(ValueError, match="backwards"):
        running.Automaton(2, [gap, (1, 1, [[0]] * 8)], [([(1, 0, 0, 0)], [])])
    with pytest.raises(ValueError, match="too many"):
        running.Automaton(running.MOST_STATES + 1, [gap], [])
    made = running.Automaton(1, [gap], [([(0, -1, 0, 0)], [])])
    one = np.zeros(1, np.uint8)
    e = Entries(one, np.array([3], np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int64), 5)
    assert made.count(e)[0] == [1]
    with pytest.raises(ValueError, match="symbol"):
        made.count(Entries(one + 1, e.mark, e.at, e.row, 5))
    with pytest.raises(ValueError, match="lengths"):
        made.count(Entries(one, e.mark, np.zeros(2, np.int64), e.row, 5))
    with pytest.raises(ValueError, match="group"):
        made.count(Entries(one, e.mark, e.at, e.row, 5, np.ones(1, np.int32)), 1)
    with pytest.raises(ValueError, match="value"):
        made.sums(e, 1, 0, np.zeros(3, np.int64))
