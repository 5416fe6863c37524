"""A Spark session with settings that suit Quercus: `session()` on this machine, `session("spark://host:7077")` on a
cluster.

Any other session will do as well; nothing here is needed to run a plan on Spark.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from quercus.backends.spark.java import require_java
from quercus.backends.spark.quiet import start_context
from quercus.errors import NotInstalled, QuercusError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTRA = 'pip install "quercus[spark]"'
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_GIB = 2**30

# For every session: what streams need, and what keeps times the same wherever the driver runs.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def session(
    master: str | None = None, *, app: str = "quercus", config: Mapping[str, object] | None = None
) -> SparkSession:
    """The running Spark session, or a new one: on all cores of this machine, or on `master`.

    `master` is what Spark knows by that name (`local[2]`, `spark://host:7077`, `yarn`, `k8s://...`), or `sc://host` for
    a Spark Connect server. `config` has Spark's own settings and overrides those chosen here. With no `master`, a
    program started by spark-submit gets the one given there. A session that runs already is returned as it is, with
    `config` set on it; if it runs on another master than the one asked for, that is an error.

    What is set here: UTC, Arrow, the RocksDB state store (streams need it), Spark's progress bar if stderr is a
    terminal. On a local master also: this Python for the workers, the loopback address, no web interface, two shuffle
    partitions a core, a quarter of the machine's memory (1 to 8 GiB), and a log of errors only.
    """
    SparkSession = _spark_session()
    wanted = {name: _text(value) for name, value in (config or {}).items()}
    running = SparkSession.getActiveSession()
    if running is not None:
        return _as_it_runs(running, master, wanted)

    remote = master if master is not None and master.startswith("sc://") else None
    if master is None:
        remote = wanted.get("spark.remote", os.environ.get("SPARK_REMOTE"))
    builder = SparkSession.builder.appName(app)
    if remote is not None:
        return _connected(builder, remote, wanted)

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        _find_java()
        master = master or wanted.get("spark.master", "local[*]")
    settings = _settings()
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            _prepare_local_processes()
            settings |= _local_settings(master)
    settings |= wanted
    if master is not None and master.startswith("local"):
        start_context({"spark.master": master, "spark.app.name": app, **settings})
    made = builder.config(map={**settings}).getOrCreate()
    if master is not None and not master.startswith("local"):
        made.sparkContext.setLogLevel("WARN")
    return made


def is_connected(spark: SparkSession) -> bool:
    """Whether a session is a client of Spark Connect, without a JVM of its own."""
    return not hasattr(spark, "_jsparkSession")


def require_spark() -> None:
    """`NotInstalled` if Spark, or what it needs, is not there."""
    _spark_session()


def _connected(builder: SparkSession.Builder, remote: str, wanted: dict[str, str]) -> SparkSession:
    """A session over Spark Connect: with a server elsewhere, or, of `local[n]`, with one that is started here."""
    try:
        import_module("grpc_status")
        import_module("zstandard")
    except ImportError as e:
        raise NotInstalled(f'Spark Connect needs {e.name}: pip install "quercus[connect]"') from e
    if not remote.startswith("local"):
        return builder.remote(remote).config(map={**SETTINGS, **wanted}).getOrCreate()
    _find_java()
    _prepare_local_processes()
    settings = _settings() | _local_settings(remote) | wanted
    with warnings.catch_warnings():  # the server has them all; Spark sets them once more, and some can only be set once
        warnings.filterwarnings("ignore", message="Failed to set spark", category=UserWarning)
        return builder.remote(remote).config(map={**settings}).getOrCreate()


def _spark_session() -> type[SparkSession]:
    """Spark's class, imported; `NotInstalled` if it, or what it needs for Arrow, is not there."""
    # Said by each of Spark's functions over Arrow. Quercus is tested with such a pandas.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    try:
        import_module("pyspark")
        import_module("google.protobuf")  # the state of streams
        import_module("pandas")  # asked for by everything over Arrow
        from pyspark.sql import SparkSession
    except ImportError as e:
        raise NotInstalled(f"the Spark backend needs {(e.name or 'pyspark').split('.')[0]}: {EXTRA}") from e
    return SparkSession


def _as_it_runs(running: SparkSession, master: str | None, wanted: dict[str, str]) -> SparkSession:
    """The running session with `wanted` set on it, after a check that it is on the master asked for."""
    if master is not None and not master.startswith("sc://"):
        there = running.conf.get("spark.master", None)
        if there != master:
            raise QuercusError(
                f"a Spark session runs already, on {there}, and a process can have one master only: "
                f"stop it with .stop() before asking for {master}"
            )
    for name, value in wanted.items():
        running.conf.set(name, value)
    return running


def _find_java() -> None:
    """Java is there, and Spark will start it."""
    java = require_java()
    if java.home is not None:
        os.environ["JAVA_HOME"] = java.home


def _prepare_local_processes() -> None:
    """What the processes of a local session read from the environment; settings that are there already stay."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the workers run the first python3 on PATH
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else Spark looks for one, and may warn of what it found


def _settings() -> dict[str, str]:
    """For every session that is started here; Spark draws its progress bar over what else is written to a file."""
    return {**SETTINGS, "spark.ui.showConsoleProgress": _text(os.isatty(2))}


def _local_settings(master: str) -> dict[str, str]:
    cores = _cores(master)
    return {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.driver.memory": f"{min(max(_memory() // 4, _GIB), 8 * _GIB) // 2**20}m",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}",
    }


def _cores(master: str) -> int:
    """How many cores `local`, `local[n]`, `local[n,failures]` or `local[*]` means."""
    inside = master.partition("[")[2].partition("]")[0].partition(",")[0].strip()
    if inside == "*":
        return os.cpu_count() or 1
    return int(inside) if inside.isdigit() else 1


def _memory() -> int:
    """Bytes of memory that this process may use: the machine's, or its container's if that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        container = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return machine
    return min(machine, int(container)) if container.isdigit() else machine


def _text(value: object) -> str:
    """A setting as Spark writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
