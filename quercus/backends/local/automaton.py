"""A countable alternative as the automaton of `kernels.running`: states, roles, and what each kind of event does."""

from __future__ import annotations

from itertools import combinations, pairwise

from attrs import frozen

from quercus.ir import tree as t
from quercus.ir.running import Countable, Gap

SET, AFTER, BEFORE = 1, 2, 4  # what an event in a gap is: an element, a negated one after the set, one before it
END = -1

Edge = tuple[int, int, int, int]  # from, to, role, whether equal times do not matter
Stay = tuple[int, int, int]  # gap, flag, role
Moves = list[list[int]]


@frozen
class Role:
    """A leaf of the pattern, with what its events do."""

    leaf: t.Buffer
    edges: tuple[Edge, ...]
    stays: tuple[Stay, ...]


@frozen
class States:
    """The states of an alternative in order: a gap's, then those of the block after it."""

    count: int
    gaps: tuple[tuple[int, int, Moves], ...]
    roles: tuple[Role, ...]
    ends: tuple[int, ...]  # roles that can end a match
    far: tuple[int, ...]  # roles that are negated after the end
    accepts: tuple[int, ...]  # states of whole matches that wait


def states_of(c: Countable, *, waits: bool = False) -> States:
    """States count up along the pattern; the first is the beginning of the window.

    What is negated after the last block kills, from where a window with it begins, all that has not begun. With
    `waits`, whole matches wait in the last gap instead, until the window after their start is over.
    """
    own = c.gaps if waits else c.gaps[:-1]
    at = 0
    gaps: list[tuple[int, int, Moves]] = []
    exits: list[list[int]] = []
    inside: list[int] = []  # the first inner state of each block
    for i, gap in enumerate(own):
        places, moves, leaves = _gap(gap, kills=i == 0 and not waits and bool(c.gaps[-1]))
        gaps.append((at, places, moves))
        exits.append([at + place for place in leaves])
        at += places
        inside.append(at)
        at += c.blocks[i].states if i < len(c.blocks) else 0
    roles: list[Role] = []
    ends: list[int] = []
    for i, block in enumerate(c.blocks):
        done = gaps[i + 1][0] if i + 1 < len(own) else END
        for leaf in block.leaves:
            if done == END:
                ends.append(len(roles))
            edges = _counted(block.size, inside[i], exits[i], done, len(roles))
            if len(block.leaves) > 1:
                edges = _unordered(block.leaves, leaf, inside[i], exits[i], done, len(roles))
            roles.append(Role(leaf, tuple(edges), ()))
    for i, gap in enumerate(own):
        there = [(gap.set, SET)] if gap.set is not None else []
        for leaf, flag in [*there, *((b, AFTER) for b in gap.after), *((b, BEFORE) for b in gap.before)]:
            roles.append(Role(leaf, (), ((i, flag, len(roles)),)))
    later = () if waits else c.gaps[-1].before
    far = range(len(roles), len(roles) + len(later))
    roles += [Role(leaf, (), ()) for leaf in later]
    accepts = tuple(exits[-1]) if waits else ()
    return States(at, tuple(gaps), tuple(roles), tuple(ends), tuple(far), accepts)


def _counted(size: int, inside: int, exits: list[int], done: int, role: int) -> list[Edge]:
    """A leaf of `size` events, which may have equal times among themselves."""
    steps = [*range(inside, inside + size - 1), done]
    edges = [(e, steps[0], role, 0) for e in exits]
    return edges + [(a, b, role, 1) for a, b in pairwise(steps)]


def _unordered(
    leaves: tuple[t.Buffer, ...], leaf: t.Buffer, inside: int, exits: list[int], done: int, role: int
) -> list[Edge]:
    """A leaf of an AND: from every choice of the others to the same with it."""
    variables = [b.var for b in leaves]
    chosen = [frozenset(s) for n in range(1, len(leaves)) for s in combinations(variables, n)]
    number = {s: inside + i for i, s in enumerate(chosen)} | {frozenset(variables): done}
    edges = [(e, number[frozenset({leaf.var})], role, 0) for e in exits]
    return edges + [(number[s], number[s | {leaf.var}], role, 1) for s in chosen if leaf.var not in s]


def _gap(gap: Gap, *, kills: bool) -> tuple[int, Moves, list[int]]:
    """The places of a gap, where each goes under each mask of flags (-1: the match is lost), and which lead on.

    NONE: no element; SEEN: none, and a negated event that forbids the empty set; SOME: elements; SPOILT: elements, and
    a negated event after them.
    """
    if gap.set is None:
        return 1, [[-1 if mask & BEFORE else 0] for mask in range(8)], [0]
    empty = gap.set.least == 0
    if empty and not gap.before and not gap.after and not kills:
        return 1, [[0] for _ in range(8)], [0]
    names = ["none", *(["seen"] if empty and gap.after else []), "some", *(["spoilt"] if gap.after else [])]
    place = {n: i for i, n in enumerate(names)}
    moves: Moves = []
    for mask in range(8):
        if mask & SET:
            moves.append([place["some"]] * len(names))
            continue
        to = {n: n for n in names}
        if mask & AFTER:
            to |= {"none": "seen" if "seen" in place else "none", "some": "spoilt" if "spoilt" in place else "some"}
        lost = {"none", "seen"} if mask & BEFORE else set()
        moves.append([-1 if n in lost else place[to[n]] for n in names])
    return len(names), moves, [place[n] for n in (["none"] if empty else []) + ["some"]]
