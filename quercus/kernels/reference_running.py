"""A plain Python twin of `kernels.running`: for each event that ends matches, all partial matches of its window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NONE, NO_VALUE = 2**63 - 1, 2**63 - 2


def merge(buffers: Sequence[Any], starts: Any, ties: bool) -> tuple[list[int], list[int], list[int], list[int]]:
    mask, mark, where, rows = [], [], [], []
    for s in range(len(starts[0]) - 1):
        held: dict[int, list[int]] = {}
        for k, (row, at, ts) in enumerate(buffers):
            for i in range(int(starts[k][s]), int(starts[k][s + 1])):
                bits = held.get(int(row[i]), [0])[0]
                held[int(row[i])] = [bits | 1 << k, int(at[i]), int(ts[i])]
        before: int | None = None
        for r in sorted(held):
            bits, at_, ts_ = held[r]
            mark.append(3 if before is None else 1 if not ties or ts_ != before else 0)
            mask.append(bits)
            where.append(at_)
            rows.append(r)
            before = ts_
    return mask, mark, where, rows


class Automaton:
    """The same names; values are pairs of how many and their sum, or lists of the values of all matches' roles."""

    def __init__(self, states: int, gaps: Any, symbols: Any, accepts: Any = ()) -> None:
        self.states, self.gaps, self.symbols, self.accepts = states, gaps, symbols, accepts

    def count(self, events: Any, groups: int = 1) -> tuple[list[int], list[int]]:
        totals, found = [0] * groups, [-1] * groups
        for i, (n, _) in self._ended(events, -1, None):
            g = 0 if events.group is None else int(events.group[i])
            totals[g] += n
            if n and (found[g] < 0 or events.row[i] < events.row[found[g]]):
                found[g] = i
        return totals, found

    def sums(self, events: Any, groups: int, role: int, values: Any) -> list[Any]:
        totals: list[Any] = [0] * groups
        for i, (_, s) in self._ended(events, role, values):
            totals[0 if events.group is None else int(events.group[i])] += s
        return totals

    def _ended(self, e: Any, role: int, values: Any) -> Any:
        """Each event that can end matches, with how many it ends and the sum over them."""
        for i in range(len(e.symbol)):
            if not any(target < 0 for _, target, _, _ in self.symbols[e.symbol[i]][0]):
                continue
            low = i if getattr(e, "reach", None) is None else int(e.reach[i])
            while (
                getattr(e, "reach", None) is None
                and not e.mark[low] & 2
                and int(e.at[i]) - int(e.at[low - 1]) <= e.window
            ):
                low -= 1
            yield i, self._window(e, low, i, role, values)

    def _window(self, e: Any, low: int, end: int, role: int, values: Any) -> tuple[Any, Any]:
        old = [(0, 0)] * self.states
        old[0] = (1, 0)
        fresh = [(0, 0)] * self.states
        flags: dict[int, int] = {}
        added: dict[int, Any] = {}
        for i in range(low, end + 1):
            if i > low and e.mark[i] & 1:
                old, fresh = self._closed(old, fresh, flags, added), [(0, 0)] * self.states
                flags, added = {}, {}
            edges, stays = self.symbols[e.symbol[i]]
            value = 0 if values is None else values[i].item() if hasattr(values[i], "item") else values[i]
            new, ended = list(fresh), (0, 0)
            for source, target, own, inner in edges:
                n, s = old[source]
                if inner:
                    n, s = n + fresh[source][0], s + fresh[source][1]
                s += n * value if own == role and n else 0
                if target < 0:
                    ended = (ended[0] + n, ended[1] + s)
                else:
                    new[target] = (new[target][0] + n, new[target][1] + s)
            if i == end:
                return ended
            fresh = new
            for gap, flag, own in stays:
                flags[gap] = flags.get(gap, 0) | flag
                added[gap] = added.get(gap, 0) + (value if own == role else 0)
        raise AssertionError("no event ends the window")

    def _closed(self, old: Any, fresh: Any, flags: dict[int, int], added: dict[int, Any]) -> list[tuple[Any, Any]]:
        new = list(fresh)
        gap_of = {first + k: g for g, (first, size, _) in enumerate(self.gaps) for k in range(size)}
        for state, (n, s) in enumerate(old):
            to, g = state, gap_of.get(state, -1)
            if g in flags:
                first, _, moves = self.gaps[g]
                place = moves[flags[g]][state - first]
                if place < 0:
                    continue
                to = first + place
                s += n * added[g] if flags[g] & 1 else 0
            new[to] = (new[to][0] + n, new[to][1] + s)
        return new
