"""The plain Python twin of reuse.pyx: what each of its loops means."""

from __future__ import annotations

from bisect import bisect_left
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
Small = NDArray[np.int32]
Flags = NDArray[np.uint8]
Keys = NDArray[np.uint64]
Column = NDArray[Any]  # int64 or int32


def _same_length(*arrays: Column) -> None:
    if len({len(a) for a in arrays}) > 1:
        raise ValueError(f"arrays of different length: {[len(a) for a in arrays]}")


def reach(ts: Index, width: int, out: Small) -> None:
    """Of each position, the first whose time is more than `width` later; times ascend."""
    _same_length(ts, out)
    times = ts.tolist()
    for p, t in enumerate(times):
        out[p] = next((q for q in range(p, len(times)) if times[q] - t > width), len(times))


def back(ts: Index, width: int, out: Small) -> None:
    """Of each position, the first whose time is at most `width` earlier; times ascend."""
    _same_length(ts, out)
    times = ts.tolist()
    for p, t in enumerate(times):
        out[p] = next(q for q in range(p + 1) if t - times[q] <= width)


def counted(bound: Small, at: Index, out: Small) -> None:
    """Of each position, how many of the ascending `at` lie before its bound; bounds ascend."""
    _same_length(bound, out)
    for p, b in enumerate(bound.tolist()):
        out[p] = bisect_left(at.tolist(), b)


def counted_by_key(order: Index, first: Index, bound: Small, at: Index, starts: Index, out: Small) -> None:
    """The same where only events of the position's own key count, as a place in `at`."""
    _same_length(bound, out)
    _same_length(first, starts)
    out[:] = 0
    for c in range(len(starts) - 1):
        own = at[starts[c] : starts[c + 1]].tolist()
        for p in order[first[c] : first[c + 1]].tolist():
            out[p] = int(starts[c]) + bisect_left(own, int(bound[p]))


def spans(low: Small, low_at: Column, high: Small, high_at: Column, lo: Small, hi: Small) -> int:
    """The range of each match: from low[low_at] to high[high_at], and how long all are together."""
    _same_length(low_at, high_at, lo, hi)
    for i, (a, b) in enumerate(zip(low_at.tolist(), high_at.tolist(), strict=True)):
        lo[i], hi[i] = low[a], max(low[a], high[b])
    return _total(lo, hi)


def clip_low(table: Small, at: Column, lo: Small, hi: Small) -> int:
    """Ranges that begin at table[at] at the earliest, in place; how long all are together."""
    _same_length(at, lo, hi)
    for i, p in enumerate(at.tolist()):
        lo[i] = max(lo[i], table[p])
        hi[i] = max(lo[i], hi[i])
    return _total(lo, hi)


def clip_high(table: Small, at: Column, lo: Small, hi: Small) -> int:
    """Ranges that end at table[at] at the latest, in place; how long all are together."""
    _same_length(at, lo, hi)
    for i, p in enumerate(at.tolist()):
        hi[i] = max(lo[i], min(hi[i], table[p]))
    return _total(lo, hi)


def _total(lo: Small, hi: Small) -> int:
    return sum(b - a for a, b in zip(lo.tolist(), hi.tolist(), strict=True))


def _pairs(lo: Small, hi: Small) -> list[tuple[int, int]]:
    """(match, event), match by match."""
    _same_length(lo, hi)
    return [(i, e) for i, (a, b) in enumerate(zip(lo.tolist(), hi.tolist(), strict=True)) for e in range(a, b)]


def offsets(lo: Small, hi: Small, out: Index) -> None:
    """Where the results with each event begin, if they stand event by event, and the end."""
    events = sorted(e for _, e in _pairs(lo, hi))
    if not len(out):
        raise ValueError("no room for the end")
    for e in range(len(out)):
        out[e] = bisect_left(events, e)


def columns_by_event(lo: Small, hi: Small, cursors: Index, columns: list[Small], out: list[Index]) -> None:
    """Up to four columns of the results, event by event, for each event in the order of the matches."""
    if not 1 <= len(columns) <= 4:
        raise ValueError("one to four columns at once")
    _same_length(lo, *columns)
    for i, e in _pairs(lo, hi):
        for column, to in zip(columns, out, strict=True):
            to[cursors[e]] = column[i]
        cursors[e] += 1


def by_match(lo: Small, hi: Small, rows: Small, events: Small) -> None:
    """The match and the event of each result, match by match."""
    _same_length(rows, events)
    for at, (i, e) in enumerate(_pairs(lo, hi)):
        rows[at], events[at] = i, e


