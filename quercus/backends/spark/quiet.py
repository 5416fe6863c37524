"""Start Spark's JVM without the few lines that no setting of Spark or Java keeps it from printing.

Spark asks Java for a module that is still an incubator, and Java says so on stderr before anything of Spark runs. And
the workers of a stream with state say in every batch that they begin and end. So stderr of the JVM comes through this
process, which passes on all of it but those lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from threading import Thread

NOISE = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"Starting Streaming TransformWithStateInPandas Python worker",
    b"Streaming TransformWithStateInPandas Python worker ",
)
_ENDS = re.compile(rb"(?<=[\r\n])")


def start_context(settings: Mapping[str, str]) -> None:
    """Make the Spark context that a session built next will use; if there is a JVM already, leave it all to Spark."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    conf = SparkConf().setAll(list(settings.items()))
    reading, writing = os.pipe()
    Thread(target=pass_on, args=(reading, 2), name="stderr of Spark's JVM", daemon=True).start()
    try:
        gateway = launch_gateway(conf, {"stderr": writing})  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)  # the JVM has its own
    SparkContext(conf=conf, gateway=gateway)


def pass_on(reading: int, writing: int) -> None:
    """Copy lines until there are no more; to the end even if nobody takes them, or the JVM would wait for ever.

    A progress bar is a line that ends where it begins, with a carriage return.
    """
    with os.fdopen(reading, "rb", 0) as there:
        dropped, rest = False, b""
        while chunk := there.read(1 << 16):
            *lines, rest = _ENDS.split(rest + chunk)
            for line in lines:
                dropped = line.startswith(NOISE) or (dropped and not line.strip())  # some have an empty line after them
                if not dropped:
                    _write(writing, line)
        _write(writing, rest)


def _write(writing: int, line: bytes) -> None:
    with suppress(OSError):
        os.write(writing, line)
