"""Backends:

each runs plans in its own way. `local` is one of them; others plug in through `register` or an entry point.
"""

from __future__ import annotations

from quercus.backends.base import Backend, Limits, get, names, register

__all__ = ["Backend", "Limits", "get", "names", "register"]


def _local() -> Backend:
    from quercus.backends.local import LocalBackend

    return LocalBackend()


register("local", _local)
