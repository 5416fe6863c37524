"""explain(analyze=events): what each node did, as text; the counts by hand, by brute force, and as they must add up."""

from __future__ import annotations

import re
from itertools import combinations, product
from pathlib import Path

import pytest

import quercus as qc
from quercus.backends.local import exists
from quercus.backends.local.analyze import run_and_analyze
from quercus.backends.local.specs import AT_ONCE
from quercus.compiler import SHAPES
from quercus.compiler.explain import describe
from quercus.ir import tree as t
from quercus.ir.analysis import Actual, Analysis, below, places
from tests.generate import valid
from tests.test_engine import table

FOLDER = Path(__file__).parent / "analyzed"
SCHEMA = qc.Schema({"id": "int64", "price": "float64"})
TIME = re.compile(r"\d+\.\d ms$", re.MULTILINE)


def masked(text: str) -> str:
    return TIME.sub("_ ms", text)


def stream(types: str = "ABCXABBCXABCCX") -> dict[str, list[object]]:
    """One event a letter at times 1, 2, 3, ...; ids 0, 1, 2, 0, ...; prices 0.0, 1.0, ..."""
    n = range(len(types))
    return {"ts": [i + 1 for i in n], "type": list(types), "id": [i % 3 for i in n], "price": [float(i) for i in n]}


def analysis(query: str, shape: str = "auto", events: object = None, **options: object) -> tuple[qc.Plan, Analysis]:
    plan = qc.compile(query, SCHEMA, shape=shape, **options)  # type: ignore[arg-type]
    return run_and_analyze(plan, stream() if events is None else events)


def leaves(plan: qc.Plan, a: Analysis) -> dict[str, Actual]:
    return {n.var: a.nodes[path] for path, n in places(plan.tree.root) if isinstance(n, t.Buffer)}


def negation(plan: qc.Plan, a: Analysis) -> Actual:
    (found,) = (a.nodes[path] for path, n in places(plan.tree.root) if isinstance(n, t.Negation))
    return found


# The text -------------------------------------------------------------------------------------------------------------

