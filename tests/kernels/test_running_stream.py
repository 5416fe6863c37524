"""The kernel of totals over streams beside its plain twin: random automata, events, pushes, and pushes taken back."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import quercus as qc
from quercus.backends.local.symbols import Symbols, leaves
from quercus.ir.flat import flatten
from quercus.ir.running import Countable, countable
from quercus.kernels import reference_running, reference_totals, running
from tests.aggregate_cases import case


def automaton(seed: int) -> Symbols | None:
    """That of the first alternative of a random query, if a stream can total it."""
    c = case(seed)
    tree = qc.compile(c.query, c.schema()).tree
    f = flatten(tree.root, tree.window)[0]
    shape = countable(f, tree)
    if not isinstance(shape, Countable) or (shape.gaps[0] and shape.gaps[-1]):
        return None
    return Symbols(shape, f, list(range(len(leaves(f)))), set(), waits=bool(shape.gaps[-1]))


def compared(seed: int) -> int:
    """How many totals were compared that are not nothing."""
    r, made = Random(seed), automaton(seed)
    if made is None:
        return 0
    waits = bool(made.states.accepts)
    some = 0
    ties = r.random() < 0.5
    roles = [r.randrange(len(made.states.roles)) for _ in range(3)]
    passes = [("count", -1), ("sum", roles[0]), ("least", roles[1]), ("real", roles[2])]
    window = r.randint(0, 8)
    kernel = running.Running(made.states.count, passes, window, ties, waits)
    twin = reference_totals.Running(made.states.count, passes, window, ties, waits)
    ts = 0
    for _ in range(12):
        n = r.choice((0, 1, 1, 2, 5))
        times = []
        for _ in range(n):
            ts += r.choice((0, 0, 1, 1, 2))
            times.append(ts)
        segment = np.array([r.randrange(2) for _ in range(n)], np.int64)
        order = np.argsort(segment, kind="stable")
        segment, at = segment[order], np.array(times, np.int64)[order]
        bits = [
            1 << r.randrange(len(made.merged)) | (1 << r.randrange(len(made.merged)) if r.random() < 0.2 else 0)
            for _ in range(n)
        ]
        symbol = made.symbols_of(np.array(bits, np.int64))
        values = [None, np.array([r.randint(-5, 5) for _ in range(n)], np.int64)]
        values += [
            np.array([r.randint(-5, 5) for _ in range(n)], np.int64),
            np.array([r.randint(0, 3) / 2 for _ in range(n)]),
        ]
        known = [_actions(made, mask) for mask in made.symbols]
        own = made.automaton()
        plain = reference_running.Automaton(made.states.count, made.states.gaps, known, made.states.accepts)
        for again in range(2 if r.random() < 0.3 else 1):
            if waits:
                tags = np.array([r.randrange(3) for _ in range(n)], np.int64)
                until = ts + (r.choice((0, 1)) if again == 0 else 0)
                for k in (kernel, twin):
                    k.take_in(segment, symbol, at, at, values, tags, own)
                sums, which, first = kernel.settled(own, until)
                got = {tag: [s[i] for s in sums] for i, tag in enumerate(which) if first[i] >= 0}
                want = twin.settled(plain, until)
                assert got == want, seed
                some += len(want)
            else:
                group = np.array([r.randrange(2) for _ in range(n)], np.int32)
                row = np.arange(n)[order] + 1
                for k in (kernel, twin):
                    k.take_in(segment, symbol, at, at, values)
                sums, first = kernel.totals(own, row, group, 2)
                want_sums, want_first = twin.totals(plain, row, group, 2)
                assert ([list(s) for s in sums], list(first)) == (want_sums, want_first), seed
                some += sum(1 for s in sums[0] if s)
            if again == 0 and r.random() < 0.3:
                kernel.undo()
                twin.undo()
                continue
            kernel.commit()
            twin.commit()
            if waits:
                ts = max(ts, until)
            break
    return some


def _actions(made: Symbols, mask: int) -> tuple[list[object], list[object]]:
    held = [role for role, bit in zip(made.states.roles, made.bits, strict=True) if mask >> bit & 1]
    return [e for role in held for e in role.edges], [s for role in held for s in role.stays]


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_the_kernel_totals_as_its_twin_does(first: int) -> None:
    assert sum(compared(seed) for seed in range(first, first + 100)) > 50