def by_group(begins: Flags, lo: Small, hi: Small, rows: Small, events: Small) -> None:
    """The match and the event of each result, group by group, in it event by event, then in the order of matches."""
    _same_length(rows, events)
    _same_length(begins, lo)
    number = np.cumsum(begins != 0).tolist()
    at = 0
    for _, pairs in groupby(_pairs(lo, hi), lambda pair: number[pair[0]]):
        for e, i in sorted((e, i) for i, e in pairs):
            rows[at], events[at] = i, e
            at += 1


def mark_changes(column: Column, begins: Flags) -> None:
    """Set `begins` where a value is not the one before it, and at the first."""
    _same_length(column, begins)
    for i, value in enumerate(column.tolist()):
        begins[i] |= i == 0 or value != column[i - 1]


def widths(first: Index, last: Index) -> tuple[int, int, int]:
    """The least and the greatest of the first positions, and how far the last ones are from them at most."""
    _same_length(first, last)
    if not len(first):
        return 0, 0, 0
    return int(first.min()), int(first.max()), max(0, int((last - first).max()))


def pack(columns: list[Index], low: int, bits: int, keys: Keys) -> None:
    """Each match as one number: its first position from `low` on, then the others from the first on."""
    _packs(len(columns), bits)
    _same_length(*columns, keys)
    for i, row in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        key = row[0] - low
        for p in row[1:]:
            key = key << bits | (p - row[0])
        keys[i] = key


def unpack(keys: Keys, low: int, bits: int, out: list[Small]) -> None:
    """The columns of matches that are one number each."""
    _packs(len(out), bits)
    _same_length(keys, *out)
    for i, key in enumerate(keys.tolist()):
        digits = [key >> bits * c & 2**bits - 1 for c in range(len(out) - 2, -1, -1)]
        start = low + (key >> bits * (len(out) - 1))
        for to, value in zip(out, (start, *(start + d for d in digits)), strict=True):
            to[i] = value


def _packs(k: int, bits: int) -> None:
    if not 2 <= k <= 32 or not 1 <= bits <= 16 or bits * (k - 1) >= 64:
        raise ValueError(f"{k} positions of {bits} bits are no number")


def ordered(column: Index, least: int, counts: Small, order: Small, out: Small) -> None:
    """A stable order by a column of rows that are in some order already."""
    _same_length(column, order, out)
    out[:] = sorted(order.tolist(), key=lambda i: int(column[i]))


def take(column: Column, rows: Small, out: Column) -> None:
    """The values at some rows, as larger or smaller numbers where `out` has these."""
    _same_length(rows, out)
    out[:] = column[rows]


def repeated(values: Index, ends: Index, out: Index) -> None:
    """Each value up to its end, one after the other."""
    _same_length(values, ends)
    first = 0
    for value, end in zip(values.tolist(), ends.tolist(), strict=True):
        out[first:end] = value
        first = max(first, end)


def of_kinds(kinds: Small, low: int, high: int, out: Index) -> int:
    """The positions whose code is from `low` up to before `high`, and how many they are."""
    found = [p for p, kind in enumerate(kinds.tolist()) if low <= kind < high]
    out[: len(found)] = found
    return len(found)


def kept_of_kinds(kinds: Small, low: int, high: int, column: Column, out: Small) -> int:
    """The matches whose event in a column is of these codes, and how many they are."""
    _same_length(column, out)
    return _kept([low <= kinds[p] < high for p in column.tolist()], out)


def kept_runs(kinds: Small, low: int, high: int, column: Column, out: Small) -> int:
    """What `kept_of_kinds` says of a column that ascends."""
    return kept_of_kinds(kinds, low, high, column, out)


def merge(parts: list[list[Index]], out: list[Index]) -> None:
    """Lots of matches, each a list of columns in the order of the answer, as one in this order."""
    if not 1 <= len(parts) <= 64 or not out:
        raise ValueError("no lots of matches, or too many")
    rows = [row for part in parts for row in zip(*(c.tolist() for c in part), strict=True)]
    for i, row in enumerate(sorted(rows, key=lambda row: (row[-1], *row[:-1]))):
        for to, value in zip(out, row, strict=True):
            to[i] = value


def kept_empty(low: Small, low_at: Column, high: Small, high_at: Column, out: Small) -> int:
    """The matches whose range, as `spans` has it, is empty, and how many they are."""
    _same_length(low_at, high_at, out)
    return _kept([low[a] >= high[b] for a, b in zip(low_at.tolist(), high_at.tolist(), strict=True)], out)


def kept_before(bound: Small, at_: Column, column: Column, out: Small) -> int:
    """The matches whose position in a column lies before bound[at_], and how many they are."""
    _same_length(at_, column, out)
    return _kept([p < bound[a] for a, p in zip(at_.tolist(), column.tolist(), strict=True)], out)


def _kept(passed: list[np.bool_ | bool], out: Small) -> int:
    rows = [i for i, good in enumerate(passed) if good]
    out[: len(rows)] = rows
    return len(rows)
