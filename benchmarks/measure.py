"""Clocks, floors, and what machine this is."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define, field

TURN = 3


@define
class Times:
    """Of all repetitions, in seconds: on the wall, and the CPU time of this process with all its threads."""

    walls: list[float] = field(factory=list)
    cpus: list[float] = field(factory=list)

    def add(self, action: Callable[[], Any]) -> Any:
        cpu, wall = time.process_time(), time.perf_counter()
        result = action()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        self.walls.append(wall)
        self.cpus.append(cpu)
        return result

    @property
    def best(self) -> float:
        return min(self.walls)

    @property
    def middle(self) -> float:
        return median(self.walls)


def pooled(least: Mapping[str, list[float]], plans: Mapping[str, object]) -> dict[str, list[float]]:
    """Ways that ran equal plans are one way, measured more often: the least times of all of them are those of each."""
    return {
        way: [min(times) for times in zip(*(least[w] for w in least if plans[w] == plans[way]), strict=True)]
        for way in least
    }


def interleaved(actions: Sequence[Callable[[], Any]], rounds: int, look: Callable[[int, Any], None]) -> list[Times]:
    """The actions in turn, so that a slow moment of the machine meets all of them; a turn is TURN runs in a row, so
    that each is also seen with caches that are its own: after another engine's run, they are up to a third slower.

    `look` gets the last result of each turn, with the number of its action, after the clock has stopped.
    """
    times = [Times() for _ in actions]
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for number, action in enumerate(actions):
                for _ in range(TURN):
                    result = None  # the one before is freed outside the time
                    result = times[number].add(action)
                look(number, result)
    finally:
        gc.enable()
    return times


def least(action: Callable[[], Any], rounds: int) -> float:
    """Best wall seconds of one action."""
    return interleaved([action], rounds, lambda _, __: None)[0].best


def pass_over_types(table: pa.Table, rounds: int) -> float:
    """Seconds to read every byte of the type column once: its offsets and its text."""
    words = []
    for chunk in table.column("type").chunks:
        for buffer in chunk.buffers()[1:]:
            words.append(np.frombuffer(buffer, np.int64, count=len(buffer) // 8))
    return least(lambda: [np.bitwise_or.reduce(w) for w in words], rounds)


def copy_of(arrays: Sequence[Any], rounds: int) -> float:
    """Seconds to copy arrays into memory that is there already: fresh memory costs several times as much."""
    pairs = [(np.zeros_like(a), a) for a in arrays]

    def copy() -> None:
        for to, a in pairs:
            np.copyto(to, a)

    return least(copy, rounds)


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
