"""The documents about Spark keep their word, as tests/test_readme.py has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.test_readme import OF_SPARK, check


@pytest.mark.parametrize("path", OF_SPARK, ids=lambda path: path.name)
def test_python_blocks_print_what_is_shown(
    spark: SparkSession, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updating: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    check(path, updating)
