"""The brute-force reading of the semantics contract: slow, plain, and independent of the compiler and the engines.

One alternative of the pattern after another (reference_pattern.py), it tries every event for every variable and every
set of events for every Kleene variable, keeps the maximal candidates, and only then looks at group functions and
negations. Streams of about a dozen events are quick.

Choices made where the contract says nothing are comments that begin with HOLE.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from quercus.compiler.syntax import Attr, Call, Constant, QueryText, Scalar, Var, WindowText
from tests.reference_pattern import (
    Agree,
    Condition,
    Conjunct,
    Leaf,
    Not,
    Op,
    Tree,
    acts_inside,
    all_names,
    alternatives,
    conditions,
    conditions_of,
    conjuncts,
    order_of,
    positive_leaves,
    positive_names,
    positive_parts,
    positive_trees,
    read_pattern,
    windows_of,
)
from tests.reference_scalar import Event, Value, compare, evaluate, fold, names, names_of_elements
from tests.reference_stream import Options, Stream, streams

__all__ = ["Options", "aggregate", "canonical", "matches", "rows"]

DEFAULTS = Options()

# A variable's events: one for a plain variable, any number for a Kleene variable. A variable of a branch not taken is
# no key. A condition is tested once everything it names is a key, so one test serves part of a match and the whole.
Binding = Mapping[str, tuple[Event, ...]]
Row = dict[str, int | list[int]]


@dataclass(frozen=True)
class Match:
    binding: Binding
    kleene: frozenset[str]

    def events(self) -> list[Event]:
        return [event for bound in self.binding.values() for event in bound]

    def rows(self) -> Row:
        return {
            name: sorted(event.row for event in bound) if name in self.kleene else bound[0].row
            for name, bound in self.binding.items()
        }


# Candidates: conditions 1 to 4 of a match -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """One alternative, of the pattern or of something negated, and everything that is said about it."""

    tree: Tree
    leaves: list[Leaf]
    order: frozenset[tuple[str, str]]
    windows: list[tuple[WindowText, frozenset[str]]]
    conditions: list[Condition]

    @property
    def names(self) -> frozenset[str]:
        return positive_names(self.tree)

    @property
    def negations(self) -> list[Not]:
        nodes = (node for node in positive_trees(self.tree) if isinstance(node, Op))
        return [part for node in nodes for part in node.parts if isinstance(part, Not)]

    def tests(self) -> list[Conjunct]:
        """The conjuncts that act on this alternative itself, not inside one of its negations."""
        return [
            condition
            for condition in self.conditions
            if isinstance(condition, Conjunct)
            and not any(acts_inside(condition, negation) for negation in self.negations)
        ]


def readings(tree: Leaf | Op, given: Sequence[Condition], window: WindowText | None = None) -> Iterator[Reading]:
    """`given` are conditions from outside: WHERE, or what the surroundings of a negation hand down to it."""
    for taken in alternatives(tree):
        windows = windows_of(taken) + ([(window, positive_names(taken))] if window is not None else [])
        yield Reading(taken, positive_leaves(taken), order_of(taken), windows, [*given, *conditions_of(taken)])


def passes(test: Conjunct, binding: Binding) -> bool:
    """Only true passes; what names an absent variable, or an element of an empty set, is not tested.

    HOLE: a group function of an empty set *is* tested (count is 0, the others are null), although the conjunct names an
    empty set: section 4 gives it a value, which would otherwise never be seen.
    """
    if not test.names <= binding.keys() or any(not binding[name] for name in test.elements):
        return True
    order = sorted(test.elements)
    choices = product(*(binding[name] for name in order))
    return all(evaluate(test.expr, dict(zip(order, choice, strict=True)), binding) is True for choice in choices)


class Search:
    """Every candidate of one reading over some events. `outer` holds what the levels around a negation have bound."""

    def __init__(self, stream: Stream, reading: Reading, events: Sequence[Event], outer: Binding) -> None:
        self.stream, self.events, self.outer = stream, events, outer
        self.order, self.windows, self.names = reading.order, reading.windows, reading.names
        self.leaves = sorted(reading.leaves, key=lambda leaf: leaf.kleene)  # plain variables first: fewer sets to try
        self.tests = [test for test in reading.tests() if not test.of_group]
        self.agree = [condition for condition in reading.conditions if isinstance(condition, Agree)]

    def candidates(self) -> Iterator[Binding]:
        if all(passes(test, self.outer) for test in self.tests if test.names.isdisjoint(self.names)):
            yield from self.extend(self.leaves, self.outer)

    def extend(self, leaves: Sequence[Leaf], binding: Binding) -> Iterator[Binding]:
        if not leaves:
            yield binding
            return
        for chosen in self.choices(leaves[0], (), self.events, binding):
            yield from self.extend(leaves[1:], {**binding, leaves[0].var: chosen})

    def choices(
        self, leaf: Leaf, chosen: tuple[Event, ...], rest: Sequence[Event], binding: Binding
    ) -> Iterator[tuple[Event, ...]]:
        """`chosen`, and every set that adds some of `rest` to it. What does not fit a set does not fit a larger one."""
        if len(chosen) >= leaf.least:
            yield chosen
        if leaf.most is None or len(chosen) < leaf.most:
            fitting = [event for event in rest if self.fits(leaf, event, {**binding, leaf.var: chosen})]
            for number, event in enumerate(fitting):
                yield from self.choices(leaf, (*chosen, event), fitting[number + 1 :], binding)

    def fits(self, leaf: Leaf, event: Event, binding: Binding) -> bool:
        """May `event` be (an element of) the leaf's variable, beside what is bound so far?"""
        if not self.stream.is_a(event, leaf.type):
            return False
        for name in self.names & binding.keys():
            for other in binding[name]:
                if other is event:
                    return False
                if (name, leaf.var) in self.order and not self.stream.before(other, event):
                    return False
                if (leaf.var, name) in self.order and not self.stream.before(event, other):
                    return False
                for window, covered in self.windows:
                    if {name, leaf.var} <= covered and not self.stream.within(window, event, other):
                        return False
        for same in self.agree:
            if leaf.var in same.names:
                for name in same.names & binding.keys():
                    for other in binding[name]:
                        if compare("=", event.value(same.attr), other.value(same.attr)) is not True:
                            return False
        trial = {**binding, leaf.var: (event,)}
        return all(passes(test, trial) for test in self.tests if leaf.var in test.names)


