"""Streams: whatever the batches, delays and snapshots, the pushes together give what a run over the whole gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.ir import pattern as p
from tests.generate import Sample, evaluated, valid
from tests.stream_checks import (
    FORMS,
    Event,
    Fed,
    Row,
    cuts,
    delayed,
    events_of,
    feed,
    in_answer_order,
    in_order,
    keyed,
    mapped,
    ordered,
    punctual,
    same,
    same_columns,
    schema_of,
    time,
)
from tests.test_engine import table

CHUNK = 125
SCHEMA = qc.Schema({"id": "int64"})
PAIRS = "PATTERN SEQ(A a, B b) WITHIN 9"


# Batches and snapshots ------------------------------------------------------------------------------------------------


def agree(seeds: range, *, key: tuple[str, ...] = (), shape: str = "auto") -> list[int]:
    """The numbers of matches of samples that were fed in random pieces, with snapshots between them."""
    found = []
    for drawn, _ in valid(seeds):
        sample, r = keyed(in_order(drawn), *key), Random(drawn.seed)
        plan = qc.compile(sample.query, schema_of(sample), shape=shape)
        fed, run = feed(plan, sample.events, r), plan.run(table(sample.events))
        shown = f"{sample}\nkey {key}, shape {shape}, pushes {[given.rows() for given in fed.all]}"
        same(fed.rows(), run.rows(), shown)
        found.append(same(fed.rows(), evaluated(sample.query, sample.events, sample.options), shown))
        ordered(fed, plan, sample.events, shown)
        if sample.seed % 5 == 0:
            same_columns(fed, run.to_arrow(), shown)
    return found


@pytest.mark.parametrize("first", range(700_000, 701_000, CHUNK))
def test_pieces_give_what_the_whole_gives(first: int) -> None:
    found = agree(range(first, first + CHUNK))
    assert sum(map(bool, found)) > len(found) / 3, "too few samples have matches"


@pytest.mark.parametrize("first", range(710_000, 710_300, 100))
def test_keys_are_streams_of_their_own(first: int) -> None:
    assert any(agree(range(first, first + 100), key=("id",)))


@pytest.mark.parametrize("shape", ["left", "right", "bushy", "inner", "stack"])
def test_every_shape_gives_the_same(shape: str) -> None:
    assert any(agree(range(720_000, 720_060), shape=shape))


def prolonged(sample: Sample, times_over: int, r: Random) -> Sample:
    """The sample's events over and over, somewhat changed, with now and then a pause: most are forgotten on the way."""
    events: list[Event] = []
    clock = 0
    for _ in range(times_over):
        least = min(map(time, sample.events))
        again = sorted(r.sample(sample.events, r.randint(1, len(sample.events))), key=time)
        events += [{**e, "ts": clock + time(e) - least} for e in again]
        clock = time(events[-1]) + r.choice((0, 1, 1, 2, 20))
    return replace(sample, events=events)


@pytest.mark.parametrize("key", [(), ("id",)])
@pytest.mark.parametrize("first", range(725_000, 725_080, 40))
def test_long_streams_are_forgotten_but_for_what_matters(first: int, key: tuple[str, ...]) -> None:
    found = 0
    for drawn, _ in valid(range(first, first + 40)):
        r = Random(drawn.seed)
        sample = prolonged(keyed(drawn, *key), 30, r)
        plan = qc.compile(sample.query, schema_of(sample))
        fed = feed(plan, sample.events, r)
        found += same(fed.rows(), plan.run(table(sample.events)).rows(), f"{sample}\nkey {key}") > 10
        ordered(fed, plan, sample.events, sample)
    assert found > 15


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2_000_000, 2_020_000, 1_000))
def test_pieces_give_what_the_whole_gives_at_length(first: int) -> None:
    assert any(agree(range(first, first + 1_000)))


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["left", "right", "bushy", "inner", "stack"])
@pytest.mark.parametrize("key", [(), ("id",), ("id", "s")])
def test_shapes_and_keys_at_length(shape: str, key: tuple[str, ...]) -> None:
    assert any(agree(range(2_100_000, 2_101_000), key=key, shape=shape))


class Gave:
    """Stands for what a push gives."""

    def __init__(self, *rows: Row) -> None:
        self.found = list(rows)

    def rows(self) -> list[Row]:
        return self.found


