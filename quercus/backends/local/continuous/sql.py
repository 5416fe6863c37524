"""Typed expressions as SQL that computes what docs/semantics.md says, not what an engine would.

Names in it are generated, and values are parameters: nothing of a query's text becomes SQL text. No operand of
arithmetic is written twice, so that a nested expression stays as short as it was. Timestamps are counts of their unit.

`Dialect` is what SQL is not written alike in: DuckDB's is here, Spark's with the Spark backend. Two settings belong to
DuckDB's (duck.py): division by zero is null, of whole numbers and of floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, assert_never

from quercus.ir import expr as x

Named = Callable[[x.Column], str]
SQL_TYPES: dict[x.Type, str] = {
    "int64": "BIGINT",
    "timestamp": "BIGINT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
    "null": "BIGINT",
}
LOWER, UPPER = "quercus_lower", "quercus_upper"  # functions of our own: DuckDB's know one character at a time


class Dialect:
    """SQL of DuckDB, where another engine's is different."""

    types: ClassVar[Mapping[x.Type, str]] = SQL_TYPES
    kept = "MATERIALIZED "  # said of a step that is read more than once
    ordered = True  # rows come out in order; else their order is one more column

    def parameter(self, number: int) -> str:
        return f"${number}"

    def given(self, table: str) -> str | None:
        """How a table that a statement is given is read, if not by its name."""
        return None

    # expressions

    def null(self, kind: x.Type) -> str:
        return f"CAST(NULL AS {self.types[kind]})"

    def integer(self, op: x.ArithmeticOp, left: str, right: str) -> str:
        return self.whole(f"{huge(left)} {op} {huge(right)}")

    def floating(self, op: x.ArithmeticOp, left: str, right: str) -> str:
        return f"({left} {op} {right})"

    def negative(self, value: str) -> str:
        """Of a whole number."""
        return self.whole(f"-{huge(value)}")

    def absolute(self, value: str) -> str:
        """Of a whole number."""
        return self.whole(f"abs({huge(value)})")

    def rounded(self, name: str, value: str) -> str:
        """`round`, `floor` or `ceil` of a float."""
        return f"{name}({value})"

    def whole(self, text: str) -> str:
        """128 bits wide as far as int64 goes; beyond it, null."""
        return f"TRY_CAST(({text}) AS BIGINT)"

    # rows and groups

    def place(self, places: Sequence[str]) -> str:
        """The order of joined rows, from those of their tuples."""
        return places[0] if len(places) == 1 else f"row_number() OVER (ORDER BY {', '.join(places)})"

    def group(self, keys: Sequence[str]) -> str:
        """One value for each group, in their order."""
        return f"dense_rank() OVER (ORDER BY {', '.join(keys)})" if keys else "0"

    def branch(self, number: int, of: int) -> str:
        """The order of the rows of a SELECT among those of a UNION."""
        return f"o + {number * _BRANCH}" if number else "o"

    def first(self, value: str, order: str) -> str:
        """The value of the first row, null or not."""
        return f"arg_min_null({value}, {order})"

    def last(self, value: str, order: str) -> str:
        return f"arg_max_null({value}, {order})"

    def sum(self, value: str, distinct: bool = False) -> str:
        """Of whole numbers, 128 bits wide."""
        return f"sum({'DISTINCT ' if distinct else ''}{value})"

    def float_sum(self, value: str, distinct: bool) -> str:
        """Floats added in the order of the rows, so that the sum is always one."""
        return f"sum(DISTINCT {value} ORDER BY {value})" if distinct else f"sum({value} ORDER BY o)"

    def signed(self, value: str) -> str:
        """A whole number, added where it comes and taken away where it goes."""
        return f"sum(d * {huge(value)})"


DUCKDB = Dialect()
_BRANCH = 2**40  # more rows than a branch of a UNION can have: its rows come after those before it


