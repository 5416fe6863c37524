"""DuckDB, as this package uses it: in memory, without files or network, with the arithmetic of docs/semantics.md."""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from os import getpid
from threading import Timer
from typing import Any

import pyarrow as pa

from quercus.backends.base import Limits
from quercus.backends.local.continuous.sql import LOWER, UPPER
from quercus.backends.local.expressions import cased
from quercus.errors import LimitExceeded, NotInstalled, QuercusError

SIGNALLED = "Query interrupted"  # the RuntimeError that stands for what a signal's handler raised

_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
}
# Division by zero is null, of floats and of whole numbers.
_SESSION = ("ieee_floating_point_ops", "error_on_division_by_zero", "python_enable_replacements")


def query(
    sql: str,
    parameters: list[object],
    tables: Mapping[str, pa.Table],
    *,
    limits: Limits,
    threads: int,
) -> pa.Table:
    """The rows of a statement over tables that are known by generated names. At most one more than the limit."""
    duckdb = _duckdb()
    with _explained(duckdb, limits), _database(getpid(), threads, limits.max_state_bytes).cursor() as connection:
        for setting in _SESSION:
            connection.execute(f"SET {setting} = false")
        for name, table in tables.items():
            connection.register(f"v_{name}", table)
            connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM v_{name}")
        with _timed(connection, limits):
            limited = f"SELECT * FROM ({sql}) LIMIT {limits.max_matches + 1}"
            found: pa.Table = connection.sql(limited, params=parameters).to_arrow_table()
    check_rows(len(found), limits)
    return found


def check_rows(count: int, limits: Limits) -> None:
    if count > limits.max_matches:
        raise LimitExceeded(
            f"the query has more than {limits.max_matches:,} rows: narrow it, or raise Limits(max_matches=)",
            limit="max_matches",
            value=limits.max_matches,
        )


@atexit.register
def _close() -> None:
    """The interpreter is to find nothing of DuckDB when it ends."""
    _database.cache_clear()


@lru_cache(maxsize=4)
def _database(process: int, threads: int, memory: int | None) -> Any:
    """A database in memory, which each query has a connection of its own to: opening one takes longer than a query.

    One for each process: a fork cannot go on with that of its parent.
    """
    duckdb = _duckdb()
    settings = {**_SETTINGS, "threads": str(threads)}
    if memory is not None:
        settings["memory_limit"] = f"{memory}B"
    database = duckdb.connect(":memory:", config=settings)
    for name, change in ((LOWER, "lower"), (UPPER, "upper")):
        database.create_function(name, partial(_changed, change), ["VARCHAR"], "VARCHAR", type="arrow")
    return database


def _duckdb() -> Any:
    """DuckDB, from 2.0 on: before, `TRY_CAST(x AS BIGINT) < 3` compared x itself, also where the cast fails."""
    wanted = "continuous queries need DuckDB 2.0 for their relational part: pip install 'quercus[sql]'"
    try:
        import duckdb
    except ImportError:
        raise NotInstalled(wanted) from None
    if int(duckdb.__version__.partition(".")[0]) < 2:
        raise NotInstalled(f"{wanted} (here is {duckdb.__version__})")
    return duckdb


def _changed(change: str, strings: Any) -> Any:
    """Strings in lower or upper case, by the rules of the engine's own expressions."""
    whole = strings.combine_chunks() if isinstance(strings, pa.ChunkedArray) else strings
    return cased(whole, change)


@contextmanager
def _timed(connection: Any, limits: Limits) -> Iterator[None]:
    if limits.max_seconds is None:
        yield
        return
    timer = Timer(limits.max_seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _explained(duckdb: Any, limits: Limits) -> Iterator[None]:
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise LimitExceeded(
            "the relations of the query outgrew the memory: shorten its windows, or raise Limits(max_state_bytes=)",
            limit="max_state_bytes",
            value=limits.max_state_bytes,
        ) from None
    except duckdb.InterruptException:
        if limits.max_seconds is None:
            raise KeyboardInterrupt from None
        raise LimitExceeded(
            f"the query ran longer than {limits.max_seconds} s: shorten its windows, or raise Limits(max_seconds=)",
            limit="max_seconds",
            value=limits.max_seconds,
        ) from None
    except RuntimeError as e:
        if str(e) == SIGNALLED:
            raise KeyboardInterrupt from None
        raise
    except duckdb.Error as e:
        raise QuercusError(f"DuckDB could not run the relational part: {str(e).splitlines()[0]}") from e