def test_the_comparisons_can_fail() -> None:
    one: Row = {"a": 0, "b": [1, 2]}
    two: Row = {"a": 0, "b": [1]}
    assert same([one, two], [two, one], "") == 2
    for wrong in ([one], [one, two, two], [one, one], []):
        with pytest.raises(AssertionError):
            same(wrong, [one, two], "")
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 9", SCHEMA)
    events = events_of("a1 a2 b3 b4")
    late, early = {"a": 0, "b": 3}, {"a": 1, "b": 2}
    ordered(Fed([Gave(early, late)], Gave(), 0), plan, events, "")
    with pytest.raises(AssertionError, match="out of order"):
        ordered(Fed([Gave(late, early)], Gave(), 0), plan, events, "")
    assert not in_answer_order([{"a": 1, "b": 2}, {"a": 0, "b": 2}], ["a", "b"], int)
    run = plan.run(events)
    same_columns(Fed([run], plan.run([]), 0), run.to_arrow(), "")
    with pytest.raises(AssertionError):
        same_columns(Fed([run], run, 0), run.to_arrow(), "")


def test_pieces_are_of_every_kind() -> None:
    drawn = [cuts(Random(seed), 7) for seed in range(100)]
    assert all(c[0][0] == 0 and c[-1][1] == 7 for c in drawn)
    sizes = Counter(last - first for c in drawn for first, last in c)
    assert {0, 1, 2, 7} <= sizes.keys()


# What is pushed -------------------------------------------------------------------------------------------------------


def dictionary_coded(events: list[Event]) -> pa.Table:
    """Types and texts as codes, of another dictionary in every batch."""
    whole = table(events)
    for name in ("type", "s"):
        number = whole.column_names.index(name)
        whole = whole.set_column(number, name, whole.column(name).combine_chunks().dictionary_encode())
    return whole


def by_type(events: list[Event]) -> dict[str, pa.Table]:
    names = dict.fromkeys(str(e["type"]) for e in events)
    return {name: table([e for e in events if e["type"] == name]).drop_columns(["type"]) for name in names}


MORE_FORMS = {**FORMS, "dictionary coded": dictionary_coded, "by type": by_type}


@pytest.mark.parametrize("form", MORE_FORMS)
def test_a_push_takes_what_a_run_takes(form: str) -> None:
    for drawn, _ in valid(range(730_000, 730_020)):
        sample = in_order(drawn)
        if form == "by type" and len({time(e) for e in sample.events}) < len(sample.events):
            continue  # merged tables have an order of their own among equal times
        plan = qc.compile(sample.query, sample.schema())
        with plan.stream() as s:
            given = [s.push(MORE_FORMS[form](sample.events[i : i + 2])) for i in range(0, len(sample.events), 2)]
        same([row for g in [*given, s.final] for row in g.rows()], plan.run(table(sample.events)).rows(), sample)


def one(kind: str, ts: int, type_: str) -> object:
    """One event in a table of some kind."""
    columns = {"ts": pa.array([ts]), "type": pa.array([type_]), "id": pa.array([7]), "s": pa.array(["x"])}
    match kind:
        case "another column":
            columns["more"] = pa.array([1.5])
        case "another order":
            columns = {name: columns[name] for name in ("s", "id", "type", "ts")}
        case "short integers":
            columns |= {name: columns[name].cast(pa.int32()) for name in ("ts", "id")}
        case "large strings" | "string views":
            to = pa.large_string() if kind == "large strings" else pa.string_view()
            columns |= {name: columns[name].cast(to) for name in ("type", "s")}
        case "codes":
            columns |= {name: columns[name].dictionary_encode() for name in ("type", "s")}
    whole = pa.table(columns)
    match kind:
        case "metadata":
            return whole.replace_schema_metadata({"made": "by hand"})
        case "no nulls":
            return whole.cast(pa.schema([field.with_nullable(False) for field in whole.schema]))
        case "two chunks":
            return pa.concat_tables([whole.slice(0, 0), whole])
        case "record batch":
            return whole.to_batches()[0]
        case "rows":
            return whole.to_pylist()
        case "columns":
            return whole.to_pydict()
    return whole


