"""Every rewrite rule keeps the answer, does what its fixtures say, can be left out, and comes to rest.

The reference answers the query as text before and after each rule, over a generated stream. Findings change no text;
they are held to what they claim: events of different keys never meet, columns not read do not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from attrs import evolve, frozen

import quercus as qc
from quercus.compiler.bind import bind
from quercus.compiler.parse import parse_query
from quercus.compiler.pipeline import apply, rewrite
from quercus.compiler.rules import BY_NAME, RULES, Rule
from quercus.compiler.scope import inner_negations, negations
from quercus.errors import QueryError
from quercus.ir import expr as x
from quercus.ir import pattern as p
from quercus.ir import text
from quercus.schema import Schema
from tests import reference
from tests.generate import ATTRIBUTES, Sample, evaluated, stream, valid

FOLDER = Path(__file__).parent / "rules"
PACKAGE = Path(qc.__file__).parent / "compiler" / "rules"
CHUNK = 100
ORDINARY = [range(i, i + CHUNK) for i in range(0, 1_800, CHUNK)]
SLOW = [range(i, i + 1_000) for i in range(1_000_000, 1_052_000, 1_000)]
FINDINGS = {r.name for r in RULES if r.kind == "finding"}

# How often each rule must change a query among the ordinary samples, so that none is tested in name only.
LEAST = {
    "drop_single": 300, "and_kleene_orders": 80, "tighten_windows": 40, "flatten_seq": 100, "flatten_and": 15,
    "flatten_or": 60, "not_or": 15, "not_kleene": 100, "fold_constants": 100, "normal_comparison": 400,
    "split_conjuncts": 80, "drop_tautologies": 30, "equality_closure": 120, "drop_repeated": 40, "contradictions": 40,
    "distribute_or": 60, "partition_key": 100, "mark_exists": 400, "mark_delayed": 40, "mark_postponed": 200,
    "prune_columns": 1_000,
}  # fmt: skip


# Before and after -----------------------------------------------------------------------------------------------------


@frozen
class Step:
    """A rule that changed a query."""

    rule: str
    before: p.Query
    after: p.Query


def steps(bound: p.Query) -> Iterator[Step]:
    """Every rule alone on the query as written, each step of the pipeline, and the rule that the planner tries."""
    for rule in RULES:
        if (alone := apply(rule, bound)) != bound:
            yield Step(rule.name, bound, alone)
    rewritten, fired = rewrite(bound)
    yield from (Step(f.rule, f.before, f.after) for f in fired)
    if (spread := apply(BY_NAME["distribute_or"], rewritten)) != rewritten:
        yield Step("distribute_or", rewritten, spread)


class Answers:
    """The reference's answers about one sample, each text asked once."""

    def __init__(self, drawn: Sample) -> None:
        self.drawn, self.unit = drawn, drawn.schema().timestamp_unit
        self.known: dict[str, frozenset[object]] = {}

    def __call__(self, q: p.Query) -> frozenset[object]:
        query = text.query(q, self.unit)
        if query not in self.known:
            self.known[query] = self.drawn.answer(query)
        return self.known[query]


def difference(drawn: Sample, step: Step, answers: Answers) -> str | None:
    """None when both queries have the same matches; else all that is needed to see why not."""
    before, after = answers(step.before), answers(step.after)
    if before == after:
        return None
    texts = [text.query(q, answers.unit, sep=" ") for q in (step.before, step.after)]
    return f"{step.rule}\n{drawn}\nbefore: {texts[0]}\nafter: {texts[1]}\nlost: {before - after}\nnew: {after - before}"


def check(seeds: range) -> None:
    for drawn, bound in valid(seeds):
        answers = Answers(drawn)
        assert answers(bound) == drawn.answer(), f"binding changed the meaning\n{drawn}"
        for step in steps(bound):
            assert not (found := difference(drawn, step, answers)), found
        check_findings(drawn, rewrite(bound)[0], answers)


@pytest.mark.parametrize("seeds", ORDINARY, ids=str)
def test_rules_keep_the_answer(seeds: range) -> None:
    check(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SLOW, ids=str)
def test_rules_keep_the_answer_at_length(seeds: range) -> None:
    check(seeds)


