"""Which alternatives can be totalled without listing their matches, and why others cannot.

A countable alternative is a row of blocks, one before the next: a plain leaf, a set of exactly n, or leaves in no order
(AND). In the gaps between them, before the first and after the last, stand sets (`+`, `*`) and negated leaves. Nothing
else may tie events to each other but the window and the key: then all that matters of a partial match is how far it
has come.
"""

from __future__ import annotations

from attrs import frozen

from quercus.ir import expr as x
from quercus.ir import text
from quercus.ir import tree as t
from quercus.ir.flat import Flat, FlatNegation, flatten

MOST_STATES = 62
MOST_IN_AND = 5
MOST_SYMBOLS = 255


@frozen
class Block:
    """Leaves that are bound between the same neighbours, in any order; one leaf of `size` events for `[n]`."""

    leaves: tuple[t.Buffer, ...]
    size: int = 1

    @property
    def plain(self) -> bool:
        return len(self.leaves) == 1 and self.size == 1

    @property
    def states(self) -> int:
        """Partial bindings, neither empty nor whole."""
        return self.size - 1 if len(self.leaves) == 1 else 2 ** len(self.leaves) - 2


@frozen
class Gap:
    """What may stand between two blocks: a set, and negated leaves before and after it (before, if there is none)."""

    set: t.Buffer | None = None
    before: tuple[t.Buffer, ...] = ()
    after: tuple[t.Buffer, ...] = ()

    def __bool__(self) -> bool:
        return self != Gap()

    def reversed(self) -> Gap:
        if self.set is None:
            return self
        return Gap(self.set, self.after, self.before)


@frozen
class Countable:
    """An alternative as blocks and the gaps around them: one gap more than there are blocks."""

    blocks: tuple[Block, ...]
    gaps: tuple[Gap, ...]
    backwards: bool = False

    def reversed(self) -> Countable:
        """The same in the order of a stream that is read from its end."""
        gaps = tuple(g.reversed() for g in reversed(self.gaps))
        return Countable(tuple(reversed(self.blocks)), gaps, not self.backwards)

    @property
    def variables(self) -> frozenset[str]:
        """Those that are bound to single events, and sets of a given size."""
        return frozenset(b.var for block in self.blocks for b in block.leaves)


@frozen
class Grouped:
    """How an alternative is read, and GROUPBY answered: by the segment's key, by the event that ends (or, backwards,
    begins) a match, and by one pass for each value of other components.
    """

    backwards: bool
    at_end: tuple[x.Column, ...] = ()
    apart: tuple[x.Column, ...] = ()

    def read(self, c: Countable) -> Countable:
        return c.reversed() if self.backwards else c


def countable(f: Flat, tree: t.Tree) -> Countable | str:
    """The alternative as blocks and gaps, or what stands against it."""
    if f.tests:
        return f"{text.scalar(f.tests[0])} is tested on whole matches"
    if len(f.windows) > 1:
        return "a part has a window of its own"
    for c in f.predicates:
        if not holds(c, tree):
            return f"{text.scalar(c)} ties events to each other"
    blocks = _blocks(f)
    if isinstance(blocks, str):
        return blocks
    gaps = _gaps(f, blocks, tree)
    if isinstance(gaps, str):
        return gaps
    if gaps[0].set is not None and gaps[-1].set is not None:
        return "it has sets at both ends"
    if sum(b.states for b in blocks) + sum(1 if g.set is None else 4 for g in gaps) > MOST_STATES:
        return "it has too many components"
    return Countable(blocks, gaps)


def grouped(c: Countable, tree: t.Tree, *, arrival: bool) -> Grouped | str:
    """How a countable alternative is read and its groups are told apart, or why they are not."""
    found: list[Grouped] = []
    reason = ""
    for backwards in (False, True):
        how = _read(c, tree, backwards, arrival)
        if isinstance(how, Grouped):
            found.append(how)
        else:
            reason = how or reason
    if not found:
        return reason
    return min(found, key=lambda g: (len(g.apart), bool(g.read(c).gaps[-1]), g.backwards))


