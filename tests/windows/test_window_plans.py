"""How pattern windows are run: keys that are found, what a tuple touches, what several windows share."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import quercus as qc
from quercus.backends.local import expressions
from quercus.backends.local.events import Events, load
from quercus.backends.local.windows import WindowStream, closed_windows, columns, plan_of, run, several
from quercus.ir import expr as x
from quercus.ir.window import FIRST, HERE, PREV, WINDOW, PatternWindow
from quercus.kernels import windows
from tests import windows_cases as cases
from tests.windows.test_windows import case, events_of, listed

SCHEMA = qc.Schema({"person": "string", "location": "string", "heat": "float64"})
PERSON, LOCATION = x.Column(HERE, "person", "string"), x.Column(HERE, "location", "string")
TS = x.Column(HERE, "ts", "int64")


def at(place: str) -> x.Expr:
    return x.Compare("=", LOCATION, x.Const(place, "string"))


def away(place: str) -> x.Expr:
    return x.Compare("<>", LOCATION, x.Const(place, "string"))


def first(attr: str, kind: x.Type = "string") -> x.Expr:
    return x.Column(FIRST, attr, kind)


SAME, OTHER = x.Compare("=", PERSON, first("person")), x.Compare("<>", PERSON, first("person"))
TOM = x.Compare("=", PERSON, x.Const("Tom", "string"))
SHORT = x.Compare("<", x.Arithmetic("-", TS, first("ts", "int64"), "int64"), x.Const(60, "int64"))
EXAMPLES = {
    1: PatternWindow(x.Logic("and", (TOM, at("Lab"))), TOM, x.TRUE, x.FALSE),
    2: PatternWindow(at("Lab"), SAME, x.TRUE, x.FALSE),
    3: PatternWindow(at("Lab"), x.Logic("and", (SAME, at("Room101"))), OTHER, x.FALSE),
    5: PatternWindow(at("Lab"), x.Logic("and", (SAME, at("Home"))), x.Logic("or", (OTHER, away("Lab"))), SAME),
}


def stream(n: int, persons: int, seed: int = 1) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    places = np.array(["Lab", "Home", "Cafe", "Park"])
    return {
        "ts": np.arange(n),
        "type": ["At"] * n,
        "person": [f"p{i}" for i in r.integers(0, persons, n)],
        "location": places[r.integers(0, 4, n)],
        "heat": r.random(n),
    }


def events(n: int, persons: int) -> Events:
    return load(stream(n, persons), SCHEMA)


@pytest.mark.parametrize("number", EXAMPLES)
def test_the_windows_of_the_paper_are_alike_and_ranges(number: int) -> None:
    p = plan_of(EXAMPLES[number])
    assert (p.alike, p.ranged, len(p.keys)) == (True, True, int(number > 1))
    assert p.reason == {
        1: "no condition compares a tuple with FIRST() by =: a tuple touches all open windows, all at once",
    }.get(number, "open windows are kept by person; a tuple touches those of its own, all at once")


def test_example_5_over_hand_made_tuples() -> None:
    rows = [
        *((1, "ann", "Lab"), (2, "bob", "Lab"), (3, "ann", "Cafe"), (3, "bob", "Lab")),
        *((4, "ann", "Home"), (5, "bob", "Home"), (6, "bob", "Home")),
    ]
    table = {n: [r[i] for r in rows] for i, n in enumerate(("ts", "person", "location"))}
    found = closed_windows(EXAMPLES[5], load({**table, "type": ["At"] * 7, "heat": [0.0] * 7}, SCHEMA), qc.Limits())
    assert [f.tuples for f in listed(found)] == [(0, 2, 4), (3, 5)]
    assert found.iter.tolist() == [3, 2]  # ann's window is not shown the tuple of bob at the time of her last one


@pytest.mark.parametrize(
    ("iteration", "count", "alike"),
    [
        (x.TRUE, 1, True),
        (x.Logic("and", (SHORT, x.Logic("or", (OTHER, away("Lab"))))), 1, False),
        (x.Compare("<", x.Column(WINDOW, "iter", "int64"), x.Const(5, "int64")), 1, False),
        (x.Compare("<", x.Column(WINDOW, "num", "int64"), x.Const(5, "int64")), 1, False),
        (x.Compare(">", x.Column(WINDOW, "iter", "int64"), x.Const(5, "int64")), 0, False),
        (SAME, 0, False),
        (away("Fire"), 1, True),
        (x.Compare("<", x.Column(HERE, "heat", "float64"), x.Column(PREV, "heat", "float64")), 0, False),
    ],
)
def test_keys_are_found_where_other_tuples_change_nothing(iteration: x.Expr, count: int, alike: bool) -> None:
    p = plan_of(PatternWindow(at("Lab"), x.Logic("and", (SAME, at("Home"))), iteration, SAME))
    assert (len(p.keys), p.alike) == (count, alike)
    assert ("kept by person" in p.reason) == bool(count)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[windows.Windows]:
    """The kernels that are made."""
    made: list[windows.Windows] = []

    class Noted(windows.Windows):
        def __init__(self, *_: Any) -> None:
            made.append(self)

    monkeypatch.setattr(windows, "Windows", Noted)
    return made


@pytest.mark.parametrize("alike", [True, False])
def test_what_a_tuple_touches_does_not_grow_with_the_open_windows(alike: bool, kernels: list[windows.Windows]) -> None:
    heat = x.Compare(">", x.Column(PREV, "heat", "float64"), x.Const(2.0, "float64"))
    w = EXAMPLES[5]
    if not alike:
        w = PatternWindow(w.start, x.Logic("and", (SAME, x.Logic("or", (heat, at("Home"))))), w.iteration, w.filter)
    touched, most = [], []
    for persons in (10, 100, 1000):
        WindowStream(w, SCHEMA).push(stream(40 * persons, persons))
        touched.append(kernels[-1].touched / (40 * persons))
        most.append(kernels[-1].most_open)
    assert plan_of(w).alike == alike
    assert most[2] > 50 * most[0] / 2
    assert max(touched) < 1.3 * min(touched)


def test_bounds_let_windows_go(kernels: list[windows.Windows]) -> None:
    """Windows that are over stay until they are looked at, but not more of them than are open in fact."""
    w = PatternWindow(at("Lab"), x.Logic("and", (SAME, at("Nowhere"))), SHORT, x.FALSE)
    closed_windows(w, load(stream(200_000, 100_000), SCHEMA), qc.Limits())
    assert kernels[-1].most_open < 3_000


@pytest.mark.parametrize("threads", [1, 3])
def test_several_windows_give_what_each_gives(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "WORTH", 0)
    random = Random(5)
    for _ in range(40):
        made = [case(random) for _ in range(4)]
        rows = made[0][1]
        found = several([w for w, _ in made], events_of(rows), qc.Limits(), threads)
        alone = [closed_windows(w, events_of(rows), qc.Limits()) for w, _ in made]
        assert [listed(f) for f in found] == [listed(a) for a in alone]


def test_several_windows_share_conditions_keys_and_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[x.Expr] = []
    coded: list[int] = []
    passes: list[int] = []

    def note_condition(e: x.Expr, *more: Any) -> Any:
        asked.append(e)
        return expressions.true_mask(e, *more)

    def note_codes(self: columns.Columns, parts: Any, space: Any, at: Any) -> Any:
        coded.append(len(at))
        return codes(self, parts, space, at)

    def note_pass(given: Any, *more: Any) -> int:
        passes.append(len(given))
        return together(given, *more)

    codes, together = columns.Columns.codes, windows.together
    monkeypatch.setattr(columns, "true_mask", note_condition)
    monkeypatch.setattr(columns.Columns, "codes", note_codes)
    monkeypatch.setattr(windows, "together", note_pass)
    several([EXAMPLES[n] for n in (2, 3, 5)], events(1000, 10), qc.Limits())
    assert len(asked) == len(set(asked))
    assert len(coded) == 1
    assert passes == [3]


def test_a_snapshot_of_another_window_is_refused() -> None:
    s = WindowStream(EXAMPLES[5], SCHEMA)
    s.push(stream(100, 5))
    data = s.snapshot()
    with pytest.raises(qc.DataError, match="another pattern window"):
        WindowStream.restore(data, EXAMPLES[3], SCHEMA)
    with pytest.raises(qc.DataError, match="cut off or changed"):
        WindowStream.restore(data[:-40] + data[-39:], EXAMPLES[5], SCHEMA)
    with pytest.raises(qc.DataError, match="is bytes"):
        WindowStream.restore("", EXAMPLES[5], SCHEMA)  # type: ignore[arg-type]


def test_cases_have_all_that_windows_are_made_of() -> None:
    """The random cases are worth something only if they have it all."""
    named = {c for seed in range(200) for e in _conditions(cases.pattern_window(Random(seed))) for c in x.columns(e)}
    assert {(FIRST, "k"), (PREV, "v"), (WINDOW, "iter"), (WINDOW, "num"), (PREV, "ts")} <= named


def _conditions(w: PatternWindow) -> tuple[x.Expr, ...]:
    return (w.start, w.termination, w.iteration, w.filter)
