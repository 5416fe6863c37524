"""pytest-benchmark of the engine alone, one function a workload: `make bench`."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import streaming, streams
from benchmarks.workloads import WORKLOADS

Benchmark = Any  # the fixture of pytest-benchmark
stream = cache(streams.stream)


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    pa.set_cpu_count(1)


def run(benchmark: Benchmark, name: str) -> None:
    work = WORKLOADS[name]
    matches = benchmark(work.compile().run, stream(work.stream))
    assert len(matches) == work.count


def bench_w1_all_combinations(benchmark: Benchmark) -> None:
    run(benchmark, "W1")


def bench_w2_equal_ids(benchmark: Benchmark) -> None:
    run(benchmark, "W2")


def bench_w3_negated_leaf(benchmark: Benchmark) -> None:
    run(benchmark, "W3")


def bench_w4_music(benchmark: Benchmark) -> None:
    run(benchmark, "W4")


def bench_w5_music_kleene(benchmark: Benchmark) -> None:
    run(benchmark, "W5")


def bench_w7_rising_values(benchmark: Benchmark) -> None:
    run(benchmark, "W7")


def bench_w1_streamed(benchmark: Benchmark) -> None:
    work = WORKLOADS["W1"]
    batches = stream(work.stream).to_batches(max_chunksize=streaming.BATCH)
    assert benchmark(streaming.streamed(work.compile(), batches)) == work.count


def bench_compile_and_run_100_events(benchmark: Benchmark) -> None:
    few = stream("u100k").slice(0, 100)
    work = WORKLOADS["W1"]
    assert len(benchmark(lambda: work.compile().run(few))) == _brute_force(few)


def _brute_force(few: pa.Table) -> int:
    at: dict[str, list[int]] = {}
    for ts, type_ in zip(few["ts"].to_pylist(), few["type"].to_pylist(), strict=True):
        at.setdefault(type_, []).append(ts)
    a, b, c = (at.get(t, []) for t in ("T0", "T1", "T2"))
    return sum(i < j < k <= i + 100 for i in a for j in b for k in c)
