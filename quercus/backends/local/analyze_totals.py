"""What running totals did in a run: `explain(analyze=events)` of a query whose matches are not listed."""

from __future__ import annotations

import pyarrow as pa

from quercus.backends.base import Limits
from quercus.backends.local.analyze import UNUSED, windows
from quercus.backends.local.buffers import spec_of
from quercus.backends.local.events import Events
from quercus.backends.local.running import Told, run_totals
from quercus.backends.local.specs import BufferData
from quercus.backends.local.trace import Trace
from quercus.ir import tree as t
from quercus.ir.analysis import Actual, Analysis, Passes, places
from quercus.plan import Plan

TOTALLED = "totalled, not listed"
STAGES = ("load", "route", "buffers", "total")


def analyzed_totals(plan: Plan, stream: Events, limits: Limits, trace: Trace) -> tuple[Analysis, pa.Table]:
    """Run a plan, and tell what its passes did, beside the totals."""
    told = Told(trace)
    table = run_totals(plan, stream, limits, told)
    trace.lap("total")
    leaves = [spec_of(n, plan.tree) for n in t.walk(plan.tree.root) if isinstance(n, t.Buffer)]
    sizes = {spec: (len(b.row), _bytes(b)) for spec, b in zip(told.specs, told.buffers, strict=True)}

    def actual(n: t.Node | t.Negation) -> Actual:
        if not isinstance(n, t.Buffer):
            return Actual(note=TOTALLED)
        spec = spec_of(n, plan.tree)
        if spec not in sizes:
            return Actual(note=UNUSED)
        rows, size = sizes[spec]
        return Actual(rows=rows, bytes=size, shared=leaves.count(spec) > 1)

    nodes = {path: actual(n) for path, n in places(plan.tree.root)}
    analysis = Analysis(
        nodes=nodes,
        events=len(stream),
        in_order=stream.rows is None,
        windows=windows(plan, stream),
        routed=sum(rows for rows, _ in sizes.values()),
        buffers=len(sizes),
        bytes=sum(size for _, size in sizes.values()),
        alternatives=told.alternatives,
        compared=0,
        matches=told.matches,
        groups=table.num_rows,
        again="",
        stages=tuple((s, trace.stages.get(s, 0.0)) for s in STAGES),
        totals=Passes(told.passes, told.steps, told.states),
    )
    return analysis, table


def _bytes(b: BufferData) -> int:
    arrays = [a for a in (b.ts, b.pos, b.row, b.codes, b.starts) if a is not None]
    return sum(a.nbytes for a in {id(a): a for a in arrays}.values())
