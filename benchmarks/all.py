"""Every figure and table that the documents claim, one benchmark after the other: `make bench`.

`python -m benchmarks.all [name ...]`. Each runs in a process of its own and writes benchmarks/results/<name>.json; at
the end the tables of the documents are written again from all results. `make bench-spark` measures Spark. What is not
installed (Flink's jars) is named and left out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from benchmarks import flink_cep

IMAGES = "docs/images"
PARTS: dict[str, list[str]] = {
    "engine": ["benchmarks.table"],
    "flink": ["benchmarks.flink_cep"],
    "faem": ["benchmarks.faem", "--plot", IMAGES],
    "random": ["benchmarks.random_queries"],
    "views": ["benchmarks.views"],
    "adaptive": ["benchmarks.adaptive"],
    "cube": ["benchmarks.cube", "--charts", IMAGES],
    "windows": ["benchmarks.windows"],
    "documents": ["benchmarks.documents"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*PARTS, []], help=f"some of {', '.join(PARTS)}; default: all")
    wanted = parser.parse_args().names or list(PARTS)
    failed = []
    for name in wanted:
        reason = flink_cep.missing() if name == "flink" else None
        if reason is not None:
            print(f"\n== {name}: left out, {reason}", flush=True)
            continue
        print(f"\n== {name}", flush=True)
        begin = time.monotonic()
        done = subprocess.run([sys.executable, "-m", *PARTS[name]], check=False)
        print(f"== {name}: {time.monotonic() - begin:.0f} s", flush=True)
        failed += [name] if done.returncode else []
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
