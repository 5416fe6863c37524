"""Comparisons that sift candidates before they are looked at one by one.

`b.x > a.x + 5`, tested when b is bound last, asks nothing of b but that a column lies above a number that is known
before. Such a comparison is a sieve of b's level, or of a join whose other side is b's leaf: the kernel compares many
candidates at once, and passes over blocks of them by their least and greatest value.

A chain a.x < b.x < c.x says more than its links: where c and a are bound before b, a.x < c.x sifts a.
"""

from __future__ import annotations

from collections.abc import Iterator

from quercus.backends.local.code import OP
from quercus.backends.local.specs import FlatSpec, Program, Sieve

FROM = 16  # candidates that are worth a block; tests sift any number
MOST = 4  # columns of a candidate that are sifted: as many as the kernel has room for

LOAD_I, LOAD_F = OP["load_i"], OP["load_f"]
PUSHES = {OP[n] for n in ("null", "const_i", "const_f", "load_i", "load_f", "count", "group_i", "group_f")}
UNARY = {OP[n] for n in OP if n.split("_")[0] in ("to", "neg", "abs", "round", "floor", "ceil", "not", "is", "map")}
OF_SETS = {OP[n] for n in ("count", "group_i", "group_f")}
MIRROR = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
COMPARISONS = {OP[f"{n}_{k}"]: (n, OP[f"load_{k}"]) for n in MIRROR for k in "if"}
ABOVE, BELOW = ("gt", "ge", "eq"), ("lt", "le", "eq")


def add(spec: FlatSpec, program: Program) -> None:
    """The sieves of an alternative's levels and joins. Predicates that a sieve stands for come first."""
    sifted = False
    for level in spec.levels:
        if level.preds:
            found = _sieves(program, level.preds, level.slot)
            level.preds.sort(key=lambda p: p not in found)
            level.sifted, level.sieves = len(found), list(found.values())
            sifted = sifted or bool(found)
    if sifted:
        _add_implied(spec, program)
    for node in spec.joins:
        if node.children is not None and node.preds and not node.keys:
            for side, child in enumerate(node.children):
                if spec.joins[child].children is None:
                    node.sieves[side] = list(_sieves(program, node.preds, spec.joins[child].slots[0]).values())


def _sieves(program: Program, preds: list[int], slot: int) -> dict[int, Sieve]:
    """The predicates that are sieves of a slot, over as many columns as there is room for."""
    found: dict[int, Sieve] = {}
    columns: set[int] = set()
    for number in preds:
        s = _sieve(program, number, slot)
        if s is not None and len(columns | {s.column}) <= MOST:
            columns.add(s.column)
            found[number] = s
    return found


def _sieve(program: Program, number: int, slot: int) -> Sieve | None:
    """A predicate as a comparison of a column of the slot, on the left, with what does not name the slot."""
    start, end, over = program.preds[number]
    code, end = program.code, end - 3
    compare, load = COMPARISONS.get(code[end], ("", 0))
    if over >= 0 or not compare:
        return None
    middle = _operand(code, end)
    if middle == start + 3 and code[start] == load and code[start + 1] == slot and _fixed(code, middle, end, {slot}):
        return Sieve(code[start + 2], compare, load == LOAD_F, middle, end)
    if middle == end - 3 and code[middle] == load and code[middle + 1] == slot and _fixed(code, start, middle, {slot}):
        return Sieve(code[middle + 2], MIRROR[compare], load == LOAD_F, start, middle)
    return None


def _operand(code: list[int], end: int) -> int:
    """Where the code of the last value before `end` begins."""
    wanted = 1
    while wanted:
        end -= 3
        wanted -= 1 if code[end] in PUSHES else 0 if code[end] in UNARY else -1
    return end


def _fixed(code: list[int], start: int, end: int, slots: set[int]) -> bool:
    """Whether code reads none of these slots, and no set."""
    for i in range(start, end, 3):
        if code[i] in OF_SETS or (code[i] in (LOAD_I, LOAD_F) and code[i + 1] in slots):
            return False
    return True


def _add_implied(spec: FlatSpec, program: Program) -> None:
    """What sieves of later levels say of earlier ones, from the last back, so that a whole chain comes together."""
    free: set[int] = set()
    for i in reversed(range(len(spec.levels))):
        level = spec.levels[i]
        for later in spec.levels[i + 1 :]:
            for s in _implied(program.code, later.sieves, level.slot, free):
                if s not in level.sieves and len({k.column for k in (*level.sieves, s)}) <= MOST:
                    level.sieves.append(s)
        free.add(level.slot)


def _implied(code: list[int], later: list[Sieve], slot: int, free: set[int]) -> Iterator[Sieve]:
    """What two sieves of a column say of a slot that one of them compares it with: x > a and x < e, so a < e."""
    for near in later:
        at = near.start
        if near.end != at + 3 or code[at] not in (LOAD_I, LOAD_F) or code[at + 1] != slot:
            continue
        for far in later:
            if far is near or far.column != near.column or not _fixed(code, far.start, far.end, {slot, *free}):
                continue
            for own, other, strict, weak in ((ABOVE, BELOW, "lt", "le"), (BELOW, ABOVE, "gt", "ge")):
                if near.compare in own and far.compare in other:
                    both = {near.compare, far.compare}
                    op = "eq" if both == {"eq"} else strict if both & {"lt", "gt"} else weak
                    yield Sieve(code[at + 2], op, far.real, far.start, far.end)
