"""How the queries of a workload refine each other: E-Cube's definitions 3 to 5."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations

from quercus.compiler.cube.conditions import Known
from quercus.compiler.cube.sequences import asked_of, conditions, with_names
from quercus.ir.workload import Kind, Part, Refinement, Sequence

Fits = Callable[[Part, Part], bool]


def is_alike(general: Part, special: Part) -> bool:
    """The same type, both negated or neither."""
    return general.negated == special.negated and general.accepts == special.accepts


def is_coarser(general: Part, special: Part) -> bool:
    """The same concept or one above; of negated parts one below, since no event of a coarser type is asked for more."""
    if general.negated != special.negated:
        return False
    fine, coarse = (general, special) if general.negated else (special, general)
    return set(fine.accepts) <= set(coarse.accepts)


def embeddings(small: tuple[Part, ...], large: tuple[Part, ...], fits: Fits) -> Iterator[tuple[int, ...]]:
    """The ways to find the parts of one among those of another, in order: a place in `large` for each of `small`."""

    def from_here(i: int, start: int) -> Iterator[tuple[int, ...]]:
        if i == len(small):
            yield ()
            return
        for j in range(start, len(large) - (len(small) - i) + 1):
            if fits(small[i], large[j]):
                yield from ((j, *rest) for rest in from_here(i + 1, j + 1))

    return from_here(0, 0)


def kind_of(general: Sequence, special: Sequence) -> Kind | None:
    """What lies between two queries, if the one is coarser than the other or has the same pattern.

    `concept`: Definition 3, types are coarser, negated ones finer. `pattern`: Definition 4, parts are left out.
    """
    if general.partition_by != special.partition_by or general.window.kind != special.window.kind:
        return None
    few, many = general.parts, special.parts
    if len(few) == len(many):
        if all(map(is_alike, few, many)):
            return "same"
        return "concept" if all(map(is_coarser, few, many)) else None
    if len(few) > len(many) or next(embeddings(few, many, is_coarser), None) is None:
        return None
    return "both" if next(embeddings(few, many, is_alike), None) is None else "pattern"


def asks_less(general: Sequence, special: Sequence) -> bool:
    """Whether a query that is coarser asks no more of its events than another, in some way to see them in it.

    The paper's queries differ in nothing but types; here conditions and windows must agree with the order, too.
    """
    if general.window.size < special.window.size:
        return False
    return any(_asks_less(general, special, at) for at in embeddings(general.parts, special.parts, is_coarser))


def _asks_less(general: Sequence, special: Sequence, places: tuple[int, ...]) -> bool:
    apart = with_names(special, {c.var: f"{i}s" for i, c in enumerate(special.parts)})
    named = with_names(general, {c.var: f"{i}s" for c, i in zip(general.parts, places, strict=True)})
    known = Known(conditions(apart))
    if not all(known.entails(c) for c in conditions(named)):
        return False
    for less, i in zip(named.parts, places, strict=True):
        inside = Known((*conditions(apart), *asked_of(less)))
        if less.negated and not all(inside.entails(c) for c in asked_of(apart.parts[i])):
            return False
    return True


def refinements(sequences: Mapping[str, Sequence]) -> tuple[Refinement, ...]:
    """All pairs of queries of which one refines the other, in the order of the workload.

    Of queries that are the same but for names and outputs the first stands for all: the others refine it alone.
    """
    found: list[Refinement] = []
    first: dict[str, str] = {}  # of queries that are there again
    for one, other in combinations(sequences, 2):
        if one in first or other in first:
            continue
        down, up = (_between(sequences[a], sequences[b]) for a, b in ((one, other), (other, one)))
        if down is not None:
            found.append(Refinement(one, other, down))
            if up is not None:
                first[other] = one
        elif up is not None:
            found.append(Refinement(other, one, up))
    return tuple(r for r in found if not {r.general, r.special} & first.keys() or first.get(r.special) == r.general)


def _between(general: Sequence, special: Sequence) -> Kind | None:
    kind = kind_of(general, special)
    return kind if kind is not None and asks_less(general, special) else None


def reduced(found: tuple[Refinement, ...]) -> tuple[Refinement, ...]:
    """Without those that follow from others: the edges of a Hasse diagram, as in the paper's Fig. 1."""
    below: dict[str, set[str]] = {}
    for r in found:
        below.setdefault(r.general, set()).add(r.special)
    return tuple(
        r for r in found if not any(r.special in below.get(between, ()) for between in below[r.general] - {r.special})
    )
