"""The pattern of a query as tests/reference.py reads it: named, freed of transparent operators, taken apart.

An *alternative* is a pattern with no choice left: one branch of every positive OR, one order of every AND that a Kleene
leaf stands directly in. What is negated keeps its choices; they are made when the negation is tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product

from attrs import evolve

from quercus.compiler import syntax
from quercus.compiler.syntax import Chain, SameAttr, Scalar, WindowText
from tests.reference_scalar import has_group_function, names, names_of_elements


@dataclass(frozen=True)
class Leaf:
    type: str
    var: str
    least: int
    most: int | None
    kleene: bool
    where: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class Op:
    kind: str
    parts: tuple[Tree, ...]
    where: tuple[Scalar, ...] = ()
    window: WindowText | None = None


@dataclass(frozen=True)
class Not:
    body: Leaf | Op


Tree = Leaf | Op | Not


# From the text to a tree ----------------------------------------------------------------------------------------------


def read_pattern(pattern: syntax.Pattern) -> Leaf | Op:
    tree = simplified(named(pattern))
    assert not isinstance(tree, Not)
    return tree


def events_of(pattern: syntax.Pattern) -> Iterator[syntax.Event]:
    match pattern:
        case syntax.Event():
            yield pattern
        case syntax.Negation(body=body):
            yield from events_of(body)
        case syntax.Operator(parts=parts):
            for part in parts:
                yield from events_of(part)


def named(pattern: syntax.Pattern) -> syntax.Pattern:
    """Give a name to every leaf: A, or A_1, A_2, ... in text order where A stands unnamed more than once."""
    unnamed = Counter(event.type for event in events_of(pattern) if event.var is None)
    seen: Counter[str] = Counter()

    def visit(node: syntax.Pattern) -> syntax.Pattern:
        match node:
            case syntax.Event(type=type_name, var=None):
                seen[type_name] += 1
                return evolve(node, var=type_name if unnamed[type_name] == 1 else f"{type_name}_{seen[type_name]}")
            case syntax.Event():
                return node
            case syntax.Negation(body=body):
                return evolve(node, body=visit(body))
            case syntax.Operator(parts=parts):
                return evolve(node, parts=tuple(visit(part) for part in parts))
        raise TypeError(node)

    return visit(pattern)


def simplified(pattern: syntax.Pattern) -> Tree:
    """Operators of one component without a window are transparent; their conjuncts stay where the component is."""
    match pattern:
        case syntax.Event():
            assert pattern.var is not None
            return Leaf(pattern.type, pattern.var, pattern.least, pattern.most, pattern.kleene)
        case syntax.Negation(body=body):
            inner = simplified(body)
            assert not isinstance(inner, Not)
            return Not(inner)
        case syntax.Operator(kind=kind, parts=parts, where=where, window=window):
            trees = tuple(simplified(part) for part in parts)
            if len(trees) == 1 and window is None and not isinstance(trees[0], Not):
                return replace(trees[0], where=trees[0].where + conjuncts(where))
            return Op(kind, trees, conjuncts(where), window)
    raise TypeError(pattern)


def conjuncts(where: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Each link of a chain is a conjunct of its own. Top-level commas and `and`s are split in the syntax already.

    HOLE: a chain in parentheses, which the syntax does not tell from one without, is split too.
    """
    result: list[Scalar] = []
    for item in where:
        if isinstance(item, Chain):
            links = zip(item.operands, item.ops, item.operands[1:], strict=False)
            result += [Chain((left, right), (op,)) for left, op, right in links]
        else:
            result.append(item)
    return tuple(result)


# Alternatives ---------------------------------------------------------------------------------------------------------


