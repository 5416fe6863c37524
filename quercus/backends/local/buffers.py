"""Leaf buffers from a stream: routed, filtered by local conditions, and sorted key by key where there is a key."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from quercus.backends.local.events import TAKEN, Events
from quercus.backends.local.expressions import true_mask
from quercus.backends.local.pool import ranges, shared
from quercus.backends.local.specs import BufferData, BufferSpec, Index
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.ir.flat import Flat, is_local
from quercus.kernels import gather, group

Routed = dict[tuple[str, ...], Index]


def spec_of(b: t.Buffer, tree: t.Tree) -> BufferSpec:
    """What a leaf's buffer holds; variables whose buffers hold the same share one."""
    key: tuple[str, ...] | None = tree.partition_by or None
    if key is None and tree.key is not None:
        key = tuple(c.attr for k in tree.keys for c in k.columns if c.var == b.var) or None
    return BufferSpec(b.accepts, tuple(c.expr for c in b.where if is_local(c.expr)), key)


def buffer_specs(flats: Iterable[Flat], tree: t.Tree) -> list[BufferSpec]:
    """The buffers of some alternatives, those of negated bodies included."""
    found: dict[BufferSpec, None] = {}
    for f in flats:
        found |= dict.fromkeys(spec_of(b, tree) for b in f.buffers)
        for g in f.negations:
            found |= dict.fromkeys(buffer_specs(g.bodies, tree))
    return list(found)


def variables_of(flats: Iterable[Flat], tree: t.Tree) -> dict[BufferSpec, list[str]]:
    """The variables whose events each buffer holds."""
    found: dict[BufferSpec, list[str]] = {}
    for f in flats:
        for b in f.buffers:
            names = found.setdefault(spec_of(b, tree), [])
            names.extend([b.var] if b.var not in names else [])
        for g in f.negations:
            for spec, more in variables_of(g.bodies, tree).items():
                names = found.setdefault(spec, [])
                names.extend(v for v in more if v not in names)
    return found


def routed_to(wanted: list[BufferSpec], events: Events) -> Routed:
    """The positions of each buffer's types."""
    requests = list(dict.fromkeys(b.accepts for b in wanted))
    return dict(zip(requests, events.route(requests), strict=True))