SNAPSHOTS: dict[str, tuple[str, dict[str, str]]] = {
    "left": ("PATTERN SEQ(A a, B b, C c, X x) WITHIN 9", {"shape": "left"}),
    "right": ("PATTERN SEQ(A a, B b, C c, a.price < c.price) WITHIN 9", {"shape": "right"}),
    "bushy": ("PATTERN SEQ(A a, B b, C c, X x) WITHIN 9", {"shape": "bushy"}),
    "inner": ("PATTERN SEQ(A a, B b, C c, X x) WITHIN 9", {"shape": "inner"}),
    "stack": ("PATTERN SEQ(A a, B b, C c, b.price > 1.5) WITHIN 9", {"shape": "stack"}),
    "stack_of_a_join": ("PATTERN SEQ(A a, AND(B b, C c), X x) WITHIN 9", {"shape": "stack"}),
    "hash_join": ("PATTERN SEQ(A a, B b, C c, a.id = c.id) WITHIN 9", {"shape": "left"}),
    "negation_by_pointers": ("PATTERN SEQ(A a, !X x, B b, C c) WITHIN 9", {"shape": "stack"}),
    "negation_by_key": ("PATTERN SEQ(A a, !(X x, x.id = a.id), B b) WITHIN 9", {"shape": "stack"}),
    "negation_by_search": ("PATTERN SEQ(A a, !(X x, x.price > a.price), B b) WITHIN 9", {"shape": "left"}),
    "negation_by_latest": ("PATTERN SEQ(A a, !SEQ(B b, C c, b.id = c.id), X x) WITHIN 9", {}),
    "kleene": ("PATTERN SEQ(A a, B+ b, C c, b.id = a.id) WHERE count(b) > 0 WITHIN 9", {"shape": "left"}),
    "kleene_at_the_end": ("PATTERN SEQ(A a, B b, C+ c) WITHIN 9", {"shape": "stack"}),
    "combinations": ("PATTERN SEQ(A a, B[2] b, C c) WITHIN 9", {"shape": "right"}),
    "union": ("PATTERN SEQ(A a, OR(B b, C c), X x) WITHIN 9", {"shape": "left"}),
    "key": ("PATTERN SEQ(A a, B b, [id]) WITHIN 9", {}),
    "aggregate": ("PATTERN SEQ(A a, B b) WITHIN 9 AGG COUNT(*) AS n GROUPBY a.id", {}),
    "empty": ("PATTERN SEQ(A a, B b, a.id = 1, a.id = 2) WITHIN 9", {}),
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_explain_analyze(name: str, updating: bool) -> None:
    query, options = SNAPSHOTS[name]
    plan = qc.compile(query, SCHEMA, **options)  # type: ignore[arg-type]
    shown = f"{query}\n\n{masked(plan.explain(analyze=stream()))}\n"
    path = FOLDER / f"{name}.txt"
    if updating and (not path.exists() or path.read_text() != shown):
        path.write_text(shown)
        pytest.skip(f"rewrote {path.name}")
    assert shown == path.read_text()


def test_no_snapshot_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.txt" for name in SNAPSHOTS}


def test_without_events_nothing_is_run() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 9", SCHEMA)
    assert plan.explain() == plan.explain(analyze=None)
    assert "run" not in plan.explain().splitlines()


def test_it_is_explain_with_more() -> None:
    """Taken away what is new, the text is that of explain()."""
    plan = qc.compile("PATTERN SEQ(A a, !X x, OR(B b, C c), X y, a.id = y.id) WITHIN 9", SCHEMA, shape="left")
    for verbose in (False, True):
        text = plan.explain(verbose=verbose, analyze=stream())
        head, _, _ = text.partition("\n\nrun\n")
        bare = re.sub(r"  est (\S+)( \(off x\S+\))?, cost", r"  ~\1 rows, cost", re.sub(r" \| .*", "", head))
        assert bare == plan.explain(verbose=verbose)


def test_input_out_of_order_is_said_to_be_sorted() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 9", SCHEMA)
    one, two = stream("AB"), stream("AB")
    two["ts"].reverse()
    assert "events        2, in order" in plan.explain(analyze=one)
    assert "events        2, sorted by time first" in plan.explain(analyze=two)


@pytest.mark.parametrize("events", [True, 7, {"ts": [1]}])
def test_what_is_no_stream_is_refused(events: object) -> None:
    with pytest.raises(qc.DataError):
        qc.compile("PATTERN A a WITHIN 9", SCHEMA).explain(analyze=events)


def test_a_stream_without_events() -> None:
    plan, a = analysis("PATTERN SEQ(A a, B b) WITHIN 9", events=stream(""))
    assert (a.events, a.routed, a.compared, a.matches, a.windows) == (0, 0, 0, 0, 0.0)
    assert plan.explain(analyze=stream(""))


# Counts by hand and by brute force ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_and_matches_by_brute_force(shape: str) -> None:
    events = stream("ABCXABBCXABCCXAABBCC")
    plan, a = analysis("PATTERN SEQ(A a, B b, C c, b.price > 2.5, a.id = c.id) WITHIN 7", shape, events)
    all_ = list(zip(*events.values(), strict=True))
    routed = {
        "a": [e for e in all_ if e[1] == "A"],
        "b": [e for e in all_ if e[1] == "B" and e[3] > 2.5],
        "c": [e for e in all_ if e[1] == "C"],
    }
    found = [m for m in product(*routed.values()) if m[0][0] < m[1][0] < m[2][0] <= m[0][0] + 7 and m[0][2] == m[2][2]]
    assert {v: n.rows for v, n in leaves(plan, a).items()} == {v: len(e) for v, e in routed.items()}
    assert (a.events, a.routed) == (len(all_), sum(map(len, routed.values())))
    assert a.matches == a.nodes[()].matches == len(found) > 0


def test_the_levels_of_a_chain_are_those_of_its_pointers() -> None:
    """a1 b2 c3 a5 b6 b7 c8: of each c, the a before it that have a b between; of each pair, the b."""
    plan, a = analysis("PATTERN SEQ(A a, B b, C c) WITHIN 9", "stack", stream("ABCXABBC"))
    times = {v: [i for i, k in enumerate("ABCXABBC") if k == v.upper()] for v in "abc"}
    pairs = {(i, k) for i, j, k in product(*times.values()) if i < j < k}
    triples = [(i, j, k) for i, j, k in product(*times.values()) if i < j < k]
    found = leaves(plan, a)
    assert (found["c"].compared, found["c"].bound) == (2, len({k for _, k in pairs}))
    assert found["a"].bound == len(pairs)
    assert found["b"].bound == len(triples) == a.matches
    assert a.nodes[()].bound == sum(n.bound or 0 for n in found.values())


def test_a_search_counts_what_each_level_looks_at() -> None:
    """AND is searched: each b, then each a in the window, of which some pass."""
    plan, a = analysis("PATTERN AND(A a, B b, a.price < b.price) WITHIN 100", "stack")
    found = leaves(plan, a)
    first, second = sorted(found.values(), key=lambda n: n.compared or 0)
    assert first.compared == first.bound == first.rows
    assert second.compared == (first.rows or 0) * (second.rows or 0)
    assert second.bound == a.matches


def test_combinations_and_sets_by_hand() -> None:
    plan, a = analysis("PATTERN SEQ(A a, B[2] b, C c) WITHIN 9", "right", stream("ABBBC"))
    assert isinstance(plan.tree.root, t.Combine)
    assert a.nodes[()].rows == len(list(combinations(range(3), 2)))
    plan, a = analysis("PATTERN SEQ(A a, B+ b, C c, b.price > a.price) WITHIN 9", "left", stream("ABBCABC"))
    assert leaves(plan, a)["b"].sets == a.matches == 3


def test_branches_are_counted_and_alternatives_summed() -> None:
    plan, a = analysis("PATTERN SEQ(A a, OR(B b, C c), X x) WITHIN 100", "left", stream("ABCX"))
    (union,) = (a.nodes[path] for path, n in places(plan.tree.root) if isinstance(n, t.Union))
    assert union.branches == (1, 1)
    assert (a.alternatives, a.matches) == (2, 2)


def test_shared_buffers_are_told_and_count_once() -> None:
    plan, a = analysis("PATTERN SEQ(A a, A b, B c) WITHIN 9", events=stream("AAB"))
    found = leaves(plan, a)
    assert [n.shared for n in found.values()] == [True, True, False]
    assert (a.routed, a.buffers) == (3, 2)
    assert a.bytes == (found["a"].bytes or 0) + (found["c"].bytes or 0)


NEGATIONS = [
    ("AND(A a, B b, !X x)", "stack", ("next",)),
    ("SEQ(A a, !(X x, x.id = a.id), B b)", "stack", ("key",)),
    ("SEQ(A a, !AND(X x, C c), B b)", "left", ("jumps",)),
    ("SEQ(A a, !SEQ(X x, C c, x.id = c.id), B b)", "left", ("latest",)),
    ("SEQ(A a, !(X x, x.price > a.price), B b)", "left", ("search",)),
]


@pytest.mark.parametrize(("pattern", "shape", "methods"), NEGATIONS)
def test_negations_say_how_they_were_answered(pattern: str, shape: str, methods: tuple[str, ...]) -> None:
    plan, a = analysis(f"PATTERN {pattern} WITHIN 9", shape)
    assert negation(plan, a).methods == methods


@pytest.mark.parametrize("found", [stream("AXB"), stream("ACB"), stream("AXBABAXXB")])
def test_every_existence_test_by_hand(found: dict[str, list[object]]) -> None:
    """Joined, each pair of a and b asks once."""
    plan, a = analysis("PATTERN SEQ(A a, !(X x, x.price > a.price), B b) WITHIN 100", "left", found)
    types = [str(k) for k in found["type"]]
    pairs = [(i, j) for i, j in combinations(range(len(types)), 2) if types[i] + types[j] == "AB"]
    violated = [(i, j) for i, j in pairs if "X" in types[i:j]]
    g = negation(plan, a)
    assert (g.tests, g.found) == (len(pairs), len(violated))
    assert a.matches == len(pairs) - len(violated)


def test_an_index_that_was_not_built_yet_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    query = "PATTERN SEQ(A a, !SEQ(B b, C c, b.id = c.id), X x) WITHIN 9"
    plan, a = analysis(query)
    g = negation(plan, a)
    assert g.searched == g.tests == 5
    assert "by latest (5 by search)" in plan.explain(analyze=stream())
    monkeypatch.setattr(exists, "BUILD", AT_ONCE)
    plan, a = analysis(query)
    assert (negation(plan, a).searched, negation(plan, a).tests) == (0, 5)


def test_late_tests_see_whole_matches() -> None:
    plan, a = analysis("PATTERN SEQ(A a, B+ b, C c) WHERE count(b) > 1 WITHIN 9")
    assert isinstance(plan.tree.root, t.Test)
    root, source = a.nodes[()], a.nodes[0,]
    assert root.tests == source.rows
    assert root.rows == a.matches < (source.rows or 0)


def test_groups_are_counted() -> None:
    plan, a = analysis("PATTERN SEQ(A a, B b) WITHIN 9 AGG COUNT(*) AS n GROUPBY a.id")
    assert a.groups == len(plan.run(stream()))
    assert a.matches == len(plan.run(stream()).rows())
    assert [s for s, _ in a.stages][-1] == "total"


# Random queries -------------------------------------------------------------------------------------------------------


def total(n: t.Node | t.Negation, a: Analysis, path: tuple[int, ...] = ()) -> int:
    """Candidates of leaves, joins and outermost negations. What is searched depth first is the sum of its leaves."""
    own = a.nodes[path]
    if isinstance(n, t.Negation):
        return own.compared or 0
    counted = isinstance(n, t.Buffer) or (isinstance(n, t.Join | t.Stack) and own.bound is None)
    return (own.compared or 0 if counted else 0) + sum(total(c, a, (*path, i)) for i, c in enumerate(below(n)))


@pytest.mark.parametrize("shape", SHAPES)
def test_random_plans_add_up(shape: str) -> None:
    """The matches are those of a run, twice the same text, and each candidate belongs to one node."""
    for drawn, _ in valid(range(400_000, 400_060)):
        plan = qc.compile(drawn.query, drawn.schema(), shape=shape)
        events = table(drawn.events)
        plan, a = run_and_analyze(plan, events)
        assert a.nodes.keys() == {path for path, _ in places(plan.tree.root)}
        assert a.matches == len(plan.run(events).rows()), drawn.query
        assert masked(plan.explain(analyze=events)) == masked(plan.explain(analyze=events))
        mixed = any(n.bound is not None and n.bytes is not None and n.rows and n.note for n in a.nodes.values())
        mixed = mixed or any(isinstance(n, t.Nest) and n.strategy != "rewrite" for n in t.walk(plan.tree.root))
        assert mixed or total(plan.tree.root, a) == a.compared, f"{drawn.query}\n{plan.explain(analyze=events)}"


def test_paths_go_as_the_text_does() -> None:
    for drawn, _ in valid(range(400_000, 400_060)):
        for _, n in places(qc.compile(drawn.query, drawn.schema()).tree.root):
            if not isinstance(n, t.Negation):
                shown = [child for _, child in describe(n, "us")[1]]
                assert all(a is b for a, b in zip(shown, below(n), strict=False))
