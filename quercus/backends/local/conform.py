"""A table as its schema describes it: every column there, and of the type the language knows it by.

What a column may hold, and what becomes of it (what already fits is not copied):

    declared    accepted
    int64       any integer (uint64 up to 2**63 - 1), a decimal without fraction digits
    float64     any integer, float or decimal
    bool        bool
    string      string, large string, string view; a dictionary of them stays a dictionary
    timestamp   timestamp with or without a zone (without: UTC), date, ISO 8601 text. Attributes are rounded down to the
                schema's unit; the time column must fit it exactly, since rounding would change the order of events
    time        as int64 or timestamp, as declared. Moments given for an integer time are counted in its unit
    type        as string; integers become their digits. Null: an event of no type

A dictionary of something else, run-end encoding and an extension type stand for the values they encode. A column of
nulls fits everywhere but in the time column. A float is never taken for an int64, even where it is whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from quercus.errors import DataError, nearest
from quercus.ir.expr import Type
from quercus.schema import Schema

Column = Any  # pa.ChunkedArray
Convert = Callable[[Column], Column]
_CODEC_FAILURES = (pa.ArrowException, OverflowError, ValueError, TypeError)
_NUMBER_TYPES = {"int64", "float64"}


def wanted_columns(schema: Schema, columns: frozenset[str] | None = None) -> dict[str, Type]:
    """The attributes to read, with their types; `columns` keeps only those it names."""
    return {name: kind for name, kind in schema.columns().items() if columns is None or name in columns}


@frozen
class Source:
    """What is being read, for messages; `first_row` is what its row 0 counts as in the whole input."""

    first_row: int = 0
    name: str = ""

    def fail(self, message: str, column: str, row: int | None = None) -> NoReturn:
        where = f" in {self.name}" if self.name else ""
        row = None if row is None else row + self.first_row
        at = "" if row is None else f", row {row}"
        raise DataError(f"column '{column}'{at}{where}: {message}", column=column, row=row)


WHOLE = Source()


def conform(
    table: pa.Table,
    schema: Schema,
    wanted: Mapping[str, Type],
    *,
    missing: Literal["error", "null"] = "error",
    source: Source = WHOLE,
    typed: bool = True,
    known: Collection[str] | None = None,
) -> pa.Table:
    """The time column, the type column (unless `typed` is False) and the wanted attributes, converted as above.

    `known` are all the columns of the input, where `table` has only some: a message suggests one of them.
    """
    names = table.column_names
    out: dict[str, Column] = {}

    def column(name: str) -> Column | None:
        if names.count(name) > 1:
            source.fail("stands more than once in the table", name)
        return table.column(name) if name in names else None

    def required(name: str, role: str) -> Column:
        found = column(name)
        if found is None:
            where = f" in {source.name}" if source.name else ""
            hint = nearest(name, known or names) or "columns: " + ", ".join(list(known or names)[:20])
            raise DataError(f"no {role}'{name}'{where}: {hint}", column=name)
        return found

    out[schema.time] = time_column(required(schema.time, "time column "), schema, source)
    if typed:
        out[schema.type] = type_column(required(schema.type, "type column "), schema.type, source)
    for name, kind in wanted.items():
        given = column(name) if missing == "null" else required(name, "column ")
        if given is None:
            given = pa.chunked_array([pa.nulls(table.num_rows)])
        out[name] = attribute_column(given, name, kind, schema.timestamp_unit, source)
    return pa.table(out)


def conforms(given: pa.Schema, schema: Schema, columns: frozenset[str] | None = None) -> bool:
    """Whether columns of these types are as conform() would leave them, but for nulls among the times."""
    wanted = wanted_columns(schema, columns)
    names = [schema.time, schema.type, *wanted]
    if any(given.get_field_index(n) < 0 for n in names):
        return False
    time, kind = given.field(schema.time).type, given.field(schema.type).type
    unit = pa.types.is_timestamp(time) and time.unit == schema.time_unit
    return (
        (unit if schema.time_is_timestamp else time == pa.int64())
        and (pa.types.is_string(kind) or pa.types.is_large_string(kind))
        and all(_fits(given.field(n).type, k, schema.timestamp_unit) for n, k in wanted.items())
    )


def _fits(t: pa.DataType, kind: Type, unit: str) -> bool:
    if kind == "string":
        return _is_names(t)
    if kind == "timestamp":
        return bool(pa.types.is_timestamp(t) and t.unit == unit)
    return bool(t == _TARGETS[kind])


# Columns --------------------------------------------------------------------------------------------------------------


def time_column(given: Column, schema: Schema, source: Source) -> Column:
    name, column, t = schema.time, *_plain(given)
    if column.null_count:
        source.fail("an event without a time", name, pc.index(pc.is_null(column), True).as_py())
    if _is_text(t):
        column, t = parsed(column, name, schema.time_unit, source)
    if pa.types.is_timestamp(t) or pa.types.is_date(t):
        column = _rescaled(column, t, name, schema.time_unit, source, exact=True)
        return column if schema.time_is_timestamp else _as_int64(column)
    if pa.types.is_null(t) and not len(column):
        return column.cast(pa.timestamp(schema.time_unit) if schema.time_is_timestamp else pa.int64())
    if pa.types.is_floating(t):
        source.fail(
            f"holds {t}: a time is an integer or a timestamp; Files(time_format='unix') reads seconds since 1970", name
        )
    if schema.time_is_timestamp:
        source.fail(f"holds {t} where the schema has timestamps: declare it int64, with a time_unit", name)
    if not _is_integral(t):
        source.fail(f"holds {t}: a time is an integer or a timestamp", name)
    return _cast(column, pa.int64(), name, source)


def type_column(given: Column, name: str, source: Source) -> Column:
    if _is_names(given.type):
        return given
    column, t = _plain(given)
    if not (_is_text(t) or pa.types.is_integer(t) or pa.types.is_null(t)):
        source.fail(f"holds {t}: a type is a string", name)
    return column.cast(pa.string())


def attribute_column(given: Column, name: str, kind: Type, unit: str, source: Source) -> Column:
    if kind == "string" and _is_names(given.type):
        return given
    column, t = _plain(given)
    target = pa.timestamp(unit) if kind == "timestamp" else pa.string() if kind == "string" else _TARGETS[kind]
    if t == target or pa.types.is_null(t):
        return column.cast(target)
    if kind == "int64" and _is_integral(t):
        return _cast(column, target, name, source)
    if kind == "float64" and (pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t)):
        return _cast(column, target, name, source, safe=False)
    if kind == "string" and _is_text(t):
        return column.cast(target)
    if kind == "timestamp":
        if _is_text(t):
            column, t = parsed(column, name, unit, source)
        if pa.types.is_timestamp(t) or pa.types.is_date(t):
            return _rescaled(column, t, name, unit, source, exact=False)
    hint = ": declare it float64" if kind == "int64" and pa.types.is_floating(t) else ""
    source.fail(f"holds {t} where the schema has {kind}{hint}", name)


_TARGETS = {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}


def _is_text(t: pa.DataType) -> bool:
    return bool(pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t))


def _is_integral(t: pa.DataType) -> bool:
    return bool(pa.types.is_integer(t) or (pa.types.is_decimal(t) and t.scale == 0))


def _is_names(t: pa.DataType) -> bool:
    """What is read where it lies: plain or large strings, and dictionaries of them."""
    value = t.value_type if pa.types.is_dictionary(t) else t
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def _plain(column: Column) -> tuple[Column, pa.DataType]:
    """The column without dictionary, run-end encoding or extension type, and its type."""
    t = column.type
    if isinstance(t, pa.BaseExtensionType):
        column, t = pa.chunked_array([c.storage for c in column.chunks], t.storage_type), t.storage_type
    if pa.types.is_run_end_encoded(t):
        kind = t.value_type.value_type if pa.types.is_dictionary(t.value_type) else t.value_type
        column, t = pa.chunked_array([_run_by_run(c, kind) for c in column.chunks], kind), kind
    if pa.types.is_dictionary(t):
        if pa.types.is_string_view(t.value_type):  # of which Arrow casts no dictionary
            column = pa.chunked_array([_viewed(c) for c in column.chunks], pa.large_string())
            return column, column.type
        column, t = column.cast(t.value_type), t.value_type
    return column, t


def _run_by_run(chunk: Any, kind: pa.DataType) -> pa.Array:
    """Run-end encoding undone; Arrow does not undo that of a dictionary."""
    if chunk.type.value_type == kind:
        return pc.run_end_decode(chunk)
    plain = pa.RunEndEncodedArray.from_arrays(chunk.run_ends, chunk.values.cast(kind))
    return pc.run_end_decode(plain.slice(chunk.offset, len(chunk)))


def _viewed(chunk: Any) -> pa.Array:
    return chunk.dictionary.cast(pa.large_string()).take(chunk.indices)


# Conversions ----------------------------------------------------------------------------------------------------------


def _checked(column: Column, name: str, source: Source, convert: Convert, why: str) -> Column:
    """convert(column); where that fails, an error that names the first row at fault."""
    try:
        return convert(column)
    except _CODEC_FAILURES:
        good, bad = 0, len(column)
        while bad - good > 1:  # the first `good` rows convert, the first `bad` do not
            middle = (good + bad) // 2
            try:
                convert(column.slice(0, middle))
                good = middle
            except _CODEC_FAILURES:
                bad = middle
        source.fail(f"{_shown(column.slice(good, 1))} {why}", name, good)


def _shown(one: Column) -> str:
    try:
        return repr(str(one[0].as_py())[:80])
    except (ValueError, OverflowError):  # a moment that Python has no datetime for
        return str(one.chunk(0).view(pa.int32() if pa.types.is_date32(one.type) else pa.int64())[0])


def _cast(column: Column, target: pa.DataType, name: str, source: Source, *, safe: bool = True) -> Column:
    return _checked(column, name, source, lambda c: c.cast(target, safe=safe), f"does not fit {target}")


def _as_int64(column: Column) -> Column:
    return pa.chunked_array([c.view(pa.int64()) for c in column.chunks], pa.int64())


def _rescaled(column: Column, t: pa.DataType, name: str, unit: str, source: Source, *, exact: bool) -> Column:
    """Timestamps or dates in another unit, each with the zone it had."""
    target = pa.timestamp(unit, t.tz if pa.types.is_timestamp(t) else None)
    if t == target:
        return column
    finer = pa.types.is_timestamp(t) and _PER_SECOND[t.unit] > _PER_SECOND[unit]
    if finer and not exact:
        step = _PER_SECOND[t.unit] // _PER_SECOND[unit]
        return pa.chunked_array([_floored(c, step, target) for c in column.chunks], target)
    why = f"is no whole number of {unit}: declare the column 'timestamp[{t.unit}]'" if finer else f"is out of {target}"
    return _checked(column, name, source, lambda c: c.cast(target), why)


_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _floored(chunk: pa.Array, step: int, target: pa.DataType) -> pa.Array:
    counts = np.asarray(chunk.view(pa.int64()).fill_null(0)) // step
    mask = np.asarray(chunk.is_null()) if chunk.null_count else None
    return pa.array(counts, mask=mask).view(target)


def parsed(column: Column, name: str, unit: str, source: Source) -> tuple[Column, pa.DataType]:
    """ISO 8601 text as timestamps in UTC, which is also what text without a zone means."""
    target = pa.timestamp(unit)

    def convert(c: Column) -> Column:
        c = pc.utf8_trim_whitespace(c.cast(pa.string()))
        zone = pc.match_substring_regex(c, r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$")
        rest = pc.if_else(pc.equal(pc.utf8_length(c), 10), "T00:00:00Z", "Z")
        moments = pc.if_else(zone, c, pc.binary_join_element_wise(c, rest, "")).cast(pa.timestamp(unit, "UTC"))
        return pa.chunked_array([m.view(target) for m in moments.chunks], target)

    _refuse_mixed(column, name, source)
    return _checked(column, name, source, convert, f"is no ISO 8601 time in {unit}"), target


def _refuse_mixed(column: Column, name: str, source: Source) -> None:
    """Of numbers among which one thing is none, that one is to blame."""
    head = next((str(v) for v in column.slice(0, 10).to_pylist() if v is not None), "")
    if not re.fullmatch(r"\s*-?\d+\s*", head):
        return
    text = column.cast(pa.string())
    other = pc.index(pc.invert(pc.match_substring_regex(text, r"^\s*-?\d*\s*$")), True).as_py()
    if other >= 0:
        source.fail(f"{text[other].as_py()[:80]!r} is no number, as the time before is", name, other)
