"""pytest-benchmark of compiling and of the import: `make bench`. Aims: 50 ms, 1 s, 1 s, 300 ms."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import quercus as qc

Benchmark = Any  # the fixture of pytest-benchmark

SCHEMA = qc.Schema({"id": "int64", "price": "float64"}, time_unit="s")
TEN = (
    "PATTERN SEQ(A a, !SEQ(B b, !(C c, c.id = b.id), D d, b.id = a.id), AND(E e, OR(F f, G g)), H+ h, !I i, J j,"
    " [id], a.price < j.price) WHERE h.price > a.price WITHIN 10 min"
)
AND_OF_TWELVE = f"PATTERN AND({', '.join(f'{c} {c.lower()}' for c in 'ABCDEFGHIJKL')}, [id]) WITHIN 10 min"
LOOSE = f"PATTERN AND({', '.join('ABCDEFGHIJKL')}) WITHIN 10 min"


def bench_compile_a_nested_query_of_ten(benchmark: Benchmark) -> None:
    benchmark(qc.compile, TEN, SCHEMA)


def bench_compile_an_and_of_twelve(benchmark: Benchmark) -> None:
    benchmark(qc.compile, AND_OF_TWELVE, SCHEMA)


def bench_compile_an_and_of_twelve_without_conditions(benchmark: Benchmark) -> None:
    benchmark(qc.compile, LOOSE, SCHEMA)


def bench_import(benchmark: Benchmark) -> None:
    benchmark(subprocess.run, [sys.executable, "-c", "import quercus"], check=True)
