"""On a real standalone cluster, whose workers have no Quercus: it is sent there, and survives what dies there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import quercus as qc
from tests.spark.cluster import MARK, Cluster, cluster, kill, python_without_quercus, wait_for
from tests.spark.cluster_job import EVENTS, KEYED, PARTS, SCHEMA, UNKEYED, event
from tests.spark.stream_files import END, SECOND, Files, bag, begun, disordered, drawn, table
from tests.spark.stream_job import plan as stream_plan

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the cluster's processes in /proc"),
]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_without_quercus(tmp_path_factory.mktemp("bare") / "env")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made
    assert made.processes() == []


@contextmanager
def job(task: str, on: Cluster, python: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The driver program as it runs; killed if the test fails before it ends."""
    environment = os.environ | {
        "PYSPARK_PYTHON": str(python),
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        MARK: on.mark,
    }
    with (folder / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.cluster_job", task, on.url, str(folder)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield driver
        finally:
            driver.kill()
            driver.wait()


def answer(driver: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
    assert driver.wait(timeout=1800) == 0, (folder / "driver.log").read_text()
    found: dict[str, Any] = json.loads((folder / "answer.json").read_text())
    return found


def kill_one(running: Cluster, victim: str) -> None:
    """kill -9 of one of two executors, or of one of two workers."""
    executors = running.executors()
    assert len(executors) == 2
    if victim == "executor":
        kill(executors[0])
        return
    alive = [w for w in running.workers if w.poll() is None]
    assert len(alive) == 2
    alive[0].kill()
    alive[0].wait()


def expected(query: str) -> list[list[int]]:
    matches = qc.compile(query, SCHEMA).run([event(i) for i in range(EVENTS)])
    rows = sorted([r["first"], r["last"], r["id"]] for r in matches.to_arrow().to_pylist())
    assert len(rows) > 100
    return rows


def test_it_is_sent_to_workers_that_lack_it(running: Cluster, bare_python: Path, tmp_path: Path) -> None:
    with job("ship", running, bare_python, tmp_path) as driver:
        found = answer(driver, tmp_path)
    assert found["missing before"] == ["quercus"]
    assert found["said"].endswith("lacks quercus: ship(spark) sends it")
    assert found["missing after"] == []
    assert found["by hand"] == found["keyed"] == expected(KEYED)
    assert found["unkeyed"] == expected(UNKEYED)


def test_it_goes_along_from_the_start(running: Cluster, bare_python: Path, tmp_path: Path) -> None:
    with job("from the start", running, bare_python, tmp_path) as driver:
        found = answer(driver, tmp_path)
    assert found["missing before"] == found["missing after"] == []
    assert found["by hand"] == found["keyed"] == expected(KEYED)
    assert found["unkeyed"] == expected(UNKEYED)


@pytest.mark.parametrize("victim", ["executor", "worker"])
def test_what_dies_in_mid_job_changes_nothing(running: Cluster, bare_python: Path, tmp_path: Path, victim: str) -> None:
    marks = tmp_path / "marks"
    with job("slow", running, bare_python, tmp_path) as driver:

        def in_the_middle() -> bool:
            assert driver.poll() is None, (tmp_path / "driver.log").read_text()
            return marks.exists() and len(list(marks.iterdir())) >= 3  # so one of two cores is done with a task

        wait_for(in_the_middle, "tasks that run", seconds=900)
        kill_one(running, victim)
        found = answer(driver, tmp_path)
    tries = Counter(mark.name.rpartition("-")[0] for mark in marks.iterdir())  # by stage and partition
    if victim == "worker":
        running.add_worker()
    assert {name.partition("-")[2] for name in tries} == {str(i) for i in range(PARTS)}
    assert max(tries.values()) > 1  # something was lost and made again: the kill came in time
    assert found["keyed"] == expected(KEYED)


@pytest.mark.parametrize("victim", ["executor", "worker"])
def test_what_dies_during_a_stream_changes_nothing(
    running: Cluster, bare_python: Path, tmp_path: Path, victim: str
) -> None:
    rows = drawn(21, 1500, keys=20)
    given = disordered(rows, 22, 9 * SECOND)
    files = Files(None, tmp_path)
    for i in range(0, len(given), 125):
        files.add(given[i : i + 125])
    files.add([END])
    with job("stream", running, bare_python, tmp_path) as driver:

        def in_the_middle() -> bool:
            assert driver.poll() is None, (tmp_path / "driver.log").read_text()
            return len(begun(tmp_path, "commits")) >= 3

        wait_for(in_the_middle, "batches", seconds=900)
        kill_one(running, victim)
        assert len(begun(tmp_path, "commits")) < files.count  # the kill came in time
        found = answer(driver, tmp_path)
    if victim == "worker":
        running.add_worker()
    assert found["batches"] >= files.count
    ordered = sorted(rows, key=lambda row: (row["ts"], row["n"]))
    expected = bag(stream_plan().run(table(ordered)).to_arrow())
    assert expected
    assert Counter(found["found"]) == expected


def test_its_processes_are_ended_whatever_happens(tmp_path: Path) -> None:
    def fails() -> None:
        nonlocal made
        with cluster(tmp_path, workers=1) as made:
            assert len(made.processes()) == 2
            raise ValueError("of the test")

    made: Cluster | None = None
    with pytest.raises(ValueError, match="of the test"):
        fails()
    assert made is not None
    assert made.processes() == []
