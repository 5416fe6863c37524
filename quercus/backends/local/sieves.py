"""Comparisons that sift candidates before they are looked at one by one.

`b.x > a.x + 5`, tested when b is bound last, asks nothing of b but that a column lies above a number that is known
before. Such a comparison is a sieve of b's level, or of a join whose other side is b's leaf: the kernel compares many
candidates at once, and passes over blocks of them by their least and greatest value.

A chain a.x < b.x < c.x says more than its links: where c and a are bound before b, a.x < c.x sifts a.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from quercus.backends.local.code import OP
from quercus.backends.local.specs import FlatSpec, Program, Sieve
from quercus.kernels import match

FROM = 16  # candidates that are worth a block; tests sift any number
MOST = 4  # columns of a candidate that are sifted: as many as the kernel has room for

NAMES = match.OPS
LOADS = {OP["load_i"], OP["load_f"]}
PUSHES = {OP[n] for n in ("null", "const_i", "const_f", "load_i", "load_f", "count", "group_i", "group_f")}
UNARY = {OP[n] for n in NAMES if n.split("_")[0] in ("to", "neg", "abs", "round", "floor", "ceil", "not", "is", "map")}
OF_SETS = {OP[n] for n in ("count", "group_i", "group_f")}
MIRROR = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
ABOVE, BELOW = ("gt", "ge", "eq"), ("lt", "le", "eq")


def add(spec: FlatSpec, program: Program) -> None:
    """The sieves of an alternative's levels and joins. Predicates that a sieve stands for come first."""
    for level in spec.levels:
        found = {p: s for p in level.preds if (s := _sieve(program, p, level.slot)) is not None}
        columns = list(dict.fromkeys(s.column for s in found.values()))[:MOST]
        found = {p: s for p, s in found.items() if s.column in columns}
        level.preds.sort(key=lambda p: p not in found)
        level.sifted, level.sieves = len(found), list(found.values())
    for i in reversed(range(len(spec.levels))):
        level = spec.levels[i]
        before = {k.slot for k in spec.levels[: i + 1]}
        free = {k.slot for k in spec.levels} - before
        for later in spec.levels[i + 1 :]:
            for s in _implied(program, later.sieves, level.slot, free):
                if s not in level.sieves and len({k.column for k in (*level.sieves, s)}) <= MOST:
                    level.sieves.append(s)
    for node in spec.joins:
        if node.children is not None and not node.keys:
            for side, child in enumerate(node.children):
                leaf = spec.joins[child]
                if leaf.children is None:
                    known = [s for p in node.preds if (s := _sieve(program, p, leaf.slots[0])) is not None]
                    columns = list(dict.fromkeys(s.column for s in known))[:MOST]
                    node.sieves[side] = [s for s in known if s.column in columns]


def _sieve(program: Program, number: int, slot: int) -> Sieve | None:
    """A predicate as a comparison of a column of the slot, on the left, with what does not name the slot."""
    start, end, over = program.preds[number]
    name, _, kind = NAMES[program.code[end - 3]].partition("_")
    if over >= 0 or name not in MIRROR or kind not in ("i", "f"):
        return None
    middle = _operand(program, end - 3)
    for (a, b), (c, d), op in (
        ((start, middle), (middle, end - 3), name),
        ((middle, end - 3), (start, middle), MIRROR[name]),
    ):
        load = program.code[a:b]
        if len(load) == 3 and load[0] == OP[f"load_{kind}"] and load[1] == slot and _constant(program, c, d, {slot}):
            return Sieve(load[2], op, kind == "f", c, d)
    return None


def _operand(program: Program, end: int) -> int:
    """Where the code of the last value before `end` begins."""
    wanted = 1
    while wanted:
        end -= 3
        op = program.code[end]
        wanted -= 1 if op in PUSHES else 0 if op in UNARY else -1
    return end


def _constant(program: Program, start: int, end: int, slots: Iterable[int]) -> bool:
    """Whether code reads none of these slots, and no set."""
    code = [program.code[i : i + 3] for i in range(start, end, 3)]
    return not any(op in OF_SETS or (op in LOADS and slot in slots) for op, slot, _ in code)


def _implied(program: Program, later: list[Sieve], slot: int, free: set[int]) -> Iterator[Sieve]:
    """What two sieves of a column say of a slot that one of them compares it with: x > a and x < e, so a < e."""
    for near in later:
        load = program.code[near.start : near.end]
        if len(load) != 3 or load[0] not in LOADS or load[1] != slot:
            continue
        for far in later:
            if far is near or far.column != near.column or not _constant(program, far.start, far.end, {slot, *free}):
                continue
            for own, other, strict, weak in ((ABOVE, BELOW, "lt", "le"), (BELOW, ABOVE, "gt", "ge")):
                if near.compare in own and far.compare in other:
                    both = {near.compare, far.compare}
                    op = "eq" if both == {"eq"} else strict if both & {"lt", "gt"} else weak
                    yield evolve(far, column=load[2], compare=op)
