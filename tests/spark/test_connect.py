"""Over Spark Connect: a client with a server of its own, and one of a server whose workers have no Quercus."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import quercus as qc
from tests.spark import stream_job
from tests.spark.cluster import Cluster, python_without_quercus
from tests.spark.cluster_job import EVENTS, KEYED, SCHEMA, UNKEYED, event
from tests.spark.connect_job import COUNTED
from tests.spark.stream_files import END, Files, bag, drawn, table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(find_spec(name) is None for name in ("grpc", "grpc_status", "zstandard")),
        reason='Spark Connect is not installed: pip install "quercus[connect]"',
    ),
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the server's processes in /proc"),
]

ROOT = Path(__file__).parents[2]
STREAMED = drawn(7, 300)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that runs where Quercus cannot be seen."""
    place = tmp_path_factory.mktemp("connect")
    python = python_without_quercus(place / "env")
    made = Cluster(place)
    try:
        yield made.start_connect(python)
    finally:
        made.end()


def client(remote: str, folder: Path) -> dict[str, Any]:
    """What a client found; the answer of its stream, if it ran, is in the folder."""
    files = Files(None, folder)
    for i in range(0, len(STREAMED), 60):
        files.add(STREAMED[i : i + 60])
    files.add([END])
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_job", remote, str(folder)],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k != "PYSPARK_PYTHON"} | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check_answers(found: dict[str, Any]) -> None:
    events = [event(i) for i in range(EVENTS)]
    assert found["class"] == "pyspark.sql.connect.session.SparkSession"
    assert found["warned"] == []
    for name, query in (("keyed", KEYED), ("unkeyed", UNKEYED)):
        expected = qc.compile(query, SCHEMA).run(events).to_arrow().to_pylist()
        assert found[name] == sorted([r["first"], r["last"], r["id"]] for r in expected)
        assert len(expected) > 100
    counted = qc.compile(COUNTED, SCHEMA).run(events).to_arrow().to_pylist()
    assert found["counted"] == sorted([r["a.id"], int(r["n"])] for r in counted)


def test_with_a_server_of_its_own(tmp_path: Path) -> None:
    found = client("local[2]", tmp_path)
    check_answers(found)
    assert found["batches"] >= len(STREAMED) // 60
    streamed = bag(pa.parquet.read_table(tmp_path / "out"))
    assert streamed == bag(stream_job.plan().run(table(STREAMED)).to_arrow())
    assert len(streamed) > 20


def test_with_a_server_that_has_no_quercus(server: str, tmp_path: Path) -> None:
    found = client(server, tmp_path)
    check_answers(found)
    assert found["missing before"] == ["quercus"]
    assert found["missing after"] == []
    assert "install quercus where the server" in found["no stream"]
