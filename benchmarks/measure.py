"""Clocks, floors, and what machine this is."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define

TURN = 3


@define
class Best:
    """The least of some repetitions, in seconds: on the wall, and of this process's CPU time, all threads."""

    wall: float = float("inf")
    cpu: float = float("inf")

    def add(self, action: Callable[[], Any]) -> Any:
        cpu, wall = time.process_time(), time.perf_counter()
        result = action()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        self.wall, self.cpu = min(self.wall, wall), min(self.cpu, cpu)
        return result


def interleaved(actions: Sequence[Callable[[], Any]], rounds: int, look: Callable[[int, Any], None]) -> list[Best]:
    """The actions in turn, so that a slow moment of the machine meets all of them; a turn is TURN runs in a row, so
    that each is also seen with caches that are its own: after another engine's run, they are up to a third slower.

    `look` gets the last result of each turn, with the number of its action, after the clock has stopped.
    """
    best = [Best() for _ in actions]
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for number, action in enumerate(actions):
                for _ in range(TURN):
                    result = None  # the one before is freed outside the time
                    result = best[number].add(action)
                look(number, result)
    finally:
        gc.enable()
    return best


def least(action: Callable[[], Any], rounds: int) -> float:
    """Best wall seconds of one action."""
    return interleaved([action], rounds, lambda _, __: None)[0].wall


def pass_over_types(table: pa.Table, rounds: int) -> float:
    """Seconds to read every byte of the type column once: its offsets and its text."""
    words = []
    for chunk in table.column("type").chunks:
        for buffer in chunk.buffers()[1:]:
            words.append(np.frombuffer(buffer, np.int64, count=len(buffer) // 8))
    return least(lambda: [np.bitwise_or.reduce(w) for w in words], rounds)


def copy_of(arrays: Sequence[Any], rounds: int) -> float:
    """Seconds to copy arrays into fresh memory."""
    return least(lambda: [a.copy() for a in arrays], rounds)


def machine() -> dict[str, Any]:
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("quercus", "numpy", "pyarrow", "duckdb", "polars")},
        "load": round(os.getloadavg()[0], 2),
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
