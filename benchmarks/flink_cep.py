"""The workloads on Flink CEP, where its jars are installed: `pip install apache-flink-libraries`, and a JDK.

`python -m benchmarks.flink_cep [W1 W2 ...]`. A small Java program is compiled and run in a JVM of its own, one slot; it
gets the events that the pattern names and no others, in memory. Its seconds are those of the job, without the start of
the JVM, the best of some jobs in one JVM; the engine's beside it are those of `plan.run` from the Arrow table with all
events, taken before and after. Both are CPU time: of all threads of the JVM, its compiler and collector included. The
number of matches and the sum of the times of their events are checked. Flink has no windows of events: on these streams
time counts events. Maximal sets (W5) and counts without listing (W6) have no form in Flink CEP.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measure, record
from benchmarks.streams import FOLDER, TRACKS, stream
from benchmarks.workloads import WORKLOADS, Workload

SOURCE = Path(__file__).parent / "flink" / "Cep.java"
TYPES = {"W4": list(TRACKS)}
NEGATED = 9
OWN = 4  # rounds of the engine's own runs
DONE = ("W1", "W2", "W3", "W4", "W7")
QUICK = ("W2", "W4")
RECORD = np.dtype([("ts", ">i8"), ("type", ">i4"), ("id", ">i8"), ("value", ">f8")])  # as Java reads it


def jars() -> list[Path]:
    """Flink's libraries as PyPI has them; empty where they are not installed."""
    found = find_spec("pyflink")
    folders = [Path(p) for p in (found.submodule_search_locations or [])] if found else []
    return [jar for folder in folders for jar in sorted((folder / "lib").glob("*.jar"))]


def version() -> str:
    """Flink's own, as its jars are named."""
    return next(jar.stem for jar in jars() if jar.stem.startswith("flink-dist-")).removeprefix("flink-dist-")


def missing() -> str | None:
    """Why Flink cannot be run here."""
    if not jars():
        return "Flink's jars are not installed: pip install apache-flink-libraries"
    if shutil.which("javac") is None:
        return "no javac on PATH: a JDK is needed, not only a Java runtime"
    return None


def compiled() -> Path:
    """The Java program's folder, compiled when its source is newer."""
    folder = FOLDER / "flink"
    made = folder / "Cep.class"
    if not made.exists() or made.stat().st_mtime < SOURCE.stat().st_mtime:
        folder.mkdir(parents=True, exist_ok=True)
        path = ":".join(map(str, jars()))
        subprocess.run(["javac", "-nowarn", "-cp", path, "-d", str(folder), str(SOURCE)], check=True)
    return folder


def events_of(w: Workload) -> Path:
    """The events that the workload names, as the Java program reads them."""
    table = stream(w.stream)
    names = np.asarray(table["type"].to_pylist())
    codes = {name: n for n, name in enumerate(TYPES.get(w.name, ["T0", "T1", "T2"]))}
    if w.name == "W3":
        codes["T3"] = NEGATED
    wanted = np.flatnonzero(np.isin(names, list(codes)))
    rows = np.zeros(len(wanted), RECORD)
    rows["type"] = [codes[name] for name in names[wanted]]
    for column in ("ts", "id", "value"):
        rows[column] = table[column].to_numpy()[wanted]
    path = FOLDER / f"flink-{w.name}.bin"
    path.write_bytes(np.array(len(rows), ">i4").tobytes() + rows.tobytes())
    return path


def measured(w: Workload, rounds: int) -> dict[str, Any]:
    """Seconds of Flink and of the engine, the least of some runs of each."""
    folder, events, table, plan = compiled(), events_of(w), stream(w.stream), w.compile()
    expected = [w.count, sum(int(b.rows.sum()) for b in plan.run(table).bound)]
    command = ["java", "-Xmx4g", *OPENED, "-cp", ":".join(map(str, [folder, *jars()])), "Cep", w.name, str(events)]
    mine = measure.interleaved([lambda: plan.run(table).bound], OWN, _unseen)
    done = subprocess.run([*command, str(rounds)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{w.name}: Flink ended with status {done.returncode}:\n{done.stderr}")
    mine += measure.interleaved([lambda: plan.run(table).bound], OWN, _unseen)
    said = [line.split() for line in done.stdout.splitlines()]
    for matches, total, *_ in said:
        if [int(matches), int(total)] != expected:
            raise AssertionError(f"{w.name}: Flink found {matches} matches, sum {total}; expected {expected}")
    flink = {"seconds": min(float(s[2]) for s in said), "cpu_seconds": min(float(s[3]) for s in said)}
    own = {"seconds": min(t.best for t in mine), "cpu_seconds": min(min(t.cpus) for t in mine)}
    ratio = flink["cpu_seconds"] / own["cpu_seconds"]
    return {"workload": w.name, "matches": w.count, "flink": flink, "quercus": own, "ratio": ratio}


def _unseen(_: int, __: object) -> None:
    """Results were checked before."""


# What Flink's own start scripts open for its serialisers.
OPENED = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.util", "java.time", "java.util.concurrent", "java.util.concurrent.atomic")
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="W", help=f"of {', '.join(DONE)}")
    parser.add_argument("--rounds", type=int, default=2)
    record.options(parser)
    asked = parser.parse_args()
    reason = missing()
    if reason is not None:
        sys.exit(f"not measured: {reason}")
    print(f"{'':4}{'Flink CEP s':>12}{'Quercus ms':>12}{'ratio':>10}  of CPU time")
    found: dict[str, dict[str, Any]] = {}
    for name in asked.workloads or (QUICK if asked.quick else DONE):
        one = found[name] = measured(WORKLOADS[name], 1 if asked.quick else asked.rounds)
        flink, own = one["flink"]["cpu_seconds"], one["quercus"]["cpu_seconds"]
        print(f"{name:4}{flink:12.2f}{1e3 * own:12.2f}{one['ratio']:9,.0f}x", flush=True)
    over = {f"{name} over Flink CEP": record.Ratio(one["ratio"]) for name, one in found.items()}
    record.keep(asked, "flink", {"version": version(), "workloads": found}, over)


if __name__ == "__main__":
    main()
