"""SQL of Spark that computes what docs/semantics.md says, with `spark.sql.ansi.enabled` on or off.

Spark has neither whole numbers of 128 bits nor a cheap number for every row: decimals take the place of the former, and
structs, which compare field by field, that of the latter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from quercus.backends.local.continuous.sql import LOWER, SQL_TYPES, UPPER, Dialect
from quercus.backends.local.expressions import cased
from quercus.ir import expr as x

_WIDE = "DECIMAL(20,0)"  # holds every int64; sums of them have 38 digits
_NULL_BY_ZERO: dict[str, str] = {"/": "try_divide", "%": "try_mod"}


class SparkSql(Dialect):
    types: ClassVar[Mapping[x.Type, str]] = {**SQL_TYPES, "string": "STRING"}
    kept = ""
    ordered = False

    def parameter(self, number: int) -> str:
        return f":p{number}"

    def given(self, table: str) -> str | None:
        return f"{{{table}}}"

    # expressions

    def integer(self, op: x.ArithmeticOp, left: str, right: str) -> str:
        """Not by `try_add` and the like: the optimiser adds and multiplies in another order, where less overflows."""
        if op == "%":
            return f"try_mod({left}, {right})"
        return self.whole(f"CAST({left} AS {_WIDE}) {op} CAST({right} AS {_WIDE})")

    def floating(self, op: x.ArithmeticOp, left: str, right: str) -> str:
        return f"{_NULL_BY_ZERO[op]}({left}, {right})" if op in _NULL_BY_ZERO else f"({left} {op} {right})"

    def negative(self, value: str) -> str:
        return self.whole(f"-CAST({value} AS {_WIDE})")

    def absolute(self, value: str) -> str:
        return self.whole(f"abs(CAST({value} AS {_WIDE}))")

    def rounded(self, name: str, value: str) -> str:
        """Spark's give whole numbers, and no negative zero. `rint` keeps to floats; a lambda has its operand once."""
        below = "CASE WHEN rint({0}) > {0} THEN rint({0}) - 1D ELSE rint({0}) END"
        match name:
            case "floor":
                found = below.format("v")
            case "ceil":
                found = f"CASE WHEN isnan(v) THEN v ELSE -({below.format('(-v)')}) END"
            case _:  # half away from zero
                size = below.format("abs(v)")
                up = f"({size}) + CASE WHEN abs(v) - ({size}) >= 0.5D THEN 1D ELSE 0D END"
                found = f"CASE WHEN v = 0D OR isnan(v) THEN v WHEN v < 0D THEN -({up}) ELSE {up} END"
        return f"transform(array({value}), v -> {found})[0]"

    # rows and groups

    def place(self, places: Sequence[str]) -> str:
        """A number would take all rows to one node."""
        return places[0] if len(places) == 1 else _struct(places)

    def group(self, keys: Sequence[str]) -> str:
        return _struct([part for k in keys for part in (f"{k} IS NULL", k)]) if keys else "0"

    def branch(self, number: int, of: int) -> str:
        return "o" if of == 1 else "0"

    def first(self, value: str, order: str) -> str:
        return f"min_by({value}, {order})"

    def last(self, value: str, order: str) -> str:
        return f"max_by({value}, {order})"

    def sum(self, value: str, distinct: bool = False) -> str:
        return f"sum({'DISTINCT ' if distinct else ''}CAST({value} AS {_WIDE}))"

    def float_sum(self, value: str, distinct: bool) -> str:
        """`sum` would add in any order, and so give another sum each time."""
        if distinct:
            rows, added = f"collect_list(DISTINCT {value})", "e"
        else:
            rows, added = f"collect_list(struct(o, {value} AS x)) FILTER (WHERE {value} IS NOT NULL)", "e.x"
        total = f"aggregate(array_sort({rows}), 0D, (s, e) -> s + {added})"
        return f"CASE WHEN count({value}) > 0 THEN {total} END"

    def signed(self, value: str) -> str:
        return f"sum(d * CAST({value} AS {_WIDE}))"


SPARK = SparkSql()


def _struct(parts: Sequence[str]) -> str:
    fields = ", ".join(f"'f{i}', {part}" for i, part in enumerate(parts))
    return f"named_struct({fields})"


def add_functions(session: SparkSession, names: frozenset[str]) -> None:
    """Functions of our own, by their names, for this session: casing by the rules of the engine's own expressions."""
    for name in sorted(names):
        own = arrow_udf({LOWER: _lower, UPPER: _upper}[name], "string")  # type: ignore[call-overload]
        session.udf.register(name, own)


def _lower(strings: pa.Array) -> pa.Array:
    return cased(strings, "lower")


def _upper(strings: pa.Array) -> pa.Array:
    return cased(strings, "upper")
