"""In which order, and each from what: the four strategies for the queries of a cube."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from math import inf

from attrs import frozen

from quercus.compiler.cube.alone import Planned
from quercus.compiler.cube.chase import arborescence
from quercus.compiler.cube.rates import Rates
from quercus.compiler.cube.reuse import Way
from quercus.compiler.cube.workload import Workload
from quercus.ir.workload import Cuboid, Ordering, Refinement, Strategy

STRATEGIES: tuple[Strategy, ...] = ("independent", "top_down", "bottom_up", "chase")


@frozen(eq=False)
class Prices:
    """What everything costs at some rates: each query alone, and each that can be computed from another."""

    rows: Mapping[str, float]
    alone: Mapping[str, float]
    barren: Set[str]  # queries of which a component has no event
    totalled: Set[str]  # queries that list no matches: no source for others
    counted: Set[str]  # queries that may be counted first, and listed when they are asked for
    reuse: Mapping[tuple[str, str], tuple[float, Way]]  # by source and query: the cheapest way (equations 8 and 11)


def prices(w: Workload, rates: Rates, *, useful: bool = False, live: bool = False) -> Prices:
    """All of it; or, if only that is asked for, what can be `useful`: no ordering is cheaper by what costs more.

    `live`: what has AGG is never listed for others, and nothing is listed later.
    """
    rows = {name: a.rows(rates) for name, a in w.alone.items()}
    alone = {name: a.cost(rates) for name, a in w.alone.items()}
    totalled = {
        name for name, a in w.alone.items() if a.is_totalled(rates) or (live and w.plans[name].query.aggregates)
    }
    barren = {name for name, a in w.alone.items() if a.is_barren(rates)}
    counted = set() if live else {name for name, a in w.alone.items() if a.is_counted(rates)}
    reuse = {}
    for (source, name), found in w.reusable.items():
        if source in totalled:
            continue
        if name in barren:
            reuse[source, name] = 0.0, found[0].way
            continue
        most = alone[name] if useful else inf
        cost, best = min((way.cost(rows[source], rates, most), i) for i, way in enumerate(found))
        if cost <= most:
            reuse[source, name] = cost, found[best].way
    return Prices(rows, alone, barren, totalled, counted, reuse)


def ordering(w: Workload, strategy: Strategy, rates: Rates, given: Prices | None = None) -> Ordering:
    """How each query of a workload is come by, sources first."""
    found = given or prices(w, rates, useful=strategy == "chase")
    sources = _sources(w, strategy, found)
    later = found.counted - set(sources.values()) if strategy == "chase" else set[str]()
    cuboids = (_cuboid(name, sources[name], w, strategy, found, later=name in later) for name in _in_turn(sources))
    return Ordering(strategy, tuple(cuboids))


def _sources(w: Workload, strategy: Strategy, found: Prices) -> dict[str, str | None]:
    match strategy:
        case "independent":
            return dict.fromkeys(w.plans)
        case "top_down":
            return _one_way(w, found, {(r.general, r.special) for r in w.refinements})
        case "bottom_up":
            return _one_way(w, found, {_upwards(r) for r in w.refinements})
        case "chase":
            return _chase(w, found)


def _upwards(r: Refinement) -> tuple[str, str]:
    """From the special query to the general one; with the same pattern, more conditions never lead to fewer."""
    return (r.general, r.special) if r.kind == "same" else (r.special, r.general)


def _one_way(w: Workload, found: Prices, allowed: set[tuple[str, str]]) -> dict[str, str | None]:
    """Each from the cheapest of those that it may be computed from, whatever it would cost alone."""
    sources: dict[str, str | None] = dict.fromkeys(w.plans)
    for name in sources:
        if name in found.barren:
            continue
        usable = [(found.reuse[pair][0], i, s) for i, s in enumerate(sources) if (pair := (s, name)) in found.reuse]
        usable = [u for u in usable if (u[2], name) in allowed]
        if usable:
            sources[name] = min(usable)[2]
    return sources


def _chase(w: Workload, found: Prices) -> dict[str, str | None]:
    """The cheapest of all orderings: from the virtual ground, vertex 0, a query is computed alone."""
    names = list(w.plans)
    place = {name: i + 1 for i, name in enumerate(names)}
    edges = [(0, place[name], found.alone[name]) for name in names]
    edges += [(place[s], place[name], cost) for (s, name), (cost, _) in found.reuse.items()]
    chosen = arborescence(len(names) + 1, 0, edges)
    assert chosen is not None, "every query can be computed alone"
    from_ground = len(names)
    pairs = list(found.reuse)
    return {name: None if (n := chosen[place[name]]) < from_ground else pairs[n - from_ground][0] for name in names}


def _in_turn(sources: Mapping[str, str | None]) -> Iterator[str]:
    """Sources before what is computed from them, else as they were given."""
    done: set[str] = set()
    for name in sources:
        path: list[str] = []
        at: str | None = name
        while at is not None and at not in done:
            path.append(at)
            at = sources[at]
        for one in reversed(path):
            done.add(one)
            yield one


def _cuboid(name: str, source: str | None, w: Workload, strategy: Strategy, found: Prices, *, later: bool) -> Cuboid:
    rows = found.rows[name]
    if source is not None:
        cost, way = found.reuse[source, name]
        return Cuboid(name, source, way.case, way.actions, REASONS[way.case], rows, cost)
    why, totalled = _why_alone(name, w, strategy, found), name in found.totalled
    return Cuboid(name, None, None, (), why, rows, found.alone[name], totalled, later)


TOTALLED = "its matches are totalled without being listed"
BARREN = "no events are known of one of its types"
REASONS = {
    "5.1": "general to specific, the pattern changes",
    "5.2": "general to specific, concepts change",
    "5.3": "general to specific, concepts and the pattern change",
    "5.4": "specific to general, the pattern changes",
    "5.5": "specific to general, concepts change",
    "5.6": "specific to general, concepts and the pattern change",
    "same": "the same pattern",
}


def _why_alone(name: str, w: Workload, strategy: Strategy, found: Prices) -> str:
    """Why a query is computed alone: what speaks against sharing at all, or against each source."""
    if name in found.barren:
        return BARREN
    if strategy == "independent":
        return "nothing is shared"
    usable = [(cost, source) for (source, other), (cost, _) in found.reuse.items() if other == name]
    if usable and strategy == "chase":
        cost, source = min(usable)
        if cost >= found.alone[name]:
            return f"cheaper than from {source}"
        return "others are computed from it"
    sources = [source for source, other in w.reusable if other == name]
    listed = [source for source in sources if source not in found.totalled]
    if strategy == "chase" and listed:
        return "cheaper than from any other"
    why = [f"not from {source}: {TOTALLED}" for source in sources if source not in listed]
    why += [f"not from {source}: {reason}" for (source, other), reason in w.refused.items() if other == name]
    if why:
        return why[0]
    if listed:
        return "nothing that comes before it can be reused"
    one = w.alone[name]
    if isinstance(one, Planned):
        return f"{w.sequences[name]}, and no other has its pattern"
    return "it refines no other, and no other refines it"
