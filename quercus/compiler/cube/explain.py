"""A cube as text: how its queries refine each other, and how the results of each are come by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quercus.compiler.analyzed import number
from quercus.compiler.cube.order import STRATEGIES, Prices, ordering
from quercus.compiler.cube.rates import Rates
from quercus.compiler.cube.refine import reduced
from quercus.compiler.cube.words import Words
from quercus.compiler.cube.workload import Workload
from quercus.compiler.explain import cut, essential
from quercus.ir import text
from quercus.ir.workload import Cuboid, Kind, Ordering

KINDS: Mapping[Kind, str] = {
    "concept": "concept",
    "pattern": "pattern",
    "both": "concept & pattern",
    "same": "same pattern",
}


def explain(w: Workload, chosen: Ordering, found: Prices, rates: Rates, sizes: Mapping[str, int] | None) -> str:
    """The hierarchy, each query with where its results come from, and what the other strategies would cost."""
    out = ["cube"]
    out += [f"  {name:<12}{value}" for name, value in _facts(w, chosen, found, rates, sizes)]
    out += ["", "hierarchy"]
    edges = [f"{r.general} > {r.special}  {KINDS[r.kind]}" for r in reduced(w.refinements)]
    out += [f"  {line}" for line in edges or ["no query refines another"]]
    out += ["", "queries, in the order in which they are computed"]
    for c in chosen.cuboids:
        out += [f"  {line}" for line in _cuboid(w, c, found, sizes)]
    return "\n".join(out)


def _facts(
    w: Workload, chosen: Ordering, found: Prices, rates: Rates, sizes: Mapping[str, int] | None
) -> Iterator[tuple[str, str]]:
    yield "queries", str(len(w.plans))
    yield "shared by", chosen.strategy
    of = "for the last run" if sizes is not None else "for ten times the longest window"
    yield "cost", f"{number(chosen.cost)} ns, estimated {of}"
    others = (f"{s} {number(ordering(w, s, rates, found).cost)}" for s in STRATEGIES if s != chosen.strategy)
    yield "others", ", ".join(others)


def _cuboid(w: Workload, c: Cuboid, found: Prices, sizes: Mapping[str, int] | None) -> Iterator[str]:
    plan = w.plans[c.name]
    unit = plan.schema.timestamp_unit
    yield c.name
    for line in text.query(essential(plan.query), unit).splitlines():
        yield f"  {cut(line)}"
    rows = f"~{number(c.rows)} rows"
    if sizes is not None and sizes.get(c.name, -1) >= 0:  # those that are only totalled are not counted
        rows = f"{sizes[c.name]:,} rows ({rows} expected)"
    if c.source is None:
        how = ", totalled event by event" if c.totalled else ", counted first" if c.counted else ""
        yield f"  alone{how}: {c.reason}"
        yield f"  {rows}, cost {number(c.cost)}"
        return
    assert c.case is not None
    case = f"{c.case}, " if c.case != "same" else ""
    yield f"  from {c.source}: {case}{c.reason}"
    words = Words(plan.schema, tuple(leaf.var for leaf in w.plans[c.source].query.variables))
    yield from (f"    {cut(line)}" for line in words.lines(c.actions))
    yield f"  {rows}, cost {number(c.cost)}, alone {number(found.alone[c.name])}"
