"""Quercus: complex event processing as tree plans. QUERies over Complex events, as trees.

>>> import quercus as qc
>>> schema = qc.Schema({"id": "int64"}, time="ts", type="type", time_unit="s")
>>> plan = qc.compile("PATTERN SEQ(Wash w, !Check c, Operate o, [id]) WITHIN 10 min", schema)
>>> print(plan.tree.key.columns[0].attr)
id
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from quercus import backends
from quercus.adapt import Adapt
from quercus.backends.base import Limits
from quercus.errors import DataError, LimitExceeded, QuercusError, QueryError
from quercus.schema import Schema
from quercus.stats import Stats

if TYPE_CHECKING:
    from quercus.backends.local.dialect import Files
    from quercus.compiler import compile
    from quercus.cql import Continuous, continuous
    from quercus.cubes import Cube, CubeQuery, cube
    from quercus.plan import Alternative, Plan
    from quercus.why.data import Why

__version__ = "0.1.0"

__all__ = [
    "Adapt",
    "Alternative",
    "Continuous",
    "Cube",
    "CubeQuery",
    "DataError",
    "Files",
    "LimitExceeded",
    "Limits",
    "Plan",
    "QuercusError",
    "QueryError",
    "Schema",
    "Stats",
    "Why",
    "backends",
    "compile",
    "continuous",
    "cube",
]

_LATER = {
    "Files": "quercus.backends.local.dialect",
    "compile": "quercus.compiler",
    "Plan": "quercus.plan",
    "Alternative": "quercus.plan",
    "continuous": "quercus.cql",
    "Continuous": "quercus.cql",
    "cube": "quercus.cubes",
    "Cube": "quercus.cubes",
    "CubeQuery": "quercus.cubes",
    "Why": "quercus.why.data",
}


def __getattr__(name: str) -> object:
    """The compiler is imported when it is first used: it takes longer than all the rest."""
    if name not in _LATER:
        raise AttributeError(f"module 'quercus' has no attribute {name!r}")
    import_module("quercus.compiler")  # before the plan, which it needs
    found = globals()[name] = getattr(import_module(_LATER[name]), name)
    return found
