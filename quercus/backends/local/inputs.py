"""Everything that `plan.run(events)` takes, as one Arrow table in input order.

Tables and record batches of pyarrow, whatever exports an Arrow stream (Polars, pandas, DuckDB), a dict of columns, a
list of dicts, a dict {type name: any of these} merged by time, and files: Parquet, CSV, JSON Lines, Arrow IPC, by path,
folder or glob. Which column types are accepted, and what they become, is said in conform.py.

A column that a table lacks is an error. In a list of dicts, in JSON Lines and in a dict of tables it counts as nulls,
since there each event carries only its own attributes; the time and the type are needed everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quercus.backends.local import files
from quercus.backends.local.conform import WHOLE, Source, conform, wanted_columns
from quercus.backends.local.dialect import Files, is_files
from quercus.errors import DataError
from quercus.ir.expr import Type
from quercus.schema import Schema

Wanted = Mapping[str, Type]
LARGE = 2**28  # bytes


def as_table(events: object, schema: Schema, columns: frozenset[str] | None = None, *, typed: bool = True) -> pa.Table:
    """The time, the type (unless `typed` is False) and the schema's attributes (of these only `columns`, if given).

    >>> from quercus.schema import Schema
    >>> schema = Schema({"id": "int64"})
    >>> as_table([{"ts": 1, "type": "A", "id": 7}, {"ts": 2, "type": "B"}], schema).to_pydict()
    {'ts': [1, 2], 'type': ['A', 'B'], 'id': [7, None]}
    >>> as_table({"A": {"ts": [1, 5]}, "B": {"ts": [3], "id": [7]}}, schema)["type"].to_pylist()
    ['A', 'B', 'A']
    """
    wanted = wanted_columns(schema, columns)
    typed = typed and bool(schema.type)
    if typed and isinstance(events, Mapping) and _is_by_type(events, schema):
        return _merged(events, schema, wanted)
    return _one(events, schema, wanted, typed=typed)


def as_pieces(
    events: object,
    schema: Schema,
    columns: frozenset[str] | None = None,
    tell: Callable[[float], None] | None = None,
) -> Iterator[pa.Table]:
    """The same, some rows at a time: files are read piece by piece, and so are readers of record batches.

    What is in memory already is one piece. `tell` is told which part of all files is read with each piece.
    """
    wanted = wanted_columns(schema, columns)
    rows = 0
    if is_files(events):
        found = files.find(events)
        sizes = [path.stat().st_size for path in found] if tell is not None else []
        for i, path in enumerate(found):
            for read in files.read_pieces(path, schema, wanted, Source(rows, f"'{path}'"), events):
                if tell is not None:
                    tell((sum(sizes[:i]) + sizes[i] * read.part) / max(1, sum(sizes)))
                missing: Literal["error", "null"] = "null" if read.sparse else "error"
                source = Source(rows, f"'{path}'")
                yield conform(read.table, schema, wanted, missing=missing, source=source, known=read.names)
                rows += len(read.table)
    elif isinstance(events, pa.RecordBatchReader):
        for batch in events:
            yield conform(pa.Table.from_batches([batch]), schema, wanted, source=Source(rows))
            rows += batch.num_rows
    else:
        yield as_table(events, schema, columns)


def is_large(events: object, schema: Schema, columns: frozenset[str] | None = None) -> bool:
    """Whether events in files take so much memory that they are better read in pieces."""
    if not is_files(events):
        return False
    names = {*schema.special, *wanted_columns(schema, columns)}
    return sum(files.weight(path, names, events) for path in files.find(events)) > LARGE


def _one(
    events: object, schema: Schema, wanted: Wanted, *, typed: bool, sparse: bool = False, source: Source = WHOLE
) -> pa.Table:
    """One input; `sparse`: an attribute that it lacks counts as nulls."""
    if is_files(events):
        return _from_files(events, schema, wanted, typed=typed, sparse=sparse)
    missing: Literal["error", "null"] = "null" if sparse else "error"
    known: list[str] | None = None
    if isinstance(events, Mapping):
        known = [str(n) for n in events]
        table = _from_columns(events, [*schema.special, *wanted], source)
    elif _is_rows(events):
        table, missing = _from_rows(cast("Sequence[Any]", events), [*schema.special, *wanted], source), "null"
    else:
        table = _from_arrow(events)
    return conform(table, schema, wanted, missing=missing, source=source, typed=typed, known=known)


def _from_arrow(events: object) -> pa.Table:
    try:
        if isinstance(events, pa.Table):
            return events
        if isinstance(events, pa.RecordBatch):
            return pa.Table.from_batches([events])
        if isinstance(events, pa.RecordBatchReader):
            return events.read_all()
        if hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
            return pa.table(events)
    except (pa.ArrowException, OSError, ValueError, TypeError) as e:
        raise DataError(f"the Arrow stream of a {type(events).__name__} cannot be read: {e}") from e
    raise DataError(
        f"events cannot be a {type(events).__name__}: give a table (pyarrow, Polars, pandas, DuckDB), a dict of "
        "columns, a list of dicts, a dict of tables by type, or a path"
    )


# Python values --------------------------------------------------------------------------------------------------------


def _is_rows(events: object) -> bool:
    return isinstance(events, list | tuple) and all(isinstance(e, Mapping) for e in events)


def _from_rows(rows: Sequence[Mapping[str, Any]], names: list[str], source: Source) -> pa.Table:
    # Time and type are left out where no row has them, so that conform says so.
    present = {n: [r.get(n) for r in rows] for n in names if not rows or any(n in r for r in rows)}
    return _from_columns(present, names, source)


def _from_columns(columns: Mapping[str, Any], names: list[str], source: Source) -> pa.Table:
    arrays = {str(n): _array(columns[n], str(n), source) for n in columns if n in names}
    if not arrays:
        given = ", ".join(map(str, list(columns)[:20])) or "nothing"
        raise DataError(f"no column '{names[0]}' among: {given}", column=names[0])
    first, length = next((n, len(a)) for n, a in arrays.items())
    for name, array in arrays.items():
        if len(array) != length:
            raise DataError(f"column '{name}' has {len(array)} rows, column '{first}' has {length}", column=name)
    return pa.table(arrays)


def _array(values: Any, name: str, source: Source) -> Any:
    """One column as an Arrow array; values that Arrow has no common type for are named with their row."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        return pa.array(values)
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as e:
        listed = list(values) if hasattr(values, "__iter__") else None
        if listed is None or isinstance(values, str):
            source.fail(f"a {type(values).__name__} is no column", name)
        good, bad = 0, len(listed)
        while bad - good > 1:  # the first `good` values convert, the first `bad` do not
            middle = (good + bad) // 2
            try:
                pa.array(listed[:middle])
                good = middle
            except (pa.ArrowException, OverflowError, ValueError, TypeError):
                bad = middle
        row = good if listed else None
        source.fail(f"{str(e).splitlines()[0]}", name, row)