KINDS = [
    *("table", "another column", "another order", "short integers", "large strings", "string views", "codes"),
    *("metadata", "no nulls", "two chunks", "record batch", "rows", "columns"),
]


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("first", KINDS)
def test_pushes_may_differ_in_form(first: str, restored: bool) -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 9", qc.Schema({"id": "int64", "s": "string"}))
    expected = {"a": {"ts": 1, "type": "A", "id": 7, "s": "x"}, "b": {"ts": 2, "type": "B", "id": 7, "s": "x"}}
    for second in KINDS:
        stream = plan.stream()
        stream.push(one(first, 1, "A"))
        if restored:
            stream = plan.restore(stream.snapshot())
        new = stream.push(one(second, 2, "B"))
        assert new.rows() == [{"a": 0, "b": 1}], second
        assert new.to_arrow().to_pylist() == [expected], second
        assert isinstance(plan.restore(stream.snapshot()).snapshot(), bytes)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_can_be_pushed(library: str) -> None:
    module = pytest.importorskip(library)
    with qc.compile(PAIRS, SCHEMA).stream() as s:
        assert s.push(module.DataFrame({"ts": [1], "type": ["A"], "id": [7]})).rows() == []
        assert s.push(module.DataFrame({"ts": [2], "type": ["B"], "id": [7]})).rows() == [{"a": 0, "b": 1}]


def test_arrays_may_be_used_again_after_a_push() -> None:
    ts, ids = np.array([1, 2]), np.array([7, 8])
    with qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 9", SCHEMA).stream() as s:
        s.push({"ts": ts, "type": ["A", "A"], "id": ids})
        ts[:], ids[:] = (3, 4), (8, 9)
        new = s.push({"ts": ts, "type": ["B", "B"], "id": ids})
        assert new.rows() == [{"a": 1, "b": 2}]
        assert new.to_arrow().to_pylist() == [
            {"a": {"ts": 2, "type": "A", "id": 8}, "b": {"ts": 3, "type": "B", "id": 8}}
        ]


def test_a_push_of_nothing_gives_nothing() -> None:
    with qc.compile(PAIRS, SCHEMA).stream() as s:
        assert len(s.push([])) == 0
        assert s.push(events_of("a1")).rows() == []
        assert len(s.push(table([]))) == 0
        assert s.push(events_of("b2")).rows() == [{"a": 0, "b": 1}]
    assert len(s.final) == 0


def test_two_streams_of_one_plan_know_nothing_of_each_other() -> None:
    plan = qc.compile(PAIRS, SCHEMA)
    with plan.stream() as s, plan.stream() as t:
        s.push(events_of("a1"))
        assert t.push(events_of("b2")).rows() == []
        assert s.push(events_of("b2")).rows() == [{"a": 0, "b": 1}]


def test_what_a_push_gave_stays() -> None:
    plan = qc.compile(PAIRS, SCHEMA)
    with plan.stream() as s:
        first = s.push(events_of("a1.1 b2.2"))
        for ts in range(100, 300):
            s.push([{"type": "AB"[ts % 2], "ts": ts, "id": ts}])
    assert first.to_arrow()["b"].to_pylist() == [{"ts": 2, "type": "B", "id": 2}]
    assert first.rows() == [{"a": 0, "b": 1}]


def test_bad_data_leaves_the_stream_as_it_was() -> None:
    with qc.compile(PAIRS, SCHEMA).stream() as s:
        s.push(events_of("a1"))
        for bad in ({"ts": [2], "type": ["B"]}, {"ts": [None], "type": ["B"], "id": [1]}, 7, "no such file.parquet"):
            with pytest.raises(qc.DataError):
                s.push(bad)
        assert s.push(events_of("b2")).rows() == [{"a": 0, "b": 1}]


def test_return_columns() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B+ b) WITHIN 2 RETURN a.id AS x, count(b) AS n, sum(b.id) AS total", SCHEMA)
    with plan.stream() as s:
        given = [s.push([e]) for e in events_of("a1.5 b2.6 b3.7 c9")]
    assert [g.to_arrow().to_pylist() for g in given] == [[], [], [], [{"x": 5, "n": 2, "total": 13}]]
    assert given[0].to_arrow().schema == given[3].to_arrow().schema == s.final.to_arrow().schema


