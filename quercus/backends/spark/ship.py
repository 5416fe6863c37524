"""Quercus on executors that do not have it: the package is packed and sent to them, compiled kernels included.

    from quercus.backends.spark.ship import ship
    ship(spark)                     # a session that runs already, over Spark Connect too
    session("yarn", config=settings(folder))   # or from the start

A compiled module does not load from a zip on sys.path, which is what `addPyFile` makes. So the package goes as an
archive, which Spark unpacks on every executor into the folder of the session's files. That folder stands on the
workers' sys.path, before what is installed there; an archive that is unpacked there as `quercus` is found by
`import quercus`.

The executors' Python must be of the same version, on the same kind of processor, and have numpy, pyarrow and pandas,
which are compiled too. The other packages that Quercus imports can be sent along.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from quercus.errors import NotInstalled, QuercusError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

PACKAGE = Path(__file__).parents[2]
DEPENDENCIES = ("attr", "attrs", "cattrs", "graphviz", "lark", "typing_extensions")  # all plain Python
COMPILED = ("numpy", "pandas", "pyarrow")  # must be there: too large to send, and made for one platform
_KEPT = {".py", ".lark", ".properties", ".typed"}
SHIPPED = "quercus.shipped"  # a setting of the session: what was sent to it


@frozen
class Packed:
    """What `pack` wrote: the package, and the packages that it imports if they were asked for."""

    package: Path
    dependencies: Path | None
    digest: str


@frozen
class WorkerPython:
    """What a worker process told of itself."""

    host: str
    version: str
    suffix: str  # of the compiled modules that it loads
    missing: tuple[str, ...]


def pack(folder: str | Path, *, dependencies: bool = False) -> Packed:
    """Write `quercus.zip`, and with `dependencies` also `quercus-needs.zip`, into `folder`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    suffix = _suffix()
    ours = {path.relative_to(PACKAGE).as_posix(): path for path in _files(PACKAGE, _KEPT, suffix)}
    if not any(name.endswith(suffix) for name in ours):
        raise NotInstalled(
            f"no compiled kernel (*{suffix}) in {PACKAGE}: build them with 'pip install .' or 'make build'"
        )
    digest = hashlib.sha256()
    _write(folder / "quercus.zip", ours, digest)
    needs = None
    if dependencies:
        needs = folder / "quercus-needs.zip"
        _write(needs, dict(_dependency_files()), digest)
    return Packed(folder / "quercus.zip", needs, digest.hexdigest())


def settings(folder: str | Path, *, dependencies: bool = False) -> dict[str, str]:
    """Settings of a session, to be given when it starts, that send Quercus along. The packed files are in `folder`."""
    packed = pack(folder, dependencies=dependencies)
    out = {"spark.archives": f"{packed.package.absolute()}#quercus", SHIPPED: packed.digest}
    if packed.dependencies is not None:
        out["spark.submit.pyFiles"] = str(packed.dependencies.absolute())
    return out


def ship(spark: SparkSession, *, dependencies: bool = False) -> None:
    """Send Quercus to the executors of a session that runs. A second call does nothing.

    `dependencies` sends the packages of plain Python that it imports along, too. Afterwards one small job asks the
    workers whether they can run it, so that a Python of another version is named here and not in the first query.
    """
    folder = tempfile.mkdtemp(prefix="quercus-")
    # Executors that join later fetch the files then, so they stay until this process ends.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    packed = pack(folder, dependencies=dependencies)
    before = spark.conf.get(SHIPPED, None)
    if before == packed.digest:
        return
    if before is not None:
        raise QuercusError("another build of Quercus was sent to this session before: stop it and start a new one")
    spark.addArtifact(f"{packed.package}#quercus", archive=True)
    if packed.dependencies is not None:
        spark.addArtifact(str(packed.dependencies), pyfile=True)
    spark.conf.set(SHIPPED, packed.digest)
    check(spark)


def check(spark: SparkSession) -> None:
    """Ask the workers whether they can run Quercus; `NotInstalled` says what they lack."""
    for worker in workers(spark):
        where = f"the Python of the executors ({worker.version} on {worker.host})"
        if worker.suffix != _suffix():
            raise NotInstalled(
                f"{where} loads modules that end in {worker.suffix}, and the kernels built here, by Python "
                f"{sys.version.split()[0]}, end in {_suffix()}: give both sides the same Python (PYSPARK_PYTHON), "
                "or install quercus there"
            )
        if worker.missing:
            lacking = ", ".join(worker.missing)
            if worker.missing == ("quercus",):
                hint = "ship(spark) sends it"
            elif set(worker.missing) <= {*DEPENDENCIES, "quercus"}:
                hint = "ship(spark, dependencies=True) sends them"
            else:
                hint = "install them there"
            raise NotInstalled(f"{where} lacks {lacking}: {hint}")


def workers(spark: SparkSession, tasks: int = 4) -> set[WorkerPython]:
    """What the workers of a few tasks tell of themselves. Tasks may run on the same executor."""
    needed = ("quercus", *COMPILED, *(name for name in DEPENDENCIES if name != "graphviz"))

    # Sent by value, with nothing of this module in it: the worker may have no quercus to import it from.
    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import platform
        import sysconfig
        from importlib.util import find_spec

        import pyarrow as pa

        for _ in batches:
            pass
        missing = ",".join(name for name in needed if find_spec(name) is None)
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        mine = {"host": platform.node(), "version": platform.python_version(), "suffix": suffix, "missing": missing}
        yield pa.RecordBatch.from_pylist([mine])

    rows = (
        spark.range(0, tasks, 1, tasks)
        .mapInArrow(told, "host string, version string, suffix string, missing string")
        .collect()
    )
    return {WorkerPython(r.host, r.version, r.suffix, tuple(filter(None, r.missing.split(",")))) for r in rows}


def _suffix() -> str:
    """How the compiled modules of this Python end: version, processor and system are in it."""
    return str(sysconfig.get_config_var("EXT_SUFFIX"))


def _files(folder: Path, kept: set[str], suffix: str) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (path.suffix in kept or path.name.endswith(suffix)):
            yield path


def _dependency_files() -> Iterator[tuple[str, Path]]:
    """Names in the archive, and files, of the packages of plain Python that Quercus imports."""
    for name in DEPENDENCIES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise NotInstalled(f"cannot pack {name}, which Quercus imports: it is not installed here")
        origin = Path(spec.origin)
        if origin.name != "__init__.py":  # a module of one file
            yield origin.name, origin
            continue
        for path in _files(origin.parent, _KEPT, suffix="\0"):
            yield path.relative_to(origin.parent.parent).as_posix(), path


def _write(target: Path, files: dict[str, Path], digest: hashlib._Hash) -> None:
    """A zip of these files that depends on nothing but their names and contents."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in files.items():
            content = path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
            info = zipfile.ZipInfo(name)  # dated 1980
            info.external_attr = 0o644 << 16
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
