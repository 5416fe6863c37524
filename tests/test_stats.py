"""Statistics: what is collected, that it travels as JSON, and what a running estimate forgets."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import quercus as qc
from quercus.running_stats import Running


def table(n: int = 20_000, seed: int = 3) -> pa.Table:
    r = np.random.default_rng(seed)
    ids = np.where(r.random(n) < 0.4, 7, r.integers(0, 1000, n))
    return pa.table(
        {
            "ts": np.arange(n),
            "type": pa.array(np.where(r.random(n) < 0.1, "A", "B")),
            "id": ids,
            "x": pa.array(r.random(n) * 100, mask=r.random(n) < 0.25),
            "room": pa.array(r.choice(["hall", "lab"], n)),
        }
    )


def test_rates_values_nulls_and_skew_are_found() -> None:
    stats = qc.Stats.collect(table())
    assert stats.rates["A"] == pytest.approx(0.1, abs=0.01)
    assert stats.total_rate() == pytest.approx(1.0)
    a = stats.attributes["A"]
    assert a["x"].nulls == pytest.approx(0.25, abs=0.03)
    assert a["x"].quantiles[16] == pytest.approx(50, abs=5)
    assert a["id"].common[0][0] == 7
    assert a["id"].common[0][1] == pytest.approx(0.4, abs=0.04)
    assert {v for v, _ in a["room"].common} == {"hall", "lab"}
    assert a["room"].quantiles == ()


def test_a_sample_is_near_the_whole() -> None:
    whole, part = (qc.Stats.collect(table(), sample=s) for s in (None, 2_000))
    assert part.rates == whole.rates
    assert part.distinct["id"] == pytest.approx(whole.distinct["id"], rel=0.5)
    assert part.attributes["B"]["x"].quantiles[8] == pytest.approx(25, abs=5)


def test_order_of_types_in_a_window() -> None:
    ts = np.arange(0, 100_000, 100)
    after = pa.table({"ts": np.r_[ts, ts + 1], "type": pa.array(["A"] * len(ts) + ["B"] * len(ts))})
    order = qc.Stats.collect(after, window=10).order
    assert order["A;B"] > 5
    assert order["B;A"] == 0


def test_statistics_travel_as_json() -> None:
    stats = qc.Stats.collect(table(), window=50)
    assert qc.Stats.from_json(stats.to_json()) == stats
    old = {"version": 1, "rates": {"A": 0.5}, "distinct": {"id": 4}, "selectivity": {"a.x > 3": 0.1}}
    assert qc.Stats.from_json(json.dumps(old)) == qc.Stats({"A": 0.5}, {"id": 4}, {"a.x > 3": 0.1})


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 99}', '{"version": 2, "rates": {}}', '{"version": 2, "rates": 3}']
)
def test_other_documents_are_refused(text: str) -> None:
    with pytest.raises(qc.DataError):
        qc.Stats.from_json(text)


def test_bad_tables_and_samples_are_refused() -> None:
    with pytest.raises(qc.DataError, match="no column 'type'"):
        qc.Stats.collect({"ts": [1]})
    with pytest.raises(qc.DataError, match="a sample of 0"):
        qc.Stats.collect({"ts": [1], "type": ["A"]}, sample=0)
    assert qc.Stats.collect({"ts": [], "type": []}) == qc.Stats()


def test_a_running_estimate_follows_the_stream() -> None:
    seen = Running(half_life=100)
    assert seen.stats() == qc.Stats()
    assert seen.drift(qc.Stats({"A": 1.0})) == 1.0
    for _ in range(200):
        seen.observe({"A": 20, "B": 40}, 10, 100)
    before = seen.stats()
    assert before.rates == pytest.approx({"A": 2.0, "B": 4.0})
    assert before.total_rate() == pytest.approx(10)
    assert seen.drift(before) == pytest.approx(1.0)
    for _ in range(10):  # one half-life of another rate
        seen.observe({"A": 80, "B": 40}, 10, 160)
    assert seen.stats().rates == pytest.approx({"A": 5.0, "B": 4.0})
    assert seen.drift(before) == pytest.approx(2.5, abs=0.1)


def test_a_running_estimate_does_not_depend_on_how_a_stream_is_cut() -> None:
    one, many = Running(50), Running(50)
    one.observe({"A": 3_000}, 1_000, 3_000)
    for _ in range(1_000):
        many.observe({"A": 3}, 1, 3)
    assert one.stats().rates == pytest.approx(many.stats().rates, rel=1e-6)


def test_batches_of_one_moment_add_up() -> None:
    seen = Running(10)
    seen.observe({"A": 1}, 0, 1)
    seen.observe({"A": 1}, 0, 1)
    seen.observe({"A": 2}, 4, 2, {"a.x < b.x": (10, 5)})
    assert seen.stats().rates["A"] == pytest.approx(0.94, abs=0.1)
    assert seen.stats().selectivity == {"a.x < b.x": 0.5}
