"""Live streams: however tuples are cut into pushes, all rows together are those of a run, and none comes too early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
import pytest

import quercus as qc
from quercus.backends.local.continuous import journal
from quercus.backends.local.continuous import live as live_parts
from tests.continuous.generate import SCHEMAS, Draw, has_order, streams
from tests.continuous.test_continuous import ALARM, ALARMS, AT, TRIP, WALKS


class Trouble:
    """A statement that fails when it is told to, after all windows have taken their tuples in."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.due, self.met = False, 0
        real = live_parts.evaluated

        def evaluated(*given: Any) -> Any:
            found = real(*given)
            if self.due:
                self.met += 1
                raise qc.LimitExceeded("on purpose", limit="max_matches", value=0)
            return found

        monkeypatch.setattr(live_parts, "evaluated", evaluated)


def pushed(
    query: qc.Continuous,
    given: dict[str, list[dict[str, Any]]],
    random: Random,
    trouble: Trouble | None = None,
    delay: int = 0,
) -> list[tuple[Any, ...]]:
    """The rows of all pushes, with snapshots in between, and pushes that fail; tuples come up to `delay` late."""
    left = {name: sorted(rows, key=lambda r: r["ts"]) for name, rows in given.items()} if not delay else dict(given)
    live, found = query.stream(max_delay=delay), []

    def take(do: Callable[[], Any]) -> None:
        if trouble is not None and random.random() < 0.5:
            before, trouble.due = live.clock, True
            try:
                new = do()
            except qc.LimitExceeded:
                assert live.clock == before
                new = None
            trouble.due = False
            new = do() if new is None else new
        else:
            new = do()
        rows = [tuple(row.values()) for row in new]
        assert all(row[0] < live.clock for row in rows)
        found.extend(rows)

    while any(left.values()):
        batch = {}
        for name in left:
            if random.random() < 0.7:
                n = random.randrange(3)
                batch[name], left[name] = left[name][:n], left[name][n:]
        take(lambda: live.push(batch))  # noqa: B023
        if random.random() < 0.3:
            known = min([r["ts"] for rows in left.values() for r in rows], default=20)
            until: Any = known if random.random() < 0.5 else dict.fromkeys(left, known)
            take(lambda: live.advance(until))  # noqa: B023
        if random.random() < 0.3:
            live = query.restore(live.snapshot())
    if trouble is not None:
        trouble.due = True
        with suppress(qc.LimitExceeded):
            live.close()
        trouble.due = False
    found += [tuple(row.values()) for row in live.close()]
    return found


def check(seed: int, trouble: Trouble | None = None, delay: int = 0) -> int:
    random = Random(seed)
    text, given = Draw(random, 0.4).query(), streams(random, 12)
    if delay:
        given = {n: sorted(rows, key=lambda r: r["ts"] + random.randint(0, delay)) for n, rows in given.items()}  # type: ignore[operator]
    query = qc.continuous(text, SCHEMAS)
    whole = [tuple(row.values()) for row in query.run(given)]
    used = set(query.stream().schemas)
    found = pushed(query, {n: rows for n, rows in given.items() if n in used}, random, trouble, delay)  # type: ignore[misc]
    assert [row[0] for row in found] == [row[0] for row in whole], (seed, text, given)
    assert Counter(found) == Counter(whole), (seed, text, given)
    if has_order(text):
        assert found == whole, (seed, text, given)
    return len(whole)


@pytest.mark.parametrize("seed", range(40))
def test_random_queries(seed: int) -> None:
    check(seed)


@pytest.mark.slow
def test_many_random_queries() -> None:
    assert sum(check(seed) for seed in range(1_000, 2_000)) > 2_000


def test_a_step_that_fails_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    trouble = Trouble(monkeypatch)
    assert sum(check(seed, trouble) for seed in range(300, 340)) > 100
    assert trouble.met > 40


def test_tuples_that_come_late_are_held_for_their_turn() -> None:
    assert sum(check(seed, delay=4) for seed in range(400, 440)) > 100