def maximal(candidates: Iterable[Binding], leaves: Sequence[Leaf]) -> list[Binding]:
    """Drop a candidate when another one with the same fixed variables has supersets for all `+` and `*` variables."""
    growing = [leaf.var for leaf in leaves if leaf.most is None]
    fixed = [leaf.var for leaf in leaves if leaf.most is not None]
    alike: dict[object, list[Binding]] = defaultdict(list)
    for candidate in candidates:
        alike[tuple(frozenset(candidate[name]) for name in fixed)].append(candidate)
    kept: list[Binding] = []
    for group in alike.values():
        largest_first = sorted(group, key=lambda binding: -sum(len(binding[name]) for name in growing))
        survivors: list[Binding] = []
        for candidate in largest_first:
            if not any(all(set(candidate[name]) <= set(other[name]) for name in growing) for other in survivors):
                survivors.append(candidate)
        kept += survivors
    return kept


# Negation -------------------------------------------------------------------------------------------------------------


def bound(tree: Tree, binding: Binding) -> list[Event]:
    """What a positive component has bound, in order of position."""
    found = [event for leaf in positive_leaves(tree) for event in binding[leaf.var]]
    return sorted(found, key=lambda event: event.pos)


def root_scope(stream: Stream, tree: Tree, window: WindowText | None, binding: Binding) -> list[Event]:
    """The events that a negation at the root can reach.

    HOLE: without WITHIN a negation reaches everything (in a root AND, everything up to the end). An AND in parentheses
    with a window at the root stays a root AND, since an inner window narrows no scope.
    """
    while isinstance(tree, Op) and len(tree.parts) == 1:
        tree = tree.parts[0]
    root_and = isinstance(tree, Op) and tree.kind == "AND"
    found = bound(tree, binding)
    start, end = found[0], found[-1]

    def reaches(x: Event) -> bool:
        if window is None:
            return x.ts <= end.ts if root_and else True
        if window.unit == "events":
            last = end.pos if root_and else start.pos + int(window.size) - 1
            return end.pos - window.size < x.pos <= last
        reach = stream.span(window)
        return end.ts - reach <= x.ts <= (end.ts if root_and else start.ts + reach)

    return [x for x in stream.events if reaches(x)]


