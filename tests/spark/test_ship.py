"""Packing the package: what is in the archive runs where Quercus is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import quercus as qc
from quercus.backends.spark import ship as send
from quercus.backends.spark.ship import DEPENDENCIES, WorkerPython, check, pack, settings
from quercus.errors import NotInstalled
from tests.spark.cluster import python_without_quercus

module = sys.modules["quercus.backends.spark.ship"]  # the package has the function by that name
PLAN = qc.compile(
    "PATTERN SEQ(A a, !C c, B b, [id]) WITHIN 10 s",
    qc.Schema({"id": "int64"}, time="ts", type="type", time_unit="s"),
)
EVENTS = [{"ts": t, "type": "ABCAB"[t % 5], "id": t % 3} for t in range(40)]
RUNS = """
import json, sys
import quercus as qc
plan, events = json.load(sys.stdin)
rows = qc.Plan.from_json(plan).run(events).rows()
import quercus.kernels.match, quercus.compiler, lark
print(json.dumps([rows, quercus.__file__, quercus.kernels.match.__file__, lark.__file__]))
"""


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_without_quercus(tmp_path_factory.mktemp("bare") / "env")


def run_with(python: Path, place: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), "-c", RUNS],
        input=json.dumps([PLAN.to_json(), EVENTS]),
        env={"PYTHONPATH": ":".join(map(str, paths))},
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_unpacked_archive_runs(bare_python: Path, tmp_path: Path) -> None:
    without = run_with(bare_python, tmp_path)
    assert "No module named 'quercus'" in without.stderr

    packed = pack(tmp_path / "packed")
    assert packed.dependencies is None
    zipfile.ZipFile(packed.package).extractall(tmp_path / "unpacked" / "quercus")
    done = run_with(bare_python, tmp_path, tmp_path / "unpacked")
    assert done.returncode == 0, done.stderr
    rows, package, kernel, _ = json.loads(done.stdout)
    assert rows == PLAN.run(EVENTS).rows()
    assert rows
    assert all(path.startswith(str(tmp_path / "unpacked")) for path in (package, kernel))


def test_dependencies_run_from_their_zip(bare_python: Path, tmp_path: Path) -> None:
    packed = pack(tmp_path / "packed", dependencies=True)
    assert packed.dependencies is not None
    zipfile.ZipFile(packed.package).extractall(tmp_path / "unpacked" / "quercus")
    done = run_with(bare_python, tmp_path, tmp_path / "unpacked", packed.dependencies)
    assert done.returncode == 0, done.stderr
    rows, _, _, lark = json.loads(done.stdout)
    assert rows == PLAN.run(EVENTS).rows()
    assert lark.startswith(str(packed.dependencies))
    tops = {name.split("/")[0].removesuffix(".py") for name in zipfile.ZipFile(packed.dependencies).namelist()}
    assert tops == set(DEPENDENCIES)


def test_what_is_in_the_archive(tmp_path: Path) -> None:
    names = zipfile.ZipFile(pack(tmp_path).package).namelist()
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    assert {"__init__.py", "compiler/grammar.lark", f"kernels/match{suffix}", "backends/spark/ship.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyx", ".c", ".h"))]


def test_the_same_files_make_the_same_archive(tmp_path: Path) -> None:
    one, two = pack(tmp_path / "1"), pack(tmp_path / "2")
    assert one.digest == two.digest
    assert one.package.read_bytes() == two.package.read_bytes()
    assert pack(tmp_path / "3", dependencies=True).digest != one.digest


def test_settings_name_the_archive(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert found["spark.archives"] == f"{tmp_path / 'quercus.zip'}#quercus"
    assert "spark.submit.pyFiles" not in found
    assert settings(tmp_path, dependencies=True)["spark.submit.pyFiles"] == str(tmp_path / "quercus-needs.zip")


def test_without_kernels_there_is_nothing_to_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "quercus").mkdir()
    (tmp_path / "quercus" / "__init__.py").touch()
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "quercus")
    with pytest.raises(NotInstalled, match="no compiled kernel"):
        pack(tmp_path / "packed")


SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))


@pytest.mark.parametrize(
    ("suffix", "missing", "said"),
    [
        (SUFFIX, ("quercus",), r"lacks quercus: ship\(spark\) sends it"),
        (SUFFIX, ("quercus", "lark"), r"lacks quercus, lark: ship\(spark, dependencies=True\) sends them"),
        (SUFFIX, ("pyarrow",), "lacks pyarrow: install them there"),
        (".cpython-39-arm.so", (), r"modules that end in \.cpython-39-arm\.so"),
    ],
)
def test_what_workers_lack_is_said(
    monkeypatch: pytest.MonkeyPatch, suffix: str, missing: tuple[str, ...], said: str
) -> None:
    told = WorkerPython("far", "3.9.1", suffix, missing)
    monkeypatch.setattr(module, "workers", lambda spark: {told})
    with pytest.raises(NotInstalled, match=said):
        check(None)  # type: ignore[arg-type]


def test_workers_that_have_everything_are_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "workers", lambda spark: {WorkerPython("far", "3", SUFFIX, ())})
    check(None)  # type: ignore[arg-type]


def test_a_session_is_sent_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call does nothing; another build is refused: executors may have unpacked the first."""

    class Session:
        """What `ship` uses of a session."""

        def __init__(self) -> None:
            self.conf: dict[str, str] = Settings()
            self.sent: list[str] = []

        def addArtifact(self, path: str, **kind: bool) -> None:
            assert Path(path.partition("#")[0]).exists()
            self.sent.append(Path(path).name)

    class Settings(dict):  # type: ignore[type-arg]
        set = dict.__setitem__

    monkeypatch.setattr(module, "check", lambda spark: None)
    spark = Session()
    send(spark)  # type: ignore[arg-type]
    send(spark)  # type: ignore[arg-type]
    assert spark.sent == ["quercus.zip#quercus"]
    with pytest.raises(qc.QuercusError, match="another build"):
        send(spark, dependencies=True)  # type: ignore[arg-type]
