"""The IR as query text.

What is printed parses and binds to the same IR (marks, key and other findings of rules aside).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import assert_never

from quercus.ir import expr as x
from quercus.ir import pattern as p

_RESERVED = frozenset(
    [
        "pattern",
        "where",
        "agg",
        "return",
        "within",
        "as",
        "seq",
        "and",
        "or",
        "not",
        "in",
        "between",
        "is",
        "null",
        "true",
        "false",
        "groupby",
    ]
)
_LARGER = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def name(text: str) -> str:
    """A name as it must be written: quoted unless it is a plain identifier."""
    if re.fullmatch(r"[^\W\d]\w*", text) and text.casefold() not in _RESERVED:
        return text
    return quoted(text)


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def type_name(text: str) -> str:
    return text if re.fullmatch(r"[0-9]+", text) else name(text)


def column(var: str, attr: str) -> str:
    return f"{type_name(var)}.{name(attr)}"


def scalar(e: x.Expr, unit: p.TimeUnit = "us", named: Callable[[x.Column], str] | None = None) -> str:
    """An expression as text; `unit` is that of timestamps, `named` how a column is written."""

    def whole(c: x.Expr) -> str:
        return scalar(c, unit, named)

    def inner(c: x.Expr) -> str:
        text = whole(c)
        plain = isinstance(c, x.Column | x.Call | x.GroupCall | x.Same | x.Logic) or (
            isinstance(c, x.Const) and not text.startswith("-")
        )
        return text if plain else f"({text})"

    match e:
        case x.Const():
            return _constant(e, unit)
        case x.Column():
            return column(e.var, e.attr) if named is None else named(e)
        case x.Negative():
            return f"-{inner(e.value)}"
        case x.Arithmetic() | x.Compare():
            looser = isinstance(e, x.Compare) and isinstance(e.right, x.Const | x.Arithmetic)
            return f"{inner(e.left)} {e.op} {whole(e.right) if looser else inner(e.right)}"
        case x.Logic():
            return "(" + f" {e.op} ".join(inner(c) for c in e.items) + ")"
        case x.NotTrue():
            return f"not {inner(e.value)}"
        case x.InSet():
            items = ", ".join(whole(i) for i in e.items)
            return f"{inner(e.value)} {'not ' if e.negated else ''}in ({items})"
        case x.IsNull():
            return f"{inner(e.value)} is {'not ' if e.negated else ''}null"
        case x.Call():
            return f"{e.name}({', '.join(whole(a) for a in e.args)})"
        case x.GroupCall():
            if e.name in ("first", "last"):
                return f"{e.name}({type_name(e.var)}).{name(e.attr or '')}"
            return f"{e.name}({type_name(e.var) if e.attr is None else column(e.var, e.attr)})"
        case x.Same():
            return f"same({', '.join(scalar(c) for c in e.columns)})"
        case _:
            assert_never(e)


def _constant(e: x.Const, unit: p.TimeUnit) -> str:
    match e.value:
        case None:
            return "null"
        case bool():
            return "true" if e.value else "false"
        case str():
            return "'" + e.value.replace("'", "''") + "'"
        case int() if e.type == "timestamp":
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=e.value * 10**6 // _PER_SECOND[unit])
            return "'" + moment.replace(tzinfo=None).isoformat() + "'"
        case _:
            return repr(e.value)


def window(w: p.Window) -> str:
    """`10 min`, `5 EVENTS`: in the largest unit that divides it."""
    if w.kind == "count" or w.unit is None:
        return f"{w.size} EVENTS" if w.kind == "count" else str(w.size)
    per = _PER_SECOND[w.unit]
    for unit, seconds in reversed(_LARGER.items()):
        if w.size % (seconds * per) == 0:
            return f"{w.size // (seconds * per)} {unit}"
    for unit, there in _PER_SECOND.items():
        if (w.size * there) % per == 0:
            return f"{w.size * there // per} {unit}"
    return f"{w.size} {w.unit}"


def pattern(e: p.Pattern, unit: p.TimeUnit = "us") -> str:
    """A pattern as text, by itself."""
    return _Printer(e, unit).pattern(e)


def query(q: p.Query, unit: p.TimeUnit = "us", *, sep: str = "\n") -> str:
    """A whole query as text, one clause a line."""
    lines = [f"PATTERN {_Printer(q.pattern, unit).pattern(q.pattern)}"]
    where = (*q.where, x.FALSE) if q.empty is not None and x.FALSE not in q.where else q.where
    if where:
        lines.append("WHERE " + " and ".join(scalar(c, unit) for c in where))
    if q.partition_by:
        lines.append("PARTITION BY " + ", ".join(name(a) for a in q.partition_by))
    lines.append(f"WITHIN {window(q.window)}")
    if q.returns:
        lines.append("RETURN " + ", ".join(_output(o, unit) for o in q.returns))
    if q.aggregates:
        lines.append("AGG " + ", ".join(_aggregate(a) for a in q.aggregates))
    if q.group_by:
        lines.append("GROUPBY " + ", ".join(column(g.var, g.attr) for g in q.group_by))
    return sep.join(lines)


def _output(o: p.Output, unit: p.TimeUnit) -> str:
    value = type_name(o.value) if isinstance(o.value, str) else scalar(o.value, unit)
    return f"{value} AS {name(o.name)}"


def _aggregate(a: p.Aggregate) -> str:
    of = "*" if a.var is None else type_name(a.var) if a.attr is None else column(a.var, a.attr)
    return f"{a.function.upper()}({of}) AS {name(a.name)}"


class _Printer:
    """Prints leaves without a variable where the text says the same without one."""

    def __init__(self, root: p.Pattern, unit: p.TimeUnit) -> None:
        self.unit = unit
        self.bare = Counter(leaf.var for leaf in p.leaves(root, negated=True) if _leaf(leaf).type == leaf.var)

    def pattern(self, e: p.Pattern) -> str:
        match e:
            case p.Leaf() | p.Kleene():
                leaf, sign = _leaf(e), e.sign if isinstance(e, p.Kleene) else ""
                var = "" if leaf.var == leaf.type and self.bare[leaf.var] == 1 else f" {name(leaf.var)}"
                return f"{type_name(leaf.type)}{sign}{var}"
            case p.Seq() | p.And():
                return self.operator("SEQ" if isinstance(e, p.Seq) else "AND", [self.pattern(c) for c in e.parts], e)
            case p.Or():
                return self.operator("OR", [self.carrier(b.body, b.where) for b in e.branches], e)
            case p.Not():
                return "!" + self.carrier(e.body, e.where)
            case _:
                assert_never(e)

    def operator(self, kind: str, items: list[str], e: p.Seq | p.And | p.Or) -> str:
        tail = f" WITHIN {window(e.window)}" if e.window else ""
        return f"{kind}({', '.join(items)}){tail}"

    def carrier(self, body: p.Pattern, where: tuple[x.Expr, ...]) -> str:
        if not where:
            return self.pattern(body)
        return f"({', '.join([self.pattern(body), *(scalar(c, self.unit) for c in where)])})"


def _leaf(e: p.Leaf | p.Kleene) -> p.Leaf:
    return e.leaf if isinstance(e, p.Kleene) else e