def negations(
    stream: Stream, tree: Tree, scope: list[Event], binding: Binding
) -> Iterator[tuple[Not, list[Event], list[Event]]]:
    """Each negation of an alternative that has `scope` as its own, with its scope and its positive siblings' events."""
    if not isinstance(tree, Op):
        return
    siblings = [event for part in positive_parts(tree) for event in bound(part, binding)]
    for number, part in enumerate(tree.parts):
        gap = scope
        if tree.kind == "SEQ":
            for neighbour in tree.parts[:number]:
                if not isinstance(neighbour, Not) and (events := bound(neighbour, binding)):
                    gap = [x for x in gap if stream.before(events[-1], x)]
            for neighbour in tree.parts[number + 1 :]:
                if not isinstance(neighbour, Not) and (events := bound(neighbour, binding)):
                    gap = [x for x in gap if stream.before(x, events[0])]
        if isinstance(part, Not):
            yield part, gap, siblings
        else:
            yield from negations(stream, part, gap, binding)


def is_accepted(stream: Stream, reading: Reading, binding: Binding, scope: list[Event]) -> bool:
    """Group functions and negations: they drop matches and never shrink sets."""
    if not all(passes(test, binding) for test in reading.tests() if test.of_group):
        return False
    for negation, gap, siblings in negations(stream, reading.tree, scope, binding):
        handed_down = [condition for condition in reading.conditions if acts_inside(condition, negation)]
        if has_match(stream, negation.body, [x for x in gap if x not in siblings], gap, binding, handed_down):
            return False
    return True


def has_match(
    stream: Stream,
    body: Leaf | Op,
    events: list[Event],
    scope: list[Event],
    outer: Binding,
    given: Sequence[Condition],
) -> bool:
    """Does what is negated occur among `events`? Its own negations have `scope` as theirs.

    HOLE: an event that the siblings have bound is kept from N's own match, not from negations inside N.
    """
    for reading in readings(body, given):
        leaves = [
            Leaf(leaf.type, leaf.var, leaf.least, leaf.most or leaf.least, leaf.kleene) for leaf in reading.leaves
        ]
        once = Reading(reading.tree, leaves, reading.order, reading.windows, reading.conditions)
        for binding in Search(stream, once, events, outer).candidates():
            if is_accepted(stream, once, binding, scope):
                return True
    return False


# The answer -----------------------------------------------------------------------------------------------------------


def answer(query: QueryText, events: Sequence[Mapping[str, object]], options: Options) -> list[Match]:
    tree = read_pattern(query.pattern)
    given = conditions(conjuncts(query.where), tree)
    found: dict[object, Match] = {}
    for stream in streams(events, options, query.partition_by):
        for reading in readings(tree, given, query.window):
            kleene = frozenset(leaf.var for leaf in reading.leaves if leaf.kleene)
            for binding in maximal(Search(stream, reading, stream.events, {}).candidates(), reading.leaves):
                match = Match({name: binding[name] for name in all_names(tree) if name in binding}, kleene)
                if match.events() and is_accepted(
                    stream, reading, binding, root_scope(stream, reading.tree, query.window, binding)
                ):
                    found[identity(match.rows())] = match

    def place(match: Match) -> tuple[int, int, list[list[int]]]:
        positions = [event.pos for event in match.events()]
        return max(positions), min(positions), [sorted(x.row for x in bound) for bound in match.binding.values()]

    return sorted(found.values(), key=place)


def read_query(query: str | QueryText) -> QueryText:
    if isinstance(query, QueryText):
        return query
    from quercus.compiler.parse import parse_query

    return parse_query(query)


def matches(query: str | QueryText, events: Sequence[Mapping[str, object]], options: Options = DEFAULTS) -> list[Row]:
    """Every match: variable -> row number in the input, or the sorted row numbers of a Kleene set.

    >>> matches("PATTERN SEQ(A a, B+ b) WITHIN 5", [{"type": "A", "ts": 1}, {"type": "B", "ts": 2}])
    [{'a': 0, 'b': [1]}]
    """
    return [match.rows() for match in answer(read_query(query), events, options)]