def _read(c: Countable, tree: t.Tree, backwards: bool, arrival: bool) -> Grouped | str:
    """One way to read an alternative, or what stands against it.

    A match is totalled where its reading ends. What may follow there, up to the end of the window, can only be negated.
    """
    read = c.reversed() if backwards else c
    if read.gaps[-1].set is not None:
        return ""
    if read.gaps[-1] and tree.window.kind == "count" and not arrival:
        return "a window of events can begin among equal times"
    columns = tuple(g for g in tree.group_by if g.var in c.variables)
    if backwards and tree.group_by and not c.blocks[-1].plain:
        return "it ends in several events"
    others = tuple(g for g in columns if not _of_key(g, tree))
    end = _plain_end(read.blocks[-1])
    apart = tuple(g for g in others if g.var != end)
    if backwards and apart:
        return f"GROUPBY {apart[0].var} is not where it begins"
    return Grouped(backwards, tuple(g for g in others if g.var == end), apart)


def live_groups(c: Countable, tree: t.Tree, *, arrival: bool) -> Grouped | str:
    """How the groups of a stream are told apart, or why they are not. Backwards: matches wait for the end of the window
    after their start, and are totalled there.
    """
    if not c.gaps[-1]:
        how = _read(c, tree, backwards=False, arrival=True)
        several = isinstance(how, Grouped) and len({g.var for g in how.apart}) > 1
        return "GROUPBY names several components before the last" if several else how
    if c.gaps[0]:
        return "matches wait, and are open at both ends"
    if tree.window.kind == "count" and not arrival:
        return "matches wait, and a window of events can end among equal times"
    if tree.window.kind == "count" and tree.partition_by:
        return "matches wait, and each key has windows of events of its own"
    others = tuple(g for g in tree.group_by if g.var in c.variables and not _of_key(g, tree))
    if any(g.var != _plain_end(c.blocks[0]) for g in others):
        return "matches wait, and GROUPBY names a component after the first"
    return Grouped(True, others)


def listed_live(tree: t.Tree, *, arrival: bool) -> str | None:
    """Why a stream lists the matches of a tree that a run totals without; None: it does not either."""
    if any(a.function in ("min", "max") and a.type == "string" for a in tree.aggregates):
        return "MIN and MAX of strings"
    for f in flatten(tree.root, tree.window):
        found = countable(f, tree)
        if isinstance(found, str):
            return found
        how = live_groups(found, tree, arrival=arrival)
        if isinstance(how, str):
            return how
        if _symbols(found) > MOST_SYMBOLS:
            return "an event can be too many components"
    return None


def _symbols(c: Countable) -> int:
    """An upper bound of the different sets of buffers that an event can be in."""
    leaves = [b for block in c.blocks for b in block.leaves]
    for gap in c.gaps:
        leaves += [*gap.before, *gap.after, *([] if gap.set is None else [gap.set])]
    buffers = {(b.accepts, tuple(w.expr for w in b.where)) for b in leaves}
    types = [name for accepts, _ in buffers for name in set(accepts)]
    return sum(2 ** types.count(name) - 1 for name in set(types))


def _plain_end(b: Block) -> str | None:
    return b.leaves[0].var if b.plain else None


def _of_key(g: x.Column, tree: t.Tree) -> bool:
    """Whether all matches of a segment have one value, which any of its events shows."""
    if g.type == "float64":  # 0.0 and -0.0 are one key
        return False
    if tree.partition_by:
        return g.attr in tree.partition_by
    return any(g in k.columns for k in tree.keys)


def cuts_ties(c: Countable, tree: t.Tree, *, arrival: bool) -> bool:
    """Whether a count window could begin inside the equal times in which a match lies as a whole."""
    return tree.window.kind == "count" and not arrival and len(c.blocks) == 1 and not c.blocks[0].plain and any(c.gaps)


def holds(e: x.Expr, tree: t.Tree) -> bool:
    """Whether a conjunct holds in every segment of the key."""
    if isinstance(e, x.Same):
        columns = set(e.columns)
    elif isinstance(e, x.Compare) and x.is_equality(e):
        columns = {c for c in (e.left, e.right) if isinstance(c, x.Column)}
    else:
        return False
    if tree.partition_by:
        return len({c.attr for c in columns}) <= 1 and all(c.attr in tree.partition_by for c in columns)
    return any(columns <= set(k.columns) for k in tree.keys)


def is_set(b: t.Buffer) -> bool:
    """A set of any size; one of a given size counts as that many events."""
    return b.kleene and b.most is None


