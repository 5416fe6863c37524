"""What the tests of streams share: streams fed in random pieces, late events, and what could still undo a match.

The comparisons are functions of what was given, not of a stream, so that tests can hand them wrong answers too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, pairwise, product
from random import Random
from typing import Any

import pyarrow as pa

import quercus as qc
from quercus.ir import pattern as p
from tests import generate
from tests.generate import ATTRIBUTES, Drawing, Sample
from tests.reference import identity
from tests.test_engine import table

Event = dict[str, object]
Row = dict[str, int | list[int]]
Identity = frozenset[tuple[str, int | tuple[int, ...]]]


def time(event: Mapping[str, object]) -> int:
    ts = event["ts"]
    assert isinstance(ts, int)
    return ts


def in_order(sample: Sample) -> Sample:
    return replace(sample, events=sorted(sample.events, key=time))


def keyed(sample: Sample, *key: str) -> Sample:
    """The sample over a stream with a declared key; `schema_of` has to make its schema."""
    return replace(sample, options=replace(sample.options, key=key))


def schema_of(sample: Sample) -> qc.Schema:
    o = sample.options
    return qc.Schema(
        ATTRIBUTES, ties=o.ties, time_unit=o.time_unit, hierarchy=dict(o.hierarchy), key=list(o.key) or None
    )


def events_of(text: str) -> list[Event]:
    """`a1 b2.7` is an A at 1 without an id and a B at 2 with id 7."""
    found = []
    for word in text.split():
        at, _, key = word[1:].partition(".")
        found.append({"type": word[0].upper(), "ts": int(at), "id": int(key) if key else None})
    return found


# Feeding a stream -----------------------------------------------------------------------------------------------------


def record_batch(events: list[Event]) -> pa.RecordBatch:
    whole = table(events).combine_chunks()
    return pa.RecordBatch.from_arrays([c.combine_chunks() for c in whole.columns], schema=whole.schema)


FORMS: dict[str, Callable[[list[Event]], object]] = {
    "table": table,
    "record batch": record_batch,
    "list of dicts": list,
    "dict of columns": lambda events: table(events).to_pydict(),
}


def cuts(r: Random, count: int) -> list[tuple[int, int]]:
    """Ranges that make up the whole: one event each, all at once, or any, empty ones among them."""
    kind = r.choice(("one", "one", "all", "any", "any", "any"))
    if kind == "one":
        places = list(range(count + 1))
    else:
        places = sorted([0, count, *([] if kind == "all" else (r.randint(0, count) for _ in range(r.randint(1, 6))))])
    return list(pairwise(places))


@dataclass
class Fed:
    """What each push gave, and at the end what was held back until then."""

    pushes: list[Any]
    final: Any
    dropped: int

    @property
    def all(self) -> list[Any]:
        return [*self.pushes, self.final]

    def rows(self) -> list[Row]:
        return [row for given in self.all for row in given.rows()]


def feed(plan: qc.Plan, events: list[Event], r: Random, **options: object) -> Fed:
    """Push the events piece by piece, and now and then go on from a snapshot, or take one and go on as before."""
    stream = plan.stream(**options)
    ranges = cuts(r, len(events))
    breaks = Counter(r.choices(range(len(ranges) + 1), k=r.choice((0, 1, 1, 1, 2, 4))))
    pushes = []
    for number, (first, last) in enumerate(ranges):
        stream = broken_off(plan, stream, breaks[number], r)
        form = FORMS[r.choice(("table", "table", *FORMS))]
        pushes.append(stream.push(form(events[first:last])))
    stream = broken_off(plan, stream, breaks[len(ranges)], r)
    stream.close()
    return Fed(pushes, stream.final, stream.dropped)


def broken_off(plan: qc.Plan, stream: Any, times: int, r: Random) -> Any:
    for _ in range(times):
        state = stream.snapshot()
        assert isinstance(state, bytes)
        if r.random() < 0.8:
            stream = plan.restore(state)
    return stream


# Comparisons ----------------------------------------------------------------------------------------------------------


def same(given: Iterable[Row], expected: Iterable[Row | Identity], shown: object) -> int:
    """Every match is given exactly once, and nothing else; returns how many there are."""
    got = Counter(identity(row) for row in given)
    wanted = Counter(row if isinstance(row, frozenset) else identity(row) for row in expected)
    assert got == wanted, f"{shown}\nmissing {dict(wanted - got)}\nunexpected {dict(got - wanted)}"
    return wanted.total()


def in_answer_order(rows: Sequence[Row], variables: Sequence[str], place: Callable[[int], int]) -> bool:
    """By end, then start, then what the variables are bound to: a set by its first element, an absent one first."""

    def key(row: Row) -> tuple[int, ...]:
        bound = {name: [at] if isinstance(at, int) else at for name, at in row.items()}
        places = {name: sorted(map(place, at)) for name, at in bound.items()}
        every = [at for found in places.values() for at in found]
        return max(every), min(every), *(places[v][0] if places.get(v) else -1 for v in variables)

    keys = [key(row) for row in rows]
    return keys == sorted(keys)


def ordered(fed: Fed, plan: qc.Plan, events: list[Event], shown: object) -> None:
    """Each push gives its matches in the order in which a run gives them."""
    by_time = sorted(range(len(events)), key=lambda row: time(events[row]))
    place = {row: at for at, row in enumerate(by_time)}
    variables = [v.var for v in plan.query.variables]
    for given in fed.all:
        assert in_answer_order(given.rows(), variables, place.__getitem__), f"{shown}\nout of order {given.rows()}"


def same_columns(fed: Fed, expected: pa.Table, shown: object) -> None:
    """What the matches show of their events is what a run shows, though most of those events are gone by the end."""
    tables = [given.to_arrow() for given in fed.all]
    assert all(t.schema == expected.schema for t in tables), shown
    got = Counter(repr(row) for t in tables for row in t.to_pylist())
    assert got == Counter(map(repr, expected.to_pylist())), shown


# Events that come late ------------------------------------------------------------------------------------------------


def delayed(events: list[Event], most: int, r: Random) -> list[Event]:
    """The events as they come when each is up to `most` on its way: none is earlier than the clock by then."""
    arrivals = [(time(e) + r.randint(0, most), number) for number, e in enumerate(events)]
    return [events[number] for _, number in sorted(arrivals)]


def punctual(events: list[Event], delay: int) -> list[int]:
    """The rows that are not late: no earlier than the greatest time that came before them, less the delay."""
    greatest = time(events[0])
    found = []
    for row, event in enumerate(events):
        if time(event) >= greatest - delay:
            found.append(row)
        greatest = max(greatest, time(event))
    return found


def mapped(rows: Iterable[Row], numbers: Sequence[int]) -> list[Row]:
    """The matches with other row numbers."""
    return [
        {name: numbers[at] if isinstance(at, int) else [numbers[i] for i in at] for name, at in row.items()}
        for row in rows
    ]


# What could still undo a match ----------------------------------------------------------------------------------------


class Plain(Drawing):
    """Draws queries without conditions: there any event of a type will do to undo a match."""

    def conditions(self, tree: generate.Tree) -> list[str]:
        return []


def plain_samples(seeds: range, ties: str | None = None, key: tuple[str, ...] = ()) -> Iterator[tuple[Sample, p.Query]]:
    """Samples without conditions, in which two more events are enough to violate any negation.

    Where a window counts events, there may be no room for two; and what is negated inside a negation may be there
    already. A stream need not see that.
    """
    for seed in seeds:
        sample = keyed(in_order(Plain(seed).sample()), *key)
        if ties is not None:
            sample = replace(sample, options=replace(sample.options, ties=ties))
        if "PARTITION" in sample.query:
            continue
        try:
            query = sample.bind()
        except qc.QueryError:
            continue
        most = 1 if re.search("EVENTS|UNIT", sample.query) else 2
        negated = [node.body for node in p.walk(query.pattern) if isinstance(node, p.Not)]
        if all(size(body) <= most and not has_negation(body) for body in negated):
            yield sample, query


def size(pattern: p.Pattern) -> int:
    return sum(leaf.least if isinstance(leaf, p.Kleene) else 1 for leaf in p.leaves(pattern))


def has_negation(pattern: p.Pattern) -> bool:
    return any(isinstance(node, p.Not) for node in p.walk(pattern))


def extensions(sample: Sample, query: p.Query, clock: int) -> Iterator[list[Event]]:
    """One or two events that may still come, the likeliest to undo something first."""
    named = {leaf.leaf.type if isinstance(leaf, p.Kleene) else leaf.type for leaf in leaves_that_undo(query.pattern)}
    schema = sample.schema()
    types = sorted({t for name in named for t in schema.accepts(name)})
    soon = [clock + 1, clock, clock + 2]
    far = range(clock + 3, clock + 2 + max(query.window.size, 7))
    blanks: list[Event] = [dict.fromkeys(ATTRIBUTES)]
    for name in sample.options.key:
        blanks = [{**b, name: v} for b in blanks for v in {e[name] for e in sample.events} - {None}]
    for ts, type_, blank in product([*soon, *far], types, blanks):
        yield [{**blank, "ts": ts, "type": type_}]
    for times in combinations_with_replacement(sorted(soon), 2):
        for *both, blank in product(types, types, blanks):
            yield [{**blank, "ts": ts, "type": type_} for ts, type_ in zip(times, both, strict=True)]


def leaves_that_undo(pattern: p.Pattern) -> Iterator[p.Leaf | p.Kleene]:
    """What is negated, and sets that can grow."""
    for node in p.walk(pattern):
        if isinstance(node, p.Not):
            yield from p.leaves(node, negated=True)
        elif isinstance(node, p.Kleene) and node.most is None:
            yield node


def decided(sample: Sample, query: p.Query, seen: list[Event], clock: int, open_: set[Identity]) -> set[Identity]:
    """Those of the open matches that no one or two later events can undo."""
    left = set(open_)
    for more in extensions(sample, query, clock):
        if not left:
            break
        left &= generate.evaluated(sample.query, [*seen, *more], sample.options)  # type: ignore[arg-type]
    return left


def surely_decided(
    sample: Sample, query: p.Query, seen: list[Event], clock: int, open_: set[Identity]
) -> set[Identity]:
    """Those of them that a stream must see to be decided.

    It need not see that the other events it has seen keep a negation from being violated, nor that strict order leaves
    no time for the events of what is negated, one after the other.
    """
    left = decided(sample, query, seen, clock, open_)
    if any(isinstance(node, p.Not) and size(node.body) > 1 for node in p.walk(query.pattern)):
        sample = replace(sample, options=replace(sample.options, ties="arrival"))
        left = decided(sample, query, seen, clock, left)
    return {match for match in left if decided(sample, query, alone(match, seen), clock, {match})}


def alone(match: Identity, seen: list[Event]) -> list[Event]:
    """The stream with the match's events, and events of no meaning in the places of all others."""
    rows = {row for _, at in match for row in ([at] if isinstance(at, int) else at)}
    return [event if row in rows else {**event, "type": "Z"} for row, event in enumerate(seen)]


@dataclass
class Punctuality:
    late: list[tuple[int, Identity]]  # a match that was decided after so many events, but not given
    held: int  # times that a match was rightly held back
    early: int  # matches given before the end


def punctuality(sample: Sample, query: p.Query, pushes: Sequence[Iterable[Row]]) -> Punctuality:
    """Judge what was given when the sample's events were pushed one by one."""
    found = Punctuality([], 0, 0)
    given: set[Identity] = set()
    for count, rows in enumerate(pushes, 1):
        given |= {identity(row) for row in rows}
        seen = sample.events[:count]
        so_far: set[Identity] = set(generate.evaluated(sample.query, seen, sample.options))  # type: ignore[arg-type]
        open_ = so_far - given
        late = surely_decided(sample, query, seen, time(seen[-1]), open_)
        found.late += [(count, match) for match in late]
        found.held += len(open_ - late)
    found.early = len(given)
    return found
