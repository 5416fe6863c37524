"""Continuous queries over Spark DataFrames: pattern windows by our kernel, the relational part by Spark SQL."""

from __future__ import annotations

from quercus.backends.spark.continuous.run import run

__all__ = ["run"]