def alternatives(tree: Tree) -> Iterator[Tree]:
    """Every way to take a branch of each positive OR, and an order of each AND with a Kleene leaf directly in it.

    'Directly' is read from the text: in AND(OR(A+, B), C) the A+ stands in the OR, and the AND keeps no order.
    """
    if not isinstance(tree, Op):
        yield tree
    elif tree.kind == "OR":
        for branch in tree.parts:
            for taken in alternatives(branch):
                yield Op("SEQ", (taken,), tree.where, tree.window)
    elif tree.kind == "AND" and any(isinstance(part, Leaf) and part.kleene for part in tree.parts):
        for order in permutations(tree.parts):
            for chosen in product(*map(alternatives, order)):
                yield Op("SEQ", chosen, tree.where, tree.window)
    else:
        for chosen in product(*map(alternatives, tree.parts)):
            yield Op(tree.kind, chosen, tree.where, tree.window)


def positive_parts(tree: Tree) -> list[Tree]:
    return [part for part in tree.parts if not isinstance(part, Not)] if isinstance(tree, Op) else []


def positive_leaves(tree: Tree) -> list[Leaf]:
    if isinstance(tree, Leaf):
        return [tree]
    return [leaf for part in positive_parts(tree) for leaf in positive_leaves(part)]


def positive_names(tree: Tree) -> frozenset[str]:
    return frozenset(leaf.var for leaf in positive_leaves(tree))


def all_names(tree: Tree) -> list[str]:
    """The variables of a tree in text order, negated ones too."""
    match tree:
        case Leaf(var=var):
            return [var]
        case Not(body=body):
            return all_names(body)
        case Op(parts=parts):
            return [name for part in parts for name in all_names(part)]


def positive_trees(tree: Tree) -> Iterator[Leaf | Op]:
    """The tree and everything in it that no negation holds."""
    if not isinstance(tree, Not):
        yield tree
        for part in positive_parts(tree):
            yield from positive_trees(part)


def order_of(tree: Tree) -> frozenset[tuple[str, str]]:
    """Pairs (u, v) such that every event of u comes before every event of v.

    Composite m comes before n when m.end < n.start, that is, when each event of m is before each of n. All pairs of
    components are taken, not only neighbours, so that an empty Kleene set leaves the rest in order.
    """
    pairs: set[tuple[str, str]] = set()
    for node in positive_trees(tree):
        if isinstance(node, Op) and node.kind == "SEQ":
            for left, right in combinations(positive_parts(node), 2):
                pairs |= set(product(positive_names(left), positive_names(right)))
    return frozenset(pairs)


def windows_of(tree: Tree) -> list[tuple[WindowText, frozenset[str]]]:
    """Each operator's own window, with the variables that it covers."""
    nodes = (node for node in positive_trees(tree) if isinstance(node, Op))
    return [(node.window, positive_names(node)) for node in nodes if node.window is not None]


# Conditions -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Conjunct:
    """One conjunct, with the variables it names, and those of them that it names outside group functions."""

    expr: Scalar
    names: frozenset[str]
    elements: frozenset[str]
    of_group: bool


@dataclass(frozen=True)
class Agree:
    """`[attr]`: all events of these variables agree on `attr` pairwise."""

    attr: str
    names: frozenset[str]


Condition = Conjunct | Agree


def conditions(where: Sequence[Scalar], under: Tree) -> list[Condition]:
    """The conjuncts that stand in one operator. HOLE: `[attr]` in WHERE means the whole pattern."""
    return [
        Agree(item.attr, frozenset(all_names(under)))
        if isinstance(item, SameAttr)
        else Conjunct(item, names(item), names_of_elements(item), has_group_function(item))
        for item in where
    ]


def conditions_of(tree: Tree) -> list[Condition]:
    """The conjuncts that stand in an alternative, outside its negations."""
    return [condition for node in positive_trees(tree) for condition in conditions(node.where, node)]


def acts_inside(condition: Condition, negation: Not) -> bool:
    """A conjunct that names a variable of a negation acts inside it, wherever the conjunct stands.

    HOLE: the contract says so of WHERE; a conjunct in the parentheses of an operator around the negation is read alike.
    """
    return not condition.names.isdisjoint(all_names(negation.body))
