"""A driver that is killed again and again, at random moments: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.spark.cluster import wait_for
from tests.spark.stream_files import END, SECOND, Files, bag, begun, disordered, drawn, table
from tests.spark.stream_job import plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS, ROWS, FILES = 10, 6000, 40
ROOT = Path(__file__).parent.parent.parent


@contextmanager
def started(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program in a process group of its own, when its session is there; killed at the end, if it still runs."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-W", "ignore", "-m", "tests.spark.stream_job", str(folder)]
    said = folder / "said"
    with (folder / "log").open("ab") as log, said.open("wb") as out:
        made = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, stdout=out, stderr=log, start_new_session=True
        )
    try:
        wait_for(lambda: made.poll() is not None or said.read_bytes().startswith(b"started\n"), "a session", 900)
        assert made.poll() is None, (folder / "log").read_text()[-3000:]
        yield made
    finally:
        with suppress(ProcessLookupError):
            os.killpg(made.pid, signal.SIGKILL)
        made.wait()


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
        with started(tmp_path) as job:
            before = begun(tmp_path, "commits")
            deadline = time.monotonic() + 900
            while begun(tmp_path, "commits") == before and job.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            assert job.poll() is None, "the files were read before the kills were over"
            time.sleep(r.random() * 2)
        inside += bool(begun(tmp_path, "offsets") - begun(tmp_path, "commits"))
    with started(tmp_path) as job:
        assert job.wait(timeout=1800) == 0, (tmp_path / "log").read_text()[-3000:]
    assert inside > 0
    expected = bag(plan().run(table(sorted(rows, key=lambda row: (row["ts"], row["n"])))).to_arrow())
    found = files.found()
    assert expected
    assert found - expected == Counter(), "doubled, or wrong"
    assert expected - found == Counter(), "lost"
