"""Results made into others: the kernel beside its twin."""

from __future__ import annotations

import doctest
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from quercus.kernels import reference_reuse, reuse

Array = NDArray[Any]
TIMES = ([-(2**63) + 1, 2**63 - 2], [0, 5, 5, 9], [-3, -3, 0, 2**62])


def int64(values: Any) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def int32(values: Any) -> NDArray[np.int32]:
    return np.array(values, np.int32)


def agree(name: str, inputs: list[Any], outputs: list[Array]) -> list[Array]:
    """One function of both, with outputs of their own; what the kernel wrote."""
    found = []
    for module in (reuse, reference_reuse):
        own = [o.copy() for o in outputs]
        said = getattr(module, name)(*inputs, *own)
        parts = [o[:said] for o in own] if name.startswith(("kept", "of_")) else own
        found.append((said, [o.tolist() for o in parts]))
    assert found[0] == found[1], (name, inputs)
    return own


@pytest.mark.parametrize("seed", range(300))
def test_tables_agree(seed: int) -> None:
    r = Random(seed)
    n = r.choice([0, 1, 5, 20])
    ts = int64(r.choice(TIMES) if r.random() < 0.1 else sorted(r.randrange(3 * n) for _ in range(n)))
    n, width = len(ts), r.choice([0, 1, 4, 2**63 - 1])
    (bound,) = agree(r.choice(["reach", "back"]), [ts, width], [np.zeros(n, np.int32)])
    at = int64(sorted(r.sample(range(n), r.randint(0, n))))
    agree("counted", [bound, at], [np.zeros(n, np.int32)])
    codes = [r.choice([-1, 0, 1, 2]) for _ in range(n)]
    groups = [[p for p in range(n) if codes[p] == c] for c in range(3)]
    events = [[p for p in at.tolist() if codes[p] == c] for c in range(3)]
    first, starts = (int64(np.cumsum([0, *map(len, lists)])) for lists in (groups, events))
    order, grouped = (int64([p for part in lists for p in part]) for lists in (groups, events))
    agree("counted_by_key", [order, first, bound, grouped, starts], [np.ones(n, np.int32)])
    kinds = int32([r.choice([-1, 0, 1, 2, 3]) for _ in range(n)])
    low = r.randrange(4)
    agree("of_kinds", [kinds, low, low + r.randint(0, 2)], [np.zeros(n, np.int64)])


@pytest.mark.parametrize("seed", range(300))
def test_rows_agree(seed: int) -> None:
    r = Random(seed)
    n, m = r.choice([1, 5, 20]), r.choice([0, 1, 7, 30])
    low, high = (int32(sorted(r.randrange(n) for _ in range(n))) for _ in range(2))
    kind = r.choice([np.int64, np.int32])
    a, b = (np.array([r.randrange(n) for _ in range(m)], kind) for _ in range(2))
    kept = [np.zeros(m, np.int32)]
    agree("kept_empty", [low, a, high, b], kept)
    agree("kept_before", [high, a, b], kept)
    agree("kept_of_kinds", [low, r.randrange(n), r.randrange(n), a], kept)
    agree("kept_runs", [low, r.randrange(n), r.randrange(n), np.sort(a)], kept)
    lo, hi = agree("spans", [low, a, high, b], [np.zeros(m, np.int32), np.zeros(m, np.int32)])
    for name in ("clip_low", "clip_high"):
        lo, hi = agree(name, [low, b], [lo, hi])
    total = int((hi - lo).sum())
    (cursors,) = agree("offsets", [lo, hi], [np.zeros(n + 1, np.int64)])
    columns = [int32([r.randrange(99) for _ in range(m)]) for _ in range(r.randint(1, 4))]
    both = [[np.zeros(total, np.int64) for _ in columns] for _ in range(2)]
    moved = [cursors.copy() for _ in range(2)]
    for module, places, to in zip((reuse, reference_reuse), moved, both, strict=True):
        module.columns_by_event(lo, hi, places, columns, to)
    assert [c.tolist() for c in both[0]] == [c.tolist() for c in both[1]]
    assert moved[0].tolist() == moved[1].tolist()
    ends, rows = moved[0], int32([r.randrange(m) for _ in range(total)])
    agree("repeated", [np.arange(n), ends[:-1]], [np.zeros(total, np.int64)])
    agree("by_match", [lo, hi], [np.zeros(total, np.int32)] * 2)
    for column in (a, lo):
        for kind in (np.int64, np.int32):
            agree("take", [column, rows], [np.zeros(total, kind)])
        agree("mark_changes", [column], [np.zeros(m, np.uint8)])
    order = int32(r.sample(range(m), m))
    least = int(a.min()) if m else 0
    agree("ordered", [int64(a), least, np.zeros(n + 1, np.int32), order], [np.zeros(m, np.int32)])