def identity(row: Mapping[str, int | Sequence[int]]) -> frozenset[tuple[str, int | tuple[int, ...]]]:
    return frozenset((name, at if isinstance(at, int) else tuple(sorted(at))) for name, at in row.items())


def canonical(found: Iterable[Mapping[str, int | Sequence[int]]]) -> frozenset[object]:
    """Matches as a set, to compare two answers. A match given twice is an error: it would vanish in the set."""
    listed = [identity(row) for row in found]
    result = frozenset(listed)
    if len(result) != len(listed):
        raise ValueError("a match is given twice")
    return result


# RETURN and AGG -------------------------------------------------------------------------------------------------------


def rows(
    query: str | QueryText, events: Sequence[Mapping[str, object]], options: Options = DEFAULTS
) -> list[tuple[object, ...]] | list[dict[str, object]]:
    """RETURN: a tuple per match. With no RETURN, a dict per match of every attribute, as {"a.x": 1, "b.x": [2, 3]}."""
    query = read_query(query)
    found = answer(query, events, options)
    if query.returns:
        return [tuple(projected(output.value, match) for output in query.returns) for match in found]
    return [
        {f"{name}.{column}": projected(Attr(name, column), match) for name, column in columns(match)} for match in found
    ]


def columns(match: Match) -> list[tuple[str, str]]:
    pairs = [(name, column) for name, bound in match.binding.items() for event in bound for column in event.attributes]
    return list(dict.fromkeys(pairs))


def projected(expr: Scalar, match: Match) -> object:
    """HOLE: an element-wise expression over a Kleene variable gives a list, in order of position; `RETURN v` gives the
    whole row of the event (Kleene: a list of rows); an absent variable has null attributes and, for group functions, an
    empty set.
    """
    if isinstance(expr, Var):
        found = [dict(event.attributes) for event in sorted(match.binding.get(expr.name, ()), key=lambda x: x.pos)]
        return found if expr.name in match.kleene else found[0] if found else None
    one = {name: bound[0] for name, bound in match.binding.items() if name not in match.kleene}
    each = sorted(names_of_elements(expr) & match.kleene)
    if not each:
        return evaluate(expr, one, match.binding)
    elements = sorted(match.binding[each[0]], key=lambda event: event.pos)
    return [evaluate(expr, {**one, each[0]: element}, match.binding) for element in elements]


def aggregate(
    query: str | QueryText, events: Sequence[Mapping[str, object]], options: Options = DEFAULTS
) -> list[dict[str, object]]:
    """AGG: one dict per group, the groups in order of their first match. Keys: the name after AS, or label()'s."""
    query = read_query(query)
    by = [Attr(item.name, "type") if isinstance(item, Var) else item for item in query.group_by]
    groups: dict[tuple[object, ...], list[Match]] = {} if by else {(): []}
    for match in answer(query, events, options):
        groups.setdefault(tuple(projected(item, match) for item in by), []).append(match)
    return [
        {label(item): value for item, value in zip(by, key, strict=True)}
        | {output.name or label(output.value): total(output.value, group) for output in query.aggregates}
        for key, group in groups.items()
    ]


def total(call: Scalar, group: Sequence[Match]) -> Value:
    """One aggregate over a group of matches: every bound event of the variable, in every match."""
    assert isinstance(call, Call)
    if call.star:
        return len(group)
    (argument,) = call.args
    (name,) = names(argument)
    elements = [event for match in group for event in match.binding.get(name, ())]
    if isinstance(argument, Var):
        return len(elements)
    return fold(call.name.lower(), [evaluate(argument, {name: event}, {}) for event in elements])


def label(expr: Scalar) -> str:
    """A column's name where the query gives none: COUNT(*), SUM(b.x), a.id."""
    match expr:
        case Attr(var=var, name=name):
            return f"{var}.{name}"
        case Var(name=name):
            return name
        case Constant(value=value):
            return repr(value)
        case Call(name=name, star=True):
            return f"{name.upper()}(*)"
        case Call(name=name, args=args):
            return f"{name.upper()}({', '.join(map(label, args))})"
    return type(expr).__name__
