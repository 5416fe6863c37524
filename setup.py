"""Builds the Cython kernels; everything else is in pyproject.toml.

QUERCUS_CHECKED=1   bounds, index and overflow checks, -O1; intermediate files apart from the ordinary build's
QUERCUS_NATIVE=1    tune for this machine's processor; the result may not run on another
QUERCUS_LATER=1     no kernels: the Makefile installs the package first and builds them in place afterwards, once
"""

import os
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

CHECKED = os.environ.get("QUERCUS_CHECKED") == "1"
NATIVE = os.environ.get("QUERCUS_NATIVE") == "1"
LATER = os.environ.get("QUERCUS_LATER") == "1"

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "wraparound": False,  # no kernel indexes from the end; under boundscheck a negative index is then an error
    "initializedcheck": CHECKED,
    "overflowcheck": CHECKED,
    "nonecheck": False,  # a check of self needs the GIL, which the kernels run without
    "cdivision": not CHECKED,
    "embedsignature": True,
    "show_performance_hints": not CHECKED,  # a checked build is slower on purpose
}

COMPILE = ["-O1", "-g"] if CHECKED else ["-O3"]
if NATIVE and not CHECKED:
    COMPILE.append("-march=native")


def kernel(source: Path) -> Extension:
    return Extension(
        ".".join(source.with_suffix("").parts),
        [str(source)],
        extra_compile_args=COMPILE,
        define_macros=[
            ("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"),
            *([("QUERCUS_CHECKED", "1")] if CHECKED else []),
        ],
        include_dirs=["quercus/kernels", numpy.get_include()],
        depends=["setup.py", *map(str, Path("quercus/kernels").glob("*.h"))],
    )


def kernels() -> list[Extension]:
    return cythonize(
        [kernel(source) for source in sorted(Path("quercus/kernels").glob("*.pyx"))],
        build_dir="build/cython-checked" if CHECKED else "build/cython",
        compiler_directives=DIRECTIVES,
        nthreads=os.cpu_count() or 1,
    )


if __name__ == "__main__":  # cythonize starts processes, which may import this file again
    setup(ext_modules=[] if LATER else kernels())