def test_there_are_enough_pairs_and_every_rule_fires() -> None:
    fired: Counter[str] = Counter()
    pairs = 0
    for seeds in ORDINARY:
        for _, bound in valid(seeds):
            pairs += 1
            fired.update({step.rule for step in steps(bound)})
    assert pairs >= 1_500
    assert LEAST.keys() == BY_NAME.keys()
    assert {name: fired[name] for name in LEAST if fired[name] < LEAST[name]} == {}


@pytest.mark.slow
def test_there_are_enough_pairs_at_length() -> None:
    assert sum(1 for seeds in SLOW for _ in valid(seeds)) >= 50_000


# Findings -------------------------------------------------------------------------------------------------------------


def check_findings(drawn: Sample, q: p.Query, answers: Answers) -> None:
    if q.empty is not None:
        return
    check_key(drawn, q, answers)
    check_reads(drawn, q, answers)


def check_key(drawn: Sample, q: p.Query, answers: Answers) -> None:
    """Matches agree on the key, and each key's events alone give the same matches, negations included."""
    if q.key is None:
        return
    column = {c.var: c.attr for c in q.key.columns}
    assert p.all_variables(q.pattern) <= column.keys(), drawn
    for match in answers(q):
        rows = [(var, row) for var, at in match for row in ((at,) if isinstance(at, int) else at)]  # type: ignore[attr-defined]
        values = {drawn.events[row][column[var]] for var, row in rows}
        assert len(values) == 1, f"{drawn}\nkey {column}, but a match has {values}"
        assert None not in values or len(rows) == 1, drawn
    counted = "EVENTS" in text.query(q)
    if len(set(column.values())) > 1 or counted or drawn.options.ties == "arrival":
        return  # rows taken away change positions
    [attr] = set(column.values())
    together: set[object] = set()
    for value in {event[attr] for event in drawn.events}:
        kept = [i for i, event in enumerate(drawn.events) if event[attr] == value]
        found = evaluated(text.query(q, answers.unit), [drawn.events[i] for i in kept], drawn.options)
        for match in found:
            renumbered = ((v, kept[at] if isinstance(at, int) else tuple(kept[i] for i in at)) for v, at in match)  # type: ignore[attr-defined]
            together.add(frozenset(renumbered))
    assert together == answers(q), f"{drawn}\nkey {column}"


def check_reads(drawn: Sample, q: p.Query, answers: Answers) -> None:
    """Attributes that the plan does not read can as well be null."""
    assert q.reads is not None
    types = {leaf.var: _type(leaf) for leaf in p.leaves(q.pattern, negated=True)}
    schema = drawn.schema()
    needed = {(name, c.attr) for c in q.reads for name in schema.accepts(types[c.var])}
    always = {"type", "ts", *q.partition_by}
    events = [
        {a: value if a in always or (event["type"], a) in needed else None for a, value in event.items()}
        for event in drawn.events
    ]
    found = evaluated(text.query(q, answers.unit), events, drawn.options)
    assert found == answers(q), f"{drawn}\nreads {q.reads}"


@pytest.mark.parametrize("seeds", ORDINARY[:4], ids=str)
def test_marks_say_what_they_mean(seeds: range) -> None:
    for drawn, bound in valid(seeds):
        q, _ = rewrite(bound)
        todo = [] if q.empty is not None else list(negations(q.pattern))
        while todo:
            placed = todo.pop()
            todo.extend(inner_negations(placed))
            assert "exists" in placed.negation.marks, drawn
            assert ("postponed" in placed.negation.marks) == (placed.scope.right is not None), drawn
            if "delayed" not in placed.negation.marks:
                beside = [*placed.scope.after[:1], *placed.scope.before[:1]]
                assert all(len(group) == 1 for group in beside) or placed.in_and or not beside, drawn


# A wrong rule is caught -----------------------------------------------------------------------------------------------


def flatten_seq_through_windows(e: p.Pattern) -> p.Pattern | None:
    if not isinstance(e, p.Seq) or not any(isinstance(c, p.Seq) for c in e.parts):
        return None
    return evolve(e, parts=tuple(k for c in e.parts for k in (c.parts if isinstance(c, p.Seq) else (c,))))


def flatten_and_with_negations(e: p.Pattern) -> p.Pattern | None:
    if not isinstance(e, p.And) or not any(isinstance(c, p.And) for c in e.parts):
        return None
    return evolve(e, parts=tuple(k for c in e.parts for k in (c.parts if isinstance(c, p.And) else (c,))))


