"""A driver that is killed again and again, at random moments: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.spark.stream_files import SECOND, Files, bag, disordered, drawn, table
from tests.spark.stream_job import plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS, ROWS, FILES = 10, 6000, 40
ROOT = Path(__file__).parent.parent.parent
END = {"ts": 10**6 * SECOND, "type": "Z", "id": None, "x": None, "s": None, "n": 10**6}


def started(folder: Path) -> subprocess.Popen[str]:
    """The program in a process group of its own, when its session is there."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-W", "ignore", "-m", "tests.spark.stream_job", str(folder)]
    log = (folder / "log").open("a")
    made = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,
    )
    assert made.stdout is not None
    line = made.stdout.readline()
    assert line.strip() == "started", (folder / "log").read_text()[-3000:]
    return made


def begun(folder: Path, kind: str) -> set[str]:
    """The batches that have begun (`offsets`), or that are done (`commits`)."""
    place = folder / "out.checkpoint" / kind
    return {p.name for p in place.iterdir() if p.name.isdigit()} if place.exists() else set()


@pytest.mark.slow
def test_a_driver_that_is_killed_loses_nothing_and_repeats_nothing(spark: SparkSession, tmp_path: Path) -> None:
    rows, r = drawn(11, ROWS, keys=40), Random(12)
    given = disordered(rows, 13, 9 * SECOND)
    files = Files(spark, tmp_path)
    size = -(-len(given) // FILES)
    for i in range(0, len(given), size):
        files.add(given[i : i + size])
    files.add([END])
    inside = 0  # kills between the beginning of a batch and its end
    for _ in range(KILLS):
        job = started(tmp_path)
        before = begun(tmp_path, "commits")
        deadline = time.monotonic() + 300
        while begun(tmp_path, "commits") == before and job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert job.poll() is None, "the files were read before the kills were over"
        time.sleep(r.random() * 2)
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        inside += bool(begun(tmp_path, "offsets") - begun(tmp_path, "commits"))
    job = started(tmp_path)
    assert job.wait(timeout=900) == 0, (tmp_path / "log").read_text()[-3000:]
    assert inside > 0
    expected = bag(plan().run(table(sorted(rows, key=lambda row: (row["ts"], row["n"])))).to_arrow())
    found = files.found()
    assert expected
    assert found - expected == Counter(), "doubled, or wrong"
    assert expected - found == Counter(), "lost"
