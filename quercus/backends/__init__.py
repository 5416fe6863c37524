"""Backends:

each runs plans in its own way. `local` and `spark` are here; others plug in through `register` or an entry point.
"""

from __future__ import annotations

from quercus.backends.base import Backend, Limits, get, names, register

__all__ = ["Backend", "Limits", "get", "names", "register"]


def _local() -> Backend:
    from quercus.backends.local import LocalBackend

    return LocalBackend()


def _spark() -> Backend:
    from quercus.backends.spark.session import require_spark

    require_spark()
    from quercus.backends.spark.backend import SparkBackend

    return SparkBackend()


register("local", _local)
register("spark", _spark)