def drop_every_inner_window(q: p.Query) -> p.Query | None:
    def without(e: p.Pattern) -> p.Pattern:
        e = p.with_parts(e, tuple(map(without, p.parts(e))))
        return evolve(e, window=None) if isinstance(e, p.Seq | p.And | p.Or) else e

    return evolve(q, pattern=without(q.pattern))


def one_order_is_enough(e: p.Pattern) -> p.Pattern | None:
    if isinstance(e, p.And) and p.has_direct_kleene(e) and len(e.parts) > 1:
        return p.Seq(e.parts, e.window)
    return None


def not_or_keeps_the_first(e: p.Pattern) -> p.Pattern | None:
    if isinstance(e, p.Not) and isinstance(e.body, p.Or):
        first = e.body.branches[0]
        seen = p.positive_variables(first.body)
        return evolve(e, body=first.body, where=first.where) if not e.where and seen else None
    return None


def not_count_is_one(e: p.Pattern) -> p.Pattern | None:
    if isinstance(e, p.Not) and isinstance(e.body, p.Kleene):
        return evolve(e, body=e.body.leaf)
    return None


def flip_without_turning(q: p.Query) -> p.Query | None:
    def turned(c: x.Expr) -> x.Expr:
        return evolve(c, left=c.right, right=c.left) if isinstance(c, x.Compare) else c

    return evolve(q, where=tuple(map(turned, q.where)))


def negate_floats_too(q: p.Query) -> p.Query | None:
    """not (a.f < 1) is not a.f >= 1 where a.f is NaN."""
    opposite = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

    def turned(c: x.Expr) -> x.Expr:
        if isinstance(c, x.NotTrue) and isinstance(c.value, x.Compare):
            return evolve(c.value, op=opposite[c.value.op])  # type: ignore[arg-type]
        return c

    return evolve(q, where=tuple(map(turned, q.where)))


def split_with_absent_variables(q: p.Query) -> p.Query | None:
    parts = [c.items if isinstance(c, x.Logic) and c.op == "and" else (c,) for c in q.where]
    return evolve(q, where=tuple(c for items in parts for c in items))


def close_through_absent_variables(q: p.Query) -> p.Query | None:
    pairs = [c for c in q.where if x.is_equality(c)]
    new = list(q.where)
    for c in pairs:
        for d in pairs:
            assert isinstance(c, x.Compare)
            assert isinstance(d, x.Compare)
            for a, b in ((c.left, c.right), (c.right, c.left)):
                for e, f in ((d.left, d.right), (d.right, d.left)):
                    if b == e and len(x.variables(a) | x.variables(f)) == 2:
                        new.append(x.Compare("=", a, f))
    return evolve(q, where=tuple(dict.fromkeys(new)))


def distribute_without_conditions(e: p.Pattern) -> p.Pattern | None:
    new = BY_NAME["distribute_or"].apply(e)  # type: ignore[arg-type]
    return evolve(new, branches=tuple(evolve(b, where=()) for b in new.branches)) if isinstance(new, p.Or) else None


def drop_false_negation_conditions(e: p.Pattern) -> p.Pattern | None:
    return evolve(e, where=()) if isinstance(e, p.Not) and e.where else None


WRONG = [
    Rule(flatten_seq_through_windows, "node", "wrong"),
    Rule(flatten_and_with_negations, "node", "wrong"),
    Rule(drop_every_inner_window, "query", "wrong"),
    Rule(one_order_is_enough, "node", "wrong"),
    Rule(not_or_keeps_the_first, "node", "wrong"),
    Rule(not_count_is_one, "node", "wrong"),
    Rule(flip_without_turning, "query", "wrong"),
    Rule(negate_floats_too, "query", "wrong"),
    Rule(split_with_absent_variables, "query", "wrong"),
    Rule(close_through_absent_variables, "query", "wrong"),
    Rule(distribute_without_conditions, "node", "wrong"),
    Rule(drop_false_negation_conditions, "node", "wrong"),
]