@pytest.mark.parametrize("seed", range(200))
def test_matches_as_numbers_agree(seed: int) -> None:
    r = Random(seed)
    k, n, far = r.randint(2, 5), r.choice([1, 3, 40]), r.choice([3, 9, 70])
    first = r.choice([0, 10**6])
    rows = {tuple(first + v for v in sorted(r.sample(range(far + k), k))) for _ in range(n)}
    answer = sorted(rows, key=lambda row: (row[-1], *row[:-1]))
    columns = [int64(c) for c in zip(*answer, strict=True)]
    low, high, wide = reuse.widths(columns[0], columns[-1])
    assert (low, high, wide) == reference_reuse.widths(columns[0], columns[-1])
    bits, n = max(wide.bit_length(), 1), len(answer)
    packed = []
    for module in (reuse, reference_reuse):
        keys = np.zeros(n, np.uint64)
        module.pack(columns, low, bits, keys)
        packed.append(keys.tolist())
        out = [np.zeros(n, np.int32) for _ in range(k)]
        module.unpack(keys, low, bits, out)
        assert list(zip(*(c.tolist() for c in out), strict=True)) == answer
    assert packed[0] == packed[1]


@pytest.mark.parametrize("seed", range(300))
def test_merges_agree(seed: int) -> None:
    r = Random(seed)
    k, far = r.randint(1, 4), r.choice([2, 5, 30])
    rows = {tuple(sorted(r.randrange(far) for _ in range(k))) for _ in range(r.choice([0, 3, 60]))}
    answer = sorted(rows, key=lambda row: (row[-1], *row[:-1]))
    lots: list[list[tuple[int, ...]]] = [[] for _ in range(r.randint(1, 5))]
    for row in answer:
        (lots[row[r.randrange(k)] % len(lots)] if r.random() < 0.7 else r.choice(lots)).append(row)
    parts = [[int64([row[c] for row in lot]) for c in range(k)] for lot in lots]
    for module in (reuse, reference_reuse):
        out = [np.zeros(len(answer), np.int64) for _ in range(k)]
        module.merge(parts, out)
        assert list(zip(*(c.tolist() for c in out), strict=True)) == answer


@pytest.mark.parametrize("seed", range(300))
def test_groups_agree(seed: int) -> None:
    r = Random(seed)
    lo: list[int] = []
    hi: list[int] = []
    begins: list[int] = []
    for _ in range(r.choice([0, 1, 4])):
        size = r.randint(1, 4)
        first, last = (sorted(r.randrange(9) for _ in range(size)) for _ in range(2))
        begins += [1] + [0] * (size - 1)
        lo += first
        hi += [max(a, b) for a, b in zip(first, last, strict=True)]
    total = sum(hi) - sum(lo)
    rows = [np.zeros(total, np.int32)] * 2
    agree("by_group", [np.array(begins, np.uint8), int32(lo), int32(hi)], rows)


@pytest.mark.parametrize("module", [reuse, reference_reuse], ids=["kernel", "twin"])
def test_arrays_of_different_length_are_refused(module: Any) -> None:
    two, three = np.zeros(2, np.int32), np.zeros(3, np.int32)
    wide = np.zeros(2, np.int64)
    calls = [
        lambda: module.reach(wide, 1, three),
        lambda: module.counted(two, wide, three),
        lambda: module.spans(two, wide, two, wide, two, three),
        lambda: module.by_match(two, two, two, three),
        lambda: module.take(wide, three, wide),
        lambda: module.offsets(two, two, np.zeros(0, np.int64)),
        lambda: module.kept_empty(two, wide, two, wide, three),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"length|room"):
            call()


def test_a_difference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_reuse, "take", lambda column, rows, out: None)
    with pytest.raises(AssertionError):
        agree("take", [int64([7, 8]), int32([1])], [np.zeros(1, np.int64)])


def test_examples_run() -> None:
    assert doctest.testmod(reuse).failed == 0
