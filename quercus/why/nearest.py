"""What single requirements stopped, and the nearest misses: events that meet all requirements but one, or a few."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from quercus.ir import expr as x
from quercus.why.alone import alone
from quercus.why.data import Miss, Obstacle
from quercus.why.mend import mended
from quercus.why.requirements import Requirement
from quercus.why.space import Candidate, Space

PAIRS = 45  # of requirements; where there are more, pairs are not tried
TRIED, TAKEN_BACK = 0.75, 0.9  # parts of the time after which no more pairs are tried, no more requirements taken back
EXAMPLES = 2
FEW = 50  # matches of a variant without several requirements that are looked at
COSTLY = {"order": 1, "key": 2, "window": 3}  # what is asked last, since it can take the longest


def obstacles_of(space: Space) -> tuple[list[Obstacle], list[list[Candidate]]]:
    """Obstacles in the order of the requirements, and the events that each of them alone stopped."""
    found = {}
    for r in sorted(space.requirements, key=lambda r: COSTLY.get(r.kind, 0)):
        found[r] = alone(space, r)
    told = [r for r in space.requirements if found[r][0].some or (found[r][0].n is None and r.kind != "ties")]
    obstacles = [
        Obstacle(r.kind, r.what, found[r][0], tuple(space.example(c) for c in found[r][1][:EXAMPLES])) for r in told
    ]
    return obstacles, [found[r][1] for r in told]


def nearest(space: Space, candidates: list[list[Candidate]]) -> list[tuple[float, Miss]]:
    """The misses with how far off they are: of what a single requirement stopped; if there is nothing, of several."""
    space.engine.until(1)
    misses = _misses(space, candidates)
    if not misses:
        for dropped in _fewest(space):
            found = space.misses(space.some_without(dropped).rows[:FEW], dropped)
            more = _misses(space, [sorted(found, key=lambda c: c.far)])
            misses += [m for m in more if all(m[1].rows != other.rows for _, other in misses)]
            if len(misses) >= space.limit:
                break
    return misses


def _fewest(space: Space) -> Iterator[tuple[Requirement, ...]]:
    """Pairs of requirements without which there are matches; if there are none, all that cannot be met together."""
    usable = [r for r in space.requirements if r.kind != "ties"]
    some = False
    space.engine.until(TRIED)
    pairs = list(combinations(usable, 2))
    for pair in pairs if len(pairs) <= PAIRS else ():
        if space.count_without(pair, most=1).some:
            some = True
            space.engine.until(1)
            yield pair
            space.engine.until(TRIED)
    space.engine.until(TAKEN_BACK)
    kinds = [{"condition", "group", "negation", "count", "type"}, {"window", "key"}, {"order"}]
    lots = ([r for r in usable if any(r.kind in k for k in kinds[:n])] for n in (1, 2, 3))
    dropped = next((lot for lot in lots if not some and space.count_without(lot, most=1).some), [])
    if not dropped:
        return
    for r in sorted(dropped, key=lambda r: not _ties_keys(space, r)):
        rest = [d for d in dropped if d is not r]
        if space.count_without(rest, most=1).some:
            dropped = rest
    space.engine.until(1)
    yield tuple(dropped)


def _ties_keys(space: Space, r: Requirement) -> bool:
    """What makes variants quick is taken back first."""
    return r.kind == "condition" and x.is_equality(space.q.where[r.number])


def _misses(space: Space, candidates: list[list[Candidate]]) -> list[tuple[float, Miss]]:
    """The nearest of each lot first, then the others."""
    lots = [c for lot in candidates for c in lot[:1]], [c for lot in candidates for c in lot[1:]]
    found: list[tuple[float, Miss]] = []
    for lot in lots:
        for c in sorted(lot, key=lambda c: (len(c.found), c.far)):
            if len(found) >= space.limit or space.engine.late:
                return found
            miss = mended(space, c.bound, list(zip(c.dropped, c.found, strict=True)))
            if miss is not None and all(miss.rows != other.rows for _, other in found):
                found.append((c.far, miss))
    return found