class BufferSource:
    """Makes leaf buffers from a stream: routed, filtered, and sorted key by key where there is a key."""

    def __init__(self, events: Events, tree: t.Tree, wanted: list[BufferSpec], routed: Routed | None = None) -> None:
        self.events, self.tree = events, tree
        self.routed = routed_to(wanted, events) if routed is None else routed
        self.same_name = len({b.key for b in wanted}) == 1
        self.positions = self._positions_by_key() if tree.partition_by else None
        self.nulls = False  # whether an event without a key was seen: it agrees with nothing, not with itself
        if all(b.key is None for b in wanted):
            self.data = self._plain(wanted)
            return
        kept = [self._kept(b) for b in wanted]
        self.data = self._narrow(wanted, kept) or [self._buffer(b, at) for b, at in zip(wanted, kept, strict=True)]

    def _kept(self, b: BufferSpec) -> Index:
        """The positions of a buffer's events."""
        at = self.routed[b.accepts]
        if not b.local:
            return at
        parts = ranges(len(at), self.events.threads, TAKEN)
        kept = shared([partial(self._pass, b.local, at[i:j]) for i, j in parts], self.events.threads)
        return kept[0] if len(kept) == 1 else np.concatenate(kept)

    def _pass(self, conditions: tuple[x.Expr, ...], at: Index) -> Index:
        """The positions of events that fulfil all conditions."""
        for c in conditions:
            at = at[true_mask(c, lambda k, at=at: self.events.values(k.attr, at), len(at))]  # type: ignore[misc]
        return at

    def _plain(self, wanted: list[BufferSpec]) -> list[BufferData]:
        """All buffers, where none has a key: each once for all queries over the stream."""
        made = self.events.shared()
        new = [b for b in wanted if b not in made]
        kept = [self._kept(b) for b in new]
        for b, at, ts in zip(new, kept, self.events.times(kept), strict=True):
            made[b] = BufferData(ts, self._position(at), at, None)
        return [made[b] for b in wanted]

    def _narrow(self, wanted: list[BufferSpec], kept: list[Index]) -> list[BufferData]:
        """All buffers, where the key is an integer of a narrow range: the distance from the least is its code."""
        if any(b.key is None or len(b.key) != 1 for b in wanted):
            return []
        keys = self.events.integers([b.key[0] for b in wanted if b.key is not None], kept)
        if keys is None:
            return []
        least = min((low for values, low, _ in keys if len(values)), default=0)
        most = max((high for values, _, high in keys if len(values)), default=-1)
        if most - least > max(1024, 2 * sum(map(len, kept))):
            return []
        tasks = [
            partial(self._grouped, values, least, most - least + 1, at)
            for at, (values, _, _) in zip(kept, keys, strict=True)
        ]
        return shared(tasks, self.events.threads if sum(map(len, kept)) >= 2 * TAKEN else 1)

    def _grouped(self, keys: Index, least: int, count: int, at: Index) -> BufferData:
        row, ts, starts = gather.by_key(keys, least, count, at, self.events.ts)
        return BufferData(ts, self._position(row), row, None, starts)

    def _position(self, at: Index) -> Index:
        return at if self.positions is None else gather.take(self.positions, at)

    def _buffer(self, b: BufferSpec, at: Index) -> BufferData:
        codes = self._codes(b.key, at)
        if codes is not None:
            if self.tree.partition_by:  # events of no key belong to no stream
                at, codes = at[codes >= 0], codes[codes >= 0]
            order = _by_code(codes)
            at, codes = at[order], codes[order]
        return BufferData(self.events.times([at])[0], self._position(at), at, codes)

    def _codes(self, key: tuple[str, ...] | None, at: Index) -> Index | None:
        if key is None or self.tree.partition_by:
            return None if key is None else self.events.key_codes(key, at)
        codes = self.events.key_codes(key, at, None if self.same_name else "found")
        lost = codes < 0
        if lost.any():  # null agrees with nothing, but may stand alone: each in a segment of its own
            self.nulls = True
            codes = codes.copy()
            codes[lost] = -1 - at[lost]
        return codes

    def _positions_by_key(self) -> Index:
        """Positions count within each key's own stream, all types together."""
        codes = self.events.key_codes(self.tree.partition_by, np.arange(len(self.events)))
        order = np.argsort(codes, kind="stable")
        ranked = codes[order]
        first = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.empty(0, np.int64)
        lengths = np.diff(np.r_[first, len(ranked)])
        positions = np.empty(len(codes), np.int64)
        positions[order] = np.arange(len(codes)) - np.repeat(first, lengths)
        return positions


def _by_code(codes: Index) -> Index:
    """A stable order that brings equal keys together; by counting, where the codes are dense."""
    least, most = (int(codes.min()), int(codes.max())) if len(codes) else (0, -1)
    if least >= 0 and most <= 4 * len(codes) + 1024:
        return group.group_by_code(codes, most + 1)[0]
    return np.argsort(codes, kind="stable")


def segments(buffers: list[BufferData]) -> NDArray[np.int64]:
    """Where each key's part of each buffer begins: one row a buffer, one column a key, and the end."""
    starts = [b.starts for b in buffers if b.starts is not None]
    if starts:
        return np.array(starts, dtype=np.int64)
    if not buffers or buffers[0].codes is None:
        return np.array([[0, len(b.ts)] for b in buffers], dtype=np.int64).reshape(len(buffers), 2)
    coded = [b.codes for b in buffers if b.codes is not None]
    most = max((int(c[-1]) for c in coded if len(c)), default=-1)
    if most <= sum(len(c) for c in coded) and not any(len(c) and c[0] < 0 for c in coded):
        keys = np.arange(most + 1)
    else:
        keys = np.unique(np.concatenate(coded))
    starts = [np.r_[np.searchsorted(c, keys), len(c)] for c in coded]
    return np.ascontiguousarray(np.array(starts, dtype=np.int64).reshape(len(buffers), len(keys) + 1))
