"""Every figure and table that the documents claim, one benchmark after the other: `make bench`.

`python -m benchmarks.all [--quick] [--out folder] [name ...]`. Each runs in a process of its own, writes
benchmarks/results/<name>.json and draws its pictures; at the end the tables of the documents are written again from all
results, and it is told which aims are met. What cannot be run here (Flink without its jars, Spark without Java) is
named and left out. With `--quick` all is run briefly, to see that it works; neither results nor documents are touched.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

from benchmarks import aims, documents, flink_cep, record
from quercus.errors import QuercusError

PARTS = {
    "engine": "benchmarks.table",
    "flink": "benchmarks.flink_cep",
    "faem": "benchmarks.faem",
    "calibrate": "benchmarks.calibrate",
    "random": "benchmarks.random_queries",
    "views": "benchmarks.views",
    "adaptive": "benchmarks.adaptive",
    "cube": "benchmarks.cube",
    "windows": "benchmarks.windows",
    "why": "benchmarks.why",
    "spark": "benchmarks.spark",
}


def no_spark() -> str | None:
    """Why Spark cannot be run here."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'quercus[spark]'"
    from quercus.backends.spark.java import require_java

    try:
        require_java()
    except QuercusError as e:
        return str(e).splitlines()[0]
    return None


MISSING: dict[str, Callable[[], str | None]] = {"flink": flink_cep.missing, "spark": no_spark}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"some of {', '.join(PARTS)}; default: all")
    record.options(parser)
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in PARTS]
    if unknown:
        parser.error(f"no benchmark '{unknown[0]}'; there are {', '.join(PARTS)}")
    options = [*(["--quick"] if asked.quick else []), *(["--out", str(asked.out)] if asked.out else [])]
    failed = []
    for name in asked.names or PARTS:
        reason = MISSING[name]() if name in MISSING else None
        if reason is not None:
            print(f"\n== {name}: left out, {reason}", flush=True)
            continue
        print(f"\n== {name}", flush=True)
        begin = time.monotonic()
        done = subprocess.run([sys.executable, "-m", PARTS[name], *options], check=False)
        print(f"== {name}: {time.monotonic() - begin:.0f} s", flush=True)
        failed += [name] if done.returncode else []
    if not asked.quick and asked.out is None:
        print("\n== documents\nwritten again:", ", ".join(documents.write()) or "nothing to change")
    print(f"\n== aims\n{aims.told(list(aims.aims(asked.out or record.RESULTS)))}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
