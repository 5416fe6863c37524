"""A standalone Spark cluster on the loopback address, from the pip package: a master, workers, and their executors.

Its workers run a Python that has everything but Quercus, and start where the project cannot be seen. Every process of
the cluster carries a mark in its environment, by which all of them are found and ended whatever happened before.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from types import MappingProxyType
from typing import TypeVar
from uuid import uuid4

from attrs import define, field

MARK = "QUERCUS_TEST_CLUSTER"
LOOPBACK = ("--host", "127.0.0.1", "--webui-port", "0")
EXECUTOR = "CoarseGrainedExecutorBackend"
T = TypeVar("T")

PATIENCE = 300.0  # seconds until something that takes a few must have happened


@define
class Cluster:
    """A running cluster; made by `cluster`."""

    place: Path
    mark: str = field(factory=lambda: uuid4().hex)
    url: str = ""
    master: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(factory=list)

    def start(self, workers: int) -> None:
        master = self._launch("master", "org.apache.spark.deploy.master.Master", *LOOPBACK, "--port", "0")
        self.master = master
        log = self.place / "master.log"

        def said() -> str | None:
            assert master.poll() is None, log.read_text()
            found = re.search(r"Starting Spark master at (spark://\S+)", log.read_text())
            return found[1] if found else None

        self.url = wait_for(said, "a master")
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        """One more worker, of one core, registered with the master."""
        number = len(self.workers)
        work = self.place / f"work{number}"
        arguments = [*LOOPBACK, "--cores", "1", "--memory", "1g", "--work-dir", str(work), self.url]
        self.workers.append(self._launch(f"worker{number}", "org.apache.spark.deploy.worker.Worker", *arguments))
        log = self.place / f"worker{number}.log"
        wait_for(lambda: "Successfully registered with master" in log.read_text(), "a worker")

    def start_connect(self, python: Path) -> str:
        """A server of Spark Connect, with workers of its own that run this Python; its address."""
        with socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.sql.shuffle.partitions": "3",
            "spark.ui.enabled": "false",
        }
        named = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        what = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
        server = self._launch(
            "connect",
            "org.apache.spark.deploy.SparkSubmit",
            *("--master", "local[2]", *named, *what),
            environment={"PYSPARK_PYTHON": str(python), "SPARK_DAEMON_MEMORY": "768m"},
        )
        self.workers.append(server)
        log = self.place / "connect.log"

        def started() -> bool:
            assert server.poll() is None, log.read_text()
            return "Spark Connect server started at" in log.read_text()

        wait_for(started, "a server of Spark Connect")
        return f"sc://127.0.0.1:{port}"

    def executors(self) -> list[int]:
        """Process ids of the executors that run now."""
        return [pid for pid in self.processes() if EXECUTOR in _read(pid, "cmdline")]

    def processes(self) -> list[int]:
        """Process ids of everything that runs for the cluster now."""
        wanted = f"{MARK}={self.mark}"
        pids = (int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit())
        return [pid for pid in pids if pid != os.getpid() and wanted in _read(pid, "environ").split("\0")]

    def end(self) -> None:
        """Kill all of its processes; and again, should one have started another in the meantime."""

        def none_left() -> bool:
            left = self.processes()
            for pid in left:
                kill(pid)
            for child in (self.master, *self.workers):
                if child is not None:
                    child.poll()  # so that it does not stay as a zombie
            return not left

        wait_for(none_left, "the end of the cluster")
        for child in (self.master, *self.workers):
            if child is not None:
                child.wait()

    def _launch(
        self, name: str, what: str, *arguments: str, environment: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.Popen[bytes]:
        home = spark_home()
        kept = {k: v for k, v in os.environ.items() if k in {"PATH", "JAVA_HOME", "HOME", "LANG"}}
        given = kept | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            MARK: self.mark,
            **environment,
        }
        with (self.place / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [str(home / "bin" / "spark-class"), what, *arguments],
                cwd=self.place,
                env=given,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_the_tests,
            )


@contextmanager
def cluster(place: Path, *, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers, ended afterwards."""
    place.mkdir(parents=True, exist_ok=True)
    made = Cluster(place)
    try:
        made.start(workers)
        yield made
    finally:
        made.end()


def python_without_quercus(place: Path) -> Path:
    """An environment that sees the packages installed for this Python, but not those installed to be edited in place.

    Those are found through .pth files, which count only in an environment's own folder of packages.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    python = place / "bin" / "python"
    script = "import sysconfig; print(sysconfig.get_path('purelib'))"
    theirs = subprocess.run([str(python), "-c", script], check=True, capture_output=True, text=True).stdout.strip()
    seen = [path for path in sys.path if path.endswith("-packages") and Path(path).is_dir()]
    Path(theirs, "seen.pth").write_text("\n".join(seen) + "\n")
    return python


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def kill(pid: int) -> None:
    """kill -9, of a process that may have ended by itself."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def wait_for(said: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
    """What `said` returns as soon as that is neither None nor False; an error if it takes too long."""
    end = time.monotonic() + seconds
    while not (found := said()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.05)
    return found


def _die_with_the_tests() -> None:
    """For a process that is about to start: should ours be killed, it is killed too (Linux: PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _read(pid: int, name: str) -> str:
    try:
        return Path("/proc", str(pid), name).read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""  # it ended, or is someone else's
