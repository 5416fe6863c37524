"""Trees of joins -> the matcher's join nodes: internal buffers, what each tests, and the events those tests read.

Plain variables are joined. A Kleene leaf is not: its sets are completed, and the combinations of `[n]` taken, for each
composite of the root (FAEM's ranges of a leaf buffer, and its late combination). So a join with a Kleene leaf is its
other child. A stack is no tree: where it is the root it is searched depth first; below a join it is joined from left
to right.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from attrs import frozen

from quercus.backends.local.code import OP
from quercus.backends.local.specs import FlatSpec, JoinSpec, LevelSpec, Name, Program
from quercus.errors import LimitExceeded
from quercus.ir import tree as t
from quercus.ir.flat import Flat

STATE_BYTES = 4 << 30  # what internal buffers may take, if nothing else is said
ROUND = 4_096  # events of a leaf in one round

Operator = t.Join | t.Stack


@frozen
class Pair:
    """An inner node of an alternative's tree; `source` is the operator of the plan that it comes from."""

    left: Pair | str
    right: Pair | str
    source: Operator


def joined(root: t.Node, f: Flat) -> Pair | None:
    """The tree over an alternative's plain variables; None: no joins, so it is searched depth first."""
    choices = dict(f.choices)
    while True:
        match root:
            case t.Reject() | t.Test() | t.Combine() | t.Nest():
                root = root.source
            case t.Union():
                root = root.branches[choices[root.number]]
            case t.Stack(steps=(step,)):
                root = step.component
            case t.Join():
                found = _tree(root, choices)
                return found if isinstance(found, Pair) else None
            case _:
                return None


def _tree(n: t.Node, choices: dict[int, int]) -> Pair | str | None:
    match n:
        case t.Buffer():
            return None if n.kleene else n.var
        case t.Join():
            return _paired(_tree(n.left, choices), _tree(n.right, choices), n)
        case t.Stack():
            left: Pair | str | None = None
            for s in n.steps:
                left = _paired(left, _tree(s.component, choices), n)
            return left
        case t.Union():
            return _tree(n.branches[choices[n.number]], choices)
        case t.Reject() | t.Test() | t.Combine() | t.Nest():
            return _tree(n.source, choices)
        case t.Empty():
            return None
        case _:
            assert_never(n)


def _paired(left: Pair | str | None, right: Pair | str | None, source: Operator) -> Pair | str | None:
    return Pair(left, right, source) if left is not None and right is not None else left if right is None else right


# Lowering -------------------------------------------------------------------------------------------------------------


def add_nodes(spec: FlatSpec, tree: Pair, f: Flat, names: dict[str, Name]) -> None:
    """The nodes of a tree, children first."""
    types = {b.var: set(b.accepts) for b in f.buffers}

    def add(part: Pair | str) -> int:
        if isinstance(part, str):
            node = JoinSpec([part], slots=list(names[part].slots), source=None)
        else:
            left, right = add(part.left), add(part.right)
            a, b = spec.joins[left], spec.joins[right]
            node = JoinSpec([*a.variables, *b.variables], [*a.slots, *b.slots], (left, right), source=part.source)
            node.ordered = part.source.op == "SEQ"
            if not node.ordered:
                pairs = ((u, v) for u in a.variables for v in b.variables if types[u] & types[v])
                node.distinct = [(names[u].slots[0], names[v].slots[0]) for u, v in pairs]
        spec.joins.append(node)
        return len(spec.joins) - 1

    add(tree)


class Homes:
    """Where what names some slots is tested: the lowest join that binds them, or the level that binds the last."""

    def __init__(self, spec: FlatSpec) -> None:
        self.spec = spec
        self.level_of = {s: i for i, level in enumerate(spec.levels) for s in (level.slot, *level.slots)}
        self.inner = [(set(j.slots), j) for j in spec.joins if j.children is not None]

    def of(self, named: Iterable[int]) -> LevelSpec | JoinSpec | None:
        """None: there is nothing to bind before the sets."""
        named = set(named)
        levels = [self.level_of[s] for s in named if s in self.level_of]
        if self.inner and not levels:
            home = next(j for slots, j in self.inner if named <= slots)
            home.needs |= named
            return home
        return self.spec.levels[max(levels, default=0)] if self.spec.levels else None


def finish_nodes(spec: FlatSpec, program: Program, windows: list[tuple[list[int], int]]) -> None:
    """When everything has its place: the narrowest windows, the columns to hash on, the events to fetch."""
    for node in spec.joins:
        if node.children is None:
            continue
        around = [program.windows[w] for slots, w in windows if set(node.slots) <= set(slots)]
        node.within_time = min((w.size for w in around if not w.count), default=None)
        node.within_count = min((w.size for w in around if w.count), default=None)
        left, right = (spec.joins[c] for c in node.children)
        for number in node.preds:
            key = _key(program, number)
            if key is not None and key[0] in right.slots and key[2] in left.slots:
                key = (key[2], key[3], key[0], key[1], key[4])
            if key is not None and key[0] in left.slots and key[2] in right.slots:
                node.keys.append(key)
        needs = node.needs | {s for pair in node.distinct for s in pair}
        node.fetch = [_fetch(spec, c, needs) for c in node.children]


def _key(program: Program, number: int) -> tuple[int, int, int, int, bool] | None:
    """(slot, column, slot, column, whether float64) of a test that two columns are equal."""
    start, end, over = program.preds[number]
    code = program.code[start:end]
    for kind, real in (("i", False), ("f", True)):
        load, equal = OP[f"load_{kind}"], OP[f"eq_{kind}"]
        if over < 0 and len(code) == 9 and (code[0], code[3], code[6]) == (load, load, equal):
            return code[1], code[2], code[4], code[5], real
    return None


def _fetch(spec: FlatSpec, child: int, needs: set[int]) -> list[tuple[int, list[int]]]:
    """The slots needed of a child, each with the way down to its leaf: 0 left, 1 right."""
    node = spec.joins[child]
    if node.children is None:
        return [(s, []) for s in node.slots if s in needs]
    return [(s, [side, *way]) for side, c in enumerate(node.children) for s, way in _fetch(spec, c, needs)]


# What a run has to say ------------------------------------------------------------------------------------------------


@frozen
class Measured:
    """What a join did in a run. `bytes` is the most that its internal buffer held; the root keeps none."""

    variables: tuple[str, ...]
    source: Operator
    compared: int
    built: int
    bytes: int
    seconds: float


def measured(spec: FlatSpec, nodes: list[tuple[int, int, int, int]]) -> list[Measured]:
    """The joins of an alternative, children first."""
    return [
        Measured(tuple(j.variables), j.source, compared, built, size, nanoseconds / 1e9)
        for j, (compared, built, size, nanoseconds) in zip(spec.joins, nodes, strict=True)
        if j.source is not None
    ]


def too_much_state(spec: FlatSpec, node: int, limit: int) -> LimitExceeded:
    """The error that names the internal buffer which had no room to grow."""
    what = ", ".join(spec.joins[node].variables)
    return LimitExceeded(
        f"the internal buffer of ({what}) needs more than the limit of {limit:,} bytes for all internal buffers: "
        'tighten WITHIN, add conditions on these variables, compile with shape="stack", '
        "or raise Limits(max_state_bytes=)",
        limit="max_state_bytes",
        value=limit,
    )
