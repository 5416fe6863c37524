"""Events of an alternative as symbols of its automaton: which of its buffers hold each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quercus.backends.local.automaton import BEFORE, Role, States, states_of
from quercus.errors import LimitExceeded
from quercus.ir import tree as t
from quercus.ir.flat import Flat
from quercus.ir.running import Countable
from quercus.kernels import running

Index = NDArray[np.int64]
_FEW = 12  # buffers whose combinations are looked up in a table


def leaves(f: Flat) -> list[t.Buffer]:
    """All leaves of a countable alternative, negated ones last."""
    return [*f.buffers, *(b for g in f.negations for body in g.bodies for b in body.buffers)]


class Symbols:
    """The automaton of an alternative, its roles, and the symbols that were seen."""

    def __init__(self, shape: Countable, f: Flat, numbers: list[int], apart: set[str], *, waits: bool = False) -> None:
        """`numbers`: the buffer of each leaf. Variables of `apart` may be looked at in part."""
        self.shape = shape
        self.states: States = states_of(shape, waits=waits)
        held = dict(zip(map(id, leaves(f)), numbers, strict=True))
        self.bits: list[int] = []  # of each role: the bit of its buffer
        self.merged: list[int] = []  # of each bit: the buffer
        own: dict[int, int] = {}
        for r in self.states.roles:
            number = held[id(r.leaf)]
            if r.leaf.var in apart and r.edges:
                self.bits.append(len(self.merged))
                self.merged.append(number)
                continue
            if number not in own:
                own[number] = len(self.merged)
                self.merged.append(number)
            self.bits.append(own[number])
        self.killer = len(self.merged)  # the bit of what kills all that has not begun
        self.symbols: dict[int, int] = {}
        self._known: running.Automaton | None = None
        self._symbols = 0

    def symbols_of(self, mask: Index) -> NDArray[np.uint8]:
        """The symbols of events, given who holds each: a bit for each buffer."""
        if len(self.merged) <= _FEW:
            present = np.flatnonzero(np.bincount(mask, minlength=1))
            table = np.zeros(2 ** (len(self.merged) + 1), np.uint8)
        else:
            present, inverse = np.unique(mask, return_inverse=True)
        for m in present.tolist():
            self.symbols.setdefault(m, len(self.symbols))
        if len(self.symbols) > running.MOST_SYMBOLS:
            raise LimitExceeded("too many combinations of conditions on single events", limit="symbols")
        numbers = np.array([self.symbols[m] for m in present.tolist()], np.uint8)
        if len(self.merged) > _FEW:
            return np.asarray(numbers[inverse])
        table[present] = numbers
        return np.asarray(table[mask])

    def automaton(self) -> running.Automaton:
        """Of the symbols known so far."""
        if self._known is not None and self._symbols == len(self.symbols):
            return self._known
        made = []
        for mask in self.symbols:
            held = [r for r, bit in zip(self.states.roles, self.bits, strict=True) if mask >> bit & 1]
            kills = [(0, BEFORE, -2)] if mask >> self.killer & 1 else []
            made.append(([e for r in held for e in r.edges], [*(s for r in held for s in r.stays), *kills]))
        self._known = running.Automaton(self.states.count, self.states.gaps, made, self.states.accepts)
        self._symbols = len(self.symbols)
        return self._known

    def role(self, var: str) -> tuple[int, Role] | None:
        """The number of a variable's role, and the role."""
        found = ((i, r) for i, r in enumerate(self.states.roles) if r.leaf.var == var and (r.edges or self._is_set(r)))
        return next(found, None)

    def _is_set(self, r: Role) -> bool:
        return any(gap.set is r.leaf for gap in self.shape.gaps)
