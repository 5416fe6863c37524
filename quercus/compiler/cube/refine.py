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
    """Of two with the same pattern: whether every match of `special` is one of `general`, by window and conditions."""
    apart = with_names(special, {c.var: f"{i}s" for i, c in enumerate(special.parts)})
    named = with_names(general, {c.var: f"{i}s" for i, c in enumerate(general.parts)})
    known = Known(conditions(apart))
    if not all(known.entails(c) for c in conditions(named)) or general.window.size < special.window.size:
        return False
    if general.window.size != special.window.size and any(c.negated for c in (named.parts[0], named.parts[-1])):
        return False  # their scopes end at the window
    for more, less in zip(apart.parts, named.parts, strict=True):
        inside = Known((*conditions(apart), *asked_of(less)))
        if more.negated and not all(inside.entails(c) for c in asked_of(more)):
            return False
    return True


def refinements(sequences: Mapping[str, Sequence]) -> tuple[Refinement, ...]:
    """All pairs of queries of which one refines the other, in the order of the workload.

    Of queries that are the same but for their outputs the first counts as the general one.
    """
    found = []
    for one, other in combinations(sequences, 2):
        for general, special in ((one, other), (other, one)):
            kind = kind_of(sequences[general], sequences[special])
            if kind is not None and (kind != "same" or asks_less(sequences[general], sequences[special])):
                found.append(Refinement(general, special, kind))
                break
    return tuple(found)


def reduced(found: tuple[Refinement, ...]) -> tuple[Refinement, ...]:
    """Without those that follow from others: the edges of a Hasse diagram, as in the paper's Fig. 1."""
    below: dict[str, set[str]] = {}
    for r in found:
        below.setdefault(r.general, set()).add(r.special)
    return tuple(
        r for r in found if not any(r.special in below.get(between, ()) for between in below[r.general] - {r.special})
    )
