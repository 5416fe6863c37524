"""The Spark backend: plans over DataFrames, batch and streaming. PySpark is imported when it is first needed.

`plan.run(df)` is all that most need. What can be asked for beside it is here:

    run(plan, df, partitions=, slices=, split_keys=)    the same with options
    explain(plan, df)                                   the plan, how events are shared out; beside it Spark's own plan
    metrics(result)                                     what a run counted, once it has run
    session(master)                                     a Spark session with settings that suit
    ship(spark)                                         Quercus sent to executors that do not have it
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Named like their modules: imported at once, or the first use would put the module in the function's place.
from quercus.backends.spark.session import session
from quercus.backends.spark.ship import ship

__all__ = ["SparkBackend", "explain", "metrics", "run", "session", "ship"]

_HOMES = {"SparkBackend": "backend", "run": "backend", "explain": "report", "metrics": "report"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'quercus.backends.spark' has no attribute {name!r}")
    return getattr(import_module(f"quercus.backends.spark.{_HOMES[name]}"), name)
