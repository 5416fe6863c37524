"""Laws that relate answers of the engine to each other, on random queries and streams; no reference is asked.

Each law makes cases: two answers that must be equal, and whether the case could have failed. A law that is bent must be
noticed, so that each has a test in which it fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random

import pytest

import quercus as qc
from quercus.ir import pattern as p
from tests import generate
from tests.generate import ATTRIBUTES, Drawing, Op, Sample, valid
from tests.reference import canonical
from tests.test_engine import table

Event = dict[str, object]
Answer = frozenset[object]
INT64 = 2**63


@dataclass(frozen=True)
class Case:
    one: Answer
    other: Answer
    telling: bool
    shown: str


def check(cases: Iterable[Case], enough: int) -> None:
    """Every case holds, and at least so many of them could have failed."""
    telling = 0
    for case in cases:
        assert case.one == case.other, f"{case.shown}\nonly {case.one - case.other}\nnot {case.other - case.one}"
        telling += case.telling
    assert telling >= enough, f"only {telling} cases tell anything"


def noticed(cases: Iterable[Case]) -> bool:
    return any(case.one != case.other for case in cases)


def answer(plan: qc.Plan, events: list[Event], rows: list[int] | None = None) -> Answer:
    """What the plan finds; `rows` says which row of another stream each event is."""
    found = plan.run(table(events)).rows()
    if rows is not None:
        found = [
            {name: rows[at] if isinstance(at, int) else [rows[i] for i in at] for name, at in match.items()}
            for match in found
        ]
    return canonical(found)


def compiled(sample: Sample, query: str | None = None) -> qc.Plan:
    return qc.compile(sample.query if query is None else query, sample.schema())


def has_only_time_windows(sample: Sample) -> bool:
    return re.search(r"EVENTS|UNIT", sample.query) is None


def times(events: list[Event]) -> list[int]:
    return [int(str(e["ts"])) for e in events]


# A shift of time changes nothing --------------------------------------------------------------------------------------


def moved(events: list[Event], by: Callable[[int], int]) -> list[Event]:
    return [{**e, "ts": by(ts)} for e, ts in zip(events, times(events), strict=True)]


def shifts(seeds: range, by: Callable[[int], int] | None = None) -> Iterator[Case]:
    """The generator names times in differences only."""
    for sample, _ in valid(seeds):
        plan, ts = compiled(sample), times(sample.events)
        before = answer(plan, sample.events)
        for shift in (-7, 10**6, -(10**15), INT64 - 2 - max(ts), 1 - INT64 - min(ts)):
            after = answer(plan, moved(sample.events, by or (lambda t, shift=shift: t + shift)))  # type: ignore[misc]
            yield Case(before, after, bool(before), f"{sample}\nshifted by {shift}")


def test_time_can_be_shifted() -> None:
    check(shifts(range(500_000, 500_300)), 500)


def test_stretched_time_is_noticed() -> None:
    assert noticed(shifts(range(500_000, 500_050), by=lambda ts: 2 * ts))


# Events of other types change nothing ---------------------------------------------------------------------------------


def other_types(sample: Sample, query: p.Query) -> list[str]:
    named = {
        leaf.type if isinstance(leaf, p.Leaf) else leaf.leaf.type for leaf in p.leaves(query.pattern, negated=True)
    }
    accepted = {t for name in named for t in sample.schema().accepts(name)}
    return ["Z", *(t for t in generate.TYPES if t not in accepted)]


def additions(seeds: range, types: list[str] | None = None) -> Iterator[Case]:
    for sample, query in valid(seeds):
        if not has_only_time_windows(sample):
            continue
        r = Random(sample.seed)
        known = types or other_types(sample, query)
        ts = times(sample.events)
        mixed: list[tuple[Event, int]] = [(e, row) for row, e in enumerate(sample.events)]
        for _ in range(r.randint(1, 6)):
            extra = {**r.choice(sample.events), "type": r.choice(known), "ts": r.randint(min(ts) - 2, max(ts) + 2)}
            mixed.insert(r.randint(0, len(mixed)), (extra, -1))
        plan = compiled(sample)
        before = answer(plan, sample.events)
        after = answer(plan, [e for e, _ in mixed], [row for _, row in mixed])
        yield Case(before, after, bool(before), f"{sample}\nwith {[e for e, _ in mixed]}")


def test_events_of_other_types_change_nothing() -> None:
    check(additions(range(510_000, 510_600)), 150)


def test_events_of_its_types_are_noticed() -> None:
    assert noticed(additions(range(510_000, 510_050), types=["A", "B", "C", "D"]))


# Keys are streams of their own ----------------------------------------------------------------------------------------


def keys(seeds: range, belongs: Callable[[object], bool]) -> Iterator[Case]:
    for sample, _ in valid(seeds):
        o = sample.options
        keyed = qc.Schema(ATTRIBUTES, ties=o.ties, time_unit=o.time_unit, hierarchy=dict(o.hierarchy), key="id")
        whole = answer(qc.compile(sample.query, keyed), sample.events)
        plan = compiled(sample)
        parts: list[Answer] = []
        for key in dict.fromkeys(e["id"] for e in sample.events):
            rows = [row for row, e in enumerate(sample.events) if e["id"] == key]
            if belongs(key):
                parts.append(answer(plan, [sample.events[row] for row in rows], rows))
        yield Case(whole, frozenset().union(*parts), sum(map(bool, parts)) > 1, str(sample))


def test_a_declared_key_splits_the_stream() -> None:
    check(keys(range(520_000, 520_500), belongs=lambda key: key is not None), 40)


def test_a_key_that_is_left_out_or_too_much_is_noticed() -> None:
    assert noticed(keys(range(520_000, 520_100), belongs=lambda key: key == 1))
    assert noticed(keys(range(520_000, 520_500), belongs=lambda key: True))


# OR is the union of its branches --------------------------------------------------------------------------------------

VARIABLE = re.compile(r"(?<!\.)\b[a-z]\d*(?=[.)])")  # of a.v and count(b), but not the b of a.b


def two_branches(seed: int) -> tuple[str, str, str, Sample]:
    """The queries OR(X, Y), X and Y, with a stream. Every leaf is named: numbers of unnamed ones depend on the rest."""
    d = Drawing(seed)
    d.budget = d.r.choice((1, 2, 3))
    x = d.positive(1 if d.budget > 1 else 2, negated=False)
    d.budget = d.r.choice((1, 2, 2))
    y = d.positive(1 if d.budget > 1 else 2, negated=False)
    either = Op("OR", [x, y])
    d.share_names(either)
    conditions = [d.conditions(x), d.conditions(y)]
    d.windows(either)
    texts = [d.spelled(x, 0), d.spelled(y, 0)]
    shared = {leaf.var for leaf in generate.leaves(x)} & {leaf.var for leaf in generate.leaves(y)}
    for number, tree in enumerate((x, y)):
        negated = {leaf.var for leaf in generate.leaves(tree)} - {leaf.var for leaf in generate.positive_leaves(tree)}
        outside, inside = [], []
        for condition in conditions[number]:
            named = set(VARIABLE.findall(condition))
            # Only WHERE reaches into negations; what names a variable of both branches, or none, stands in its own.
            if named & negated and named & shared:
                continue
            free = named and not named & shared and d.r.random() < 0.5
            (outside if named & negated or free else inside).append(condition)
        conditions[number] = outside
        if inside:
            texts[number] = f"({', '.join([texts[number], *inside])})"
    window = d.window(3, 9)
    own = f" WITHIN {either.window}" if either.window else ""

    def query(pattern: str, where: list[str]) -> str:
        return f"PATTERN {pattern}{own}" + (f" WHERE {', '.join(where)}" if where else "") + f" WITHIN {window}"

    texts = [f"OR({texts[0]}, {texts[1]})", *(f"SEQ({text})" for text in texts)]
    wanted = [leaf.type.replace("X", "A") for leaf in generate.positive_leaves(either)]
    events = generate.stream(d.r, wanted, [leaf.type.replace("X", "B") for leaf in generate.leaves(either)])
    options = generate.reference.Options(
        ties=d.r.choice(("strict", "arrival")), hierarchy=generate.HIERARCHY if d.hierarchy else {}
    )
    sample = Sample(seed, query(texts[0], conditions[0] + conditions[1]), events, options)
    return sample.query, query(texts[1], conditions[0]), query(texts[2], conditions[1]), sample


def unions(seeds: range, branches: int = 2) -> Iterator[Case]:
    for seed in seeds:
        *queries, sample = two_branches(seed)
        try:
            either, *alone = [compiled(sample, q) for q in queries]
        except qc.QueryError as e:
            if e.code in ("E303", "E304", "E503"):  # X or Y is no query
                continue
            raise AssertionError(f"{queries}: {e}") from e
        whole = answer(either, sample.events)
        parts = [answer(plan, sample.events) for plan in alone[:branches]]
        yield Case(whole, frozenset().union(*parts), all(parts), f"{sample}\n{queries[1:]}")


def test_or_is_the_union_of_its_branches() -> None:
    check(unions(range(530_000, 530_500)), 150)


def test_a_lost_branch_is_noticed() -> None:
    assert noticed(unions(range(530_000, 530_050), branches=1))


# A larger window finds no less ----------------------------------------------------------------------------------------


def widened(query: str, more: int) -> str:
    """The query with its own window, which is the last one, so much larger."""
    return re.sub(r"WITHIN (\d+)( UNIT| EVENTS)?$", lambda m: f"WITHIN {int(m[1]) + more}{m[2] or ''}", query)


def wider(seeds: range, more: int) -> Iterator[Case]:
    """Of queries with neither negations, whose scopes grow with the window, nor sets, which do so too."""
    for sample, query in valid(seeds):
        if any(isinstance(node, p.Not | p.Kleene) for node in p.walk(query.pattern)):
            continue
        narrow = answer(compiled(sample), sample.events)
        wide = answer(compiled(sample, widened(sample.query, more)), sample.events)
        yield Case(narrow & wide, narrow, bool(narrow) and narrow != wide, f"{sample}\nwindow + {more}")


def test_a_larger_window_finds_no_less() -> None:
    check(wider(range(540_000, 542_000), 3), 40)


def test_a_smaller_window_is_noticed() -> None:
    assert noticed(wider(range(540_000, 540_300), -2))
    assert widened("PATTERN SEQ(A, B WITHIN 2) WITHIN 3 UNIT", 1) == "PATTERN SEQ(A, B WITHIN 2) WITHIN 4 UNIT"


# A condition is true, false or unknown --------------------------------------------------------------------------------


def always_bound(pattern: p.Pattern) -> Iterator[str]:
    """Plain variables outside negations and ORs: every match binds them, and every condition on them is tested."""
    match pattern:
        case p.Leaf():
            yield pattern.var
        case p.Seq() | p.And():
            for part in pattern.parts:
                yield from always_bound(part)


def with_condition(query: str, condition: str) -> str:
    """One more conjunct in WHERE, which comes before PARTITION BY and the last WITHIN."""
    head, where, tail = query.partition(" WHERE ")
    if where:
        return f"{head} WHERE {condition}, {tail}"
    at = query.rindex(" PARTITION BY" if " PARTITION BY" in query else " WITHIN")
    return f"{query[:at]} WHERE {condition}{query[at:]}"


THREE = ("({})", "not ({})", "({}) is null")


def splits(seeds: range, ways: tuple[str, ...] = THREE) -> Iterator[Case]:
    """Kleene sets are no obstacle: they are compared between matches of the same plain variables."""
    for sample, query in valid(seeds):
        if not (names := list(always_bound(query.pattern))):
            continue
        d = Drawing(sample.seed)
        conditions = (d.any_condition([(name, "") for name in names], 2) for _ in range(99))
        condition = next(c for c in conditions if "same(" not in c)
        whole = answer(compiled(sample), sample.events)
        found = [
            answer(compiled(sample, with_condition(sample.query, way.format(condition))), sample.events) for way in ways
        ]
        shown = f"{sample}\nsplit by {condition}"
        for number, one in enumerate(found):
            for other in found[number + 1 :]:
                yield Case(one & other, frozenset(), bool(one or other), shown)
        yield Case(whole, frozenset().union(*found), sum(map(bool, found)) > 1, shown)


def test_a_condition_is_true_false_or_unknown() -> None:
    check(splits(range(550_000, 550_400)), 200)


@pytest.mark.parametrize("ways", [THREE[:2], THREE[1:], (*THREE, "true")])
def test_a_case_too_few_or_too_many_is_noticed(ways: tuple[str, ...]) -> None:
    assert noticed(splits(range(550_000, 550_200), ways))


# The checks themselves ------------------------------------------------------------------------------------------------


def test_a_difference_and_an_empty_law_are_noticed() -> None:
    one, two = frozenset({1}), frozenset({1, 2})
    with pytest.raises(AssertionError, match="not frozenset"):
        check([Case(one, two, True, "")], 1)
    with pytest.raises(AssertionError, match="only 0 cases"):
        check([Case(one, one, False, "")], 1)


def test_rows_are_mapped() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B+ b) WITHIN 9", qc.Schema(ATTRIBUTES))
    events: list[Event] = [{"type": t, "ts": i} for i, t in enumerate("ABB")]
    assert answer(plan, events, [5, 6, 7]) == canonical([{"a": 5, "b": [6, 7]}]) != answer(plan, events)
