"""The first matches of a query that has more than can be listed.

The events are pushed into a stream piece by piece, and what is decided is a match whatever comes later. A push with too
many matches is an error that changes nothing: the piece is made smaller.
"""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np
import pyarrow as pa
from attrs import evolve

from quercus.backends.base import Limits
from quercus.backends.local.events import Events
from quercus.backends.local.outputs import Bound
from quercus.errors import LimitExceeded
from quercus.ir import pattern as p
from quercus.plan import Plan
from quercus.result import Matches
from quercus.show.found import MOST_MATCHES

PIECE = 1024
SECONDS = 5.0


def first_matches(plan: Plan, stream: Events, most: int = MOST_MATCHES) -> Matches:
    """At least some of the first matches, where they can be found in a few seconds."""
    listing = plan.with_query(evolve(plan.bound, aggregates=(), group_by=(), returns=()), plan.schema)
    table = stream.table if stream.rows is None else stream.table.take(pa.array(stream.rows))
    found: list[tuple[Bound, ...]] = []
    count, at, piece, end = 0, 0, PIECE, time.monotonic() + SECONDS
    live = listing.stream(limits=Limits(max_matches=20 * most, max_seconds=SECONDS), adapt=False)
    while at < len(table) and count < most and time.monotonic() < end:
        try:
            new = live.push(table.slice(at, piece))
        except LimitExceeded:
            if piece == 1:
                break
            piece //= 2
            continue
        at += piece
        if len(new):
            found.append(new.bound)
            count += len(new)
    if at >= len(table):  # the end of the input decides the rest
        with suppress(LimitExceeded):
            live.close()
            found.append(live.final.bound)
    if not found:
        return Matches(stream.table, plan.schema, listing.query, [_none(v) for v in listing.query.variables])
    joined = [Bound.joined(parts) for parts in zip(*found, strict=True)]
    rows = stream.rows
    return Matches(stream.table, plan.schema, listing.query, [b.head(most).numbered(rows) for b in joined])


def _none(leaf: p.Leaf | p.Kleene) -> Bound:
    nothing = np.empty(0, np.int64)
    if isinstance(leaf, p.Kleene):
        return Bound(leaf.var, True, nothing, nothing, nothing)
    return Bound(leaf.var, False, nothing)
