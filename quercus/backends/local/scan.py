"""A plan over events that come in pieces: files that are larger than memory, readers of record batches.

A stream carries the window from one piece to the next, so that memory is bounded by the window and the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from attrs import frozen

from quercus.backends.base import Limits
from quercus.backends.local.dialect import is_files
from quercus.backends.local.inputs import as_pieces
from quercus.backends.local.outputs import Answer, Bound
from quercus.backends.local.run import in_order, needed, run_plan, too_many
from quercus.backends.local.stream import Stream
from quercus.backends.local.write import Writer
from quercus.errors import OutOfOrder
from quercus.plan import Plan
from quercus.result import Matches

Progress = Callable[[int, int, float], None]  # events, matches, part of the input


def scan(plan: Plan, events: object, limits: Limits, progress: Progress | None = None) -> Iterator[Matches]:
    """The matches of each piece, as they are decided; with AGG, the groups that changed.

    `progress` is told after each piece how many events and matches there were, and which part of the files that was.
    """
    columns = needed(plan)
    part = [0.0]
    rows = matches = 0
    pieces = as_pieces(events, plan.schema, columns, partial(part.__setitem__, 0))
    with Stream(plan, limits=limits, columns=columns) as stream:
        for piece in pieces:
            found = stream.push(piece)
            yield found
            if progress is not None:
                rows, matches = rows + len(piece), matches + len(found)
                progress(rows, matches, part[0])
    yield stream.final


def run_pieces(plan: Plan, events: object, limits: Limits, progress: Progress | None = None) -> Matches:
    """All matches, as a run over the whole gives them; of totals over all of them, only these."""
    how = plan.tree.aggregation
    if how is None or how.strategy != "running" or how.listed_live or plan.query.group_by or not is_files(events):
        return _listed(plan, events, limits, progress)
    totals = [found.to_arrow() for found in scan(plan, events, limits, progress) if len(found)]
    return Matches.of_stream(plan.schema, plan.query, Behind(plan, events, limits), totals[-1])


@frozen(eq=False)
class Behind:
    """The matches behind the totals of files, listed when they are asked for."""

    plan: Plan
    events: object
    limits: Limits

    def __len__(self) -> int:
        return len(self.answer())

    def answer(self) -> Answer:
        return _listed(self.plan, self.events, self.limits, None).answer

    def numbered(self) -> tuple[Bound, ...]:
        return _listed(self.plan, self.events, self.limits, None).bound


def _listed(plan: Plan, events: object, limits: Limits, progress: Progress | None) -> Matches:
    answers: list[Answer] = []
    left = limits.max_matches
    for found in scan(plan, events, limits, progress):
        answers.append(found.answer)
        left -= len(answers[-1])
        if left < 0:
            raise too_many(", ".join(v.var for v in plan.query.variables), limits)
    rows = np.concatenate([a.numbers for a in answers if a.numbers is not None])
    tables = [a.table for a in answers if len(a.table)]
    table = pa.concat_tables(tables) if tables else answers[0].table
    numbers, first = np.unique(rows, return_index=True)
    bound = [Bound.joined([a.bound[v.var].numbered(a.numbers) for a in answers]) for v in plan.query.variables]
    # The events came in order, so that rows are places, and the order of matches is told by rows.
    return Matches(
        table.take(pa.array(first)), plan.schema, plan.query, [b.found_in(numbers) for b in in_order(bound)], numbers
    )


def write(plan: Plan, events: object, path: str | Path, limits: Limits, progress: Progress | None = None) -> int:
    """Write the matches into a file; their number."""
    if is_files(events) or isinstance(events, pa.RecordBatchReader):
        try:
            return _write_pieces(plan, events, path, limits, progress)
        except OutOfOrder:
            if isinstance(events, pa.RecordBatchReader):  # it cannot be read again
                raise
    whole = run_plan(plan, events, limits)
    whole.write(path)
    return len(whole)


def _write_pieces(plan: Plan, events: object, path: str | Path, limits: Limits, progress: Progress | None) -> int:
    """The same piece by piece. Groups of AGG are written in the end."""
    if plan.query.aggregates:
        whole = run_pieces(plan, events, limits, progress)
        whole.write(path)
        return len(whole)
    count = 0
    with Writer(path) as writer:
        for found in scan(plan, events, limits, progress):
            writer.write(found.to_arrow())
            count += len(found)
    return count
