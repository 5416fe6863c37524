"""Leaf buffers from a stream: routed, filtered by local conditions, and sorted key by key where there is a key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quercus.backends.local.events import Events
from quercus.backends.local.expressions import true_mask
from quercus.backends.local.specs import BufferData, Index
from quercus.ir import expr as x
from quercus.ir import tree as t
from quercus.kernels import group


class BufferSource:
    """Makes leaf buffers from a stream: routed, filtered, and sorted key by key where there is a key."""

    def __init__(self, events: Events, tree: t.Tree, wanted: list[t.Buffer]) -> None:
        self.events, self.tree = events, tree
        requests = list(dict.fromkeys(b.accepts for b in wanted))
        self.routed = dict(zip(requests, events.route(requests), strict=True))
        self.by_var = {c.var: c.attr for c in tree.key.columns} if tree.key is not None else {}
        self.same_name = len(set(self.by_var.values())) == 1
        self.positions = self._positions_by_key() if tree.partition_by else None
        self.nulls = False  # whether an event without a key was seen: it agrees with nothing, not with itself

    def holds(self, e: x.Expr) -> bool:
        """Whether an equality is what the found key says: then it holds inside every segment."""
        key = self.tree.key
        if key is None or self.tree.partition_by or self.nulls or not x.is_equality(e):
            return False
        assert isinstance(e, x.Compare)
        return e.left in key.columns and e.right in key.columns

    def key_attribute(self, var: str) -> str | None:
        return None if self.tree.partition_by else self.by_var.get(var)

    def buffer(self, b: t.Buffer, local: tuple[x.Expr, ...]) -> BufferData:
        at = self.routed[b.accepts]
        for c in local:
            at = at[true_mask(c, lambda k, at=at: self.events.values(k.attr, at), len(at))]  # type: ignore[misc]
        codes = self._codes(b.var, at)
        if codes is not None:
            if self.tree.partition_by:  # events of no key belong to no stream
                at, codes = at[codes >= 0], codes[codes >= 0]
            order = _by_code(codes)
            at, codes = at[order], codes[order]
        pos = at if self.positions is None else np.ascontiguousarray(self.positions[at])
        return BufferData(np.ascontiguousarray(self.events.ts[at]), pos, at, codes)

    def _codes(self, var: str, at: Index) -> Index | None:
        if self.tree.partition_by:
            return self.events.key_codes(self.tree.partition_by, at)
        attr = self.key_attribute(var)
        if attr is None:
            return None
        codes = self.events.key_codes((attr,), at, None if self.same_name else "found")
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
