"""`quercus run --backend spark`: the same matches, on Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quercus.cli import exits, main
from tests.cli.helpers import MATCHES, QUERY, save


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_run(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str) -> None:
    path = str(save(tmp_path / f"events.{suffix}"))
    assert main(["run", QUERY, path, "--backend", "spark"]) == exits.OK
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(found, key=str) == sorted(MATCHES, key=str)
    assert main(["run", QUERY, path, "--backend", "spark", "-o", str(tmp_path / "out")]) == exits.OK
    assert spark.read.parquet(str(tmp_path / "out")).count() == 2