class Expressions:
    """Writes expressions, and keeps the values of their constants for the statement they stand in."""

    def __init__(self, dialect: Dialect = DUCKDB) -> None:
        self.dialect = dialect
        self.parameters: list[object] = []
        self.functions: set[str] = set()  # of our own that are used

    def parameter(self, value: object, kind: x.Type) -> str:
        self.parameters.append(value)
        return f"CAST({self.dialect.parameter(len(self.parameters))} AS {self.dialect.types[kind]})"

    def conjunction(self, conditions: tuple[x.Expr, ...], named: Named) -> list[str]:
        return [self.condition(e, named) for e in conditions]

    def condition(self, e: x.Expr, named: Named) -> str:
        return self.dialect.null("bool") if e.type == "null" else self.value(e, named)

    def value(self, e: x.Expr, named: Named) -> str:
        match e:
            case x.Const():
                return self._constant(e)
            case x.Column():
                return named(e)
            case x.Negative() | x.Arithmetic() | x.Call() if any(c.type == "null" for c in x.children(e)):
                return self.dialect.null(e.type)
            case x.Negative():
                inner = self.value(e.value, named)
                return f"(-{inner})" if e.type == "float64" else self.dialect.negative(inner)
            case x.Arithmetic():
                return self._arithmetic(e, named)
            case x.Compare():
                return self._compare(e, named)
            case x.Logic():
                items = [self.condition(i, named) for i in e.items]
                return balanced(items, "AND" if e.op == "and" else "OR")
            case x.NotTrue():
                return f"(NOT {self.condition(e.value, named)})"
            case x.InSet():
                return self._in_set(e, named)
            case x.IsNull():
                return f"({self.value(e.value, named)} IS {'NOT ' if e.negated else ''}NULL)"
            case x.Call():
                return self._call(e, named)
            case x.GroupCall() | x.Same():
                raise AssertionError(f"not of a continuous query: {e}")
            case _:
                assert_never(e)

    def _constant(self, e: x.Const) -> str:
        if e.value is None or (type(e.value) is int and not -(2**63) <= e.value < 2**63):
            return self.dialect.null(e.type)
        if isinstance(e.value, bool):
            return "TRUE" if e.value else "FALSE"
        return self.parameter(e.value, e.type)

    def _float(self, e: x.Expr, named: Named) -> str:
        value = self.value(e, named)
        return value if e.type == "float64" else f"CAST({value} AS DOUBLE)"

    def _arithmetic(self, e: x.Arithmetic, named: Named) -> str:
        if e.type == "float64":
            return self.dialect.floating(e.op, self._float(e.left, named), self._float(e.right, named))
        return self.dialect.integer(e.op, self.value(e.left, named), self.value(e.right, named))

    def _compare(self, e: x.Compare, named: Named) -> str:
        """Engines have an order in which NaN is the greatest; here NaN compares as in IEEE 754."""
        kinds = {e.left.type, e.right.type}
        if "null" in kinds:
            return self.dialect.null("bool")
        if "float64" not in kinds:
            return f"({self.value(e.left, named)} {e.op} {self.value(e.right, named)})"
        left, right = self._float(e.left, named), self._float(e.right, named)
        can_be_nan = [
            f"isnan({text})"
            for side, text in ((e.left, left), (e.right, right))
            if side.type == "float64" and not isinstance(side, x.Const)
        ]
        plain = f"({left} {e.op} {right})"
        if not can_be_nan:
            return plain
        missing = f"{left} IS NULL OR {right} IS NULL"
        odd = "TRUE" if e.op == "<>" else "FALSE"
        known = f"WHEN {' OR '.join(can_be_nan)} THEN {odd} ELSE {plain}"
        return f"(CASE WHEN {missing} THEN {self.dialect.null('bool')} {known} END)"

    def _in_set(self, e: x.InSet, named: Named) -> str:
        """An integer is compared with integers exactly, and with floats as a float."""
        items = [i for i in e.items if i.value is not None]
        if e.value.type == "null" or not items:
            return self.dialect.null("bool")
        tests = []
        for kind in dict.fromkeys(i.type for i in items):
            same = [i for i in items if i.type == kind]
            if "float64" in (kind, e.value.type):
                value, listed = self._float(e.value, named), [self._float(i, named) for i in same]
                inside = f"{value} IN ({', '.join(listed)})"
                tests.append(f"(CASE WHEN isnan({value}) THEN FALSE ELSE {inside} END)")
            else:
                listed = [self._constant(i) for i in same]
                tests.append(f"({self.value(e.value, named)} IN ({', '.join(listed)}))")
        if len(items) < len(e.items):
            tests.append(self.dialect.null("bool"))
        found = balanced(tests, "OR")
        return f"(NOT {found})" if e.negated else found

    def _call(self, e: x.Call, named: Named) -> str:
        value, kind = self.value(e.args[0], named), e.args[0].type
        match e.name:
            case "lower" | "upper":
                own = LOWER if e.name == "lower" else UPPER
                self.functions.add(own)
                return f"{own}({value})"
            case "length":
                return f"CAST(length({value}) AS BIGINT)"
            case "abs":
                return self.dialect.absolute(value) if kind == "int64" else f"abs({value})"
            case "round" | "floor" | "ceil":
                return value if kind == "int64" else self.dialect.rounded(e.name, value)
            case _:
                assert_never(e.name)


def huge(text: str) -> str:
    return f"CAST({text} AS HUGEINT)"


def balanced(items: list[str], op: str) -> str:
    """A long list as a shallow tree: parsers count depth."""
    if len(items) == 1:
        return items[0]
    half = len(items) // 2
    return f"({balanced(items[:half], op)} {op} {balanced(items[half:], op)})"