@pytest.mark.parametrize("troubled", [False, True])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "query",
    [
        TRIP + "ISTREAM(SELECT COUNT(*) AS n, MAX(took) AS longest FROM Trip[Range 3])",
        TRIP
        + "ISTREAM(SELECT * FROM (PATTERN SEQ(Trip t, Alarm a, [Person]) WITHIN 3 s RETURN a.level AS level)[Rows 2])",
        TRIP
        + "RSTREAM(SELECT * FROM (PATTERN SEQ(Trip t, !At x, Alarm a) WITHIN 1 h RETURN a.level AS level)[Rows 2])",
        "ISTREAM(SELECT c FROM (PATTERN SEQ(At w, Alarm+ a, [Person]) WITHIN 9 RETURN count(a) AS c)[Rows 1])",
        "DSTREAM(SELECT p.* FROM (PATTERN SEQ(At w, !Alarm a) WITHIN 3 RETURN w.Person AS who)[Range 5] AS p, At[Now])",
    ],
)
def test_patterns_and_windows_together(query: str, seed: int, troubled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches that wait for the end of their window come at the time of their last event all the same."""
    compiled = qc.continuous(query, {"At": AT, "Alarm": ALARM})
    given = {
        "At": [dict(zip(WALKS, row, strict=True)) for row in zip(*WALKS.values(), strict=True)],
        "Alarm": [dict(zip(ALARMS, row, strict=True)) for row in zip(*ALARMS.values(), strict=True)],
    }
    given = {n: given[n] for n in compiled.stream().schemas}
    monkeypatch.setattr(journal, "OFTEN", 3)
    found = pushed(compiled, given, Random(seed), Trouble(monkeypatch) if troubled else None)
    assert found == [tuple(row.values()) for row in compiled.run(given)]


# One by one -----------------------------------------------------------------------------------------------------------

S = qc.Schema({"v": "int64"}, type=None, time_unit="s")


def test_a_row_comes_when_every_stream_is_past_its_time() -> None:
    query = qc.continuous("ISTREAM(SELECT a.v, b.v AS w FROM S[Now] AS a, T[Range 5] AS b)", {"S": S, "T": S})
    with query.stream() as live:
        assert live.clock is None
        assert len(live.push({"T": {"ts": [1], "v": [7]}})) == 0
        assert len(live.push({"S": {"ts": [2], "v": [1]}})) == 0
        assert live.clock == 1
        assert len(live.push({"S": {"ts": [4], "v": [2]}})) == 0
        assert list(live.push({"T": {"ts": [4], "v": [8]}})) == [{"ts": 2, "v": 1, "w": 7}]
        assert len(live.advance(4)) == 0
        assert list(live.advance(5)) == [{"ts": 4, "v": 2, "w": 7}, {"ts": 4, "v": 2, "w": 8}]
        assert live.clock == 5
    assert len(live.final) == 0


def test_what_is_gone_is_let_go() -> None:
    query = qc.continuous("DSTREAM(SELECT v FROM S[Range 3])", {"S": S})
    live = query.stream()
    for i in range(200):
        live.push({"S": {"ts": [i], "v": [i]}})
    window = live.queries[0][1].windows[0][0]
    assert len(window.tuples) < 8  # type: ignore[attr-defined]


def test_bad_tuples_leave_the_stream_as_it_was() -> None:
    live = qc.continuous("ISTREAM(SELECT v FROM S[Now])", {"S": S, "T": S}).stream()
    live.push({"S": {"ts": [5], "v": [1]}})
    for streams_, message in (
        ({"S": {"ts": [4], "v": [2]}}, "a tuple of time 4 comes after 5"),
        ({"S": {"ts": [6], "v": ["x"]}}, "column 'v'"),
        ({"S": {"ts": [6]}}, "no column 'v'"),
        ({"X": {"ts": [6], "v": [1]}}, "no stream 'X'"),
        ([], "streams are given as"),
    ):
        with pytest.raises(qc.DataError, match=message):
            live.push(streams_)  # type: ignore[arg-type]
    with pytest.raises(qc.DataError, match="the clock cannot be"):
        live.advance("soon")  # type: ignore[arg-type]
    live.push({"T": {"ts": [1], "v": [1]}})  # which the query does not read
    assert list(live.push({"S": {"ts": [6], "v": [2]}})) == [{"ts": 5, "v": 1}]
    assert list(live.close()) == [{"ts": 6, "v": 2}]
    with pytest.raises(qc.DataError, match="the stream is closed"):
        live.push({"S": {"ts": [7], "v": [2]}})


def test_a_limit_in_the_midst_of_a_push_leaves_everything_as_it_was() -> None:
    query = qc.continuous("ISTREAM(SELECT a.v AS p, b.v AS q FROM S[Unbounded] AS a, S[Unbounded] AS b)", {"S": S})
    live = query.stream(limits=qc.Limits(max_matches=12))
    live.push({"S": {"ts": [1, 2], "v": [1, 2]}})
    state = live.snapshot()
    with pytest.raises(qc.LimitExceeded):
        live.push({"S": {"ts": [3, 4, 5], "v": [3, 4, 5]}})
    assert live.snapshot() == state
    assert len(live.push({"S": {"ts": [3], "v": [3]}})) == 3
    with pytest.raises(qc.LimitExceeded):
        live.push({"S": {"ts": [4, 5, 6, 7], "v": [4, 5, 6, 7]}})
    assert [row["p"] for row in live.push({"S": {"ts": [4], "v": [4]}})] == [1, 2, 3, 3, 3]


def test_late_tuples_are_dropped_or_an_error() -> None:
    query = qc.continuous("ISTREAM(SELECT S.v, a.v AS w FROM S[Now], T[Unbounded] AS a)", {"S": S, "T": S})
    live = query.stream(max_delay={"S": "2 s"}, late={"S": "drop"})
    live.push({"T": {"ts": [0], "v": [9]}, "S": {"ts": [5, 3], "v": [5, 3]}})
    live.push({"S": {"ts": [2, 4, 6], "v": [2, 4, 6]}})  # 2 is before 5 - 2
    assert live.dropped == 1
    with pytest.raises(qc.DataError, match="a tuple of time -1 comes after 0: sort the tuples, allow"):
        live.push({"T": {"ts": [-1], "v": [0]}})
    live = query.restore(live.snapshot())
    assert [row["v"] for row in live.advance(5)] == [3, 4]
    assert live.dropped == 1
    assert [row["v"] for row in live.close()] == [5, 6]
    strict = query.stream(max_delay=2)
    strict.push({"S": {"ts": [5], "v": [5]}})
    with pytest.raises(qc.DataError, match="a tuple of time 2 comes after 3 with max_delay 2"):
        strict.push({"S": {"ts": [2], "v": [5]}})
    for options, message in (
        ({"max_delay": "soon"}, "give a number and a unit"),
        ({"late": "ignore"}, "choose 'error' or 'drop'"),
        ({"max_delay": {"R": 3}}, "no stream 'R'"),
    ):
        with pytest.raises(qc.DataError, match=message):
            query.stream(**options)  # type: ignore[arg-type]


def test_what_waits_counts_as_state() -> None:
    live = qc.continuous("ISTREAM(SELECT v FROM S[Now])", {"S": S}).stream(
        max_delay=10**6, limits=qc.Limits(max_state_bytes=3 * 10**7)
    )
    live.push({"S": {"ts": list(range(50)), "v": list(range(50))}})
    with pytest.raises(qc.LimitExceeded, match="tuples that wait for their turn"):
        live.push({"S": {"ts": np.arange(2 * 10**6), "v": np.ones(2 * 10**6, np.int64)}})
    assert len(live.close()) == 50


def test_pattern_windows_of_several_queries_run_in_one_pass() -> None:
    query = qc.continuous(
        "WITH A AS (ISTREAM(SELECT FIRST(v) AS f FROM S[Pattern By (v = 1; v = 2; TRUE; TRUE)])) "
        "ISTREAM(SELECT COUNT(*) AS n FROM S[Pattern By (v = 2; v = 3; TRUE; TRUE)] "
        "UNION ALL SELECT LAST(v) AS n FROM S[Pattern By (v = 1; v = 2; TRUE; TRUE)] "
        "UNION ALL SELECT f AS n FROM A[Now])",
        {"S": S},
    )
    live = query.stream()
    assert {s.name: len(watch.stream.windows) for s, watch in live.watches.items()} == {"S": 2}  # type: ignore[union-attr]
    rows = {"ts": list(range(6)), "v": [1, 2, 3, 1, 2, 3]}
    found = [*live.push({"S": rows}), *live.close()]
    assert [(r["ts"], r["n"]) for r in found] == [(r["ts"], r["n"]) for r in query.run({"S": rows})]


def test_snapshots_are_checked() -> None:
    query = qc.continuous("ISTREAM(SELECT v FROM S[Pattern By (TRUE; TRUE; TRUE; TRUE)])", {"S": S})
    live = query.stream()
    live.push({"S": {"ts": [1], "v": [1]}})
    state = live.snapshot()
    for broken, message in (
        (state[:-1], "cut off or changed"),
        (state[:50] + b"x" + state[51:], "cut off or changed"),
        ("text", "a snapshot is bytes"),
    ):
        with pytest.raises(qc.DataError, match=message):
            query.restore(broken)  # type: ignore[arg-type]
    other = qc.continuous("ISTREAM(SELECT v FROM S[Now])", {"S": S})
    with pytest.raises(qc.DataError, match="another query"):
        other.restore(state)


def test_a_pattern_that_waits_for_events_cannot_be_watched() -> None:
    schema = qc.Schema({}, time_unit="s")
    query = qc.continuous(
        "ISTREAM(SELECT n FROM (PATTERN SEQ(A a, B+ b) WITHIN 5 EVENTS RETURN count(b) AS n)[Now])", {"S": schema}
    )
    with pytest.raises(qc.QueryError, match="E703"):
        query.stream()