@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: rule.name)
def test_a_wrong_rule_is_caught(rule: Rule) -> None:
    for drawn, bound in valid(range(6_000)):
        try:
            after = apply(rule, bound)
        except AssertionError:
            continue  # the invariants caught it; here the comparison is tested
        if after != bound and difference(drawn, Step(rule.name, bound, after), Answers(drawn)):
            return
    pytest.fail(f"{rule.name} is wrong, and nothing noticed")


def test_a_rule_that_breaks_the_query_is_named() -> None:
    def lose_a_variable(e: p.Pattern) -> p.Pattern | None:
        return evolve(e, parts=e.parts[:1]) if isinstance(e, p.Seq) and len(e.parts) > 1 else None

    bound = bind(parse_query("PATTERN SEQ(A a, B b, a.x = b.x) WITHIN 5"), Schema({"x": "int64"}))
    with pytest.raises(AssertionError, match=r"lose_a_variable: a\.x = b\.x names what it cannot see"):
        apply(Rule(lose_a_variable, "node", "wrong"), bound)


# Fixtures: tests/rules/<rule>.case ------------------------------------------------------------------------------------


@frozen
class Fixture:
    """`after` is a query, or `unchanged`; `finds` is what a finding, or `empty`, writes down."""

    rule: str
    name: str
    why: str
    before: str
    after: str
    finds: str | None
    schema: Schema
    line: int


def read(path: Path) -> list[Fixture]:
    """Cases of `key: value` lines as in tests/cases, with the keys case, why, before, after, finds and attributes."""
    found: list[dict[str, str]] = []
    lines: list[int] = []
    for number, raw in enumerate(path.read_text().splitlines(), 1):
        if not raw.strip() or raw.startswith("#"):
            continue
        if raw[0].isspace():
            last = list(found[-1])[-1]
            found[-1][last] += " " + raw.strip()
            continue
        key, colon, value = raw.partition(":")
        assert colon, f"{path.name}:{number}: no key"
        assert key in ("case", "why", "before", "after", "finds", "attributes"), f"{path.name}:{number}: {key}"
        if key == "case":
            found.append({})
            lines.append(number)
        assert key not in found[-1], f"{path.name}:{number}: {key} stands twice"
        found[-1][key] = value.strip()
    return [_fixture(path.stem, case, line) for case, line in zip(found, lines, strict=True)]


def _fixture(rule: str, case: dict[str, str], line: int) -> Fixture:
    columns = dict(pair.split("=") for pair in case.get("attributes", "").replace(",", " ").split())
    schema = Schema(columns or ATTRIBUTES)
    return Fixture(rule, case["case"], case["why"], case["before"], case["after"], case.get("finds"), schema, line)


FIXTURES = [fixture for path in sorted(FOLDER.glob("*.case")) for fixture in read(path)]
EACH = pytest.mark.parametrize("fixture", [pytest.param(f, id=f"{f.rule}: {f.name}") for f in FIXTURES])


def finding(q: p.Query) -> list[str]:
    """What a query carries beside its text."""
    found = [f"empty: {q.empty}"] if q.empty is not None else []
    if q.key is not None:
        found.append("key: " + " = ".join(text.column(c.var, c.attr) for c in q.key.columns))
    if q.reads is not None:
        found.append("reads: " + ", ".join(text.column(c.var, c.attr) for c in q.reads))
    for e in p.walk(q.pattern):
        if isinstance(e, p.Not) and e.marks:
            found.append(f"{', '.join(e.marks)}: !{text.pattern(e.body)}")
    return found


def unmarked(e: p.Pattern) -> p.Pattern:
    e = p.with_parts(e, tuple(map(unmarked, p.parts(e))))
    return evolve(e, marks=()) if isinstance(e, p.Not) else e


@EACH
def test_fixture(fixture: Fixture) -> None:
    bound = bind(parse_query(fixture.before), fixture.schema)
    actual = apply(BY_NAME[fixture.rule], bound)
    if fixture.after == "unchanged" and fixture.finds is None:
        assert actual == bound, text.query(actual, sep=" ")
        return
    assert actual != bound, "the rule did not fire"
    assert "; ".join(finding(actual)).strip() == (fixture.finds or "")
    if fixture.finds is None or fixture.after != "unchanged":
        expected = bind(parse_query(fixture.after), fixture.schema)
        assert text.query(actual, sep=" ") == text.query(expected, sep=" ")
        assert unmarked(actual.pattern) == expected.pattern
        assert actual.where == expected.where


