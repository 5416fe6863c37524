"""Compiled inner loops, each with a plain-Python twin in ``reference.py``.

Kernels take contiguous typed buffers and know nothing of queries or plans.  ``QUERCUS_KERNELS`` names a directory
whose compiled modules are taken before those beside this file: the tests use it to run on the bounds-checked build.
"""

import os

if _elsewhere := os.environ.get("QUERCUS_KERNELS"):
    __path__.insert(0, _elsewhere)
