"""What a name means in a continuous query: streams, the sources of a FROM, and the columns of their tuples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NoReturn

from attrs import frozen

from quercus.errors import QueryError, nearest
from quercus.ir import window as w
from quercus.ir.expr import Column, Type

if TYPE_CHECKING:
    from quercus.ir.pattern import TimeUnit
    from quercus.ir.span import Span
    from quercus.schema import Schema


@frozen
class Tuples:
    """What the tuples of a stream have: their attributes, and a time that goes by several names."""

    columns: Mapping[str, Type]
    unit: TimeUnit
    is_timestamp: bool
    time: str = "ts"
    type: str = ""  # empty: they have none
    key: tuple[str, ...] = ()
    ties: str = "strict"

    @classmethod
    def of(cls, schema: Schema) -> Tuples:
        return cls(
            schema.columns(),
            schema.time_unit,
            schema.time_is_timestamp,
            schema.time,
            schema.type,
            schema.key,
            schema.ties,
        )

    def attribute(self, name: str) -> tuple[str, Type] | None:
        """An attribute by its own name, and its type. `Timestamp` is the time, unless an attribute is called so."""
        if name in self.columns:
            return name, self.columns[name]
        if name in ("ts", self.time) or name.casefold() == "timestamp":
            return "ts", "timestamp" if self.is_timestamp else "int64"
        if self.type and name in ("type", self.type):
            return "type", "string"
        return None

    def names(self) -> list[str]:
        return [*self.columns, "Timestamp", *([self.type] if self.type else [])]


@frozen
class Item:
    """A source of FROM, by the name that it has there."""

    name: str
    tuples: Tuples
    window: w.Window
    span: Span | None


class Scope:
    """The sources that an expression sees."""

    def __init__(self, items: Iterable[Item], text: str) -> None:
        self.items, self.text = list(items), text

    def fail(self, code: str, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        raise QueryError(code, message, text=self.text, span=span, hint=hint)

    def source(self, name: str, span: Span | None) -> int:
        for i, item in enumerate(self.items):
            if item.name == name:
                return i
        known = [i.name for i in self.items]
        self.fail("E102", f"no source '{name}' in FROM", span, nearest(name, known) or "sources: " + ", ".join(known))

    def qualified(self, source: str, name: str, span: Span | None) -> Column:
        """`x.name`."""
        return self.column(self.source(source, span), name, span)

    def column(self, source: int, name: str, span: Span | None) -> Column:
        """A column of one source."""
        item = self.items[source]
        found = item.tuples.attribute(name)
        if found is None:
            known = item.tuples.names()
            hint = nearest(name, known) or "attributes: " + ", ".join(known[:12])
            self.fail("E104", f"no attribute '{name}' in '{item.name}'", span, hint)
        return Column(f"s{source}", *found, span=span)

    def word(self, name: str, span: Span | None) -> Column:
        """A name alone: the only source that has such a column has it."""
        having = [i for i, item in enumerate(self.items) if item.tuples.attribute(name) is not None]
        if not having:
            known = list(dict.fromkeys(n for item in self.items for n in item.tuples.names()))
            hint = nearest(name, known) or "attributes: " + ", ".join(known[:12])
            if name in [i.name for i in self.items]:
                hint = f"write {name}.attribute"
            elif name.casefold() in ("iter", "num", "first", "last", "prev"):
                hint = f"write {name.upper()}({'' if name.casefold() in ('iter', 'num') else 'a'})"
            self.fail("E104", f"no attribute '{name}'", span, hint)
        if len(having) > 1:
            ways = " or ".join(f"{self.items[i].name}.{name}" for i in having)
            self.fail("E108", f"'{name}' is a column of several sources", span, f"write {ways}")
        return self.column(having[0], name, span)
