"""When a match that is held back can be decided by the clock alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from quercus.backends.local.history import taken
from quercus.backends.local.values import combined, raw

if TYPE_CHECKING:
    from quercus.backends.local.incremental import Engine


def next_moment(engine: Engine) -> int | None:
    """The least clock at which a search has a pivot whose moment has not come yet.

    A pivot need not have a match, so that this is a lower bound. Where no search waits for time, there is none.
    """
    lengths: dict[int, set[int]] = {}  # of each pivot's buffer: what is added to a time
    for plain, _, mode, buffer in engine.searches:
        if mode == "delayed":
            lengths.setdefault(buffer, set()).add(0)
        elif mode == "first":
            due = engine.program.windows[engine.program.flats[plain].due]
            if not due.count:
                lengths.setdefault(buffer, set()).add(due.size)
    if not lengths or not engine.history.pieces:
        return None
    engine.kept()
    moments: list[int] = []
    for buffer, sizes in lengths.items():
        places = np.unique(engine.matcher.kept(buffer))
        if len(places):
            events, _ = taken(engine.history.pieces, places, [engine.schema.time])
            ts = raw(combined(events.column(engine.schema.time)).view(pa.int64()), np.int64)
            for size in sizes:
                at = int(np.searchsorted(ts, max(-(2**63), engine.clock - size)))
                if at < len(ts):
                    moments.append(int(ts[at]) + size + 1)
    return min(moments, default=None)