@EACH
def test_fixtures_have_one_answer(fixture: Fixture) -> None:
    """Before and after over forty streams of the query's own types."""
    if fixture.after == "unchanged" and not (fixture.finds or "").startswith("empty"):
        return
    bound = bind(parse_query(fixture.before), fixture.schema)
    actual = apply(BY_NAME[fixture.rule], bound)
    positive, every = ([_type(k) for k in p.leaves(bound.pattern, negated=n)] for n in (False, True))
    matched = 0
    for seed in range(40):
        events = stream(Random(seed), positive, every)
        options = reference.Options(ties=("strict", "arrival")[seed % 2])
        expected = evaluated(fixture.before, events, options)
        matched += bool(expected)
        assert evaluated(text.query(actual), events, options) == expected, Sample(seed, fixture.before, events, options)
    assert matched or actual.empty is not None, "no stream matched: nothing was compared"


def _type(leaf: p.Leaf | p.Kleene) -> str:
    return leaf.leaf.type if isinstance(leaf, p.Kleene) else leaf.type


@pytest.mark.parametrize("name", BY_NAME)
def test_every_rule_has_fixtures(name: str) -> None:
    own = [f for f in FIXTURES if f.rule == name]
    assert len(own) >= 3
    assert len({f.name for f in own}) == len(own)
    still = [f for f in own if f.after == "unchanged" and f.finds is None]
    assert still or name == "prune_columns", "one fixture must say when the rule does not fire"
    assert len(own) > len(still), "one fixture must say when it does"
    assert all(len(f.why) > 10 for f in own)


def test_names_registry_files_and_fixtures_agree() -> None:
    registered = [r.name for r in RULES]
    assert len(set(registered)) == len(registered)
    assert set(registered) == {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert set(registered) == {path.stem for path in FOLDER.glob("*.case")}
    assert all(r.apply.__module__ == f"quercus.compiler.rules.{r.name}" for r in RULES)
    assert all(r.reason and r.apply.__doc__ for r in RULES)
    assert all("->" in (r.apply.__doc__ or "") or r.name == "prune_columns" for r in RULES)


def test_every_fixture_file_is_used() -> None:
    assert {path.suffix for path in FOLDER.iterdir()} == {".case"}


# Switching off, and coming to rest ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BY_NAME)
def test_a_rule_can_be_left_out(name: str) -> None:
    used = 0
    for drawn, bound in valid(range(150)):
        rewritten, fired = rewrite(bound, without=[name])
        assert name not in {f.rule for f in fired}
        used += name in {f.rule for f in rewrite(bound)[1]}
        if name == "distribute_or":
            assert name not in {f.rule for f in qc.compile(drawn.query, drawn.schema(), without=[name]).fired}
        elif rewritten.empty is None and drawn.seed < 40:
            assert drawn.answer(text.query(rewritten, drawn.schema().timestamp_unit)) == drawn.answer(), drawn
    assert used or name in ("distribute_or", "not_or", "flatten_and", "mark_delayed")


def test_all_rules_can_be_left_out() -> None:
    for _, bound in valid(range(100)):
        assert rewrite(bound, without=list(BY_NAME)) == (bound, ())


def test_an_unknown_rule() -> None:
    bound = bind(parse_query("PATTERN A; B WITHIN 5"), Schema({"x": "int64"}))
    with pytest.raises(QueryError, match="no rule 'flaten_seq'") as caught:
        rewrite(bound, without=["flaten_seq"])
    assert caught.value.code == "E702"
    assert (caught.value.hint or "").startswith("did you mean 'flatten_seq'")
    with pytest.raises(QueryError, match="E702"):
        qc.compile("PATTERN A; B WITHIN 5", Schema({"x": "int64"}), without=["nothing like it"])


def test_rules_come_to_rest() -> None:
    for drawn, bound in valid(range(400)):
        rewritten, _ = rewrite(bound)
        again, fired = rewrite(rewritten)
        assert again == rewritten, drawn
        assert fired == ()


def test_each_rule_comes_to_rest_by_itself() -> None:
    for drawn, bound in valid(range(300)):
        for rule in RULES:
            q = bound
            for _ in range(10):
                new = apply(rule, q)
                if new == q:
                    break
                q = new
            else:
                pytest.fail(f"{rule.name} goes on and on\n{drawn}")
