"""What could stand at the caret: types, attributes, variables, keywords, units; from the schema and the text so far."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import frozen

from quercus.compiler.scalars import UNITS
from quercus.ir import text as texts
from quercus.schema import Schema

MOST = 12
CLAUSES = ("WHERE", "WITHIN", "RETURN", "AGG", "GROUPBY", "PARTITION BY")
OPERATORS = ("SEQ", "AND", "OR")
FUNCTIONS = (
    "count",
    "first",
    "last",
    "sum",
    "avg",
    "min",
    "max",
    "abs",
    "round",
    "floor",
    "ceil",
    "lower",
    "upper",
    "length",
)
TOTALS = ("COUNT(*)", "COUNT", "SUM", "AVG", "MIN", "MAX")
WORDS = {
    w.casefold() for w in (*CLAUSES, *OPERATORS, "PATTERN", "NOT", "IN", "IS", "NULL", "BETWEEN", "AS", "GROUP", "BY")
}

NAME = r"[^\W\d]\w*"
QUOTED = r"'(?:[^'\n]|'')*'|\"(?:[^\"\n]|\"\")*\""
BINDING = re.compile(rf"(?P<type>{NAME}|{QUOTED})\s*(?:[+*]|\[\d+\])?\s+(?P<var>{NAME})")


@frozen
class Item:
    """A suggestion: what is inserted, what it is, and a word about it."""

    insert: str
    kind: str
    note: str = ""


def variables(query: str, schema: Schema) -> dict[str, str]:
    """The variables of a query, also of one that is not finished, with their types."""
    known = schema.type_names()
    found: dict[str, str] = {}
    for m in BINDING.finditer(re.sub(r"--[^\n]*", "", query)):
        name, var = m["type"].strip("'\""), m["var"]
        if name.casefold() not in WORDS and var.casefold() not in WORDS and (known is None or name in known):
            found.setdefault(var, name)
    return found


def suggestions(query: str, caret: int, schema: Schema) -> dict[str, Any]:
    """What fits at the caret, best first, and the part of the text that it replaces."""
    before = query[:caret]
    word = re.search(r"\w*$", before)
    start = word.start() if word else caret
    typed = before[start:]
    end = caret + len(re.match(r"\w*", query[caret:]).group())  # type: ignore[union-attr]
    fitting = [] if _hidden(query, caret) else list(_fitting(query, before[:start], schema))
    items = [{"insert": i.insert, "kind": i.kind, "note": i.note} for i in _ranked(fitting, typed)]
    return {"from": start, "to": end, "items": items[:MOST]}


def _hidden(query: str, caret: int) -> bool:
    """Whether the caret stands in a string or in a comment."""
    line = query.rfind("\n", 0, caret) + 1
    rest = re.sub(QUOTED, "", query[line:caret])
    return "--" in rest or "'" in rest or '"' in rest


def _fitting(query: str, before: str, schema: Schema) -> Iterator[Item]:
    bound = variables(query, schema)
    last = before.rstrip()
    if last.endswith("."):
        owner = re.search(rf"({NAME})\s*(?:\([^()]*\)\s*)?\.$", last)
        inner = re.search(rf"\(\s*({NAME})\s*\)\s*\.$", last)  # first(b).x
        var = inner[1] if inner else owner[1] if owner else ""
        yield from _attributes(schema, bound.get(var))
        return
    if re.search(r"\[[^\]]*$", last) and not re.search(rf"({NAME})\[$", last):
        yield from _attributes(schema, None, special=False)
        return
    if re.search(r"\bWITHIN\s+\d+(\.\d+)?$", last, re.IGNORECASE):
        yield from (Item(u, "unit") for u in (*_units(), "EVENTS"))
        return
    if not last:
        yield Item("PATTERN ", "keyword", "a query begins with it")
        return
    clause = _clause(last)
    open_ = last.count("(") - last.count(")")
    if clause == "PATTERN" and (open_ or last.upper().endswith("PATTERN") or last[-1] in "!;&|"):
        yield from (Item(texts.type_name(n), "type") for n in sorted(schema.type_names() or ()))
        yield from (Item(f"{o}(", "operator") for o in OPERATORS)
        if open_ and last[-1] not in "!(":
            yield from (Item(v, "variable", t) for v, t in bound.items())
            yield from (Item(f"{f}(", "function") for f in FUNCTIONS)
        return
    if clause == "AGG":
        yield from (Item(t if t.endswith(")") else f"{t}(", "function") for t in TOTALS)
    if clause not in ("PATTERN", "WITHIN"):
        yield from (Item(v, "variable", t) for v, t in bound.items())
    if clause in ("WHERE", "RETURN"):
        yield from (Item(f"{f}(", "function") for f in FUNCTIONS)
    yield from (Item(f"{c} ", "keyword") for c in CLAUSES)


def _attributes(schema: Schema, owner: str | None, *, special: bool = True) -> Iterator[Item]:
    found = schema.columns() if owner is None else schema.attributes(owner)
    yield from (Item(texts.name(n), "attribute", t) for n, t in found.items())
    if special:
        yield Item("ts", "attribute", "its time")
        yield Item("type", "attribute", "its type")


def _units() -> Iterable[str]:
    return [u for u in ("ms", "s", "min", "h", "hour", "day") if u in UNITS]


def _clause(before: str) -> str:
    """The clause that the caret stands in."""
    found = re.findall(r"\b(PATTERN|WHERE|WITHIN|RETURN|AGG|GROUP\s*BY|PARTITION\s+BY)\b", before, re.IGNORECASE)
    depth = before.count("(") - before.count(")")
    return "PATTERN" if not found or (depth > 0 and len(found) == 1) else re.sub(r"\s", "", found[-1].upper())


def _ranked(items: Iterable[Item], typed: str) -> list[Item]:
    """Those that begin as what is typed, then those that have it inside; nothing that is there already."""
    low = typed.casefold()
    begin = [i for i in items if i.insert.strip("'\"").casefold().startswith(low) and i.insert != typed]
    inside = [i for i in items if low and i not in begin and low in i.insert.casefold() and i.insert != typed]
    return [*begin, *inside]