# Late events ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(740_000, 740_400, 100))
def test_events_within_the_delay_are_put_in_order(first: int) -> None:
    moved = found = 0
    for sample, _ in valid(range(first, first + 100)):
        r = Random(sample.seed)
        most = r.randint(0, 6)
        events = delayed(sample.events, most, r)
        plan = qc.compile(sample.query, sample.schema())
        fed = feed(plan, events, r, max_delay=r.choice((most, f"{most} {sample.options.time_unit}")), late="error")
        shown = f"{replace(sample, events=events)}\ndelay {most}"
        found += same(fed.rows(), plan.run(table(events)).rows(), shown) > 0
        ordered(fed, plan, events, shown)
        assert fed.dropped == 0
        moved += any(time(x) > time(y) for x, y in pairwise(events))
    assert found > 25
    assert moved > 30


@pytest.mark.parametrize("first", range(750_000, 750_400, 100))
def test_later_events_are_dropped_and_counted(first: int) -> None:
    dropped = found = 0
    for sample, _ in valid(range(first, first + 100)):
        r = Random(sample.seed)
        most = r.randint(0, 2)
        events = delayed(sample.events, most + r.randint(1, 4), r)
        kept = punctual(events, most)
        plan = qc.compile(sample.query, sample.schema())
        fed = feed(plan, events, r, max_delay=r.choice((most, most or None)), late="drop")
        shown = f"{replace(sample, events=events)}\ndelay {most}, kept {kept}"
        expected = mapped(plan.run(table([events[row] for row in kept])).rows(), kept)
        found += same(fed.rows(), expected, shown) > 0
        assert fed.dropped == len(events) - len(kept), shown
        dropped += fed.dropped > 0
    assert found > 25
    assert dropped > 25


@pytest.mark.parametrize("first", range(760_000, 760_200, 100))
def test_a_batch_with_a_late_event_is_not_taken(first: int) -> None:
    refused = found = 0
    for sample, _ in valid(range(first, first + 100)):
        r = Random(sample.seed)
        most = r.randint(0, 2)
        events = delayed(sample.events, most + 2, r)
        plan = qc.compile(sample.query, sample.schema())
        taken: list[Event] = []
        given: list[Any] = []
        with plan.stream(max_delay=most) as s:
            for start, end in cuts(r, len(events)):
                together = [*taken, *events[start:end]]
                on_time = punctual(together, most) if together else []
                late = [row - len(taken) for row in range(len(taken), len(together)) if row not in on_time]
                if not late:
                    given.append(s.push(table(events[start:end])))
                    taken = together
                    continue
                refused += 1
                with pytest.raises(qc.DataError) as e:
                    s.push(table(events[start:end]))
                assert e.value.row == len(taken) + late[0], f"{sample}\n{e.value}"
                assert f"row {e.value.row}" in str(e.value)
        rows = [row for g in [*given, s.final] for row in g.rows()]
        found += same(rows, plan.run(table(taken)).rows() if taken else [], f"{sample}\ntaken {taken}") > 0
    assert refused > 20
    assert found > 20


def test_punctual_and_delayed() -> None:
    events = events_of("a5 b3 c7 d4 a5 b9 c7")
    assert punctual(events, 2) == [0, 1, 2, 4, 5, 6]
    assert punctual(events, 0) == [0, 2, 5]
    for seed in range(50):
        in_time = delayed(sorted(events, key=time), 3, Random(seed))
        assert punctual(in_time, 3) == list(range(7))


def test_the_default_is_no_delay_and_an_error() -> None:
    plan = qc.compile(PAIRS, SCHEMA)
    with plan.stream() as s:
        s.push(events_of("a5"))
        with pytest.raises(qc.DataError, match="row 2"):
            s.push(events_of("b6 b4 b7"))
        assert s.push(events_of("b5 b7")).rows() == [{"a": 0, "b": 2}]
        assert s.dropped == 0


def test_row_numbers_count_what_was_dropped() -> None:
    with qc.compile(PAIRS, SCHEMA).stream(late="drop") as s:
        s.push(events_of("a5 a4 a3"))
        assert s.dropped == 2
        s = qc.compile(PAIRS, SCHEMA).restore(s.snapshot())
        assert s.push(events_of("b2 b6")).rows() == [{"a": 0, "b": 4}]
        assert s.dropped == 3


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_delay_has_a_unit(unit: str) -> None:
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    schema = qc.Schema({"id": "int64"}, time_unit=unit)
    with qc.compile("PATTERN SEQ(A a, B b) WITHIN 9 s", schema).stream(max_delay="2 s") as s:
        assert s.push(events_of(f"a{10 * second} b{11 * second} c{13 * second - 1}")).rows() == []
        assert s.push(events_of(f"c{13 * second}")).rows() == [{"a": 0, "b": 1}]
        with pytest.raises(qc.DataError):
            s.push(events_of(f"c{11 * second - 1}"))