# Several inputs -------------------------------------------------------------------------------------------------------


def _from_files(where: str | Path | Files, schema: Schema, wanted: Wanted, *, typed: bool, sparse: bool) -> pa.Table:
    tables: list[pa.Table] = []
    rows = 0
    for path in files.find(where):
        source = Source(rows, f"'{path}'")
        read = files.read(path, schema, wanted, source, where)
        missing: Literal["error", "null"] = "null" if read.sparse or sparse else "error"
        tables.append(
            conform(read.table, schema, wanted, missing=missing, source=source, typed=typed, known=read.names)
        )
        rows += len(read.table)
    return concatenated(tables)


def concatenated(tables: list[pa.Table]) -> pa.Table:
    """Tables that differ only in how a column is encoded (large strings, dictionaries, zones), one after the other."""
    first = tables[0].schema
    if all(t.schema.equals(first) for t in tables):
        return pa.concat_tables(tables)
    columns: dict[str, Any] = {}
    for i, name in enumerate(first.names):
        parts = [t.column(i) for t in tables]
        if any(p.type != parts[0].type for p in parts):
            kind = parts[0].type
            target = pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) else pa.large_string()
            parts = [p.cast(target) for p in parts]
        columns[name] = pa.chunked_array([c for p in parts for c in p.chunks], parts[0].type)
    return pa.table(columns)


def _is_by_type(events: Mapping[Any, Any], schema: Schema) -> bool:
    """{type name: table} rather than {column name: values}."""
    if schema.time in events and not _is_table(events[schema.time]):
        return False
    tables = [_is_table(v) for v in events.values()]
    if any(tables) and not all(t or _is_empty(v) for t, v in zip(tables, events.values(), strict=True)):
        odd = next(n for n, v in events.items() if not _is_table(v))
        raise DataError(f"'{odd}' is no table, as the others of the dict are", column=str(odd))
    return any(tables)


def _is_empty(value: object) -> bool:
    return isinstance(value, list | tuple) and not value


def _is_table(value: object) -> bool:
    if isinstance(value, pa.Table | pa.RecordBatch | pa.RecordBatchReader | Mapping | str | Path | Files):
        return True
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(e, Mapping) for e in value)
    # A Polars or pandas Series exports a stream too, but has no columns.
    return hasattr(value, "__arrow_c_stream__") and hasattr(value, "columns")


def _merged(events: Mapping[Any, Any], schema: Schema, wanted: Wanted) -> pa.Table:
    """The tables of a dict {type name: table}, merged by time; among equal times in the order of the dict."""
    tables: list[pa.Table] = []
    names = [str(n) for n in events]
    for name, given in zip(names, events.values(), strict=True):
        own = {a: k for a, k in wanted.items() if schema.attribute(name, a) is not None or schema.per_type is None}
        given = given if isinstance(given, str | Path | Files | Mapping | list | tuple) else _from_arrow(given)
        if isinstance(given, pa.Table) and schema.type in given.column_names:
            _require_type(given.column(schema.type), name, schema.type)
        table = _one(given, schema, own, typed=False, sparse=True, source=Source(0, f"the table of type '{name}'"))
        for a in wanted:
            if a not in own:
                table = table.append_column(a, pa.nulls(len(table), _null_type(wanted[a], schema)))
        tables.append(table.select([schema.time, *wanted]))
    together = concatenated(tables)
    which = np.repeat(np.arange(len(tables), dtype=np.int32), [len(t) for t in tables])
    types = pa.DictionaryArray.from_arrays(pa.array(which), pa.array(names, pa.string()))
    together = together.add_column(1, schema.type, types)
    ts = together.column(schema.time).combine_chunks().view(pa.int64()).to_numpy(zero_copy_only=False)
    order = np.argsort(ts, kind="stable")
    return together.take(pa.array(order))


def _null_type(kind: Type, schema: Schema) -> pa.DataType:
    kinds = {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_(), "string": pa.string()}
    return kinds.get(kind) or pa.timestamp(schema.timestamp_unit)


def _require_type(column: Any, name: str, type_name: str) -> None:
    odd = pc.index(pc.fill_null(pc.not_equal(column.cast(pa.string()), name), True), True).as_py()
    if odd >= 0:
        raise DataError(
            f"column '{type_name}', row {odd}: {column[odd]} in the table of type '{name}'", column=type_name, row=odd
        )