def _blocks(f: Flat) -> tuple[Block, ...] | str:
    fixed = [b for b in f.buffers if not is_set(b)]
    if not fixed:
        return "it is made of sets alone"
    layers: dict[frozenset[str], list[t.Buffer]] = {}
    for b in fixed:
        earlier = frozenset(a.var for a in fixed if (a.var, b.var) in f.before)
        layers.setdefault(earlier, []).append(b)
    blocks: list[Block] = []
    seen: frozenset[str] = frozenset()
    for earlier in sorted(layers, key=len):
        if earlier != seen:
            return "its parts are ordered in part"
        own = layers[earlier]
        seen |= {b.var for b in own}
        sizes = [b.most or 1 for b in own]
        if len(own) > 1 and max(sizes) > 1:
            return "a set stands in an AND"
        if len(own) > MOST_IN_AND:
            return "an AND has too many parts"
        blocks.append(Block(tuple(own), sizes[0]))
    return tuple(blocks)


def _gaps(f: Flat, blocks: tuple[Block, ...], tree: t.Tree) -> tuple[Gap, ...] | str:
    sets: dict[int, t.Buffer] = {}
    for s in f.buffers:
        if not is_set(s):
            continue
        before = [all((v.var, s.var) in f.before for v in b.leaves) for b in blocks]
        after = [all((s.var, v.var) in f.before for v in b.leaves) for b in blocks]
        at = sum(before)
        if before != [i < at for i in range(len(blocks))] or after != [i >= at for i in range(len(blocks))]:
            return "a set is in no order with other parts"
        if at in sets:
            return f"the sets {sets[at].var} and {s.var} stand side by side"
        sets[at] = s
    negated: dict[tuple[int, bool], list[t.Buffer]] = {}
    for g in f.negations:
        leaves = _negated(g, tree)
        if isinstance(leaves, str):
            return leaves
        where = _place(g.scope, f, blocks, sets)
        if where is None:
            return "a negation does not look between neighbours"
        negated.setdefault(where, []).extend(leaves)
    return tuple(
        Gap(sets.get(i), tuple(negated.get((i, False), ())), tuple(negated.get((i, True), ())))
        for i in range(len(blocks) + 1)
    )


def _negated(g: FlatNegation, tree: t.Tree) -> list[t.Buffer] | str:
    if g.excludes:
        return "a negation stands in an AND"
    found: list[t.Buffer] = []
    for body in g.bodies:
        if len(body.buffers) != 1 or body.negations or body.windows or (body.buffers[0].most or 1) > 1:
            return "more than a leaf is negated"
        if body.tests or not all(holds(c, tree) for c in body.predicates):
            return "a negation is tied to other events by more than the key"
        found.append(body.buffers[0])
    return found


def _place(s: t.Scope, f: Flat, blocks: tuple[Block, ...], sets: dict[int, t.Buffer]) -> tuple[int, bool] | None:
    """The gap that a negation looks at, and whether only after the set in it; None: something else."""
    if s.right == "end":
        return None
    left = _edge([frozenset(g) & f.variables for g in s.after], blocks, sets, s.left == "window", last=True)
    right = _edge([frozenset(g) & f.variables for g in s.before], blocks, sets, s.right == "window", last=False)
    if left is None or right is None or left[0] != right[0]:
        return None
    gap, after = left
    return (gap, after) if gap not in sets or after != right[1] else None


def _edge(
    groups: list[frozenset[str]], blocks: tuple[Block, ...], sets: dict[int, t.Buffer], window: bool, *, last: bool
) -> tuple[int, bool] | None:
    """Where neighbours end (or begin): the gap beside them, and whether a set of that gap is the nearest."""
    near = next((g for g in groups if g), None)
    outermost = 0 if last else len(blocks)
    if near is None:
        return (outermost, False) if window else None
    # gaps and blocks take turns: 0 is the first gap, 1 the first block
    places = [2 * i + 1 for i, b in enumerate(blocks) if any(v.var in near for v in b.leaves)]
    places += [2 * i for i, b in sets.items() if b.var in near]
    edge = max(places) if last else min(places)
    gap = (edge + 1) // 2 if last else edge // 2
    if edge % 2 == 0 and sets[gap].least > 0:
        return gap, True
    beside = gap - 1 if last else gap  # the block that bounds the gap, where its set is empty
    if 0 <= beside < len(blocks):
        everything = frozenset().union(*groups)
        reached = all(v.var in everything for v in blocks[beside].leaves)
    else:
        reached = window
    return (gap, edge % 2 == 0) if reached else None