def test_times_may_be_timestamps() -> None:
    def at(*milliseconds: int) -> pa.Table:
        names = ["A", "B", "C"][: len(milliseconds)]
        return pa.table({"ts": pa.array(milliseconds, pa.timestamp("ms")), "type": names, "id": [1] * len(names)})

    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 1 s", SCHEMA)
    with plan.stream(max_delay="100 ms") as s:
        assert s.push(at(1000, 1950, 2049)).rows() == []
        s = plan.restore(s.snapshot())
        assert s.push(at(2050)).rows() == [{"a": 0, "b": 1}]


@pytest.mark.parametrize(
    "options",
    [
        {"late": "never"},
        {"max_delay": -1},
        {"max_delay": "5 parsecs"},
        {"max_delay": "s"},
        {"max_delay": 1.5},
        {"max_delay": True},
        {"max_delay": "5 EVENTS"},
        {"max_delay": 10**30},
        {"max_delay": "999999999999999999 d"},
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(qc.QuercusError, match=next(iter(options))):
        qc.compile(PAIRS, SCHEMA).stream(**options)


# The end --------------------------------------------------------------------------------------------------------------


def test_leaving_the_block_ends_the_stream() -> None:
    plan = qc.compile("PATTERN SEQ(A a, !B b) WITHIN 9", SCHEMA)
    with plan.stream() as s:
        assert s.push(events_of("a1 a2")).rows() == []
    assert s.final.rows() == [{"a": 0}, {"a": 1}]
    with pytest.raises(qc.DataError, match="closed"):
        s.push(events_of("a3"))
    with pytest.raises(qc.DataError, match="closed"):
        s.advance(9)


def test_closing_inside_the_block_or_twice_does_no_harm() -> None:
    with qc.compile("PATTERN SEQ(A a, !B b) WITHIN 9", SCHEMA).stream() as s:
        s.push(events_of("a1"))
        s.close()
        assert s.final.rows() == [{"a": 0}]
    s.close()
    assert s.final.rows() == [{"a": 0}]


def test_an_error_inside_the_block_comes_out() -> None:
    with pytest.raises(ZeroDivisionError), qc.compile(PAIRS, SCHEMA).stream() as s:
        s.push([{"type": "A", "ts": 1 // 0, "id": 1}])


def test_a_stream_of_nothing_ends_with_nothing() -> None:
    with qc.compile(PAIRS, SCHEMA).stream() as s:
        pass
    assert s.final.rows() == []
    assert s.dropped == 0


# Aggregates -----------------------------------------------------------------------------------------------------------


def group_of(row: Row, events: list[Event], by: tuple[str, str] | None) -> object:
    if by is None:
        return ()
    at = row.get(by[0])
    assert at is None or isinstance(at, int)
    return None if at is None else events[at][by[1]]


def totals(given: list[Any], by: tuple[str, str] | None) -> list[dict[object, dict[str, object]]]:
    """For each push, the groups that it gave, none of them twice."""
    found = []
    for g in given:
        rows = g.to_arrow().to_pylist()
        groups = {() if by is None else row[f"{by[0]}.{by[1]}"]: row for row in rows}
        assert len(groups) == len(rows) == len(g)
        found.append(groups)
    return found


@pytest.mark.parametrize("first", range(770_000, 770_120, 60))
def test_a_push_gives_the_groups_that_changed(first: int) -> None:
    changed = 0
    for drawn, bound in valid(range(first, first + 60)):
        sample, r = in_order(drawn), Random(drawn.seed)
        plain = [v.var for v in bound.variables if isinstance(v, p.Leaf)]
        by = (r.choice(plain), r.choice(("id", "s"))) if plain and r.random() < 0.7 else None
        of = r.choice(bound.variables).var
        agg = f" AGG COUNT(*) AS n, SUM({of}.v) AS total, MIN({of}.v) AS low, MAX({of}.s) AS top, AVG({of}.v) AS mean"
        grouped = sample.query + agg + (f" GROUPBY {by[0]}.{by[1]}" if by else "")
        fed = feed(qc.compile(sample.query, sample.schema()), sample.events, Random(sample.seed))
        plan = qc.compile(grouped, sample.schema())
        given = totals(feed(plan, sample.events, Random(sample.seed)).all, by)
        counts: Counter[object] = Counter()
        latest: dict[object, dict[str, object]] = {}
        for number, (matches, groups) in enumerate(zip(fed.all, given, strict=True)):
            new = Counter(group_of(row, sample.events, by) for row in matches.rows())
            counts += new
            latest |= groups
            expected = {group: counts[group] for group in new}
            if by is None and number == len(fed.pushes) and not counts:
                expected = {(): 0}
            assert {group: row["n"] for group, row in groups.items()} == expected, f"{sample}\n{grouped}\n{given}"
            changed += len(new)
        (whole,) = totals([plan.run(table(sample.events))], by)
        assert latest == whole, f"{sample}\n{grouped}"
    assert changed > 60


def test_a_total_without_matches_comes_at_the_end() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 9 AGG COUNT(*) AS n, SUM(b.id) AS total", SCHEMA)
    with plan.stream() as s:
        assert s.push(events_of("a1 c2")).to_arrow().num_rows == 0
    assert s.final.to_arrow().to_pylist() == [{"n": 0, "total": None}]
    with plan.stream() as s:
        assert s.push(events_of("a1.1 b2.2 b3.3")).to_arrow().to_pylist() == [{"n": 2, "total": 5}]
        assert len(s.push(events_of("c4"))) == 0
        assert s.push(events_of("b5.5")).to_arrow().to_pylist() == [{"n": 3, "total": 10}]
    assert len(s.final) == 0


def test_totals_go_on_from_a_snapshot() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 9 AGG COUNT(*) AS n, AVG(b.id) AS m GROUPBY a.id", SCHEMA)
    with plan.stream() as s:
        s.push(events_of("a1.1 b2.2 a3.2 b4.4"))
        t = plan.restore(s.snapshot())
    assert t.push(events_of("a50.1 b51.6")).to_arrow().to_pylist() == [{"a.id": 1, "n": 3, "m": 4.0}]
    t.close()
    assert len(t.final) == 0


# Events and the clock in one step -------------------------------------------------------------------------------------


def test_a_push_until_is_a_push_and_an_advance() -> None:
    plan = qc.compile("PATTERN SEQ(A a, !B b) WITHIN 3", qc.Schema({}))
    events = {"ts": [1, 2, 4], "type": ["A", "A", "B"]}
    one, two = plan.stream(), plan.stream()
    found = one.push(events, until=6).rows()
    assert found == two.push(events).rows() + two.advance(6).rows()
    assert one.clock == two.clock == 6
    with pytest.raises(qc.DataError, match="comes after 6"):
        one.push({"ts": [5], "type": ["A"]}, until=9)
    with pytest.raises(qc.DataError, match=r"the clock cannot be 7\.5"):
        one.push({"ts": [6], "type": ["A"]}, until=7.5)  # type: ignore[arg-type]
    assert one.push({"ts": [6], "type": ["A"]}, until=10).rows() == [{"a": 3}]


def test_a_push_until_with_a_delay_lets_through_what_has_its_turn() -> None:
    plan = qc.compile("PATTERN SEQ(A a, B b) WITHIN 9", qc.Schema({}))
    stream = plan.stream(max_delay=5)
    assert stream.push({"ts": [4, 3], "type": ["B", "A"]}).rows() == []
    assert stream.push({"ts": [6], "type": ["B"]}, until=5).rows() == [{"a": 1, "b": 0}]
    assert stream.clock == 5


def test_the_next_moment_is_the_least_clock_that_decides() -> None:
    for query, moment in (
        ("PATTERN SEQ(A a, B b) WITHIN 9", None),
        ("PATTERN SEQ(A a, !B b) WITHIN 9", 11),
        ("PATTERN AND(A a, !B b) WITHIN 9", 2),
        ("PATTERN SEQ(A a, !B b) WITHIN 3 EVENTS", None),
        ("PATTERN SEQ(A a, B+ b) WITHIN 4", 6),
    ):
        stream = qc.compile(query, qc.Schema({})).stream()
        assert stream.next_moment is None
        stream.push({"ts": [1], "type": ["A"]})
        assert stream.next_moment == moment, query
        if moment is not None:
            stream.advance(moment)
            assert stream.next_moment is None, query
