"""A program that runs a stream over a folder of files until it is killed or all is read: for the test that kills it."""

from __future__ import annotations

import sys
from pathlib import Path

import quercus as qc
from quercus.backends.spark.session import session
from quercus.backends.spark.streaming import run_stream
from tests.spark.stream_files import SCHEMA, Files

QUERY = """
PATTERN SEQ(A a, B+ b, !C c, [id]) WITHIN 20 s
RETURN a.id, a.n AS first, count(b) AS n, last(b).n AS last
"""
NUMBERED = {"ts": "timestamp[us]", "id": "int64", "x": "float64", "s": "string", "n": "int64"}


def plan() -> qc.Plan:
    return qc.compile(QUERY, qc.Schema(NUMBERED, order=SCHEMA.order))


def main(folder: str) -> None:
    spark = session("local[2]", config={"spark.sql.shuffle.partitions": 2, "spark.driver.memory": "1g"})
    files = Files(spark, Path(folder))
    print("started", flush=True)
    files.run(run_stream(plan(), files.read(), groups=4))
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
