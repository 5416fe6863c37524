"""What the tests of the command line share: a small stream in all formats, and ways to run `quercus`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

EVENTS = [
    {"ts": 1, "type": "Wash", "id": 7},
    {"ts": 2, "type": "Wash", "id": 9},
    {"ts": 3, "type": "Operate", "id": 9},
    {"ts": 4, "type": "Operate", "id": 7},
]
QUERY = "PATTERN SEQ(Wash w, Operate o, [id]) WITHIN 5"
MATCHES = [{"w": EVENTS[1], "o": EVENTS[2]}, {"w": EVENTS[0], "o": EVENTS[3]}]
Run = Callable[..., tuple[int, str, str]]
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "error", "COLUMNS": "100"}


def save(path: Path, events: list[dict[str, Any]] | None = None) -> Path:
    """The events in a file of the format that its suffix says."""
    table = pa.Table.from_pylist(EVENTS if events is None else events)
    match path.suffix:
        case ".parquet":
            pyarrow.parquet.write_table(table, path)
        case ".csv":
            pyarrow.csv.write_csv(table, path)
        case ".arrow":
            pyarrow.feather.write_feather(table, path, compression="uncompressed")
        case _:
            import json

            path.write_text("".join(json.dumps(e) + "\n" for e in table.to_pylist()))
    return path


def quercus(*args: str, given: bytes | None = None, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """`quercus ARGS` in a process of its own."""
    command = [sys.executable, "-m", "quercus", *args]
    return subprocess.run(command, input=given, capture_output=True, env=ENVIRONMENT, timeout=120, **options)
